package flow

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// This file compares three accounts of the same money: what the rail says that
// it moved, what the ledger booked, and what merchants were told.

// MovementKind says what moved at a rail.
type MovementKind string

// The kinds of movement.
const (
	MovePayment        MovementKind = "payment"         // money came in
	MoveReversal       MovementKind = "reversal"        // the bank took some of it back
	MoveRefund         MovementKind = "refund"          // we sent it back
	MoveRefundReturned MovementKind = "refund_returned" // what we sent back came back
	MovePayout         MovementKind = "payout"          // a merchant was paid out
	MovePayoutReturned MovementKind = "payout_returned" // what was paid out came back
)

// MovementKinds are all kinds of movement, in the order of a payment's life.
func MovementKinds() []MovementKind {
	return []MovementKind{MovePayment, MoveReversal, MoveRefund, MoveRefundReturned, MovePayout, MovePayoutReturned}
}

// MovementOf is what moved at the rail in a ledger transaction, "" for one that
// moves nothing there.
func MovementOf(k EntryKind) MovementKind {
	switch k {
	case EntryPayment:
		return MovePayment
	case EntryReversal:
		return MoveReversal
	case EntryRefundPaid:
		return MoveRefund
	case EntryRefundReturned:
		return MoveRefundReturned
	case EntrySettlePaid:
		return MovePayout
	case EntrySettleReturned:
		return MovePayoutReturned
	case EntryAccept, EntryRefund, EntryRefundFailed, EntrySettle, EntrySettleFailed:
	}
	return ""
}

// Movement is one movement of money at a rail, as one of the three tells it.
// Amount is in kobo: positive for what came in, negative for what went out.
type Movement struct {
	RailTransactionID string
	Kind              MovementKind
	Amount            Kobo
	ValueAt           time.Time // the bank's value time
	BookedAt          time.Time // of the ledger's
	Entry             EntryKind // of the ledger's: the transaction
	Subject           string    // of the ledger's: what the transaction is about; of the rail's: our reference
	Payment           PaymentID
	Session           SessionID
	Project           ProjectID
	Silent            bool // of the ledger's: nobody is told of it
}

// MovementSaid is what a notice of a statement says that moved; false for one
// that tells of no money.
func MovementSaid(n Notice) (Movement, bool) {
	m := Movement{RailTransactionID: n.RailTransactionID, Amount: n.Amount, ValueAt: n.PaidAt, Subject: n.Reference, Project: n.Collects}
	payout := strings.HasPrefix(n.Reference, PrefixSettlement)
	switch n.Kind {
	case Credit:
		m.Kind = MovePayment
	case Reversal:
		m.Kind, m.Amount = MoveReversal, -n.Amount
	case PaidOut:
		m.Kind, m.Amount = MoveRefund, -n.Amount
		if payout {
			m.Kind = MovePayout
		}
	case PayoutFailed:
		if n.Reverses == "" { // nothing was sent
			return Movement{}, false
		}
		m.Kind = MoveRefundReturned
		if payout {
			m.Kind = MovePayoutReturned
		}
	case Declined, Pending, Returned:
		return Movement{}, false
	}
	return m, m.RailTransactionID != ""
}

// DifferenceKind says how the three disagree.
type DifferenceKind string

// The kinds of difference.
const (
	MissingInLedger     DifferenceKind = "missing_in_ledger"     // the rail moved it, and it is not booked
	MissingAtRail       DifferenceKind = "missing_at_rail"       // it is booked, and the rail does not know of it
	AmountDiffers       DifferenceKind = "amount_differs"        // the rail and the ledger give two amounts
	TwiceAtRail         DifferenceKind = "twice_at_rail"         // the statement lists it more than once
	TwiceInLedger       DifferenceKind = "twice_in_ledger"       // it is booked more than once
	MissingEvent        DifferenceKind = "missing_event"         // it is booked, and its merchant was not told
	EventDiffers        DifferenceKind = "event_amount_differs"  // its merchant was told another amount
	EventWithoutBooking DifferenceKind = "event_without_booking" // a merchant was told of what is not booked
)

