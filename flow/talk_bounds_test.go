package flow_test

import (
	"strings"
	"testing"
	"time"

	"till/flow"
)

// A payer is reminded of a session twice at most, and never of one that is over, though
// its timer was set before that was known.
func TestAReminderThatCameTooLateIsNotSaid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*flow.Turn)
		want   string
	}{
		"in time": {func(*flow.Turn) {}, "reminder alone"},
		"a third": {func(turn *flow.Turn) { turn.Chat.Talks[0].Reminded = 2 }, ""},
		"over by the clock": {func(turn *flow.Turn) {
			co := turn.Checkouts["wsp_sess_1"]
			co.Session.ExpiresAt = turn.Now
			turn.Checkouts["wsp_sess_1"] = co
		}, ""},
		"ended": {func(turn *flow.Turn) {
			co := turn.Checkouts["wsp_sess_1"]
			co.Session.Status = flow.SessionCancelled
			turn.Checkouts["wsp_sess_1"] = co
		}, ""},
		"chosen meanwhile": {func(turn *flow.Turn) {
			turn.Chat.Talks[0].Timers = flow.Timers{Nudge: turn.Now.UnixMilli()}
		}, ""},
		"at night, of whoever wrote just now":    {func(turn *flow.Turn) { atNight(turn, -time.Minute) }, "reminder alone"},
		"at night":                               {func(turn *flow.Turn) { atNight(turn, -time.Hour) }, ""},
		"at night, after the clock was set back": {func(turn *flow.Turn) { atNight(turn, 3*time.Hour) }, ""},
	} {
		turn := standing(flow.AwaitTransfer)
		turn.Chat.Talks[0].Timers.Remind = turn.Now.UnixMilli()
		turn.News = &flow.News{Kind: flow.NewsTimer}
		c.change(&turn)
		if d := flow.Decide(turn); keys(d) != c.want || talkOf(d).Timers.Remind != 0 || talkOf(d).Timers.Nudge != 0 {
			t.Errorf("%s: says %q (%s), timers %+v", name, keys(d), d.Why, talkOf(d).Timers)
		}
	}
}

// atNight has a turn come at night, and its payer have written some time from then.
func atNight(turn *flow.Turn, wrote time.Duration) {
	co := turn.Checkouts["wsp_sess_1"]
	turn.Now = time.Date(2026, 3, 2, 23, 30, 0, 0, time.UTC)
	co.Session.ExpiresAt = turn.Now.Add(time.Hour)
	for i := range co.Attempts {
		co.Attempts[i].ExpiresAt = turn.Now.Add(5 * time.Minute)
	}
	turn.Checkouts["wsp_sess_1"] = co
	turn.Chat.Talks[0].Timers.Remind, turn.Chat.Wrote = turn.Now.UnixMilli(), turn.Now.Add(wrote).UnixMilli()
}

// Whoever floods the chat over and over is shown to supporters, and each time is quiet
// for longer.
func TestWhoFloodsOverAndOverIsShownToSupporters(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	var last time.Duration
	for times := 1; times <= 5; times++ {
		for turn.Chat.Flood.Times < times {
			d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansThanks}))
			turn.Chat = d.Chat
		}
		quiet := time.UnixMilli(turn.Chat.Flood.To).Sub(turn.Now)
		if quiet <= last {
			t.Errorf("flood %d is quiet for %s, the one before for %s", times, quiet, last)
		}
		if flagged := strings.Contains(turn.Chat.Flag, "flood"); flagged != (times == 5) {
			t.Errorf("after %d floods the flag is %q", times, turn.Chat.Flag)
		}
		last, turn.Now = quiet, time.UnixMilli(turn.Chat.Flood.To)
	}
}

// Whoever only opened the link of what others paid a part of does not end it, also where
// they were asked for the word before that money came.
func TestTheWordDoesNotCancelWhatOthersPaidMeanwhile(t *testing.T) {
	turn := standing(flow.Choosing)
	turn.Chat.Talks[0].ConfirmTo = turn.Now.Add(time.Minute).UnixMilli()
	confirm := flow.Intent{Kind: flow.MeansConfirm}
	if d := flow.Decide(heard(turn, confirm)); len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoCancel {
		t.Fatalf("says %q, does %+v", keys(d), d.Effects)
	}
	co := turn.Checkouts["wsp_sess_1"]
	co.Session.AmountPaid = 200_000
	co.Attempts = []flow.Attempt{trying("t", flow.BankTransfer)}
	co.Attempts[0].Chat = "chat_2"
	co.Payments = []flow.Payment{{ID: "p", Session: co.Session.ID, Attempt: "t", Match: flow.Partial, Amount: 200_000, Unapplied: 200_000}}
	turn.Checkouts["wsp_sess_1"] = co
	if d := flow.Decide(heard(turn, confirm)); keys(d) != "not_yours" || len(d.Effects) != 0 {
		t.Errorf("says %q (%s), does %+v", keys(d), d.Why, d.Effects)
	}
}

