package flow_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"till/flow"
)

// Whoever nobody came to keeps nobody from another payment: a person is called for what
// the bank takes back of that, and what was said of the first one is not said of it.
func TestWhomNobodyCameToKeepsNobodyFromAnotherPayment(t *testing.T) {
	turn := other(standing(flow.AwaitTransfer), "prj_2")
	turn.Chat.Talks = append(turn.Chat.Talks, flow.Talk{Session: "wsp_sess_2", State: flow.Paid, Mine: true}, flow.Talk{Session: "wsp_sess_3", State: flow.Choosing})
	turn.Chat.Focus, turn.Chat.Flag = "wsp_sess_3", "nobody has come"
	turn.Chat.Desk = flow.Desk{State: flow.DeskWaiting, Since: 1, Told: true, About: "wsp_sess_1"}
	turn.News, turn.About = &flow.News{Kind: flow.NewsReversed, Amount: 500_000}, "wsp_sess_2"
	d := flow.Decide(turn)
	if keys(d) != "reversed" || d.Chat.Desk.About != "wsp_sess_2" || d.Chat.Desk.Due == 0 || d.Chat.Flag != "" {
		t.Errorf("taken back: says %q, desk %+v, flag %q (%s)", keys(d), d.Chat.Desk, d.Chat.Flag, d.Why)
	}
	says := turn
	says.News, says.About, says.Chat.Talks = nil, "", slices.Clone(turn.Chat.Talks)
	says.Chat.Focus, says.Chat.Talks[1] = "wsp_sess_2", flow.Talk{Session: "wsp_sess_2", State: flow.Choosing, Claimed: true, Unknown: 1}
	if d := flow.Decide(heard(says, flow.Intent{Kind: flow.MeansNothing})); keys(d) != "human" || d.Chat.Desk.About != "" || d.Chat.Desk.Due == 0 {
		t.Errorf("not understood twice: says %q, desk %+v", keys(d), d.Chat.Desk)
	}
	turn.Chat.Desk.Due = turn.Now.Add(time.Hour).UnixMilli()
	if d := flow.Decide(turn); d.Chat.Desk != turn.Chat.Desk {
		t.Errorf("taken back while somebody may still come: desk %+v", d.Chat.Desk)
	}
}

// Whoever comes goes to the payment that they were asked for about, however many came since.
func TestThePaymentThatAPersonIsWaitedForAboutIsKept(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	turn.Chat = flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansHuman})).Chat
	for i := range flow.MaxTalks + 1 {
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.ID = flow.SessionID(fmt.Sprint("wsp_sess_", i+10))
		turn.Checkouts[co.Session.ID] = co
		turn.ByCode, turn.Heard = co.Session.ID, &flow.Intent{Kind: flow.MeansCode}
		turn.Now = turn.Now.Add(time.Minute)
		turn.Chat = flow.Decide(turn).Chat
	}
	turn.Heard, turn.ByCode, turn.About, turn.News = nil, "", "wsp_sess_1", &flow.News{Kind: flow.NewsClaimed, By: "ngozi"}
	if d := flow.Decide(turn); d.Chat.Focus != "wsp_sess_1" || d.Chat.Desk.By != "ngozi" || len(d.Chat.Talks) != flow.MaxTalks {
		t.Errorf("with %s in focus of %d, desk %+v", d.Chat.Focus, len(d.Chat.Talks), d.Chat.Desk)
	}
}

// Whoever comes for one payment takes the chat from another merchant's that its payer is
// about: the payer is told, and that payment's code brings the bot back to it.
func TestWhoIsCalledAwayToAPersonIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		project flow.ProjectID
		state   flow.TalkState
		want    string
	}{
		"another merchant's, and going on":  {"prj_2", flow.Choosing, "person_here"},
		"another merchant's, and over":      {"prj_2", flow.Paid, ""},
		"the same merchant's, who may help": {"prj_1", flow.Choosing, ""},
	} {
		turn := other(standing(flow.AwaitTransfer), c.project)
		first := turn.Checkouts["wsp_sess_1"]
		first.Session.Project = "prj_1"
		turn.Checkouts["wsp_sess_1"] = first
		turn.Chat = flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansHuman})).Chat
		turn.ByCode = "wsp_sess_2"
		turn.Chat = flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansCode, Code: "9C3M9QTX"})).Chat
		for i := range turn.Chat.Talks {
			if turn.Chat.Talks[i].Session == "wsp_sess_2" {
				turn.Chat.Talks[i].State = c.state
			}
		}
		d := flow.Decide(about(turn, flow.News{Kind: flow.NewsClaimed, By: "ngozi"}))
		if keys(d) != c.want || d.Chat.Focus != "wsp_sess_1" || d.Chat.Desk.By != "ngozi" {
			t.Errorf("%s: says %q, %+v", name, keys(d), d.Chat)
		}
		turn.Chat = d.Chat
		back := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansCode, Code: "9C3M9QTX"}))
		if away := c.project == "prj_2"; (back.Chat.Desk.State == flow.DeskBot) != away || back.Chat.Focus != "wsp_sess_2" {
			t.Errorf("%s: and the code again: %+v", name, back.Chat)
		}
	}
}

// The language that the bot speaks is set by its name, and by no other name that is read.
func TestABankThatIsNamedToAPersonChangesNoLanguage(t *testing.T) {
	turn := standing(flow.AwaitTransfer)
	turn.Chat.Lang, turn.Chat.Desk = flow.Hausa, flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: turn.Now.UnixMilli(), Due: turn.Now.Add(time.Hour).UnixMilli()}
	for _, in := range []flow.Intent{{Kind: flow.MeansBank, Bank: "058", Named: true}, {Kind: flow.MeansLanguage, Lang: flow.Igbo}} {
		if d := flow.Decide(heard(turn, in)); d.Chat.Lang != flow.Hausa {
			t.Errorf("%s: the language is %q", in.Kind, d.Chat.Lang)
		}
	}
	if d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansLanguage, Lang: flow.Igbo, Named: true})); d.Chat.Lang != flow.Igbo {
		t.Errorf("by its name: the language is %q", d.Chat.Lang)
	}
}
