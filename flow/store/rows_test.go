package store_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// same compares what was kept with what is read.
func same(t *testing.T, what string, kept, read any) {
	t.Helper()
	if !reflect.DeepEqual(kept, read) {
		t.Errorf("%s came back changed:\nkept %+v\nread %+v", what, kept, read)
	}
}

func TestASessionComesBackAsItWasKept(t *testing.T) {
	plain := session(1)
	full := flow.Session{
		ID: "wsp_sess_002", Project: "wsp_prj_1", Merchant: "Ọja \"Àda\" 🛒", Mode: flow.InChat, Amount: flow.MaxAmount, AmountPaid: 100, Status: flow.SessionPending,
		Exceptions: []flow.Exception{flow.PartiallyPaid}, AllowedMethods: []flow.Method{flow.USSD}, CustomerEmail: "a@b.ng", CustomerPhone: "2348012345678",
		CustomerName: "O'Neil; DROP TABLE sessions", Reference: "order-1", Description: "two\nlines", Metadata: map[string]string{"k?": "$1 ?"},
		CallbackURL: "https://shop.example/?a=b", Policy: flow.DefaultPolicy(), EntryCode: "7K3M9QTX", Number: "2348000000001", Charge: "wsp_chg_1",
		ChargeAsked: true, Sequence: 3, Version: 0, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, plain, full)
		for _, s := range []flow.Session{plain, full} {
			read, err := db.Session(t.Context(), s.ID)
			must(t, err)
			same(t, "the session", s, read)
		}
		ctx := t.Context()
		for name, find := range map[string]func() (flow.Session, error){
			"entry code": func() (flow.Session, error) { return db.SessionByCode(ctx, "7K3M9QTX") },
			"charge":     func() (flow.Session, error) { return db.SessionByCharge(ctx, "wsp_chg_1") },
			"reference":  func() (flow.Session, error) { return db.SessionByReference(ctx, "wsp_prj_1", "order-1") },
		} {
			if read, err := find(); err != nil || read.ID != full.ID {
				t.Errorf("by %s: %s %v", name, read.ID, err)
			}
		}
		for name, find := range map[string]func() (flow.Session, error){
			"an empty code":        func() (flow.Session, error) { return db.SessionByCode(ctx, "") },
			"an empty charge":      func() (flow.Session, error) { return db.SessionByCharge(ctx, "") },
			"an empty reference":   func() (flow.Session, error) { return db.SessionByReference(ctx, "wsp_prj_1", "") },
			"another's reference":  func() (flow.Session, error) { return db.SessionByReference(ctx, "wsp_prj_2", "order-1") },
			"an id that is not":    func() (flow.Session, error) { return db.Session(ctx, "wsp_sess_9") },
			"an injected id":       func() (flow.Session, error) { return db.Session(ctx, "' OR 1=1 --") },
			"a code in wrong case": func() (flow.Session, error) { return db.SessionByCode(ctx, "7k3m9qtx") },
		} {
			if read, err := find(); flow.CodeOf(err) != flow.CodeNotFound {
				t.Errorf("%s found %q (%v)", name, read.ID, err)
			}
		}
	})
}

func TestASavedSessionKeepsWhatChanged(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		s := session(1)
		keep(t, db, s)
		s.Status, s.AmountPaid, s.PaidAt = flow.SessionPaid, s.Amount, noon
		s.Exceptions, s.Charge, s.ChargeAsked, s.Sequence, s.Number = []flow.Exception{flow.Overpaid}, "wsp_chg_1", true, 4, "2348000000001"
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveSession(ctx, &s) })
		if s.Version != 1 {
			t.Errorf("version %d", s.Version)
		}
		read, err := db.Session(t.Context(), s.ID)
		must(t, err)
		same(t, "the session", s, read)
	})
}

