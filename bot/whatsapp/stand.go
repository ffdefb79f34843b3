package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"till/flow"
	"till/flow/checkout"
)

// errTimelock says that WhatsApp lets a number write to nobody new for a time.
var errTimelock = errors.New("whatsapp: first messages are locked for a time")

// marks are what is known of a line beside its state.
type marks struct {
	since    time.Time // when what is shown began
	until    time.Time // when a ban is over
	code     int       // of a ban
	lockedTo time.Time // no first messages until then
	lockedOn string    // the number that is about
	phone    time.Time // when our own phone was last seen
	synced   bool      // what was missed has come in
	openBy   time.Time // by when a line is open, or what was missed is not waited for
	syncBy   time.Time // by when that is taken to be so
	hearing  int       // messages that are being handed over
	silent   bool      // keep-alives stay without an answer
	deaf     bool      // a sign from another number of ours did not arrive
	keyless  bool      // it was linked, and has no keys here
	comeback bool      // there is one more try after being replaced
	cameBack time.Time // the last such try
}

func (m marks) locked(now time.Time) bool { return now.Before(m.lockedTo) }

// noKeys is told of a number that nobody is known to have unlinked: what holds it may be a
// Till on another machine, with a data dir of its own.
const noKeys = "its keys are not in the data dir of its holder: stop that, and start the one that has them; link it again where they are lost"

// first is the link of a client that begins to run, as it was left.
func (c *Client) first(wa *whatsmeow.Client, number string) link {
	now, past := c.cfg.Now(), c.cfg.Past
	l := link{state: StateConnecting, wa: wa, number: number, marks: marks{since: now, phone: past.PhoneSeen, lockedTo: lockOf(past), lockedOn: past.Digits}}
	if number != "" && l.phone.IsZero() {
		l.phone = now // nobody knows; it is told from here on
	}
	if number != "" {
		l.openBy = now.Add(c.pace.syncMost)
	}
	switch left := past.Until.Sub(now); {
	case number == "" && !c.cfg.Relink && (past.State == flow.NumberLoggedOut || past.Digits != "" && past.State != flow.NumberPairing):
		// Its keys go before that is kept: it was linked, and nobody had begun to link it anew.
		l.state = StateLoggedOut // to link it anew is somebody's decision
		l.keyless = past.State != flow.NumberLoggedOut || past.Detail == noKeys
	case past.State == flow.NumberBanned && left > 0:
		l.state, l.within, l.until = StateBanned, left, past.Until
	}
	return l
}

// lockOf is until when a number may write to nobody new, as it was kept: beside every
// state but those that have another end.
func lockOf(n flow.Number) time.Time {
	if n.State == flow.NumberBanned || n.State == flow.NumberPhoneAway {
		return time.Time{}
	}
	return n.Until
}

// outside is what is shown of a link, without its times.
func (l *link) outside() flow.NumberState {
	switch l.state {
	case StateStopped:
		return flow.NumberOffline
	case StateConnecting:
		return flow.NumberConnecting
	case StatePairing:
		return flow.NumberPairing
	case StateBanned:
		return flow.NumberBanned
	case StatePasskey:
		return flow.NumberPasskey
	case StateReplaced:
		return flow.NumberReplaced
	case StateLoggedOut:
		return flow.NumberLoggedOut
	case StateOutdated:
		return flow.NumberOutdated
	case StateConnected:
	}
	switch {
	case l.deaf, l.silent:
		return flow.NumberDeaf
	case !l.synced:
		return flow.NumberSyncing
	}
	return flow.NumberLive
}

// Standing is how the number stands, as operators are shown it: State, Detail,
// Since, Until, Digits and PhoneSeen are filled in.
func (c *Client) Standing() flow.Number {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.link
	n := flow.Number{Digits: l.number, State: l.outside(), Since: l.since, PhoneSeen: l.phone}
	if l.locked(now) { // whatever else it is: who begins anew must know
		n.Until = l.lockedTo
	}
	since, unkept := c.file.unkept()
	switch {
	case l.state == StateConnected && unkept != nil:
		n.State, n.Detail, n.Since = flow.NumberMute, scrub(unkept.Error()), since
	case n.State == flow.NumberBanned:
		n.Until, n.Detail = l.until, fmt.Sprintf("code %d", l.code)
	case n.State == flow.NumberLoggedOut && l.keyless:
		n.Detail = noKeys
	case n.State == flow.NumberConnecting:
		n.Detail = l.trouble
	case n.State == flow.NumberDeaf && l.deaf:
		n.Detail = "a sign from another number did not arrive"
	case n.State == flow.NumberDeaf:
		n.Detail = "keep-alives stay without an answer"
	case n.State == flow.NumberLive && l.locked(now):
		n.State = flow.NumberTimelocked
	case n.State == flow.NumberLive && !l.phone.IsZero() && now.Sub(l.phone) >= flow.PhoneAwayWarns:
		n.State, n.Until = flow.NumberPhoneAway, l.phone.Add(flow.PhoneAwayEnds)
	}
	return n
}

