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

// What cannot be opened because it is not offered, as while its merchant is stopped, did
// not fail: it is offered again with the others, and not ten minutes after them.
func TestWhatIsNotOfferedForAWhileIsOfferedAgainWithTheOthers(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		turn := standing(flow.Opening) // for the card
		co := turn.Checkouts["wsp_sess_1"]
		offers := co.Offers
		if stopped {
			co.Offers = nil
			turn.Checkouts["wsp_sess_1"] = co
		}
		turn.Chat = flow.Decide(about(turn, flow.News{Kind: flow.NewsRefused, Attempt: "c"})).Chat
		co.Offers = offers
		turn.Checkouts["wsp_sess_1"] = co
		d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansMenu}))
		if len(d.Says) != 1 || d.Says[0].Args["bank_transfer"] != "yes" || (d.Says[0].Args["card"] == "yes") != stopped {
			t.Errorf("stopped %v: %+v", stopped, d.Says)
		}
	}
}

// What a payer says while another method is opened is of the one before.
func TestAClaimIsHeardWhateverIsBeingOpened(t *testing.T) {
	for _, in := range []flow.IntentKind{flow.MeansPaid, flow.MeansMedia} {
		turn := standing(flow.Opening)
		turn.Checkouts["wsp_sess_1"].Attempts[0].Instructions = trying("c", flow.Card).Instructions
		asked := flow.Decide(heard(turn, flow.Intent{Kind: in}))
		turn.Chat = asked.Chat
		d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "c"}))
		if keys(asked) != "one_moment" || talkOf(d).State != flow.Verifying || !talkOf(d).Claimed || len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoCheck {
			t.Errorf("%s: says %q, then %q, and stands at %+v", in, keys(asked), keys(d), talkOf(d))
		}
	}
}

// A part that came is told to everybody who has the link, and whose it is to
// nobody else.
func TestOnlyTheChatThatPaidAPartLearnsWhoseItIs(t *testing.T) {
	for chat, want := range map[flow.ChatID]string{"chat_1": "₦4,500", "chat_2": ""} {
		turn := standing(flow.PartPaid)
		turn.Chat.ID = chat
		co := turn.Checkouts["wsp_sess_1"]
		co.Payments = []flow.Payment{{Attempt: "t", Amount: 450_000, Match: flow.Partial}}
		turn.Checkouts["wsp_sess_1"] = co
		for _, turn := range []flow.Turn{about(turn, flow.News{Kind: flow.NewsPartial, Attempt: "t", Payment: &co.Payments[0]}), heard(turn, flow.Intent{Kind: flow.MeansMenu})} {
			if d := flow.Decide(turn); keys(d) != "part_paid" || d.Says[0].Args["paid"] != want || d.Says[0].Args["left"] != "₦500" {
				t.Errorf("%s: %+v", chat, d.Says)
			}
		}
	}
}

// A merchant may take less than was asked for: the payer's receipt is of what was paid,
// and says what was asked.
func TestAReceiptIsOfWhatWasPaid(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	co := turn.Checkouts["wsp_sess_1"]
	co.Session.Status, co.Session.AmountPaid, co.Session.PaidAt = flow.SessionPaid, 450_000, noon
	co.Payments = []flow.Payment{{Attempt: "t", Amount: 450_000, Applied: 450_000, Match: flow.Partial}}
	turn.Checkouts["wsp_sess_1"] = co
	news := flow.News{Kind: flow.NewsPaid, Attempt: "t", Payment: &co.Payments[0]}
	d := flow.Decide(about(turn, news))
	if keys(d) != "receipt" || d.Says[0].Args["amount"] != "₦4,500" || d.Says[0].Args["asked"] != "₦5,000" || d.Says[0].Args["reference"] != "7K3M-9QTX" {
		t.Errorf("%+v", d.Says)
	}
	co.Session.Reference = "order-1182" // what its merchant calls it is what the merchant is asked about
	turn.Checkouts["wsp_sess_1"] = co
	if d = flow.Decide(about(turn, news)); d.Says[0].Args["reference"] != "order-1182" {
		t.Errorf("%+v", d.Says)
	}
}

