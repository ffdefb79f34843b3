package flow_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"till/flow"
)

// This file is what banks do in a story.

// pays is money coming in for anything that was ever opened, once or twice.
func (s *story) pays(t *rapid.T) {
	var all []flow.Attempt
	for _, id := range []flow.SessionID{"wsp_sess_1", "wsp_sess_2"} {
		for _, a := range s.attempts[id] {
			if a.Instructions != nil {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		return // nothing can be paid
	}
	a := rapid.SampledFrom(all).Draw(t, "paid to")
	s.n++
	n := credit(fmt.Sprint("rail-", s.n), rapid.SampledFrom([]flow.Kobo{a.Amount, a.Amount, 100_000, 600_000}).Draw(t, "kobo"), s.now)
	for range rapid.IntRange(1, 2).Draw(t, "told") {
		if _, known := s.seen[n.RailTransactionID]; known {
			continue // what the shell knows the rail's name of changes nothing
		}
		s.seen[n.RailTransactionID] = n.Amount
		a, _ = s.attempt(a.ID)
		change, err := flow.Settle(flow.Money{
			Notice: n, Session: s.sessions[a.Session], Attempt: a, Others: s.attempts[a.Session], Payments: s.payments[a.Session],
			Payment: flow.PaymentID(fmt.Sprint("p", s.n)), Charge: "wsp_chg_1", Now: s.now,
		})
		s.must(err)
		s.save(a.Session, change)
	}
}

// bank is the bank answering a question.
func (s *story) bank(t *rapid.T) {
	if len(s.checks) == 0 {
		return // nothing was asked
	}
	i := rapid.IntRange(0, len(s.checks)-1).Draw(t, "which question")
	q := s.checks[i]
	s.checks = slices.Delete(s.checks, i, i+1)
	kind := flow.NewsBankDown
	if rapid.IntRange(0, 3).Draw(t, "answers") > 0 {
		change, err := flow.Resume(s.sessions[q.session])
		if kind = flow.NewsNothing; s.coming[q.session] {
			kind = flow.NewsComing
			change, err = flow.Coming(s.sessions[q.session])
		}
		s.must(err)
		s.save(q.session, change)
	}
	for _, chat := range slices.Clone(s.watch[q.session]) {
		if talk, ok := s.chats[chat].Talk(q.session); ok && talk.State == flow.Verifying {
			s.turn(chat, flow.Turn{News: &flow.News{Kind: kind}, About: q.session})
		}
	}
}

// moves is money being on its way, or not any more; the bank tells of the first
// by itself now and then.
func (s *story) moves(t *rapid.T) {
	id := rapid.SampledFrom([]flow.SessionID{"wsp_sess_1", "wsp_sess_2"}).Draw(t, "session")
	if len(s.attempts[id]) == 0 {
		return // nothing can be paid
	}
	if s.coming[id] = rapid.Bool().Draw(t, "on its way"); s.coming[id] && rapid.Bool().Draw(t, "told") {
		change, err := flow.Coming(s.sessions[id])
		s.must(err)
		s.save(id, change)
	}
}

// returns is the bank sending money back by itself.
func (s *story) returns(t *rapid.T) {
	id := rapid.SampledFrom([]flow.SessionID{"wsp_sess_1", "wsp_sess_2"}).Draw(t, "session")
	if len(s.attempts[id]) == 0 {
		return // nothing can be paid
	}
	change, err := flow.SentBack(s.sessions[id], rapid.SampledFrom(s.attempts[id]).Draw(t, "sent to"), flow.Notice{Kind: flow.Returned, Amount: 300_000})
	s.must(err)
	if change.Payment != nil || len(change.Facts) != 0 {
		t.Fatalf("what never was ours is booked or told: %+v", change)
	}
	s.coming[id] = false
	s.save(id, change)
}

// reverses is the bank taking back a payment, whole or in two.
func (s *story) reverses(t *rapid.T) {
	id := rapid.SampledFrom([]flow.SessionID{"wsp_sess_1", "wsp_sess_2"}).Draw(t, "session")
	if len(s.payments[id]) == 0 {
		return // nothing was paid
	}
	i := rapid.IntRange(0, len(s.payments[id])-1).Draw(t, "which payment")
	p := s.payments[id][i]
	left := p.Amount - s.backed[p.ID]
	if left == 0 {
		return // it was taken back
	}
	amount := rapid.SampledFrom([]flow.Kobo{left, left, max(left/2, 1)}).Draw(t, "of it")
	change := flow.TakeBack(s.sessions[id], flow.Asking(s.attempts[id]), p, s.posted[p.ID], flow.TakenBack{RailTransactionID: "back", Amount: amount})
	s.backed[p.ID] += amount
	p.Reversed += amount
	for _, line := range change.TakenBack.Postings {
		if line.Account == flow.Unapplied {
			p.Unapplied -= line.Amount
		}
	}
	s.payments[id][i] = p
	s.save(id, change)
	if s.backed[p.ID] < p.Amount || p.Refunded > 0 {
		return
	}
	sums := map[flow.LedgerAccount]flow.Kobo{}
	for _, line := range s.posted[p.ID] {
		sums[line.Account] += line.Amount
	}
	for account, sum := range sums {
		if sum != 0 {
			t.Fatalf("all of %s was taken back, and %s still has %d of it", p.ID, account, sum)
		}
	}
}

// sendsBack keeps a refund as the shell does; the bank sends it at once or later.
func (s *story) sendsBack(id flow.SessionID, r flow.Return) {
	i := slices.IndexFunc(s.payments[id], func(x flow.Payment) bool { return x.ID == r.Payment })
	p := s.payments[id][i]
	p.Refunded -= r.Amount // the decision has counted it
	s.n++
	change, err := flow.NewRefund(s.sessions[id], p, flow.RefundAsk{ID: flow.RefundID(fmt.Sprint("r", s.n)), Amount: r.Amount, Aside: r.Amount, Origin: r.Origin, Reason: r.Reason}, s.now)
	s.must(err)
	s.sessions[id] = *change.Session
	s.post(p.ID, change.Entries[0].Postings)
	for _, chat := range slices.Clone(s.watch[id]) {
		s.turn(chat, flow.Turn{News: &flow.News{Kind: flow.NewsRefunded, Attempt: p.Attempt, Payment: &p, Amount: r.Amount}, About: id})
	}
}

// resolves is the merchant deciding about set-aside money, or trying to.
func (s *story) resolves(t *rapid.T) {
	id := rapid.SampledFrom([]flow.SessionID{"wsp_sess_1", "wsp_sess_2"}).Draw(t, "session")
	if len(s.payments[id]) == 0 {
		return // nothing was paid
	}
	p := rapid.SampledFrom(s.payments[id]).Draw(t, "which payment")
	a, _ := s.attempt(p.Attempt)
	m := flow.Money{Session: s.sessions[id], Attempt: a, Others: s.attempts[id], Payments: slices.Clone(s.payments[id]), Charge: "wsp_chg_1", Now: s.now}
	change, err := flow.Resolve(m, p, rapid.Bool().Draw(t, "accept"), flow.Ruled{By: "wsp_key_1", At: s.now})
	if (err == nil) != p.Waits(m.Session) || err != nil && flow.CodeOf(err) != flow.CodeNotResolvable {
		t.Fatalf("%+v of a session that is %s: %v", p, m.Session.Status, err)
	}
	if err == nil {
		s.save(id, change)
	}
}

// overdue is the clock deciding what nobody decided.
func (s *story) overdue() {
	for _, id := range []flow.SessionID{"wsp_sess_1", "wsp_sess_2"} {
		for _, p := range slices.Clone(s.payments[id]) {
			s.save(id, flow.Overdue(s.sessions[id], p, s.now))
		}
		for _, p := range s.payments[id] {
			if !p.ReturnsAt.IsZero() && !s.now.Before(p.ReturnsAt) {
				s.t.Fatalf("%s should have gone back: %+v", p.ID, p)
			}
		}
	}
}

// anyPolicy is one of the policies that a session can have.
func anyPolicy(t *rapid.T) flow.Policy {
	return flow.Policy{
		Underpayment: rapid.SampledFrom([]string{"hold", "accept", "refund"}).Draw(t, "underpayment"),
		Overpayment:  rapid.SampledFrom([]string{"accept", "refund_excess"}).Draw(t, "overpayment"),
		LatePayment:  rapid.SampledFrom([]string{"review", "accept", "refund"}).Draw(t, "late payment"),
	}
}

// switched holds what a chat can still pay of a session against one of a method,
// whether or not it switched away from it.
func (s *story) switched(t *rapid.T, id flow.SessionID) {
	type of struct {
		chat   flow.ChatID
		method flow.Method
	}
	payable := map[of]int{}
	for _, a := range s.attempts[id] {
		open := a.Status == flow.AttemptActive || a.Status == flow.AttemptSuperseded
		if open && a.Instructions != nil && a.Amount == s.sessions[id].Outstanding() && s.now.Before(a.ExpiresAt) {
			payable[of{a.Chat, a.Method}]++
		}
	}
	for what, n := range payable {
		if n > 1 {
			t.Fatalf("%s can pay %s in %d places by %s", what.chat, id, n, what.method)
		}
	}
}
