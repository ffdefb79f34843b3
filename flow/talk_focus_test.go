package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// beside is a turn of a chat with a second talk, which is in focus: the first
// one, in the given state, is kept for later.
func beside(state, focused flow.TalkState) flow.Turn {
	turn := standing(state)
	other := open()
	other.ID, other.Merchant, other.Amount = "wsp_sess_2", "Bola Foods", 200_000
	talk := flow.Talk{Session: other.ID, State: focused}
	a := trying("other", flow.BankTransfer)
	a.Session, a.Amount, a.Chat = other.ID, other.Amount, "chat_1"
	if focused == flow.AwaitTransfer {
		talk.Attempt, talk.Method = a.ID, flow.BankTransfer
	}
	turn.Chat.Talks = append(turn.Chat.Talks, talk)
	turn.Chat.Focus = other.ID
	turn.Checkouts[other.ID] = flow.Checkout{Session: other, Attempts: []flow.Attempt{a}, Offers: flow.Offers(other, nil, flow.Methods(), noon)}
	return turn
}

// keys are what a decision says.
func keys(d flow.Decision) string {
	var list []string
	for _, s := range d.Says {
		list = append(list, s.Key)
	}
	return strings.Join(list, " ")
}

func TestADigitAnswersTheMenuThatWasShownLast(t *testing.T) {
	for _, c := range []struct {
		news  flow.News
		from  flow.TalkState
		say   string
		focus flow.SessionID
	}{
		{flow.News{Kind: flow.NewsLapsed, Attempt: "t"}, flow.AwaitTransfer, "parked lapsed", "wsp_sess_1"},
		{flow.News{Kind: flow.NewsDeclined, Attempt: "c", Reason: "no"}, flow.AwaitCard, "parked declined", "wsp_sess_1"},
		{flow.News{Kind: flow.NewsRefused, Attempt: "c"}, flow.Opening, "parked method_down", "wsp_sess_1"},
		{flow.News{Kind: flow.NewsPartial, Attempt: "t"}, flow.AwaitTransfer, "parked part_paid", "wsp_sess_1"},
		{flow.News{Kind: flow.NewsPaid, Attempt: "t"}, flow.AwaitTransfer, "receipt", "wsp_sess_2"},
		{flow.News{Kind: flow.NewsNothing}, flow.Verifying, "nothing_yet", "wsp_sess_2"},
	} {
		t.Run(string(c.news.Kind), func(t *testing.T) {
			turn := about(beside(c.from, flow.AwaitTransfer), c.news)
			d := flow.Decide(turn)
			if keys(d) != c.say || d.Chat.Focus != c.focus {
				t.Fatalf("says %q with %s in focus", keys(d), d.Chat.Focus)
			}
			if c.focus == "wsp_sess_1" {
				args := d.Says[0].Args
				if args["merchant"] != "Ada Stores" || args["kept_merchant"] != "Bola Foods" || args["kept_amount"] != "₦2,000" {
					t.Errorf("the payer reads of %v", args)
				}
				turn.Chat, turn.News, turn.About = d.Chat, nil, ""
				back := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansBack}))
				if back.Chat.Focus != "wsp_sess_2" {
					t.Errorf("7 leads to %s", back.Chat.Focus)
				}
			}
		})
	}
	t.Run("nothing is said of a payment that was kept when nobody else is asked", func(t *testing.T) {
		turn := about(beside(flow.AwaitTransfer, flow.Paid), flow.News{Kind: flow.NewsLapsed, Attempt: "t"})
		if d := flow.Decide(turn); keys(d) != "lapsed" || d.Chat.Focus != "wsp_sess_1" {
			t.Errorf("says %q with %s in focus", keys(d), d.Chat.Focus)
		}
	})
	t.Run("instructions that come late show no menu", func(t *testing.T) {
		turn := beside(flow.Opening, flow.Choosing)
		co := turn.Checkouts["wsp_sess_1"]
		co.Attempts[0].Instructions = trying("c", flow.Card).Instructions
		if d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "c"})); keys(d) != "card_how alone" || d.Chat.Focus != "wsp_sess_2" {
			t.Errorf("says %q with %s in focus", keys(d), d.Chat.Focus)
		}
	})
	t.Run("while a person has the chat, no talk takes another's place", func(t *testing.T) {
		turn := beside(flow.AwaitTransfer, flow.AwaitTransfer)
		turn.Chat.Desk = flow.Desk{State: flow.DeskClaimed, By: "ngozi"}
		if d := flow.Decide(about(turn, flow.News{Kind: flow.NewsLapsed, Attempt: "t"})); keys(d) != "" || d.Chat.Focus != "wsp_sess_2" {
			t.Errorf("says %q with %s in focus", keys(d), d.Chat.Focus)
		}
	})
}

