package flow_test

import (
	"maps"
	"slices"
	"testing"

	"till/flow"
)

// reading is a turn with all that it says that it touches, and with nothing else.
func reading(t flow.Turn, all map[flow.SessionID]flow.Checkout) flow.Turn {
	t.Checkouts = map[flow.SessionID]flow.Checkout{}
	for _, id := range t.Touches() {
		t.Checkouts[id] = all[id]
	}
	return t
}

// after is a turn of a chat in which another merchant's payment was spoken of before.
func after(turn flow.Turn, id flow.SessionID, merchant string, state flow.TalkState) (flow.Turn, map[flow.SessionID]flow.Checkout) {
	s := open()
	s.ID, s.Merchant = id, merchant
	if state == flow.Paid {
		s.Status, s.AmountPaid, s.PaidAt = flow.SessionPaid, s.Amount, noon
	}
	turn.Chat.Talks = slices.Insert(slices.Clone(turn.Chat.Talks), 0, flow.Talk{Session: id, State: state, Mine: state == flow.Paid})
	all := maps.Clone(turn.Checkouts)
	all[id] = flow.Checkout{Session: s, Offers: flow.Offers(s, nil, flow.Methods(), noon)}
	return turn, all
}

// Whoever asks for the receipt of what they paid before, while the bank is asked about
// the next payment, gets that one, and none of nothing from nobody.
func TestAReceiptThatIsAskedForWhileTheBankIsAskedIsThatOfThePaymentBefore(t *testing.T) {
	for _, c := range []struct {
		from flow.TalkState
		news flow.News
	}{
		{flow.Opening, flow.News{Kind: flow.NewsOpened, Attempt: "c"}},
		{flow.Verifying, flow.News{Kind: flow.NewsNothing}},
		{flow.Verifying, flow.News{Kind: flow.NewsBankDown}},
	} {
		t.Run(string(c.news.Kind), func(t *testing.T) {
			turn, all := after(standing(c.from), "wsp_sess_0", "Bola Foods", flow.Paid)
			turn.Chat = flow.Decide(reading(heard(turn, flow.Intent{Kind: flow.MeansReceipt}), all)).Chat
			all["wsp_sess_1"].Attempts[0].Instructions = &flow.Instructions{CheckoutURL: "https://rail.example/c/1"}
			d := flow.Decide(reading(about(turn, c.news), all))
			last := d.Says[len(d.Says)-1]
			if last.Key != "receipt" || last.Args["merchant"] != "Bola Foods" || last.Args["amount"] != "₦5,000" {
				t.Errorf("says %+v", last)
			}
		})
	}
}

// 7 as an answer to one payment leads to the one before that, which is read as well.
func TestSevenAsAnAnswerLeadsToAPaymentThatIsRead(t *testing.T) {
	for _, state := range []flow.TalkState{flow.Choosing, flow.Paid} {
		turn, all := after(standing(flow.Closed), "wsp_sess_3", "Chidi Shoes", state)
		turn.Checkouts = all
		turn, all = after(turn, "wsp_sess_2", "Bola Foods", state)
		turn.Quoted = "wsp_sess_3"
		d := flow.Decide(reading(heard(turn, flow.Intent{Kind: flow.MeansBack}), all))
		if d.Chat.Focus != "wsp_sess_2" || len(d.Says) == 0 || d.Says[0].Args["merchant"] != "Bola Foods" {
			t.Errorf("%s: %s is in focus, says %+v", state, d.Chat.Focus, d.Says)
		}
	}
}
