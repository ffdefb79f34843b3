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

// lease is how long work is taken for in these tests.
const lease = time.Minute

// owe asks for a task without handing it to anybody.
func owe(t *testing.T, db *store.DB, subject string, due time.Time) {
	t.Helper()
	hand(t, db, subject, due, "")
}

// hand asks for a task; with a token it is born leased.
func hand(t *testing.T, db *store.DB, subject string, due time.Time, token string) store.Work {
	t.Helper()
	var w store.Work
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		var err error
		w, err = tx.AddTask(ctx, flow.Task{Kind: flow.TaskCheck, Subject: subject, Due: due}, token, due.Add(lease))
		return err
	})
	return w
}

// claim takes what is due at a time and returns the subjects, sorted.
func claim(t *testing.T, db *store.DB, token string, now time.Time, limit int) []store.Work {
	t.Helper()
	var list []store.Work
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if err = tx.Sweep(ctx, now, limit); err == nil {
			list, err = tx.ClaimTasks(ctx, token, now, now.Add(lease), limit)
		}
		return err
	})
	slices.SortFunc(list, func(a, b store.Work) int { return len(a.Subject) - len(b.Subject) })
	return list
}

func subjects(list []store.Work) string {
	out := ""
	for _, w := range list {
		out += w.Subject + " "
	}
	return out
}

func next(t *testing.T, db *store.DB) time.Time {
	t.Helper()
	n, err := db.Next(t.Context())
	must(t, err)
	return n.Tasks()
}

func TestWorkIsOwedOnceForASubjectAtTheEarliestTimeAskedFor(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		if at := next(t, db); !at.IsZero() {
			t.Fatal(at)
		}
		owe(t, db, "a", noon.Add(time.Hour))
		owe(t, db, "a", noon)
		owe(t, db, "a", noon.Add(2*time.Hour))
		if at := next(t, db); !at.Equal(noon) {
			t.Errorf("due %v", at)
		}
		list := claim(t, db, "A/1", noon, 10)
		if subjects(list) != "a " || list[0].Attempts != 0 || list[0].Kind != flow.TaskCheck {
			t.Errorf("claimed %+v", list)
		}
	})
}

func TestClaimedWorkIsLeftAloneUntilItsLeaseEnds(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		owe(t, db, "a", noon)
		owe(t, db, "bb", noon.Add(time.Hour))
		if got := subjects(claim(t, db, "A/1", noon.Add(-time.Millisecond), 10)); got != "" {
			t.Errorf("claimed %s before it was due", got)
		}
		if got := subjects(claim(t, db, "A/2", noon, 10)); got != "a " {
			t.Errorf("claimed %s", got)
		}
		if got := subjects(claim(t, db, "B/1", noon.Add(lease-time.Millisecond), 10)); got != "" {
			t.Errorf("claimed %s from under a lease", got)
		}
		if got := subjects(claim(t, db, "B/2", noon.Add(lease), 10)); got != "a " {
			t.Errorf("claimed %s after the lease", got)
		}
	})
}

func TestAClaimTakesNoMoreThanItAsksForAndTheOldestFirst(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		owe(t, db, "ccc", noon)
		owe(t, db, "bb", noon.Add(-time.Minute))
		owe(t, db, "a", noon.Add(-time.Hour))
		if got := subjects(claim(t, db, "A/1", noon, 2)); got != "a bb " {
			t.Errorf("claimed %s", got)
		}
	})
}

func TestWorkHandedOverIsNotClaimedByOthersUntilItsLeaseEnds(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		owe(t, db, "a", noon.Add(-time.Hour)) // asked for before, due, not taken yet
		w := hand(t, db, "a", noon, "A")
		if got := subjects(claim(t, db, "B/1", noon.Add(lease-time.Millisecond), 10)); got != "" {
			t.Errorf("claimed %s that was handed over", got)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndTask(ctx, w) })
		if at := next(t, db); !at.IsZero() {
			t.Errorf("what is done is still owed, at %v", at)
		}
	})
}

func TestWorkAskedForWhileItIsDoneIsDoneAgain(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		owe(t, db, "a", noon)
		first := claim(t, db, "A/1", noon, 1)[0]
		later := noon.Add(30 * time.Minute)
		owe(t, db, "a", later)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndTask(ctx, first) })
		if at := next(t, db); !at.Equal(later) {
			t.Errorf("what was asked for meanwhile is due %v", at)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.PutOffTask(ctx, first, noon.Add(time.Hour), true)
		})
		if at := next(t, db); !at.Equal(later) {
			t.Errorf("an older try put newer work off to %v", at)
		}
		second := claim(t, db, "A/2", later, 1)
		if len(second) != 1 || second[0].Attempts != 0 || second[0].Gen <= first.Gen {
			t.Errorf("claimed %+v", second)
		}
	})
}

