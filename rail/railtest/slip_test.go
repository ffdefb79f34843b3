package railtest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"till/flow"
	"till/rail"
)

// out is an order to send money out, as the slip has it.
type out struct {
	flow.Disbursement

	at      time.Time
	refused bool
	held    bool
}

// reached is why a call does not reach the provider, or nil.
func (s slip) reached(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", rail.ErrUnavailable, ctx.Err())
	}
	if s.lost || !s.state.Up {
		return rail.ErrUnavailable
	}
	return nil
}

func (s slip) Disburse(ctx context.Context, d flow.Disbursement) (flow.Disbursed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reached(ctx); err != nil {
		return flow.Disbursed{}, err
	}
	s.log("disburse", d.Reference)
	was, known := s.outs[d.Reference]
	if known && was.Disbursement != d {
		return flow.Disbursed{}, rail.ErrRejected
	}
	if !known {
		fate := s.fate(d.Kind)
		was = &out{Disbursement: d, at: s.now, held: fate == rail.FatePending, refused: fate == rail.FateReject || !s.covered(d)}
		s.outs[d.Reference] = was
		if !was.held && !was.refused {
			s.send(was, fate)
		}
	}
	switch {
	case was.refused:
		return flow.Disbursed{}, rail.ErrRejected
	case s.state.TimeoutAfterCommit:
		return flow.Disbursed{}, rail.ErrUnknown
	}
	return s.became(was), nil
}

func (s slip) Disbursed(ctx context.Context, reference string) (flow.Disbursed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reached(ctx); err != nil {
		return flow.Disbursed{}, err
	}
	if s.state.TimeoutAfterCommit {
		return flow.Disbursed{}, rail.ErrUnknown
	}
	d, known := s.outs[reference]
	if !known || d.refused {
		return flow.Disbursed{}, rail.ErrNotFound
	}
	return s.became(d), nil
}

func (s slip) Statement(ctx context.Context, from, to time.Time) ([]flow.Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reached(ctx); err != nil {
		return nil, err
	}
	var lines []flow.Notice
	for _, m := range s.moves {
		n := s.said(m)
		moved := n.Kind == flow.Credit || n.Kind == flow.Reversal || n.Kind == flow.PaidOut || n.Kind == flow.PayoutFailed && n.Reverses != ""
		if moved && !n.PaidAt.Before(from) && n.PaidAt.Before(to) {
			lines = append(lines, n)
		}
	}
	slices.SortStableFunc(lines, func(a, b flow.Notice) int { return a.PaidAt.Compare(b.PaidAt) })
	return lines, nil
}

func (b *books) fate(kind flow.DisbursementKind) rail.Fate {
	if kind == flow.DisburseRefund {
		return b.state.Refunds
	}
	return b.state.Payouts
}

// covered says whether the money for an order is there: at the provider, and in
// the credit that a refund is of.
func (b *books) covered(d flow.Disbursement) bool {
	var lies, left flow.Kobo
	failed := map[string]bool{}
	for _, m := range b.moves {
		n := b.said(m)
		switch {
		case n.Kind == flow.PayoutFailed:
			failed[n.Reference] = true
			continue
		case n.Kind == flow.Reversal:
			n.Amount = -n.Amount
		case n.Kind != flow.Credit:
			continue
		}
		lies += n.Amount
		if n.RailTransactionID == d.Credit || n.Reverses == d.Credit {
			left += n.Amount
		}
	}
	for reference, o := range b.outs {
		if o.refused || failed[reference] {
			continue
		}
		lies -= o.Amount
		if o.Credit == d.Credit {
			left -= o.Amount
		}
	}
	return d.Amount > 0 && d.Amount <= lies && (d.Kind == flow.DisbursePayout || d.Amount <= left)
}

// send puts on paper what becomes of an order: it lands a second from now.
func (b *books) send(d *out, fate rail.Fate) {
	lands := b.now.Add(time.Second)
	n := flow.Notice{
		Kind: flow.PaidOut, Reference: d.Reference, AccountNumber: d.To.Number, Amount: d.Amount, Channel: flow.BankTransfer, PaidAt: lands,
	}
	if fate == rail.FateFail || fate == rail.FateReject {
		n.Kind, n.Reason = flow.PayoutFailed, "no"
	}
	sent := b.book(move{Notice: n, lands: lands})
	if fate == rail.FateBounce {
		n.Kind, n.Reason, n.Reverses, n.PaidAt = flow.PayoutFailed, "back", sent.RailTransactionID, lands.Add(time.Second)
		b.book(move{Notice: n, lands: n.PaidAt})
	}
}

// became is where an order stands now.
func (b *books) became(d *out) flow.Disbursed {
	got := flow.Disbursed{Status: flow.DisbursementPending, At: d.at}
	for _, m := range b.moves {
		switch n := b.said(m); {
		case n.Reference != d.Reference || n.Kind == flow.Pending:
		case n.Kind == flow.PaidOut:
			got = flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: n.RailTransactionID, At: n.PaidAt}
		default:
			got = flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: n.RailTransactionID, At: n.PaidAt, Reason: n.Reason, Reverses: n.Reverses}
		}
	}
	return got
}

// release sends what was held, when the conditions let it.
func (b *books) release() {
	var free []*out
	for _, d := range b.outs {
		if d.held && b.fate(d.Kind) != rail.FatePending {
			free = append(free, d)
		}
	}
	slices.SortFunc(free, func(a, c *out) int { return cmp.Compare(a.Reference, c.Reference) })
	for _, d := range free {
		d.held = false
		b.send(d, b.fate(d.Kind))
	}
}
