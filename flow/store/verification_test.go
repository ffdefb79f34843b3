package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// verification is a look-up that has begun.
func verification(n int) flow.Verification {
	return flow.Verification{
		ID: flow.VerificationID(fmt.Sprintf("wsp_ver_%03d", n)), Project: "wsp_prj_1", Key: "wsp_key_1", Type: flow.BVN,
		Fingerprint: strings.Repeat("a", 64), Mask: "*********21", Purpose: "Account opening", Status: flow.VerificationPending,
		CreatedAt: noon, DueAt: noon.Add(flow.VerificationLasts),
	}
}

func add(tb testing.TB, db *store.DB, all ...flow.Verification) {
	tb.Helper()
	update(tb, db, func(ctx context.Context, tx *store.Tx) error {
		for _, v := range all {
			if err := tx.AddVerification(ctx, v); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAVerificationEndsOnceAndLeavesOneAuditRow(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		one := verification(1)
		add(t, db, one, verification(2))
		if got, err := db.Verification(t.Context(), one.ID); err != nil || got != one {
			t.Errorf("read %+v, %v", got, err)
		}
		done := one.Answered(flow.Matches{FirstName: flow.MatchExact, LastName: flow.MatchPartial, DateOfBirth: flow.MatchNone}, "", noon.Add(time.Second))
		for i, v := range []flow.Verification{done, done, one.Failed(flow.ReasonInterrupted, noon.Add(time.Minute))} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				ended, err := tx.EndVerification(ctx, v)
				if ended != (i == 0) {
					t.Errorf("%d: ended %v", i, ended)
				}
				return err
			})
		}
		if got, err := db.Verification(t.Context(), one.ID); err != nil || got != done {
			t.Errorf("read %+v, %v", got, err)
		}
		want := store.LookUp{
			Verification: one.ID, Project: one.Project, Key: one.Key, Type: one.Type, Mask: one.Mask, Purpose: one.Purpose, At: noon,
			EndedAt: noon.Add(time.Second), Outcome: flow.VerificationPartial,
		}
		if list, err := db.LookUps(t.Context(), one.Project, time.Time{}, 10); err != nil || len(list) != 1 || list[0] != want {
			t.Errorf("audit %+v, %v", list, err)
		}
		if list, err := db.LookUps(t.Context(), "wsp_prj_2", time.Time{}, 10); err != nil || len(list) != 0 {
			t.Errorf("another project's audit %+v, %v", list, err)
		}
		if _, err := db.Verification(t.Context(), "wsp_ver_none"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("one of nobody's: %v", err)
		}
	})
}

func TestWhatNobodyHearsOfIsOverdue(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		early, late, done := verification(1), verification(2), verification(3)
		late.DueAt = late.DueAt.Add(time.Hour)
		add(t, db, late, early, done)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.EndVerification(ctx, done.Failed(flow.ReasonRailAway, noon))
			return err
		})
		overdue := func(at time.Time) (ids []flow.VerificationID) {
			list, err := db.OverdueVerifications(t.Context(), at, 10)
			must(t, err)
			for _, v := range list {
				ids = append(ids, v.ID)
			}
			return ids
		}
		if got := overdue(early.DueAt.Add(-time.Millisecond)); len(got) != 0 {
			t.Errorf("overdue too early: %v", got)
		}
		if got := fmt.Sprint(overdue(early.DueAt)); got != "[wsp_ver_001]" {
			t.Errorf("overdue: %v", got)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.HurryVerifications(ctx, noon) })
		if got := overdue(noon); len(got) != 2 {
			t.Errorf("overdue when hurried: %v", got)
		}
	})
}

func TestAVerificationIsForgottenAndItsAuditRowIsNot(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		old, fresh, pending := verification(1), verification(2), verification(3)
		fresh.CreatedAt = noon.Add(time.Hour)
		add(t, db, old, fresh, pending)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, v := range []flow.Verification{old, fresh} {
				if _, err := tx.EndVerification(ctx, v.Failed(flow.ReasonRailTimeout, noon.Add(time.Hour))); err != nil {
					return err
				}
			}
			n, err := tx.ForgetVerifications(ctx, noon.Add(time.Minute))
			if n != 1 {
				t.Errorf("forgot %d", n)
			}
			return err
		})
		if _, err := db.Verification(t.Context(), old.ID); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("the old one: %v", err)
		}
		for _, id := range []flow.VerificationID{fresh.ID, pending.ID} {
			if _, err := db.Verification(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if list, err := db.LookUps(t.Context(), old.Project, time.Time{}, 10); err != nil || len(list) != 2 {
			t.Errorf("audit %+v, %v", list, err)
		}
	})
}

// The schema refuses a number in place of its mask or fingerprint, and an
// outcome that is none.
func TestTheSchemaKeepsNoNumber(t *testing.T) {
	for what, spoil := range map[string]func(*flow.Verification){
		"a number as the mask":        func(v *flow.Verification) { v.Mask = "22222222221" },
		"a number as the fingerprint": func(v *flow.Verification) { v.Fingerprint = "22222222221" },
		"another register":            func(v *flow.Verification) { v.Type = "ssn" },
		"another status":              func(v *flow.Verification) { v.Status = "VERIFIED" },
		"an end without a time":       func(v *flow.Verification) { v.Status = flow.VerificationFailed },
		"a time without an end":       func(v *flow.Verification) { v.DoneAt = noon },
		"an answer while pending":     func(v *flow.Verification) { v.Matches = flow.NoMatch(true) },
		"a match without an answer":   func(v *flow.Verification) { v.Status, v.DoneAt = flow.VerificationMatched, noon },
	} {
		t.Run(what, func(t *testing.T) {
			storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
				v := verification(1)
				spoil(&v)
				_ = refused(t, db, what, func(ctx context.Context, tx *store.Tx) error { return tx.AddVerification(ctx, v) })
			})
		})
	}
}

// Events of a project's that are about no session have no sequence to clash.
func TestEventsWithoutASessionStandSideBySide(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for n := range 2 {
				e := event(n+1, "", flow.IdentityVerified)
				e.Sequence = 0
				if err := tx.AddEvent(ctx, e); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Nothing in the package changes or drops an audit row.
func TestTheAuditIsAppendOnly(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	change := regexp.MustCompile(`(?i)(update|delete\s+from|replace\s+into)\s+lookups`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if hit := change.Find(text); hit != nil && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s: %s", file, hit)
		}
	}
}
