package checkout_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// hangs waits until something is released, or nobody waits for it any more.
func hangs(ctx context.Context, release <-chan bool) {
	select {
	case <-release:
	case <-ctx.Done():
	}
}

// hanging never answers what carries one of some kinds, until it is released.
func hanging(release <-chan bool, kinds ...flow.EventKind) func(context.Context, flow.Delivery) flow.Verdict {
	return func(ctx context.Context, d flow.Delivery) flow.Verdict {
		for _, k := range kinds {
			if strings.Contains(string(d.Body), `"event":"`+string(k)+`"`) {
				hangs(ctx, release)
				return flow.Verdict{Reason: "timeout"}
			}
		}
		return flow.Verdict{OK: true, Status: http.StatusOK}
	}
}

// ping pings an endpoint.
func (w *world) ping(id flow.EndpointID) {
	w.t.Helper()
	_, err := w.service.Ping(w.t.Context(), id, call("", "", nil))
	w.must(err)
}

func TestWhatSomebodyWaitsForGoesBeforeAllThatHangs(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		release := make(chan bool)
		w.posting(hanging(release, flow.SessionCreated))
		for range 100 { // its places are taken, and its lane is long
			w.session(flow.Headless)
		}
		w.until("its places to be taken", func() bool { return w.to(e.ID) == 8 })
		w.ping(e.ID)
		w.until("the ping to come", func() bool { return len(w.deliveries(flow.Ping)) == 1 })
		close(release)
		w.rest()
	})
}

func TestWhatSomebodyWaitsForIsFoundBeforeWhatIsDueForLonger(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		e := w.stoppedOwing(2000)
		w.pass(time.Second)
		w.ping(e.ID) // nobody is at work: it is kept, and due last
		release := make(chan bool)
		w.posting(hanging(release, flow.SessionCreated))
		w.run()
		w.until("the ping to come", func() bool { return len(w.deliveries(flow.Ping)) == 1 })
		close(release)
	})
}

func TestWhatSomebodyWaitsForIsTriedAtOnceHoweverItsEndpointDoes(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(failing(flow.Verdict{Status: http.StatusServiceUnavailable, Reason: "status", RetryAfter: time.Hour}, e.ID))
		session := w.session(flow.Headless)
		w.rest()
		w.change("UPDATE endpoints SET failures = 19 WHERE id = '" + string(e.ID) + "'")
		w.later(time.Minute) // the twentieth: it is held back
		w.session(flow.Headless)
		w.rest()
		if n := w.count("state = 'held'"); n != 2 {
			t.Fatalf("%d deliveries are held", n)
		}
		tried := w.to(e.ID)
		w.ping(e.ID)
		w.until("the ping to be tried", func() bool { return w.to(e.ID) == tried+1 })
		w.rest()
		events, err := w.db.Events(t.Context(), session.ID)
		w.must(err)
		resend := func() {
			t.Helper()
			_, err := w.service.Resend(t.Context(), events[0].ID, e.ID, call("", "", nil))
			w.must(err)
			w.rest()
		}
		resend()
		if n := w.to(e.ID); n != tried+2 || w.count("state = 'held'") != 2 { // in vain: nothing else is sent
			t.Errorf("%d tries, %d held", n-tried, w.count("state = 'held'"))
		}
		w.posting(nil)
		resend() // it answers: all of it goes out
		w.until("what was held to be sent", func() bool { w.service.Wake(); return w.count("state = 'delivered'") == 2 })
	})
}

func TestAskingOftenTriesAnEndpointThatHangsNoFaster(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		release := make(chan bool)
		w.posting(hanging(release, flow.Ping))
		for range 60 {
			w.ping(e.ID)
		}
		w.until("its places to be taken", func() bool { return w.to(e.ID) == 4 })
		w.session(flow.Headless)
		w.until("what it is owed to come all the same", func() bool { return len(w.deliveries(flow.SessionCreated)) == 1 })
		if n := len(w.deliveries(flow.Ping)); n != 4 {
			t.Errorf("%d pings are on their way at once", n)
		}
		close(release)
		w.rest()
		if n := len(w.deliveries(flow.Ping)); n != 60 || w.count("state = 'dead'") != 60 {
			t.Errorf("%d pings, %d dead", n, w.count("state = 'dead'"))
		}
	})
}

// changed changes an endpoint.
func (w *world) changed(id flow.EndpointID, to checkout.EndpointChange) flow.Endpoint {
	w.t.Helper()
	e, err := w.service.ChangeEndpoint(w.t.Context(), project, id, to)
	w.must(err)
	return e
}