// A clock that was set back by days keeps nobody waiting for days: what was to hold for
// minutes, or for an hour, was told by another clock then.
func TestNoBoundOfAChatHoldsForAsLongAsTheClockWasSetBack(t *testing.T) {
	ahead := standing(flow.Choosing).Now.Add(3 * 24 * time.Hour)
	back := func(turn flow.Turn, c flow.Chat) flow.Turn {
		turn.Chat = c
		return turn
	}
	t.Run("codes open again", func(t *testing.T) {
		turn := standing(flow.Choosing)
		turn.Chat = flow.Chat{ID: "chat_1"}
		wrong := heard(turn, flow.Intent{Kind: flow.MeansCode, Code: "00000000"})
		for wrong.Now = ahead; wrong.Chat.DeafTo == 0; {
			wrong.Chat = flow.Decide(wrong).Chat
		}
		if d := flow.Decide(heard(back(turn, wrong.Chat), flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"})); keys(d) != "summary" {
			t.Errorf("a code that is right is answered with %q: %s", keys(d), d.Why)
		}
	})
	t.Run("who has no session is asked for the code", func(t *testing.T) {
		turn := heard(standing(flow.Choosing), flow.Intent{Kind: flow.MeansThanks})
		turn.Chat = flow.Chat{ID: "chat_1"}
		strange := turn
		for strange.Now = ahead; strange.Chat.QuietTo == 0; {
			strange.Chat = flow.Decide(strange).Chat
		}
		if d := flow.Decide(back(turn, strange.Chat)); keys(d) != "need_code" {
			t.Errorf("a stranger is answered with %q", keys(d))
		}
	})
	t.Run("it can be cancelled", func(t *testing.T) {
		turn := heard(standing(flow.Choosing), flow.Intent{Kind: flow.MeansCancel})
		asks := turn
		asks.Now = turn.Now.Add(3 * time.Hour)
		d := flow.Decide(heard(back(turn, flow.Decide(asks).Chat), flow.Intent{Kind: flow.MeansConfirm}))
		if keys(d) != "cancel_confirm" {
			t.Fatalf("CANCEL is answered with %q: %s", keys(d), d.Why)
		}
		turn.Now = turn.Now.Add(10 * time.Second)
		d = flow.Decide(heard(back(turn, d.Chat), flow.Intent{Kind: flow.MeansConfirm}))
		if len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoCancel {
			t.Errorf("and once more it does %+v", d.Effects)
		}
	})
	t.Run("what is not understood or not text is answered, and a method is offered", func(t *testing.T) {
		turn := standing(flow.Choosing)
		until := ahead.UnixMilli()
		turn.Chat.UnreadTo = until
		talk := &turn.Chat.Talks[0]
		talk.Unknown, talk.HushTo, talk.Down, talk.DownTo = 5, until, flow.Card, until
		if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansUnread})); keys(d) != "only_text summary" || d.Says[1].Args["card"] == "" {
			t.Errorf("a voice note is answered with %+v", d.Says)
		}
		if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansNothing})); keys(d) != "not_understood_choose" {
			t.Errorf("what is not understood is answered with %q", keys(d))
		}
	})
}

// After an outage all that was written meanwhile comes in one second: whoever wrote now
// and then is answered, and who wrote too much in a minute of it is not.
func TestWhatWasWrittenInHoursIsNoFlood(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		want  string
	}{
		"a message each five minutes": {5 * time.Minute, "transfer_how alone wait_menu"},
		"a message each second":       {time.Second, ""},
		"no word of when":             {0, ""},
	} {
		turn := standing(flow.AwaitTransfer)
		var d flow.Decision
		for i := range 20 {
			if c.every > 0 {
				turn.Wrote = turn.Now.Add(-3 * time.Hour).Add(time.Duration(i) * c.every).UnixMilli()
			}
			d = flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansAgain}))
			turn.Chat = d.Chat
		}
		if keys(d) != c.want {
			t.Errorf("%s: the last one is answered %q", name, keys(d))
		}
	}
}

