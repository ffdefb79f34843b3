package checkout_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// aside opens the database as somebody beside the program would.
func (w *world) aside() *sql.DB {
	w.t.Helper()
	driver, at := "sqlite", "file:"+filepath.Join(w.store.Dir, w.store.Name+".db")+"?_pragma=busy_timeout(5000)"
	if w.store.URL != "" {
		driver, at = "pgx", w.store.URL+map[bool]string{true: "&", false: "?"}[strings.Contains(w.store.URL, "?")]+"search_path="+w.store.Name
	}
	db, err := sql.Open(driver, at)
	w.must(err)
	return db
}

// change runs a statement.
func (w *world) change(query string) {
	w.t.Helper()
	db := w.aside()
	_, err := db.ExecContext(w.t.Context(), query)
	w.must(errors.Join(err, db.Close()))
}

// count is how many deliveries there are of a kind.
func (w *world) count(where string) (n int) {
	w.t.Helper()
	db := w.aside()
	err := db.QueryRowContext(w.t.Context(), "SELECT COUNT(*) FROM deliveries WHERE "+where).Scan(&n)
	w.must(errors.Join(err, db.Close()))
	return n
}

// failing answers 500 to some endpoints, or what is given.
func failing(v flow.Verdict, ids ...flow.EndpointID) func(context.Context, flow.Delivery) flow.Verdict {
	return func(_ context.Context, d flow.Delivery) flow.Verdict {
		if slices.Contains(ids, d.Endpoint) {
			return v
		}
		return flow.Verdict{OK: true, Status: http.StatusOK}
	}
}

func TestAnEndpointThatIsDisabledIsToldOfToTheOthersOfItsProject(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]flow.Verdict{
		flow.DisabledGone:    {Gone: true, Status: http.StatusGone, Reason: "gone"},
		flow.DisabledFailing: {Status: 500, Reason: "status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				ended := w.endpoint("https://ended.test", flow.SessionCreated, flow.EndpointDisabledKind)
				other := w.endpoint("https://other.test", flow.EndpointDisabledKind)
				w.endpoint("https://third.test", flow.ChargeSuccess) // does not want to know
				stranger, _ := w.elsewhere("https://stranger.test")
				w.posting(failing(v, ended.ID))
				began := w.clock()
				w.session(flow.Headless)
				w.rest()
				if name == flow.DisabledFailing {
					w.later(flow.FailingFor - time.Minute)
					if n := len(w.deliveries(flow.EndpointDisabledKind)); n != 0 {
						t.Fatalf("disabled within five days: %d", n)
					}
					w.later(time.Minute)
				}
				told := w.deliveries(flow.EndpointDisabledKind)
				if len(told) != 1 || told[0].Endpoint != other.ID || w.to(stranger.ID) != 0 {
					t.Fatalf("told %+v", told)
				}
				var body struct {
					Reference string
					Data      map[string]any
				}
				w.must(json.Unmarshal(told[0].Body, &body))
				if body.Reference != string(ended.ID) || body.Data["id"] != string(ended.ID) || body.Data["status"] != "DISABLED" ||
					body.Data["disabledReason"] != name || body.Data["failingSince"] != flow.Stamp(began) || strings.Contains(string(told[0].Body), "whsec") {
					t.Errorf("told that %s", told[0].Body)
				}
				is := w.endpointIs(ended.ID)
				if is.Status != flow.EndpointDisabled || is.DisabledReason != name || is.DisabledAt.IsZero() {
					t.Errorf("it is %+v", is)
				}
				// It is owed nothing any more, and what it was owed is held, not lost.
				tried := w.to(ended.ID)
				w.passes(5, 24*time.Hour)
				if n := w.to(ended.ID); n != tried {
					t.Errorf("it was sent %d more", n-tried)
				}
				w.posting(nil)
				w.change("UPDATE endpoints SET status = 'ENABLED', disabled_reason = '', disabled_at = 0 WHERE id = '" + string(ended.ID) + "'")
				w.pass(time.Minute) // what is held and forgotten is looked for now and then
				w.until("what was held to be sent", func() bool { return w.to(ended.ID) == tried+1 })
			})
		})
	}
}

func TestASuccessMakesAnEndpointWellAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		for day := range 12 {
			verdict := flow.Verdict{Status: 500, Reason: "status"}
			if day%4 == 3 { // once in four days it answers
				verdict = flow.Verdict{OK: true, Status: 200}
			}
			w.posting(failing(verdict, e.ID))
			w.session(flow.Headless)
			w.rest()
			w.pass(24 * time.Hour)
		}
		w.rest()
		list, err := w.service.Endpoints(t.Context(), project)
		w.must(err)
		if list[0].Status != flow.EndpointEnabled {
			t.Errorf("it answered now and then, and is %+v", list[0])
		}
	})
}

func TestARetrySignsWithTheSecretsOfThen(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(failing(flow.Verdict{Status: 500, Reason: "status"}, e.ID))
		w.session(flow.Headless)
		w.rest()
		text, err := json.Marshal([]int64{flow.Millis(w.clock().Add(90 * time.Second))})
		w.must(err)
		w.change(`UPDATE endpoints SET secrets = '["whsec_new","whsec_x"]', url = 'https://new.test', retiring = '` + string(text) + `' WHERE id = '` + string(e.ID) + `'`)
		w.later(time.Minute)
		w.later(time.Minute)
		var signed [][]string
		for _, d := range w.deliveries(flow.SessionCreated) {
			signed = append(signed, d.Secrets)
		}
		want := [][]string{{"whsec_x"}, {"whsec_new", "whsec_x"}, {"whsec_new"}}
		if !slices.EqualFunc(signed, want, slices.Equal) || w.deliveries(flow.SessionCreated)[1].URL != "https://new.test" {
			t.Errorf("signed with %v", signed)
		}
	})
}

