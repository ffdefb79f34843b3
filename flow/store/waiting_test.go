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

// waits fills a database with one thing of each kind that waits, and with things
// that look like it and do not.
func waits(tb testing.TB, db *store.DB) {
	tb.Helper()
	part := session(1)
	part.AmountPaid = 200_000
	coming := session(2)
	coming.Status = flow.SessionProcessing
	other := session(3)
	other.Project, other.AmountPaid = "wsp_prj_2", 100_000
	paid := session(4)
	paid.Status, paid.AmountPaid, paid.PaidAt = flow.SessionPaid, 500_000, noon
	over := session(5)
	over.Status = flow.SessionExpired
	keep(tb, db, part, coming, other, paid, over)
	update(tb, db, func(ctx context.Context, tx *store.Tx) error {
		for i, match := range []flow.MatchStatus{flow.Excess, flow.Late, flow.Duplicate, flow.Unmatched, flow.Partial, flow.Late} {
			p := payment(i, "wsp_sess_004", match)
			switch {
			case match == flow.Unmatched:
				p.Session, p.Attempt = "", ""
			case match == flow.Partial:
				p.Session, p.ReturnsAt = "wsp_sess_005", noon.Add(time.Hour)
			case i == 5: // decided
				p.Resolution, p.ResolvedAt, p.ResolvedBy = flow.ResolvedAccepted, noon, "policy"
			}
			if err := tx.AddPayment(ctx, p, aside()); err != nil {
				return err
			}
		}
		beyond := payment(6, "wsp_sess_004", flow.Partial) // of a part that is not all needed
		beyond.ReturnsAt = noon.Add(time.Hour)
		if err := tx.AddPayment(ctx, beyond, aside()); err != nil {
			return err
		}
		nothing := payment(9, "wsp_sess_004", flow.Late) // nothing of it is set aside any more
		if err := tx.AddPayment(ctx, nothing, settled()); err != nil {
			return err
		}
		if err := tx.SaveRefund(ctx, flow.Refund{
			ID: "wsp_rfd_1", Project: "wsp_prj_1", Payment: "wsp_pay_002", Session: "wsp_sess_004", Amount: 1000, Status: flow.RefundAttention, Origin: flow.OriginMerchant,
			Reference: "wsp_rfd_1", CreatedAt: noon, SentAt: noon, Tries: 1, Failure: "nobody knows",
		}); err != nil {
			return err
		}
		if err := tx.AddEndpoint(ctx, endpoint(1)); err != nil {
			return err
		}
		if err := tx.AddEvent(ctx, event(1, "wsp_sess_004", flow.ChargeSuccess)); err != nil {
			return err
		}
		d := flow.Delivery{ID: flow.FirstID(flow.PrefixDelivery, noon), Event: "evt_001", Endpoint: "wsp_we_001"}
		if err := tx.AddDelivery(ctx, d, noon, noon); err != nil {
			return err
		}
		if err := tx.Exec(ctx, `UPDATE deliveries SET state = 'dead', done_at = created_at`); err != nil {
			return err
		}
		if _, err := tx.AddChat(ctx, store.ChatRow{ID: "chat_1", Number: "234800", Person: "1@lid", Phone: "2348031234567"}, noon); err != nil {
			return err
		}
		seq, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon, Kind: "decided", Session: "wsp_sess_001"})
		if err != nil {
			return err
		}
		if err := tx.AddSaid(ctx, store.Said{ID: "3EB01", Chat: "chat_1", Seq: seq, Key: "summary", Text: "x"}, noon); err != nil {
			return err
		}
		for i, kind := range []string{"bank.notice", "bank.answer", "created"} { // of money that came days before, of what is on its way, of nothing
			at := noon.Add(time.Duration(i-1) * 48 * time.Hour)
			if _, err := tx.Append(ctx, store.Line{Stream: "wsp_sess_002", At: at, Kind: kind, Session: "wsp_sess_002"}); err != nil {
				return err
			}
		}
		_, err = tx.AddTask(ctx, flow.Task{Kind: flow.TaskCheck, Subject: "wsp_sess_002", Due: noon}, "", time.Time{})
		return err
	})
}

