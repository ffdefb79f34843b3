package flow_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

// books are everything that is kept about the money of one session, as the shell
// keeps it: the ledger by payment, and what a payment's row says.
type books struct {
	session  flow.Session
	attempts []flow.Attempt
	payments []flow.Payment
	lines    map[flow.PaymentID]map[flow.LedgerAccount]flow.Kobo
	posted   map[string]bool // kind and subject: the ledger has each once
	facts    map[flow.EventKind]int
	refunds  []flow.Refund
	ordered  []string                     // names that the bank was told of refunds under
	out      []string                     // those of what is with who paid it
	sent     map[flow.PaymentID]flow.Kobo // back with who paid it
	own      map[flow.PaymentID]flow.Kobo // with refunds, and taken from the merchant for them
	capped   bool                         // more was held for it once than it asks for, when it was over
	came     flow.Kobo
	gone     flow.Kobo // taken back by the bank
	early    flow.Kobo // taken back of what comes now before it was heard of
	now      time.Time
	n        int
}

func newBooks(t *rapid.T) *books {
	b := &books{
		session: open(), lines: map[flow.PaymentID]map[flow.LedgerAccount]flow.Kobo{}, posted: map[string]bool{}, facts: map[flow.EventKind]int{}, now: noon,
		sent: map[flow.PaymentID]flow.Kobo{}, own: map[flow.PaymentID]flow.Kobo{},
	}
	b.session.Amount = flow.Kobo(rapid.Int64Range(int64(flow.MinAmount), 1_000_000).Draw(t, "session"))
	b.session.ExpiresAt, b.session.Policy = noon.Add(2*time.Hour), anyPolicy(t)
	return b
}

func (b *books) payment(id flow.PaymentID) *flow.Payment {
	return &b.payments[slices.IndexFunc(b.payments, func(p flow.Payment) bool { return p.ID == id })]
}

// post keeps one transaction, and what the payment's row shows of it.
func (b *books) post(t *rapid.T, kind flow.EntryKind, subject string, id flow.PaymentID, lines []flow.Posting) {
	if name := string(kind) + "/" + subject; b.posted[name] || flow.Sum(lines) != 0 || len(lines) < 2 {
		t.Fatalf("%s, posted before: %v: %+v", name, b.posted[name], lines)
	} else {
		b.posted[name] = true
	}
	if b.lines[id] == nil {
		b.lines[id] = map[flow.LedgerAccount]flow.Kobo{}
	}
	for _, line := range lines {
		b.lines[id][line.Account] += line.Amount
	}
	p := b.payment(id)
	p.Unapplied = -b.lines[id][flow.Unapplied]
	if kind != flow.EntryPayment && kind != flow.EntryAccept && kind != flow.EntryRefund { // what the bank took, and what a refund put back
		for _, line := range lines {
			if line.Account == flow.MerchantPending {
				p.Lost += line.Amount
			}
			if line.Account == flow.Fees {
				p.FeeBack += line.Amount
			}
		}
	}
}

// keep takes a change in, and checks what must always hold.
func (b *books) keep(t *rapid.T, c flow.Change) {
	before, were := b.session, slices.Clone(b.payments)
	b.keepOpen(t, c)
	b.overtaken(t)
	b.sound(t, before)
	b.recorded(t)
	b.worded(t)
	if b.session.Status == flow.SessionPaid && before.Status != flow.SessionPaid {
		b.told(t, c.News[0], were)
	}
}

