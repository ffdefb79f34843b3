package flow

import (
	"strings"
	"time"
)

// Resolution is what was decided about money that did not fit.
type Resolution string

// The resolutions of set-aside money.
const (
	Unresolved       Resolution = ""
	ResolvedAccepted Resolution = "ACCEPTED" // the merchant has it
	ResolvedRefunded Resolution = "REFUNDED" // it goes back to who paid it
)

// Who resolves, where it is not a merchant's key.
const (
	ByPolicy   = "policy"   // the session's policy
	ByClock    = "clock"    // nobody decided in time
	ByOperator = "operator" // who runs Till
)

// The reasons of refunds that no merchant gives one for.
const (
	byPolicy = "The session's policy sends this money back."
	byClock  = "Nobody decided about this money in time."
)

// Ruled is a decision about set-aside money: whose, when, and why in their words.
type Ruled struct {
	By     string
	At     time.Time
	Reason string
}

// Return is money that a decision sends back to who paid it: Amount of what is
// unapplied of a payment, in kobo.
type Return struct {
	Payment PaymentID
	Amount  Kobo
	Origin  RefundOrigin
	Reason  string
}

// resolved is the payment once it was decided about. Nothing of it waits for the
// clock any more.
func (p Payment) resolved(as Resolution, r Ruled) Payment {
	p.Resolution, p.ResolvedBy, p.ResolvedAt, p.ResolvedWhy, p.ReturnsAt = as, r.By, r.At, r.Reason, time.Time{}
	return p
}

// Decider says in words who decided about a payment: a person's name stands in the audit
// log alone.
func (p Payment) Decider() string {
	switch by := p.ResolvedBy; {
	case by == ByPolicy:
		return "the policy of the session"
	case by == ByClock:
		return "the clock"
	case strings.HasPrefix(by, PrefixKey):
		return "the API key " + by
	case strings.HasPrefix(by, PrefixAccount), strings.HasPrefix(by, PrefixPerson):
		return "somebody in the console"
	case by == ByOperator:
		return "the operator of this service"
	default:
		return by
	}
}

// held says whether money is held for the rest of it.
func (p Payment) held() bool {
	return p.Match == Partial && p.Resolution == Unresolved && p.Unapplied > 0
}

// Waits says whether a payment of a session, or of none, has money set aside that
// somebody must decide about. What is held for a session that is open waits for
// the rest instead.
func (p Payment) Waits(s Session) bool {
	return p.Resolution == Unresolved && p.Unapplied > 0 && (p.Match != Partial || !s.Open())
}

// Decidable says whether somebody may decide about a payment: it waits for that, or it
// is a part that goes back by policy while its session is open and could not yet.
func (p Payment) Decidable(s Session) bool {
	return p.Waits(s) || p.held() && s.Policy.Underpayment == "refund"
}

// Counts says whether a payment is among those that its session was paid with.
func (p Payment) Counts() bool {
	switch p.Match {
	case Matched, Excess:
		return true
	case Partial: // one that brought nothing more may still bear the fee of what the others did
		return p.Resolution != ResolvedRefunded || p.Applied > 0 || p.Fee > 0
	case Late:
		return p.Resolution == ResolvedAccepted || p.Applied > 0 || p.Fee > 0
	case Duplicate, Unmatched:
	}
	return false
}

// CountsFor says whether a payment is among those that a session was paid with, where
// it is not a part that the session's policy sends back, and that could not go yet.
func (p Payment) CountsFor(s Session) bool { return p.Counts() && !p.owedBack(s) }

// Resolve gives set-aside money to its merchant, or sends it back, because the
// merchant says so. m holds what is known of where p belongs, its session's
// payments with p among them. A session that was not paid is paid with it.
// Errors: payment_not_resolvable.
func Resolve(m Money, p Payment, accept bool, r Ruled) (Change, error) {
	if !p.Decidable(m.Session) {
		return Change{}, notResolvable(m.Session, p)
	}
	if !accept {
		return giveBack(m.Session, p, OriginResolve, r), nil
	}
	if m.Session.ID == "" || m.Session.Status == SessionPaid {
		return keepAside(m, p, r), nil
	}
	return payWith(m, p, r)
}

