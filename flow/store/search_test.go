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

// sought are sessions of two projects that differ in all that can be searched
// for. Each is opened a minute after the one before.
func sought(tb testing.TB, db *store.DB) []flow.Session {
	tb.Helper()
	var list []flow.Session
	for i, s := range []flow.Session{
		{Project: "wsp_prj_1", CustomerName: "Adé Obi", CustomerPhone: "2348031234567", Reference: "order-1182", Amount: 450_000},
		{Project: "wsp_prj_1", CustomerName: "Bola Ade-Oke", CustomerEmail: "bola@example.com", Amount: 450_000, EntryCode: "7K3M9QTX"},
		{Project: "wsp_prj_2", CustomerName: "Ada Obi", CustomerPhone: "2348031234567", Reference: "order-1182", Amount: 450_000},
		{Project: "wsp_prj_1", Amount: 500_000, Status: flow.SessionPaid, AmountPaid: 500_000, PaidAt: noon},
		{Project: "wsp_prj_1", Amount: 450_000, Status: flow.SessionCancelled},
	} {
		base := session(i)
		at := noon.Add(time.Duration(i) * time.Minute)
		base.ID = flow.SessionID(flow.FirstID(flow.PrefixSession, at))
		base.Project, base.CustomerName, base.CustomerPhone, base.Reference, base.Amount = s.Project, s.CustomerName, s.CustomerPhone, s.Reference, s.Amount
		base.EntryCode, base.AmountPaid, base.PaidAt = s.EntryCode, s.AmountPaid, s.PaidAt
		base.CreatedAt = at
		if s.Status != "" {
			base.Status = s.Status
		}
		if s.CustomerEmail != "" {
			base.CustomerEmail = s.CustomerEmail
		}
		list = append(list, base)
	}
	keep(tb, db, list...)
	update(tb, db, func(ctx context.Context, tx *store.Tx) error {
		a := attempt(1, list[0].ID)
		a.Instructions = &flow.Instructions{AccountNumber: "0123456789"}
		if err := tx.SaveAttempt(ctx, a); err != nil {
			return err
		}
		p := payment(1, list[0].ID, flow.Partial)
		p.Amount, p.Applied, p.Payer.Name, p.NIPSessionID = 300_000, 300_000, "MUSA GARBA", "000013261121160500123456789012"
		if err := tx.AddPayment(ctx, p, []flow.Posting{{Account: flow.RailClearing, Amount: 300_000}, {Account: flow.Unapplied, Amount: -300_000}}); err != nil {
			return err
		}
		r := refund("wsp_rfd_001", 100_000, flow.RefundProcessed)
		r.Payment, r.Session, r.RailTransactionID, r.DoneAt = p.ID, list[0].ID, "FT-77", noon
		if err := tx.SaveRefund(ctx, r); err != nil {
			return err
		}
		if _, err := tx.AddChat(ctx, store.ChatRow{ID: "chat_1", Number: "234800", Person: "1@lid", Phone: "2348099999999", Name: "Bola"}, noon); err != nil {
			return err
		}
		for _, name := range []string{"Zainab Bello 24", "ZAINAB SANI", "Sani Zainab", "ZAINAB SANI"} {
			if err := tx.AddNames(ctx, list[1].ID, name); err != nil {
				return err
			}
		}
		return tx.Watch(ctx, list[1].ID, "chat_1")
	})
	return list
}