func TestARemindersDigitsAreReadAgainstIt(t *testing.T) {
	turn := beside(flow.AwaitTransfer, flow.Choosing)
	turn.Chat.Talks[0].Timers.Remind = turn.Now.UnixMilli()
	turn.News = &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(turn); keys(d) != "parked reminder alone" || d.Chat.Focus != "wsp_sess_1" {
		t.Errorf("says %q with %s in focus", keys(d), d.Chat.Focus)
	}
	turn = beside(flow.Choosing, flow.AwaitTransfer)
	turn.Chat.Talks[0].Timers.Nudge = turn.Now.UnixMilli()
	turn.News = &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(turn); keys(d) != "" || d.Chat.Focus != "wsp_sess_2" {
		t.Errorf("a payer who is at another payment is asked %q with %s in focus", keys(d), d.Chat.Focus)
	}
}

func TestAFloodHoldsBackNothingThatWasAskedForBefore(t *testing.T) {
	turn := standing(flow.Opening)
	turn.Chat.Flood = flow.Flood{Times: 1, To: turn.Now.Add(time.Minute).UnixMilli()}
	turn.Checkouts["wsp_sess_1"].Attempts[0].Instructions = trying("c", flow.Card).Instructions
	if d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "c"})); keys(d) != "card_how alone wait_menu" {
		t.Errorf("says %q (%s)", keys(d), d.Why)
	}
	for _, in := range intents() {
		d := flow.Decide(heard(turn, in))
		if said := keys(d); said != "" && said != "stopped" && said != "secret_typed" {
			t.Errorf("%s is answered %q in a flood", in.Kind, said)
		}
	}
}

func TestMoneyThatIsLookedAtIsNeverSaidToBeMissing(t *testing.T) {
	turn := standing(flow.Verifying)
	turn.Chat.Talks[0].From = flow.Review
	if d := flow.Decide(about(turn, flow.News{Kind: flow.NewsNothing})); keys(d) != "in_review" || talkOf(d).State != flow.Review {
		t.Errorf("says %q and stands at %s", keys(d), talkOf(d).State)
	}
}

func TestACodeIsOpenedInSilenceWhileAPersonHasTheChat(t *testing.T) {
	for _, desk := range []flow.DeskState{flow.DeskClaimed, flow.DeskDevice} {
		turn := standing(flow.Choosing)
		turn.Chat.Talks, turn.Chat.Focus, turn.Chat.Desk = nil, "", flow.Desk{State: desk, By: "ngozi", Since: 1}
		d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}))
		if keys(d) != "" || talkOf(d).State != flow.Choosing || d.Chat.Desk.State != desk || len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoWatch {
			t.Errorf("%s: %+v", desk, d)
		}
	}
}

