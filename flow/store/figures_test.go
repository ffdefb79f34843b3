package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// However long its stretches are, a sweep of the ledger sees each transaction
// once: all of them are made to be off by one kobo more than the one before.
func TestASweepOfTheLedgerSeesAllOfIt(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const n = 7
		var want flow.Kobo
		for i := range n {
			keep(t, db, session(i+1))
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.AddPayment(ctx, payment(i+1, session(i+1).ID, flow.Matched), settled())
			})
			want += flow.Kobo(i + 1)
		}
		if off, next, err := db.LedgerOff(t.Context(), store.LedgerPlace{}, 100); off != 0 || next != (store.LedgerPlace{}) || err != nil {
			t.Fatalf("a sound ledger is off by %d, and goes on at %v (%v)", off, next, err)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { // what no statement of ours can do
			for _, query := range unguarded(db) {
				if err := tx.Exec(ctx, query); err != nil {
					return err
				}
			}
			return nil
		})
		for _, limit := range []int{1, 2, 3, n - 1, n, n + 1} {
			var place store.LedgerPlace
			var sum flow.Kobo
			for range n + 2 {
				off, next, err := db.LedgerOff(t.Context(), place, limit)
				must(t, err)
				sum, place = sum+off, next
				if place == (store.LedgerPlace{}) {
					break
				}
			}
			if sum != want {
				t.Errorf("in stretches of %d it is off by %d, want %d", limit, sum, want)
			}
		}
		if off, err := db.LedgerNewest(t.Context()); off != want || err != nil {
			t.Errorf("the newest are off by %d, want %d (%v)", off, want, err)
		}
	})
}

// unguarded are statements that put the ledger wrong by so many kobo as the
// number of each payment.
func unguarded(db *store.DB) []string {
	off := `UPDATE ledger SET fees = fees + CAST(SUBSTR(subject, -1) AS INTEGER) * CASE WHEN CAST(SUBSTR(subject, -1) AS INTEGER) % 2 = 0 THEN 1 ELSE -1 END`
	if db.Postgres() {
		return []string{
			"ALTER TABLE ledger DISABLE TRIGGER ledger_stays", "ALTER TABLE ledger DROP CONSTRAINT IF EXISTS ledger_check",
			`UPDATE ledger SET fees = fees + CAST(RIGHT(subject, 1) AS BIGINT) * CASE WHEN CAST(RIGHT(subject, 1) AS BIGINT) % 2 = 0 THEN 1 ELSE -1 END`,
		}
	}
	return []string{"PRAGMA ignore_check_constraints = ON", "DROP TRIGGER ledger_never_changes", off}
}

func TestABacklogIsCountedWithItsOldest(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		if owed, held, oldest, err := db.Backlog(t.Context()); owed+held != 0 || !oldest.IsZero() || err != nil {
			t.Fatalf("nothing is owed: %d %d %v %v", owed, held, oldest, err)
		}
		keep(t, db, session(1))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddEndpoint(ctx, endpoint(1)); err != nil {
				return err
			}
			for i, kind := range []flow.EventKind{flow.ChargeSuccess, flow.SessionCreated, flow.ChargeDuplicate} {
				e := event(i+1, session(1).ID, kind)
				d := flow.Delivery{ID: flow.PrefixDelivery + string(rune('a'+i)), Event: e.ID, Endpoint: endpoint(1).ID}
				if err := tx.AddEvent(ctx, e); err != nil {
					return err
				}
				add := tx.AddHeldDelivery
				if i < 2 {
					add = func(ctx context.Context, d flow.Delivery, now time.Time) error {
						return tx.AddDelivery(ctx, d, now, now)
					}
				}
				if err := add(ctx, d, noon.Add(time.Duration(i)*time.Minute)); err != nil {
					return err
				}
			}
			return nil
		})
		if owed, held, oldest, err := db.Backlog(t.Context()); owed != 2 || held != 1 || !oldest.Equal(noon) || err != nil {
			t.Errorf("%d are owed since %v and %d held (%v)", owed, oldest, held, err)
		}
	})
}