func TestSessionsAreFoundByWhatAPayerSays(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		all := sought(t, db)
		now := noon.Add(time.Hour)
		for _, c := range []struct {
			typed   string
			project flow.ProjectID
			status  flow.SessionStatus
			want    string // numbers of sessions, newest first
		}{
			{typed: "", want: "43210"},
			{typed: "", project: "wsp_prj_1", want: "4310"},
			{typed: "today", project: "wsp_prj_2", want: "2"},
			{typed: "yesterday", want: ""},
			{typed: string(all[1].ID), want: "1"},
			{typed: string(all[2].ID), project: "wsp_prj_1", want: ""},
			{typed: "wsp_att_001", want: "0"},
			{typed: "wsp_ref_001", want: "0"},
			{typed: "wsp_pay_001", want: "0"},
			{typed: "wsp_pay_001", project: "wsp_prj_2", want: ""},
			{typed: "wsp_rfd_001", want: "0"},
			{typed: "wsp_rfd_001-2", want: "0"}, // as the bank knows it that was told once more
			{typed: "FT-77", want: "0"},         // as the bank calls its transfer
			{typed: "FT-77", project: "wsp_prj_2", want: ""},
			{typed: "chat_1", want: "1"},
			{typed: "7k3m-9qtx", want: "1"},
			{typed: "0803 123 4567", want: "20"},
			{typed: "08031234567", project: "wsp_prj_1", want: "0"},
			{typed: "08099999999", want: "1"}, // the chat's
			{typed: "08099999999", project: "wsp_prj_2", want: ""},
			{typed: "0123456789", want: "0"},
			{typed: "4500", want: "4210"},
			{typed: "4500", project: "wsp_prj_1", want: "410"},
			{typed: "4500", project: "wsp_prj_1", status: flow.SessionPending, want: "10"},
			{typed: "₦3,000.00", want: "0"}, // what came
			{typed: "4500 today", project: "wsp_prj_2", want: "2"},
			{typed: "4500 yesterday", want: ""},
			{typed: "bola@example.com", want: "1"},
			{typed: "ad", want: "210"},
			{typed: "ade", want: "10"},
			{typed: "ADÉ", project: "wsp_prj_1", want: "10"},
			{typed: "obi ad", want: "20"},
			{typed: "obi bola", want: ""},
			{typed: "garba", want: "0"}, // who paid too little
			{typed: "musa garba 4500", want: "0"},
			{typed: "zainab be", want: "1"}, // who opened it in a chat
			{typed: "zainab", project: "wsp_prj_2", want: ""},
			{typed: "zainab sani", want: "1"}, // who paid, and shares a name with who opened it
			{typed: "sani zainab", project: "wsp_prj_1", want: "1"},
			{typed: "zainab 24", want: "1"}, // no amount
			{typed: "zainab 24", project: "wsp_prj_1", want: "1"},
			{typed: "ada 4500", want: "2"},
			{typed: "ada 500", want: ""},
			{typed: "ade obi 3000", want: "0"}, // what came
			{typed: "ada 3000", want: ""},
			{typed: "ade", status: flow.SessionPaid, want: ""},
			{typed: "order-1182", want: "20"},
			{typed: "order-1182", project: "wsp_prj_1", want: "0"},
			{typed: "order 1182", want: "20"}, // as it was heard on the phone
			{typed: "Order-1182.", project: "wsp_prj_1", want: "0"},
			{typed: "Reference: order-1182", project: "wsp_prj_2", want: "2"},
			{typed: "#ORDER-1182", want: "20"},
			{typed: "order #1182", want: "20"},
			{typed: "#", want: ""},
			{typed: "order 118", want: ""},
			{typed: "rail-001", want: "0"},
			{typed: "000013261121160500123456789012", want: "0"}, // as the payer's bank prints it
			{typed: "000013 261121160500 123456789012", project: "wsp_prj_1", want: "0"},
			{typed: "000013261121160500123456789012", project: "wsp_prj_2", want: ""},
			{typed: "nobody", want: ""},
			{typed: "", status: flow.SessionPaid, want: "3"},
			{typed: "", project: "wsp_prj_1", status: flow.SessionCancelled, want: "4"},
		} {
			list, more, err := db.Search(t.Context(), store.SearchFilter{Search: flow.ReadSearch(c.typed, now), Project: c.project, Status: c.status, Limit: 10})
			if err != nil || more {
				t.Fatalf("%q: %v, more %v", c.typed, err, more)
			}
			got := ""
			for _, f := range list {
				for i, s := range all {
					if s.ID == f.Session.ID {
						got += fmt.Sprint(i)
					}
				}
				if len(f.By) == 0 {
					t.Errorf("%q: nothing says why %s is found", c.typed, f.Session.ID)
				}
			}
			if got != c.want {
				t.Errorf("%q in %q: found %q, want %q", c.typed, c.project, got, c.want)
			}
		}
	})
}

