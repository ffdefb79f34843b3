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