// keepOpen takes a change in that another one follows.
func (b *books) keepOpen(t *rapid.T, c flow.Change) {
	if c.Session != nil {
		b.session = *c.Session
	}
	if p := c.Payment; p != nil {
		b.came += p.Amount
		b.payments = append(b.payments, *p)
		b.post(t, flow.EntryPayment, string(p.ID), p.ID, c.Postings)
	}
	if back := c.TakenBack; back != nil {
		b.gone += back.Amount
		b.payment(back.Payment).Reversed += back.Amount
		b.post(t, flow.EntryReversal, back.RailTransactionID, back.Payment, back.Postings)
	}
	for _, e := range c.Entries {
		b.post(t, e.Kind, e.Subject, e.Payment, e.Postings)
	}
	for _, p := range c.Payments {
		row := b.payment(p.ID)
		row.Fee, row.Applied, row.Resolution, row.ReturnsAt = p.Fee, p.Applied, p.Resolution, p.ReturnsAt
	}
	for _, r := range c.Returns {
		b.sendBack(t, r)
	}
	for _, decided := range append(slices.Clone(c.Payments), paymentOf(c)...) {
		if row := b.payment(decided.ID); c.TakenBack == nil && (row.Unapplied != decided.Unapplied || row.Refunded != decided.Refunded) {
			t.Fatalf("the decision says that %d wait and %d go back: %+v", decided.Unapplied, decided.Refunded, row)
		}
	}
	if a, other := b.session.AskForRest(flow.Asking(b.attempts)); other && c.Refund != nil { // as whoever keeps a refund sees to
		c.Attempts = append(c.Attempts, a)
	}
	for _, a := range c.Attempts {
		if i := slices.IndexFunc(b.attempts, func(x flow.Attempt) bool { return x.ID == a.ID }); i >= 0 {
			b.attempts[i] = a
		} else {
			b.attempts = append(b.attempts, a)
		}
	}
	for _, f := range c.Facts {
		b.facts[f.Kind]++
	}
	named(t, c)
}

func paymentOf(c flow.Change) []flow.Payment {
	if c.Payment == nil {
		return nil
	}
	return []flow.Payment{*c.Payment}
}

// sendBack sets aside what a decision sends back.
func (b *books) sendBack(t *rapid.T, r flow.Return) {
	b.n++
	p := *b.payment(r.Payment)
	p.Refunded = b.sent[p.ID] - b.lines[p.ID][flow.RefundsPayable]
	id := flow.RefundID(fmt.Sprint("wsp_rfd_", b.n))
	change, err := flow.NewRefund(b.session, p, flow.RefundAsk{ID: id, Amount: r.Amount, Aside: r.Amount, Origin: r.Origin, Reason: r.Reason}, b.now)
	if err != nil {
		t.Fatalf("what a decision sends back is refused: %v", err)
	}
	b.session = *change.Session
	b.post(t, flow.EntryRefund, string(id), p.ID, change.Entries[0].Postings)
	b.payment(p.ID).Refunded = p.Refunded + r.Amount
	b.order(t, *change.Refund)
}

