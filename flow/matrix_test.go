package flow_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// constants are the values of every constant of a type that the package
// declares, read from its source: a new one is in the matrices or fails them.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ {
				for _, v := range spec.Values {
					if text, err := strconv.Unquote(v.(*ast.BasicLit).Value); err == nil {
						out = append(out, text)
					}
				}
			}
			return true
		})
	}
	if len(out) == 0 {
		t.Fatalf("no constants of type %s", typ)
	}
	return out
}

func TestTheMatrixHoldsEveryStateEveryIntentAndAllNews(t *testing.T) {
	var states, means, happens []string
	for _, s := range flow.TalkStates() {
		states = append(states, string(s))
	}
	for _, in := range intents() {
		means = append(means, string(in.Kind))
	}
	for _, n := range news("t") {
		happens = append(happens, string(n.Kind))
	}
	for typ, have := range map[string][]string{"TalkState": states, "IntentKind": means, "NewsKind": happens} {
		for _, want := range constants(t, typ) {
			if !slices.Contains(have, want) {
				t.Errorf("%s %q is not in the matrix", typ, want)
			}
		}
	}
}

// Who answers in the chat lies over where its talk stands: the same matrix for
// every state of the desk.
func TestGoldenAnswersInEveryStateOfTheDesk(t *testing.T) {
	var b strings.Builder
	for _, desk := range constants(t, "DeskState") {
		at := func() flow.Turn {
			turn := standing(flow.AwaitTransfer)
			turn.Chat.Desk.State = flow.DeskState(desk)
			if turn.Chat.Desk.State != flow.DeskBot {
				turn.Chat.Desk.Since, turn.Chat.Desk.Due = turn.Now.UnixMilli(), turn.Now.Add(time.Hour).UnixMilli()
			}
			if turn.Chat.Desk.State == flow.DeskClaimed {
				turn.Chat.Desk.By = "ngozi"
			}
			return turn
		}
		printed := func(what string, d flow.Decision) {
			text := line(what, d)
			fmt.Fprintf(&b, "%s desk %s\n", strings.TrimSuffix(text, "\n"), "["+string(d.Chat.Desk.State)+"]")
			if d.Why == "" {
				t.Errorf("%s, %s: nobody knows why", desk, what)
			}
		}
		fmt.Fprintf(&b, "[%s]\n", desk)
		for _, in := range intents() {
			printed(strings.Join(strings.Fields(fmt.Sprint(in.Kind, " ", in.Method, " ", in.Bank, " ", in.Code, " ", in.Lang)), " "), flow.Decide(heard(at(), in)))
		}
		for _, n := range news("t") {
			printed("! "+string(n.Kind), flow.Decide(about(at(), n)))
		}
		due := at()
		due.Now = due.Now.Add(3 * time.Hour)
		printed("! timer, three hours later", flow.Decide(about(due, flow.News{Kind: flow.NewsTimer})))
	}
	golden(t, "desk_decisions.txt", b.String())
}

