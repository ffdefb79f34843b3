package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"till/flow/store/lite"
)

// What holds of money, in words of our own: none of this is asked of the service.
const (
	grace     = 5 * time.Minute
	flatFrom  = 250_000
	flat      = 10_000
	capOfFees = 200_000
)

// feeOf is the fee of the price list: 1.5 %, rounded half up, and ₦100 from
// ₦2,500 up, at most ₦2,000.
func feeOf(kobo int64) int64 {
	fee := (kobo*15 + 500) / 1000
	if kobo >= flatFrom {
		fee += flat
	}
	return min(fee, capOfFees)
}

// outcome is the one outcome that money has, and how much of it is taken for the
// merchant, from what was known in the moment before.
func outcome(s *sessionRow, amount, paidAt int64) (match string, applied int64) {
	if s == nil {
		return "UNMATCHED", 0
	}
	due := max(s.amount-s.paid, 0)
	take := func() (string, int64) {
		switch {
		case amount < due:
			return "PARTIAL", amount
		case amount > due:
			return "EXCESS", due
		}
		return "MATCHED", amount
	}
	tooLate := func(end int64) bool { return paidAt > end+grace.Milliseconds() }
	open := s.status == "PENDING" || s.status == "PROCESSING"
	late := func() (string, int64) {
		if s.late == "accept" && (amount >= due || s.under == "accept") {
			return take()
		}
		return "LATE", 0
	}
	switch {
	case s.status == "PAID":
		return "DUPLICATE", 0
	case (open || s.status == "EXPIRED") && tooLate(s.expires), s.status == "CANCELLED":
		return late()
	case amount < due:
		switch {
		case s.under == "accept":
			return take()
		case s.under != "refund" && !open:
			return late()
		}
		return "PARTIAL", 0
	}
	return take()
}

func (e *ledgerBook) takePayment(m move) error {
	w := e.w
	p := &paymentRow{
		id: m.id, session: m.more[0], match: m.now, amount: whole(m.more[2]), fee: whole(m.more[3]), at: whole(m.more[4]), railID: m.more[5],
	}
	n := len(e.payments) + 1
	s, a := e.sessions[p.session], e.attempts[m.more[1]]
	if s != nil {
		s.payments++
		s.money = append(s.money, m.id)
		w.name(m.id, fmt.Sprintf("%s.money%d", w.called(p.session), s.payments))
	} else {
		w.name(m.id, fmt.Sprintf("stray%d", n))
	}
	e.payments[m.id] = p
	w.goals.reached("outcome", m.now, w)
	w.saw("payment %s of %d: %s", w.called(m.id), p.amount, m.now)
	credit, known := w.booked(p.railID)
	switch {
	case e.name == "live":
		w.breaks("I9", "money in the live environment, which has no bank: %s", p.railID)
	case !known || credit.Kind != "credit":
		w.breaks("I2", "payment %s is of %s, which the bank never booked", w.called(m.id), p.railID)
	case credit.Amount != p.amount:
		w.breaks("I2", "payment %s is of %d kobo, and the bank booked %d", w.called(m.id), p.amount, credit.Amount)
	case credit.ValueTime.UnixMilli() != p.at:
		w.breaks("I3", "payment %s came at %d by the bank, and is kept with %d", w.called(m.id), credit.ValueTime.UnixMilli(), p.at)
	}
	match, applied := outcome(s, p.amount, p.at)
	if p.applied = applied; applied == 0 {
		e.owes(tellsOfPayment[m.now], p.session)
	}
	if match != p.match {
		w.breaks("I3", "payment %s of %d kobo is %s and should be %s (session %+v, attempt %+v, paid at %d)", w.called(m.id), p.amount, p.match, match, s, a, p.at)
		return nil
	}
	fee := int64(0)
	if applied > 0 {
		fee = feeOf(s.paid + applied)
	}
	if p.fee != fee {
		w.breaks("I2", "the fee of %s is %d kobo and should be %d", w.called(m.id), p.fee, fee)
	}
	return nil
}

