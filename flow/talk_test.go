package flow_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
		{Kind: flow.MeansBank, Bank: "999", Named: true},
		{Kind: flow.MeansPaid},
		{Kind: flow.MeansAgain},
		{Kind: flow.MeansOther},
		{Kind: flow.MeansCancel},
		{Kind: flow.MeansConfirm},
		{Kind: flow.MeansMenu},
		{Kind: flow.MeansSecret},
		{Kind: flow.MeansMedia},
		{Kind: flow.MeansStop},
		{Kind: flow.MeansResume},
		{Kind: flow.MeansHuman},
		{Kind: flow.MeansLanguage},
		{Kind: flow.MeansLanguage, Lang: flow.Hausa},
		{Kind: flow.MeansBack},
		{Kind: flow.MeansReceipt},
		{Kind: flow.MeansWho},
		{Kind: flow.MeansMoney},
		{Kind: flow.MeansMaybe, Method: flow.Card},
		{Kind: flow.MeansYes},
		{Kind: flow.MeansNo},
		{Kind: flow.MeansThanks},
		{Kind: flow.MeansWait},
		{Kind: flow.MeansTerms},
		{Kind: flow.MeansAbuse},
		{Kind: flow.MeansUnread},
		{Kind: flow.MeansCall},
		{Kind: flow.MeansNote},
		{Kind: flow.MeansTakeover},
		{Kind: flow.MeansNothing},
	}
}

