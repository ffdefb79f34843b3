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

// oweMany keeps events that are owed to an endpoint, a second apart and all due.
func oweMany(t *testing.T, db *store.DB, to, first, count int) []string {
	t.Helper()
	var ids []string
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		ids = nil
		for i := first; i < first+count; i++ {
			if err := tx.AddEvent(ctx, event(i, flow.SessionID(fmt.Sprintf("wsp_sess_%03d", i)), flow.ChargeSuccess)); err != nil {
				return err
			}
			d := flow.Delivery{ID: fmt.Sprintf("dlv_%05d", i), Event: event(i, "", "").ID, Endpoint: endpoint(to).ID}
			ids = append(ids, d.ID)
			if err := tx.AddDelivery(ctx, d, noon, noon.Add(time.Duration(i)*time.Second-time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
	return ids
}

// place is where the first endpoint is.
func place() store.Place { return store.Place{Endpoint: endpoint(1).ID, URL: endpoint(1).URL} }

func endpoints(t *testing.T, db *store.DB, count int) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for i := range count {
			if err := tx.AddEndpoint(ctx, endpoint(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// statement runs a statement that no part of the program needs.
func statement(t *testing.T, db *store.DB, query string) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.Exec(ctx, query) })
}

// doing runs fn in a transaction and returns what it says.
func doing[T any](t *testing.T, db *store.DB, fn func(ctx context.Context, tx *store.Tx) (T, error)) T {
	t.Helper()
	var out T
	update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = fn(ctx, tx)
		return err
	})
	return out
}

func TestEveryEndpointWithSomethingDueIsFoundWhateverOthersAreOwed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 5)
		oweMany(t, db, 2, 0, 700)
		oweMany(t, db, 4, 700, 1)
		oweMany(t, db, 5, 800, 3)
		statement(t, db, "UPDATE deliveries SET next_at = next_at + 100000000 WHERE endpoint = '"+string(endpoint(5).ID)+"'") // later
		first, err := db.DueDeliveries(t.Context(), noon, 512)
		if err != nil || len(first) != 512 || slices.ContainsFunc(first, func(d store.Due) bool { return d.Endpoint != endpoint(2).ID }) {
			t.Fatalf("%d are due first (%v)", len(first), err)
		}
		for after, want := range map[flow.EndpointID][]flow.EndpointID{"": {endpoint(2).ID, endpoint(4).ID}, endpoint(2).ID: {endpoint(4).ID}, endpoint(4).ID: nil} {
			if got, err := db.DueEndpoints(t.Context(), after, noon, 10); err != nil || !slices.Equal(got, want) {
				t.Errorf("behind %q: %v (%v)", after, got, err)
			}
		}
		if got, err := db.DueEndpoints(t.Context(), "", noon, 1); err != nil || len(got) != 1 {
			t.Errorf("one at most: %v (%v)", got, err)
		}
		if got, err := db.DueThere(t.Context(), endpoint(4).ID, noon, 10); err != nil || len(got) != 1 || got[0].ID != "dlv_00700" {
			t.Errorf("due there: %v (%v)", got, err)
		}
	})
}

func TestWhatItsEndpointDoesNotTakeIsPutAsideByItsClaim(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 4)
		var ids []string
		for i := range 4 {
			ids = append(ids, oweMany(t, db, i+1, 10*i, 1)...)
		}
		statement(t, db, "UPDATE endpoints SET status = 'DISABLED' WHERE id = '"+string(endpoint(2).ID)+"'")
		statement(t, db, "UPDATE endpoints SET deleted_at = 5 WHERE id = '"+string(endpoint(3).ID)+"'")
		statement(t, db, "UPDATE endpoints SET open_since = 5 WHERE id = '"+string(endpoint(4).ID)+"'")
		got := doing(t, db, func(ctx context.Context, tx *store.Tx) ([]flow.Delivery, error) {
			return tx.ClaimDeliveries(ctx, "B/1", ids, noon, noon.Add(lease))
		})
		if len(got) != 1 || got[0].ID != ids[0] {
			t.Errorf("claimed %+v", got)
		}
		for i, want := range []string{"pending", "held", "cancelled", "held"} {
			if state := stateOf(t, db, ids[i]); state != want {
				t.Errorf("the delivery to endpoint %d is %s, want %s", i+1, state, want)
			}
		}
	})
}

// stateOf is where a delivery stands.
func stateOf(t *testing.T, db *store.DB, id string) string {
	t.Helper()
	for _, state := range []string{"pending", "delivered", "dead", "held", "cancelled"} {
		n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
			return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND state = ?", id, state)
		})
		if n > 0 {
			return state
		}
	}
	return "nowhere"
}

