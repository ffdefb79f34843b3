package store_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestWhatManyReadAndWriteAtOnceAllCounts(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		const callers, each = 16, 10
		together(callers, func(int) {
			for range each {
				counts(t, db)
			}
		})
		s, err := db.Session(t.Context(), "wsp_sess_001")
		if err != nil || s.Sequence != callers*each || s.Version != callers*each {
			t.Errorf("counted %d of %d (version %d, %v)", s.Sequence, callers*each, s.Version, err)
		}
	})
}

func TestTwoProgramsMayWriteTheSameDatabase(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		programs := []*store.DB{storetest.Open(t, c), storetest.Open(t, c)}
		keep(t, programs[0], session(1))
		const callers, each = 8, 10
		together(callers, func(i int) {
			for range each {
				counts(t, programs[i%2])
			}
		})
		if s, err := programs[1].Session(t.Context(), "wsp_sess_001"); err != nil || s.Sequence != callers*each {
			t.Errorf("counted %d of %d (%v)", s.Sequence, callers*each, err)
		}
	})
}

// counts reads the first session and writes it one higher.
func counts(t *testing.T, db *store.DB) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(t.Context(), "wsp_sess_001")
		if err != nil {
			return err
		}
		s.Sequence++
		return tx.SaveSession(t.Context(), &s)
	})
	if err != nil {
		t.Error(err)
	}
}

// together runs n callers at once and waits for them.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// turn is a turn of a chat as the shell writes it.
func turn(ctx context.Context, tx *store.Tx, person string, message string) error {
	row, err := tx.AddChat(ctx, store.ChatRow{ID: flow.ChatID("chat_" + person), Number: "1", Person: person}, noon)
	if err != nil {
		return err
	}
	if heard, err := tx.Heard(ctx, row.ID, message); err != nil || heard {
		return err
	}
	seq, err := tx.Append(ctx, store.Line{Stream: string(row.ID), At: noon, Kind: "heard", Message: message})
	if err != nil {
		return err
	}
	decided, err := tx.Append(ctx, store.Line{Stream: string(row.ID), At: noon, Kind: "decided", Cause: seq})
	if err != nil {
		return err
	}
	if err := tx.SetDecided(ctx, row.ID, decided, flow.Desk{}, ""); err != nil {
		return err
	}
	if err := tx.AddSaid(ctx, store.Said{ID: fmt.Sprint(row.ID, "/", decided), Chat: row.ID, Seq: decided}, noon); err != nil {
		return err
	}
	_, err = tx.AddTask(ctx, flow.Task{Kind: flow.TaskSay, Subject: string(row.ID), Due: noon}, "A", noon.Add(time.Minute))
	return err
}

func TestSixteenChatsTalkAtOnceAndNoTurnIsLost(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const chats, turns = 16, 12
		var tries atomic.Int64
		together(chats, func(i int) {
			for n := range turns {
				err := db.Update(t.Context(), func(tx *store.Tx) error {
					tries.Add(1)
					return turn(t.Context(), tx, fmt.Sprint(i), fmt.Sprint("M", n))
				})
				if err != nil {
					t.Errorf("chat %d, turn %d: %v", i, n, err)
				}
			}
		})
		for i := range chats {
			lines, err := db.Lines(t.Context(), fmt.Sprint("chat_", i))
			if err != nil || len(lines) != 2*turns || lines[len(lines)-1].Seq != 2*turns {
				t.Errorf("chat %d has %d lines (%v)", i, len(lines), err)
			}
		}
		t.Logf("%d turns took %d tries", chats*turns, tries.Load())
	})
}

func TestTheSameMessageFromManyLinesIsHeardOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		together(8, func(int) {
			err := db.Update(t.Context(), func(tx *store.Tx) error { return turn(t.Context(), tx, "one", "M1") })
			if err != nil {
				t.Error(err)
			}
		})
		lines, err := db.Lines(t.Context(), "chat_one")
		if err != nil || len(lines) != 2 {
			t.Errorf("heard %d times (%v)", len(lines)/2, err)
		}
	})
}

func TestTheSameMoneyToldByManyIsBookedOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		var booked atomic.Int64
		together(8, func(i int) {
			var fresh bool
			err := db.Update(t.Context(), func(tx *store.Tx) error {
				fresh = false
				_, known, err := tx.PaymentByTransaction(t.Context(), "rail-007")
				if known || err != nil {
					return err
				}
				fresh = true
				p := payment(i, "wsp_sess_001", flow.Duplicate)
				p.RailTransactionID = "rail-007"
				return tx.AddPayment(t.Context(), p, aside())
			})
			if err != nil {
				t.Error(err)
			} else if fresh {
				booked.Add(1)
			}
		})
		list, err := db.Payments(t.Context(), "wsp_sess_001")
		if err != nil || len(list) != 1 || booked.Load() != 1 {
			t.Errorf("booked %d, kept %d (%v)", booked.Load(), len(list), err)
		}
	})
}

