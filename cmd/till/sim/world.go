package sim

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// epoch is when every simulation begins: a Monday morning, so that seven days
// hold five settlement days and a weekend.
var epoch = time.Date(2026, 11, 16, 6, 0, 0, 0, time.UTC)

// The size of a simulation.
const (
	days      = 7
	lasts     = days * 24 * time.Hour
	maxEvents = 20_000 // of one seed; one that has more does not end
	maxSpins  = 1_000  // rounds until nothing is left to be taken in at one moment
)

// event is something that the scheduler does at its time.
type event struct {
	at   time.Duration // since the beginning
	name string        // orders what is due at one moment; everything that names it is a canonical name
	seq  int
	do   func()
	rng  *rand.Rand // of the action that it belongs to
	nth  int        // which action that is
}

type queue []*event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*event)) } //nolint:errcheck // heap's own contract
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// world is everything around the service, and the simulator's own memory of what
// it was promised. The scheduler's goroutine alone touches it, but for what mu
// guards, which the service's goroutines hand in.
type world struct {
	seed   uint64
	began  time.Time
	rng    *rand.Rand // of the scheduler alone, and of what it does now
	swarm  swarm
	tpl    *template
	inst   *instance
	gen    int // how often the service was opened
	queue  queue
	seq    int
	steps  int
	naming naming
	hash   hash.Hash
	out    io.Writer // the trace, nil for nobody
	last   []string  // the last lines of the trace
	fault  *Broken

	planning bool     // what is put into the queue now is the seed's own
	nth      int      // of the action that is done now
	acts     []Action // of the seed
	some     bool     // only those of with, and not all
	with     map[int]bool
	until    time.Duration // when it is ended, 0 for at its end

	bank       *bank
	sinks      *sinks
	phones     *phones
	merchants  []*merchant
	sessions   []*session
	acks       []*ack
	goals      *Goals
	book       *book
	ctx        context.Context          //nolint:containedctx // of the world itself
	kyc        string                   // of the newcomer
	ruled      int                      // moves of it that were judged
	crafted    int                      // notices that the world made up
	besides    int64                    // kobo of refunds in these: that much may have left twice
	meddles    func(*world)             // of a test: done before a step is judged
	ending     bool                     // nothing goes wrong any more
	unheard    map[string]bool          // calls whose answer was lost at least once
	firstAsked map[string]time.Duration // calls with a key, by key and time of the first
	twice      map[string]bool          // calls that were made again while the first was at work: either may be done
	promised   []string                 // the bank's names of money that it was answered for
	taken      []string                 // payers' messages that were taken

	mu      sync.Mutex // guards what follows
	effects []string
	come    []*event // what goroutines of the service made happen
	broke   *Broken
	trap    *trap
	cut     bool           // the power went in the middle of a write
	asked   []string       // sessions that the bank was called for
	taking  map[string]int // calls under way that take a moment, by what they are

	questions []question       // that the bank was asked
	minds     map[string]moved // orders of which the bank says something else than its books
}

// Broken is an invariant that did not hold.
type Broken struct { //nolint:errname // it is what an invariant is then
	Invariant string `json:"invariant"`
	What      string `json:"what"`
	Step      int    `json:"step"`
	At        string `json:"at"`

	age time.Duration
}

// Error says which invariant it was, and what was seen.
func (b *Broken) Error() string {
	return fmt.Sprintf("%s broken at step %d (%s): %s", b.Invariant, b.Step, b.At, b.What)
}

// now is what time it is for the service.
func (w *world) now() time.Time { return epoch.Add(time.Since(w.began)) } //nolint:forbidigo // the bubble's clock

// age is how long the simulation runs.
func (w *world) age() time.Duration { return time.Since(w.began) } //nolint:forbidigo // the bubble's clock

// breaks keeps that an invariant does not hold; the first one ends the seed.
func (w *world) breaks(invariant, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broke == nil {
		w.broke = &Broken{Invariant: invariant, What: fmt.Sprintf(format, args...), Step: w.steps, At: clockOf(w.age()), age: w.age()}
	}
}

// stopped says whether an invariant was broken.
func (w *world) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broke != nil && w.fault == nil {
		w.broke.What = w.canonical(w.broke.What)
		w.fault = w.broke
	}
	return w.fault != nil
}

// saw keeps an effect of the step, from any goroutine.
func (w *world) saw(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	at := w.age()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, clockOf(at)+" "+line)
}

// soon has the scheduler do something, asked for by a goroutine of the service.
// What is asked for at one moment is put in the order of its names.
func (w *world) soon(in time.Duration, name string, do func()) {
	at := w.age() + in
	w.mu.Lock()
	defer w.mu.Unlock()
	w.come = append(w.come, &event{at: at, name: name, do: do})
}

