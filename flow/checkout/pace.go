package checkout

import (
	"sync"
	"time"
)

// The bounds of what the bank is asked because time passed. A session that is paid
// costs six questions within a day of its end, one that nobody pays fourteen: sixty
// sessions a second around the clock, of which a quarter is never paid, come to 480 a
// second. Three hundred a second for minutes have their first question in time, and
// the others lie hours apart. After a downtime thousands are due at once: they are
// spread.
const (
	askEvery = 2 * time.Millisecond // five hundred a second
	askBurst = 250                  // turns that nobody took are kept for whoever comes late to them
	// maxAskedAbout bounds the sessions that are asked about at once, with the refunds and
	// payouts that the bank is told of or asked about: half the places of the worker, so
	// that a bank which hangs leaves the others for what payers read.
	maxAskedAbout = maxTasks / 2
	// maxSent is how many of those are refunds and payouts at most: a bank that hangs over a
	// payday, and answers what it is asked, is asked about what payers paid all the same.
	maxSent   = maxAskedAbout / 2
	busyAgain = time.Second // after all of them were taken
	// turnsApart is how far apart those come back who were put off: all of that time
	// at once, and not each by itself.
	turnsApart = 100 * time.Millisecond
)

// pacer gives questions their turns: the first ones at once, the others one after the
// other. It remembers none of them, however many there are: each that is put off
// comes back when there is a turn for it, and a turn is taken by whoever asks then.
// So no turn is lost while anybody waits for one.
type pacer struct {
	mu     sync.Mutex
	seen   time.Time // when it was last asked for a turn
	free   time.Time // the first turn that nobody has taken
	last   time.Time // when the last one who was put off comes back
	asking int
	sent   int // of those, refunds and payouts
}

// turn is how long a session must wait before the bank is asked so many questions
// about it, 0 for not at all: then over must be called once they are answered.
func (p *pacer) turn(questions int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(now)
	takes := time.Duration(questions) * askEvery
	busy := p.asking >= maxAskedAbout
	if !busy && !p.free.After(now) {
		p.free = p.free.Add(takes)
		p.asking++
		return 0
	}
	return p.putOff(takes, busy, now)
}

// place is how long a refund or a payout must wait before the bank is told of it or asked
// about it, 0 for not at all: then left must be called once it has answered. It waits for
// a place, and not for a turn.
func (p *pacer) place(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(now)
	if p.asking < maxAskedAbout && p.sent < maxSent {
		p.asking++
		p.sent++
		return 0
	}
	return p.putOff(askEvery, true, now)
}

// look takes in what time it is.
func (p *pacer) look(now time.Time) {
	if back := now.Sub(p.seen); back < 0 { // the clock was
		p.free, p.last = p.free.Add(back), p.last.Add(back)
	}
	p.seen = now
	p.free = laterOf(p.free, now.Add((1-askBurst)*askEvery))
}

// putOff is when somebody comes back who could not begin: behind all who were put off
// before.
func (p *pacer) putOff(takes time.Duration, busy bool, now time.Time) time.Duration {
	p.last = laterOf(p.last, laterOf(p.free, now))
	if busy {
		p.last = laterOf(p.last, now.Add(busyAgain))
	}
	p.last = p.last.Add(takes)
	return (p.last.Sub(now) + turnsApart - 1).Truncate(turnsApart)
}

// over says that the questions about a session are answered.
func (p *pacer) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
}

// left says that the bank has answered about a refund or a payout.
func (p *pacer) left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
	p.sent--
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