// news is everything that can happen to a session, about an attempt.
func news(of flow.AttemptID) []flow.News {
	paid := &flow.Payment{ID: "wsp_pay_1", Amount: 510_000, Match: flow.Excess, Channel: flow.BankTransfer}
	return []flow.News{
		{Kind: flow.NewsOpened, Attempt: of},
		{Kind: flow.NewsRefused, Attempt: of},
		{Kind: flow.NewsSlow, Attempt: of},
		{Kind: flow.NewsPaid, Attempt: of, Payment: paid, Extra: 10_000},
		{Kind: flow.NewsPartial, Attempt: of, Payment: paid},
		{Kind: flow.NewsExtra, Attempt: of, Payment: paid},
		{Kind: flow.NewsLate, Attempt: of, Payment: paid},
		{Kind: flow.NewsDeclined, Attempt: of, Reason: "no"},
		{Kind: flow.NewsNothing},
		{Kind: flow.NewsBankDown},
		{Kind: flow.NewsLapsed, Attempt: of},
		{Kind: flow.NewsClosed},
		{Kind: flow.NewsCancelled},
		{Kind: flow.NewsStopped, Attempt: of},
		{Kind: flow.NewsComing},
		{Kind: flow.NewsSentBack, Attempt: of, Amount: 300_000},
		{Kind: flow.NewsReversed, Attempt: of},
		{Kind: flow.NewsTooLittle, Attempt: of, Payment: paid, Amount: 300_000},
		{Kind: flow.NewsReturning, Attempt: of, Payment: paid, Amount: 10_000},
		{Kind: flow.NewsRefunded, Attempt: of, Payment: paid, Amount: 10_000},
		{Kind: flow.NewsByHand, Attempt: of, Payment: paid, Amount: 10_000},
		{Kind: flow.NewsBounced, Attempt: of, Payment: paid, Amount: 10_000},
		{Kind: flow.NewsUnsent, Attempt: of, Payment: paid, Amount: 10_000},
		{Kind: flow.NewsKept, Attempt: of, Payment: paid, Amount: 10_000},
		{Kind: flow.NewsTimer},
		{Kind: flow.NewsClaimed, By: "ngozi"},
		{Kind: flow.NewsReply, By: "ngozi", Reason: "Good day."},
		{Kind: flow.NewsReleased, By: "ngozi"},
		{Kind: flow.NewsAgain, By: "ngozi"},
		{Kind: flow.NewsMuted},
		{Kind: flow.NewsUnmuted},
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

func TestGoldenAnswersInEveryStateOfATalk(t *testing.T) {
	var b strings.Builder
	for _, state := range flow.TalkStates() {
		fmt.Fprintf(&b, "%s\n", state)
		for _, in := range intents() {
			d := flow.Decide(heard(standing(state), in))
			name := strings.Join(strings.Fields(fmt.Sprint(in.Kind, " ", in.Method, " ", in.Bank, " ", in.Code, " ", in.Lang)), " ")
			b.WriteString(line(name, d))
			if d.Why == "" {
				t.Errorf("%s, %s: nobody knows why", state, name)
			}
			if len(d.Says)+len(d.Effects) == 0 && in.Kind != flow.MeansNote && in.Kind != flow.MeansTakeover {
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
		for _, in := range []flow.Intent{{Kind: flow.MeansYes}, {Kind: flow.MeansPaid, Guess: true}} { // "yes", "confirm"
			d, then := flow.Decide(heard(after, in)), after
			then.Chat, then.Now = d.Chat, then.Now.Add(time.Minute) // else it was written before the question could be read
			if cancels(d) || keys(d) != "cancel_confirm" || !cancels(flow.Decide(heard(then, confirm))) {
				t.Errorf("%s: after %s says %q, and CANCEL then does not cancel", state, in.Kind, keys(d))
			}
		}
		for _, in := range intents() {
			if slices.Contains([]flow.IntentKind{flow.MeansConfirm, flow.MeansCancel, flow.MeansYes, flow.MeansNote, flow.MeansTakeover}, in.Kind) {
				continue // yes is asked for the word again; the last two are not said by the payer to us
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
		turn.Now = turn.Now.Add(time.Minute)
		turn.Chat = flow.Decide(turn).Chat
		if i == 12 {
			turn.Chat.Talks[10].State = flow.Closed
		}
	}
	if len(turn.Chat.Talks) != flow.MaxTalks || turn.Chat.Focus != "wsp_sess_24" {
		t.Fatalf("%d talks, focus %s", len(turn.Chat.Talks), turn.Chat.Focus)
	}
	for id, want := range map[flow.SessionID]bool{"wsp_sess_03": false, "wsp_sess_04": true, "wsp_sess_10": false} {
		if _, kept := turn.Chat.Talk(id); kept != want {
			t.Errorf("what was over goes first, then the oldest: %s is kept: %v", id, kept)
		}
	}
}

func TestInstructionsThatAreOverAreNotShownAndNewOnesCanBeHad(t *testing.T) {
	for _, state := range []flow.TalkState{flow.AwaitTransfer, flow.AwaitUSSD, flow.AwaitCard} {
		unswept, switched := standing(state), standing(state)
		unswept.Now = noon.Add(30 * time.Minute)
		for i := range switched.Checkouts["wsp_sess_1"].Attempts {
			a := &switched.Checkouts["wsp_sess_1"].Attempts[i]
			a.Status, a.Amount = flow.AttemptSuperseded, a.Amount+100
		}
		for name, turn := range map[string]flow.Turn{"not swept yet": unswept, "of another amount, which was replaced": switched} {
			said := "lapsed"
			if state != flow.AwaitTransfer && turn.Now.Before(noon.Add(30*time.Minute)) { // the bank takes money for it
				said = "part_paid"
			}
			d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansAgain}))
			if len(d.Says) != 1 || d.Says[0].Key != said || talkOf(d).State != flow.Lapsed {
				t.Errorf("%s, %s: %+v", state, name, d)
			}
			after := turn
			after.Chat = d.Chat
			if swept := flow.Decide(about(after, flow.News{Kind: flow.NewsLapsed, Attempt: attemptOf(turn)})); len(swept.Says) != 0 {
				t.Errorf("%s, %s: said twice that it is over", state, name)
			}
			want := map[flow.TalkState]flow.TalkState{flow.AwaitUSSD: flow.PickingBank}[state]
			if want == "" {
				want = flow.Opening
			}
			for _, at := range []flow.Turn{turn, after} {
				if d := flow.Decide(heard(at, flow.Intent{Kind: flow.MeansMethod, Method: methodOf[state]})); talkOf(d).State != want {
					t.Errorf("%s, %s: asked for new ones it goes to %s", state, name, talkOf(d).State)
				}
			}
		}
	}
}

// What another chat asked for stands in the place of this one's in the session's
// list; the bank takes the money of both, and this chat knows of its own alone.
func TestInstructionsThatAnotherChatReplacedAreStillShown(t *testing.T) {
	for _, state := range []flow.TalkState{flow.AwaitTransfer, flow.AwaitUSSD, flow.AwaitCard} {
		turn := standing(state)
		before := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansAgain}))
		for i := range turn.Checkouts["wsp_sess_1"].Attempts {
			turn.Checkouts["wsp_sess_1"].Attempts[i].Status = flow.AttemptSuperseded
		}
		if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansAgain})); talkOf(d).State != state || !reflect.DeepEqual(d.Says, before.Says) {
			t.Errorf("%s: %+v", state, d)
		}
	}
}

// A chat that chose what the bank just makes for another one waits for that, is shown
// nothing of it, and asks for its own then.
func TestAChatIsShownNoInstructionsOfAnother(t *testing.T) {
	turn := standing(flow.Opening)
	co := turn.Checkouts["wsp_sess_1"]
	theirs := trying("theirs", methodOf[flow.AwaitCard])
	theirs.Chat = "chat_2"
	co.Attempts = append(co.Attempts, theirs)
	turn.Checkouts["wsp_sess_1"] = co
	d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "theirs"}))
	if len(d.Says) != 0 || talkOf(d).State != flow.Opening || len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoOpen || d.Effects[0].Method != flow.Card {
		t.Errorf("%+v", d)
	}
}

// ofTheTalk says whether an intent is for the talk in focus to decide on.
func ofTheTalk(in flow.Intent) bool {
	return !slices.Contains([]flow.IntentKind{
		flow.MeansCode, flow.MeansSecret, flow.MeansStop, flow.MeansHuman, flow.MeansLanguage, flow.MeansBack, flow.MeansCall, flow.MeansNote, flow.MeansTakeover,
	}, in.Kind)
}
