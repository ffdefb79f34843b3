package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"till/flow/store"
	"till/flow/store/lite"
	"till/flow/store/storetest"
)

func TestAClaimKnowsWhatIsDueAfterItWhereThatCostsNobodyAnything(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		owe(t, db, "a", noon)
		owe(t, db, "bb", noon.Add(time.Hour))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.ClaimTasks(ctx, "A/1", noon, noon.Add(2*time.Hour), 10); err != nil {
				return err
			}
			after, known, err := tx.Then(ctx)
			if known != (c.URL == "") || known && !after.Tasks().Equal(noon.Add(time.Hour)) {
				t.Errorf("due then %+v (%t)", after, known)
			}
			return err
		})
		n, err := db.Next(t.Context())
		if err != nil || !n.Tasks().Equal(noon.Add(time.Hour)) || !n.Deliveries().IsZero() {
			t.Errorf("due next %+v, %v", n, err)
		}
	})
}

func TestAScriptSaysWhichOfItsStatementsIsWrong(t *testing.T) {
	conn, err := lite.Open("file::memory:")
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, conn.Script(`CREATE TABLE a (n INTEGER); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)`))
	var sum int
	if err := conn.Each(`SELECT sum(n) FROM a`, nil, func(scan lite.Scanner) error { return scan(&sum) }); err != nil || sum != 3 {
		t.Errorf("sum %d, %v", sum, err)
	}
	err = conn.Script(`INSERT INTO a VALUES (3); INSERT INTO none VALUES (1)`)
	if refused, ok := errors.AsType[*lite.Error](err); !ok || refused.Text != "no such table: none" {
		t.Errorf("a script that is wrong: %v", err)
	}
}
