package flow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

// banks is the USSD menu.
var banks = []flow.Bank{{Code: "058", Name: "Guaranty Trust Bank", Short: "GTBank"}, {Code: "044", Name: "Access Bank", Short: "Access"}}

// methodOf is the method whose instructions a state waits with.
var methodOf = map[flow.TalkState]flow.Method{
	flow.AwaitTransfer: flow.BankTransfer, flow.AwaitUSSD: flow.USSD, flow.AwaitCard: flow.Card,
	flow.Opening: flow.Card, flow.Verifying: flow.BankTransfer, flow.PickingBank: flow.USSD,
}

// standing is a turn of a chat whose one talk stands in a state, with the
// session and attempts that belong to it.
func standing(state flow.TalkState) flow.Turn {
	s := open()
	talk := flow.Talk{Session: s.ID, State: state, Method: methodOf[state]}
	attempts := []flow.Attempt{trying("t", flow.BankTransfer), trying("u", flow.USSD), trying("c", flow.Card)}
	switch state {
	case flow.Choosing, flow.PickingBank:
		attempts = nil
	case flow.Opening:
		attempts = attempts[2:]
		attempts[0].Instructions = nil
	case flow.AwaitTransfer, flow.AwaitCard:
		talk.Attempt = map[flow.TalkState]flow.AttemptID{flow.AwaitTransfer: "t", flow.AwaitCard: "c"}[state]
	case flow.AwaitUSSD:
		talk.Attempt, talk.Bank = "u", "058"
	case flow.Verifying:
		talk.Attempt, talk.From = "t", flow.AwaitTransfer
	case flow.PartPaid:
		s.AmountPaid, talk.Attempt, talk.Method = 450_000, "t", flow.BankTransfer
	case flow.Lapsed:
		attempts = attempts[:1]
		attempts[0].Status, talk.Attempt, talk.Method = flow.AttemptExpired, "t", flow.BankTransfer
	case flow.Paid:
		s.Status, s.AmountPaid, s.PaidAt, attempts[0].Status, talk.Attempt = flow.SessionPaid, s.Amount, noon, flow.AttemptSucceeded, "t"
	case flow.Review, flow.Closed:
		s.Status, attempts[0].Status, talk.Attempt = flow.SessionExpired, flow.AttemptExpired, "t"
	}
	for i := range attempts {
		attempts[i].Chat = "chat_1"
	}
	return flow.Turn{
		Chat: flow.Chat{ID: "chat_1", Focus: s.ID, Talks: []flow.Talk{talk}}, Banks: banks, Now: noon.Add(time.Minute),
		Checkouts: map[flow.SessionID]flow.Checkout{s.ID: {Session: s, Attempts: attempts, Offers: flow.Offers(s, attempts, flow.Methods(), noon)}},
	}
}

// heard is the turn with a payer's message.
func heard(t flow.Turn, in flow.Intent) flow.Turn {
	t.Heard = &in
	if in.Kind == flow.MeansCode && in.Code == "7K3M9QTX" {
		t.ByCode = "wsp_sess_1"
	}
	return t
}

// about is the turn with news of its session.
func about(t flow.Turn, n flow.News) flow.Turn {
	t.News, t.About = &n, "wsp_sess_1"
	return t
}

// intents are everything a payer can mean.
func intents() []flow.Intent {
	return []flow.Intent{
		{Kind: flow.MeansCode, Code: "7K3M9QTX"},
		{Kind: flow.MeansCode, Code: "00000000"},
		{Kind: flow.MeansMethod, Method: flow.BankTransfer},
		{Kind: flow.MeansMethod, Method: flow.USSD},
		{Kind: flow.MeansMethod, Method: flow.Card},
		{Kind: flow.MeansBank, Bank: "058"},
		{Kind: flow.MeansBank, Bank: "999"},
		{Kind: flow.MeansPaid},
		{Kind: flow.MeansAgain},
		{Kind: flow.MeansOther},
		{Kind: flow.MeansCancel},
		{Kind: flow.MeansConfirm},
		{Kind: flow.MeansMenu},
		{Kind: flow.MeansSecret},
		{Kind: flow.MeansMedia},
		{Kind: flow.MeansNothing},
	}
}

