package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// nextOf is when a delivery is due by its row.
func nextOf(t *testing.T, db *store.DB, id string) time.Time {
	t.Helper()
	return doing(t, db, func(ctx context.Context, tx *store.Tx) (time.Time, error) {
		return tx.Moment(ctx, "SELECT next_at FROM deliveries WHERE id = ?", id)
	})
}

// held has an endpoint held back at noon, with all that it is owed.
func held(t *testing.T, db *store.DB, to flow.EndpointID) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.OpenEndpoint(ctx, to, noon, noon, false); err != nil {
			return err
		}
		_, err := tx.HoldDeliveries(ctx, to, noon, 100)
		return err
	})
}

func TestWhatIsHeldKeepsTheTimeOfItsNextTry(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids, to := oweMany(t, db, 1, 0, 3), endpoint(1).ID
		later, soon, now := noon.Add(5*time.Hour), noon.Add(time.Second), noon.Add(10*time.Minute)
		list := take(t, db, "B/1", noon, 3)
		slices.SortFunc(list, func(a, b flow.Delivery) int { return strings.Compare(a.ID, b.ID) })
		end(t, db, list[0], flow.Verdict{Status: 500}, "pending", noon, later)
		end(t, db, list[1], flow.Verdict{Status: 500}, "pending", noon, soon) // the third is under way
		held(t, db, to)
		for i, want := range []time.Time{later, soon, noon} {
			if at := nextOf(t, db, ids[i]); !at.Equal(want) {
				t.Errorf("held, %d is due %v and not %v", i, at, want)
			}
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.EndpointsAnswered(ctx, []store.Place{place()}, noon)
		})
		n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
			return tx.Release(ctx, to, now, now.Add(time.Second), 10)
		})
		if n != 3 {
			t.Errorf("%d were released", n)
		}
		for i, want := range []time.Time{later, now, now} {
			if at := nextOf(t, db, ids[i]); !at.Equal(want) {
				t.Errorf("released, %d is due %v and not %v", i, at, want)
			}
		}
	})
}

func TestWhatWasNeverTriedIsProbedFirst(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids, to := oweMany(t, db, 1, 0, 4), endpoint(1).ID
		for _, d := range take(t, db, "B/1", noon, 4) {
			if d.ID == ids[0] || d.ID == ids[3] { // the endpoint refused these
				end(t, db, d, flow.Verdict{Status: 500}, "pending", noon, noon.Add(time.Hour))
			}
		}
		statement(t, db, "UPDATE deliveries SET created_at = created_at + 1 WHERE id = '"+ids[2]+"'")
		statement(t, db, "UPDATE deliveries SET next_at = next_at + 1 WHERE id = '"+ids[0]+"'")
		held(t, db, to)
		var order []string
		for i := range 5 {
			now := noon.Add(time.Duration(i+1) * time.Minute)
			statement(t, db, "UPDATE endpoints SET wake_at = 5")
			d := doing(t, db, func(ctx context.Context, tx *store.Tx) (flow.Delivery, error) {
				d, _, err := tx.Probe(ctx, to, fmt.Sprintf("P/%d", i), now, now.Add(lease))
				return d, err
			})
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.EndTries(ctx, []store.Outcome{{
					Delivery: d, Verdict: flow.Verdict{Status: 500}, State: flow.DeliveryHeld, Spent: d.Attempts == 0, At: now, Next: now.Add(2 * time.Hour),
				}})
			})
			order = append(order, d.ID)
		}
		same(t, "what is probed", []string{ids[2], ids[1], ids[3], ids[0], ids[2]}, order)
	})
}

func TestWhatIsHeldForAnEndpointThatIsMendedWaitsForNothing(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids, to := oweMany(t, db, 1, 0, 3), endpoint(1).ID
		statement(t, db, "UPDATE deliveries SET state = 'held'")
		statement(t, db, "UPDATE deliveries SET next_at = next_at + 9000000 WHERE id <> '"+ids[0]+"'")
		before := nextOf(t, db, ids[0])
		for _, want := range []int{1, 1, 0} {
			n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.HurryHeld(ctx, to, noon, 1) })
			if n != want {
				t.Errorf("%d are hurried, want %d", n, want)
			}
		}
		for i, want := range []time.Time{before, noon, noon} {
			if at := nextOf(t, db, ids[i]); !at.Equal(want) {
				t.Errorf("%d is due %v and not %v", i, at, want)
			}
		}
	})
}

