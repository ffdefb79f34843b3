package checkout

import (
	"context"
	"errors"
	"fmt"

	"till/flow"
	"till/flow/planted"
	"till/flow/store"
)

// Open creates a session. No bank is called. Errors: project_suspended,
// duplicate_reference, whatsapp_unavailable (chat mode), idempotency_key_reused.
func (s *Service) Open(ctx context.Context, n NewSession, c Call) (Answer, error) {
	number := ""
	if n.Mode == flow.InChat {
		number = s.number()
	}
	// All that needs no row is done before the one that writes is held up.
	draft, err := s.draft(n, c.Project, number, false)
	if err != nil {
		return Answer{}, fmt.Errorf("open a session: %w", err)
	}
	drafted, kept, err := s.calls.drafted(c, string(draft.Session.ID), Made{View: draft})
	if err != nil {
		return Answer{}, fmt.Errorf("open a session: %w", err)
	}
	var answer Answer
	err = s.update(ctx, func(w *saving) error {
		before, err := w.begun(c)
		if planted.AnotherAnswer && before != nil && err == nil {
			answer, err = w.answer(flow.Session{ID: flow.SessionID(before.Made)}, c)
			return err
		}
		if err != nil || before != nil && before.Status != 0 {
			answer = answeredBefore(before)
			return err
		}
		if err := s.admitted(c.Project); err != nil {
			return err
		}
		if n.Mode == flow.InChat && number == "" {
			return s.noWhatsApp()
		}
		made := draft
		if err := w.create(&made.Session); err != nil {
			return err
		}
		if made.Session.EntryCode != draft.Session.EntryCode { // the first one was taken
			answer, err = w.rendered(c, string(made.Session.ID), Made{View: made})
			return err
		}
		answer = drafted
		return s.calls.save(w.ctx, w.tx, c, kept)
	})
	if err != nil {
		return s.calls.refused(ctx, c, fmt.Errorf("open a session: %w", err))
	}
	return answer, nil
}

// number is the number that a new link carries, "" where none is live.
func (s *Service) number() string {
	if s.cfg.Number == nil {
		return ""
	}
	return s.cfg.Number()
}

// noWhatsApp refuses a chat that no number of ours can have.
func (s *Service) noWhatsApp() error {
	if s.cfg.Number == nil {
		return &flow.Error{
			Code: flow.CodeWhatsAppUnavailable, Message: "No WhatsApp number belongs to this environment, so no chat can be opened. Headless sessions work.", Err: flow.ErrNotServed,
		}
	}
	return flow.Refuse(flow.CodeWhatsAppUnavailable, "No WhatsApp number is live right now, so no chat can be opened. Headless sessions work.")
}

// draft makes a session that is not kept yet.
func (s *Service) draft(n NewSession, project flow.ProjectID, number string, charge bool) (View, error) {
	now := s.cfg.Now()
	session := flow.Session{
		Project: project, Merchant: n.Merchant, Mode: n.Mode, Amount: n.Amount, Status: flow.SessionPending,
		AllowedMethods: n.AllowedMethods, CustomerEmail: n.CustomerEmail, CustomerPhone: n.CustomerPhone, CustomerName: n.CustomerName,
		Reference: n.Reference, Description: n.Description, Metadata: n.Metadata, CallbackURL: n.CallbackURL, Policy: n.Policy,
		Number: number, ChargeAsked: charge, Sequence: 1, Version: 1, CreatedAt: now, ExpiresAt: now.Add(n.ExpiresIn),
	}
	id, err := s.ids.New(flow.PrefixSession)
	if err != nil {
		return View{}, err
	}
	session.ID = flow.SessionID(id)
	if charge {
		if id, err = s.ids.New(flow.PrefixCharge); err != nil {
			return View{}, err
		}
		session.Charge = flow.ChargeID(id)
	}
	if n.Mode == flow.InChat || charge { // no chat opens the others
		if session.EntryCode, err = s.ids.EntryCode(); err != nil {
			return View{}, err
		}
	}
	return View{Session: session, Offers: flow.Offers(session, nil, s.served(project), now)}, nil
}

// create keeps a drafted session, with its first event counted already. Its row
// says when it was opened and when it is over: nothing else is kept of that.
func (w *saving) create(session *flow.Session) error {
	if err := w.keep(session); err != nil {
		return err
	}
	if planted.EagerBank {
		if _, _, err := w.begin(session.ID, flow.Ask{Method: session.AllowedMethods[0]}, true); err != nil {
			return err
		}
	}
	return w.tell(*session, flow.Fact{Kind: flow.SessionCreated}, func() (View, error) { return w.s.view(w.ctx, w.tx.Reader, *session) })
}

// keep adds a session, under another entry code where its own is taken, or says
// whose its reference is.
func (w *saving) keep(session *flow.Session) error {
	for range codeTries {
		added, err := w.tx.AddSession(w.ctx, *session)
		if added && err == nil {
			w.countSession("", session.Status)
		}
		if added || err != nil {
			return err
		}
		if session.Reference != "" {
			other, err := w.tx.SessionByReference(w.ctx, session.Project, session.Reference)
			if err == nil {
				refusal := flow.Refuse(flow.CodeDuplicateReference, "The reference %q was used before, by session %s.", session.Reference, other.ID).At("reference")
				refusal.Details = map[string]string{"sessionId": string(other.ID)}
				return refusal
			}
		}
		if session.EntryCode == "" {
			break
		}
		if session.EntryCode, err = w.s.ids.EntryCode(); err != nil {
			return err
		}
	}
	return flow.Refuse(flow.CodeInternal, "No free entry code was found.")
}

