package checkout_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
)

// unsigned is the verdict on what cannot be signed.
var unsigned = flow.Verdict{Reason: "unsendable", Ours: true, Unsent: true}

// What cannot be sent through a fault of our own is no try: it waits, and its
// endpoint is not to blame.
func TestWhatCannotBeSentThroughAFaultOfOurOwnWaits(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.stoppedOwing(25)
		w.posting(failing(unsigned, e.ID))
		w.run()
		w.rest()
		if n := w.to(e.ID); n != 25 {
			t.Errorf("it was tried %d times at once", n)
		}
		w.passes(11, time.Minute)
		is := w.endpointIs(e.ID)
		if !is.OpenSince.IsZero() || !is.FailingSince.IsZero() || is.Failures != 0 {
			t.Errorf("it speaks against %+v", is)
		}
		if n := w.count("state = 'pending' AND attempts = 0 AND cause = 'auto'"); n != 25 || w.to(e.ID) != 25*12 {
			t.Errorf("%d of 25 wait unspent, after %d tries", n, w.to(e.ID))
		}
		if n := w.logged("level=ERROR msg=\"a delivery cannot be sent"); n != 2 {
			t.Errorf("%d lines in eleven minutes", n)
		}
		w.posting(nil)
		w.later(time.Minute)
		if n := w.count("state = 'delivered' AND attempts = 1"); n != 25 {
			t.Errorf("%d of 25 are delivered, at the first try", n)
		}
	})
}

// However much an endpoint is owed that cannot be sent, no more of it is taken in a
// while than there is room for; who asks for a try is told at once that it was in vain.
func TestWhatCannotBeSentIsTakenAPartAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.end()
		w.open(true)
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		const owed, room = 1400, 512
		w.backlog(e, "a", owed)
		w.posting(failing(unsigned, e.ID))
		w.run()
		tried := 0
		for round := 1; round <= 2; round++ {
			// How many of a part are tried is not for sure: a look that the minute overtakes
			// claims what is then too late to be tried, and waits for the next while.
			w.until("a part to be taken", func() bool {
				d := w.service.Deliveries()
				return w.to(e.ID) > tried && d.NotYetKept == 0 && d.Queued == 0
			})
			w.ping(e.ID)
			w.until("the ping to be over", func() bool { return w.count("state = 'dead'") == round })
			tried = w.to(e.ID)
			if most := round*room + 100; tried > most { // what found a place before it was known, and pings
				t.Errorf("%d were tried in %d rounds, of at most %d", tried, round, most)
			}
			w.pass(time.Minute)
		}
		w.posting(nil)
		w.passes(2, time.Minute)
		if n := w.count("state = 'delivered'"); n != owed {
			t.Errorf("%d of %d are delivered", n, owed)
		}
	})
}

// What can never be sent is given up once its schedule is spent, and its endpoint
// is not to blame for it.
func TestWhatCanNeverBeSentIsGivenUp(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.stoppedOwing(25)
		w.posting(failing(flow.Verdict{Reason: "too_large", Ours: true}, e.ID))
		w.run()
		w.rest()
		w.passes(9, time.Minute)
		is := w.endpointIs(e.ID)
		if n := w.count("state = 'dead' AND attempts = 10"); n != 25 || is.Failures != 0 || !is.FailingSince.IsZero() || !is.OpenSince.IsZero() {
			t.Errorf("%d of 25 are given up, and it is %+v", n, is)
		}
	})
}

// However many could not be sent one after the other, they are put off together.
func TestWhatCannotBeSentIsPutOffTogether(t *testing.T) {
	t.Parallel()
	w, line, e := faraway(t, 0)
	release := make(chan bool)
	w.posting(func(context.Context, flow.Delivery) flow.Verdict {
		<-release
		w.setClock(w.clock().Add(time.Millisecond))
		return unsigned
	})
	for range 8 {
		w.session(flow.Headless)
	}
	w.until("eight to be under way", func() bool { return w.to(e.ID) == 8 })
	line.Cut()
	close(release)
	w.until("all to be over", func() bool { return w.service.Deliveries().Sending == 0 })
	line.Mend()
	w.until("all to be kept", func() bool { return w.service.Deliveries().NotYetKept == 0 })
	if n := w.count("id IN (SELECT MIN(id) FROM deliveries GROUP BY next_at)"); n > 2 { // the first alone, and the others
		t.Errorf("eight are put off to %d moments", n)
	}
}