// endpointIs is an endpoint as it is kept.
func (w *world) endpointIs(id flow.EndpointID) flow.Endpoint {
	w.t.Helper()
	e, err := w.db.EndpointByID(w.t.Context(), id)
	w.must(err)
	return e
}

func TestAnEndpointThatMovesOrIsEnabledAnewGetsAllThatWasHeldAtOnce(t *testing.T) {
	t.Parallel()
	const elsewhere = "https://elsewhere.test"
	for name, change := range map[string]checkout.EndpointChange{
		"moved":   {URL: new(elsewhere)},
		"enabled": {Status: flow.EndpointEnabled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				e := w.endpoint("https://shop.test", flow.SessionCreated)
				var well atomic.Bool
				w.posting(func(_ context.Context, _ flow.Delivery) flow.Verdict {
					if well.Load() {
						return flow.Verdict{OK: true, Status: http.StatusOK}
					}
					return flow.Verdict{Status: http.StatusServiceUnavailable, Reason: "status", RetryAfter: 24 * time.Hour}
				})
				w.session(flow.Headless)
				w.rest()
				w.change("UPDATE endpoints SET failures = 19 WHERE id = '" + string(e.ID) + "'")
				w.later(time.Minute)
				for range 40 {
					w.session(flow.Headless)
				}
				w.rest()
				if n := w.count("state = 'held'"); n != 41 {
					t.Fatalf("%d deliveries are held", n)
				}
				w.changed(e.ID, checkout.EndpointChange{URL: new("https://shop.test"), Description: new("the same")})
				w.rest()
				if n := w.count("state = 'held'"); n != 41 {
					t.Fatalf("nothing changed, and %d deliveries are held", n)
				}
				well.Store(true)
				is := w.changed(e.ID, change)
				if !is.OpenSince.IsZero() || is.Failures != 0 || !is.FailingSince.IsZero() {
					t.Errorf("it is %+v", is)
				}
				w.until("all of it to come", func() bool { w.service.Wake(); return w.count("state = 'delivered'") == 41 }) // the clock stands still
				posts := w.deliveries(flow.SessionCreated)
				if last := posts[len(posts)-1]; name == "moved" && last.URL != elsewhere {
					t.Errorf("the last went to %s", last.URL)
				}
			})
		})
	}
}

func TestWhatTheOldAddressStillSaysDoesNotSpeakAgainstTheNewOne(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://gone.test", flow.SessionCreated)
		release := make(chan bool)
		w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
			if d.URL != e.URL {
				return flow.Verdict{OK: true, Status: http.StatusOK}
			}
			<-release
			return flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}
		})
		w.session(flow.Headless)
		w.until("it to be under way", func() bool { return w.to(e.ID) == 1 })
		w.changed(e.ID, checkout.EndpointChange{URL: new("https://new.test")})
		close(release)
		w.rest()
		is, err := w.service.Endpoint(t.Context(), project, e.ID)
		w.must(err)
		if is.Status != flow.EndpointEnabled || is.Failures != 0 {
			t.Errorf("it is %+v", is)
		}
		w.later(time.Minute)
		if n := w.count("state = 'delivered'"); n != 1 {
			t.Errorf("%d were delivered", n)
		}
	})
}

// What an endpoint answers where it was before does not let go what is held for it
// where it is now.
func TestWhatTheOldAddressTakesDoesNotSpeakForTheNewOne(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://slow.test", flow.SessionCreated)
		release := make(chan bool)
		w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
			if d.URL != e.URL {
				return flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}
			}
			hangs(ctx, release)
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.session(flow.Headless)
		w.until("it to be under way", func() bool { return w.to(e.ID) == 1 })
		w.changed(e.ID, checkout.EndpointChange{URL: new("https://dead.test")})
		w.change("UPDATE endpoints SET failures = 19, failed_at = 9000000000000") // while what is under way takes a place, it fails no faster
		for range 25 {
			w.session(flow.Headless)
		}
		w.until("the new address to be held back", func() bool { return w.count("state = 'held'") == 26 })
		close(release)
		w.until("the old one to have answered", func() bool { return w.count("state = 'delivered'") == 1 })
		w.rest()
		is, err := w.service.Endpoint(t.Context(), project, e.ID)
		w.must(err)
		if is.OpenSince.IsZero() || is.Probes != 0 || w.count("state = 'held'") != 25 {
			t.Errorf("%d are held, and it is %+v", w.count("state = 'held'"), is)
		}
	})
}