func TestWhoSleepsOrSaidStopIsNotToldThatTheBotIsBack(t *testing.T) {
	for name, c := range map[string]struct {
		at      time.Time
		stopped bool
		want    string
	}{
		"by day":            {noon, false, "back_again summary"},
		"by day after STOP": {noon, true, ""},
		"at night":          {time.Date(2026, 3, 2, 23, 30, 0, 0, time.UTC), false, ""},
	} {
		turn := standing(flow.Choosing)
		turn.Now, turn.News = c.at, &flow.News{Kind: flow.NewsTimer}
		turn.Chat.Stopped, turn.Chat.Wrote = c.stopped, c.at.Add(-flow.DeskIdle).UnixMilli()
		turn.Chat.Desk = flow.Desk{State: flow.DeskDevice, Since: turn.Chat.Wrote, Due: c.at.UnixMilli()}
		if d := flow.Decide(turn); keys(d) != c.want || d.Chat.Desk != (flow.Desk{}) {
			t.Errorf("%s: says %q, desk %+v", name, keys(d), d.Chat.Desk)
		}
		turn.Chat.Desk = flow.Desk{State: flow.DeskWaiting, Since: c.at.Add(-flow.DeskPatience).UnixMilli(), Due: c.at.UnixMilli()}
		told := map[bool]string{true: "still_waiting"}[c.want != ""]
		if d := flow.Decide(turn); keys(d) != told || !d.Chat.Desk.Told || d.Chat.Flag == "" {
			t.Errorf("%s, still waiting: says %q, desk %+v", name, keys(d), d.Chat.Desk)
		}
	}
}

func TestWhyABankRefusedAnotherChatIsNobodysBusiness(t *testing.T) {
	for _, chat := range []flow.ChatID{"chat_1", "chat_2"} {
		turn := standing(flow.AwaitCard)
		turn.Checkouts["wsp_sess_1"].Attempts[2].Chat = chat
		d := flow.Decide(about(turn, flow.News{Kind: flow.NewsDeclined, Attempt: "c", Reason: "Not enough money."}))
		if want := map[flow.ChatID]string{"chat_1": "Not enough money"}[chat]; keys(d) != "declined" || d.Says[0].Args["reason"] != want {
			t.Errorf("%s: %+v", chat, d.Says)
		}
	}
}

func TestMoneyIsToldOfHoweverManyPaymentsCameSince(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	for i := range flow.MaxTalks + 1 {
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.ID = flow.SessionID(fmt.Sprint("wsp_sess_", i+10))
		co.Attempts = nil
		turn.Checkouts[co.Session.ID] = co
		turn.Now = turn.Now.Add(time.Minute)
		turn.ByCode = co.Session.ID
		turn.Heard = &flow.Intent{Kind: flow.MeansCode}
		turn.Chat = flow.Decide(turn).Chat
	}
	if _, known := turn.Chat.Talk("wsp_sess_1"); known {
		t.Fatal("the first payment made no room")
	}
	turn.Heard, turn.ByCode = nil, ""
	for _, c := range []struct {
		news flow.NewsKind
		of   flow.ChatID
		want string
	}{{flow.NewsPaid, "chat_1", "receipt"}, {flow.NewsLate, "chat_1", "paid_late"}, {flow.NewsPaid, "chat_2", ""}, {flow.NewsLapsed, "chat_1", ""}} {
		turn.Checkouts["wsp_sess_1"].Attempts[0].Chat = c.of
		d := flow.Decide(about(turn, flow.News{Kind: c.news, Attempt: "t"}))
		if keys(d) != c.want || len(d.Chat.Talks) > flow.MaxTalks || d.Chat.Focus != turn.Chat.Focus || !slices.ContainsFunc(d.Chat.Talks, func(t flow.Talk) bool { return t.Session == d.Chat.Focus }) {
			t.Errorf("%s of %s: says %q, %d talks", c.news, c.of, keys(d), len(d.Chat.Talks))
		}
	}
}

func TestASessionThatIsOverIsSaidToBeSoBeforeItIsSwept(t *testing.T) {
	for _, state := range flow.TalkStates() {
		if state == flow.Paid || state == flow.Review {
			continue
		}
		turn := standing(state)
		turn.Now = open().ExpiresAt
		for _, in := range intents() {
			if !ofTheTalk(in) {
				continue
			}
			d := flow.Decide(heard(turn, in))
			missed := state == flow.Closed && slices.Contains([]flow.IntentKind{flow.MeansPaid, flow.MeansMedia, flow.MeansMoney}, in.Kind) // the bank is asked
			if len(d.Effects) != 0 && !missed || len(d.Says) == 0 || d.Says[0].Key != "session_over" || len(d.Says) > 1 && in.Kind != flow.MeansMoney {
				t.Errorf("%s, %s: %+v", state, in.Kind, d)
			}
		}
	}
}