// sound holds what is kept against what must always be so.
func (b *books) sound(t *rapid.T, before flow.Session) {
	var sum, clearing, held, fees, taken flow.Kobo
	for _, p := range b.payments {
		of := b.lines[p.ID]
		for _, amount := range of {
			sum += amount
		}
		clearing += of[flow.RailClearing] + b.sent[p.ID]
		if p.Counts() {
			fees, taken = fees+p.Fee, taken+p.Applied
		} else if p.Fee != flow.Fee(p.Applied) {
			t.Fatalf("it is a payment of its own, and its fee is another: %+v", p)
		}
		if of[flow.RailClearing] != p.Amount-p.Reversed-b.sent[p.ID] || -of[flow.RefundsPayable] != p.Refunded-b.sent[p.ID] {
			t.Fatalf("the ledger does not know what came of %+v: %v", p, of)
		}
		switch {
		case of[flow.Unapplied] > 0:
			t.Fatalf("money that waits became a debt: %+v %v", p, of)
		case p.Unapplied > p.Refundable():
			t.Fatalf("more waits than is left of it: %+v %v", p, of)
		case p.Resolution != flow.Unresolved && of[flow.Unapplied] != 0:
			t.Fatalf("it was decided about, and some of it waits: %+v %v", p, of)
		case p.Reversed == 0 && p.Applied+p.Unapplied+p.Refunded-b.own[p.ID] != p.Amount:
			t.Fatalf("not each kobo has one outcome: %+v", p)
		case p.Reversed == 0 && of[flow.MerchantPending]+of[flow.Fees] != b.own[p.ID]-p.Applied:
			t.Fatalf("the merchant has not what was taken: %+v %v", p, of)
		case -of[flow.Fees] != p.Fee && p.Reversed < p.Amount:
			t.Fatalf("the fee is not what its row says: %+v %v", p, of)
		case p.ReturnsAt.IsZero() && p.Waits(b.session) && p.Match != flow.Excess && !b.givenUp(p.ID):
			t.Fatalf("it waits for ever: %+v", p)
		case !p.ReturnsAt.IsZero() && !p.Waits(b.session) && b.session.Policy.Underpayment != "refund": // what that could not send is sent again
			t.Fatalf("it goes back and waits for nothing: %+v of a session that is %s", p, b.session.Status)
		}
		if p.Match == flow.Partial && p.Resolution == flow.Unresolved && b.session.Policy.Underpayment != "refund" {
			held += p.Unapplied
		}
	}
	b.capped = b.capped || !b.session.Open() && held >= b.session.Amount
	live := map[flow.Method]int{}
	for _, a := range b.attempts {
		if a.Status == flow.AttemptActive {
			live[a.Method]++
		}
	}
	s, paid := b.session, b.session.Status == flow.SessionPaid
	asked := flow.Asking(b.attempts)
	for what, wrong := range map[string]bool{
		"the ledger does not sum to zero":           sum != 0,
		"the ledger does not know all that came":    clearing != b.came-b.gone,
		"more was paid than asked":                  s.AmountPaid > s.Amount || s.AmountPaid < 0,
		"paid was left":                             before.Status == flow.SessionPaid && !paid,
		"success is not told exactly once":          paid != (b.facts[flow.ChargeSuccess] == 1) || b.facts[flow.ChargeSuccess] > 1,
		"the fee is not that of all that was taken": fees != flow.Fee(taken),
		"a method has two live attempts":            live[flow.BankTransfer] > 1 || live[flow.Card] > 1,
		"an account asks for another amount":        s.Open() && asked.ID != "" && asked.Amount != s.Outstanding(),
		"it was paid with nothing":                  paid && s.AmountPaid == 0,
		"what is held is not what it counts":        !paid && s.AmountPaid != held && !b.capped,
		"it is not paid, and should be":             !paid && s.AmountPaid >= s.Amount,
		"it was paid with less and does not say":    paid && s.AmountPaid < s.Amount && !slices.Contains(s.Exceptions, flow.PartiallyPaid),
		"it was paid with all and says with less":   paid && s.AmountPaid == s.Amount && slices.Contains(s.Exceptions, flow.PartiallyPaid),
		"it counts not what was taken for it":       paid && s.AmountPaid != min(taken, s.Amount),
		"more was taken for it and it does not say": paid && taken > s.Amount && !slices.Contains(s.Exceptions, flow.Overpaid),
		"it holds a part and does not say":          !paid && s.AmountPaid > 0 && !slices.Contains(s.Exceptions, flow.PartiallyPaid),
		"it says that it holds a part, and not so":  !paid && s.AmountPaid == 0 && slices.Contains(s.Exceptions, flow.PartiallyPaid),
	} {
		if wrong {
			t.Fatalf("%s: %+v, ledger %v, facts %v", what, s, b.lines, b.facts)
		}
	}
}