func TestWhatIsAskedForByHandAndPutAsideIsAgainWhatItWas(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 2)
		statement(t, db, "UPDATE endpoints SET status = 'DISABLED' WHERE id = '"+string(endpoint(1).ID)+"'")
		statement(t, db, "UPDATE endpoints SET deleted_at = 5 WHERE id = '"+string(endpoint(2).ID)+"'")
		n := 0
		for to, states := range []map[string]string{
			{"pending": "held", "held": "held", "delivered": "delivered", "dead": "dead", "cancelled": "cancelled"},
			{"pending": "cancelled", "held": "cancelled", "delivered": "delivered", "dead": "dead", "cancelled": "cancelled"},
		} {
			for was, want := range states {
				n++
				id := oweMany(t, db, to+1, 10*n, 1)[0]
				own, done := noon.Add(7*time.Hour), noon.Add(-time.Hour)
				statement(t, db, fmt.Sprintf("UPDATE deliveries SET state = '%s', attempts = 3, next_at = %d, done_at = %d WHERE id = '%s'",
					was, flow.Millis(own), flow.Millis(done), id))
				d := flow.Delivery{ID: id, Event: event(10*n, "", "").ID, Endpoint: endpoint(to + 1).ID}
				redo(t, db, d, flow.CauseReplay, "", noon)
				got := doing(t, db, func(ctx context.Context, tx *store.Tx) ([]flow.Delivery, error) {
					return tx.ClaimDeliveries(ctx, "B/"+id, []string{id}, noon, noon.Add(lease))
				})
				if s := stateOf(t, db, id); s != want || len(got) != 0 {
					t.Errorf("endpoint %d, %s and asked for by hand: %s, want %s", to+1, was, s, want)
				}
				if at := nextOf(t, db, id); !at.Equal(own) {
					t.Errorf("endpoint %d, %s: due %v, want %v", to+1, was, at, own)
				}
				kept := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
					return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND cause = 'auto' AND back_to = '' AND back_at = 0 AND token = '' AND done_at = ?", id, flow.Millis(done))
				})
				if kept != 1 {
					t.Errorf("endpoint %d, %s: something is left of it", to+1, was)
				}
			}
		}
	})
}

// A replay may owe an endpoint what it was never sent. Where it is disabled before that is
// sent, the event waits for it like any other, and is not given up untried; a ping, which
// somebody waited for, is.
func TestWhatWasNeverSentIsNotGivenUpWhereItIsPutAside(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 2)
		statement(t, db, "UPDATE endpoints SET status = 'DISABLED' WHERE id = '"+string(endpoint(1).ID)+"'")
		statement(t, db, "UPDATE endpoints SET deleted_at = 5 WHERE id = '"+string(endpoint(2).ID)+"'")
		n := 0
		for to, causes := range []map[string]string{
			{flow.CauseReplay: "held", flow.CauseResend: "held", flow.CausePing: "dead"},
			{flow.CauseReplay: "cancelled", flow.CauseResend: "cancelled", flow.CausePing: "dead"},
		} {
			for cause, want := range causes {
				n++
				id := oweMany(t, db, to+1, 10*n, 1)[0] // as it is kept that was asked for by hand
				statement(t, db, "UPDATE deliveries SET cause = '"+cause+"', back_to = 'dead', back_at = 0, token = '' WHERE id = '"+id+"'")
				doing(t, db, func(ctx context.Context, tx *store.Tx) ([]flow.Delivery, error) {
					return tx.ClaimDeliveries(ctx, "B/"+id, []string{id}, noon.Add(lease), noon.Add(2*lease))
				})
				if s := stateOf(t, db, id); s != want {
					t.Errorf("endpoint %d, never sent and put aside, for a %s: %s, want %s", to+1, cause, s, want)
				}
				kept := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
					return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND cause = 'auto' AND back_to = '' AND (done_at > 0) = (state <> 'held')", id)
				})
				if kept != 1 {
					t.Errorf("endpoint %d, for a %s: something is left of it", to+1, cause)
				}
			}
		}
	})
}
