package flow_test

import (
	"testing"
	"time"

	"till/flow"
)

// Only what somebody runs, hears and wants to be used gets new chats.
func TestWhichNumbersTakeNewChats(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	live := flow.Number{Slot: 1, Digits: "2348000000001", State: flow.NumberLive, Weight: 1, Holder: "a", HeldUntil: now.Add(time.Second)}
	with := func(change func(n *flow.Number)) flow.Number { n := live; change(&n); return n }
	for name, c := range map[string]struct {
		n           flow.Number
		shown       flow.NumberState
		takes, able bool
	}{
		"live":                       {live, flow.NumberLive, true, true},
		"its process is dead":        {with(func(n *flow.Number) { n.HeldUntil = now }), flow.NumberOffline, false, true},
		"nobody runs it":             {with(func(n *flow.Number) { n.Holder = "" }), flow.NumberOffline, false, true},
		"draining":                   {with(func(n *flow.Number) { n.Switch = flow.NumberDrains }), flow.NumberDraining, false, true},
		"draining and away":          {with(func(n *flow.Number) { n.Switch, n.State = flow.NumberDrains, flow.NumberConnecting }), flow.NumberConnecting, false, true},
		"killed":                     {with(func(n *flow.Number) { n.Switch = flow.NumberKill }), flow.NumberKilled, false, false},
		"killed and not run":         {with(func(n *flow.Number) { n.Switch, n.Holder = flow.NumberKill, "" }), flow.NumberKilled, false, false},
		"syncing":                    {with(func(n *flow.Number) { n.State = flow.NumberSyncing }), flow.NumberSyncing, false, true},
		"mute":                       {with(func(n *flow.Number) { n.State = flow.NumberMute }), flow.NumberMute, false, true},
		"deaf":                       {with(func(n *flow.Number) { n.State = flow.NumberDeaf }), flow.NumberDeaf, false, true},
		"timelocked":                 {with(func(n *flow.Number) { n.State = flow.NumberTimelocked }), flow.NumberTimelocked, false, true},
		"banned":                     {with(func(n *flow.Number) { n.State = flow.NumberBanned }), flow.NumberBanned, false, false},
		"banned, nobody runs it":     {with(func(n *flow.Number) { n.State, n.Holder, n.Until = flow.NumberBanned, "", now.Add(time.Second) }), flow.NumberBanned, false, false},
		"it was, nobody runs it":     {with(func(n *flow.Number) { n.State, n.Holder, n.Until = flow.NumberBanned, "", now }), flow.NumberOffline, false, true},
		"logged out, nobody runs it": {with(func(n *flow.Number) { n.State, n.Holder = flow.NumberLoggedOut, "" }), flow.NumberLoggedOut, false, false},
		"replaced":                   {with(func(n *flow.Number) { n.State = flow.NumberReplaced }), flow.NumberReplaced, false, false},
		"outdated":                   {with(func(n *flow.Number) { n.State = flow.NumberOutdated }), flow.NumberOutdated, false, false},
		"never linked":               {with(func(n *flow.Number) { n.Digits = "" }), flow.NumberLive, false, true},
		"full for today":             {with(func(n *flow.Number) { n.DailyChats, n.ChatsToday = 5, 5 }), flow.NumberLive, false, true},
		"room for one today":         {with(func(n *flow.Number) { n.DailyChats, n.ChatsToday = 5, 4 }), flow.NumberLive, true, true},
		"of no weight":               {with(func(n *flow.Number) { n.Weight = 0 }), flow.NumberLive, false, true},
		"phone away for 11 days":     {with(func(n *flow.Number) { n.State, n.PhoneSeen = flow.NumberPhoneAway, now.Add(-11*24*time.Hour) }), flow.NumberPhoneAway, true, true},
		"phone away for 12 days":     {with(func(n *flow.Number) { n.State, n.PhoneSeen = flow.NumberPhoneAway, now.Add(-12*24*time.Hour) }), flow.NumberPhoneAway, false, true},
	} {
		if got := c.n.At(now); got != c.shown {
			t.Errorf("%s: it is %s, want %s", name, got, c.shown)
		}
		if got := c.n.Takes(now); got != c.takes {
			t.Errorf("%s: takes new chats: %t", name, got)
		}
		if got := c.n.Able(now); got != c.able {
			t.Errorf("%s: links to it lead somewhere: %t", name, got)
		}
		if c.shown != flow.NumberLive && c.shown != flow.NumberSyncing && c.shown.Advice() == "" {
			t.Errorf("%s: nobody is told what to do", name)
		}
	}
}

