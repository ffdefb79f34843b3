package checkout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
)

// What a merchant wrote that somebody consented to names them, and is kept for good: who
// is forgotten stands there no more, and what is not theirs stays.
func TestWhatALookUpWasForNamesNobodyWhoIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		s := w.adaSession()
		w.adaPays(s)
		purposes := map[flow.VerificationID]string{"wsp_ver_1": "An account for Adaeze Obi-Nwosu", "wsp_ver_2": "An account for Benedict", "wsp_ver_3": "Delivery to Adaeze"}
		w.must(w.db.Update(context.WithoutCancel(t.Context()), func(tx *store.Tx) error {
			for id, purpose := range purposes {
				v := flow.Verification{
					ID: id, Project: s.Project, Key: "wsp_key_1", Type: flow.BVN, Fingerprint: strings.Repeat("0", 64), Mask: "*********21", Purpose: purpose, Status: flow.VerificationPending,
					CreatedAt: w.clock(), DueAt: w.clock().Add(time.Minute),
				}
				if id == "wsp_ver_3" {
					v.Project = "wsp_prj_other" // whose customer she is not
				}
				if err := tx.AddVerification(t.Context(), v); err != nil {
					return err
				}
				if _, err := tx.EndVerification(t.Context(), v.Failed("no answer", w.clock())); err != nil {
					return err
				}
			}
			return nil
		}))
		as, _ := w.forgotten(w.find())
		purposes["wsp_ver_1"] = "An account for " + as
		for id, want := range purposes {
			v, err := w.db.Verification(t.Context(), id)
			w.must(err)
			list, err := w.db.LookUps(t.Context(), v.Project, time.Time{}, 10)
			w.must(err)
			for _, l := range list {
				if l.Verification == id && l.Purpose != want {
					t.Errorf("the audit says that %s was for %q", id, l.Purpose)
				}
			}
			if v.Purpose != want {
				t.Errorf("%s was for %q", id, v.Purpose)
			}
		}
	})
}