func TestASearchGoesOnWhereItsPageEnded(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		all := sought(t, db)
		for typed, want := range map[string]string{"": "43210", "4500": "4210", "ad": "210"} {
			for _, project := range []flow.ProjectID{"", "wsp_prj_1"} {
				f := store.SearchFilter{Search: flow.ReadSearch(typed, noon), Project: project, Limit: 1}
				got := ""
				for more := true; more; {
					var list []store.Found
					var err error
					if list, more, err = db.Search(t.Context(), f); err != nil || len(list) != 1 {
						t.Fatalf("%q: %d of one, %v", typed, len(list), err)
					}
					f.Before = list[0].Session.ID
					for i, s := range all {
						if s.ID == f.Before {
							got += fmt.Sprint(i)
						}
					}
				}
				if project != "" {
					want = strings.ReplaceAll(want, "2", "")
				}
				if got != want {
					t.Errorf("%q in %q: %q, want %q", typed, project, got, want)
				}
				want = map[string]string{"": "43210", "4500": "4210", "ad": "210"}[typed]
			}
		}
	})
}

// Every query of a search must go by an index: at a million sessions nothing
// else is fast.
func TestNoSearchReadsAWholeTable(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	sought(t, db)
	for _, typed := range []string{
		"", "today", "wsp_sess_1", "wsp_att_1", "wsp_ref_1", "wsp_pay_1", "wsp_chg_1", "wsp_rfd_1", "evt_1", "chat_1", "7k3m-9qtx", "08031234567",
		"0123456789", "4500", "4500 yesterday", "bola@example.com", "ada", "ada obi 4500", "order-1182",
	} {
		for _, project := range []flow.ProjectID{"", "wsp_prj_1"} {
			for _, status := range []flow.SessionStatus{"", flow.SessionPending, flow.SessionProcessing} {
				f := store.SearchFilter{Search: flow.ReadSearch(typed, noon), Project: project, Status: status, Before: "wsp_sess_z", Limit: 10}
				plans, err := db.Plans(t.Context(), f)
				must(t, err)
				for _, plan := range plans {
					// p, c, w and the constant row are made by the query; the newest sessions are
					// walked from their end.
					for line := range strings.SplitSeq(plan, "\n") {
						whole := strings.HasPrefix(line, "SCAN ") && !strings.Contains(line, "USING") && !strings.Contains(line, "CONSTANT ROW")
						name := strings.Fields(line + " - -")[1]
						if whole && name != "p" && name != "c" && name != "w" {
							t.Errorf("%q in %q, %s: %s\n%s", typed, project, status, line, plan)
						}
					}
				}
			}
		}
	}
}

// A name that is forgotten leads to no session any more, and others that share a word with
// it still do.
func TestAForgottenNameLeavesTheOthers(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		all := sought(t, db)
		finds := func(typed string, want bool) {
			t.Helper()
			list, _, err := db.Search(t.Context(), store.SearchFilter{Search: flow.ReadSearch(typed, noon.Add(time.Hour)), Limit: 10})
			if err != nil || (len(list) > 0) != want {
				t.Errorf("%q finds %d sessions, %v", typed, len(list), err)
			}
		}
		for _, gone := range []string{"ZAINAB SANI", "Sani Zainab", "Zainab Bello 24"} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetNames(ctx, all[1], []string{gone, ""}) })
			finds("sani", gone == "ZAINAB SANI")
			finds("zainab bello", gone != "Zainab Bello 24")
			finds("ade obi", true)
		}
		finds("zainab", false)
	})
}
