package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// delivery keeps an event that is owed to an endpoint, leased by A at noon.
func delivery(t *testing.T, db *store.DB) flow.Delivery {
	t.Helper()
	to, e := endpoint(1), event(1, "wsp_sess_001", flow.ChargeSuccess)
	d := flow.Delivery{ID: "dlv_1", Event: e.ID, Session: e.Session, Endpoint: to.ID, URL: to.URL, Secrets: to.Secrets, Body: e.Body, Lease: "A"}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddEndpoint(ctx, to); err != nil {
			return err
		}
		if err := tx.AddEvent(ctx, e); err != nil {
			return err
		}
		return tx.AddDelivery(ctx, d, noon, noon.Add(lease))
	})
	return d
}

// take claims the deliveries that are due.
func take(t *testing.T, db *store.DB, token string, now time.Time, limit int) []flow.Delivery {
	t.Helper()
	var list []flow.Delivery
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		due, err := tx.DueDeliveries(ctx, now, limit)
		if err != nil {
			return err
		}
		ids := make([]string, len(due))
		for i, d := range due {
			ids[i] = d.ID
		}
		list, err = tx.ClaimDeliveries(ctx, token, ids, now, now.Add(lease))
		return err
	})
	return list
}

// end keeps what became of a try at a time, and when it is due again.
func end(t *testing.T, db *store.DB, d flow.Delivery, v flow.Verdict, state string, at ...time.Time) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return tx.EndTries(ctx, []store.Outcome{{Delivery: d, Verdict: v, State: state, Spent: true, At: at[0], Next: at[1]}})
	})
}

// owedDelivery is when the next delivery is due, zero for never.
func owedDelivery(t *testing.T, db *store.DB) time.Time {
	t.Helper()
	n, err := db.Next(t.Context())
	must(t, err)
	return n.Deliveries()
}

func TestADeliveryIsClaimedWithAllItNeedsOnceItsLeaseIsOver(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		born := delivery(t, db)
		if got := take(t, db, "B/1", noon.Add(lease-time.Millisecond), 10); len(got) != 0 {
			t.Errorf("claimed %+v from under its lease", got)
		}
		got := take(t, db, "B/2", noon.Add(lease), 10)
		born.Lease, born.Cause, born.Secrets, born.Project = "B/2", flow.CauseAuto, born.Secrets[:1], endpoint(1).Project // the older one has retired
		same(t, "the delivery", []flow.Delivery{born}, got)
		if again := take(t, db, "C/1", noon.Add(lease), 10); len(again) != 0 {
			t.Errorf("claimed twice: %+v", again)
		}
	})
}

func TestATryThatFailedIsDueAgainAndOneThatDeliveredIsNot(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		d := delivery(t, db)
		later := noon.Add(5 * time.Minute)
		end(t, db, d, flow.Verdict{Status: 503, Reason: "status", Body: []byte("no"), Duration: 20 * time.Millisecond}, "pending", noon, later)
		if at := owedDelivery(t, db); !at.Equal(later) {
			t.Errorf("due again %v", at)
		}
		got := take(t, db, "A/2", later, 1)
		if len(got) != 1 || got[0].Attempts != 1 {
			t.Fatalf("claimed %+v", got)
		}
		end(t, db, got[0], flow.Verdict{OK: true, Status: 200, Duration: time.Millisecond}, "delivered", later, time.Time{})
		if at := owedDelivery(t, db); !at.IsZero() {
			t.Errorf("delivered, and due again %v", at)
		}
		tries, err := db.Tries(t.Context(), "wsp_sess_001", 100)
		if err != nil || len(tries) != 2 {
			t.Fatal(tries, err)
		}
		tries[1].Body = nil // empty
		same(t, "the tries", []store.Tried{
			{Delivery: "dlv_1", Event: d.Event, Kind: flow.ChargeSuccess, URL: d.URL, N: 1, At: noon, Cause: "auto", Status: 503, Reason: "status", Body: []byte("no"), Took: 20 * time.Millisecond},
			{Delivery: "dlv_1", Event: d.Event, Kind: flow.ChargeSuccess, URL: d.URL, N: 2, At: later, Cause: "auto", Status: 200, Took: time.Millisecond},
		}, tries)
	})
}