// takeLedger judges a line of the ledger: it sums to zero, money at the bank is
// money that the bank tells of, once, and no payment gives back what it did not
// bring.
func (e *ledgerBook) takeLedger(m move) error {
	w := e.w
	var v [7]int64
	sum := int64(0)
	for i := range v {
		v[i] = whole(m.more[i])
		sum += v[i]
		e.total[i] += v[i]
	}
	railID, project := m.more[7], m.more[8]
	kind, subject, _ := strings.Cut(m.id, "/")
	w.saw("ledger %s %s %v", kind, w.called(subject), v)
	w.goals.reached("ledger", kind, w)
	if sum != 0 {
		w.breaks("I1", "%s sums to %d", w.canonical(m.id), sum)
	}
	if v[railClearing] != 0 {
		e.atTheBank(kind, railID, v[railClearing])
	}
	o := e.owners[project]
	if o == nil {
		o = &owner{}
		e.owners[project] = o
	}
	for i := range v {
		o[i] += v[i]
	}
	if kind == "settle" {
		e.judgeSettle(subject, v, o)
	}
	p := e.payments[m.now]
	if p == nil {
		return nil
	}
	if kind == "reversal" {
		p.reversed = true
	}
	for i := range v {
		p.account[i] += v[i]
	}
	if kind == "payment" || kind == "accept" {
		p.given -= v[merchantPending] + v[fees]
	}
	if kind == "refund" && v[merchantPending] > 0 && p.account[unapplied] < 0 {
		w.breaks("I2", "%s takes %d kobo of its merchant, while %d of that money lie aside", w.called(subject), v[merchantPending], -p.account[unapplied])
	}
	if kind == "payment" {
		want := [7]int64{railClearing: p.amount, merchantPending: p.fee - p.applied, fees: -p.fee, unapplied: p.applied - p.amount}
		if v != want {
			w.breaks("I2", "payment %s is posted as %v and should be %v", w.called(p.id), v, want)
		}
	}
	if !p.reversed && (p.account[railClearing] < 0 || p.account[unapplied] > 0 || p.account[refundsPayable] > 0) {
		w.breaks("I2", "of payment %s more went back than came: %v", w.called(p.id), p.account)
	}
	return nil
}

// atTheBank holds a line of the ledger against what the bank itself booked.
func (e *ledgerBook) atTheBank(kind, railID string, amount int64) {
	w := e.w
	b, known := w.booked(railID)
	if !known {
		w.breaks("I2", "%s of %d kobo at the bank is of %q, which the bank never booked", kind, amount, railID)
		return
	}
	if was, twice := e.railIDs[railID]; twice {
		w.breaks("I2", "%s was posted twice, as %s and %s", railID, was, kind)
	}
	e.railIDs[railID] = kind
	want := b.Amount
	if b.Kind == "reversal" || b.Kind == "paid_out" {
		want = -want
	}
	if amount != want {
		w.breaks("I2", "%s posts %d kobo, and the bank booked %d", kind, amount, want)
	}
}

// booked finds what the bank booked, in its own words.
func (w *world) booked(railID string) (moved, bool) {
	w.mu.Lock()
	m, ok := w.bank.moves[railID]
	w.mu.Unlock()
	if ok && (m.Kind != "pending") {
		return m, true
	}
	if err := w.statement(); err != nil {
		w.breaks("sim", "read the bank's statement: %v", err)
		return moved{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok = w.bank.moves[railID]
	return m, ok
}

// statement reads all that the bank booked, from the bank.
func (w *world) statement() error {
	list, err := w.bank.player.Statement(context.Background(), epoch.Add(-time.Hour), w.now().Add(time.Hour)) // the bank is the world's own
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range list {
		w.bank.moves[n.RailTransactionID] = moved{
			ID: n.RailTransactionID, Kind: string(n.Kind), Reference: n.Reference, Amount: int64(n.Amount), ValueTime: n.PaidAt, Reverses: n.Reverses, Account: n.AccountNumber,
		}
	}
	return nil
}

// judgeSettle judges what a payout takes: the lines that are its own, each of
// which is nobody else's, and all that lay available.
func (e *ledgerBook) judgeSettle(id string, v [7]int64, after *owner) {
	w := e.w
	var net, lines, odd, last int64
	on := ""
	err := e.conn.Each(`SELECT coalesce(sum(i.net), 0), count(*), coalesce(sum(CASE WHEN i.net <> -l.merchant_pending THEN 1 ELSE 0 END), 0), coalesce(max(CASE WHEN i.net > 0 THEN i.created_at END), 0),
 (SELECT settles_on FROM settlements WHERE id = ?) FROM settlement_items i JOIN ledger l ON l.kind = i.kind AND l.subject = i.subject WHERE i.settlement = ?`,
		[]any{id, id}, func(scan lite.Scanner) error { return scan(&net, &lines, &odd, &last, &on) })
	if err != nil {
		w.breaks("sim", "read the lines of a settlement: %v", err)
	}
	if net != v[merchantPending] || odd != 0 || lines == 0 && net != 0 {
		w.breaks("I2", "%s pays %d kobo for lines that come to %d (%d of them are not what the ledger says)", w.called(id), v[merchantPending], net, odd)
	}
	if ends := dueUntil(on); last >= ends.UnixMilli() {
		w.breaks("I2", "%s of %s pays what came at %s, and is due from %s on alone", w.called(id), on, clockOf(time.UnixMilli(last).Sub(epoch)), on)
	}
	if after[merchantAvailable] != 0 {
		w.breaks("I2", "%s takes %d kobo that lay available, and leaves %d", w.called(id), v[merchantAvailable], -after[merchantAvailable])
	}
}