// code gives a session that no chat could open until now an entry code.
func (w *saving) code(id flow.SessionID) error {
	for range codeTries {
		code, err := w.s.ids.EntryCode()
		if err != nil {
			return err
		}
		if given, err := w.tx.GiveCode(w.ctx, id, code); given || err != nil {
			return err
		}
	}
	return flow.Refuse(flow.CodeInternal, "No free entry code was found.")
}

// answer renders what was made and keeps it with the call's key.
func (w *saving) answer(session flow.Session, c Call) (Answer, error) {
	session, err := w.tx.Session(w.ctx, session.ID)
	if err != nil {
		return Answer{}, err
	}
	view, err := w.s.view(w.ctx, w.tx.Reader, session)
	if err != nil {
		return Answer{}, err
	}
	return w.rendered(c, string(session.ID), Made{View: view})
}

// OpenCharge opens a session in WhatsApp and makes its virtual account: a new
// session, or an existing one of the project. It waits for the bank. A call
// with a key that was cut off is taken up where it stood.
func (s *Service) OpenCharge(ctx context.Context, n NewSession, existing flow.SessionID, c Call) (Answer, error) {
	done, err := s.calls.alone(c)
	if err != nil {
		return Answer{}, err
	}
	defer done()
	answer, err := s.openCharge(ctx, n, existing, c)
	if err != nil {
		return s.calls.refused(ctx, c, wrap("open a charge", err))
	}
	return answer, nil
}

func (s *Service) openCharge(ctx context.Context, n NewSession, existing flow.SessionID, c Call) (Answer, error) {
	number := s.number()
	var answer Answer
	var attempt flow.Attempt
	var fresh bool
	err := s.update(ctx, func(w *saving) error {
		answer = Answer{}
		kept, err := w.begun(c)
		if err != nil || kept != nil && kept.Status != 0 {
			answer = answeredBefore(kept)
			return err
		}
		if err := s.admitted(c.Project); err != nil {
			return err
		}
		if number == "" {
			return s.noWhatsApp()
		}
		session, err := w.charged(n, existing, kept, number, c)
		if err != nil {
			return err
		}
		if !session.Open() { // it was closed, or even paid, after the call was cut off
			answer, err = w.answer(session, c)
			return err
		}
		attempt, fresh, err = w.begin(session.ID, flow.Ask{Method: flow.BankTransfer}, false)
		if err != nil || c.Key == "" {
			return err
		}
		return s.calls.begin(w.ctx, w.tx, c, string(session.ID))
	})
	if err != nil || answer.Status != 0 {
		return answer, err
	}
	started := s.start(ctx, attempt.ID, fresh)
	if started != nil && !errors.Is(started, errOver) {
		return Answer{}, unfinished(started, attempt.Session)
	}
	err = s.update(ctx, func(w *saving) error {
		kept, err := w.begun(c)
		if err != nil || kept != nil && kept.Status != 0 { // another process was faster
			answer = answeredBefore(kept)
			return err
		}
		session, err := w.tx.Session(w.ctx, attempt.Session)
		if err == nil && started != nil && session.Open() {
			err = unfinished(started, session.ID)
		}
		if err != nil {
			return err
		}
		answer, err = w.answer(session, c)
		return err
	})
	return answer, err
}

// unfinished says of a charge whose account could not be made that its session
// is there, so that the merchant can go on with it.
func unfinished(err error, session flow.SessionID) error {
	refusal, ok := errors.AsType[*flow.Error](err)
	if !ok {
		return err
	}
	told := *refusal
	told.Message += " The session is there: call again with its sessionId, or with the same Idempotency-Key."
	told.Details = map[string]string{"sessionId": string(session)}
	return &told
}

// charged is the session of a charge: the one that a cut-off call made, an
// existing one, or a new one.
func (w *saving) charged(n NewSession, existing flow.SessionID, kept *store.KeptCall, number string, c Call) (flow.Session, error) {
	if kept != nil {
		existing = flow.SessionID(kept.Made)
	}
	if existing == "" {
		made, err := w.s.draft(n, c.Project, number, true)
		if err != nil {
			return flow.Session{}, err
		}
		err = w.create(&made.Session)
		return made.Session, err
	}
	session, err := w.owned(c.Project, existing)
	if err != nil {
		return session, err
	}
	if kept != nil {
		return session, nil // as it is by now
	}
	if err := session.Closed(); err != nil {
		return session, err
	}
	if session.ChargeAsked {
		return session, nil
	}
	if session.Charge == "" {
		id, err := w.s.ids.New(flow.PrefixCharge)
		if err != nil {
			return session, err
		}
		session.Charge = flow.ChargeID(id)
	}
	if session.EntryCode == "" {
		if err := w.code(session.ID); err != nil {
			return session, err
		}
	}
	session.ChargeAsked, session.Number = true, number
	err = w.tx.SaveSession(w.ctx, &session)
	return session, err
}

// owned reads a session of a project; another project's does not exist.
func (w *saving) owned(project flow.ProjectID, id flow.SessionID) (flow.Session, error) {
	return owned(w.ctx, w.tx.Reader, project, id)
}

func owned(ctx context.Context, r store.Reader, project flow.ProjectID, id flow.SessionID) (flow.Session, error) {
	if planted.OthersSession {
		return r.Session(ctx, id)
	}
	return r.SessionOf(ctx, project, id)
}

// wrap says what was being done, and leaves no error alone.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// notFound says whether an error is about a row that is not there.
func notFound(err error) bool { return errors.Is(err, &flow.Error{Code: flow.CodeNotFound}) }