func TestAnAttemptComesBackAsItWasKept(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		bare := attempt(1, "wsp_sess_001")
		bare.Status, bare.Chat = flow.AttemptExpired, "chat_1"
		full := attempt(2, "wsp_sess_001")
		full.Amount, full.Tries, full.Reason = 40_000, 2, "slow"
		full.Instructions = &flow.Instructions{
			RailReference: "r", BankName: "Wema", BankCode: "035", AccountNumber: "0123456789", AccountName: "ADA", PaymentCode: "991",
			Banks: []flow.DialCode{{BankCode: "058", BankName: "GTBank", USSDCode: "*737#"}}, CheckoutURL: "https://rail.example/x", ExpiresAt: noon.Add(time.Minute),
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SaveAttempt(ctx, full); err != nil {
				return err
			}
			return tx.SaveAttempt(ctx, bare)
		})
		list, err := db.Attempts(t.Context(), "wsp_sess_001")
		must(t, err)
		same(t, "the attempts, oldest first,", []flow.Attempt{bare, full}, list)
		full.Amount, full.Status, full.Tries, full.Reason, full.ExpiresAt = 30_000, flow.AttemptSuperseded, 3, "", noon.Add(time.Hour)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveAttempt(ctx, full) })
		for name, find := range map[string]func() (flow.Attempt, error){
			"id":           func() (flow.Attempt, error) { return db.Attempt(t.Context(), full.ID) },
			"reference":    func() (flow.Attempt, error) { return db.AttemptByReference(t.Context(), full.Reference) },
			"account":      func() (flow.Attempt, error) { return db.AttemptByAccount(t.Context(), "0123456789") },
			"payment code": func() (flow.Attempt, error) { return db.AttemptByPaymentCode(t.Context(), "991") },
		} {
			read, err := find()
			if err != nil {
				t.Errorf("by %s: %v", name, err)
			}
			same(t, "the saved attempt by "+name, full, read)
		}
		if _, err := db.AttemptByAccount(t.Context(), ""); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("no account found an attempt: %v", err)
		}
	})
}

func TestAPaymentComesBackWithItsLedgerLines(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		mine, nobodys := payment(1, "wsp_sess_001", flow.Matched), payment(2, "", flow.Unmatched)
		nobodys.Project, nobodys.Attempt, nobodys.Fee, nobodys.Applied, nobodys.Unapplied = "", "", 0, 0, 500_000
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddPayment(ctx, mine, settled()); err != nil {
				return err
			}
			return tx.AddPayment(ctx, nobodys, aside())
		})
		list, err := db.Payments(t.Context(), "wsp_sess_001")
		must(t, err)
		same(t, "the payments", []flow.Payment{mine}, list)
		if none, err := db.Payments(t.Context(), ""); err != nil || len(none) != 0 {
			t.Errorf("nobody's session has payments: %v %v", none, err)
		}
		read, found, err := db.PaymentByTransaction(t.Context(), "rail-002")
		if err != nil || !found {
			t.Fatal(found, err)
		}
		same(t, "nobody's payment", nobodys, read)
		if _, found, err := db.PaymentByTransaction(t.Context(), "rail-999"); found || err != nil {
			t.Errorf("found a movement that never was: %v", err)
		}
		lines, err := db.Ledger(t.Context(), "wsp_sess_001")
		must(t, err)
		same(t, "the ledger", []flow.Entry{{
			Kind: flow.EntryPayment, Subject: string(mine.ID), Payment: mine.ID, Project: mine.Project, At: mine.ReceivedAt, Postings: settled(),
			RailID: mine.RailTransactionID, ValueAt: mine.PaidAt,
		}}, lines)
	})
}

func TestEventsAndEndpointsComeBackInTheirOrder(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		first, second := event(1, "wsp_sess_001", flow.SessionCreated), event(2, "wsp_sess_001", flow.ChargeSuccess)
		a, b := endpoint(1), endpoint(2)
		b.Events, b.Status = nil, flow.EndpointDisabled
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, e := range []flow.Event{second, first} {
				if err := tx.AddEvent(ctx, e); err != nil {
					return err
				}
			}
			for _, e := range []flow.Endpoint{b, a} {
				if err := tx.AddEndpoint(ctx, e); err != nil {
					return err
				}
			}
			return nil
		})
		events, err := db.Events(t.Context(), "wsp_sess_001")
		must(t, err)
		same(t, "the events", []flow.Event{first, second}, events)
		endpoints, err := db.Endpoints(t.Context(), "wsp_prj_1")
		must(t, err)
		same(t, "the endpoints", []flow.Endpoint{a, b}, endpoints)
	})
}