// Syncing says that what payers sent while we were away is still coming in, or is about to,
// as the number has just begun to run or lost its line: what they are told meanwhile may be
// out of date.
func (c *Client) Syncing() bool {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.link
	return l.state == StateConnected && !l.synced || l.state == StateConnecting && now.Before(l.openBy)
}

// missing is how long nothing more has to come before what was missed counts as in. What
// is being handed over is coming in, and something may follow it.
func (l *link) missing(p pace, now time.Time) time.Duration {
	most := max(l.syncBy.Sub(now), 0)
	if l.hearing > 0 {
		return most
	}
	return min(p.sync, most)
}

// comesIn notes that a message is being handed over, and what it returns that it is no
// more.
func (c *Client) comesIn() (over func()) {
	change := func(by int) {
		c.mu.Lock()
		c.link.hearing += by
		synced := c.link.synced
		c.mu.Unlock()
		if !synced {
			c.set(func(*link) {}) // who waits for silence waits anew
		}
	}
	change(1)
	return func() { change(-1) }
}

// notice learns from an event what it is not about: that we hear, and that our
// own phone is there.
func (c *Client) notice(evt any) {
	var phone bool
	switch evt := evt.(type) {
	case *events.Message:
		phone = evt.Info.IsFromMe && evt.Info.Sender.Device == 0
	case *events.Receipt:
		phone = evt.IsFromMe && evt.Sender.Device == 0
		c.ear.receipt(evt)
	case *events.PairSuccess:
		phone = true
	default:
		return
	}
	now := c.cfg.Now()
	c.mu.Lock()
	l := &c.link
	deaf := l.deaf || l.silent
	if phone {
		l.phone = now
	}
	c.mu.Unlock()
	if deaf {
		c.set(func(l *link) { l.deaf, l.silent = false, false })
	}
}

// hears notes whether a sign from another number of ours arrived. A line on
// which one did not is renewed once; the next sign tells whether that helped.
func (c *Client) hears(ctx context.Context, ok bool) {
	c.mu.Lock()
	was := c.link.deaf
	connected := c.link.state == StateConnected
	c.mu.Unlock()
	if !connected || was != ok { // deaf as before, or hearing as before
		return
	}
	c.set(func(l *link) { l.deaf = !ok })
	if ok {
		c.log.InfoContext(ctx, "whatsapp number hears again")
		return
	}
	c.log.ErrorContext(ctx, "whatsapp number is deaf: its line is renewed")
	c.cut()
}

// lockChats notes that WhatsApp does or does not let us write to anybody new. A lock
// without an end lasts for a while, and ends none that lasts longer.
func (c *Client) lockChats(active bool, until time.Time) {
	atLeast := c.cfg.Now().Add(c.pace.ban)
	c.set(func(l *link) {
		switch {
		case !active:
			until = time.Time{}
		case until.IsZero() && l.lockedTo.After(atLeast):
			return
		case until.IsZero():
			until = atLeast
		}
		l.lockedTo, l.lockedOn = until, l.number
	})
}

// isTimelock says whether WhatsApp refused a message with the code of its
// reach-out timelock.
func isTimelock(err error) bool { return refusedWith(err, "463") }

// may says whether the number still is ours.
func (c *Client) may(ctx context.Context) error {
	if c.cfg.May == nil {
		return nil
	}
	return c.cfg.May(ctx)
}

// comeBack makes the one try after being replaced, if the number still is ours:
// whoever replaced us may have been ourselves on a line that was already dead.
func (c *Client) comeBack(ctx context.Context) {
	now := c.cfg.Now()
	err := c.may(ctx)
	c.set(func(l *link) {
		if l.comeback = false; err == nil && l.state == StateReplaced {
			l.state, l.dialled, l.tries, l.cameBack = StateConnecting, false, 0, now
		}
	})
	level := slog.LevelWarn
	if err != nil && !errors.Is(err, checkout.ErrLeaseLost) { // nobody else has it, and it stays where it is
		level = slog.LevelError
	}
	c.log.Log(ctx, level, "whatsapp number was replaced", slog.Bool("tried_again", err == nil))
}
