package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
)

// MaxNumbers is how many numbers one fleet has at most.
const MaxNumbers = 50

// FleetConfig is what a Fleet is made of. All but OnPairing, Lock, Every and Within
// are needed.
type FleetConfig struct {
	Dir     string // of the keys: a file for each number
	Name    string // of the environment; the files begin with it
	Numbers int    // at least so many places for numbers; there are more where there are keys of more
	// Client is what each Client is made of: File, May, Ear, Past and OnPairing
	// are the fleet's.
	Client Config
	Board  *checkout.Board
	Leases *checkout.Leases
	// OnPairing is called with the text of each new QR code to link a phone with.
	OnPairing func(slot int, qr string)
	// Lock takes a file for this process alone. Nil: nothing is locked.
	Lock func(path string) (unlock func() error, err error)
	// Every is how often numbers prove to each other that they hear, 0 for never.
	Every  time.Duration
	Within time.Duration // how long such a proof may be on its way, 0 for a minute
	Rand   io.Reader     // of the ids of those proofs
}

// Fleet runs the numbers of one environment, each by itself: whatever becomes of
// one (replaced, unlinked, refused, a panic) stops neither another nor the
// process. It is safe for use from several goroutines.
//
// A number that another process runs is waited for and taken over when that one
// lets go of it, or says nothing for as long as a lease lasts.
type Fleet struct {
	cfg FleetConfig
	log *slog.Logger

	alone atomic.Int32 // whether its one number is answered by its own phone: phoneSilent, phoneAnswers, or 0 while nobody knows

	mu     sync.Mutex
	slots  []int           // of its numbers; one is added where another process links one
	ahead  map[int]bool    // those that have keys, and that nobody tried to run yet
	lines  map[int]*Client // those that this process runs now
	faults map[int]error   // of numbers that do not run because of their keys
}

// NewFleet makes a Fleet and the folder of its keys. Nothing is opened before Run.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	if cfg.Dir == "" || cfg.Name == "" || cfg.Board == nil || cfg.Leases == nil || cfg.Rand == nil || cfg.Client.Now == nil || cfg.Client.Log == nil {
		return nil, fmt.Errorf("%w: a part of the fleet is missing", ErrInput)
	}
	if cfg.Numbers < 0 || cfg.Numbers > MaxNumbers {
		return nil, fmt.Errorf("%w: a fleet has at most %d numbers", ErrInput, MaxNumbers)
	}
	cfg.Within = cmp.Or(cfg.Within, signWithin)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the keys: %w", err)
	}
	linked, err := Slots(cfg.Dir, cfg.Name)
	if err != nil {
		return nil, err
	}
	slots := slices.Clone(linked)
	for slot := 1; slot <= cfg.Numbers; slot++ {
		if !slices.Contains(slots, slot) {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	f := &Fleet{cfg: cfg, log: cfg.Client.Log, slots: slots[:min(len(slots), MaxNumbers)], ahead: map[int]bool{}, lines: map[int]*Client{}, faults: map[int]error{}}
	for _, slot := range f.slots {
		if slices.Contains(linked, slot) {
			f.ahead[slot] = true
		}
	}
	return f, nil
}

// Run runs all numbers until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() {
		for slot := range f.found(ctx) {
			running.Go(func() { f.keep(ctx, slot) })
		}
	})
	if f.cfg.Every > 0 {
		running.Go(func() { f.signs(ctx) })
	}
	running.Wait()
	return nil
}

// The waits of a number that does not run.
const (
	standbyEvery          = time.Second // between two looks at a number that another process runs
	failedFrom, failedTo  = time.Second, time.Minute
	reportEvery           = 250 * time.Millisecond
	elsewhereAgain        = 300 * time.Millisecond
	letGoWithin           = 5 * time.Second
	phoneNoted            = time.Hour
	maxPanic              = 4 << 10
	lockEnding, maxHolder = ".lock", 200
)

