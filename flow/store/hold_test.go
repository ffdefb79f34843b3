package store_test

import (
	"context"
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
	n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
		return tx.Count(ctx, "SELECT next_at FROM deliveries WHERE id = ?", id)
	})
	return flow.FromMillis(int64(n))
}

// held has an endpoint held back, with all that it is owed.
func held(t *testing.T, db *store.DB, to flow.EndpointID, now, probe time.Time) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.OpenEndpoint(ctx, to, now, probe, false); err != nil {
			return err
		}
		_, err := tx.HoldDeliveries(ctx, to, now, 100)
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
		held(t, db, to, noon, noon)
		for i, want := range []time.Time{later, soon, noon} {
			if at := nextOf(t, db, ids[i]); !at.Equal(want) {
				t.Errorf("held, %d is due %v and not %v", i, at, want)
			}
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndpointsAnswered(ctx, []string{string(to)}, noon) })
		n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.Release(ctx, to, now, now.Add(time.Second), 10) })
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
