package checkout

import (
	"encoding/json"
	"fmt"
	"slices"

	"till/flow"
	"till/flow/store"
)

// bookings finds what an event tells of.
type bookings struct {
	named map[string]flow.Movement
	by    map[string][]flow.Movement // by kind and what it is about, oldest first
}

// newBooked has what is booked, and what went back of its payments on other days too: so
// much was told of each, and no event stands for a movement of another day.
func newBooked(ledger, back []flow.Movement) *bookings {
	b := &bookings{named: map[string]flow.Movement{}, by: map[string][]flow.Movement{}}
	for _, m := range ledger {
		b.named[m.RailTransactionID] = m
	}
	all := slices.Concat(ledger, slices.DeleteFunc(slices.Clone(back), func(m flow.Movement) bool { return b.has(m) }))
	slices.SortStableFunc(all, func(x, y flow.Movement) int { return x.BookedAt.Compare(y.BookedAt) })
	for _, m := range all {
		about := string(m.Payment)
		switch m.Kind {
		case flow.MoveRefundReturned: // of a refund that nobody is told of as well: the amount tells them apart
			about += " " + m.Amount.Minor()
		case flow.MovePayoutReturned: // its subject is the rail's name
			about = string(m.Project)
		case flow.MovePayment, flow.MoveReversal, flow.MoveRefund, flow.MovePayout:
		}
		b.by[string(m.Kind)+" "+about] = append(b.by[string(m.Kind)+" "+about], m)
	}
	return b
}

// has says whether a movement is among those that are compared.
func (b *bookings) has(m flow.Movement) bool {
	_, here := b.named[m.RailTransactionID]
	return here
}

// next is the oldest movement of a kind about something that no event told of yet;
// false where that is none of these.
func (b *bookings) next(kind flow.MovementKind, about string) (flow.Movement, bool) {
	key := string(kind) + " " + about
	list := b.by[key]
	if len(list) == 0 {
		return flow.Movement{}, false
	}
	b.by[key] = list[1:]
	if !b.has(list[0]) {
		return flow.Movement{}, false
	}
	return list[0], true
}

// moneyTold is what events say of money.
type moneyTold struct {
	Data struct {
		ID                string `json:"id"`
		PaymentID         string `json:"paymentId"`
		AmountMinor       string `json:"amountMinor"`
		RailTransactionID string `json:"railTransactionId"`
		Payment           *struct {
			ID                string `json:"id"`
			AmountMinor       string `json:"amountMinor"`
			RailTransactionID string `json:"railTransactionId"`
		} `json:"payment"`
	} `json:"data"`
}

// toldBy is the movement that an event tells of, with the amount that it gives.
// false where that is none of these; its name is then what the event calls it.
func (b *bookings) toldBy(e store.MoneyEvent) (flow.Movement, bool, error) {
	var told moneyTold
	if err := json.Unmarshal(e.Body, &told); err != nil {
		return flow.Movement{}, false, fmt.Errorf("read the event %s: %w", e.ID, err)
	}
	data := told.Data
	name, text, sign, kind := data.RailTransactionID, data.AmountMinor, flow.Kobo(1), flow.MovePayment
	switch e.Kind { //nolint:exhaustive // all others name a payment, or nothing that moved
	case flow.ChargeReversed: // it tells of all that was taken back so far
		if data.Payment == nil {
			return flow.Movement{}, false, nil
		}
		m, ok := b.next(flow.MoveReversal, data.Payment.ID)
		return m, ok, nil
	case flow.PaymentReversed:
		m, ok := b.next(flow.MoveReversal, data.ID)
		return m, ok, nil
	case flow.RefundAttentionKind:
		if data.RailTransactionID == "" { // nothing was sent
			return flow.Movement{}, false, nil
		}
		m, ok := b.next(flow.MoveRefundReturned, data.PaymentID+" "+data.AmountMinor)
		return m, ok, nil
	case flow.RefundProcessedKind:
		sign, kind = -1, flow.MoveRefund
	case flow.SettlementSuccessKind:
		if name == "" { // its bank gave it none
			m, ok := b.named[data.ID]
			return m, ok, nil
		}
		sign, kind = -1, flow.MovePayout
	case flow.SettlementFailedKind:
		if data.RailTransactionID == "" { // nothing was sent
			return flow.Movement{}, false, nil
		}
		m, ok := b.next(flow.MovePayoutReturned, string(e.Project))
		return m, ok, nil
	default:
		if data.Payment != nil {
			name, text = data.Payment.RailTransactionID, data.Payment.AmountMinor
		}
	}
	if name == "" { // nothing moved at the rail
		return flow.Movement{}, false, nil
	}
	m, here := b.named[name]
	if !here { // of another day, or of none
		m = flow.Movement{RailTransactionID: name, Kind: kind, Session: e.Session, Project: e.Project}
	}
	amount, err := flow.ParseMinor(text)
	m.Amount = sign * amount
	return m, here, err
}
