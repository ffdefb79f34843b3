package meter

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// The bounds of a reading.
const (
	// watchEach is how often what only the store and the disk know is read.
	watchEach = 15 * time.Second
	// watchPatience is how long one reading may take: below the time to the next.
	watchPatience = 10 * time.Second
	// ledgerStretch is how many transactions of the ledger a reading looks at, of
	// each environment: a million take a quarter of an hour.
	ledgerStretch = 20_000
	// clockWithin is how long another clock may take to say its time: of an answer
	// that took longer nobody knows when in it that was.
	clockWithin = time.Second
	// stepShown is how long it is shown that the machine's clock was set: what was
	// put right is then forgotten.
	stepShown = 10 * time.Minute
)

// Place is one environment's store, with the clock that its waits are told by:
// merchants move that of the test environment.
type Place struct {
	Env    flow.Environment
	Reader store.Reader
	Now    func() time.Time
}

// Part is one part of the program and whether it works.
type Part struct {
	Name string
	OK   bool
}

// WatchConfig is what a Watch reads. All of it may fail; what was read before is
// then shown on, and how old it is.
type WatchConfig struct {
	Places []Place
	Parts  func(ctx context.Context) []Part                              // as /readyz asks them; nil: none
	Logs   []string                                                      // the files of SQLite that grow until they are written back
	Disk   func() (free, all uint64, err error)                          // of the data dir
	Backup func() time.Time                                              // when the last one was made, zero for never; nil: nobody here makes any
	Clocks map[string]func(ctx context.Context) (time.Time, bool, error) // of others, by what they are; false: has none
	Now    func() time.Time                                              // the machine's
	Ran    func() time.Duration                                          // how long the program runs, by what nobody can set
	Log    *slog.Logger
}

// Watch reads in the background what nobody tells the Meter.
type Watch struct {
	cfg     WatchConfig
	clock   []shown // by the machine's clock, the oldest first
	ledgers map[flow.Environment]*sweep
	moves   map[flow.Environment]moves
	began   time.Time // before the first reading

	mu   sync.Mutex
	last reading
	bad  bool // the last reading failed
}

// reading is what was read at one time.
type reading struct {
	at         time.Time // of the last one that worked
	took       time.Duration
	exceptions map[flow.Environment]map[store.Queue]queue
	webhooks   map[flow.Environment]backlog
	chats      map[flow.Environment]hushed
	imbalance  flow.Kobo
	parts      []Part
	wal        int64
	free, all  uint64
	backedUp   *float64 // Unix seconds, nil where it is not ours to know
	skew       map[string]time.Duration
}

// queue is how much waits in a queue, and for how long.
type queue struct {
	count  int
	oldest time.Duration
}

// backlog is what merchants are still to be told.
type backlog struct {
	owed, held int
	oldest     time.Duration // of what is owed
	heldBack   time.Duration // of the oldest that is held for who does not answer
}

// hushed is for how long payers have waited for what they are to be told.
type hushed struct {
	outbox time.Duration // of the oldest message that is to go out
	call   time.Duration // of who has waited longest for a person
}

// shown is what the machine's clock showed when the program had run for so long.
type shown struct {
	at  time.Time
	ran time.Duration
}

// sweep goes through a ledger stretch by stretch, again and again.
type sweep struct {
	next     store.LedgerPlace
	off      flow.Kobo // in this round so far
	lastTime flow.Kobo // in the round before
}

// Watch makes a Watch of a Meter and shows with it what it reads.
func (m *Meter) Watch(c WatchConfig) *Watch {
	w := &Watch{cfg: c, ledgers: map[flow.Environment]*sweep{}, moves: map[flow.Environment]moves{}, began: c.Now()}
	for _, p := range c.Places {
		w.ledgers[p.Env] = &sweep{}
	}
	m.registry.MustRegister(w)
	return w
}