// Who names their bank where a way to pay is asked for is asked about the way they most
// likely mean: a transfer, or USSD where its code ran out. The digit of a menu that was not
// shown says nothing.
func TestWhoNamesABankIsAskedAboutAWayToPay(t *testing.T) {
	for state, used := range map[flow.TalkState]flow.Method{flow.Choosing: "", flow.PartPaid: flow.BankTransfer, flow.Lapsed: flow.USSD} {
		turn, want := standing(state), flow.BankTransfer
		turn.Chat.Talks[0].Method = used
		if used == flow.USSD {
			want = flow.USSD
		}
		if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansBank, Bank: "058"})); (keys(d) == "did_you_mean") != (used == flow.USSD) {
			t.Errorf("%s: says %q to a digit", state, keys(d))
		}
		if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansBank, Bank: "058", Named: true})); keys(d) != "did_you_mean" || talkOf(d).Guess != want || len(d.Effects) != 0 {
			t.Errorf("%s: says %q about %q, does %v", state, keys(d), talkOf(d).Guess, d.Effects)
		}
	}
}

// Who said that they have paid, or that money is missing, and asks on is not shown what to
// pay as though they had not: not until a part of it came, or they chose to pay anew.
func TestWhoAsksOnAfterPayingIsNotAskedToPay(t *testing.T) {
	for _, kind := range []flow.IntentKind{flow.MeansPaid, flow.MeansMoney, flow.MeansMedia} {
		turn := standing(flow.AwaitTransfer)
		turn.Chat = flow.Decide(heard(turn, flow.Intent{Kind: kind})).Chat
		turn.Chat = flow.Decide(about(turn, flow.News{Kind: flow.NewsNothing})).Chat
		hello := flow.Intent{Kind: flow.MeansMenu}
		d := flow.Decide(heard(turn, hello))
		if keys(d) != "nothing_yet wait_menu" || len(d.Effects) != 0 {
			t.Errorf("%s: says %q, does %v", kind, keys(d), d.Effects)
		}
		part := turn
		part.Chat = flow.Decide(about(part, flow.News{Kind: flow.NewsPartial, Attempt: "t"})).Chat
		if d := flow.Decide(heard(part, hello)); keys(d) != "part_paid" {
			t.Errorf("%s, and a part came: says %q", kind, keys(d))
		}
		part.Chat = flow.Decide(heard(part, flow.Intent{Kind: flow.MeansPaid})).Chat
		part.Chat = flow.Decide(about(part, flow.News{Kind: flow.NewsNothing})).Chat
		if d := flow.Decide(heard(part, hello)); keys(d) != "nothing_yet wait_menu" {
			t.Errorf("%s, and the rest too: says %q", kind, keys(d))
		}
		anew := turn
		anew.Chat = flow.Decide(heard(anew, flow.Intent{Kind: flow.MeansMethod, Method: flow.Card})).Chat
		anew.Chat = flow.Decide(about(anew, flow.News{Kind: flow.NewsNothing})).Chat
		anew.Chat = flow.Decide(about(anew, flow.News{Kind: flow.NewsOpened, Attempt: "c"})).Chat
		if d := flow.Decide(heard(anew, hello)); keys(d) != "card_how alone wait_menu" {
			t.Errorf("%s, and chose a card: says %q", kind, keys(d))
		}
	}
}

// Of a payment that is over, what its money came to is told to who had opened it before:
// whoever else has its code, as of an account that a merchant showed, learns that it is over.
func TestACodeThatIsOverTellsNobodyElseOfItsMoney(t *testing.T) {
	for status, want := range map[flow.SessionStatus]struct{ known, stranger string }{
		flow.SessionExpired:    {"session_over paid_late", "session_over"},
		flow.SessionPaid:       {"paid_elsewhere paid_late", "paid_elsewhere"},
		flow.SessionProcessing: {"on_the_way", "session_over"},
	} {
		turn := standing(flow.Closed)
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.Status, co.Attempts = status, co.Attempts[:1]
		co.Attempts[0].Chat = ""
		co.Payments = []flow.Payment{{ID: "wsp_pay_1", Attempt: "t", Match: flow.Late, Amount: 500_000, Unapplied: 500_000}}
		turn.Checkouts["wsp_sess_1"], turn.Now = co, co.Session.ExpiresAt
		code := flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}
		if got := keys(flow.Decide(heard(turn, code))); got != want.known {
			t.Errorf("%s: who had opened it is told %q", status, got)
		}
		turn.Chat.Talks, turn.Chat.Focus = nil, ""
		if got := keys(flow.Decide(heard(turn, code))); got != want.stranger {
			t.Errorf("%s: a stranger is told %q", status, got)
		}
	}
}