// money lets some come for one of the attempts, at any value time.
func (b *books) money(t *rapid.T) {
	if len(b.attempts) == 0 {
		return
	}
	b.n++
	a := rapid.SampledFrom(b.attempts).Draw(t, "attempt")
	due := int64(max(b.session.Outstanding(), 1))
	amount := flow.Kobo(rapid.OneOf(rapid.Just(due), rapid.Int64Range(1, due), rapid.Int64Range(1, 2*due+10)).Draw(t, "amount"))
	at := b.now.Add(-time.Duration(rapid.IntRange(0, 120).Draw(t, "minutes ago")) * time.Minute)
	m := b.known(a)
	m.Notice, m.Payment = credit(fmt.Sprint("rail-", b.n), amount, at), flow.PaymentID(fmt.Sprint("wsp_pay_", b.n))
	c, err := flow.Settle(m)
	if err != nil {
		t.Fatalf("money was refused: %v", err)
	}
	outcomes := []flow.MatchStatus{flow.Matched, flow.Partial, flow.Excess, flow.Late, flow.Duplicate}
	if c.Payment == nil || c.Payment.Amount != amount || !slices.Contains(outcomes, c.Payment.Match) || len(c.Facts) != 1 || len(c.News) != 1 {
		t.Fatalf("money has no single outcome: %+v", c)
	}
	if b.early = 0; rapid.IntRange(0, 4).Draw(t, "taken before, of five") == 0 {
		b.early = rapid.SampledFrom([]flow.Kobo{amount, max(amount/2, 1)}).Draw(t, "taken before")
		c = c.Unsent(b.early)
		back := flow.TakenBack{RailTransactionID: fmt.Sprint("back-", b.n), Amount: b.early}
		c = c.Then(flow.TakeBack(*c.Session, flow.Asking(b.changed(c.Attempts)), *c.Payment, c.Postings, back))
	}
	b.keep(t, c)
	b.early = 0
}

// changed are the attempts as they are once some of them changed.
func (b *books) changed(by []flow.Attempt) []flow.Attempt {
	list := slices.Clone(b.attempts)
	for _, a := range by {
		list[slices.IndexFunc(list, func(x flow.Attempt) bool { return x.ID == a.ID })] = a
	}
	return list
}

// known is what is known when something is decided about an attempt's money.
func (b *books) known(a flow.Attempt) flow.Money {
	return flow.Money{Session: b.session, Attempt: a, Others: slices.Clone(b.attempts), Payments: slices.Clone(b.payments), Charge: "wsp_chg_1", Now: b.now}
}

// attempt is one of the attempts by its id.
func (b *books) attempt(id flow.AttemptID) flow.Attempt {
	return b.attempts[slices.IndexFunc(b.attempts, func(a flow.Attempt) bool { return a.ID == id })]
}

// resolve is the merchant deciding about some payment, or trying to.
func (b *books) resolve(t *rapid.T) {
	if len(b.payments) == 0 {
		return
	}
	p := rapid.SampledFrom(b.payments).Draw(t, "payment")
	accept := rapid.Bool().Draw(t, "accept")
	c, err := flow.Resolve(b.known(b.attempt(p.Attempt)), p, accept, flow.Ruled{By: "wsp_key_1", At: b.now})
	if may := p.Decidable(b.session); (err == nil) != may || err != nil && flow.CodeOf(err) != flow.CodeNotResolvable {
		t.Fatalf("%+v may be resolved: %v, and: %v", p, may, err)
	}
	if err != nil {
		return
	}
	b.keep(t, c)
	want := flow.ResolvedRefunded
	if accept {
		want = flow.ResolvedAccepted
	}
	if got := b.payment(p.ID); got.Resolution != want {
		t.Fatalf("it was resolved as %s: %+v", want, got)
	}
}

// reverse is the bank taking some of a payment back.
func (b *books) reverse(t *rapid.T) {
	if len(b.payments) == 0 {
		return
	}
	p := rapid.SampledFrom(b.payments).Draw(t, "payment")
	left := p.Amount - p.Reversed
	if left == 0 {
		return
	}
	b.n++
	amount := rapid.SampledFrom([]flow.Kobo{left, max(left/2, 1)}).Draw(t, "of it")
	b.calledOff(t, p.ID, amount)
	var booked []flow.Posting
	for account, sum := range b.lines[p.ID] {
		booked = append(booked, flow.Posting{Account: account, Amount: sum})
	}
	b.keep(t, flow.TakeBack(b.session, flow.Asking(b.attempts), *b.payment(p.ID), booked, flow.TakenBack{RailTransactionID: fmt.Sprint("back-", b.n), Amount: amount}))
	if amount < left || b.payment(p.ID).Refunded > 0 || b.own[p.ID] > 0 || b.sent[p.ID] > 0 { // or left besides
		return
	}
	for account, sum := range b.lines[p.ID] {
		if sum != 0 {
			t.Fatalf("all of %s was taken back, and %s still has %d of it", p.ID, account, sum)
		}
	}
}