// news is everything that can happen to a session, about an attempt.
func news(of flow.AttemptID) []flow.News {
	paid := &flow.Payment{ID: "wsp_pay_1", Amount: 510_000, Match: flow.Excess, Channel: flow.BankTransfer}
	return []flow.News{
		{Kind: flow.NewsOpened, Attempt: of}, {Kind: flow.NewsRefused, Attempt: of}, {Kind: flow.NewsSlow, Attempt: of},
		{Kind: flow.NewsPaid, Attempt: of, Payment: paid, Extra: 10_000}, {Kind: flow.NewsPartial, Attempt: of, Payment: paid},
		{Kind: flow.NewsExtra, Attempt: of, Payment: paid}, {Kind: flow.NewsLate, Attempt: of, Payment: paid}, {Kind: flow.NewsDeclined, Attempt: of, Reason: "no"},
		{Kind: flow.NewsNothing}, {Kind: flow.NewsBankDown}, {Kind: flow.NewsLapsed, Attempt: of}, {Kind: flow.NewsClosed}, {Kind: flow.NewsCancelled},
		{Kind: flow.NewsStopped, Attempt: of},
	}
}

// attemptOf is the attempt that news for a state is about: its own.
func attemptOf(t flow.Turn) flow.AttemptID {
	co := t.Checkouts["wsp_sess_1"]
	if id := t.Chat.Talks[0].Attempt; id != "" || len(co.Attempts) == 0 {
		return id
	}
	return co.Attempts[0].ID
}

// talkOf is the talk of the one session after a decision.
func talkOf(d flow.Decision) flow.Talk {
	t, _ := d.Chat.Talk("wsp_sess_1")
	return t
}

// line prints a decision: where it leads, what is said, what is done.
func line(what string, d flow.Decision) string {
	t := talkOf(d)
	state := string(t.State)
	if t.Then != flow.ThenBack {
		state += " then " + string(t.Then)
	}
	if t.ConfirmTo != 0 {
		state += " confirm?"
	}
	var says, does []string
	for _, s := range d.Says {
		says = append(says, s.Key)
	}
	for _, e := range d.Effects {
		does = append(does, strings.TrimSpace(string(e.Kind)+" "+string(e.Method)+" "+string(e.Attempt)))
	}
	return strings.TrimRight(fmt.Sprintf("  %-24s %-28s say %-42s do %s", what, state, "["+strings.Join(says, " ")+"]", "["+strings.Join(does, ", ")+"]"), " ") + "\n"
}

func TestEveryStateAnswersEverything(t *testing.T) {
	var b strings.Builder
	for _, state := range flow.TalkStates() {
		fmt.Fprintf(&b, "%s\n", state)
		for _, in := range intents() {
			d := flow.Decide(heard(standing(state), in))
			name := strings.Join(strings.Fields(fmt.Sprint(in.Kind, " ", in.Method, " ", in.Bank, " ", in.Code)), " ")
			b.WriteString(line(name, d))
			if d.Why == "" {
				t.Errorf("%s, %s: nobody knows why", state, name)
			}
			if len(d.Says)+len(d.Effects) == 0 {
				t.Errorf("%s, %s: silence", state, name)
			}
		}
		for _, n := range news(attemptOf(standing(state))) {
			d := flow.Decide(about(standing(state), n))
			b.WriteString(line("! "+string(n.Kind), d))
			if d.Why == "" {
				t.Errorf("%s, news %s: nobody knows why", state, n.Kind)
			}
		}
	}
	golden(t, "talk_decisions.txt", b.String())
}

func TestInstructionsAreOnlyAskedForOnceAMethodOrABankIsChosen(t *testing.T) {
	for _, state := range flow.TalkStates() {
		for _, in := range intents() {
			for _, e := range flow.Decide(heard(standing(state), in)).Effects {
				chosen := in.Kind == flow.MeansMethod && in.Method != flow.USSD && e.Method == in.Method || in.Kind == flow.MeansBank && state == flow.PickingBank && e.Method == flow.USSD
				if e.Kind == flow.DoOpen && !chosen {
					t.Errorf("%s, %s opened %s", state, in.Kind, e.Method)
				}
			}
		}
	}
}

