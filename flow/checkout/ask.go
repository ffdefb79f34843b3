package checkout

import (
	"time"

	"till/flow"
	"till/flow/store"
)

// asking is a question to the bank on a payer's word: when it was answered, and
// what came of it. Until then kind is "".
type asking struct {
	at   time.Time
	kind flow.NewsKind
}

// maxAsked bounds what is remembered of when banks were asked.
const maxAsked = 10_000

// ask asks the bank on a payer's word. Within a while of an answer that answer
// holds, whatever it was: a bank that was down is not taken for one that knows
// of no money, because things are cancelled and switched on that.
func (w *saving) ask(row store.ChatRow, session flow.SessionID) error {
	w.s.mu.Lock()
	last := w.s.asking[session]
	w.s.mu.Unlock()
	if last.kind != "" && w.now.Sub(last.at).Abs() < flow.AskAtMost {
		now, err := w.tx.Session(w.ctx, session)
		if err != nil {
			return err
		}
		if last.kind == flow.NewsNothing && now.Status == flow.SessionProcessing { // the bank told of it since
			last.kind = flow.NewsComing
		}
		if last.kind != flow.NewsComing || now.Status != flow.SessionPending { // else it came since, or does not come
			return w.tellChat(row.ID, session, flow.News{Kind: last.kind})
		}
	}
	w.tx.After(func() { w.s.wants(session) }) // not before: the transaction may be undone
	return w.owe(flow.TaskCheck, string(session), w.now)
}

// wants remembers that a payer waits for the bank's answer about a session.
func (s *Service) wants(session flow.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asking) >= maxAsked {
		clear(s.asking)
	}
	s.asking[session] = asking{}
}

// answered remembers what the bank answered, if a payer asked.
func (s *Service) answered(session flow.SessionID, kind flow.NewsKind, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, asked := s.asking[session]; asked {
		s.asking[session] = asking{at: at, kind: kind}
	}
}
