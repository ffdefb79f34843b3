package store_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func proposal(id, subject string) flow.Proposal {
	return flow.Proposal{
		ID: flow.ProposalID(id), Project: "wsp_prj_1", Session: "wsp_sess_001", Act: flow.ActByHand, Subject: subject, Amount: 20_000_000, Reason: "O'Neil; DROP TABLE proposals",
		Transfer: "FT/77-a", SentAt: noon.Add(-time.Hour), Key: "wsp_usr_1", By: "ada@shop.test", At: noon, Status: flow.ProposalOpen,
	}
}

func TestAProposalComesBackAsItWasKeptAndEndsOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		first := proposal("wsp_prp_1", "wsp_rfd_1")
		add := func(p flow.Proposal) (added bool) {
			update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				added, err = tx.AddProposal(ctx, p)
				return err
			})
			return added
		}
		if !add(first) {
			t.Fatal("it is not kept")
		}
		read, err := db.Proposal(t.Context(), first.ID)
		must(t, err)
		same(t, "the proposal", first, read)
		if again := proposal("wsp_prp_2", "wsp_rfd_1"); add(again) {
			t.Error("two wait about the same refund")
		}
		if other := proposal("wsp_prp_3", "wsp_rfd_2"); !add(other) {
			t.Error("another refund's is not kept")
		}
		agreed, err := first.Agree("obi@shop.test", "looked at it", first.Amount, noon.Add(time.Minute))
		must(t, err)
		for i, want := range []bool{true, false} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				ended, err := tx.EndProposal(ctx, agreed)
				if ended != want {
					t.Errorf("time %d: ended %v", i, ended)
				}
				return err
			})
		}
		if read, err = db.Proposal(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		same(t, "the proposal that was agreed to", agreed, read)
		late := proposal("wsp_prp_4", "wsp_rfd_2") // the one before it has waited too long
		late.At = noon.Add(flow.ProposalLife)
		if !add(late) {
			t.Error("one that waited too long is in the way")
		}
		list, err := db.Proposals(t.Context(), "wsp_sess_001", 10)
		if err != nil || len(list) != 3 || list[0].ID != "wsp_prp_4" || list[1].Status != flow.ProposalExpired || !list[1].EndedAt.Equal(late.At) {
			t.Errorf("%+v, %v", list, err)
		}
		if none, err := db.Proposals(t.Context(), "", 10); err != nil || len(none) != 0 {
			t.Errorf("money without a session has %+v, %v", none, err)
		}
		if _, err := db.Proposal(t.Context(), "wsp_prp_9"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("an unknown one: %v", err)
		}
	})
}

func TestTheDatabaseItselfRefusesWhoAgreesWithThemselves(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddProposal(ctx, proposal("wsp_prp_1", "wsp_rfd_1"))
			return err
		})
		for _, by := range []string{"ada@shop.test", ""} {
			p := proposal("wsp_prp_1", "wsp_rfd_1")
			p.Status, p.EndedBy, p.EndedAt = flow.ProposalAgreed, by, noon
			_ = refused(t, db, "who agrees with themselves", func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.EndProposal(ctx, p)
				return err
			})
		}
	})
}

func TestWhatWaitsForASecondPersonStandsInItsQueueForADay(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for id, project := range map[string]flow.ProjectID{"1": "wsp_prj_1", "2": "wsp_prj_2"} {
				p := proposal("wsp_prp_"+id, "wsp_rfd_"+id)
				p.Project = project
				if _, err := tx.AddProposal(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
		for _, c := range []struct {
			project flow.ProjectID
			after   time.Duration
			want    int
		}{
			{"", time.Hour, 2}, {"wsp_prj_1", time.Hour, 1}, {"wsp_prj_2", flow.ProposalLife - time.Millisecond, 1}, {"wsp_prj_1", flow.ProposalLife, 0}, {"wsp_prj_3", time.Hour, 0},
		} {
			f := store.QueueFilter{Queue: store.QueueSecond, Project: c.project, Now: noon.Add(c.after), Limit: 9}
			list, err := db.Waits(t.Context(), f)
			count, since, err2 := db.QueueSize(t.Context(), f)
			if err != nil || err2 != nil || len(list) != c.want || count != c.want || c.want > 0 && !since.Equal(noon) {
				t.Errorf("%+v: %+v, %d since %s, %v %v", c, list, count, since, err, err2)
			}
			for _, w := range list {
				if w.Subject == "" || w.Waits != 20_000_000 || w.Detail != string(flow.ActByHand) || !w.Since.Equal(noon) {
					t.Errorf("%+v", w)
				}
			}
		}
	})
}

func TestTheBooksKnowAMovementByItsName(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.AddPayment(ctx, payment(1, "wsp_sess_001", flow.Matched), settled())
		})
		p, err := db.Payments(t.Context(), "wsp_sess_001")
		if err != nil || len(p) != 1 {
			t.Fatal(p, err)
		}
		for name, want := range map[string]bool{p[0].RailTransactionID: true, "HAND-7": false, "": false} {
			if known, err := db.Moved(t.Context(), name); err != nil || known != want {
				t.Errorf("%q: %v, %v", name, known, err)
			}
		}
	})
}