func TestATryThatWasOvertakenLeavesOnlyItsRecordUnlessItDelivered(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		slow := delivery(t, db)
		now := noon.Add(lease)
		take(t, db, "B/1", now, 1)
		for _, state := range []string{"pending", "dead"} {
			end(t, db, slow, flow.Verdict{Reason: "timeout"}, state, now, now.Add(time.Hour))
			if at := owedDelivery(t, db); !at.Equal(now.Add(lease)) {
				t.Errorf("a try that was overtaken (%s) moved the delivery to %v", state, at)
			}
		}
		end(t, db, slow, flow.Verdict{OK: true, Status: 204}, "delivered", now, time.Time{})
		if at := owedDelivery(t, db); !at.IsZero() {
			t.Errorf("delivered, and due again %v", at)
		}
		end(t, db, slow, flow.Verdict{Reason: "timeout"}, "pending", now, now)
		if at := owedDelivery(t, db); !at.IsZero() {
			t.Errorf("what was delivered is due again %v", at)
		}
		tries, err := db.Tries(t.Context(), "wsp_sess_001", 100)
		if err != nil || len(tries) != 4 {
			t.Errorf("%d tries are on record (%v)", len(tries), err)
		}
	})
}

func TestAnEndpointThatIsGoneIsOwedNothingMore(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		d := delivery(t, db)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.DisableEndpoint(ctx, d.Endpoint, flow.DisabledGone, noon); err != nil {
				return err
			}
			_, err := tx.HoldDeliveries(ctx, d.Endpoint, noon, 10)
			return err
		})
		if got := take(t, db, "B/1", noon.Add(time.Hour), 10); len(got) != 0 {
			t.Errorf("claimed for a gone endpoint: %+v", got)
		}
		if at := owedDelivery(t, db); !at.IsZero() {
			t.Errorf("owed at %v", at)
		}
		list, err := db.Endpoints(t.Context(), "wsp_prj_1")
		if err != nil || len(list) != 1 || list[0].Status != flow.EndpointDisabled {
			t.Error(list, err)
		}
	})
}

func TestAnEventIsOwedToAnEndpointOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		d := delivery(t, db)
		d.ID = "dlv_2"
		_ = refused(t, db, "a second delivery of the same event", func(ctx context.Context, tx *store.Tx) error { return tx.AddDelivery(ctx, d, noon, noon) })
	})
}

func TestManyDeliveriesAreClaimedInTheirOrderAndOnlyOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const all = 7
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddEndpoint(ctx, endpoint(1)); err != nil {
				return err
			}
			for i := range all {
				if err := tx.AddEvent(ctx, event(i+1, "wsp_sess_001", flow.ChargeUnderpaid)); err != nil {
					return err
				}
				d := flow.Delivery{ID: fmt.Sprintf("dlv_%d", i), Event: event(i+1, "", "").ID, Endpoint: endpoint(1).ID, Lease: "A"}
				if err := tx.AddDelivery(ctx, d, noon, noon.Add(-time.Duration(i)*time.Second)); err != nil {
					return err
				}
			}
			return nil
		})
		got := map[string]int{}
		for i, want := range []int{3, 3, 1, 0} {
			list := take(t, db, fmt.Sprintf("B/%d", i), noon, 3)
			if len(list) != want {
				t.Errorf("claim %d took %d", i, len(list))
			}
			for _, d := range list {
				got[d.ID] = i
			}
		}
		if len(got) != all || got["dlv_6"] != 0 || got["dlv_0"] != 2 {
			t.Errorf("claimed %v", got)
		}
	})
}

// Who claims what another has claimed since it was found due, or delivered, gets nothing.
func TestADeliveryIsClaimedByOneAtATime(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids := oweMany(t, db, 1, 0, 2)
		claim := func(token string, now time.Time) []flow.Delivery {
			t.Helper()
			return doing(t, db, func(ctx context.Context, tx *store.Tx) ([]flow.Delivery, error) {
				return tx.ClaimDeliveries(ctx, token, ids, now, now.Add(lease))
			})
		}
		first := claim("B/1", noon)
		if again := claim("C/1", noon); len(first) != 2 || len(again) != 0 {
			t.Fatalf("claimed %d, and then %d more", len(first), len(again))
		}
		if again := claim("C/1", noon.Add(lease-time.Millisecond)); len(again) != 0 {
			t.Errorf("before the lease is over %d are claimed", len(again))
		}
		end(t, db, first[0], flow.Verdict{OK: true, Status: 200}, "delivered", noon, time.Time{})
		if again := claim("C/2", noon.Add(lease)); len(again) != 1 || again[0].ID != ids[1] || again[0].Lease != "C/2" {
			t.Errorf("after the lease %+v is claimed", again)
		}
	})
}
