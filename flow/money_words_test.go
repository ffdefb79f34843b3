package flow_test

import (
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"till/flow"
)

// This file is what a payer reads of their money, against its books.

// naira reads how much is told, 0 for nothing.
func naira(t *rapid.T, told string) flow.Kobo {
	if told == "" {
		return 0
	}
	whole, part, _ := strings.Cut(strings.NewReplacer("₦", "", ",", "").Replace(told), ".")
	sum, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if err != nil {
		t.Fatalf("%q is no sum: %v", told, err)
	}
	return flow.Kobo(sum)
}

// looks is what a turn knows of the session and of its payments.
func (b *books) looks() flow.Checkout {
	rows := slices.Clone(b.payments)
	for i := range rows {
		for _, r := range b.refunds {
			if r.Payment == rows[i].ID && r.Status == flow.RefundAttention && r.Returned && !r.PutBack {
				rows[i].Bounced += r.Amount
			}
		}
	}
	return flow.Look(b.session, b.attempts, rows, flow.Offers(b.session, b.attempts, flow.Methods(), b.now))
}

// sums are what some messages tell of money: as taken by the bank, sent back, come back
// from there, and set aside.
type sums struct{ taken, sent, back, aside flow.Kobo }

func summed(t *rapid.T, says ...flow.Say) (s sums) {
	for _, say := range says {
		extra := naira(t, say.Args["extra"])
		switch say.Key {
		case "reversed":
			s.taken += naira(t, say.Args["amount"])
		case "taken_back":
			s.taken += extra
		case "went_back":
			s.sent += extra
		case "came_back":
			s.back += extra
		case "part_waits":
			s.aside += naira(t, say.Args["paid"])
		case "paid_over", "paid_late", "paid_twice", "not_sent", "returning":
			s.aside += extra
		}
	}
	return s
}

// worded holds what is told of each payment, and to a payer who asks about money, against
// what became of it.
func (b *books) worded(t *rapid.T) {
	co := b.looks()
	var all sums
	for _, p := range co.Payments {
		here := max(p.Amount-p.Reversed-p.SentBack(), 0)
		all.taken, all.sent, all.back, all.aside = all.taken+p.Reversed, all.sent+p.SentBack(), all.back+min(p.Bounced, here), all.aside+p.Unapplied
		for _, chat := range []bool{true, false} {
			say, _ := flow.Answer(co, p, chat, flow.English, b.now)
			s := summed(t, say)
			wrong := s.taken > p.Reversed || s.back > min(p.Bounced, here) || s.aside > p.Unapplied || s.sent > p.SentBack()+p.Unapplied ||
				say.Key == "kept" && naira(t, say.Args["extra"]) > p.Applied-p.Lost-p.FeeBack
			if wrong {
				t.Fatalf("of %+v is told %+v", p, say)
			}
		}
	}
	turn := flow.Turn{Now: b.now, Checkouts: map[flow.SessionID]flow.Checkout{b.session.ID: co}, About: b.session.ID, News: &flow.News{Kind: flow.NewsNothing}}
	talk := flow.Talk{Session: b.session.ID, Method: flow.BankTransfer, State: flow.Verifying, From: flow.AwaitTransfer, Then: flow.ThenMoney}
	if !b.session.Open() {
		talk = flow.Talk{Session: b.session.ID, State: flow.Closed}
		turn.News, turn.Heard = nil, &flow.Intent{Kind: flow.MeansMoney}
	}
	turn.Chat = flow.Chat{ID: "chat_1", Focus: b.session.ID, Talks: []flow.Talk{talk}}
	d := flow.Decide(turn)
	s := summed(t, d.Says...)
	if s.taken > all.taken || s.sent > all.sent || s.back > all.back || s.aside > all.aside {
		t.Fatalf("who asks reads %+v, and it is %+v: %+v of %+v", s, all, d.Says, co.Payments)
	}
	if len(co.Payments) == 1 && (s.taken < all.taken || s.back < all.back || s.taken > 0 && s.sent < min(all.sent, co.Payments[0].Amount-s.taken)) {
		t.Fatalf("who asks reads only %+v, and it is %+v: %+v of %+v", s, all, d.Says, co.Payments)
	}
}
