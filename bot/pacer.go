package bot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"till/flow/checkout"
)

// PacerConfig is what a Pacer is made of. Sender, Pace and Now are needed.
type PacerConfig struct {
	Sender Sender
	Pace   Pace
	// Typing shows a payer that an answer is being written. It may be nil, and
	// what becomes of it does not matter.
	Typing func(ctx context.Context, number, person string)
	// Since is when one of our numbers was first used; nil is long ago.
	Since func(ctx context.Context, number string) (time.Time, error)
	Now   func() time.Time // the real time: a payer who waits has no other
}

// maxTyping is how many messages can be typed at once. Whoever finds no place
// comes again a little later, instead of keeping one who could work waiting.
const maxTyping = 32

const (
	typingAgain = 500 * time.Millisecond // for who finds no place
	// sendTime is left for the network after the typing.
	sendTime = 10 * time.Second
)

// Pacer sends messages the way a person does: it types for a while, leaves time
// between two bubbles, and sends no more than a number may. What must wait for
// longer than a moment is put off by a checkout.NotYetError.
//
// How long it types is told by the id of the message alone, so that a replay
// does the same. It is safe for use from several goroutines.
type Pacer struct {
	cfg PacerConfig

	mu     sync.Mutex // guards all below
	queues map[string]*queue
	since  map[string]time.Time
	typing int
}

var _ Sender = (*Pacer)(nil)

// NewPacer returns a Pacer that nobody waits for yet.
func NewPacer(c PacerConfig) *Pacer {
	return &Pacer{cfg: c, queues: map[string]*queue{}, since: map[string]time.Time{}}
}

// Send sends a message in its time. The error is that of the sender, or a
// *checkout.NotYetError where the message must wait: it was not sent then.
func (p *Pacer) Send(ctx context.Context, o checkout.Outgoing) error {
	pace, err := p.paceOf(ctx, o.Number)
	if err != nil {
		return err
	}
	now := p.cfg.Now()
	if end, ok := ctx.Deadline(); ok && end.Sub(now) < typingTo+sendTime {
		return &checkout.NotYetError{} // whoever asks had much to send: the rest is asked for anew
	}
	at, err := p.admit(now, pace, o)
	if err != nil {
		return err
	}
	if err = p.wait(ctx, at.Sub(now), o); err == nil {
		err = p.cfg.Sender.Send(ctx, o)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typing--
	q := p.queues[o.Number]
	if err != nil {
		q.giveBack(o)
		return err // the sender's own words decide what follows
	}
	q.speaks(o.Person, p.cfg.Now())
	return nil
}

// wait types until it is time.
func (p *Pacer) wait(ctx context.Context, d time.Duration, o checkout.Outgoing) error {
	if d <= 0 {
		return nil
	}
	if p.cfg.Typing != nil {
		p.cfg.Typing(ctx, o.Number, o.Person)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("typing %s: %w", o.ID, ctx.Err())
	}
}

// admit asks the number's queue.
func (p *Pacer) admit(now time.Time, pace Pace, o checkout.Outgoing) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.typing >= maxTyping && !o.Money {
		return now, &checkout.NotYetError{Wait: typingAgain}
	}
	q, ok := p.queues[o.Number]
	if !ok {
		q = newQueue(pace)
		p.queues[o.Number] = q
	}
	q.quicken(pace)
	at, may := q.admit(now, o)
	if !may {
		return now, &checkout.NotYetError{Wait: at.Sub(now)}
	}
	p.typing++
	return at, nil
}

// paceOf is the pace of a number at its age.
func (p *Pacer) paceOf(ctx context.Context, number string) (Pace, error) {
	if p.cfg.Since == nil {
		return p.cfg.Pace, nil
	}
	p.mu.Lock()
	since, known := p.since[number]
	p.mu.Unlock()
	if !known {
		var err error
		if since, err = p.cfg.Since(ctx, number); err != nil {
			return Pace{}, fmt.Errorf("looking up how long a number is used: %w", err)
		}
		p.mu.Lock()
		p.since[number] = since
		p.mu.Unlock()
	}
	of, in := warm(p.cfg.Now().Sub(since))
	return Pace{Sends: max(p.cfg.Pace.Sends*of/in, 1), NewChats: max(p.cfg.Pace.NewChats*of/in, 1)}, nil
}
