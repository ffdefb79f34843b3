package checkout_test

import (
	"net/http"
	"strings"
	"testing"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// What is kept of a password costs whoever guesses what RFC 9106 asks for, unless less
// was set, and so does an account that has none: tests set less, and the program does not.
func TestAKeptPasswordCostsWhatTheStandardAsks(t *testing.T) {
	t.Parallel()
	const dear, cheap = "$argon2id$v=19$m=65536,t=3,p=4$", "$argon2id$v=19$m=8,t=1,p=1$"
	db := storetest.Open(t, storetest.SQLite(t, store.Accounts))
	a, _ := desk(t, db)
	kept := func(email string) string {
		account, err := a.AccountOf(t.Context(), email)
		must(t, err)
		return account.PasswordHash
	}
	signUp := func(email string) {
		_, err := a.SignUp(t.Context(), email, "correct horse battery", "Ada Stores", "127.0.0.1", whole("", ""))
		must(t, err)
	}
	signUp("ada@example.com")
	_, err := a.Demo(t.Context(), "demo@example.com", "Demo", func(checkout.SignedUp) error { return nil })
	must(t, err)
	_, err = a.AddPerson(t.Context(), "", "operator@example.com", "correct horse battery", flow.RoleOperator, "")
	must(t, err)
	person, _, err := db.PersonByEmail(t.Context(), "operator@example.com")
	must(t, err)
	a.PasswordsCost(8, 1)
	signUp("bola@example.com")
	for of, c := range map[string]struct{ hash, want string }{
		"ada": {kept("ada@example.com"), dear}, "the demo account": {kept("demo@example.com"), dear}, "an operator": {person.PasswordHash, dear}, "bola": {kept("bola@example.com"), cheap},
	} {
		if !strings.HasPrefix(c.hash, c.want) {
			t.Errorf("%s: %s, not %s", of, c.hash, c.want)
		}
	}
	for _, email := range []string{"ada@example.com", "bola@example.com"} { // one is known by what it took when it was kept
		answer, err := a.LogIn(t.Context(), email, "correct horse battery", "127.0.0.1", whole("", ""))
		if err != nil || answer.Status != http.StatusCreated {
			t.Errorf("%s: %d %v", email, answer.Status, err)
		}
	}
}
