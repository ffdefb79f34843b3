package checkout_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow/checkout"
	"till/flow/redistest"
	"till/flow/store"
	"till/flow/store/storetest"
)

// hand is a clock that is moved by hand.
type hand struct{ at atomic.Int64 }

func newHand() *hand {
	h := &hand{}
	h.at.Store(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixMilli())
	return h
}

func (h *hand) now() time.Time       { return time.UnixMilli(h.at.Load()).UTC() }
func (h *hand) pass(d time.Duration) { h.at.Add(d.Milliseconds()) }

func leases(db *store.DB, client redis.UniversalClient, holder string, now func() time.Time) *checkout.Leases {
	return checkout.NewLeases(db, client, "t:", holder, now, slog.New(slog.DiscardHandler))
}

func take(t *testing.T, l *checkout.Leases, heir string) *checkout.Lease {
	t.Helper()
	h, err := l.Take(t.Context(), 1, heir)
	if err != nil {
		t.Fatalf("%s cannot take the number: %v", l.Holder(), err)
	}
	return h
}

func refusedLease(t *testing.T, l *checkout.Leases, heir string) {
	t.Helper()
	if h, err := l.Take(t.Context(), 1, heir); !errors.Is(err, checkout.ErrHeld) {
		t.Fatalf("%s took a number that is held: %+v, %v", l.Holder(), h, err)
	}
}

// lost is a lease whose holder must not send.
func lost(t *testing.T, h *checkout.Lease) {
	t.Helper()
	if err := h.Check(t.Context()); !errors.Is(err, checkout.ErrLeaseLost) {
		t.Errorf("a lease that is lost may send: %v", err)
	}
}

func holds(t *testing.T, h *checkout.Lease) {
	t.Helper()
	if err := h.Check(t.Context()); err != nil {
		t.Errorf("the holder may not send: %v", err)
	}
}

// A holder that says nothing loses the number to the next one, and learns it at
// its next message whatever its own clock says.
func TestAPausedHolderSendsNothing(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		client := redistest.Start(t).Client
		clock, stopped := newHand(), newHand()
		a, b := leases(db, client, "a", stopped.now), leases(db, client, "b", clock.now)
		first := take(t, a, "")
		refusedLease(t, b, "")
		for range 5 { // as long as it says something it keeps the number
			clock.pass(checkout.LeaseRenew)
			stopped.pass(checkout.LeaseRenew)
			must(t, first.Renew(t.Context()))
			refusedLease(t, b, "")
		}
		holds(t, first)
		// From here on a is paused: not even its clock moves.
		clock.pass(checkout.LeaseLasts + time.Millisecond)
		client.Del(t.Context(), "t:number:1:lease") // Redis counts real time; this is its lease running out
		second := take(t, b, "")
		if second.Token <= first.Token || second.Row.Holder != "a" {
			t.Errorf("the tokens are %d, %d after %q", first.Token, second.Token, second.Row.Holder)
		}
		lost(t, first)
		holds(t, second)
		if err := first.Renew(t.Context()); !errors.Is(err, checkout.ErrLeaseLost) {
			t.Errorf("a lost lease was renewed: %v", err)
		}
		if err := first.Drop(t.Context()); err != nil { // it is not its to drop
			t.Error(err)
		}
		holds(t, second)
		refusedLease(t, a, "")
		if err := second.Drop(t.Context()); err != nil {
			t.Error(err)
		}
		take(t, a, "")
		lost(t, second)
	})
}

// Its own clock tells a holder before the others that its lease is over.
func TestAHolderStopsBeforeOthersMayBegin(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	clock := newHand()
	a, b := leases(db, nil, "a", clock.now), leases(db, nil, "b", clock.now)
	first := take(t, a, "")
	var overlap bool
	for waited := time.Duration(0); ; waited += 100 * time.Millisecond {
		free := first.Check(t.Context()) != nil
		h, err := b.Take(t.Context(), 1, "")
		if err == nil {
			overlap = !free
			holds(t, h)
			if waited < checkout.LeaseLasts-checkout.LeaseRenew {
				t.Errorf("the number was free after %s", waited)
			}
			break
		}
		if waited > 2*checkout.LeaseLasts {
			t.Fatal("the number is never free")
		}
		clock.pass(100 * time.Millisecond)
	}
	if overlap {
		t.Error("two processes could send at the same time")
	}
}

// Whatever happens to Redis, one process holds the number and goes on.
func TestLeasesWithoutTheHelpOfRedis(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		server := redistest.Start(t)
		client := server.Client
		clock := newHand()
		a, b := leases(db, client, "a", clock.now), leases(db, client, "b", clock.now)
		first := take(t, a, "")
		t.Run("emptied", func(t *testing.T) {
			client.FlushAll(t.Context())
			refusedLease(t, b, "")
			if err := first.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			holds(t, first)
		})
		t.Run("of the wrong types", func(t *testing.T) {
			client.Set(t.Context(), "t:number:1:lease", "x", 0)
			client.Del(t.Context(), "t:number:1:token")
			client.LPush(t.Context(), "t:number:1:token", "x")
			refusedLease(t, b, "")
			if err := first.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			client.Set(t.Context(), "t:number:1:lease", "x", 0)
			if err := first.Drop(t.Context()); err != nil {
				t.Error(err)
			}
			again := take(t, b, "")
			if again.Token <= first.Token {
				t.Errorf("after token %d came %d", first.Token, again.Token)
			}
			if err := again.Drop(t.Context()); err != nil {
				t.Error(err)
			}
			first = take(t, a, "")
		})
		t.Run("gone", func(t *testing.T) {
			server.Kill()
			for range 3 {
				clock.pass(checkout.LeaseRenew)
				if err := first.Renew(t.Context()); err != nil {
					t.Error(err)
				}
				holds(t, first)
				refusedLease(t, b, "")
			}
			clock.pass(checkout.LeaseLasts + time.Millisecond)
			second := take(t, b, "")
			lost(t, first)
			holds(t, second)
		})
	})
}