func TestAnEndpointIsHeldBackProbedAndLetGoAgain(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids, to := oweMany(t, db, 1, 0, 1200), endpoint(1).ID
		e := doing(t, db, func(ctx context.Context, tx *store.Tx) (flow.Endpoint, error) {
			return tx.EndpointFailed(ctx, store.Failures{Place: place(), Count: 20, Since: noon, Fresh: true}, noon)
		})
		if e.Failures != 20 || !e.FailingSince.Equal(noon) {
			t.Errorf("after 20 failures: %+v", e)
		}
		probe := noon.Add(5 * time.Second)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.OpenEndpoint(ctx, to, noon, probe, false) })
		var held []int
		for range 4 {
			held = append(held, doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.HoldDeliveries(ctx, to, noon, 500) }))
		}
		if !slices.Equal(held, []int{500, 500, 200, 0}) {
			t.Errorf("held %v", held)
		}
		if at := owedDelivery(t, db); !at.Equal(probe) {
			t.Errorf("to be looked at %v", at)
		}
		if got, err := db.DueWakes(t.Context(), probe.Add(-time.Millisecond), 10); err != nil || len(got) != 0 {
			t.Errorf("looked at early: %v (%v)", got, err)
		}
		if got, err := db.DueWakes(t.Context(), probe, 10); err != nil || len(got) != 1 || !got[0].Open {
			t.Errorf("to be looked at: %v (%v)", got, err)
		}
		try := func(name string, now time.Time) (d flow.Delivery, found bool) {
			update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				d, found, err = tx.Probe(ctx, to, name, now, now.Add(lease))
				return err
			})
			return d, found
		}
		first, found := try("B/1", probe)
		if !found || !first.Probe || first.Lease != "B/1" || len(first.Body) == 0 || first.URL == "" {
			t.Errorf("probed by %+v", first)
		}
		if _, again := try("C/1", probe); again {
			t.Error("two processes probe at once")
		}
		// It fails: another one is tried next.
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.EndTries(ctx, []store.Outcome{{Delivery: first, Verdict: flow.Verdict{Status: 500}, State: flow.DeliveryHeld, Spent: true, Next: probe, At: probe}})
		})
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.OpenEndpoint(ctx, to, probe, probe.Add(time.Minute), true)
		})
		second, found := try("B/2", probe.Add(time.Minute))
		if !found || second.ID == first.ID || second.Attempts != 0 {
			t.Errorf("probed by %+v again", second)
		}
		now := probe.Add(time.Minute)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.EndTries(ctx, []store.Outcome{{Delivery: second, Verdict: flow.Verdict{OK: true}, State: flow.DeliveryDelivered, Spent: true, At: now}}); err != nil {
				return err
			}
			return tx.EndpointsAnswered(ctx, []store.Place{place()}, now)
		})
		if e, err := db.EndpointByID(t.Context(), to); err != nil || !e.OpenSince.IsZero() || e.Failures != 0 || !e.FailingSince.IsZero() || e.Probes != 0 {
			t.Errorf("it answers, and is %+v (%v)", e, err)
		}
		// Released a part at a time, and no more while those are still due.
		var released []int
		for i := range 6 {
			at := now.Add(time.Duration(i) * time.Second)
			released = append(released, doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
				return tx.Release(ctx, to, at, at.Add(time.Second), 500)
			}))
			if i%2 == 1 {
				for len(take(t, db, fmt.Sprintf("D/%d", len(released)), at, 500)) > 0 {
					released[i]-- // a sign that it was worked off
					break
				}
			}
		}
		if !slices.Equal(released, []int{500, -1, 500, -1, 199, -1}) {
			t.Errorf("released %v of %d", released, len(ids))
		}
		if got, err := db.DueWakes(t.Context(), noon.Add(24*time.Hour), 10); err != nil || len(got) != 0 {
			t.Errorf("all is released, and it is looked at still: %v (%v)", got, err)
		}
	})
}

func TestAnEndpointThatNothingIsHeldForIsSentWhatComesNext(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		to := endpoint(1).ID
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.OpenEndpoint(ctx, to, noon, noon, false) })
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, found, err := tx.Probe(ctx, to, "B/1", noon, noon.Add(lease))
			if found {
				t.Error("probed by nothing")
			}
			return err
		})
		if e, err := db.EndpointByID(t.Context(), to); err != nil || !e.OpenSince.IsZero() {
			t.Errorf("it is held back for ever: %+v (%v)", e, err)
		}
	})
}

func TestWhatIsHeldAndForgottenIsFound(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 3)
		for i := range 3 {
			oweMany(t, db, i+1, 10*i, 2)
		}
		statement(t, db, "UPDATE deliveries SET state = 'held'")
		statement(t, db, "UPDATE endpoints SET status = 'DISABLED' WHERE id = '"+string(endpoint(1).ID)+"'")
		statement(t, db, "UPDATE endpoints SET wake_at = 5 WHERE id = '"+string(endpoint(2).ID)+"'")
		got, err := db.ForgottenEndpoints(t.Context(), 10)
		if err != nil || !slices.Equal(got, []flow.EndpointID{endpoint(3).ID}) {
			t.Errorf("forgotten: %v (%v)", got, err)
		}
	})
}

