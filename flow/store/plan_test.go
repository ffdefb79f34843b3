package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A rule looks at each of its rows once, and for each at what is about that row
// alone: one that looked at the whole ledger each time would take hours where
// there are many payments, and keep the write-ahead log from being written back
// as long.
func TestNoRuleReadsAWholeTableForEachRow(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	all, err := db.RepeatedSteps(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatalf("%d rules look closer at their rows: %v", len(all), err)
	}
	for rule, steps := range all {
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN ") || strings.Contains(step, "ledger_1 (kind=?)") {
				t.Errorf("rule %q does for each row: %s", rule, step)
			}
		}
	}
}

// A page of a list reads what it shows and little else, however many sessions the
// project has and however few of them are looked for.
func TestAListReadsWhatItShows(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	some := store.SessionFilter{Project: "wsp_prj_1", Limit: 20}
	for index, f := range map[string]store.SessionFilter{
		"session_project":   some,
		"session_status":    {Project: some.Project, Limit: 20, Status: flow.SessionPaid},
		"session_email":     {Project: some.Project, Limit: 20, Email: "ada@example.com", Before: "wsp_sess_9", CreatedFrom: time.Unix(1, 0)},
		"session_reference": {Project: some.Project, Limit: 20, Reference: "order-1", Status: flow.SessionPaid},
	} {
		plan, err := db.ListPlan(t.Context(), f)
		must(t, err)
		if !strings.Contains(plan, "USING INDEX "+index+" ") || strings.Contains(plan, "SCAN") || index != "session_reference" && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%+v is not read by %s alone:\n%s", f, index, plan)
		}
	}
}

// That an id is another merchant's is seen in the index of each merchant's own: by that of
// all ids the row would be read, which takes time that tells that it is there.
func TestWhatIsAnothersIsNotReadToBeRefused(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	for table, index := range map[string]string{"sessions": "session", "payments": "payment", "refunds": "refund", "settlements": "settlement"} {
		plan, err := db.OfProjectPlan(t.Context(), table)
		must(t, err)
		if want := "USING INDEX " + index + "_project (project=? AND id>? AND id<?)"; !strings.Contains(plan, want) {
			t.Errorf("one of the %s is sought so, and not %s:\n%s", table, want, plan)
		}
	}
}

// A claim looks at what it takes and not at all that is due, also while PostgreSQL
// believes that next to nothing is: else a backlog takes the longer the longer it
// is, each part of it.
func TestAClaimReadsNoBacklog(t *testing.T) {
	db := storetest.Open(t, storetest.Postgres(t, store.Checkout))
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddEndpoint(ctx, endpoint(1)); err != nil {
			return err
		}
		ids := make([]string, 500)
		for i := range ids {
			if err := tx.AddEvent(ctx, event(i, "wsp_sess_001", flow.ChargeUnderpaid)); err != nil {
				return err
			}
			ids[i] = fmt.Sprintf("dlv_%03d", i)
			if err := tx.AddDelivery(ctx, flow.Delivery{ID: ids[i], Event: event(i, "", "").ID, Endpoint: endpoint(1).ID}, noon, noon); err != nil {
				return err
			}
		}
		for _, query := range []string{"UPDATE deliveries SET state = 'delivered'", "ANALYZE deliveries", "UPDATE deliveries SET state = 'pending'"} {
			if err := tx.Exec(ctx, query); err != nil {
				return err
			}
		}
		plan, err := tx.ClaimPlan(ctx, ids[:50])
		if strings.Contains(plan, "delivery_due") || !strings.Contains(plan, "deliveries_pkey") {
			t.Errorf("a claim goes through what is due:\n%s", plan)
		}
		return err
	})
}

// However much is held, one step finds the oldest of it for an endpoint.
func TestTheOldestThatIsHeldIsFoundByAnIndex(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	plan, err := db.HeldBackPlan(t.Context())
	if err != nil || !strings.Contains(plan, "INDEX endpoint_wakes ") || !strings.Contains(plan, "INDEX delivery_held_made (endpoint=?)") {
		t.Errorf("%v:\n%s", err, plan)
	}
}

// Which settlements a session's money is in is found from its payments, however many
// payments and settlements there are.
func TestTheSettlementsOfASessionAreFoundByIndexes(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	plan, err := db.SettledPlan(t.Context())
	for _, table := range []string{"p", "l", "i", "settlements"} {
		if err != nil || !strings.Contains(plan, "SEARCH "+table+" USING INDEX ") {
			t.Errorf("%s: %v:\n%s", table, err, plan)
		}
	}
}
