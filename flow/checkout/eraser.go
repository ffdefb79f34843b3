package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// eraser takes a payer out of what is theirs, in one transaction.
type eraser struct {
	tx     *store.Tx
	p      Payer
	as     string
	blot   *blotter // of what is theirs
	others *blotter // of what is somebody else's: what merchants wrote stays there
	names  []string
	out    *Forgot
}

func newEraser(tx *store.Tx, p Payer, a about, as string, out *Forgot) eraser {
	e := eraser{tx: tx, p: p, as: as, blot: newBlotter(a, as), names: a.names, out: out}
	a.written = nil
	e.others = newBlotter(a, as)
	return e
}

// blotOf is what takes the payer out of what hangs on a session.
func (e *eraser) blotOf(own bool) *blotter {
	if own {
		return e.blot
	}
	return e.others
}

// session takes the customer out of a session.
func (e *eraser) session(ctx context.Context, s flow.Session) error {
	reference, err := e.reference(ctx, s)
	if err != nil {
		return err
	}
	if err := e.tx.ForgetSession(ctx, s, e.as, reference); err != nil {
		return err
	}
	if err := e.tx.ForgetNames(ctx, s, nil); err != nil {
		return err
	}
	attempts, err := e.tx.Attempts(ctx, s.ID)
	if err != nil {
		return err
	}
	if err := e.attempts(ctx, attempts); err != nil {
		return err
	}
	if err := e.refunds(ctx, store.RefundFilter{Project: s.Project, Session: s.ID}); err != nil {
		return err
	}
	e.out.Sessions++
	if err := e.events(ctx, s.ID, true, nil); err != nil {
		return err
	}
	return e.lines(ctx, s.ID, true)
}

// purposes takes the payer out of what their merchants looked people up for.
func (e *eraser) purposes(ctx context.Context) error {
	done := map[flow.ProjectID]bool{}
	for _, s := range e.p.Sessions {
		if done[s.Project] {
			continue
		}
		done[s.Project] = true
		if err := e.tx.RewritePurposes(ctx, s.Project, e.others.person); err != nil {
			return err
		}
	}
	return nil
}