func TestTheSameDigitTwiceChangesNothing(t *testing.T) {
	for state, m := range methodOf {
		in := flow.Intent{Kind: flow.MeansMethod, Method: m}
		if state == flow.Verifying {
			continue
		}
		first := standing(state)
		d := flow.Decide(heard(first, in))
		if talkOf(d).State != state || len(d.Effects) != 0 {
			t.Errorf("%s, %s again: %s, does %v", state, m, talkOf(d).State, d.Effects)
		}
	}
	bank := flow.Decide(heard(standing(flow.AwaitUSSD), flow.Intent{Kind: flow.MeansBank, Bank: "058"}))
	if talkOf(bank).State != flow.AwaitUSSD || len(bank.Effects) != 0 || len(bank.Says) == 0 || bank.Says[0].Key != "ussd_how" {
		t.Errorf("the same bank again: %+v", bank)
	}
}

func TestOnlyTheWordCancelsAndOnlyWhileItIsAskedFor(t *testing.T) {
	cancel, confirm := flow.Intent{Kind: flow.MeansCancel}, flow.Intent{Kind: flow.MeansConfirm}
	cancels := func(d flow.Decision) bool {
		return talkOf(d).Then == flow.ThenCancel || slices.ContainsFunc(d.Effects, func(e flow.Effect) bool { return e.Kind == flow.DoCancel })
	}
	for _, state := range []flow.TalkState{flow.Choosing, flow.PickingBank, flow.AwaitTransfer, flow.AwaitUSSD, flow.AwaitCard, flow.PartPaid, flow.Lapsed} {
		asked := flow.Decide(heard(standing(state), cancel))
		if cancels(asked) || asked.Says[0].Key != "cancel_confirm" {
			t.Errorf("%s: asking did %+v", state, asked)
		}
		after := standing(state)
		after.Chat = asked.Chat
		if d := flow.Decide(heard(after, confirm)); !cancels(d) {
			t.Errorf("%s: CANCEL did %+v", state, d)
		}
		late := after
		late.Now = after.Now.Add(flow.CancelConfirm)
		if d := flow.Decide(heard(late, confirm)); cancels(d) {
			t.Errorf("%s: CANCEL after two minutes cancelled", state)
		}
		for _, in := range intents() {
			if in.Kind == flow.MeansConfirm || in.Kind == flow.MeansCancel {
				continue
			}
			d := flow.Decide(heard(after, in))
			then := after
			then.Chat = d.Chat
			if cancels(d) || talkOf(d).ConfirmTo != 0 || cancels(flow.Decide(heard(then, confirm))) {
				t.Errorf("%s: after %s, CANCEL still cancels", state, in.Kind)
			}
		}
	}
}

