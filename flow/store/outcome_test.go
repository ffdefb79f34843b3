package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func redo(t *testing.T, db *store.DB, d flow.Delivery, cause, lease string, due time.Time) flow.Delivery {
	t.Helper()
	return doing(t, db, func(ctx context.Context, tx *store.Tx) (flow.Delivery, error) {
		got, found, err := tx.RedoDelivery(ctx, d.Event, d.Endpoint, cause, lease, due)
		if err == nil && !found {
			err = fmt.Errorf("there is no %s", d.ID)
		}
		return got, err
	})
}

func TestManyTriesAreKeptAtOnceEachWithItsRecord(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		const all = 150
		oweMany(t, db, 1, 0, all)
		list := take(t, db, "B/1", noon, all)
		var outcomes []store.Outcome
		for i, d := range list {
			o := store.Outcome{Delivery: d, Verdict: flow.Verdict{OK: true, Status: 200, URL: "https://a", SignedAt: noon, Signature: "v1,x"}, State: "delivered", Spent: true, At: noon}
			if i%50 == 0 {
				o.State, o.OK, o.Status, o.Next = "pending", false, 500, noon.Add(time.Hour)
			}
			outcomes = append(outcomes, o)
		}
		twice := outcomes[7]
		twice.OK, twice.State, twice.Reason = false, "pending", "timeout" // somebody else's, overtaken
		twice.Lease = "A/9"
		for _, batch := range [][]store.Outcome{outcomes, {twice, twice}} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndTries(ctx, slices.Clone(batch)) })
		}
		for query, want := range map[string]int{
			"SELECT COUNT(*) FROM deliveries WHERE state = 'delivered' AND attempts = 1 AND done_at > 0":                  all - 3,
			"SELECT COUNT(*) FROM deliveries WHERE state = 'pending' AND attempts = 1 AND token = ''":                     3,
			"SELECT COUNT(*) FROM delivery_attempts WHERE url = 'https://a' AND signature = 'v1,x' AND signed_at > 0":     all + 2,
			"SELECT COUNT(*) FROM delivery_attempts WHERE n = 2 AND reason = 'timeout' AND delivery = '" + twice.ID + "'": 1,
		} {
			got := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.Count(ctx, query) })
			if got != want {
				t.Errorf("%s: %d, want %d", query, got, want)
			}
		}
	})
}

func TestATryByHandSpendsNoneOfTheSchedule(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		for i, was := range []string{"pending", "delivered", "dead", "held", "cancelled"} {
			if i == 0 {
				endpoints(t, db, 1)
			}
			id := oweMany(t, db, 1, 10*i, 1)[0]
			statement(t, db, "UPDATE deliveries SET state = '"+was+"', attempts = 4 WHERE id = '"+id+"'")
			d := flow.Delivery{ID: id, Event: event(10*i, "", "").ID, Endpoint: endpoint(1).ID}
			got := redo(t, db, d, flow.CauseResend, "H/"+was, noon.Add(lease))
			if stateOf(t, db, id) != "pending" || !got.ByHand() || got.Attempts != 4 || len(got.Body) == 0 {
				t.Errorf("%s, asked for by hand: %+v", was, got)
			}
			end(t, db, got, flow.Verdict{Status: 500}, "pending", noon, noon.Add(time.Hour))
			if s := stateOf(t, db, id); s != was {
				t.Errorf("%s, and tried by hand in vain: %s", was, s)
			}
			again := redo(t, db, d, flow.CauseReplay, "H/again/"+was, noon.Add(lease))
			end(t, db, again, flow.Verdict{OK: true, Status: 200}, "delivered", noon, time.Time{})
			if s := stateOf(t, db, id); s != "delivered" {
				t.Errorf("%s, and delivered by hand: %s", was, s)
			}
			n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
				return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND attempts = 4 AND cause = 'auto' AND back_to = '' AND token = ''", id)
			})
			if n != 1 {
				t.Errorf("%s: tries by hand left something behind", was)
			}
		}
	})
}