// What is held for an endpoint that its merchant disabled is late for nobody.
func TestTheOldestThatIsHeldIsOfAnEndpointThatDoesNotAnswer(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		e := event(1, session(1).ID, flow.ChargeSuccess)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.AddEvent(ctx, e) })
		oldest := func(want time.Time) {
			t.Helper()
			if at, err := db.HeldBack(t.Context()); !at.Equal(want) || err != nil {
				t.Errorf("the oldest is of %v, want %v (%v)", at, want, err)
			}
		}
		oldest(time.Time{})
		for i := range 3 { // the first two are held back, the others made later
			to, made := endpoint(i+1), noon.Add(time.Duration(i)*time.Minute)
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.AddEndpoint(ctx, to); err != nil {
					return err
				}
				if i < 2 {
					if err := tx.OpenEndpoint(ctx, to.ID, made, made.Add(time.Hour), false); err != nil {
						return err
					}
				}
				return tx.AddHeldDelivery(ctx, flow.Delivery{ID: flow.PrefixDelivery + string(rune('a'+i)), Event: e.ID, Endpoint: to.ID}, made)
			})
		}
		oldest(noon)
		for i, want := range []time.Time{noon.Add(time.Minute), {}} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.DisableEndpoint(ctx, endpoint(i+1).ID, flow.DisabledRequested, noon)
				return err
			})
			oldest(want)
		}
	})
}

// The oldest message that is to go out is that of a number that works, and who has
// waited longest for a person is who nobody has come to.
func TestWhatPayersWaitForIsFound(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		oldest := func() (outbox, called time.Time) {
			t.Helper()
			outbox, err := db.Outbox(t.Context(), 1)
			must(t, err)
			if called, err = db.Called(t.Context()); err != nil {
				t.Fatal(err)
			}
			return outbox, called
		}
		if outbox, called := oldest(); !outbox.IsZero() || !called.IsZero() {
			t.Fatalf("nobody waits: %v %v", outbox, called)
		}
		const killed = "2349010000002"
		for i, c := range []struct {
			number string
			state  flow.DeskState
			flag   string
			said   string
		}{
			{killed, flow.DeskClaimed, "", "pending"}, // the longest, switched off
			{"2349010000001", flow.DeskBot, "nobody has come", "sent"},
			{"2349010000001", flow.DeskDevice, "", "failed"},
			{"2349010000001", flow.DeskWaiting, "", "pending"},
			{"2349010000001", flow.DeskWaiting, "look", "pending"},
		} {
			kept := chat(t, db, store.ChatRow{ID: flow.ChatID("chat_" + string(rune('f'-i))), Number: c.number, Person: string(rune('a' + i))})
			at := noon.Add(time.Duration(i) * time.Minute)
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				desk := flow.Desk{State: c.state}
				if c.state != flow.DeskBot {
					desk.Since = at.UnixMilli()
				}
				if err := tx.SetDecided(ctx, kept.ID, 0, desk, c.flag); err != nil {
					return err
				}
				if err := tx.AddSaid(ctx, store.Said{ID: string(kept.ID), Chat: kept.ID, Seq: 1, Key: "summary", Text: "x"}, at); err != nil {
					return err
				}
				if c.said == "pending" {
					return nil
				}
				_, err := tx.MarkSaid(ctx, string(kept.ID), c.said)
				return err
			})
		}
		if outbox, called := oldest(); !outbox.Equal(noon) || !called.Equal(noon.Add(3*time.Minute)) {
			t.Errorf("the oldest message is of %v, and somebody is waited for since %v", outbox, called)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, "INSERT INTO switches (kind, name, state) VALUES ('number', '"+killed+"', '"+string(flow.NumberKill)+"')")
		})
		if outbox, _ := oldest(); !outbox.Equal(noon.Add(3 * time.Minute)) {
			t.Errorf("beside a number that is switched off the oldest message is of %v", outbox)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.RefuseSaid(ctx, "chat_c") }) // the older of the two that are left
		if outbox, _ := oldest(); !outbox.Equal(noon.Add(4 * time.Minute)) {
			t.Errorf("beside one that was refused too often the oldest message is of %v", outbox)
		}
	})
}

// Both are read every few seconds, and most chats and messages are over: no plan
// reads a whole table, nor sorts what it reads.
func TestWhatPayersWaitForIsReadByItsIndexes(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	outbox, called, err := db.ChatPlans(t.Context())
	must(t, err)
	for plan, index := range map[string]string{outbox: "say_pending", called: "chat_desk"} {
		t.Log(plan)
		for line := range strings.Lines(plan) {
			if strings.HasPrefix(line, "SCAN ") && !strings.Contains(line, "INDEX "+index) && !strings.HasPrefix(line, "SCAN y") || strings.Contains(line, "TEMP B-TREE") {
				t.Errorf("it reads too much: %s", line)
			}
		}
		if !strings.Contains(plan, "INDEX "+index) {
			t.Errorf("it is not read by %s:\n%s", index, plan)
		}
	}
}