func TestAnEndpointThatCannotBeLookedAtKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.end()
		w.open(true)
		broken, well := w.endpoint("https://broken.test", flow.SessionCreated), w.endpoint("https://well.test", flow.SessionCreated)
		other := w.endpoint("https://other.test", flow.ChargeSuccess) // is to be probed too, and later
		w.backlog(well, "a", 10)
		w.backlog(other, "b", 1)
		w.change("UPDATE deliveries SET state = 'held' WHERE endpoint = '" + string(other.ID) + "'")
		w.change("UPDATE endpoints SET open_since = 5, wake_at = 5 WHERE id = '" + string(broken.ID) + "'")
		w.change("UPDATE endpoints SET open_since = 5, wake_at = 6 WHERE id = '" + string(other.ID) + "'")
		let := w.refusing("endpoints", "NEW.id = '"+string(broken.ID)+"'", "it is broken")
		w.run()
		w.until("the others to have what they are owed", func() bool { return w.to(well.ID) == 10 && w.to(other.ID) == 1 })
		w.until("it to be told of", func() bool { return w.logged("it is broken") > 0 })
		let()
		w.rest()
		is := w.endpointIs(broken.ID)
		if !is.OpenSince.IsZero() {
			t.Errorf("nothing is held for it, and it is %+v", is)
		}
	})
}

func TestWhatIsGivenUpWhileItIsHeldIsShownAsDead(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.stoppedOwing(3)
		w.change("UPDATE deliveries SET state = 'held'")
		w.change("UPDATE endpoints SET open_since = 5, wake_at = 5, failures = 20, failing_since = 5")
		w.posting(failing(flow.Verdict{Status: 500, Reason: "status"}, e.ID))
		w.pass(flow.HeldFor + time.Minute)
		w.change("UPDATE endpoints SET failing_since = 9000000000000") // it is not disabled yet
		w.run()
		w.rest()
		for _, id := range []flow.EventID{"evt_a00000", "evt_a00001", "evt_a00002"} {
			list, _, err := w.service.DeliveriesOf(t.Context(), project, id, "", 10)
			w.must(err)
			if len(list) != 1 || list[0].State != flow.DeliveryDead || !list[0].Next.IsZero() {
				t.Errorf("%s: %+v", id, list)
			}
		}
	})
}

func TestAStoryIsBoundedAndSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	w := one(t)
	e := w.endpoint("https://shop.test", flow.SessionCreated)
	session := w.session(flow.Headless)
	w.rest()
	events, err := w.db.Events(t.Context(), session.ID)
	w.must(err)
	var id string
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
		owed, err := tx.OwedOf(t.Context(), events[0].ID)
		id = owed[e.ID].Delivery
		return err
	}))
	w.change(`WITH RECURSIVE many (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM many WHERE n < 700)
 INSERT INTO delivery_attempts (delivery, n, at, status, reason, body, micros) SELECT '` + id + `', n, 2000000000000 + n, 500, 'status', x'', 5 FROM many`)
	w.change(`INSERT INTO chats (id, number, person, phone, name, decided, created_at) VALUES ('wsp_chat_x', '1', '2', '', '', 0, 1)`)
	w.change(`WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 2500)
 INSERT INTO log (stream, seq, at, kind, cause, session, message, data) SELECT 'wsp_chat_x', n, 2100000000000 + n, 'bank.asked', 0, '` + string(session.ID) + `', '', '{}' FROM many`)
	story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
	w.must(err)
	count := func(what string) int {
		n := 0
		for _, m := range story {
			if strings.Contains(m.What, what) {
				n++
			}
		}
		return n
	}
	if len(story) > 2600 || count("to shop.test, try") != 500 || count("try 700,") != 1 || count("try 200,") != 0 {
		t.Errorf("%d moments, %d tries", len(story), count("to shop.test, try"))
	}
	for _, what := range []string{"older tries of webhooks are left out", "older lines of the log are left out"} {
		if count(what) != 1 {
			t.Errorf("it does not say %q", what)
		}
	}
	at := slices.IndexFunc(story, func(m checkout.Moment) bool { return strings.HasPrefix(m.What, "older tries") })
	if !strings.Contains(story[at+1].What, "try 201,") {
		t.Errorf("after that it goes on with %q", story[at+1].What)
	}
}