// after has the scheduler do something later.
func (w *world) after(in time.Duration, name string, do func()) {
	w.seq++
	e := &event{at: w.age() + max(in, 0), name: name, seq: w.seq, do: do, rng: w.rng, nth: w.nth}
	if w.planning && !w.planned(e) {
		return
	}
	heap.Push(&w.queue, e)
}

// draw is a number below n that depends on the seed and what it is for alone,
// whichever goroutine asks first.
func (w *world) draw(n int, what ...string) int {
	h := w.sum(what...)
	return int(binary.BigEndian.Uint64(h[:8]) % uint64(n)) //nolint:gosec // n is small and not negative
}

// sum is what draws are made of.
func (w *world) sum(what ...string) [sha256.Size]byte {
	return sha256.Sum256([]byte(fmt.Sprintf("%d/%s", w.seed, strings.Join(what, "/"))))
}

// roll says yes in so many of a hundred cases; the scheduler's own dice.
func (w *world) roll(percent int) bool { return w.rng.IntN(100) < percent }

// between is a time of at least a and less than b, to the millisecond.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64((b-a)/time.Millisecond)+1))*time.Millisecond
}

// pick is one of a list.
func pick[T any](w *world, list ...T) T { return list[w.rng.IntN(len(list))] }

// clockOf writes a time of the simulation: day, hours, minutes, milliseconds.
func clockOf(d time.Duration) string {
	day := int64(d / (24 * time.Hour))
	d %= 24 * time.Hour
	return fmt.Sprintf("d%d %02d:%02d:%06.3f", day, d/time.Hour, d/time.Minute%60, (d % time.Minute).Seconds())
}

// run does what is due until nothing is, and judges after each step.
func (w *world) run() {
	for len(w.queue) > 0 && !w.stopped() {
		next := heap.Pop(&w.queue).(*event) //nolint:errcheck // it holds nothing else
		if wait := next.at - w.age(); wait > 0 {
			time.Sleep(wait)
			w.drain()
			w.close("time")
		}
		if w.stopped() || w.until > 0 && w.age() > w.until {
			return
		}
		w.step(next)
	}
}

// step does one event, waits until everything is at rest, and judges.
func (w *world) step(e *event) {
	w.steps++
	if w.steps > maxEvents {
		w.breaks("sim", "the seed does not end: %d events", w.steps)
		return
	}
	w.springs() // who fell into a trap as time went by
	w.rng, w.nth = e.rng, e.nth
	e.do()
	w.drain()
	w.springs()
	if w.meddles != nil {
		w.meddles(w)
	}
	w.close(e.name)
}

// drain waits until everything is at rest, and has what came of it taken in.
func (w *world) drain() {
	for range maxSpins {
		synctest.Wait()
		w.mu.Lock()
		come := w.come
		w.come = nil
		w.mu.Unlock()
		if len(come) == 0 {
			return
		}
		for _, e := range come {
			e.name = w.canonical(e.name)
		}
		slices.SortStableFunc(come, func(a, b *event) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return strings.Compare(a.name, b.name)
		})
		for _, e := range come {
			e.rng = w.dice(e.name, clockOf(e.at))
			if e.at <= w.age() {
				w.rng = e.rng
				e.do()
				synctest.Wait()
				continue
			}
			w.seq++
			e.seq = w.seq
			heap.Push(&w.queue, e)
		}
	}
	w.breaks("sim", "the service does not come to rest")
}

// close ends a step: what was seen is judged and written into the trace.
func (w *world) close(name string) {
	w.observe()
	w.mu.Lock()
	effects := w.effects
	w.effects = nil
	w.mu.Unlock()
	if name == "time" && len(effects) == 0 {
		return
	}
	for i := range effects {
		effects[i] = w.canonical(effects[i])
	}
	slices.Sort(effects)
	effects = slices.Compact(effects) // whether two questions of one moment are asked as one is nobody's business
	w.trace(fmt.Sprintf("%s #%d %s", clockOf(w.age()), w.steps, w.canonical(name)))
	for _, e := range effects {
		w.trace("    " + e)
	}
}

// keptLines is how much of the trace is shown of a seed that failed.
const keptLines = 60

func (w *world) trace(line string) {
	_, _ = io.WriteString(w.hash, line+"\n") // a hash never fails to be written to
	if w.out != nil {
		_, _ = fmt.Fprintln(w.out, line)
	}
	if w.last = append(w.last, line); len(w.last) > 2*keptLines {
		w.last = slices.Clone(w.last[keptLines:])
	}
}
