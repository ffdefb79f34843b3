package api

import (
	"net/http"
	"testing"
	"time"

	"till/flow"
)

// A password that is changed ends what was logged in with the old one, and with it
// what was just being logged in: whoever stole it and tries without a pause always has
// one try that waits for its turn to be checked.
func TestALoginThatIsUnderWayEndsWithItsPassword(t *testing.T) {
	s := open(t)
	up := s.signedUp()
	const colleague = "colleague@example.com"
	accounts := s.server.cfg.Accounts
	if _, err := accounts.AddPerson(t.Context(), up.text("data.account.id"), colleague, ownerPass, flow.RoleSupport, ""); err != nil {
		t.Fatal(err)
	}
	// Logging in asks for the time before a password is checked, to count the try, and
	// after it, to say how long the login lasts: then it is another one.
	password := map[string]string{ownerEmail: ownerPass, colleague: ownerPass}
	during := func(email string, enters func(password string)) {
		t.Helper()
		asked, old := 0, password[email]
		password[email] = "not " + old
		accounts.Clocks(time.Now, func() time.Time {
			if asked++; asked == 2 {
				if err := accounts.ResetPassword(t.Context(), email, password[email]); err != nil {
					t.Error(err)
				}
			}
			return s.now()
		})
		enters(old)
		if accounts.Clocks(time.Now, s.now); asked < 2 {
			t.Fatal("the password was not changed while somebody logged in with it")
		}
	}
	for _, email := range []string{ownerEmail, colleague} {
		during(email, func(old string) {
			if _, err := accounts.Enter(t.Context(), email, old, "192.0.2.1"); flow.CodeOf(err) != flow.CodeCredentials {
				t.Errorf("%s is in the console with a password that was changed meanwhile: %v", email, err)
			}
		})
	}
	during(ownerEmail, func(old string) {
		r := s.ask("POST", "/v1/auth/login", "", login(ownerEmail, old))
		s.want(r, http.StatusUnauthorized, map[string]string{"error.code": "invalid_credentials"})
	})
	s.want(s.ask("POST", "/v1/auth/login", "", login(ownerEmail, password[ownerEmail])), http.StatusOK, nil)
}