// Run reads until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	ticker := time.NewTicker(watchEach)
	defer ticker.Stop()
	for {
		w.tell(ctx, w.Read(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// tell logs when readings begin to fail and when they work again.
func (w *Watch) tell(ctx context.Context, err error) {
	if ctx.Err() != nil || w.bad == (err != nil) {
		return
	}
	w.bad = err != nil
	if w.bad {
		w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "what metrics show of the store cannot be read", slog.String("error", err.Error()))
		return
	}
	w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "what metrics show of the store is read again")
}

// Read reads once.
func (w *Watch) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	began := w.cfg.Now()
	next := reading{
		exceptions: map[flow.Environment]map[store.Queue]queue{}, webhooks: map[flow.Environment]backlog{}, chats: map[flow.Environment]hushed{},
		skew: map[string]time.Duration{},
	}
	var faults error
	if w.cfg.Parts != nil {
		next.parts = w.cfg.Parts(ctx)
	}
	for _, p := range w.cfg.Places {
		faults = errors.Join(faults, next.exceptionsOf(ctx, p), next.backlogOf(ctx, p), w.chatsOf(ctx, p, &next), w.ledgerOf(ctx, p, &next))
	}
	w.host(&next)
	w.clocks(ctx, &next)
	now := w.cfg.Now()
	next.at, next.took = now, now.Sub(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	if faults != nil { // a gauge that is half read would be a lie: what holds of it is whether parts work
		w.last.parts = next.parts
		return faults
	}
	w.last = next
	return nil
}

// exceptionsOf reads what waits for somebody in an environment.
func (r *reading) exceptionsOf(ctx context.Context, p Place) error {
	now := p.Now()
	queues := map[store.Queue]queue{}
	r.exceptions[p.Env] = queues
	for _, name := range store.Queues() {
		count, since, err := p.Reader.QueueSize(ctx, store.QueueFilter{Queue: name, Now: now})
		if err != nil {
			return err
		}
		q := queue{count: count}
		if count > 0 {
			q.oldest = max(0, now.Sub(since))
		}
		queues[name] = q
	}
	return nil
}

func (r *reading) backlogOf(ctx context.Context, p Place) error {
	owed, held, oldest, err := p.Reader.Backlog(ctx)
	if err != nil {
		return err
	}
	heldBack, err := p.Reader.HeldBack(ctx)
	if err != nil {
		return err
	}
	b, now := backlog{owed: owed, held: held}, p.Now()
	if owed > 0 {
		b.oldest = max(0, now.Sub(oldest))
	}
	if !heldBack.IsZero() {
		b.heldBack = max(0, now.Sub(heldBack))
	}
	r.webhooks[p.Env] = b
	return nil
}

// chatsOf reads for how long payers have waited. All numbers may be those of an
// environment whose clock merchants move, and the payers are people all the same:
// they wait by the machine's.
func (w *Watch) chatsOf(ctx context.Context, p Place, into *reading) error {
	now := w.cfg.Now()
	seen := w.moves[p.Env].see(now, p.Now())
	w.moves[p.Env] = seen
	outbox, call, err := checkout.PayersWait(ctx, p.Reader)
	if err != nil {
		return err
	}
	into.chats[p.Env] = hushed{outbox: seen.wait(outbox, now), call: seen.wait(call, now)}
	return nil
}

// ledgerOf looks at the newest transactions of a ledger and at a stretch of all of
// them. A fault that was found shows until a whole round has found none.
func (w *Watch) ledgerOf(ctx context.Context, p Place, into *reading) error {
	newest, err := p.Reader.LedgerNewest(ctx)
	if err != nil {
		return err
	}
	s := w.ledgers[p.Env]
	off, next, err := p.Reader.LedgerOff(ctx, s.next, ledgerStretch)
	if err != nil {
		return err
	}
	s.next, s.off = next, s.off+off
	if next == (store.LedgerPlace{}) {
		s.lastTime, s.off = s.off, 0
	}
	into.imbalance += max(newest, s.off, s.lastTime)
	return nil
}

// host reads what the disk says.
func (w *Watch) host(into *reading) {
	for _, file := range w.cfg.Logs {
		if info, err := os.Stat(file); err == nil { // one that is not there is as good as empty
			into.wal += info.Size()
		}
	}
	if w.cfg.Backup != nil {
		into.backedUp = new(float64)
		if at := w.cfg.Backup(); !at.IsZero() {
			*into.backedUp = unixSeconds(at)
		}
	}
	if w.cfg.Disk == nil {
		return
	}
	if free, all, err := w.cfg.Disk(); err == nil { // else nothing is shown of it
		into.free, into.all = free, all
	}
}

// clocks compares the machine's clock with others, and with itself some minutes
// ago: time that passes is counted apart from what the clock shows, so that a clock
// that was set is seen.
func (w *Watch) clocks(ctx context.Context, into *reading) {
	now := shown{at: w.cfg.Now().Round(0), ran: w.cfg.Ran()} // rounded, it is what the clock shows and no more
	w.clock = append(w.clock, now)
	for len(w.clock) > 1 && now.ran-w.clock[1].ran >= stepShown {
		w.clock = w.clock[1:]
	}
	into.skew["itself"] = now.at.Sub(w.clock[0].at) - (now.ran - w.clock[0].ran)
	for name, ask := range w.cfg.Clocks {
		asked := w.cfg.Now()
		said, has, err := ask(ctx)
		if err != nil {
			continue // that it is away is shown by its part
		}
		if took := w.cfg.Now().Sub(asked); has && took <= clockWithin {
			into.skew[name] = asked.Add(took / 2).Sub(said)
		}
	}
}
