package checkout

import (
	"context"
	"maps"
	"slices"
	"time"

	"till/flow"
)

// Unmetered counts nothing.
type Unmetered = unmetered

// Waiting is how many wait for the call to the rail for an attempt.
func (s *Service) Waiting(id flow.AttemptID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call, ok := s.starting[id]; ok {
		return call.waiting
	}
	return 0
}

// Redo owes an event of a session to an endpoint once more.
func (s *Service) Redo(ctx context.Context, session flow.SessionID, event flow.EventID, to flow.EndpointID, cause string) error {
	events, err := s.cfg.DB.Events(ctx, session)
	if err != nil {
		return err
	}
	e := events[slices.IndexFunc(events, func(e flow.Event) bool { return e.ID == event })]
	return s.update(ctx, func(w *saving) error {
		endpoint, err := w.tx.EndpointByID(ctx, to)
		if err != nil {
			return err
		}
		return w.redo(e, endpoint, cause)
	})
}

// Book books a payment with its event, and owes that to every endpoint that wants
// it: what webhooks cost by themselves, beside no rule of a settlement.
func (s *Service) Book(ctx context.Context, p flow.Payment, postings []flow.Posting, e flow.Event) error {
	return s.update(ctx, func(w *saving) error {
		if err := w.tx.AddPayment(ctx, p, postings); err != nil {
			return err
		}
		if err := w.tx.AddEvent(ctx, e); err != nil {
			return err
		}
		to, err := w.listeners(e.Project, e.Kind)
		if err != nil {
			return err
		}
		return w.deliver(e, to)
	})
}

// Looks is how often work was looked for.
func (s *Service) Looks() int64 {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.worker.claims
}

// Claiming says that what was claimed may not be at work yet.
func (s *Service) Claiming() bool {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.worker.claiming
}

// Ending says that Run has begun to end.
func (s *Service) Ending() bool {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.worker.closed
}

// WornLines and WornChats bound one part of a walk over old chats.
const (
	WornLines = wornLines
	WornChats = wornChats
)

// WearSome takes the words of some chats in which nothing happened since a time.
func (s *Service) WearSome(ctx context.Context, before time.Time) (lines int, more bool, err error) {
	err = s.update(ctx, func(w *saving) (err error) {
		lines, more, err = w.wearSome(before)
		return err
	})
	return lines, more, err
}

// Pacer gives questions their turns.
type Pacer = pacer

// Turn is how long a session waits for its turn.
func (p *Pacer) Turn(questions int, now time.Time) time.Duration { return p.turn(questions, now) }

// Over says that the questions about a session are answered.
func (p *Pacer) Over() { p.over() }

// Names are the names of the invariants that are broken, sorted.
func (r LedgerReport) Names() []string {
	broken := map[string]bool{}
	for _, i := range r.Invariants {
		if i.Wrong > 0 {
			broken[i.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(broken))
}

// Empty says whether nothing is kept of a payer.
func (p Payer) Empty() bool { return len(p.Chats)+len(p.Sessions)+len(p.Beside) == 0 }

// Turn waits for the turn of somebody from an address to have a password hashed.
func (a *Accounts) Turn(ctx context.Context, address string) (done func(), err error) {
	return a.queue.turn(ctx, address)
}

// Hashing is how many from an address have a password hashed or wait for it.
func (a *Accounts) Hashing(address string) int {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	return a.queue.from[address]
}
