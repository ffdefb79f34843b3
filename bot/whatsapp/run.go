package whatsapp

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
)

// pace is how long things take at most, and how they are spaced.
type pace struct {
	retryFrom, retryTo   time.Duration // between two tries to connect
	againFrom, againTo   time.Duration // between two lines that are renewed for a message
	login                time.Duration // from the line to a login or a QR code
	relogin              time.Duration // from a pairing to the line's end
	firstCode, otherCode time.Duration // a QR code is good for
	receive, tick        time.Duration // handing over one message, one tick
	drain                time.Duration // what is under way when Run ends
	ack, send            time.Duration // WhatsApp's word on a message; all of Send
	ban                  time.Duration // when WhatsApp names no end
	sync, syncMost       time.Duration // what was missed is in when so long nothing more comes; all of it
	replaced, calm       time.Duration // before the one try after being replaced; before there is one again
	hang                 time.Duration // for the library to let go of a wire
}

var usual = pace{
	retryFrom: time.Second, retryTo: time.Minute,
	againFrom: time.Second, againTo: time.Minute,
	login: time.Minute, relogin: 10 * time.Second,
	firstCode: time.Minute, otherCode: 20 * time.Second,
	receive: 30 * time.Second, tick: 5 * time.Second,
	drain: 8 * time.Second,
	ack:   30 * time.Second, send: time.Minute,
	ban: time.Hour, hang: 2 * time.Second, sync: 10 * time.Second, syncMost: time.Minute,
	replaced: 30 * time.Second, calm: 10 * time.Minute,
}

// nearRetry is the longest wait before a network that somebody dials for us is
// called again: it is ours or a neighbour's, and minds no knocking.
const nearRetry = 5 * time.Second

// pacing is how a client paces itself.
func pacing(cfg Config) pace {
	p := usual
	if cfg.Dial != nil {
		p.retryTo = nearRetry
	}
	return p
}

// spaced is the wait before try n: none before the first, then twice as long
// each time, up to a bound.
func spaced(n int, from, to time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(from<<min(n-1, 16), to)
}

// link is where the line stands, as its events tell.
type link struct {
	state   State
	trouble string // why the last line did not open
	wa      *whatsmeow.Client
	wire    *wire // of the line, nil while there is none yet
	number  string
	dialled bool          // the line was opened and nothing ended it since
	fresh   bool          // the next line is for keys that nobody linked yet
	tries   int           // lines in a row that came to nothing
	codes   []string      // QR codes not used up; the first is the one that is good
	shown   bool          // the first code was given to OnPairing
	total   int           // codes that this line began with
	within  time.Duration // for a login, or until a ban is over
	again   bool          // a message was not kept: it has to come again
	refused int           // lines renewed for that, not long ago
	renewed time.Time     // the last of them
	marks
}