// Overdue sends set-aside money back that nobody decided about in time. Before
// its time, and once it was decided about, nothing happens.
func Overdue(s Session, p Payment, now time.Time) Change {
	if !p.Decidable(s) || p.ReturnsAt.IsZero() || now.Before(p.ReturnsAt) {
		return Change{}
	}
	return giveBack(s, p, OriginClock, Ruled{By: ByClock, At: now, Reason: byClock})
}

func notResolvable(s Session, p Payment) error {
	why := "nothing of it is set aside"
	switch {
	case p.Resolution != Unresolved:
		why = "it was decided about before"
	case p.held() && s.Open():
		why = "its session is open and waits for the rest"
	case p.Reversed == p.Amount:
		why = "the bank took it back"
	}
	refusal := Refuse(CodeNotResolvable, "Payment %s cannot be resolved: %s.", p.ID, why)
	refusal.Details = map[string]string{"matchStatus": string(p.Match), "unappliedMinor": p.Unapplied.Minor()}
	if p.Resolution != Unresolved {
		refusal.Details["resolution"] = string(p.Resolution)
	}
	return refusal
}

// giveBack sends what is set aside of a payment back to who paid it. That a part
// of it does not count any more is for its refund to say.
func giveBack(s Session, p Payment, origin RefundOrigin, r Ruled) Change {
	amount := p.Unapplied
	p = p.resolved(ResolvedRefunded, r)
	p.Refunded, p.Unapplied = p.Refunded+amount, 0
	change := Change{Payments: []Payment{p}, Returns: []Return{{Payment: p.ID, Amount: amount, Origin: origin, Reason: r.Reason}}}
	if s.ID != "" {
		change.News = []News{{Kind: NewsReturning, Attempt: p.Attempt, Payment: &p, Amount: amount}}
	}
	return change
}

// keepAside gives set-aside money to the merchant of a session that is paid
// already, or of none. A second payment bears a fee of its own, also where it is given
// in two; what belongs to the session counts towards what it was short of. Both bear
// what the fee of all that was taken of it rises by.
func keepAside(m Money, p Payment, r Ruled) Change {
	amount, taken := p.Unapplied, p.Applied
	if p.Counts() || p.Match == Late {
		taken = m.taken()
	}
	fee := Fee(taken+amount) - Fee(taken)
	change := Change{Entries: []Entry{p.accept(amount, fee, m.Now)}}
	if s := m.Session; s.ID != "" && (p.Counts() || p.Match == Late) {
		more := min(amount, s.Outstanding())
		if s.AmountPaid += more; s.AmountPaid == s.Amount {
			s = s.Without(PartiallyPaid)
		}
		if amount > more {
			s = s.With(Overpaid)
		}
		change.Session = &s
	}
	p = p.resolved(ResolvedAccepted, r)
	p.Fee, p.Applied, p.Unapplied = p.Fee+fee, p.Applied+amount, 0
	change.Payments = []Payment{p}
	if m.Session.ID != "" {
		change.News = []News{{Kind: NewsKept, Attempt: p.Attempt, Payment: &p, Amount: amount}}
	}
	return change
}

// aside is what is held for a session, in kobo.
func (m Money) aside() Kobo {
	var sum Kobo
	for _, p := range m.Payments {
		if p.held() {
			sum += p.Unapplied
		}
	}
	return sum
}

// taken is what was taken for a session so far, second payments apart, in kobo.
func (m Money) taken() Kobo {
	var sum Kobo
	for _, p := range m.Payments {
		if p.Counts() {
			sum += p.Applied
		}
	}
	return sum
}