// attempts takes the payer out of instructions that were made for them, and out of why
// there are none.
func (e *eraser) attempts(ctx context.Context, attempts []flow.Attempt) error {
	for _, a := range attempts {
		a.Reason = e.blot.text(a.Reason)
		if a.Instructions != nil {
			left := *a.Instructions
			left.AccountName = e.blot.person(left.AccountName)
			a.Instructions = &left
		}
		if err := e.tx.SaveAttempt(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// refunds takes the payer out of why money did not go back: a bank says that in words of
// its own.
func (e *eraser) refunds(ctx context.Context, of store.RefundFilter) error {
	for of.Limit = maxPayerNotes; ; {
		list, err := e.tx.Refunds(ctx, of)
		if err != nil {
			return err
		}
		for _, r := range list {
			of.Before = string(r.ID)
			left := e.blot.text(r.Failure)
			if left == r.Failure {
				continue
			}
			r.Failure = left
			if err := e.tx.SaveRefund(ctx, r); err != nil {
				return err
			}
		}
		if len(list) < of.Limit {
			return nil
		}
	}
}

// reference is what is left of a session's reference: another one than those of its
// project's other sessions, as before.
func (e *eraser) reference(ctx context.Context, s flow.Session) (string, error) {
	left := e.blot.person(s.Reference)
	if left == s.Reference {
		return left, nil
	}
	switch other, err := e.tx.SessionByReference(ctx, s.Project, left); {
	case notFound(err) || err == nil && other.ID == s.ID:
		return left, nil
	case err != nil:
		return "", err
	}
	return left + "-" + string(s.ID), nil
}

// beside takes the payer out of a session that is somebody else's: how it is found by
// their names, and who paid what their own chats chose. Whoever calls themselves like
// somebody who stays, or like what is sold, takes nothing of it along.
func (e *eraser) beside(ctx context.Context, s flow.Session) error {
	payments, others, attempts, err := e.p.paid(ctx, e.tx.Reader, s.ID, false)
	if err != nil {
		return err
	}
	stay := []string{s.CustomerName}
	for _, p := range others {
		stay = append(stay, p.Payer.Name)
	}
	chats, err := e.tx.Watchers(ctx, s.ID)
	if err != nil {
		return err
	}
	for _, c := range chats {
		if !e.p.has(c.ID) {
			stay = append(stay, c.Name)
		}
	}
	names := []string{}
	for _, name := range e.names {
		words := flow.NameWords(name)
		if !slices.ContainsFunc(stay, func(other string) bool { return slices.Equal(flow.NameWords(other), words) }) {
			names = append(names, name)
		}
	}
	if err := e.tx.ForgetNames(ctx, s, names); err != nil {
		return err
	}
	if err := e.attempts(ctx, attempts); err != nil {
		return err
	}
	for _, p := range payments {
		if err := e.tx.ForgetPaid(ctx, p, e.as); err != nil {
			return err
		}
		if err := e.refunds(ctx, store.RefundFilter{Project: s.Project, Payment: p.ID}); err != nil {
			return err
		}
	}
	stay = append(stay, s.Merchant, s.Reference, s.Description, s.CallbackURL)
	stay = slices.AppendSeq(stay, maps.Values(s.Metadata))
	spared := *e
	spared.others = e.others.sparing(stay)
	if err := spared.events(ctx, s.ID, false, payments); err != nil {
		return err
	}
	return spared.lines(ctx, s.ID, false)
}

// events takes the payer out of what a session's merchant was told: with their
// fields where the session is theirs, and with what was written about their payments
// where it is not.
func (e *eraser) events(ctx context.Context, id flow.SessionID, own bool, paid []flow.Payment) error {
	events, err := e.tx.Events(ctx, id)
	if err != nil {
		return err
	}
	for _, one := range events {
		var body []byte
		if own {
			body, err = withoutCustomer(one.Body, e.as)
		} else {
			body, err = withoutReasons(one.Body, paid)
		}
		if err != nil {
			return fmt.Errorf("forget what event %s says: %w", one.ID, err)
		}
		body = []byte(e.blotOf(own).json(string(body)))
		if string(body) == string(one.Body) {
			continue
		}
		if err := e.tx.RewriteEvent(ctx, one.ID, body); err != nil {
			return err
		}
		e.out.Events++
	}
	return nil
}

// lines takes the payer out of the lines about a session.
func (e *eraser) lines(ctx context.Context, id flow.SessionID, own bool) error {
	lines, err := e.tx.SessionLines(ctx, id)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if err := e.line(ctx, l, own); err != nil {
			return err
		}
	}
	return nil
}

// line takes the payer out of one line: what was written and who they are, and, of
// what the bank said, who paid. What somebody else wrote, in a chat of theirs about the
// same session, is not the payer's, nor is who they are: there the payer alone goes.
func (e *eraser) line(ctx context.Context, l store.Line, own bool) (err error) {
	left := l
	switch {
	case ofChat(l.Kind) && e.p.has(flow.ChatID(l.Stream)):
		own = true
		left, err = withoutWords(l, true)
	case !ofChat(l.Kind) && own:
		left.Data, err = withoutCustomer(l.Data, e.as)
	}
	if err != nil {
		return err
	}
	if l.Kind == replay.Decided {
		left.Data, err = e.blotOf(own).outcome(left.Data)
	} else {
		left.Data = json.RawMessage(e.blotOf(own).json(string(left.Data)))
	}
	if err != nil {
		return fmt.Errorf("forget what line %d of %s says: %w", l.Seq, l.Stream, err)
	}
	if string(left.Data) == string(l.Data) {
		return nil
	}
	e.out.Lines++
	return e.tx.RewriteLine(ctx, left)
}

// chat takes the payer out of a chat; as stands for them in it.
func (e *eraser) chat(ctx context.Context, c store.ChatRow, as string) error {
	lines, err := e.tx.Lines(ctx, string(c.ID))
	if err != nil {
		return err
	}
	for _, l := range lines {
		if err := e.line(ctx, l, true); err != nil {
			return err
		}
	}
	e.out.Chats++
	return e.tx.ForgetChat(ctx, c.ID, as)
}