// Who is known to be dead is not waited for.
func TestALeaseIsInherited(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		client := redistest.Start(t).Client
		clock := newHand()
		first := take(t, leases(db, client, "a", clock.now), "")
		refusedLease(t, leases(db, client, "b", clock.now), "c")
		holds(t, first)
		second := take(t, leases(db, client, "b", clock.now), "a")
		lost(t, first)
		holds(t, second)
	})
}

// What Redis missed while it was away, it does not hold against whoever is next: a
// number whose row has gone on is nobody's by an older lease.
func TestALeaseOfBeforeTheLastHoldsNobodyUp(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		client := redistest.Start(t).Client
		clock := newHand()
		take(t, leases(db, client, "a", clock.now), "")
		second := take(t, leases(db, nil, "b", clock.now), "a")
		refusedLease(t, leases(db, client, "c", clock.now), "")
		holds(t, second)
		third := take(t, leases(db, client, "c", clock.now), "b")
		lost(t, second)
		holds(t, third)
		refusedLease(t, leases(db, client, "d", clock.now), "")
	})
}

// However many want a number at once, one gets it.
func TestManyWantANumberAtOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		client := redistest.Start(t).Client
		for _, c := range []redis.UniversalClient{client, nil} {
			clock := newHand()
			var all sync.WaitGroup
			var mu sync.Mutex
			var got []*checkout.Lease
			for i := range 8 {
				all.Go(func() {
					h, err := leases(db, c, string(rune('a'+i)), clock.now).Take(context.WithoutCancel(t.Context()), 1, "")
					if err != nil && !errors.Is(err, checkout.ErrHeld) {
						t.Error(err)
					}
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, h)
					}
				})
			}
			all.Wait()
			if len(got) != 1 {
				t.Fatalf("%d processes hold the number", len(got))
			}
			holds(t, got[0])
			if err := got[0].Drop(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A database that is away lets nobody take a number, and stops the holder when
// its own clock says so.
func TestALeaseWithoutTheDatabase(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	clock := newHand()
	first := take(t, leases(db, nil, "a", clock.now), "")
	must(t, db.Close())
	if err := first.Check(t.Context()); err == nil {
		t.Error("it sends without knowing whose the number is")
	}
	if _, err := leases(db, nil, "b", clock.now).Take(t.Context(), 1, ""); err == nil {
		t.Error("a number was taken without the database")
	}
	if err := first.Renew(t.Context()); err == nil || errors.Is(err, checkout.ErrLeaseLost) {
		t.Errorf("a renewal that could not be kept: %v", err)
	}
	clock.pass(checkout.LeaseLasts)
	lost(t, first)
}

// A process that was paused past its lease is told once that the number is another's.
func TestThatALeaseIsLostIsSaidOnce(t *testing.T) {
	t.Parallel()
	db, clock := storetest.Open(t, storetest.SQLite(t, store.Checkout)), newHand()
	first := take(t, leases(db, nil, "a", clock.now), "")
	clock.pass(checkout.LeaseLasts + time.Millisecond)
	take(t, leases(db, nil, "b", clock.now), "")
	err := first.Keep(t.Context())
	if !errors.Is(err, checkout.ErrLeaseLost) || strings.Count(err.Error(), "is lost") != 1 {
		t.Errorf("it ended with %v", err)
	}
}

// A lease that runs out while the store hangs or refuses is lost, and whoever keeps it
// hears of that though the store says nothing.
func TestALeaseThatCannotBeRenewedIsLost(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{true, false} {
		t.Run(map[bool]string{true: "it hangs", false: "it refuses"}[hangs], func(t *testing.T) {
			t.Parallel()
			db, clock := storetest.Open(t, storetest.SQLite(t, store.Checkout)), newHand()
			h := take(t, leases(db, nil, "A", clock.now), "")
			ended := make(chan error, 1)
			if hangs {
				began, release := make(chan struct{}), make(chan struct{})
				var writing sync.WaitGroup
				defer writing.Wait()
				defer close(release)
				writing.Go(func() {
					_ = db.Update(context.WithoutCancel(t.Context()), func(*store.Tx) error { close(began); <-release; return nil })
				})
				<-began
			} else {
				must(t, db.Close())
			}
			go func() { ended <- h.Keep(t.Context()) }()
			clock.pass(checkout.LeaseLasts)
			select {
			case err := <-ended:
				if !errors.Is(err, checkout.ErrLeaseLost) {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(4 * checkout.LeaseRenew):
				t.Error("whoever keeps it hears nothing")
			}
		})
	}
}

// A process that has the database to itself asks nobody before a message, and a lease
// of its own that a newer one replaced sends nothing all the same.
func TestALeaseIsReplacedWithinOneProcess(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		clock := newHand()
		a := leases(db, nil, "a", clock.now)
		a.Alone()
		first := take(t, a, "")
		holds(t, first)
		second := take(t, a, "")
		lost(t, first)
		holds(t, second)
		must(t, second.Drop(t.Context()))
		lost(t, first)
		holds(t, take(t, a, ""))
		lost(t, second)
	})
}