// other is a second payment of a chat, of the project that is named.
func other(turn flow.Turn, project flow.ProjectID) flow.Turn {
	s := open()
	s.ID, s.Merchant, s.Project = "wsp_sess_2", "Bola Foods", project
	turn.Checkouts[s.ID] = flow.Checkout{Session: s, Offers: flow.Offers(s, nil, flow.Methods(), noon)}
	return turn
}

// An agent speaks of the payments of one merchant: a payer who goes on to another's
// is the bot's again, or nobody could answer there.
func TestAnAgentDoesNotKeepAPayerFromAnothersPayment(t *testing.T) {
	for _, c := range []struct {
		desk    flow.DeskState
		project flow.ProjectID
		left    flow.DeskState
		says    string
	}{
		{flow.DeskClaimed, "prj_2", flow.DeskBot, "parked summary"},
		{flow.DeskClaimed, open().Project, flow.DeskClaimed, ""},
		{flow.DeskDevice, "prj_2", flow.DeskDevice, ""},
	} {
		turn := other(standing(flow.AwaitTransfer), c.project)
		turn.Chat.Desk = flow.Desk{State: c.desk, By: "ngozi", Since: 1}
		turn.ByCode, turn.Heard = "wsp_sess_2", &flow.Intent{Kind: flow.MeansCode, Code: "9C3M9QTX"}
		if d := flow.Decide(turn); keys(d) != c.says || d.Chat.Desk.State != c.left || d.Chat.Focus != "wsp_sess_2" {
			t.Errorf("%s, a link of %s: says %q, desk %+v", c.desk, c.project, keys(d), d.Chat.Desk)
		}
	}
	turn := other(standing(flow.AwaitTransfer), "prj_2")
	turn.Chat.Talks = append(turn.Chat.Talks, flow.Talk{Session: "wsp_sess_2", State: flow.Choosing})
	turn.Chat.Desk = flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: 1}
	turn.Quoted, turn.Heard = "wsp_sess_2", &flow.Intent{Kind: flow.MeansMenu}
	if d := flow.Decide(turn); keys(d) != "summary" || d.Chat.Desk.State != flow.DeskBot {
		t.Errorf("an answer to another's message: says %q, desk %+v", keys(d), d.Chat.Desk)
	}
}

