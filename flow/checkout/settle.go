package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"till/flow"
	"till/flow/crashpoint"
	"till/flow/planted"
	"till/flow/store"
)

// Notice takes in a message from the bank. Only when it returns nil is
// everything in the message kept, and only then may the bank be told so.
// Errors: rail.ErrForged, or whatever kept it from being saved.
func (s *Service) Notice(ctx context.Context, h http.Header, body []byte) error {
	notices, err := s.bank.Parse(h, body)
	if err != nil {
		s.cfg.Meter.Notice(unheard(err))
		return fmt.Errorf("read the bank's notice: %w", err)
	}
	crashpoint.At(crashpoint.NoticeRead)
	var failures error
	for _, n := range notices { // one that cannot be kept does not keep the others out
		err := s.settle(ctx, n, fromNotice)
		outcome := string(n.Kind)
		if err != nil {
			outcome = noticeNotKept
		}
		s.cfg.Meter.Notice(outcome)
		failures = errors.Join(failures, err)
	}
	return failures
}

// settle takes in one thing that a bank said; from tells how it came to us.
// What was known already changes nothing.
func (s *Service) settle(ctx context.Context, n flow.Notice, from string) error {
	if err := sound(n); err != nil {
		return err
	}
	n = n.Keepable()
	if err := s.collector(ctx, &n); err != nil {
		return err
	}
	err := s.update(ctx, func(w *saving) error {
		if n.Kind == flow.PaidOut || n.Kind == flow.PayoutFailed {
			if isPayout(n.Reference) {
				return w.settledOut(n)
			}
			return w.sentOut(n, from)
		}
		if n.Kind == flow.Credit {
			err := w.tx.Ahead(ctx, func(r store.Reader) {
				_, _, _ = r.BookedAs(ctx, n.RailTransactionID)
				_, _ = r.AttemptByReference(ctx, n.Reference)
			})
			if err != nil {
				return err
			}
			if id, amount, err := w.tx.BookedAs(ctx, n.RailTransactionID); planted.DoublePost && id != "" {
				n.RailTransactionID += "'"
			} else if id != "" || err != nil {
				w.compare(id, amount, n)
				return err
			}
		}
		attempt, session, err := w.belongs(n)
		if err != nil {
			return err
		}
		who, err := w.asked(session, attempt)
		if err != nil {
			return err
		}
		n = unnamed(n, who...)
		if planted.DroppedNotice && session.ID == "" {
			return nil
		}
		if planted.PendingIsMoney && n.Kind == flow.Pending {
			n.Kind = flow.Credit
		}
		switch n.Kind {
		case flow.Declined:
			return w.declined(session, attempt, n, from)
		case flow.Reversal:
			return w.reversed(session, n, from)
		case flow.Pending:
			return w.coming(session, n, from)
		case flow.Returned:
			return w.sentBack(session, attempt, n, from)
		case flow.Credit, flow.PaidOut, flow.PayoutFailed:
		}
		return w.credit(session, attempt, n, from)
	})
	return wrap("settle what the bank said", err)
}

// mostMoved is the most that one movement may be, in kobo: far more than any is, and so
// little that whatever the ledger adds up fits in what it is kept as.
const mostMoved flow.Kobo = 10_000_000_000_000

// sound refuses what cannot be kept as what it is. Money is told apart by the
// rail's name for it alone: without one, the second would be taken for the first.
func sound(n flow.Notice) error {
	switch n.Kind {
	case flow.Credit, flow.Declined, flow.Reversal, flow.Pending, flow.Returned, flow.PaidOut, flow.PayoutFailed:
	default:
		return fmt.Errorf("settle what the bank said: a notice of the unknown kind %q", n.Kind)
	}
	moved := n.Kind == flow.Credit || n.Kind == flow.Reversal || n.Kind == flow.Returned
	if moved && n.RailTransactionID == "" {
		return fmt.Errorf("settle what the bank said: %d kobo for %q without a name", n.Amount, n.Reference)
	}
	if moved && (n.Amount <= 0 || n.Amount > mostMoved) {
		return fmt.Errorf("settle what the bank said: %s of %d kobo is no money", n.RailTransactionID, n.Amount)
	}
	for _, name := range []string{n.RailTransactionID, n.Reverses} {
		if !flow.RailName(name) {
			return fmt.Errorf("settle what the bank said: %.20q, of %d bytes, is no name that can be kept", name, len(name))
		}
	}
	return nil
}

// compare notes when the bank tells of a movement again, but not the same.
func (w *saving) compare(kept flow.PaymentID, amount flow.Kobo, n flow.Notice) {
	if kept == "" || amount == n.Amount {
		return
	}
	w.tx.After(func() {
		p, _ := w.s.cfg.DB.Payment(w.ctx, kept) // without its session, the line says the rest
		w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelError, "a bank changed its mind about an amount; the first one stands",
			slog.String("transaction", n.RailTransactionID), slog.String("payment", string(kept)), slog.String("session", string(p.Session)),
			slog.Int64("kept_minor", int64(amount)), slog.Int64("said_minor", int64(n.Amount)))
	})
}

// collector leaves a notice the project that its money was collected for only
// where there is such a project in this environment: it may be told of the money.
func (s *Service) collector(ctx context.Context, n *flow.Notice) error {
	if n.Collects == "" {
		return nil
	}
	known := false
	if s.cfg.Known != nil {
		var err error
		if known, err = s.cfg.Known(ctx, n.Collects); err != nil {
			return wrap("look for the project that money was collected for", err)
		}
	}
	if !known {
		n.Collects = ""
	}
	return nil
}