func TestWhatAPayerWantsWaitsForTheBanksAnswer(t *testing.T) {
	other := flow.Intent{Kind: flow.MeansOther}
	for _, c := range []struct {
		name   string
		in     flow.Intent
		answer flow.NewsKind
		state  flow.TalkState
		do     string
	}{
		{"another way, and no money came", other, flow.NewsNothing, flow.Choosing, "supersede"},
		{"another way, and the bank is down", other, flow.NewsBankDown, flow.AwaitTransfer, ""},
		{"another way, and money came", other, flow.NewsPaid, flow.Paid, ""},
		{"card instead, and no money came", flow.Intent{Kind: flow.MeansMethod, Method: flow.Card}, flow.NewsNothing, flow.Opening, "supersede open"},
		{"USSD instead, and no money came", flow.Intent{Kind: flow.MeansMethod, Method: flow.USSD}, flow.NewsNothing, flow.PickingBank, "supersede"},
		{"card instead, and the bank is down", flow.Intent{Kind: flow.MeansMethod, Method: flow.Card}, flow.NewsBankDown, flow.AwaitTransfer, ""},
		{"card instead, and a part came", flow.Intent{Kind: flow.MeansMethod, Method: flow.Card}, flow.NewsPartial, flow.PartPaid, ""},
		{"says paid, and no money came", flow.Intent{Kind: flow.MeansPaid}, flow.NewsNothing, flow.AwaitTransfer, ""},
		{"a picture, and no money came", flow.Intent{Kind: flow.MeansMedia}, flow.NewsNothing, flow.AwaitTransfer, ""},
		{"says paid, and money came", flow.Intent{Kind: flow.MeansPaid}, flow.NewsPaid, flow.Paid, ""},
		{"says paid, and the session is over", flow.Intent{Kind: flow.MeansPaid}, flow.NewsClosed, flow.Closed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := standing(flow.AwaitTransfer)
			asked := flow.Decide(heard(turn, c.in))
			if talkOf(asked).State != flow.Verifying || len(asked.Effects) != 1 || asked.Effects[0].Kind != flow.DoCheck {
				t.Fatalf("the bank is not asked first: %+v", asked)
			}
			turn.Chat = asked.Chat
			d := flow.Decide(about(turn, flow.News{Kind: c.answer, Attempt: "t"}))
			var does []string
			for _, e := range d.Effects {
				does = append(does, string(e.Kind))
				if e.Kind == flow.DoSupersede && e.Attempt != "t" {
					t.Errorf("superseded %s", e.Attempt)
				}
			}
			after := talkOf(d)
			if after.State != c.state || strings.Join(does, " ") != c.do || after.Then != flow.ThenBack || after.From != "" {
				t.Errorf("%+v does %v", after, does)
			}
			if after.State == flow.AwaitTransfer && after.Method != flow.BankTransfer {
				t.Errorf("waits for a transfer, and thinks of %s", after.Method)
			}
			if len(d.Says) == 0 && !slices.Contains(does, "open") { // instructions speak for themselves when they come
				t.Error("the payer is left without an answer")
			}
		})
	}
}

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

func TestWhatMustBeCopiedStandsAlone(t *testing.T) {
	for state, want := range map[flow.TalkState]string{flow.AwaitTransfer: "9012345678", flow.AwaitUSSD: "*737*123#", flow.AwaitCard: "https://rail.example/c/1"} {
		d := flow.Decide(heard(standing(state), flow.Intent{Kind: flow.MeansAgain}))
		if len(d.Says) != 3 || d.Says[1].Key != "alone" || d.Says[1].Args["text"] != want || d.Says[2].Key != "wait_menu" || len(d.Effects) != 0 {
			t.Errorf("%s: %+v", state, d.Says)
		}
		if first := d.Says[0].Args; first["merchant"] != "Ada Stores" || first["amount"] != "₦5,000" || first["until"] == "" {
			t.Errorf("%s: %+v", state, first)
		}
	}
}

func TestAChatRemembersABoundedNumberOfTalks(t *testing.T) {
	turn := standing(flow.Choosing)
	turn.Chat.Talks = nil
	for i := range flow.MaxTalks + 5 {
		s := open()
		s.ID = flow.SessionID(fmt.Sprintf("wsp_sess_%02d", i))
		turn.ByCode, turn.Checkouts = s.ID, map[flow.SessionID]flow.Checkout{s.ID: {Session: s}}
		turn.Heard = &flow.Intent{Kind: flow.MeansCode}
		turn.Chat = flow.Decide(turn).Chat
		if i == 3 {
			turn.Chat.Talks[2].State = flow.Closed
		}
	}
	if len(turn.Chat.Talks) != flow.MaxTalks || turn.Chat.Focus != "wsp_sess_24" {
		t.Fatalf("%d talks, focus %s", len(turn.Chat.Talks), turn.Chat.Focus)
	}
	if _, kept := turn.Chat.Talk("wsp_sess_02"); kept {
		t.Error("what was over did not go first")
	}
}