// Where nothing can be paid by, as when a merchant is stopped, no menu says to
// reply with a number.
func TestAMenuWithoutMethodsIsNotShown(t *testing.T) {
	for name, c := range map[string]struct {
		state flow.TalkState
		in    flow.Intent
		want  string
	}{
		"the menu":       {flow.Choosing, flow.Intent{Kind: flow.MeansMenu}, "not_now"},
		"what holds":     {flow.Choosing, flow.Intent{Kind: flow.MeansTerms}, "not_now"},
		"time":           {flow.Choosing, flow.Intent{Kind: flow.MeansWait}, "not_now"},
		"of a part":      {flow.PartPaid, flow.Intent{Kind: flow.MeansTerms}, "part_paid not_now"},
		"of a way":       {flow.Lapsed, flow.Intent{Kind: flow.MeansTerms}, "lapsed not_now"},
		"a method":       {flow.Choosing, flow.Intent{Kind: flow.MeansMethod, Method: flow.Card}, "not_now"},
		"not understood": {flow.Choosing, flow.Intent{Kind: flow.MeansNothing}, "not_now"},
		"part paid":      {flow.PartPaid, flow.Intent{Kind: flow.MeansMenu}, "part_paid not_now"},
		"run out":        {flow.Lapsed, flow.Intent{Kind: flow.MeansMenu}, "lapsed not_now"},
	} {
		turn := standing(c.state)
		co := turn.Checkouts["wsp_sess_1"]
		co.Offers = flow.Offers(co.Session, nil, nil, noon)
		turn.Checkouts["wsp_sess_1"] = co
		if d := flow.Decide(heard(turn, c.in)); keys(d) != c.want || d.Says[len(d.Says)-1].Args["merchant"] != "Ada Stores" {
			t.Errorf("%s: %+v", name, d.Says)
		}
	}
	turn := standing(flow.Choosing)
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansHuman})); keys(d) != "human" || d.Says[0].Args["open"] != "yes" {
		t.Errorf("to who may pay meanwhile: %+v", d.Says)
	}
	co := turn.Checkouts["wsp_sess_1"]
	co.Offers = nil
	turn.Checkouts["wsp_sess_1"] = co
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansHuman})); keys(d) != "human" || d.Says[0].Args["open"] != "" {
		t.Errorf("to who waits for a person, that they can still pay: %+v", d.Says)
	}
	turn.Chat.Talks[0].Timers.Nudge = turn.Now.UnixMilli()
	turn.News = &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(turn); len(d.Says) != 0 {
		t.Errorf("a reminder to pay: %+v", d.Says)
	}
}

// Whoever opened a link and said nothing for a day is not written to because
// somebody else pays a part.
func TestAPartOfAnotherIsNotToldToWhoSaidNothing(t *testing.T) {
	for chat, want := range map[flow.ChatID]string{"chat_1": "part_paid", "chat_2": ""} {
		turn := standing(flow.AwaitTransfer)
		turn.Chat.ID, turn.Chat.Talks[0].State = chat, flow.Closed
		if d := flow.Decide(about(turn, flow.News{Kind: flow.NewsPartial, Attempt: "t", Payment: &flow.Payment{Amount: 100_000}})); keys(d) != want {
			t.Errorf("%s: says %q", chat, keys(d))
		}
	}
}

// Support looks at a chat that is not understood until its payment is done, and at
// one that is not understood afterwards.
func TestWhoIsUnderstoodAtLastNeedsNobody(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	turn.Chat.Flag = "is not understood"
	if d := flow.Decide(about(turn, flow.News{Kind: flow.NewsPaid, Attempt: "t", Payment: &flow.Payment{Amount: 500_000}})); d.Chat.Flag != "" {
		t.Errorf("paid, and somebody should look because it %s", d.Chat.Flag)
	}
	beside := other(turn, "prj_2")
	beside.Chat.Talks = append(beside.Chat.Talks, flow.Talk{Session: "wsp_sess_2", State: flow.AwaitCard})
	beside.News, beside.About = &flow.News{Kind: flow.NewsClosed}, "wsp_sess_2"
	if d := flow.Decide(beside); d.Chat.Flag == "" {
		t.Error("the end of another payment takes the flag away")
	}
	paid := standing(flow.Paid)
	for range 3 {
		paid.Chat = flow.Decide(heard(paid, flow.Intent{Kind: flow.MeansNothing})).Chat
	}
	if paid.Chat.Flag == "" {
		t.Error("not understood after it was paid, and nobody is to look")
	}
}

