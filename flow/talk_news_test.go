package flow_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
)

func TestAStrangerIsAnsweredTwiceAndAValidCodeAlways(t *testing.T) {
	turn := standing(flow.Choosing)
	turn.Chat = flow.Chat{ID: "chat_1"}
	for i, want := range []int{1, 1, 0, 0} {
		d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansMenu}))
		if len(d.Says) != want {
			t.Errorf("message %d got %d answers", i, len(d.Says))
		}
		turn.Chat = d.Chat
	}
	d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}))
	if talkOf(d).State != flow.Choosing || d.Chat.Focus != "wsp_sess_1" || len(d.Says) != 1 || d.Says[0].Key != "summary" || len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoWatch {
		t.Errorf("a valid code: %+v", d)
	}
	turn.Now = turn.Now.Add(time.Hour)
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansMenu})); len(d.Says) != 1 {
		t.Errorf("an hour later: %+v", d)
	}
}

func TestWhoGuessesCodesIsNotHeardForAnHour(t *testing.T) {
	bad, good := flow.Intent{Kind: flow.MeansCode, Code: "00000000"}, flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}
	turn := standing(flow.Choosing)
	turn.Chat = flow.Chat{ID: "chat_1"}
	for range 5 {
		d := flow.Decide(heard(turn, bad))
		if len(d.Says) != 1 || d.Says[0].Key != "code_unknown" {
			t.Fatalf("%+v", d)
		}
		turn.Chat = d.Chat
	}
	for _, in := range []flow.Intent{bad, good} {
		if d := flow.Decide(heard(turn, in)); len(d.Says)+len(d.Effects) != 0 {
			t.Errorf("%s after five guesses: %+v", in.Code, d)
		}
	}
	turn.Now = turn.Now.Add(time.Hour)
	if d := flow.Decide(heard(turn, good)); len(d.Says) != 1 || d.Says[0].Key != "summary" {
		t.Errorf("an hour later: %+v", d)
	}
	t.Run("a code that is known already does not pay for guesses", func(t *testing.T) {
		turn := standing(flow.AwaitTransfer)
		said := 0
		for i := range 12 {
			in := bad
			if i%3 == 2 {
				in = good
			}
			d := flow.Decide(heard(turn, in))
			turn.Chat = d.Chat
			if in == bad {
				said += len(d.Says)
			} else if len(d.Says) == 0 {
				t.Error("the payer's own code was not answered")
			}
		}
		if said != 5 {
			t.Errorf("%d guesses were answered", said)
		}
	})
}

func TestWhatIsNotUnderstoodIsSaidTwiceAndThenNoMore(t *testing.T) {
	for _, state := range []flow.TalkState{flow.Choosing, flow.PickingBank, flow.AwaitTransfer, flow.PartPaid, flow.Lapsed, flow.Review} {
		turn := standing(state)
		for i, want := range []bool{true, true, false, false} {
			d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansNothing}))
			if (len(d.Says) > 0) != want || talkOf(d).State != state {
				t.Errorf("%s, message %d: %+v", state, i, d)
			}
			turn.Chat = d.Chat
		}
	}
}

func TestOnlyTheChatThatPaidLearnsOfItsMoney(t *testing.T) {
	for kind, want := range map[flow.NewsKind]string{flow.NewsPaid: "paid_elsewhere", flow.NewsExtra: "", flow.NewsLate: ""} {
		state := map[flow.NewsKind]flow.TalkState{flow.NewsPaid: flow.AwaitTransfer, flow.NewsExtra: flow.Paid, flow.NewsLate: flow.Closed}[kind]
		turn := standing(state)
		turn.Chat.ID = "chat_2"
		d := flow.Decide(about(turn, flow.News{Kind: kind, Attempt: "t", Payment: &flow.Payment{Amount: 500_000}}))
		got := ""
		for _, s := range d.Says {
			got += s.Key
			for name, value := range s.Args {
				t.Errorf("another chat learns that %s is %s", name, value)
			}
		}
		if got != want {
			t.Errorf("%s: another chat is told %q", kind, got)
		}
		if kind == flow.NewsLate && talkOf(d).State != flow.Closed {
			t.Errorf("another chat stands at %s", talkOf(d).State)
		}
	}
}

func TestNewsOfAnotherMethodDoesNotEndTheWait(t *testing.T) {
	waiting := standing(flow.Opening) // for the card
	co := waiting.Checkouts["wsp_sess_1"]
	co.Attempts = append(slices.Clone(co.Attempts), trying("t", flow.BankTransfer))
	waiting.Checkouts["wsp_sess_1"] = co
	for _, kind := range []flow.NewsKind{flow.NewsOpened, flow.NewsRefused, flow.NewsSlow, flow.NewsLapsed, flow.NewsDeclined} {
		if d := flow.Decide(about(waiting, flow.News{Kind: kind, Attempt: "t"})); talkOf(d).State != flow.Opening || len(d.Says) != 0 {
			t.Errorf("%s of a transfer: %+v", kind, d)
		}
	}
	mine := map[flow.NewsKind]flow.TalkState{flow.NewsRefused: flow.Choosing, flow.NewsSlow: flow.Opening}
	for kind, want := range mine {
		if d := flow.Decide(about(waiting, flow.News{Kind: kind, Attempt: "c"})); talkOf(d).State != want || len(d.Says) != 1 {
			t.Errorf("%s of the card: %+v", kind, d)
		}
	}
	if d := flow.Decide(about(waiting, flow.News{Kind: flow.NewsRefused})); talkOf(d).State != flow.Choosing {
		t.Errorf("a method that could not be begun: %+v", d)
	}
	t.Run("unless what is waited for lapses without an answer", func(t *testing.T) {
		co := waiting.Checkouts["wsp_sess_1"]
		co.Attempts = slices.Clone(co.Attempts)
		co.Attempts[0].Status = flow.AttemptExpired
		waiting.Checkouts["wsp_sess_1"] = co
		if d := flow.Decide(about(waiting, flow.News{Kind: flow.NewsLapsed, Attempt: "c"})); talkOf(d).State != flow.Lapsed || len(d.Says) != 1 {
			t.Errorf("%+v", d)
		}
	})
}

func TestABankThatCannotDialIsNotGivenAnothersCode(t *testing.T) {
	turn := standing(flow.Opening)
	turn.Chat.Talks[0].Method, turn.Chat.Talks[0].Bank = flow.USSD, "044"
	co := turn.Checkouts["wsp_sess_1"]
	co.Attempts = []flow.Attempt{trying("u", flow.USSD)} // the rail gave a code for GTBank alone
	turn.Checkouts["wsp_sess_1"] = co
	d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "u"}))
	if talkOf(d).State != flow.Choosing || len(d.Says) != 1 || d.Says[0].Key != "method_down" {
		t.Errorf("%+v", d)
	}
}
