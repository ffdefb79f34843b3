package store_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// meanwhile asks for a held delivery by hand while another process is about to do
// something to what is held, and has seen it held.
func meanwhile(t *testing.T, c store.Config, d flow.Delivery, do func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	one, other, eye := storetest.Open(t, c), storetest.Open(t, c), storetest.Open(t, c)
	ctx := store.Rowwise(t.Context())
	begun, end, done := make(chan bool), make(chan bool), make(chan error, 2)
	go func() {
		done <- one.Update(ctx, func(tx *store.Tx) error {
			_, _, err := tx.RedoDelivery(ctx, d.Event, d.Endpoint, flow.CauseResend, "H/1", noon.Add(lease))
			close(begun)
			<-end
			return err
		})
	}()
	<-begun
	go func() { done <- other.Update(ctx, func(tx *store.Tx) error { return do(ctx, tx) }) }()
	await.Until(t, "the other process to wait for the row", func() bool {
		return doing(t, eye, func(ctx context.Context, tx *store.Tx) (int, error) {
			return tx.Count(ctx, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE deliveries%'")
		}) > 0
	})
	close(end)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsAskedForByHandMeanwhileIsNotHeldAnyMore(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, tx *store.Tx) error{
		"probe": func(ctx context.Context, tx *store.Tx) error {
			if _, found, err := tx.Probe(ctx, endpoint(1).ID, "P/1", noon, noon.Add(lease)); err != nil || found {
				t.Errorf("probed by what is asked for by hand: %t (%v)", found, err)
			}
			return nil
		},
		"release": func(ctx context.Context, tx *store.Tx) error {
			if err := tx.EndpointsAnswered(ctx, []store.Place{place()}, noon); err != nil {
				return err
			}
			_, err := tx.Release(ctx, endpoint(1).ID, noon, noon.Add(time.Second), 10)
			return err
		},
		"bury": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.BuryHeld(ctx, endpoint(1).ID, noon.Add(time.Hour), noon, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := storetest.Postgres(t, store.Checkout)
			db := storetest.Open(t, c)
			endpoints(t, db, 1)
			ids := oweMany(t, db, 1, 0, 2)
			statement(t, db, "UPDATE deliveries SET created_at = created_at - 1 WHERE id = '"+ids[0]+"'")
			statement(t, db, "UPDATE deliveries SET attempts = 1 WHERE id = '"+ids[1]+"'") // the first is probed, and buried
			held(t, db, endpoint(1).ID)
			meanwhile(t, c, flow.Delivery{Event: event(0, "", "").ID, Endpoint: endpoint(1).ID}, do)
			n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
				return tx.Count(ctx, "SELECT COUNT(*) FROM deliveries WHERE id = ? AND state = 'pending' AND cause = 'resend' AND token = 'H/1'", ids[0])
			})
			if n != 1 {
				t.Error("what is asked for by hand is lost")
			}
			if e, err := db.EndpointByID(t.Context(), endpoint(1).ID); err != nil || name == "probe" && e.OpenSince.IsZero() {
				t.Errorf("more is held, and it is %+v (%v)", e, err)
			}
		})
	}
}
