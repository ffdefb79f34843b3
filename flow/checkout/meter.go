package checkout

import (
	"context"
	"errors"
	"sync"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// Meter counts what operators watch. It is called after the commit of what it is
// told, and returns at once. Nothing that it is told names a person or a merchant,
// nor may it keep more than it can name beforehand.
type Meter interface {
	// Session is one that went from a state to another; from is "" for a new one.
	Session(from, to flow.SessionStatus)
	// Payment is money that was kept with its outcome.
	Payment(outcome flow.MatchStatus, amount flow.Kobo)
	// Notice is something that a bank sent us: its kind, or why it was not kept.
	Notice(outcome string)
	// Heard is a message of a payer that was not heard before.
	Heard(in flow.Intent)
	// Said is a message to a payer that went out.
	Said(key string)
	// Unsent are messages to a payer that together did not go out, and why: one of
	// UnsentReasons.
	Unsent(reason string, messages int)
	// Replied is how long a payer waited for the first message in answer to theirs.
	Replied(took time.Duration)
	// Delivery is one try to deliver a webhook: why it failed, "" where it did not.
	Delivery(reason string)
}

// Why what a bank sent was not kept.
const (
	noticeForged     = "forged"
	noticeUnreadable = "unreadable"
	noticeNotKept    = "not_kept" // the bank says it again
)

// Why a message to a payer did not go out.
const (
	unsentRefused = "refused" // the network does not take it: it is given up
	unsentLate    = "late"    // it could not be sent for too long: it is given up
	unsentParked  = "parked"  // the network does not take news of money: it waits for a word of its payer
)

// UnsentReasons are all reasons for which a message to a payer does not go out. One
// that is withdrawn, because it says nothing any more, is none of them.
func UnsentReasons() []string { return []string{unsentRefused, unsentLate, unsentParked} }

// PayersWait is since when the message to a payer waits that is to go out and has
// waited longest, and since when somebody waits for a person to whom none has come;
// each is zero where there is none. What follows news of money that the network
// does not take waits for its payer, and not for us.
func PayersWait(ctx context.Context, r store.Reader) (message, person time.Time, err error) {
	if message, err = r.Outbox(ctx, maxRefusals); err != nil {
		return time.Time{}, time.Time{}, err
	}
	person, err = r.Called(ctx)
	return message, person, err
}

// unheard is why a message of a bank says nothing to us.
func unheard(err error) string {
	if errors.Is(err, rail.ErrForged) {
		return noticeForged
	}
	return noticeUnreadable
}

func (w *saving) countSession(from, to flow.SessionStatus) {
	if from != to {
		w.tx.After(func() { w.s.cfg.Meter.Session(from, to) })
	}
}

func (w *saving) countPayment(p flow.Payment) {
	w.tx.After(func() { w.s.cfg.Meter.Payment(p.Match, p.Amount) })
}

func (w *saving) countHeard(chat flow.ChatID, in flow.Intent, answered bool) {
	now := w.now
	w.tx.After(func() {
		if answered {
			w.s.replies.begin(chat, now)
		}
		w.s.cfg.Meter.Heard(in)
	})
}

func (s *Service) countSaid(said store.Said) {
	s.cfg.Meter.Said(said.Key)
	if took, first := s.replies.end(said.Chat, s.cfg.Now()); first {
		s.cfg.Meter.Replied(took)
	}
}

// maxReplies is how many chats wait for an answer whose time is taken; beyond it
// others are answered all the same.
const maxReplies = 10_000

// replies remembers since when chats wait for an answer.
type replies struct {
	mu    sync.Mutex
	since map[flow.ChatID]time.Time
}

func (r *replies) begin(chat flow.ChatID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since == nil {
		r.since = map[flow.ChatID]time.Time{}
	}
	if _, waits := r.since[chat]; !waits && len(r.since) < maxReplies {
		r.since[chat] = now
	}
}

// end is how long a chat waited; false where it did not wait.
func (r *replies) end(chat flow.ChatID, now time.Time) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, waits := r.since[chat]
	delete(r.since, chat)
	return now.Sub(since), waits
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) Session(_, _ flow.SessionStatus)         {}
func (unmetered) Payment(_ flow.MatchStatus, _ flow.Kobo) {}
func (unmetered) Notice(_ string)                         {}
func (unmetered) Heard(_ flow.Intent)                     {}
func (unmetered) Said(_ string)                           {}
func (unmetered) Unsent(_ string, _ int)                  {}
func (unmetered) Replied(_ time.Duration)                 {}
func (unmetered) Delivery(_ string)                       {}
