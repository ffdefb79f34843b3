package flow_test

import (
	"fmt"
	"testing"
	"time"

	"till/flow"
)

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
