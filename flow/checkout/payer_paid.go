package checkout

import (
	"context"
	"slices"

	"till/flow"
	"till/flow/store"
)

// This file is about who paid for a session: whoever it was made for, or somebody else
// in a chat of their own.

// paid are the payments for a session, a payer's and those of others, and what the
// payer's chats chose. One that no chat chose is of whom the session was made for: own
// says that it was made for the payer.
func (p Payer) paid(ctx context.Context, r store.Reader, id flow.SessionID, own bool) (theirs, others []flow.Payment, chosen []flow.Attempt, err error) {
	attempts, err := r.Attempts(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	payments, err := r.Payments(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	chats := map[flow.AttemptID]flow.ChatID{}
	for _, a := range attempts {
		if chats[a.ID] = a.Chat; p.has(a.Chat) {
			chosen = append(chosen, a)
		}
	}
	for _, one := range payments {
		if chat := chats[one.Attempt]; p.has(chat) || own && chat == "" {
			theirs = append(theirs, one)
		} else {
			others = append(others, one)
		}
	}
	return theirs, others, chosen, nil
}

// Things are the ids of what is a payer's: their sessions and chats, what was paid and
// sent back for these, and the events that told of it. Whoever does something about one
// says why, in words that name them.
func (p Payer) Things(ctx context.Context, r store.Reader) ([]string, error) {
	var ids []string
	for _, c := range p.Chats {
		ids = append(ids, string(c.ID))
	}
	for i, s := range slices.Concat(p.Sessions, p.Beside) {
		own := i < len(p.Sessions)
		payments, _, _, err := p.paid(ctx, r, s.ID, own)
		if err != nil {
			return nil, err
		}
		for _, one := range payments {
			ids = append(ids, string(one.ID))
		}
		refunds, err := r.Refunds(ctx, store.RefundFilter{Project: s.Project, Session: s.ID, Limit: maxPayerNotes})
		if err != nil {
			return nil, err
		}
		for _, one := range refunds {
			if own || slices.Contains(ids, string(one.Payment)) {
				ids = append(ids, string(one.ID))
			}
		}
		if !own {
			continue
		}
		events, err := r.Events(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, string(s.ID))
		for _, one := range events {
			ids = append(ids, string(one.ID))
		}
	}
	return ids, nil
}

// has says whether a chat is one of the payer's.
func (p Payer) has(chat flow.ChatID) bool {
	return slices.ContainsFunc(p.Chats, func(c store.ChatRow) bool { return c.ID == chat })
}

// somebodyElse stands for who paid, where that is not whom it is told.
const somebodyElse = "somebody else"

// othersWhoPaid puts somebodyElse in the place of others who paid for sessions that a
// payer is told of: one link may be opened by many, and what a bank says of one is
// none of the others' business.
func (p Payer) othersWhoPaid(ctx context.Context, r store.Reader) (*blotter, error) {
	var who, own []string
	for i, s := range slices.Concat(p.Sessions, p.Beside) {
		theirs, others, _, err := p.paid(ctx, r, s.ID, i < len(p.Sessions))
		if err != nil {
			return nil, err
		}
		for _, one := range theirs {
			own = append(own, one.Payer.Name, one.Payer.AccountNumberMasked)
		}
		for _, one := range others {
			who = append(who, one.Payer.Name, one.Payer.AccountNumberMasked)
		}
	}
	who = slices.DeleteFunc(who, func(w string) bool { return slices.Contains(own, w) })
	return newBlotter(about{written: who}, somebodyElse), nil
}