// keep runs one number whenever this process may, until ctx ends.
func (f *Fleet) keep(ctx context.Context, slot int) {
	failed, last := 0, ""
	for ctx.Err() == nil {
		err := f.hold(ctx, slot)
		wait, told := standbyEvery, "another process runs it"
		switch {
		case err == nil:
			failed, told = 0, ""
		case !errors.Is(err, checkout.ErrHeld):
			failed++
			wait, told = spaced(failed, failedFrom, failedTo), err.Error()
		}
		f.blame(slot, err)
		if told != last && ctx.Err() == nil { // one line for each change
			f.log.LogAttrs(ctx, slog.LevelWarn, "whatsapp number does not run here", slog.Int("slot", slot), slog.String("reason", scrub(told)))
		}
		last = told
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hold takes one number and runs it until ctx ends or it is lost. A panic is an
// error like another.
func (f *Fleet) hold(ctx context.Context, slot int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			err = fmt.Errorf("whatsapp: number %d panicked: %v\n%s", slot, p, stack[:min(len(stack), maxPanic)])
		}
	}()
	file := KeysFile(f.cfg.Dir, f.cfg.Name, slot)
	lock, past, heir := f.lock(file)
	defer func() { err = errors.Join(err, lock.release()) }()
	lease, err := f.cfg.Leases.Take(ctx, slot, heir)
	if lock.fault != nil {
		err = fmt.Errorf("%w: %w", ErrKeys, lock.fault)
	}
	if lease == nil {
		return err
	}
	defer func() {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGoWithin)
		defer cancel()
		if errors.Is(err, ErrKeys) && ctx.Err() == nil {
			err = errors.Join(err, f.mute(short, lease, err))
		}
		err = errors.Join(err, lease.Drop(short), f.cfg.Board.Refresh(short))
	}()
	if err != nil {
		return err
	}
	if !lock.held() && (past == "" || past != lease.Row.Holder) {
		// It is not the one whose lease has run out: a process with another
		// database has these keys, and nothing but the lock is between us.
		return fmt.Errorf("%w: the keys in %s are used", checkout.ErrHeld, filepath.Base(file))
	}
	if err := lock.sign(f.cfg.Leases.Holder()); err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return f.run(ctx, file, lease)
}

// run runs a number that is held.
func (f *Fleet) run(ctx context.Context, file string, lease *checkout.Lease) (err error) {
	cfg := f.cfg.Client
	cfg.File, cfg.Past = file, lease.Row
	cfg.Log = f.log.With(slog.Int("slot", lease.Slot)) // which of our numbers it is that a line is about
	if f.cfg.OnPairing != nil {
		cfg.OnPairing = func(qr string) { f.cfg.OnPairing(lease.Slot, qr) }
	}
	var client *Client
	cfg.May = lease.Check
	cfg.Ear = func(m bot.Message) bool { return f.ours(m) && client.ear.take(m) }
	client, err = Open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }() // after a panic too
	f.set(lease.Slot, client)
	defer f.set(lease.Slot, nil)
	ctx, lose := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer lose(nil)
	beside.Go(func() { lose(lease.Keep(ctx)) })
	beside.Go(func() { f.report(ctx, client, lease) })
	err = client.Run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, checkout.ErrLeaseLost) {
		err = errors.Join(err, cause)
	}
	return err
}

// errKilled says that an operator switched a number off.
var errKilled = errors.New("whatsapp: switched off by an operator")