// Whatever order notices, reversals, decisions of the merchant, the clock and the
// ends of a session come in, under whatever policy.
func TestWhateverHappensTheMoneyAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBooks(t)
		must := func(c flow.Change, err error) {
			if err != nil {
				t.Fatal(err)
			}
			b.keep(t, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"time passes": func(t *rapid.T) {
				b.now = b.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, 20 * time.Minute, 40 * time.Minute, 25 * time.Hour}).Draw(t, "so long"))
				for _, p := range slices.Clone(b.payments) {
					b.keep(t, flow.Overdue(b.session, p, b.now))
				}
			},
			"money":       b.money,
			"more money":  b.money,
			"resolve":     b.resolve,
			"reverse":     b.reverse,
			"refund":      b.refund,
			"send":        b.sends,
			"refunded":    b.refunded,
			"refund more": func(t *rapid.T) { b.refund(t); b.refunded(t) },
			"bounce":      b.bounced,
			"after all":   b.afterAll,
			"by hand":     b.byHand,
			"retry":       b.retry,
			"begin": func(t *rapid.T) {
				b.n++
				m := rapid.SampledFrom([]flow.Method{flow.BankTransfer, flow.Card}).Draw(t, "method")
				q := flow.Ask{Method: m, ID: flow.AttemptID(fmt.Sprint("wsp_att_", b.n)), Reference: fmt.Sprint("wsp_ref_", b.n)}
				a, c, err := flow.Begin(b.session, b.attempts, q, flow.Methods(), b.now)
				if (err == nil) != (b.session.Open() && b.now.Before(b.session.ExpiresAt)) {
					t.Fatalf("begin on %s: %v", b.session.Status, err)
				}
				for _, o := range flow.Offers(b.session, b.attempts, flow.Methods(), b.now) {
					had := o.Status == flow.OfferAvailable || o.Status == flow.OfferActive
					if o.Method == m && (had != (err == nil) || o.Status == flow.OfferActive && (a.ID == q.ID || a.Instructions == nil)) {
						t.Fatalf("%+v is offered, and whoever asks is given %+v, %v", o, a, err)
					}
				}
				coming := a.Method == flow.BankTransfer && a.Instructions == nil // it asks for what is left once it is there
				if err == nil && (!a.Live(b.now) || a.Amount != b.session.Outstanding() && !coming) {
					t.Fatalf("the payer is asked for %+v, %d is due", a, b.session.Outstanding())
				}
				b.keep(t, c)
			},
			"answer": func(t *rapid.T) {
				if len(b.attempts) > 0 {
					b.keep(t, flow.Started(b.session, rapid.SampledFrom(b.attempts).Draw(t, "attempt"), flow.Instructions{AccountNumber: "1"}))
				}
			},
			"decline": func(t *rapid.T) {
				if len(b.attempts) > 0 {
					must(flow.Decline(b.session, rapid.SampledFrom(b.attempts).Draw(t, "attempt"), flow.Notice{}))
				}
			},
			"lapse": func(t *rapid.T) {
				if len(b.attempts) > 0 {
					must(flow.Lapse(rapid.SampledFrom(b.attempts).Draw(t, "attempt"), b.attempts, b.now))
				}
			},
			"expire": func(*rapid.T) { must(flow.Expire(b.session, b.attempts, slices.Clone(b.payments), b.now)) },
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "of ten") > 0 {
					return
				}
				c, err := flow.Cancel(b.session, b.attempts, slices.Clone(b.payments), b.now)
				if (err == nil) != b.session.Open() {
					t.Fatalf("cancel of %s: %v", b.session.Status, err)
				}
				b.keep(t, c)
			},
		})
	})
}