func TestEachQueueHoldsWhatWaits(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		waits(t, db)
		for _, c := range []struct {
			queue     store.Queue
			mine, all string // the subjects
		}{
			{store.QueueUnderpaid, "wsp_sess_001 wsp_pay_004", "wsp_sess_001 wsp_sess_003 wsp_pay_004"},
			{store.QueueOverpaid, "wsp_pay_000 wsp_pay_006", "wsp_pay_000 wsp_pay_006"},
			{store.QueueLate, "wsp_pay_001", "wsp_pay_001"},
			{store.QueueTwice, "wsp_pay_002", "wsp_pay_002"},
			{store.QueueUnmatched, "wsp_pay_003", "wsp_pay_003"},
			{store.QueueRefunds, "wsp_rfd_1", "wsp_rfd_1"},
			{store.QueueWebhooks, "evt_001", "evt_001"},
			{store.QueueStuck, "3EB01 wsp_sess_002", "3EB01 rail.check wsp_sess_002 wsp_sess_002"},
			{"nonsense", "", ""},
		} {
			for project, want := range map[flow.ProjectID]string{"wsp_prj_1": c.mine, "": c.all, "wsp_prj_9": ""} {
				f := store.QueueFilter{Queue: c.queue, Project: project, Now: noon.Add(11 * time.Minute), Limit: 1}
				var got []string
				for {
					list, err := db.Waits(t.Context(), f)
					must(t, err)
					if len(list) == 0 {
						break
					}
					got, f.After = append(got, list[0].Subject), list[0].Place
					if since := list[0].Since; since.IsZero() || c.queue == store.QueueStuck && !since.Equal(noon) {
						t.Errorf("%s has waited since %v", list[0].Subject, since)
					}
				}
				if joined := strings.Join(got, " "); joined != want {
					t.Errorf("%s of %q holds %q, not %q", c.queue, project, joined, want)
				}
				count, since, err := db.QueueSize(t.Context(), f)
				if err != nil || count != len(got) || since.IsZero() != (count == 0) {
					t.Errorf("%s of %q: %d since %v, %v", c.queue, project, count, since, err)
				}
			}
		}
		if list, err := db.Waits(t.Context(), store.QueueFilter{Queue: store.QueueStuck, Now: noon.Add(9 * time.Minute), Limit: 9}); err != nil || len(list) != 0 {
			t.Errorf("stuck after nine minutes: %v %v", list, err)
		}
	})
}

// What waits is little, whatever is kept: no queue reads a whole table.
func TestNoQueueReadsAWholeTable(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	waits(t, db)
	for _, queue := range store.Queues() {
		for _, project := range []flow.ProjectID{"", "wsp_prj_1"} {
			plan, err := db.QueuePlan(t.Context(), store.QueueFilter{Queue: queue, Project: project, Now: noon, Limit: 10})
			must(t, err)
			for line := range strings.SplitSeq(plan, "\n") {
				small := strings.HasPrefix(line, "SCAN e") || strings.HasPrefix(line, "SCAN w") || strings.HasPrefix(line, "SCAN q") || strings.HasPrefix(line, "SCAN (")
				if strings.HasPrefix(line, "SCAN ") && !strings.Contains(line, "USING") && !small {
					t.Errorf("%s of %q: %s\n%s", queue, project, line, plan)
				}
			}
		}
	}
}

func TestNotesAndWorkAreReadBack(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		note := store.Note{ID: "note_1", Session: "wsp_sess_001", Author: "ada@example.com", Text: "Called: pays tomorrow", At: noon}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.AddTask(ctx, flow.Task{Kind: flow.TaskCheck, Subject: "wsp_sess_001", Due: noon}, "", time.Time{}); err != nil {
				return err
			}
			if _, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon, Kind: "news", Session: "wsp_sess_001", Data: []byte(`{"news":{"Kind":"again"}}`)}); err != nil {
				return err
			}
			return tx.AddNote(ctx, note)
		})
		notes, err := db.Notes(t.Context(), "wsp_sess_001", 9)
		if err != nil || len(notes) != 1 || notes[0].Text != note.Text || !notes[0].At.Equal(noon) || notes[0].Author != note.Author {
			t.Errorf("notes %+v, %v", notes, err)
		}
		work, err := db.TasksOf(t.Context(), []string{"wsp_sess_001", "wsp_sess_002"})
		if err != nil || len(work) != 1 || work[0].Kind != flow.TaskCheck || !work[0].Due.Equal(noon) {
			t.Errorf("work %+v, %v", work, err)
		}
		if at, err := db.LastAgain(t.Context(), "wsp_sess_001"); err != nil || !at.Equal(noon) {
			t.Errorf("said again at %v, %v", at, err)
		}
		if at, err := db.LastAgain(t.Context(), "wsp_sess_002"); err != nil || !at.IsZero() {
			t.Errorf("said again at %v, %v", at, err)
		}
	})
}