// A part that comes or goes while the bank makes a page for all that was due leaves a page that
// asks for another amount: it is shown to nobody, and another is asked for.
func TestAPageForAnotherAmountIsNotShown(t *testing.T) {
	for _, paid := range []flow.Kobo{0, 200_000} {
		turn := standing(flow.Opening)
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.AmountPaid = paid
		co.Attempts = []flow.Attempt{trying("c", flow.Card)}
		turn.Checkouts["wsp_sess_1"], turn.Chat.Talks[0].Method = co, flow.Card
		d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "c"}))
		shown := slices.ContainsFunc(d.Says, func(s flow.Say) bool { return s.Key == "card_how" })
		again := slices.ContainsFunc(d.Effects, func(e flow.Effect) bool { return e.Kind == flow.DoOpen && e.Method == flow.Card })
		if shown != (paid == 0) || again == shown || (talkOf(d).State == flow.Opening) == shown {
			t.Errorf("with %d paid: %+v", paid, d)
		}
		if shown {
			continue
		}
		turn = standing(flow.AwaitCard)
		turn.Checkouts["wsp_sess_1"] = co
		d = flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansAgain}))
		if len(d.Says) != 1 || d.Says[0].Key != "part_paid" || d.Says[0].Args["amount"] != "₦3,000" || d.Says[0].Args["old"] == "" {
			t.Errorf("asked for it again: %+v", d)
		}
		d = flow.Decide(about(turn, flow.News{Kind: flow.NewsDeclined, Attempt: "c"}))
		if len(d.Says) != 1 || d.Says[0].Key != "declined" || d.Says[0].Args["amount"] != "₦5,000" {
			t.Errorf("refused: %+v", d)
		}
	}
}

// Who has a code or a page for another amount than is left is told not to use it, for as long
// as the bank takes money for it, and nobody else is.
func TestWhoHasAPageForAnotherAmountIsToldNotToUseIt(t *testing.T) {
	for name, c := range map[string]struct {
		page func(*flow.Attempt)
		old  string
	}{
		"at the page":              {func(*flow.Attempt) {}, "yes"},
		"switched away from it":    {func(a *flow.Attempt) { a.Status = flow.AttemptSuperseded }, "yes"},
		"shown by the merchant":    {func(a *flow.Attempt) { a.Chat = "" }, "yes"},
		"somebody else's":          {func(a *flow.Attempt) { a.Chat = "chat_2" }, ""},
		"it asks for what is left": {func(a *flow.Attempt) { a.Amount = 50_000 }, ""},
		"the bank refused it":      {func(a *flow.Attempt) { a.Status = flow.AttemptFailed }, ""},
		"it is not there yet":      {func(a *flow.Attempt) { a.Instructions = nil }, ""},
		"its time is over":         {func(a *flow.Attempt) { a.ExpiresAt = noon }, ""},
		"it is an account":         {func(a *flow.Attempt) { a.Method, a.Status = flow.BankTransfer, flow.AttemptSuperseded }, ""},
	} {
		turn := standing(flow.PartPaid)
		co, page := turn.Checkouts["wsp_sess_1"], trying("c", flow.Card)
		page.Chat = "chat_1"
		c.page(&page)
		co.Attempts = []flow.Attempt{page}
		turn.Checkouts["wsp_sess_1"] = co
		d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansMenu}))
		if len(d.Says) != 1 || d.Says[0].Key != "part_paid" || d.Says[0].Args["old"] != c.old {
			t.Errorf("%s: %+v", name, d.Says)
		}
	}
}

// What the bank sent back is called wrong where it was another amount than is asked for.
func TestMoneyThatWasSentBackIsCalledWrongOnlyWhereItWas(t *testing.T) {
	for amount, differs := range map[flow.Kobo]string{300_000: "yes", 500_000: ""} {
		d := flow.Decide(about(standing(flow.AwaitTransfer), flow.News{Kind: flow.NewsSentBack, Attempt: "t", Amount: amount}))
		if keys(d) != "sent_back" || d.Says[0].Args["differs"] != differs {
			t.Errorf("of %s it says %+v", amount.Naira(), d.Says)
		}
	}
}