// What a number said of itself last may be old: that it is killed, drained or not run began
// later.
func TestWhenTheStateOfANumberBegan(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	said, switched, held := now.Add(-72*time.Hour), now.Add(-2*time.Hour), now.Add(time.Second)
	for name, c := range map[string]struct {
		change func(n *flow.Number)
		want   time.Time
	}{
		"live":                       {func(*flow.Number) {}, said},
		"its process is dead":        {func(n *flow.Number) { n.HeldUntil = now.Add(-time.Hour) }, now.Add(-time.Hour)},
		"nobody runs it":             {func(n *flow.Number) { n.Holder, n.HeldUntil = "", time.Time{} }, time.Time{}},
		"killed":                     {func(n *flow.Number) { n.Switch = flow.NumberKill }, switched},
		"draining":                   {func(n *flow.Number) { n.Switch = flow.NumberDrains }, switched},
		"draining, its line is away": {func(n *flow.Number) { n.Switch, n.State = flow.NumberDrains, flow.NumberConnecting }, said},
		"logged out, nobody runs it": {func(n *flow.Number) { n.State, n.Holder = flow.NumberLoggedOut, "" }, said},
	} {
		n := flow.Number{Slot: 1, Digits: "2348000000001", State: flow.NumberLive, Since: said, Switched: switched, Holder: "a", HeldUntil: held}
		if c.change(&n); !n.Began(now).Equal(c.want) {
			t.Errorf("%s: it is %s since %s, want %s", name, n.At(now), n.Began(now), c.want)
		}
	}
}

// New chats are spread by weight, evenly all along.
func TestNewChatsAreSpreadByWeight(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	number := func(digits string, weight int) flow.Number {
		return flow.Number{Digits: digits, State: flow.NumberLive, Weight: weight, Holder: "a", HeldUntil: now.Add(time.Hour)}
	}
	list, given := []flow.Number{number("1", 1), number("2", 3), number("3", 0), number("4", 2)}, map[string]int{}
	for i := range 60 {
		n, ok := flow.PickNumber(list, given, now)
		if !ok {
			t.Fatal("no number takes a new chat")
		}
		given[n.Digits]++
		if total := i + 1; total%6 == 0 && (given["1"] != total/6 || given["2"] != total/2 || given["4"] != total/3) {
			t.Fatalf("after %d they have %v", total, given)
		}
	}
	if n, ok := flow.PickNumber(list, given, now.Add(2*time.Hour)); ok {
		t.Errorf("%s takes a new chat though nobody runs it", n.Digits)
	}
}

// A number's day is Nigeria's.
func TestTheDayOfANumber(t *testing.T) {
	for at, want := range map[string]string{
		"2026-11-21T22:59:59Z": "2026-11-20T23:00:00Z", "2026-11-21T23:00:00Z": "2026-11-21T23:00:00Z",
	} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := flow.DayOf(moment).UTC().Format(time.RFC3339); got != want {
			t.Errorf("the day of %s began at %s, want %s", at, got, want)
		}
	}
}

func TestOnlySwitchesThatThereAreMove(t *testing.T) {
	for _, m := range []flow.SwitchMove{
		{Kind: flow.SwitchNumber, Name: "234", To: "drain"},
		{Kind: flow.SwitchNumber, Name: "234", To: "kill"},
		{Kind: flow.SwitchNumber, Name: "234"},
		{Kind: flow.SwitchMethod, Name: "ussd", To: "off"},
		{Kind: flow.SwitchMerchant, Name: "wsp_prj_1", To: "stopped"},
		{Kind: flow.SwitchMerchant, Name: "wsp_prj_1"},
		{Kind: flow.SwitchMoney, Name: flow.MoneyOut, To: flow.MoneyHeld},
	} {
		if err := m.Check(); err != nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for _, m := range []flow.SwitchMove{{}, {Kind: flow.SwitchNumber, To: "kill"}, {Kind: flow.SwitchNumber, Name: "234", To: "off"}, {Kind: flow.SwitchMethod, Name: "ussd", To: "kill"}, {Kind: "other", Name: "x"}} {
		if err := m.Check(); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