func TestAnAccountIsKeptWithItsKeysOrNotAtAll(t *testing.T) {
	account := flow.Account{ID: "wsp_acc_1", Email: "ada@example.com", PasswordHash: "$argon2id$", Business: "Ada", CreatedAt: noon}
	project := flow.Project{ID: "wsp_prj_1", Account: "wsp_acc_1", Name: "Ada", KYC: flow.KYCNone, CreatedAt: noon}
	key := flow.Key{ID: "wsp_key_1", Project: "wsp_prj_1", Environment: flow.Test, Kind: flow.SecretKey, Hash: "h1", Hint: "sk_test_…abcd", CreatedAt: noon, RevokedAt: noon.Add(time.Hour)}
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		add := func(ctx context.Context, tx *store.Tx) (bool, error) {
			return tx.AddAccount(ctx, account, project, []flow.Key{key})
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if added, err := add(ctx, tx); err != nil || !added {
				t.Error(added, err)
			}
			return nil
		})
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if added, err := add(ctx, tx); err != nil || added {
				t.Error("an address was taken twice", added, err)
			}
			return nil
		})
		k, p, found, err := db.KeyByHash(t.Context(), "h1")
		if err != nil || !found {
			t.Fatal(found, err)
		}
		same(t, "the key", key, k)
		same(t, "its project", project, p)
		if _, _, found, err := db.KeyByHash(t.Context(), "h2"); found || err != nil {
			t.Error("found a key that is not", err)
		}
		for email, want := range map[string]bool{"ada@example.com": true, "obi@example.com": false} {
			if taken, err := db.EmailTaken(t.Context(), email); err != nil || taken != want {
				t.Errorf("%s taken: %v %v", email, taken, err)
			}
		}
		other := account
		other.ID, other.Email = "wsp_acc_2", "obi@example.com"
		_ = refused(t, db, "a project under an id that is taken", func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddAccount(ctx, other, project, nil)
			return err
		})
		if taken, err := db.EmailTaken(t.Context(), other.Email); err != nil || taken {
			t.Errorf("half an account was kept: %v %v", taken, err)
		}
	})
}

func TestASettingIsKeptOnce(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		for _, value := range []string{"first", "second"} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SetSetting(ctx, "salt", value) })
		}
		if got, err := db.Setting(t.Context(), "salt"); err != nil || got != "first" {
			t.Error(got, err)
		}
		if got, err := db.Setting(t.Context(), "none"); err != nil || got != "" {
			t.Error(got, err)
		}
	})
}

func TestAnIdempotentCallIsKeptWithItsAnswer(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		running := store.KeptCall{Hash: "h", At: noon}
		done := store.KeptCall{Hash: "h", Made: "wsp_sess_001", Status: 201, Body: []byte("{\"a\":\x00\xff}"), At: noon.Add(time.Second)}
		for _, c := range []store.KeptCall{running, done} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveCall(ctx, "wsp_prj_1", "key-1", c) })
			read, found, err := db.Call(t.Context(), "wsp_prj_1", "key-1")
			if err != nil || !found {
				t.Fatal(found, err)
			}
			if len(read.Body) == 0 {
				read.Body = nil
			}
			same(t, "the call", c, read)
		}
		if _, found, err := db.Call(t.Context(), "wsp_prj_2", "key-1"); found || err != nil {
			t.Errorf("another project's key was found: %v", err)
		}
	})
}