// Who waits for a person and goes on to another payment is answered there by the bot, and
// waits on; who asks for one there waits about that one.
func TestAPersonIsWaitedForAboutOnePayment(t *testing.T) {
	turn := other(standing(flow.AwaitTransfer), "prj_2")
	turn.Chat = flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansHuman})).Chat
	turn.ByCode, turn.Heard = "wsp_sess_2", &flow.Intent{Kind: flow.MeansCode, Code: "9C3M9QTX"}
	d := flow.Decide(turn)
	if keys(d) != "parked summary" || d.Chat.Desk.State != flow.DeskWaiting || d.Chat.Desk.About != "wsp_sess_1" {
		t.Fatalf("says %q, desk %+v", keys(d), d.Chat.Desk)
	}
	turn.Chat, turn.ByCode = d.Chat, ""
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansMenu})); keys(d) != "summary" || d.Chat.Desk != turn.Chat.Desk {
		t.Errorf("a greeting: says %q, desk %+v", keys(d), d.Chat.Desk)
	}
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansSecret})); keys(d) != "secret_typed" || d.Says[0].Args["card"] == "" {
		t.Errorf("types a card number: says %+v", d.Says)
	}
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansHuman})); keys(d) != "human" || d.Chat.Desk.State != flow.DeskWaiting || d.Chat.Desk.About != "" || d.Says[0].Args["kept_merchant"] == "" {
		t.Errorf("asks for a person here: says %q, desk %+v", keys(d), d.Chat.Desk)
	}
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansBack})); keys(d) != "transfer_how alone wait_menu" || d.Chat.Desk.State != flow.DeskWaiting || d.Chat.Focus != "wsp_sess_1" {
		t.Errorf("goes back: says %q, desk %+v", keys(d), d.Chat.Desk)
	}
	nudged := turn
	nudged.Now, nudged.Heard, nudged.News = turn.Now.Add(16*time.Minute), nil, &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(nudged); keys(d) != "nudge" {
		t.Errorf("chose nothing: says %q, because %s", keys(d), d.Why)
	}
	nobody := turn
	nobody.Chat.Desk.Told, nobody.Chat.Desk.Due = true, turn.Now.Add(flow.DeskIdle).UnixMilli()
	nobody.Now, nobody.Heard, nobody.News = turn.Now.Add(flow.DeskIdle), nil, &flow.News{Kind: flow.NewsTimer}
	nobody.Chat.Talks[1].Timers = flow.Timers{}
	late := flow.Decide(nobody)
	if keys(late) != "" || late.Chat.Desk.About != "wsp_sess_1" || late.Chat.Desk.Due != 0 {
		t.Errorf("nobody came in two hours: says %q, desk %+v", keys(late), late.Chat.Desk)
	}
	misread := nobody
	misread.Chat, misread.News = late.Chat, nil
	for range 3 {
		misread.Chat = flow.Decide(heard(misread, flow.Intent{Kind: flow.MeansNothing})).Chat
	}
	if misread.Chat.Flag != flow.NobodyComes {
		t.Errorf("not understood at another payment: marked with %q", misread.Chat.Flag)
	}
	nobody.Chat, nobody.News = late.Chat, nil
	nobody.Chat = flow.Decide(heard(nobody, flow.Intent{Kind: flow.MeansBack})).Chat
	if d := flow.Decide(heard(nobody, flow.Intent{Kind: flow.MeansMenu})); d.Chat.Desk.Due != nobody.Now.Add(flow.DeskIdle).UnixMilli() || d.Chat.Flag == flow.NobodyComes {
		t.Errorf("and the payer is back: desk %+v, marked with %q", d.Chat.Desk, d.Chat.Flag)
	}
}

// The bot has a chat back as soon as it was given back: a payer who writes just
// before it comes does not keep it away for as long as an agent may be idle.
func TestWhoWritesAsAChatIsGivenBackHearsTheBot(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	turn.Chat.Desk = flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: 1}
	given := flow.Decide(about(turn, flow.News{Kind: flow.NewsReleased, By: "ngozi"}))
	turn.Chat = given.Chat
	wrote := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansAgain}))
	if wrote.Chat.Desk.Due != given.Chat.Desk.Due {
		t.Errorf("the bot comes at %d and not at %d", wrote.Chat.Desk.Due, given.Chat.Desk.Due)
	}
	turn.Chat, turn.News = wrote.Chat, &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(turn); d.Chat.Desk.State != flow.DeskBot || !strings.HasPrefix(keys(d), "back_again transfer_how alone") {
		t.Errorf("says %q, desk %+v", keys(d), d.Chat.Desk)
	}
}

// Whose money the bank took back waits for a person. Once that person has given the chat
// back, also without a word, there is nobody left to wait for: the payer may pay again.
func TestWhoseMoneyWasTakenBackMayPayAgainOnceTheChatIsGivenBack(t *testing.T) {
	turn := standing(flow.Choosing)
	co := turn.Checkouts["wsp_sess_1"]
	co.Session, co.Payments = co.Session.With(flow.Reversed), []flow.Payment{{Match: flow.Partial, Amount: 100_000, Reversed: 100_000}}
	turn.Checkouts["wsp_sess_1"] = co
	turn.Chat.Talks[0].State = flow.Review
	turn.Chat.Desk = flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: 1}
	turn.Chat = flow.Decide(about(turn, flow.News{Kind: flow.NewsReleased, By: "ngozi"})).Chat
	turn.News = &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(turn); d.Chat.Desk.State != flow.DeskBot || talkOf(d).State != flow.Choosing || keys(d) != "back_again summary" {
		t.Errorf("says %q, the talk is %+v, desk %+v", keys(d), talkOf(d), d.Chat.Desk)
	}
}