// Difference is one movement that the three do not agree about. The amounts are
// what each of them says, nil where it says nothing.
type Difference struct {
	Kind              DifferenceKind
	Movement          MovementKind
	RailTransactionID string
	Payment           PaymentID
	Session           SessionID
	Project           ProjectID
	Subject           string
	ValueAt           time.Time
	Rail              *Kobo
	Ledger            *Kobo
	Event             *Kobo
}

// Total is how many movements there were and what they come to, in kobo.
type Total struct {
	Count  int
	Amount Kobo
}

// Totals are the totals of each kind of movement that there was.
func Totals(list []Movement) map[MovementKind]Total {
	out := map[MovementKind]Total{}
	for _, m := range list {
		t := out[m.Kind]
		t.Count++
		t.Amount += m.Amount
		out[m.Kind] = t
	}
	return out
}

// told is what the three say of one movement.
type told struct{ rail, ledger, events []Movement }

// Reconcile compares the movements of the rail with those of the ledger and with
// what merchants were told, by the rail's names. Every difference is given once,
// by value time; none means that all three agree to the kobo. What is booked and
// Silent needs no event; what is told in several events must be told alike.
func Reconcile(rail, ledger, events []Movement) []Difference {
	all := map[string]*told{}
	of := func(m Movement) *told {
		if all[m.RailTransactionID] == nil {
			all[m.RailTransactionID] = &told{}
		}
		return all[m.RailTransactionID]
	}
	for _, m := range rail {
		t := of(m)
		t.rail = append(t.rail, m)
	}
	for _, m := range ledger {
		t := of(m)
		t.ledger = append(t.ledger, m)
	}
	for _, m := range events {
		t := of(m)
		t.events = append(t.events, m)
	}
	var out []Difference
	for _, t := range all {
		out = append(out, t.differences()...)
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(a.ValueAt.Compare(b.ValueAt), cmp.Compare(a.RailTransactionID, b.RailTransactionID), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// differences are those about one movement.
func (t told) differences() []Difference {
	var out []Difference
	add := func(kind DifferenceKind, wrong bool) {
		if wrong {
			out = append(out, t.difference(kind))
		}
	}
	atRail, booked, heard := len(t.rail) > 0, len(t.ledger) > 0, len(t.events) > 0
	add(TwiceAtRail, len(t.rail) > 1)
	add(TwiceInLedger, len(t.ledger) > 1)
	add(MissingInLedger, atRail && !booked)
	add(MissingAtRail, booked && !atRail)
	add(EventWithoutBooking, heard && !booked)
	add(AmountDiffers, atRail && booked && t.rail[0].Amount != t.ledger[0].Amount)
	add(MissingEvent, booked && !heard && !t.ledger[0].Silent)
	add(EventDiffers, booked && slices.ContainsFunc(t.events, func(e Movement) bool { return e.Amount != t.ledger[0].Amount }))
	return out
}

// difference is one about a movement, with what each of the three says of it: the
// ledger knows best whose it is.
func (t told) difference(kind DifferenceKind) Difference {
	d := Difference{Kind: kind}
	for _, list := range [][]Movement{t.ledger, t.rail, t.events} {
		if len(list) == 0 {
			continue
		}
		m := list[0]
		d.Movement, d.RailTransactionID, d.ValueAt = cmp.Or(d.Movement, m.Kind), m.RailTransactionID, cmp.Or(d.ValueAt, m.ValueAt)
		d.Payment, d.Session, d.Project, d.Subject = cmp.Or(d.Payment, m.Payment), cmp.Or(d.Session, m.Session), cmp.Or(d.Project, m.Project), cmp.Or(d.Subject, m.Subject)
	}
	amount := func(list []Movement) *Kobo {
		if len(list) == 0 {
			return nil
		}
		return &list[0].Amount
	}
	d.Rail, d.Ledger, d.Event = amount(t.rail), amount(t.ledger), amount(t.events)
	if kind == EventDiffers {
		i := slices.IndexFunc(t.events, func(e Movement) bool { return e.Amount != t.ledger[0].Amount })
		d.Event = &t.events[i].Amount
	}
	return d
}