func TestOldCallsAreForgottenTheOldestFirstAndSoManyAtATime(t *testing.T) {
	for _, schema := range []store.Schema{store.Checkout, store.Accounts} {
		storetest.Each(t, schema, func(t *testing.T, db *store.DB) {
			if _, there, err := db.OldestCall(t.Context()); there || err != nil {
				t.Fatal(there, err)
			}
			for i, key := range []string{"c", "a", "d", "b", "e"} {
				kept := store.KeptCall{Hash: "h", Status: 201 * (i % 2), At: noon.Add(time.Duration(key[0]) * time.Millisecond)}
				update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveCall(ctx, "scope", key, kept) })
			}
			left := func() (keys string) {
				for _, key := range []string{"a", "b", "c", "d", "e"} {
					if _, found, err := db.Call(t.Context(), "scope", key); err != nil {
						t.Fatal(err)
					} else if found {
						keys += key
					}
				}
				return keys
			}
			for _, want := range []struct {
				n    int64
				left string
			}{{2, "cde"}, {1, "de"}, {0, "de"}} {
				var n int64
				update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
					n, err = tx.ForgetCalls(ctx, noon.Add('d'*time.Millisecond), 2)
					return err
				})
				if n != want.n || left() != want.left {
					t.Errorf("%s: %d were forgotten and %s are left, want %+v", schema, n, left(), want)
				}
			}
			if at, there, err := db.OldestCall(t.Context()); err != nil || !there || !at.Equal(noon.Add('d'*time.Millisecond)) {
				t.Errorf("the oldest is of %v, %v, %v", at, there, err)
			}
		})
	}
}

func TestSessionsAreListedByEveryFilter(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		var all []flow.Session
		for i := range 6 {
			s := session(i)
			s.CreatedAt = noon.Add(time.Duration(i) * time.Minute)
			if i%2 == 1 {
				s.CustomerEmail, s.Charge = "other@example.com", flow.ChargeID(s.ID)
			}
			all = append(all, s)
		}
		all[4].Status, all[5].Project, all[3].Reference = flow.SessionExpired, "wsp_prj_2", "order-3"
		keep(t, db, all...)
		mine := store.SessionFilter{Project: "wsp_prj_1", Limit: 10}
		for _, c := range []struct {
			name   string
			narrow func(*store.SessionFilter)
			want   string
		}{
			{"of a project, newest first", func(*store.SessionFilter) {}, "43210"},
			{"of another project", func(f *store.SessionFilter) { f.Project = "wsp_prj_2" }, "5"},
			{"by status", func(f *store.SessionFilter) { f.Status = flow.SessionExpired }, "4"},
			{"by reference", func(f *store.SessionFilter) { f.Reference = "order-3" }, "3"},
			{"by e-mail", func(f *store.SessionFilter) { f.Email = "other@example.com" }, "31"},
			{"from a time, inclusive", func(f *store.SessionFilter) { f.CreatedFrom = noon.Add(3 * time.Minute) }, "43"},
			{"to a time, exclusive", func(f *store.SessionFilter) { f.CreatedBefore = noon.Add(3 * time.Minute) }, "210"},
			{"before an id", func(f *store.SessionFilter) { f.Before = "wsp_sess_002" }, "10"},
			{"with a charge", func(f *store.SessionFilter) { f.ChargesOnly = true }, "31"},
			{"so many", func(f *store.SessionFilter) { f.Limit = 2 }, "43"},
		} {
			f := mine
			c.narrow(&f)
			list, err := db.Sessions(t.Context(), f)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			got := ""
			for _, s := range list {
				got += string(s.ID[len(s.ID)-1])
			}
			if got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
	})
}

func TestALogLineComesBackAsItWasWritten(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		line := store.Line{
			Stream: "chat_1", At: noon, Kind: "heard", Cause: 7, Session: "wsp_sess_001", Message: "3EB0", Data: json.RawMessage(`{"text":"a\u0000b"}`),
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			seq, err := tx.Append(ctx, line)
			line.Seq = seq
			return err
		})
		read, err := db.Line(t.Context(), "chat_1", line.Seq)
		must(t, err)
		same(t, "the line", line, read)
		if _, err := db.Line(t.Context(), "chat_1", 99); flow.CodeOf(err) != flow.CodeNotFound {
			t.Error(err)
		}
	})
}