// unowned shows whoever runs Till money that belongs to no session. Where it was sent to
// stands here alone: by that one finds whose it was.
func (w *saving) unowned(p flow.Payment, n flow.Notice) {
	w.tx.After(func() {
		w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelWarn, "money came that belongs to no session", slog.String("event", string(flow.PaymentUnmatched)),
			slog.String("payment", string(p.ID)), slog.String("project", string(p.Project)), slog.String("transaction", p.RailTransactionID),
			slog.Int64("amount_minor", int64(p.Amount)), slog.String("account", flow.Told(n.AccountNumber)))
	})
}

// alone tells what becomes of money without a session to the project that it was
// collected for.
func (w *saving) alone(c flow.Change) error {
	for _, f := range c.Facts {
		if f.Payment == nil || f.Payment.Project == "" {
			continue
		}
		if err := w.tellAlone(f.Payment.Project, f.Kind, "", flow.RecordPayment(*f.Payment)); err != nil {
			return err
		}
	}
	return nil
}

// bankSaid keeps what a bank said in the story of a session, and has a line of the log
// tell which one it was about: the request that brought it may be about several.
func (w *saving) bankSaid(session flow.Session, n flow.Notice, from string) error {
	if session.ID == "" {
		return nil
	}
	w.tx.After(func() {
		w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelInfo, "the bank said", slog.String("kind", string(n.Kind)), slog.String("session", string(session.ID)),
			slog.String("transaction", n.RailTransactionID), slog.String("from", from))
	})
	return w.log(session.ID, "bank."+from, n)
}

// unnamed is what a bank says without who paid, where that is somebody who was forgotten,
// and without why something failed, which may name them: an account number may be kept,
// and money taken back, for long after that, and by no number or address would any command
// find them then. who are names of theirs.
func unnamed(n flow.Notice, who ...string) flow.Notice {
	if i := slices.IndexFunc(who, Forgotten); i >= 0 {
		n.Payer, n.Reason = flow.PaidBy{Name: who[i]}, ""
	}
	return n
}

// asked are the names of whom an attempt is of: of the session's customer, and of who
// chose it in a chat.
func (w *saving) asked(session flow.Session, a flow.Attempt) ([]string, error) {
	who := []string{session.CustomerName}
	if a.Chat == "" {
		return who, nil
	}
	chats, err := w.tx.Watchers(w.ctx, session.ID) // read ahead of money
	for _, c := range chats {
		if c.ID == a.Chat {
			who = append(who, c.Person)
		}
	}
	return who, err
}

// belongs finds whose money a notice is about; zero values for nobody's.
func (w *saving) belongs(n flow.Notice) (flow.Attempt, flow.Session, error) {
	attempt, err := w.tx.AttemptByReference(w.ctx, n.Reference)
	if notFound(err) {
		attempt, err = w.tx.AttemptByAccount(w.ctx, n.AccountNumber)
	}
	if notFound(err) {
		return flow.Attempt{}, flow.Session{}, nil
	}
	if err != nil {
		return flow.Attempt{}, flow.Session{}, err
	}
	if n.Kind == flow.Credit {
		if err := w.tx.Ahead(w.ctx, func(r store.Reader) { // what credit reads
			_, _ = r.Session(w.ctx, attempt.Session)
			_, _ = r.Payments(w.ctx, attempt.Session)
			_, _ = r.Attempts(w.ctx, attempt.Session)
			_, _ = r.TakenBackBefore(w.ctx, n.RailTransactionID, attempt.Session)
			_, _ = r.Watchers(w.ctx, attempt.Session)
		}); err != nil {
			return flow.Attempt{}, flow.Session{}, err
		}
	}
	session, err := w.tx.Session(w.ctx, attempt.Session)
	return attempt, session, err
}

// declined takes a decline in. Banks tell of it as often as they are asked: only
// the one that changes something is logged.
func (w *saving) declined(session flow.Session, a flow.Attempt, n flow.Notice, from string) error {
	if session.ID == "" {
		return nil
	}
	change, err := flow.Decline(session, a, n)
	if err != nil || len(change.Attempts) == 0 {
		return err
	}
	if err := w.bankSaid(session, n, from); err != nil {
		return err
	}
	return w.save(change, session)
}

// credit takes in money. All is read before anything is written.
func (w *saving) credit(session flow.Session, a flow.Attempt, n flow.Notice, from string) error {
	payments, err := w.tx.Payments(w.ctx, session.ID)
	if err != nil {
		return err
	}
	others, err := w.tx.Attempts(w.ctx, session.ID)
	if err != nil {
		return err
	}
	id, err := w.s.ids.New(flow.PrefixPayment)
	if err != nil {
		return err
	}
	charge, err := w.s.ids.New(flow.PrefixCharge)
	if err != nil {
		return err
	}
	if planted.AskedAmount && a.Amount > 0 {
		n.Amount = a.Amount
	}
	change, err := flow.Settle(flow.Money{
		Notice: n, Project: n.Collects, Session: session, Attempt: a, Others: others, Payments: payments, Payment: flow.PaymentID(id), Charge: flow.ChargeID(charge), Now: w.now,
	})
	if err != nil {
		return err
	}
	change, more, err := w.takenBefore(change, others)
	if err != nil {
		return err
	}
	if err := w.bankSaid(session, n, from); err != nil {
		return err
	}
	if session.ID == "" {
		w.unowned(*change.Payment, n)
	}
	w.read = &View{Session: session, Attempts: others, Payments: payments}
	if err := w.save(change, session); err != nil {
		return err
	}
	if more {
		if err := w.takenToo(*change.Payment); err != nil {
			return err
		}
	}
	return w.landed(session, change)
}
