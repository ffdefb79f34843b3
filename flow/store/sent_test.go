package store_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// three keeps three events of a project, two of them of one moment, and one of
// another's, with an endpoint that the first was given up for and the second is
// held for.
func three(t *testing.T, db *store.DB) (to flow.Endpoint, events []flow.Event) {
	t.Helper()
	to = endpoint(1)
	for i, at := range []time.Duration{0, time.Second, time.Second, 2 * time.Second} {
		e := event(i+1, "", flow.ChargeLate)
		e.CreatedAt, e.Sequence = noon.Add(at), 0
		events = append(events, e)
	}
	events[0].Kind, events[3].Project = flow.ChargeFailed, "wsp_prj_2"
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddEndpoint(ctx, to); err != nil {
			return err
		}
		for _, e := range events {
			if err := tx.AddEvent(ctx, e); err != nil {
				return err
			}
		}
		for i, d := range []string{"dlv_1", "dlv_2"} {
			if err := tx.AddDelivery(ctx, flow.Delivery{ID: d, Event: events[i].ID, Endpoint: to.ID, Cause: []string{flow.CausePing, ""}[i], Lease: "A"}, noon, noon.Add(lease)); err != nil {
				return err
			}
		}
		return tx.EndTries(ctx, []store.Outcome{{
			Delivery: flow.Delivery{ID: "dlv_1", Event: events[0].ID, Endpoint: to.ID, Cause: flow.CausePing, Lease: "A"}, State: flow.DeliveryDead, Spent: true, At: noon,
			Verdict: flow.Verdict{Status: 500, Reason: "status", Body: []byte("no\x00\xff"), Duration: time.Millisecond, URL: to.URL, SignedAt: noon, Signature: "v1,x"},
		}})
	})
	return to, events
}

func ids(list []flow.Event) []flow.EventID {
	var out []flow.EventID
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

func TestAProjectsEventsAreListedNewestFirstFromAPlaceOn(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		_, events := three(t, db)
		list := func(f store.EventFilter) []flow.EventID {
			t.Helper()
			f.Project, f.Limit = "wsp_prj_1", 10
			got, err := db.ProjectEvents(t.Context(), f)
			must(t, err)
			return ids(got)
		}
		same(t, "all", []flow.EventID{"evt_003", "evt_002", "evt_001"}, list(store.EventFilter{}))
		same(t, "from a place on", []flow.EventID{"evt_002", "evt_001"}, list(store.EventFilter{Before: store.EventPlace{At: events[2].CreatedAt, ID: "evt_003"}}))
		same(t, "of a kind", []flow.EventID{"evt_001"}, list(store.EventFilter{Kind: flow.ChargeFailed}))
		same(t, "of a time", []flow.EventID{"evt_003", "evt_002"}, list(store.EventFilter{From: noon.Add(time.Second), Until: noon.Add(time.Minute)}))
		same(t, "of a session", []flow.EventID(nil), list(store.EventFilter{Session: "wsp_sess_001"}))
		if _, err := db.Event(t.Context(), "wsp_prj_1", "evt_004"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another project's event: %v", err)
		}
		standing, err := db.Standing(t.Context(), []flow.EventID{"evt_001", "evt_002", "evt_003"})
		must(t, err)
		same(t, "where they stand", map[flow.EventID]map[string]int{"evt_001": {"dead": 1}, "evt_002": {"pending": 1}}, standing)
	})
}

func TestADeliveryIsReadWithWhatWasSentAndAnswered(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		to, events := three(t, db)
		got, err := db.Deliveries(t.Context(), events[0].ID, "", 10, 5)
		must(t, err)
		same(t, "the delivery", []store.Sent{{
			ID: "dlv_1", Event: events[0].ID, Endpoint: to.ID, URL: to.URL, State: flow.DeliveryDead, Count: 1,
			Tries: []store.SentTry{{
				N: 1, At: noon, Cause: flow.CausePing, URL: to.URL, SignedAt: noon, Signature: "v1,x", Status: 500, Reason: "status", Body: []byte("no\x00\xff"), Took: time.Millisecond,
			}},
		}}, got)
		if later, err := db.Deliveries(t.Context(), events[0].ID, "dlv_1", 10, 5); err != nil || len(later) != 0 {
			t.Errorf("behind the last: %+v %v", later, err)
		}
	})
}