func TestWorkIsClaimedByOneOnly(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const all = 40
		for i := range all {
			owe(t, db, fmt.Sprint("subject-", i), noon)
		}
		var mu sync.Mutex
		taken := map[string]int{}
		together(6, func(i int) {
			for n := range 20 {
				var list []store.Work
				err := db.Update(t.Context(), func(tx *store.Tx) error {
					var err error
					list, err = tx.ClaimTasks(t.Context(), fmt.Sprintf("%d/%d", i, n), noon, noon.Add(lease), 5)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, w := range list {
					taken[w.Subject]++
				}
				mu.Unlock()
			}
		})
		if len(taken) != all {
			t.Errorf("%d of %d were taken", len(taken), all)
		}
		for subject, n := range taken {
			if n != 1 {
				t.Errorf("%s was taken %d times", subject, n)
			}
		}
	})
}

// A claim does not wait for what another process is about to change: that one may be about to
// change what is claimed, and PostgreSQL takes a second to see that the two wait for each other.
func TestAClaimWaitsForNoOtherProcess(t *testing.T) {
	c := storetest.Postgres(t, store.Checkout)
	one, other, eye := storetest.Open(t, c), storetest.Open(t, c), storetest.Open(t, c)
	owe(t, one, "first", noon)
	owe(t, one, "second", noon.Add(time.Second))
	begun, end, kept := make(chan bool, 1), make(chan bool), make(chan error, 1)
	go func() {
		asks := func(tx *store.Tx, subject string) error {
			_, err := tx.AddTask(t.Context(), flow.Task{Kind: flow.TaskCheck, Subject: subject, Due: noon.Add(2 * time.Second)}, "", time.Time{})
			return err
		}
		kept <- one.Update(t.Context(), func(tx *store.Tx) error {
			if err := asks(tx, "second"); err != nil {
				return err
			}
			select {
			case begun <- true:
			default: // it was refused, and is done again
			}
			<-end
			return asks(tx, "first")
		})
	}()
	<-begun
	claimed := make(chan string, 1)
	go func() { claimed <- subjects(claim(t, other, "B/1", noon.Add(time.Minute), 10)) }()
	await.Until(t, "the claim to end", func() bool {
		if len(claimed) > 0 {
			return true
		}
		waits := doing(t, eye, func(ctx context.Context, tx *store.Tx) (int, error) {
			return tx.Count(ctx, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE tasks%'")
		})
		if waits > 0 {
			t.Error("it waits for the other process")
		}
		return waits > 0
	})
	close(end)
	if err := <-kept; err != nil {
		t.Error(err)
	}
	if list := <-claimed; list != "first " {
		t.Errorf("claimed %q", list)
	}
}

// Who is in a hurry is turned away by a store that is busy, and who is not gets
// their turn.
func TestABusyStoreTurnsAwayOnlyWhoIsInAHurry(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const holders = 1                   // what writes is one
		const unhurried, hurried = 1024, 60 // SQLite's queue, and more
		release := make(chan struct{})
		held := make(chan bool, holders)
		var all sync.WaitGroup
		for range holders {
			all.Go(func() {
				err := db.Update(t.Context(), func(*store.Tx) error {
					held <- true
					<-release
					return nil
				})
				if err != nil {
					t.Errorf("who held it up: %v", err)
				}
			})
		}
		for range holders {
			<-held
		}
		for range unhurried {
			all.Go(func() {
				if err := db.Update(store.Unhurried(t.Context()), func(*store.Tx) error { return nil }); err != nil {
					t.Errorf("who is in no hurry: %v", err)
				}
			})
		}
		await.Until(t, "all wait", func() bool { return db.UnderWay() == holders+unhurried })
		refused := make(chan error, hurried)
		for range hurried {
			all.Go(func() {
				if err := db.Update(t.Context(), func(*store.Tx) error { return nil }); err != nil {
					refused <- err
				}
			})
		}
		if err := <-refused; flow.CodeOf(err) != flow.CodeStorage {
			t.Errorf("who is in a hurry: %v", err)
		}
		close(release)
		all.Wait()
		if n := db.UnderWay(); n != 0 {
			t.Errorf("%d are still under way", n)
		}
	})
}
