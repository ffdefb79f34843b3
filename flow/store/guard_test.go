package store_test

import (
	"context"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestASessionIsRefusedWhereItsReferenceCodeOrIDIsTaken(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		first := session(1)
		first.Reference, first.EntryCode = "order-1", "7K3M9QTX"
		keep(t, db, first)
		for _, c := range []struct {
			name  string
			clash func(*flow.Session)
			added bool
		}{
			{"same reference", func(s *flow.Session) { s.Reference = "order-1" }, false},
			{"same reference of another project", func(s *flow.Session) { s.Reference, s.Project = "order-1", "wsp_prj_2" }, true},
			{"same entry code", func(s *flow.Session) { s.EntryCode = "7K3M9QTX" }, false},
			{"same id", func(s *flow.Session) { s.ID = "wsp_sess_001" }, false},
			{"neither reference nor code", func(s *flow.Session) { s.ID = "wsp_sess_003" }, true},
			{"neither reference nor code, again", func(s *flow.Session) { s.ID = "wsp_sess_004" }, true},
		} {
			s := session(2)
			c.clash(&s)
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				added, err := tx.AddSession(ctx, s)
				if added != c.added {
					t.Errorf("%s: added %v", c.name, added)
				}
				return err
			})
		}
	})
}

func TestASessionThatSomebodyElseChangedIsNotSaved(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		mine, theirs := session(1), session(1)
		theirs.Status = flow.SessionCancelled
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveSession(ctx, &theirs) })
		mine.Status = flow.SessionExpired
		err := refused(t, db, "a session that was changed meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.SaveSession(ctx, &mine) })
		if flow.CodeOf(err) != flow.CodeStorage || mine.Version != 0 {
			t.Errorf("%v, version %d", err, mine.Version)
		}
		if read, err := db.Session(t.Context(), mine.ID); err != nil || read.Status != flow.SessionCancelled {
			t.Errorf("%s %v", read.Status, err)
		}
	})
}

// never are states of the data that no program may bring about.
var never = []struct {
	name string
	do   func(ctx context.Context, tx *store.Tx) error
}{
	{"a session that is settled twice", func(ctx context.Context, tx *store.Tx) error {
		return tx.AddPayment(ctx, payment(2, "wsp_sess_001", flow.Excess), settled())
	}},
	{"a movement of the rail that is booked twice", func(ctx context.Context, tx *store.Tx) error {
		p := payment(2, "wsp_sess_001", flow.Duplicate)
		p.RailTransactionID = "rail-001"
		return tx.AddPayment(ctx, p, aside())
	}},
	{"ledger lines that do not sum to zero", func(ctx context.Context, tx *store.Tx) error {
		return tx.AddPayment(ctx, payment(2, "wsp_sess_001", flow.Duplicate), []flow.Posting{{Account: flow.RailClearing, Amount: 500_000}, {Account: flow.Unapplied, Amount: -499_999}})
	}},
	{"money without ledger lines", func(ctx context.Context, tx *store.Tx) error {
		return tx.AddPayment(ctx, payment(2, "wsp_sess_001", flow.Duplicate), nil)
	}},
	{"a ledger line of nothing", func(ctx context.Context, tx *store.Tx) error {
		return tx.AddPayment(ctx, payment(2, "wsp_sess_001", flow.Duplicate), []flow.Posting{{Account: flow.RailClearing}, {Account: flow.Unapplied}})
	}},
	{"money of less than a kobo", func(ctx context.Context, tx *store.Tx) error {
		p := payment(2, "wsp_sess_001", flow.Duplicate)
		p.Amount = 0
		return tx.AddPayment(ctx, p, aside())
	}},
	{"a second charge.success of a session", func(ctx context.Context, tx *store.Tx) error {
		return tx.AddEvent(ctx, event(2, "wsp_sess_001", flow.ChargeSuccess))
	}},
	{"two events with one number", func(ctx context.Context, tx *store.Tx) error {
		e := event(2, "wsp_sess_001", flow.ChargeLate)
		e.Sequence = 1
		return tx.AddEvent(ctx, e)
	}},
	{"a second live attempt of a method", func(ctx context.Context, tx *store.Tx) error {
		return tx.SaveAttempt(ctx, attempt(2, "wsp_sess_001"))
	}},
	{"an attempt under a reference that is taken", func(ctx context.Context, tx *store.Tx) error {
		a := attempt(2, "wsp_sess_001")
		a.Method, a.Reference = flow.Card, "wsp_ref_001"
		return tx.SaveAttempt(ctx, a)
	}},
	{"one account for two live attempts", func(ctx context.Context, tx *store.Tx) error {
		a := attempt(2, "wsp_sess_002")
		a.Instructions = &flow.Instructions{AccountNumber: "0123456789"}
		return tx.SaveAttempt(ctx, a)
	}},
	{"an attempt of no session", func(ctx context.Context, tx *store.Tx) error {
		return tx.SaveAttempt(ctx, attempt(2, "wsp_sess_999"))
	}},
	{"a session that is paid without its money", func(ctx context.Context, tx *store.Tx) error {
		s := session(2)
		s.Status, s.AmountPaid, s.PaidAt = flow.SessionPaid, 0, noon
		return tx.SaveSession(ctx, &s)
	}},
	{"a session that got more than it asks for", func(ctx context.Context, tx *store.Tx) error {
		s := session(2)
		s.AmountPaid = s.Amount + 1
		return tx.SaveSession(ctx, &s)
	}},
	{"a session in a state that is none", func(ctx context.Context, tx *store.Tx) error {
		s := session(2)
		s.Status = "LOST"
		return tx.SaveSession(ctx, &s)
	}},
	{"a session of less than the minimum", func(ctx context.Context, tx *store.Tx) error {
		s := session(3)
		s.Amount = flow.MinAmount - 1
		_, err := tx.AddSession(ctx, s)
		return err
	}},
	{"a message that is heard twice", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon, Kind: "heard", Message: "M1"})
		return err
	}},
}

func TestTheSchemaRefusesWhatMustNeverBe(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1), session(2))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			a := attempt(1, "wsp_sess_001")
			a.Instructions = &flow.Instructions{AccountNumber: "0123456789"}
			if err := tx.SaveAttempt(ctx, a); err != nil {
				return err
			}
			if err := tx.AddPayment(ctx, payment(1, "wsp_sess_001", flow.Matched), settled()); err != nil {
				return err
			}
			if err := tx.AddEvent(ctx, event(1, "wsp_sess_001", flow.ChargeSuccess)); err != nil {
				return err
			}
			_, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon, Kind: "heard", Message: "M1"})
			return err
		})
		for _, c := range never {
			if err := refused(t, db, c.name, c.do); err != nil && strings.Contains(err.Error(), "panic") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
}

func TestAnAccountNumberMayBeUsedAgainOnceItsAttemptIsOver(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1), session(2))
		old, next := attempt(1, "wsp_sess_001"), attempt(2, "wsp_sess_002")
		old.Status = flow.AttemptExpired
		old.Instructions, next.Instructions = &flow.Instructions{AccountNumber: "0123456789"}, &flow.Instructions{AccountNumber: "0123456789"}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SaveAttempt(ctx, old); err != nil {
				return err
			}
			return tx.SaveAttempt(ctx, next)
		})
		if read, err := db.AttemptByAccount(t.Context(), "0123456789"); err != nil || read.ID != next.ID {
			t.Errorf("money for the account goes to %s (%v)", read.ID, err)
		}
	})
}