// anything is a random turn of a random chat.
func anything(t *rapid.T) flow.Turn {
	turn := standing(rapid.SampledFrom(flow.TalkStates()).Draw(t, "state"))
	talk := &turn.Chat.Talks[0]
	talk.Then = rapid.SampledFrom([]flow.Then{flow.ThenBack, flow.ThenChoose, flow.ThenOpen, flow.ThenCancel}).Draw(t, "then")
	talk.From = rapid.SampledFrom(flow.TalkStates()).Draw(t, "from")
	talk.Method = rapid.SampledFrom(flow.Methods()).Draw(t, "method")
	talk.Attempt = rapid.SampledFrom([]flow.AttemptID{"", "t", "u", "c", "x"}).Draw(t, "attempt")
	talk.ConfirmTo = rapid.SampledFrom([]int64{0, turn.Now.UnixMilli() - 1, turn.Now.UnixMilli() + 1}).Draw(t, "confirm")
	talk.Unknown = rapid.IntRange(0, 3).Draw(t, "unknown")
	if rapid.Bool().Draw(t, "no focus") {
		turn.Chat.Focus = ""
	}
	if rapid.IntRange(0, 9).Draw(t, "nothing known") == 0 {
		turn.Checkouts = nil
	}
	turn.Chat.BadCodes, turn.Chat.Strangers = rapid.IntRange(0, 5).Draw(t, "bad codes"), rapid.IntRange(0, 2).Draw(t, "strangers")
	if rapid.Bool().Draw(t, "heard") {
		return heard(turn, rapid.SampledFrom(intents()).Draw(t, "intent"))
	}
	return about(turn, rapid.SampledFrom(news(rapid.SampledFrom([]flow.AttemptID{"", "t", "u", "c", "x"}).Draw(t, "of"))).Draw(t, "news"))
}

func TestWhateverIsSaidOrHappensADecisionIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := anything(t)
		before, err := json.Marshal(turn)
		if err != nil {
			t.Fatal(err)
		}
		d := flow.Decide(turn)
		if again := flow.Decide(turn); !reflect.DeepEqual(d, again) {
			t.Fatalf("the same turn came to\n%+v\nand\n%+v", d, again)
		}
		opens := 0
		for i, e := range d.Effects {
			if e.Kind != flow.DoOpen {
				continue
			}
			opens++
			chosen := turn.Heard != nil && (turn.Heard.Kind == flow.MeansMethod || turn.Heard.Kind == flow.MeansBank) ||
				turn.News != nil && turn.News.Kind == flow.NewsNothing && turn.Chat.Talks[0].Then == flow.ThenOpen
			if !chosen || talkOf(d).State != flow.Opening || talkOf(d).Method != e.Method {
				t.Fatalf("effect %d opens %s: %+v", i, e.Method, d)
			}
		}
		if opens > 1 {
			t.Fatalf("opens %d times", opens)
		}
		after := talkOf(d)
		if turn.Heard != nil && after.State == flow.Paid && turn.Chat.Talks[0].State != flow.Paid {
			t.Fatalf("a payer's word paid: %+v", d)
		}
		if turn.Chat.Talks[0].State == flow.Paid && after.State != flow.Paid {
			t.Fatalf("paid was left for %s", after.State)
		}
		if after.State == flow.Opening && turn.Chat.Talks[0].State != flow.Opening && opens == 0 {
			t.Fatalf("waits for instructions that nobody asked for: %+v", d)
		}
		if after.State == flow.Verifying && turn.Chat.Talks[0].State != flow.Verifying && (len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoCheck) {
			t.Fatalf("waits for a bank that nobody asked: %+v", d)
		}
		for i := range d.Chat.Talks { // whoever gets a decision may write into it
			d.Chat.Talks[i].State = "scribble"
		}
		for _, s := range d.Says {
			for k := range s.Args {
				s.Args[k] = "scribble"
			}
		}
		if now, err := json.Marshal(turn); err != nil || string(now) != string(before) {
			t.Fatalf("the turn was changed (%v):\n%s\n%s", err, before, now)
		}
	})
}