func TestWhatIsSaidWhileABankIsAskedIsDecidedOnAfterwards(t *testing.T) {
	for _, c := range []struct {
		name  string
		state flow.TalkState
		in    flow.Intent
		after flow.News
		says  string
		ends  flow.TalkState
	}{
		{"a double tap is none", flow.Opening, flow.Intent{Kind: flow.MeansMethod, Method: flow.Card}, flow.News{Kind: flow.NewsOpened, Attempt: "c"}, "card_how alone wait_menu", flow.AwaitCard},
		{"another method is asked for afterwards", flow.Opening, flow.Intent{Kind: flow.MeansMethod, Method: flow.USSD}, flow.News{Kind: flow.NewsOpened, Attempt: "c"}, "card_how alone wait_menu", flow.Verifying},
		{"a cancellation is asked about afterwards", flow.Opening, flow.Intent{Kind: flow.MeansCancel}, flow.News{Kind: flow.NewsOpened, Attempt: "c"}, "card_how alone wait_menu cancel_confirm", flow.AwaitCard},
		{"a greeting is answered by the answer", flow.Opening, flow.Intent{Kind: flow.MeansMenu}, flow.News{Kind: flow.NewsOpened, Attempt: "c"}, "card_how alone wait_menu", flow.AwaitCard},
		{"a claim before there was anything to pay to says nothing", flow.Opening, flow.Intent{Kind: flow.MeansPaid}, flow.News{Kind: flow.NewsOpened, Attempt: "c"}, "card_how alone wait_menu", flow.AwaitCard},
		{"a second claim is answered by the answer", flow.Verifying, flow.Intent{Kind: flow.MeansPaid}, flow.News{Kind: flow.NewsNothing}, "nothing_yet", flow.AwaitTransfer},
		{"the details again are not", flow.Verifying, flow.Intent{Kind: flow.MeansOther}, flow.News{Kind: flow.NewsNothing}, "nothing_yet", flow.Verifying},
		{"what holds is told afterwards", flow.Verifying, flow.Intent{Kind: flow.MeansTerms}, flow.News{Kind: flow.NewsNothing}, "nothing_yet terms", flow.AwaitTransfer},
		{"nothing holds any more once it is paid", flow.Verifying, flow.Intent{Kind: flow.MeansTerms}, flow.News{Kind: flow.NewsPaid, Attempt: "t", Payment: &flow.Payment{Match: flow.Matched}}, "receipt", flow.Paid},
		{"nothing is asked for any more once it is paid", flow.Verifying, flow.Intent{Kind: flow.MeansOther}, flow.News{Kind: flow.NewsPaid, Attempt: "t", Payment: &flow.Payment{Match: flow.Matched}}, "receipt", flow.Paid},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := standing(c.state)
			first := flow.Decide(heard(turn, c.in))
			if len(first.Effects) != 0 || len(first.Says) != 1 || first.Says[0].Key != "one_moment" {
				t.Fatalf("while it waits: %+v", first)
			}
			turn.Chat = first.Chat
			if again := flow.Decide(heard(turn, c.in)); len(again.Says) != 0 {
				t.Errorf("one moment is said twice: %+v", again.Says)
			}
			if c.state == flow.Opening {
				turn.Checkouts["wsp_sess_1"].Attempts[0].Instructions = trying("c", flow.Card).Instructions
			}
			d := flow.Decide(about(turn, c.after))
			var says []string
			for _, s := range d.Says {
				says = append(says, s.Key)
			}
			if strings.Join(says, " ") != c.says || talkOf(d).State != c.ends || talkOf(d).Held != nil {
				t.Errorf("says %v, stands at %s", says, talkOf(d).State)
			}
		})
	}
}

// A question what holds does not take the place of a way to pay that was chosen before it.
func TestAChoiceIsNotForgottenForAQuestionBehindIt(t *testing.T) {
	turn := standing(flow.Opening)
	for _, in := range []flow.Intent{{Kind: flow.MeansOther}, {Kind: flow.MeansTerms}} {
		turn.Chat = flow.Decide(heard(turn, in)).Chat
	}
	turn.Checkouts["wsp_sess_1"].Attempts[0].Instructions = trying("c", flow.Card).Instructions
	d := flow.Decide(about(turn, flow.News{Kind: flow.NewsOpened, Attempt: "c"}))
	if talkOf(d).State != flow.Verifying || talkOf(d).Then != flow.ThenChoose {
		t.Errorf("says %q, and stands at %+v", keys(d), talkOf(d))
	}
}

func TestNobodyIsRemindedAtNight(t *testing.T) {
	for _, c := range []struct {
		at    string // UTC; Lagos is an hour ahead
		wrote time.Duration
		says  bool
	}{
		{"2026-03-02T20:59:00Z", time.Hour, true},
		{"2026-03-02T21:00:00Z", time.Hour, false},
		{"2026-03-02T21:00:00Z", 20 * time.Minute, true},
		{"2026-03-03T05:59:00Z", time.Hour, false},
		{"2026-03-03T06:00:00Z", time.Hour, true},
	} {
		turn := standing(flow.Choosing)
		now, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		turn.Now = now
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.ExpiresAt = now.Add(24 * time.Hour)
		turn.Checkouts["wsp_sess_1"] = co
		turn.Chat.Wrote = now.Add(-c.wrote).UnixMilli()
		turn.Chat.Talks[0].Timers.Nudge = now.UnixMilli()
		d := flow.Decide(about(turn, flow.News{Kind: flow.NewsTimer}))
		if said := len(d.Says) > 0; said != c.says {
			t.Errorf("%s, %v after the payer wrote: said %v (%s)", c.at, c.wrote, said, d.Why)
		}
		if due, ok := d.Chat.Due(); !c.says && (!ok || due.UTC().Hour() != 6 || !due.After(now)) {
			t.Errorf("%s: it is put off to %v, %v", c.at, due, ok)
		}
	}
}
