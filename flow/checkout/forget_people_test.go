package checkout_test

import (
	"context"
	"slices"
	"testing"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A search for a payer's name is forgotten with them, of their merchant's people and of
// operators; whoever only has a customer of the same name keeps theirs.
func TestASearchForAPayersNameIsForgottenWithThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		a, _ := desk(t, db)
		own := flow.Account{ID: "wsp_acc_1", Email: "a@shop.test", PasswordHash: "x", Business: "Ada Stores"}
		must(t, db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddAccount(context.WithoutCancel(t.Context()), own, flow.Project{ID: "wsp_prj_1", Account: own.ID, Name: "Ada Stores", KYC: flow.KYCNone}, nil)
			return err
		}))
		searches := map[string]struct {
			words string
			stays bool
		}{
			"one": {"adaeze", false}, "both": {"Obinwanne ADAÉZE yesterday", false}, "begun": {"adaez", false}, "Adaeze's order": {"order-1182", false},
			"another": {"Adamu", true}, "amount": {"4500 yesterday", true}, "short": {"ad", true}, "beside": {"adaez garba", true},
		}
		owner, stranger, operator := flow.Visit{Account: own.ID, Email: own.Email}, flow.Visit{Account: "wsp_acc_2", Email: "b@shop.test"}, flow.Visit{Email: "o@till.test"}
		for name, s := range searches {
			for _, who := range []flow.Visit{owner, stranger, operator} {
				must(t, a.KeepFilter(t.Context(), who, flow.Filter{Name: name, Words: s.words}))
			}
		}
		_, err := a.Forget(t.Context(), checkout.Traces{Names: []string{"", "Adaeze Obinwanne"}, Projects: []flow.ProjectID{"wsp_prj_1", "wsp_prj_gone"}}, "payer_1")
		must(t, err)
		for _, who := range []flow.Visit{owner, stranger, operator} {
			list, err := a.Filters(t.Context(), who)
			must(t, err)
			for name, s := range searches {
				kept := slices.ContainsFunc(list, func(f flow.Filter) bool { return f.Name == name })
				if want := s.stays || who == stranger; kept != want {
					t.Errorf("%q, kept as %q by %s, stays: %v", s.words, name, who.Email, kept)
				}
			}
		}
	})
}