func TestWhatIsHeldForLongerThanAScheduleIsDead(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids, to := oweMany(t, db, 1, 0, 3), endpoint(1).ID
		statement(t, db, "UPDATE deliveries SET state = 'held'")
		statement(t, db, "UPDATE deliveries SET created_at = created_at + 1 WHERE id = '"+ids[1]+"'")
		made := noon.Add(time.Millisecond)
		if n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.BuryHeld(ctx, to, made, noon, 10) }); n != 2 {
			t.Errorf("%d are dead", n)
		}
		if s := stateOf(t, db, ids[1]); s != "held" {
			t.Errorf("a younger one is %s", s)
		}
	})
}

func TestWhatIsHeldIsGivenUpOldestFirst(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 2)
		ids, to := oweMany(t, db, 1, 0, 6), endpoint(1).ID
		other := oweMany(t, db, 2, 10, 1)[0]
		statement(t, db, "UPDATE deliveries SET state = 'held'")
		// Those that were held last are the oldest; and the young ones, which were
		// held first, keep them from nothing.
		for i, id := range ids {
			statement(t, db, fmt.Sprintf("UPDATE deliveries SET created_at = created_at - %d WHERE id = '%s'", i*1000, id))
		}
		var order [][]string
		for range 3 {
			made := noon.Add(-1500 * time.Millisecond) // the last four
			if n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.BuryHeld(ctx, to, made, noon, 2) }); n != 2 && len(order) < 2 {
				t.Errorf("%d are dead at once", n)
			}
			var dead []string
			for _, id := range append(slices.Clone(ids), other) {
				if stateOf(t, db, id) == "dead" {
					dead = append(dead, id)
				}
			}
			order = append(order, dead)
		}
		same(t, "what was given up", [][]string{ids[4:], ids[2:], ids[2:]}, order)
		sent, err := db.Deliveries(t.Context(), event(5, "", "").ID, "", 10, 10)
		if err != nil || len(sent) != 1 || sent[0].State != flow.DeliveryDead || !sent[0].Next.IsZero() {
			t.Errorf("it is shown as %+v (%v)", sent, err)
		}
	})
}

func TestWhatSomebodyWaitsForIsFoundForEveryEndpoint(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 3)
		ids := oweMany(t, db, 1, 0, 300)
		more := oweMany(t, db, 2, 400, 2)
		rest := oweMany(t, db, 3, 500, 1)
		statement(t, db, "UPDATE deliveries SET cause = 'resend' WHERE endpoint <> '"+string(endpoint(3).ID)+"'")
		got, err := db.DueAwaited(t.Context(), noon, 5)
		must(t, err)
		var first []string
		for _, d := range got {
			first = append(first, d.ID)
		}
		same(t, "what is found", []string{ids[0], more[0], ids[1], more[1], ids[2]}, first)
		if due, err := db.DueDeliveries(t.Context(), noon, 10); err != nil || len(due) != 1 || due[0].ID != rest[0] {
			t.Errorf("of the others %v are due (%v)", due, err)
		}
		if early, err := db.DueAwaited(t.Context(), noon.Add(-2*time.Hour), 5); err != nil || len(early) != 0 {
			t.Errorf("found early: %v (%v)", early, err)
		}
	})
}

func TestFailuresAfterALongSilenceAreAnotherTrouble(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		to := endpoint(1).ID
		fails := func(at time.Time, fresh bool) flow.Endpoint {
			return doing(t, db, func(ctx context.Context, tx *store.Tx) (flow.Endpoint, error) {
				return tx.EndpointFailed(ctx, store.Failures{Place: place(), Count: 2, Since: at, Fresh: fresh}, at)
			})
		}
		fails(noon, true)
		before := store.Place{Endpoint: to, URL: "https://before.test/"}
		if e := doing(t, db, func(ctx context.Context, tx *store.Tx) (flow.Endpoint, error) {
			if err := tx.EndpointsAnswered(ctx, []store.Place{before}, noon); err != nil {
				return flow.Endpoint{}, err
			}
			return tx.EndpointFailed(ctx, store.Failures{Place: before, Count: 9, Since: noon}, noon)
		}); e.ID != "" {
			t.Errorf("it is still at its URL of before: %+v", e)
		}
		if e, err := db.EndpointByID(t.Context(), to); e.Failures != 2 || err != nil {
			t.Errorf("what its URL of before does or takes speaks of it: %d failures, %v", e.Failures, err)
		}
		if e := fails(noon.Add(47*time.Hour), true); e.Failures != 4 || !e.FailingSince.Equal(noon) {
			t.Errorf("two days later: %d since %s", e.Failures, e.FailingSince)
		}
		if e := fails(noon.Add(147*time.Hour), false); e.Failures != 6 || !e.FailingSince.Equal(noon) {
			t.Errorf("a retry much later: %d since %s", e.Failures, e.FailingSince)
		}
		if e := fails(noon.Add(400*time.Hour), true); e.Failures != 2 || !e.FailingSince.Equal(noon.Add(400*time.Hour)) {
			t.Errorf("something new much later: %d since %s", e.Failures, e.FailingSince)
		}
	})
}