// set changes the link and wakes those who wait for that.
func (c *Client) set(change func(l *link)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.link.outside()
	change(&c.link)
	if c.link.outside() != before {
		c.link.since = c.cfg.Now()
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// action is what Run has to do next.
type action int

const (
	actWait   action = iota // nothing, until the link changes
	actDial                 // open a new line
	actShow                 // show the current QR code
	actCode                 // go on to the next QR code
	actHang                 // hang up for good
	actAgain                // renew the line, so that a message comes again
	actSynced               // what was missed is in, or does not come
	actBack                 // try once more after being replaced
)

// next is what has to be done and in how long, and a channel that closes when
// that is out of date.
func (c *Client) next() (action, time.Duration, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	act, wait := c.link.next(c.pace, c.cfg.Now())
	return act, wait, c.changed
}

func (l *link) next(p pace, now time.Time) (action, time.Duration) {
	switch {
	case l.state.givenUp() && l.dialled:
		return actHang, 0
	case l.state == StateReplaced && l.comeback:
		return actBack, p.replaced
	case l.state.givenUp():
		return actWait, 0
	case l.state == StateBanned:
		return actDial, l.within
	case !l.dialled:
		return actDial, spaced(l.tries, p.retryFrom, p.retryTo)
	case l.state == StatePairing && !l.shown:
		return actShow, 0
	case l.state == StatePairing && len(l.codes) == l.total:
		return actCode, p.firstCode
	case l.state == StatePairing:
		return actCode, p.otherCode
	case l.state == StateConnected && l.again:
		return actAgain, spaced(l.refused, p.againFrom, p.againTo)
	case l.state == StateConnected && !l.synced:
		return actSynced, l.missing(p, now)
	case l.state == StateConnected:
		return actWait, 0
	default: // a login that does not come, a line that does not end
		return actDial, l.within
	}
}

// Run connects and stays connected, pairs where nothing is paired, and returns
// nil when ctx ends or the client is closed. It returns an error only when it
// cannot begin.
func (c *Client) Run(ctx context.Context) error {
	ctx, err := c.begin(ctx)
	if err != nil {
		return err
	}
	// Events that are under way when ctx ends are still handled to their end.
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	var reading sync.WaitGroup
	defer c.end(cut, &reading)
	wa, number, err := c.device(work, false)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	c.set(func(l *link) { *l = c.first(wa, number) })
	reading.Go(func() { c.markRead(ctx) })
	for {
		act, wait, changed := c.next()
		timer := time.NewTimer(wait)
		due := timer.C
		if act == actWait {
			due = nil
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-changed:
		case <-due:
			c.do(ctx, work, cut, act)
		}
		timer.Stop()
	}
}

// begin makes sure that there is one Run, and that Close can end it.
func (c *Client) begin(ctx context.Context) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.stop != nil {
		return nil, ErrClosed
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.ended = make(chan struct{})
	return ctx, nil
}

// end hangs up, waits for what is under way and leaves the client as Open did.
func (c *Client) end(cut context.CancelFunc, reading *sync.WaitGroup) {
	c.mu.Lock()
	wa, stop, ended := c.link.wa, c.stop, c.ended
	c.mu.Unlock()
	stop()
	// What has begun is finished while the line is still there, so that it can
	// be acknowledged; what comes now is not taken and comes again.
	late := time.AfterFunc(c.pace.drain, cut)
	c.gate.Lock()
	c.stopping = true
	c.gate.Unlock()
	if wa != nil {
		c.hangUp(wa)
	}
	late.Stop()
	cut()
	reading.Wait()
	c.settleSends()
	c.set(func(l *link) { *l = link{state: StateStopped} })
	c.gate.Lock()
	c.stopping = false // events of the old line find no work context and fail
	c.gate.Unlock()
	c.mu.Lock()
	c.stop = nil
	c.mu.Unlock()
	close(ended)
}

// do does one thing. Everything that opens or ends a line is done here, in one
// goroutine.
func (c *Client) do(ctx, work context.Context, cut context.CancelFunc, act action) {
	c.mu.Lock()
	wa := c.link.wa
	c.mu.Unlock()
	switch act {
	case actWait:
	case actDial:
		c.dial(ctx, work, cut, wa)
	case actHang:
		c.hangUp(wa)
		c.set(func(l *link) { l.dialled, l.codes = false, nil })
	case actShow:
		c.show()
	case actCode:
		c.set(func(l *link) {
			if l.shown = false; len(l.codes) > 0 {
				l.codes = l.codes[1:]
			}
			if len(l.codes) == 0 { // a new line brings new ones
				l.state, l.dialled, l.tries = StateConnecting, false, 0
			}
		})
	case actAgain:
		now := c.cfg.Now()
		c.set(func(l *link) {
			if now.Sub(l.renewed) > 2*c.pace.againTo {
				l.refused = 0
			}
			l.again, l.renewed, l.refused = false, now, l.refused+1
		})
		c.log.WarnContext(ctx, "whatsapp line renewed, so that a message comes again")
		c.cut()
	case actSynced:
		c.set(func(l *link) { l.synced = true })
	case actBack:
		c.comeBack(ctx)
	}
}

// show gives the current QR code to whoever draws it.
func (c *Client) show() {
	var code string
	c.set(func(l *link) {
		if l.shown = true; len(l.codes) > 0 {
			code = l.codes[0]
		}
	})
	if c.cfg.OnPairing != nil && code != "" {
		c.cfg.OnPairing(code)
	}
}

// dial opens a line. Whatever comes of it arrives as events; only a line that
// does not open is an error here.
func (c *Client) dial(ctx, work context.Context, cut context.CancelFunc, wa *whatsmeow.Client) {
	var fresh bool
	c.set(func(l *link) {
		fresh = l.fresh
		l.state, l.dialled, l.codes, l.shown, l.within = StateConnecting, true, nil, false, c.pace.login
		l.again = false // what was not acknowledged comes on the new line
		l.synced, l.silent = false, false
		l.tries++
	})
	c.hangUp(wa) // a line that may still be open
	c.set(func(l *link) { l.wire = nil })
	failed := func(err error) {
		c.log.WarnContext(ctx, "whatsapp not reached", slog.String("error", scrub(err.Error())))
		c.set(func(l *link) { l.dialled, l.trouble = false, scrub(err.Error()) })
	}
	if err := c.may(ctx); err != nil {
		failed(err)
		return
	}
	if fresh {
		made, _, err := c.device(work, true)
		if err != nil {
			failed(err)
			return
		}
		wa = made
		c.set(func(l *link) { l.wa, l.number, l.fresh = wa, "", false })
	}
	// Connecting has no other way to be ended early.
	keep := context.AfterFunc(ctx, cut)
	err := c.connect(ctx, work, wa)
	keep()
	switch {
	case err == nil:
		c.set(func(l *link) { l.trouble = "" })
	case ctx.Err() == nil:
		failed(err)
	}
}

// connect opens a line, and does not wait for it longer than it takes to break it once
// ctx has ended: the library waits 20 s for the first answer of a network, whatever
// became of the line, and lets go of all it has by itself then.
func (c *Client) connect(ctx, work context.Context, wa *whatsmeow.Client) error {
	opened := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				stack := debug.Stack()
				opened <- fmt.Errorf("connecting panicked: %v\n%s", p, stack[:min(len(stack), maxPanic)])
			}
		}()
		opened <- wa.ConnectContext(work)
	}()
	select {
	case err := <-opened:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(c.pace.hang)
	defer late.Stop()
	select {
	case err := <-opened:
		return err
	case <-late.C:
	}
	if w := c.wire(); w != nil { // so that nobody says good-bye on it, who would wait too
		_ = w.Close()
	}
	return ctx.Err()
}

// cut breaks the line; its end arrives as an event, and Run opens a new one.
func (c *Client) cut() {
	if w := c.wire(); w != nil {
		w.cut()
	}
}

func (c *Client) wire() *wire {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.wire
}

// hangUp ends the line for good. One that ended by itself is left to the
// library, which is clearing it up.
func (c *Client) hangUp(wa *whatsmeow.Client) {
	w := c.wire()
	if w == nil || w.over() {
		return
	}
	w.mute(c.pace.hang)
	wa.Disconnect()
	_ = w.Close()
}

// Resume makes another try after the number was replaced, logged out or found
// outdated; after a log-out that means to pair anew. In every other state it
// does nothing.
func (c *Client) Resume() {
	c.set(func(l *link) {
		if !l.state.givenUp() {
			return
		}
		l.fresh = l.state == StateLoggedOut
		l.state, l.dialled, l.tries = StateConnecting, false, 0
	})
}