// report keeps how a number stands where operators and other processes read it,
// whenever that changes, and no more often than is of use.
func (f *Fleet) report(ctx context.Context, client *Client, lease *checkout.Lease) {
	var kept flow.Number
	for {
		client.mu.Lock()
		changed := client.changed
		client.mu.Unlock()
		now := client.Standing()
		now.Slot, now.Token, now.PhoneSeen = lease.Slot, lease.Token, now.PhoneSeen.Truncate(phoneNoted)
		if now.State != flow.NumberOffline && now != kept { // a line that ended says nothing of the number
			if err := f.cfg.Board.Report(ctx, now); err == nil {
				kept = now
			} else if ctx.Err() == nil {
				f.log.LogAttrs(ctx, slog.LevelWarn, "how a whatsapp number stands is not kept", slog.Int("slot", lease.Slot), slog.String("error", err.Error()))
			}
		}
		pause := time.NewTimer(reportEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
		// What changes by itself (a lock that ends, a phone that stays away) is
		// seen now and then.
		again := time.NewTimer(checkout.LeaseRenew)
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (f *Fleet) set(slot int, client *Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if client == nil {
		delete(f.lines, slot)
		return
	}
	f.lines[slot] = client
	delete(f.ahead, slot)
}

// running are the numbers that this process runs, by slot.
func (f *Fleet) running() []*Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*Client
	for _, slot := range f.slots {
		if c := f.lines[slot]; c != nil {
			list = append(list, c)
		}
	}
	return list
}

// ours says whether a message came from one of our own numbers.
func (f *Fleet) ours(m bot.Message) bool {
	return f.cfg.Board.Ours(string(m.Phone)) ||
		slices.ContainsFunc(f.running(), func(c *Client) bool { return m.Person != "" && c.lid() == m.Person })
}

// Send sends a message with the number that its chat is with. Errors are those
// of Client.Send; ErrOffline too while this process does not run that number.
func (f *Fleet) Send(ctx context.Context, o checkout.Outgoing) error {
	if f.cfg.Board.Killed(o.Number) {
		return fmt.Errorf("%w: %w", ErrOffline, errKilled)
	}
	for _, c := range f.running() {
		if c.Number() == o.Number && o.Number != "" {
			return c.Send(ctx, o)
		}
	}
	err := fmt.Errorf("%w: %s does not run here", ErrOffline, shortened(o.Number))
	if f.elsewhere(func(n flow.Number) bool { return n.Digits == o.Number }) { // whoever runs it finds the message, if we leave it alone
		return errors.Join(&checkout.NotYetError{Wait: elsewhereAgain}, err)
	}
	return err
}

// elsewhere says whether another process runs a number of which something is so.
func (f *Fleet) elsewhere(is func(flow.Number) bool) bool {
	now := f.cfg.Client.Now()
	return slices.ContainsFunc(f.cfg.Board.Numbers(), func(n flow.Number) bool {
		return is(n) && n.Holder != "" && n.Holder != f.cfg.Leases.Holder() && now.Before(n.HeldUntil)
	})
}

// Typing shows a person that an answer is being written.
func (f *Fleet) Typing(ctx context.Context, number, person string) {
	for _, c := range f.running() {
		if c.Number() == number && !f.cfg.Board.Killed(number) {
			c.Typing(ctx, number, person)
			return
		}
	}
}

// Syncing says that what payers sent one of the numbers while it was away is still
// coming in, whichever process runs it, or is about to, at the start: what they are
// told by the clock had better wait.
func (f *Fleet) Syncing() bool {
	f.mu.Lock()
	starts := len(f.ahead) > 0
	f.mu.Unlock()
	return starts || slices.ContainsFunc(f.running(), func(c *Client) bool { return c.State() == string(StateStopped) || c.Syncing() }) || // in this order: it may begin to run in between
		f.elsewhere(func(n flow.Number) bool {
			opens := n.State == flow.NumberConnecting && n.Digits != "" && f.cfg.Client.Now().Before(n.Since.Add(usual.syncMost))
			return opens || n.State == flow.NumberSyncing
		})
}

// Pairing is the text of a QR code that links a phone now, false when none is
// shown.
func (f *Fleet) Pairing() (qr string, ok bool) {
	for _, c := range f.running() {
		if qr, ok = c.Pairing(); ok {
			return qr, true
		}
	}
	return "", false
}

// Trouble says why the network was not reached when it was last tried, "" where
// it was.
func (f *Fleet) Trouble() string {
	for _, c := range f.running() {
		if why := c.Trouble(); why != "" {
			return why
		}
	}
	return ""
}