// Asked for twice by hand, a delivery is tried twice, and after both in vain it is what
// it was before the first: nothing that was delivered is owed anew.
func TestADeliveryThatIsAskedForTwiceIsAgainWhatItWas(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		for i, was := range []string{"delivered", "dead", "held"} {
			id := oweMany(t, db, 1, 10*i, 1)[0]
			statement(t, db, "UPDATE deliveries SET state = '"+was+"' WHERE id = '"+id+"'")
			d := flow.Delivery{ID: id, Event: event(10*i, "", "").ID, Endpoint: endpoint(1).ID}
			first := redo(t, db, d, flow.CauseResend, "H/1/"+was, noon.Add(lease))
			second := redo(t, db, d, flow.CauseResend, "H/2/"+was, noon.Add(lease))
			for _, one := range []struct {
				flow.Delivery

				state string
			}{{first, "pending"}, {second, was}} {
				end(t, db, one.Delivery, flow.Verdict{Status: 500}, "pending", noon, noon.Add(time.Hour))
				if s := stateOf(t, db, id); s != one.state {
					t.Errorf("%s, asked for twice, and %s in vain: %s", was, one.Lease, s)
				}
			}
		}
	})
}

// Asked for once more while the first of them is under way, it is tried again although
// that one arrived; and in vain then, it is delivered, and no other delivery is.
func TestADeliveryThatIsAskedForTwiceAndArrivedOnceIsDelivered(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		other := oweMany(t, db, 1, 50, 1)[0]
		for i, was := range []string{"pending", "dead", "held"} {
			id := oweMany(t, db, 1, 10*i, 1)[0]
			statement(t, db, "UPDATE deliveries SET state = '"+was+"' WHERE id = '"+id+"'")
			d := flow.Delivery{ID: id, Event: event(10*i, "", "").ID, Endpoint: endpoint(1).ID}
			first := redo(t, db, d, flow.CauseResend, "H/1/"+was, noon.Add(lease))
			second := redo(t, db, d, flow.CauseResend, "H/2/"+was, noon.Add(lease))
			end(t, db, first, flow.Verdict{OK: true, Status: 200}, "delivered", noon, time.Time{})
			if s := stateOf(t, db, id); s != "pending" {
				t.Errorf("%s, asked for twice, and the first arrived: %s", was, s)
			}
			end(t, db, second, flow.Verdict{Status: 500}, "pending", noon.Add(time.Minute), noon.Add(time.Hour))
			n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
				return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND state = 'delivered' AND next_at = 0 AND done_at = ?", id, flow.Millis(noon))
			})
			if n != 1 {
				t.Errorf("%s, asked for twice, the second in vain: it is %s, or not at all times what it was", was, stateOf(t, db, id))
			}
		}
		n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
			return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND state = 'pending' AND back_to = '' AND done_at = 0", other)
		})
		if n != 1 {
			t.Errorf("another, of which nobody asked anything, is %s", stateOf(t, db, other))
		}
	})
}

// A try by hand may end after its lease, when another in its place was in vain. What
// arrived is delivered.
func TestWhatWasAskedForAndArrivedAfterItsLeaseIsDelivered(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		id := oweMany(t, db, 1, 0, 1)[0]
		statement(t, db, "UPDATE deliveries SET state = 'dead', done_at = 7 WHERE id = '"+id+"'")
		slow := redo(t, db, flow.Delivery{ID: id, Event: event(0, "", "").ID, Endpoint: endpoint(1).ID}, flow.CauseResend, "H/1", noon.Add(lease))
		statement(t, db, "UPDATE deliveries SET token = 'B/2' WHERE id = '"+id+"'")
		second := slow
		second.Lease = "B/2"
		end(t, db, second, flow.Verdict{Status: 500}, "pending", noon, noon.Add(time.Hour))
		if s := stateOf(t, db, id); s != "dead" {
			t.Errorf("in vain, it is %s", s)
		}
		end(t, db, slow, flow.Verdict{OK: true, Status: 200}, "delivered", noon, time.Time{})
		if s := stateOf(t, db, id); s != "delivered" {
			t.Errorf("it arrived, and is %s", s)
		}
	})
}

