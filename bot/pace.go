package bot

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
	"unicode/utf8"

	"till/flow/checkout"
)

// Pace bounds what one number of ours sends, as operators of WhatsApp gateways
// advise for numbers that are to stay unblocked.
type Pace struct {
	Sends    int // messages in a minute, whichever minute is looked at
	NewChats int // of those, first messages of a chat
}

// The rhythm of one chat.
const (
	typingFrom = 600 * time.Millisecond
	typingTo   = 2500 * time.Millisecond
	longText   = 300 // runes: whatever is longer is not typed longer
	// spacing is what lies between two bubbles of a chat at least.
	spacing = 800 * time.Millisecond
)

// The bounds of a number's queue.
const (
	maxWaiting = 1000
	maxSpoken  = 1000
	// absent is how long a message that was put off keeps its place when nobody
	// asks about it any more.
	absent = 10 * time.Second
)

// typingFor is how long a message is typed: longer for a long one, and a little
// more or less by its id, so that a replay types as long.
func typingFor(id, text string) time.Duration {
	const whole = typingTo - typingFrom
	sum := sha256.Sum256([]byte(id))
	shift := time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(whole/5))
	d := typingFrom + whole*time.Duration(min(utf8.RuneCountInString(text), longText))/longText + shift - whole/10
	return min(max(d, typingFrom), typingTo)
}

// warm is which share of its pace a number of an age may use. A number that was
// linked today and writes like an old one looks like a machine.
func warm(age time.Duration) (of, in int) {
	const day = 24 * time.Hour
	switch {
	case age < day:
		return 1, 4
	case age < 3*day:
		return 2, 4
	case age < 7*day:
		return 3, 4
	}
	return 1, 1
}

// bucket holds tokens: a few at once, then one each so often. Full is when it
// will be full again if nothing more is taken; only what is given back makes that
// sooner.
type bucket struct {
	burst int
	each  time.Duration
	full  time.Time
}

// newBucket gives a quarter of what a minute may see at once, and the rest evenly,
// so that no minute sees more, whenever it begins and however long what was
// counted is still typed.
func newBucket(rate int) bucket {
	rate = max(rate, 1)
	burst := max(rate/4, 1)
	return bucket{burst: burst, each: (time.Minute + typingTo) / time.Duration(rate-burst+1)}
}

// ready is when n tokens are there.
func (b *bucket) ready(n int, now time.Time) time.Time {
	full := b.full
	if full.Before(now) {
		full = now
	}
	if at := full.Add(time.Duration(n-b.burst) * b.each); at.After(now) {
		return at
	}
	return now
}

func (b *bucket) take(now time.Time) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.each)
}

func (b *bucket) giveBack() { b.full = b.full.Add(-b.each) }

// waiting is a message that was put off.
type waiting struct {
	id           string
	money, first bool
	until        time.Time // when it is asked about again
}

// queue is what one number sends: what it may still, and who waits for that. It
// is a schedule alone: it knows the time only as it is told.
type queue struct {
	pace  Pace
	sends bucket
	chats bucket
	line  []waiting            // news of money first, then as they came
	spoke map[string]time.Time // when the last bubble of a chat goes out
}

func newQueue(p Pace) *queue {
	return &queue{pace: p, sends: newBucket(p.Sends), chats: newBucket(p.NewChats), spoke: map[string]time.Time{}}
}

// quicken gives a number that got older more of its pace.
func (q *queue) quicken(p Pace) {
	if q.pace == p {
		return
	}
	sends, chats := q.sends.full, q.chats.full
	q.pace, q.sends, q.chats = p, newBucket(p.Sends), newBucket(p.NewChats)
	q.sends.full, q.chats.full = sends, chats
}

// admit asks whether a message may go now. If so it is counted, and may be sent
// at the time that is returned; else it waits in line, and is to be asked about
// again then.
//
// News of money goes before everything else, and on credit: as many messages
// more as can go at once.
func (q *queue) admit(now time.Time, o checkout.Outgoing) (at time.Time, may bool) {
	q.line = slices.DeleteFunc(q.line, func(w waiting) bool { return now.Sub(w.until) > absent })
	place := q.place(o)
	sends, chats := 1, 1
	for _, w := range q.line[:place] {
		held := w.first && q.chats.ready(chats, now).After(now)
		if w.first {
			chats++
		}
		if !held { // what may not go takes nothing from others
			sends++
		}
	}
	if o.Money {
		sends -= q.sends.burst
	}
	at = q.sends.ready(sends, now)
	if o.First && !o.Money {
		if first := q.chats.ready(chats, now); first.After(at) {
			at = first
		}
	}
	known := place < len(q.line) && q.line[place].id == o.ID
	if at.After(now) {
		w := waiting{id: o.ID, money: o.Money, first: o.First && !o.Money, until: at}
		switch {
		case known:
			q.line[place] = w
		case len(q.line) < maxWaiting:
			q.line = slices.Insert(q.line, place, w)
		}
		return at, false
	}
	if known {
		q.line = slices.Delete(q.line, place, place+1)
	}
	q.sends.take(now)
	if o.First {
		q.chats.take(now)
	}
	at = now
	if !o.Money {
		at = now.Add(typingFor(o.ID, o.Text))
	}
	if next := q.spoke[o.Person].Add(spacing); next.After(at) {
		at = next
	}
	q.speaks(o.Person, at)
	return at, true
}

// place is where a message stands in line, or would. One that became urgent
// since it was put off moves up.
func (q *queue) place(o checkout.Outgoing) int {
	i := slices.IndexFunc(q.line, func(w waiting) bool { return w.id == o.ID })
	if i >= 0 && q.line[i].money == o.Money {
		return i
	}
	if i >= 0 {
		q.line = slices.Delete(q.line, i, i+1)
	}
	if !o.Money {
		return len(q.line)
	}
	if i = slices.IndexFunc(q.line, func(w waiting) bool { return !w.money }); i < 0 {
		return len(q.line)
	}
	return i
}

// speaks keeps when a chat is written to. Only what is younger than the spacing
// counts; the rest is forgotten when there is much of it.
func (q *queue) speaks(person string, at time.Time) {
	if len(q.spoke) >= maxSpoken {
		for p, last := range q.spoke {
			if last.Add(spacing).Before(at) {
				delete(q.spoke, p)
			}
		}
	}
	q.spoke[person] = at
}

// giveBack takes back that a message was counted: it was not sent.
func (q *queue) giveBack(o checkout.Outgoing) {
	q.sends.giveBack()
	if o.First {
		q.chats.giveBack()
	}
}