// payWith pays a session that is over with set-aside money of its own: all that
// is held for it, and of late money what is due. What is beyond that is the
// merchant's too, or goes back where the policy says so.
func payWith(m Money, p Payment, r Ruled) (Change, error) {
	m = m.beside(p) // parts that were to go back and could not are counted only now
	amount := p.Unapplied
	more := min(amount, m.Session.Outstanding())
	beyond := amount - more
	change, err := m.pay(&p, more, beyond, p.Match == Late)
	if err != nil {
		return Change{}, err
	}
	if beyond > 0 && m.Session.Policy.Overpayment == "refund_excess" {
		change.Returns = append(change.Returns, Return{Payment: p.ID, Amount: beyond, Origin: OriginPolicy, Reason: byPolicy})
		p.Refunded, amount = p.Refunded+beyond, amount-beyond
	} else {
		p.Fee = Fee(change.Session.AmountPaid + beyond)
	}
	change.Entries = append(change.Entries, p.accept(amount, p.Fee, m.Now))
	p = p.resolved(ResolvedAccepted, r)
	p.Applied, p.Unapplied = p.Applied+amount, 0
	for i := range change.Payments { // what was held beside it was decided about with it
		if change.Payments[i].Unapplied == 0 && change.Payments[i].Resolution == Unresolved {
			change.Payments[i] = change.Payments[i].resolved(ResolvedAccepted, r)
		}
	}
	change.Payments = append(change.Payments, p)
	return change, nil
}

// Accepting is what becomes of money once a payment is accepted, in kobo: what the
// merchant is given, of what is held beside it too where its session is paid with it,
// and what is too much of that and goes back because the policy says so.
func Accepting(m Money, p Payment) (given, back Kobo) {
	if m.Session.ID == "" || m.Session.Status == SessionPaid {
		return p.Unapplied, 0
	}
	m = m.beside(p)
	if m.Session.Policy.Overpayment != "refund_excess" {
		return p.Unapplied + m.Session.AmountPaid, 0
	}
	all := p.Unapplied + m.aside()
	given = min(all, m.Session.Amount)
	return given, all - given
}

// Moves is how much money a decision about a payment moves, in kobo: what is set aside
// of it and, where its session is paid with it, what is held beside it too.
func Moves(m Money, p Payment, accept bool) Kobo {
	if !accept {
		return p.Unapplied
	}
	given, back := Accepting(m, p)
	return given + back
}

// Complete pays a session that is open with all that is held for it, once that is
// enough: a part stays after all because its refund failed, and the rest came
// meanwhile. p is that part as it is by now. Nothing happens while it is not enough.
func Complete(m Money, p Payment) (Change, error) {
	if !m.Session.Open() || m.Session.Policy.Underpayment == "refund" || !p.held() || m.aside() < m.Session.Amount {
		return Change{}, nil
	}
	m = m.beside(p)
	more := min(p.Unapplied, m.Session.Outstanding())
	beyond := p.Unapplied - more
	for _, q := range m.Payments {
		if q.held() && q.PaidAt.After(m.Notice.PaidAt) {
			m.Notice.PaidAt = q.PaidAt
		}
	}
	change, err := m.pay(&p, more, beyond, false)
	if err != nil {
		return Change{}, err
	}
	change.Entries = append(change.Entries, p.accept(more, p.Fee, m.Now))
	p.Applied, p.Unapplied = p.Applied+more, beyond
	p = m.beyond(&change, p)
	change.Payments = append(change.Payments, p)
	return change, nil
}

// accept is the ledger's transaction that gives set-aside money of a payment to
// its merchant; fee of it is ours. A payment has another one each time some of it
// was to go back and could not: how much was its merchant's before tells them apart.
func (p Payment) accept(amount, fee Kobo, now time.Time) Entry {
	subject := string(p.ID)
	if p.Applied > 0 {
		subject += "/" + p.Applied.Minor()
	}
	return Entry{
		Kind: EntryAccept, Subject: subject, Payment: p.ID, Project: p.Project, At: now,
		Postings: lines(Posting{Account: Unapplied, Amount: amount}, Posting{Account: MerchantPending, Amount: fee - amount}, Posting{Account: Fees, Amount: -fee}),
	}
}