func TestWhatWaitedInMemoryIsLookedAtAgainBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ set, state string }{
		"disabled": {"status = 'DISABLED'", flow.DeliveryHeld},
		"deleted":  {"deleted_at = 5", flow.DeliveryCancelled},
		"moved":    {`url = 'https://new.test', secrets = '["whsec_new"]'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				e := w.endpoint("https://shop.test", flow.SessionCreated)
				release := w.stalled(e, 50)
				w.change("UPDATE endpoints SET " + c.set + " WHERE id = '" + string(e.ID) + "'") // by another process
				w.pass(2 * time.Second)
				close(release)
				w.rest()
				posts := w.deliveries(flow.SessionCreated)
				if c.state == "" {
					if len(posts) != 50 || posts[49].URL != "https://new.test" || posts[49].Secrets[0] != "whsec_new" || posts[8].URL != "https://new.test" {
						t.Errorf("%d posts, the last %+v", len(posts), posts[len(posts)-1])
					}
					return
				}
				if len(posts) != 8 {
					t.Errorf("%d posts to an endpoint that is %s", len(posts), name)
				}
				if n := w.count("state = '" + c.state + "'"); n != 42 {
					t.Errorf("%d deliveries are %s", n, c.state)
				}
			})
		})
	}
}

func TestAResendIsOneMoreTryWhateverBecameOfTheOthers(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(failing(flow.Verdict{Status: 500, Reason: "status"}, e.ID))
		session := w.session(flow.Headless)
		w.rest()
		events, err := w.db.Events(t.Context(), session.ID)
		w.must(err)
		redo := func() { w.must(w.service.Redo(t.Context(), session.ID, events[0].ID, e.ID, flow.CauseResend)) }
		redo()
		w.rest()
		if n := w.to(e.ID); n != 2 || w.count("state = 'pending' AND attempts = 1 AND cause = 'auto'") != 1 {
			t.Errorf("tried %d times", n)
		}
		w.passes(30, time.Minute)
		if n := w.to(e.ID); n != 11 || w.count("state = 'dead' AND attempts = 10") != 1 {
			t.Errorf("tried %d times", n)
		}
		redo()
		w.rest()
		if n := w.to(e.ID); n != 12 || w.count("state = 'dead' AND attempts = 10") != 1 {
			t.Errorf("dead, resent in vain: tried %d times", n)
		}
		w.posting(nil)
		redo()
		w.rest()
		if n := w.to(e.ID); n != 13 || w.count("state = 'delivered'") != 1 {
			t.Errorf("dead, and resent: tried %d times", n)
		}
		tries, err := w.db.Tries(t.Context(), session.ID, 100)
		w.must(err)
		if len(tries) != 13 {
			t.Errorf("%d tries are on record", len(tries))
		}
	})
}

func TestAResendWhileATryIsUnderWayIsMadeAllTheSame(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		release := make(chan bool)
		var posts atomic.Int32
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			if posts.Add(1) == 1 {
				<-release
			}
			return flow.Verdict{OK: true, Status: 200}
		})
		session := w.session(flow.Headless)
		w.until("the first to be under way", func() bool { return posts.Load() == 1 })
		events, err := w.db.Events(t.Context(), session.ID)
		w.must(err)
		w.must(w.service.Redo(t.Context(), session.ID, events[0].ID, e.ID, flow.CauseResend))
		w.until("the second to be made", func() bool { return posts.Load() == 2 })
		close(release)
		w.rest()
		if posts.Load() != 2 || w.count("state = 'delivered'") != 1 {
			t.Errorf("%d posts", posts.Load())
		}
	})
}

// beside is another process on the same database.
func (w *world) beside(post func(context.Context, flow.Delivery) flow.Verdict) (*checkout.Service, func()) {
	w.t.Helper()
	service, err := checkout.New(checkout.Config{
		DB: w.db, Rail: w.rail, Places: &checkout.MemoryPlaces{}, Words: words, Send: w.send, Post: post, Now: w.clock, Rand: w.rand, Drain: time.Millisecond,
		Next: func(d flow.Delivery, _ flow.Verdict) (time.Duration, bool) { return time.Minute, d.Attempts < 9 },
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	return service, func() { cancel(); w.must(<-ended) }
}

func TestAnotherProcessTakesNothingFromUnderALease(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.rest() // until then it is not the one that is handed what is owed
		release := make(chan bool)
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			<-release
			return flow.Verdict{OK: true, Status: 200}
		})
		var there atomic.Int32
		other, stop := w.beside(func(context.Context, flow.Delivery) flow.Verdict {
			there.Add(1)
			return flow.Verdict{Status: 500, Reason: "status"}
		})
		defer stop()
		rests := func() {
			w.until("the other process to come to rest", func() bool {
				other.Wake()
				idle, err := other.Idle(t.Context())
				return err == nil && idle
			})
		}
		w.session(flow.Headless)
		w.until("it to be under way", func() bool { return w.to(e.ID) == 1 })
		w.pass(59 * time.Second) // an answer that slow is past every timeout
		rests()
		if there.Load() != 0 {
			t.Fatal("two processes carry the same delivery")
		}
		w.pass(2 * time.Second) // whoever holds it has died, for all that others know
		w.until("somebody to take it over", func() bool {
			other.Wake()
			return there.Load() == 1 || w.count("state = 'pending' AND next_at > 0 AND token <> ''") == 1
		})
		close(release)
		w.until("it to be delivered", func() bool { return w.count("state = 'delivered'") == 1 })
		w.later(time.Hour)
		rests()
		if n := int(there.Load()) + w.to(e.ID); n > 2 || w.count("state = 'delivered'") != 1 {
			t.Errorf("%d posts", n)
		}
	})
}