// A worker that sleeps for longer than its lease must not touch what belongs to the
// one that took over, nor what is owed anew once that one is done.
func TestAWorkerThatOversleptTouchesNothingOfItsHeirs(t *testing.T) {
	for name, took := range map[string]func(t *testing.T, db *store.DB) store.Work{
		"claimed": func(t *testing.T, db *store.DB) store.Work {
			t.Helper()
			owe(t, db, "a", noon)
			return claim(t, db, "A/1", noon, 1)[0]
		},
		"handed over": func(t *testing.T, db *store.DB) store.Work {
			t.Helper()
			return hand(t, db, "a", noon, "A")
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
				slept := took(t, db)
				wakes := func(when string, due time.Time) {
					t.Helper()
					update(t, db, func(ctx context.Context, tx *store.Tx) error {
						return tx.PutOffTask(ctx, slept, noon.Add(time.Hour), true)
					})
					if at := next(t, db); !at.Equal(due) {
						t.Errorf("%s, it put it off to %v", when, at)
					}
					update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndTask(ctx, slept) })
					if at := next(t, db); !at.Equal(due) {
						t.Errorf("%s, it ended it: due is %v", when, at)
					}
				}
				heir := claim(t, db, "B/1", noon.Add(lease), 1)[0]
				wakes("once it was taken over", noon.Add(2*lease))
				update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndTask(ctx, heir) })
				owe(t, db, "a", noon.Add(3*lease))
				wakes("once it is owed anew", noon.Add(3*lease))
				claim(t, db, "B/2", noon.Add(3*lease), 1)
				wakes("once that is taken", noon.Add(4*lease))
			})
		})
	}
}

// Only what is owed to nobody else yet is known to be the whole of it.
func TestWorkIsSoleWhileNothingOfItsKindIsOwed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		first, second := hand(t, db, "a", noon, "A"), hand(t, db, "a", noon, "A")
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EndTask(ctx, second) })
		third := hand(t, db, "a", noon, "A")
		if !first.Sole || second.Sole || !third.Sole {
			t.Errorf("sole are %v, %v, %v", first.Sole, second.Sole, third.Sole)
		}
	})
}

func TestFailedWorkIsPutOffAndItsTriesAreCounted(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		owe(t, db, "a", noon)
		now := noon
		for try := range 3 {
			list := claim(t, db, fmt.Sprintf("A/%d", try), now, 1)
			if len(list) != 1 || list[0].Attempts != try {
				t.Fatalf("try %d: %+v", try, list)
			}
			now = now.Add(time.Second)
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.PutOffTask(ctx, list[0], now, true) })
			if at := next(t, db); !at.Equal(now) {
				t.Errorf("try %d: due again %v", try, at)
			}
		}
		w := claim(t, db, "A/9", now, 1)[0]
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.PutOffTask(ctx, w, now, false) })
		if list := claim(t, db, "A/10", now, 1); len(list) != 1 || list[0].Attempts != 3 {
			t.Errorf("what nobody is to blame for was counted: %+v", list)
		}
	})
}

func TestWhatADeadProcessHeldIsFreedAtOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		owe(t, db, "a", noon)
		owe(t, db, "bb", noon.Add(time.Hour)) // held by nobody
		claim(t, db, "A/1", noon, 1)
		delivery(t, db)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.FreeLeases(ctx, noon) })
		if got := subjects(claim(t, db, "B/1", noon, 10)); got != "a " {
			t.Errorf("freed %s", got)
		}
		if got := take(t, db, "B/1", noon, 10); len(got) != 1 {
			t.Errorf("freed %d deliveries", len(got))
		}
	})
}

func TestASessionThatIsOverIsWorkOnceAndAClosedOneIsNone(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		for n := range 4 {
			s := session(n + 1)
			s.ExpiresAt = noon.Add(time.Duration(n) * time.Minute)
			if n == 1 {
				s.Status = flow.SessionCancelled
			}
			keep(t, db, s)
		}
		if at := next(t, db); !at.Equal(noon) {
			t.Errorf("the first is due at %s", at)
		}
		if got := claim(t, db, "early", noon.Add(-time.Millisecond), 9); len(got) != 0 {
			t.Errorf("before its time: %s", subjects(got))
		}
		now := noon.Add(2 * time.Minute)
		for i, want := range []string{"wsp_sess_001 ", "", "wsp_sess_003 ", ""} { // one at a time, the closed one between
			got := claim(t, db, fmt.Sprint("turn ", i), now, 1)
			if subjects(got) != want || len(got) == 1 && got[0].Kind != flow.TaskExpireSession {
				t.Errorf("turn %d took %q", i, subjects(got))
			}
		}
		if at := next(t, db); !at.Equal(now.Add(lease)) {
			t.Errorf("what was taken is due again at %s", at)
		}
		later := strings.Fields(subjects(claim(t, db, "later", now.Add(time.Hour), 9)))
		if slices.Sort(later); !slices.Equal(later, []string{"wsp_sess_001", "wsp_sess_003", "wsp_sess_004"}) {
			t.Errorf("later: %s", later)
		}
	})
}