// A turn is kept as one of one session, and read by its merchant.
func TestOneTurnRemindsOfOnePayment(t *testing.T) {
	turn := other(standing(flow.AwaitTransfer), "prj_2")
	co := turn.Checkouts["wsp_sess_2"]
	co.Attempts = []flow.Attempt{trying("t2", flow.BankTransfer)}
	turn.Checkouts["wsp_sess_2"] = co
	turn.Chat.Talks = append(turn.Chat.Talks, flow.Talk{Session: "wsp_sess_2", State: flow.AwaitTransfer, Method: flow.BankTransfer, Attempt: "t2"})
	for i := range turn.Chat.Talks {
		turn.Chat.Talks[i].Timers.Remind = turn.Now.UnixMilli()
	}
	turn.News = &flow.News{Kind: flow.NewsTimer}
	reminded := map[flow.SessionID]bool{}
	for range 2 {
		d := flow.Decide(turn)
		merchant := turn.Checkouts[d.Chat.Focus].Session.Merchant
		for _, s := range d.Says {
			if s.Key == "reminder" && s.Args["merchant"] != merchant || s.Key == "alone" && reminded[d.Chat.Focus] {
				t.Errorf("a turn about %s says %+v", merchant, s)
			}
		}
		if !strings.Contains(keys(d), "reminder alone") || reminded[d.Chat.Focus] {
			t.Errorf("%s: says %q", merchant, keys(d))
		}
		reminded[d.Chat.Focus] = true
		turn.Chat = d.Chat
	}
	if due, more := turn.Chat.Due(); more && !due.After(turn.Now) {
		t.Errorf("still due at %v", due)
	}
}

func TestWhoCallsBeforeAnythingIsOpenIsAskedForTheCode(t *testing.T) {
	turn := standing(flow.Choosing)
	turn.Chat = flow.Chat{ID: "chat_1"}
	said := 0
	for range 5 {
		d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansCall}))
		if said += len(d.Says); len(d.Says) > 0 && keys(d) != "need_code" {
			t.Errorf("says %q", keys(d))
		}
		turn.Chat = d.Chat
	}
	if said != 2 {
		t.Errorf("%d of 5 calls were answered", said)
	}
}

// An answer to an older message that says nothing of its payment leaves the menu
// that was shown last to be answered.
func TestAnAnswerThatSpeaksOfNoPaymentMovesNothing(t *testing.T) {
	quoting := func(in flow.Intent, full int) flow.Decision {
		turn := beside(flow.AwaitTransfer, flow.Choosing)
		turn.Quoted = "wsp_sess_1"
		turn.Chat.Flood = flow.Flood{From: turn.Now.UnixMilli(), Count: full}
		return flow.Decide(heard(turn, in))
	}
	for _, kind := range []flow.IntentKind{flow.MeansStop, flow.MeansThanks, flow.MeansSecret, flow.MeansCode} {
		if d := quoting(flow.Intent{Kind: kind}, 0); d.Chat.Focus != "wsp_sess_2" || len(d.Says) == 0 {
			t.Errorf("%s: %s is in focus and %q is said", kind, d.Chat.Focus, keys(d))
		}
	}
	again := flow.Intent{Kind: flow.MeansAgain}
	if d := quoting(again, 12); keys(d) != "too_fast" || d.Chat.Focus != "wsp_sess_2" {
		t.Errorf("one too many: %s is in focus and %q is said", d.Chat.Focus, keys(d))
	}
	if d := quoting(again, 0); d.Chat.Focus != "wsp_sess_1" || !strings.HasPrefix(keys(d), "transfer_how") {
		t.Errorf("what is of the payment: %s is in focus and %q is said", d.Chat.Focus, keys(d))
	}
}