func TestATryThatIsUnderWayDoesNotEndOneThatIsAskedForMeanwhile(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		for _, ok := range []bool{true, false} {
			var slow flow.Delivery
			if ok {
				slow = delivery(t, db)
			} else {
				oweMany(t, db, 1, 50, 1)
				slow = take(t, db, "A/5", noon, 10)[0]
			}
			hand := redo(t, db, slow, flow.CauseResend, fmt.Sprint("H/", ok), noon.Add(lease))
			state := map[bool]string{true: "delivered", false: "pending"}[ok]
			end(t, db, slow, flow.Verdict{OK: ok}, state, noon, noon.Add(time.Hour))
			if s := stateOf(t, db, slow.ID); s != "pending" {
				t.Errorf("%t: what was asked for is %s before it is tried", ok, s)
			}
			end(t, db, hand, flow.Verdict{Status: 500}, "pending", noon, noon)
			if s := stateOf(t, db, slow.ID); s != state {
				t.Errorf("%t: in the end it is %s", ok, s)
			}
			n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
				return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND (state = 'pending' OR next_at = 0)", slow.ID)
			})
			if n != 1 {
				t.Errorf("%t: it was delivered, and is due again", ok)
			}
		}
	})
}

// A try of the schedule that fails is one of the schedule, though somebody asks for
// the delivery meanwhile, and whichever of the two ends first: the next one waits as
// long as it is to.
func TestATryOfTheScheduleIsSpentWhateverIsAskedForMeanwhile(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		for i, c := range []struct {
			name      string
			handFirst bool
			state     string
			next      time.Time
		}{
			{"pending, and first", false, "pending", noon.Add(time.Hour)},
			{"pending, and last", true, "pending", noon.Add(time.Hour)},
			{"dead, and first", false, "dead", time.Time{}},
			{"dead, and last", true, "dead", time.Time{}},
			{"held, and first", false, "held", noon.Add(time.Hour)},
			{"held, and last", true, "held", noon.Add(time.Hour)},
		} {
			id := oweMany(t, db, 1, 10*i, 1)[0]
			auto := take(t, db, fmt.Sprint("A/", i), noon, 1)[0]
			hand := redo(t, db, auto, flow.CauseResend, fmt.Sprint("H/", i), noon.Add(lease))
			byHand := func() { end(t, db, hand, flow.Verdict{Status: 500}, "pending", noon, noon) }
			if c.handFirst {
				byHand()
			}
			end(t, db, auto, flow.Verdict{Status: 500}, c.state, noon, c.next)
			if !c.handFirst {
				byHand()
			}
			n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
				return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND state = ? AND attempts = 1 AND next_at = ? AND cause = 'auto' AND token = '' AND back_to = '' AND (done_at > 0) = (state = 'dead')",
					id, c.state, flow.Millis(c.next))
			})
			if n != 1 {
				t.Errorf("%s: it is %s, and not that with one try spent, due %v", c.name, stateOf(t, db, id), c.next)
			}
			statement(t, db, "UPDATE deliveries SET state = 'cancelled' WHERE id = '"+id+"'")
		}
	})
}

func TestWhatIsGivenBackIsDueForAnybody(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids := oweMany(t, db, 1, 0, 3)
		take(t, db, "B/1", noon, 3)
		back := func(lease string) int { // how many are due then
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.GiveBackDeliveries(ctx, lease, ids[:2], noon) })
			return len(take(t, db, "C/"+lease, noon, 3))
		}
		if n := back("A/1"); n != 0 {
			t.Errorf("given back by who has not taken them: %d are due", n)
		}
		if n := back("B/1"); n != 2 {
			t.Errorf("given back: %d are due", n)
		}
	})
}