func TestWhatIsOnItsWayIsNotReplayed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		to, _ := three(t, db)
		find := func(failed bool, until time.Time) []flow.EventID {
			t.Helper()
			kinds := []flow.EventKind{flow.ChargeFailed, flow.ChargeLate}
			list, err := db.Replayable(t.Context(), store.Stretch{To: to, Kinds: kinds, From: noon, Until: until, Failed: failed}, 10)
			must(t, err)
			var out []flow.EventID
			for _, o := range list {
				out = append(out, o.Event)
			}
			return out
		}
		same(t, "all", []flow.EventID{"evt_001", "evt_003"}, find(false, noon.Add(time.Minute)))
		same(t, "what was given up", []flow.EventID{"evt_001"}, find(true, noon.Add(time.Minute)))
		same(t, "of before", []flow.EventID{"evt_001"}, find(false, noon.Add(time.Second)))
	})
}

// Between a list of what can be sent again and the sending another may have sent some
// of it: that is told from what stands as it did, also once it stands so again.
func TestWhatWasSentSinceItWasListedIsNotReplayed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		to, _ := three(t, db)
		kinds := []flow.EventKind{flow.ChargeFailed, flow.ChargeLate}
		list, err := db.Replayable(t.Context(), store.Stretch{To: to, Kinds: kinds, From: noon, Until: noon.Add(time.Minute)}, 10)
		must(t, err)
		left := func(what string, want ...flow.EventID) {
			t.Helper()
			still, err := db.Unmoved(t.Context(), to.ID, list)
			must(t, err)
			var got []flow.EventID
			for _, o := range still {
				got = append(got, o.Event)
			}
			same(t, what, want, got)
		}
		left("right after", "evt_001", "evt_003")
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.RedoDelivery(ctx, "evt_001", to.ID, flow.CauseReplay, "B", noon.Add(lease))
			return err
		})
		left("while one is on its way", "evt_003")
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.EndTries(ctx, []store.Outcome{{
				Delivery: flow.Delivery{ID: "dlv_1", Event: "evt_001", Endpoint: to.ID, Cause: flow.CauseReplay, Lease: "B"}, State: flow.DeliveryDead, Spent: true, At: noon,
				Verdict: flow.Verdict{Status: 500, Reason: "status", URL: to.URL, SignedAt: noon, Signature: "v1,x"},
			}})
		})
		left("once it is given up again", "evt_003")
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.AddDelivery(ctx, flow.Delivery{ID: "dlv_3", Event: "evt_003", Endpoint: to.ID, Cause: flow.CauseReplay}, noon, noon)
		})
		left("once the other is owed for the first time")
	})
}

func TestAnEndpointIsStoppedStartedAndTakenAway(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		to, events := three(t, db)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.EndpointFailed(ctx, store.Failures{Place: store.Place{Endpoint: to.ID, URL: to.URL}, Count: 3, Since: noon}, noon); err != nil {
				return err
			}
			if _, err := tx.DisableEndpoint(ctx, to.ID, flow.DisabledRequested, noon); err != nil {
				return err
			}
			if err := tx.EnableEndpoint(ctx, to.ID, noon); err != nil {
				return err
			}
			e, err := tx.Endpoint(ctx, to.Project, to.ID)
			if err == nil && (e.Status != flow.EndpointEnabled || e.DisabledReason != "" || !e.DisabledAt.IsZero() || !e.FailingSince.IsZero() || e.Failures != 0) {
				t.Errorf("it is not as new: %+v", e)
			}
			return err
		})
		// What was given up and is tried by hand goes back to that.
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, _, err := tx.RedoDelivery(ctx, events[0].ID, to.ID, flow.CauseResend, "", noon); err != nil {
				return err
			}
			n, err := tx.CancelDeliveries(ctx, to.ID, flow.DeliveryPending, noon, 10)
			if err == nil && n != 2 {
				t.Errorf("%d were cancelled", n)
			}
			if err == nil {
				err = tx.DeleteEndpoint(ctx, to.ID, noon)
			}
			return err
		})
		standing, err := db.Standing(t.Context(), []flow.EventID{"evt_001", "evt_002"})
		must(t, err)
		same(t, "where they stand", map[flow.EventID]map[string]int{"evt_001": {"dead": 1}, "evt_002": {"cancelled": 1}}, standing)
		if _, err := db.Endpoint(t.Context(), to.Project, to.ID); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("it is there still: %v", err)
		}
	})
}
