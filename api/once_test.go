package api

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// What was refused before anything began may be asked for again, mended, under
// the same key; what was refused by the session itself is an answer.
func TestAKeyOfARefusedRequestIsFree(t *testing.T) {
	s := open(t)
	session := s.session("")
	path, once := sessions+"/"+session+"/pay/bank-transfer", http.Header{"Idempotency-Key": {"k1"}}
	s.want(s.ask("POST", path, s.key, `{"expiresInMinutes":1}`, once), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	s.want(s.ask("POST", path, s.key, `{"expiresInMinutes":10}`, once), http.StatusOK, nil)
	s.want(s.ask("POST", sessions+"/"+session+"/cancel", s.key, ""), http.StatusOK, nil)
	over := http.Header{"Idempotency-Key": {"k2"}}
	first, again := s.ask("POST", path, s.key, ``, over), s.ask("POST", path, s.key, ``, over)
	if first.code() != "session_cancelled" || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s\n%v %s", first.body, again.header, again.body)
	}
}

// A refusal by what a request is about is given again byte for byte; one that a
// better request, another key or a wait mends is not kept.
func TestARefusalIsAnAnswerOrLeavesTheKeyFree(t *testing.T) {
	s := open(t)
	token, p := s.desk("Bola Stores")
	s.want(s.ask("POST", sessions, s.key, with(`"reference":"order.1"`)), http.StatusCreated, nil)
	s.want(s.ask("POST", projectsPath+"/"+string(p.ID)+"/kyc", token, ""), http.StatusOK, nil)
	over := s.session("")
	s.want(s.ask("POST", sessions+"/"+over+"/cancel", s.key, ""), http.StatusOK, nil)
	mine, _ := s.newAPIKey(token, string(p.ID), "secret")
	s.want(s.ask("DELETE", keysOf(string(p.ID))+"/"+mine, token, ""), http.StatusOK, nil)
	nobodys := "wsp_sess_01m7y6vm2af084rza2669023pf"
	for _, c := range []struct {
		path, key, body, code string
		kept                  bool
	}{
		{sessions, s.key, with(`"reference":"order.1"`), "duplicate_reference", true},
		{"/v1/charges", s.key, with(`"reference":"order.1"`), "duplicate_reference", true},
		{"/v1/charges", s.key, `{"sessionId":"` + over + `"}`, "session_cancelled", true},
		{"/v1/charges", s.key, `{"sessionId":"` + nobodys + `"}`, "resource_not_found", true},
		{sessions + "/" + over + "/cancel", s.key, "", "session_not_cancellable", true},
		{sessions + "/" + nobodys + "/cancel", s.key, "", "resource_not_found", true},
		{sessions + "/" + over + "/pay/card", s.key, "", "session_cancelled", true},
		{keysOf(string(p.ID)) + "/" + mine + "/rotate", token, "", "resource_not_found", true},
		{projectsPath + "/" + string(p.ID) + "/kyc", token, "", "kyc_not_submittable", true},
		{sessions, s.key, `{"amount":1,"customerEmail":"ada@example.com"}`, "amount_below_minimum", false},
		{sessions, s.key, `{"amount":`, "malformed_json", false},
		{sessions, s.public, good, "secret_key_required", false},
		{keysOf(string(p.ID)), token, `{"environment":"live","kind":"secret"}`, "kyc_required", false},
		{projectsPath, "dash_nobodys", `{"name":"a"}`, "invalid_api_key", false},
		{"/v1/auth/login", "", login("nobody@example.com", "not the password"), "invalid_credentials", false},
	} {
		once := http.Header{"Idempotency-Key": {"of " + c.path + c.body}}
		first, again := s.ask("POST", c.path, c.key, c.body, once), s.ask("POST", c.path, c.key, c.body, once)
		if first.code() != c.code || first.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, first.body, c.code)
		}
		if kept := again.status == first.status && again.body == first.body && again.header.Get("Idempotent-Replayed") == "true"; kept != c.kept {
			t.Errorf("%s %s: given again %v, want %v: %d %v\n%s\n%s", c.path, c.body, kept, c.kept, again.status, again.header, first.body, again.body)
		}
	}
	requery := "/v1/charges/" + s.ask("POST", "/v1/charges", s.key, good).text("data.id") + "/requery"
	s.want(s.ask("POST", requery, s.key, ""), http.StatusOK, nil)
	once := http.Header{"Idempotency-Key": {"soon"}}
	s.want(s.ask("POST", requery, s.key, "", once), http.StatusTooManyRequests, nil)
	s.pass(11 * time.Second)
	s.want(s.ask("POST", requery, s.key, "", once), http.StatusOK, nil)
}

// A key is its project's: another one's, or a payer's in a browser, is another
// key. One that shows a key is its login's.
func TestAnIdempotencyKeyIsItsOwners(t *testing.T) {
	s := open(t)
	once := http.Header{"Idempotency-Key": {"order-77"}}
	_, _, stranger := s.merchant("Bola Stores")
	first, theirs := s.ask("POST", sessions, s.key, good, once), s.ask("POST", sessions, stranger, good, once)
	if theirs.status != http.StatusCreated || theirs.text("data.id") == first.text("data.id") || theirs.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another project was answered %d %s", theirs.status, theirs.body)
	}
	// A payer may not use up what the merchant is about to send.
	session := s.session("")
	payer := http.Header{"Idempotency-Key": {"order-78"}, "X-Client-Secret": {"cs_" + session}}
	s.want(s.ask("POST", sessions+"/"+session+"/pay/card", s.public, "", payer), http.StatusOK, nil)
	s.want(s.ask("POST", sessions, s.key, good, http.Header{"Idempotency-Key": {"order-78"}}), http.StatusCreated, nil)

	token, p := s.desk("Chi Stores")
	made := s.ask("POST", keysOf(string(p.ID)), token, `{"environment":"test","kind":"secret"}`, once)
	if at := made.header.Get("Location"); s.ask("GET", at, token, "").text("data.id") != made.text("data.id") {
		t.Errorf("the key is not at %q", at)
	}
	second := s.tokenFor(p)
	s.want(s.ask("POST", keysOf(string(p.ID)), second, `{"environment":"test","kind":"secret"}`, once), http.StatusUnprocessableEntity,
		map[string]string{"error.code": "idempotency_key_reused"})
	if list := s.ask("GET", keysOf(string(p.ID)), token, ""); strings.Count(list.body, `"id":"`) != 1 {
		t.Errorf("the keys are %s", list.body)
	}
	shop := s.ask("POST", projectsPath, token, `{"name":"Shoes"}`, once)
	s.want(shop, http.StatusUnprocessableEntity, nil) // the account's, whatever the path
	named := http.Header{"Idempotency-Key": {"order-79"}}
	shop = s.ask("POST", projectsPath, token, `{"name":"Shoes"}`, named)
	if again := s.ask("POST", projectsPath, token, `{"name":"Shoes"}`, named); again.body != shop.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same login was answered %s", again.body)
	}
	s.want(s.ask("POST", projectsPath, second, `{"name":"Shoes"}`, named), http.StatusUnprocessableEntity, map[string]string{"error.code": "idempotency_key_reused"})
}

// Whoever asks for a sign-up's answer with another password is guessing, and is
// counted.
func TestASignUpsAnswerIsNoWayToGuessAPassword(t *testing.T) {
	s := open(t)
	once := http.Header{"Idempotency-Key": {"1"}}
	body := func(password string) string {
		return `{"email":"` + ownerEmail + `","password":"` + password + `","businessName":"Ada Stores"}`
	}
	first := s.ask("POST", "/v1/auth/signup", "", body(ownerPass), once)
	s.want(first, http.StatusCreated, nil)
	for range 10 {
		s.want(s.ask("POST", "/v1/auth/signup", "", body("another password"), once), http.StatusUnprocessableEntity, map[string]string{"error.code": "idempotency_key_reused"})
	}
	s.want(s.ask("POST", "/v1/auth/signup", "", body(ownerPass), once), http.StatusTooManyRequests, nil)
	s.want(s.ask("POST", "/v1/auth/login", "", login(ownerEmail, ownerPass)), http.StatusTooManyRequests, nil)
	s.pass(16 * time.Minute)
	if again := s.ask("POST", "/v1/auth/signup", "", body(ownerPass), once); again.body != first.body {
		t.Errorf("%d %s", again.status, again.body)
	}
	s.want(s.ask("POST", "/v1/auth/signup", "", body(ownerPass)), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
}

// While WhatsApp is away, what was answered before is answered still.
func TestAnAnswerIsGivenAgainWhileWhatsAppIsAway(t *testing.T) {
	s := open(t)
	once := http.Header{"Idempotency-Key": {"a key"}}
	for path, body := range map[string]string{sessions: with(`"mode":"chat"`), "/v1/charges": good} {
		once := http.Header{"Idempotency-Key": {"of " + path}}
		s.number = "2348000000001"
		first := s.ask("POST", path, s.key, body, once)
		s.number = ""
		if again := s.ask("POST", path, s.key, body, once); again.body != first.body || again.status != http.StatusCreated {
			t.Errorf("%s: %d %s", path, again.status, again.body)
		}
	}
	s.want(s.ask("POST", sessions, s.key, with(`"mode":"chat"`), once), http.StatusServiceUnavailable, nil)
	s.number = "2348000000001"
	s.want(s.ask("POST", sessions, s.key, with(`"mode":"chat"`), once), http.StatusCreated, nil)
}

// After a day a key is forgotten.
func TestAKeyIsForgottenAfterADay(t *testing.T) {
	s := open(t)
	once := http.Header{"Idempotency-Key": {"a key"}}
	first := s.ask("POST", sessions, s.key, good, once)
	s.pass(25 * time.Hour)
	if again := s.ask("POST", sessions, s.key, good, once); again.status != http.StatusCreated || again.text("data.id") == first.text("data.id") {
		t.Errorf("%d %s", again.status, again.body)
	}
}

func TestChargesAreListedFoundAndAskedAbout(t *testing.T) {
	s := open(t)
	s.session("") // no charge: not in the list
	mine := s.ask("POST", "/v1/charges", s.key, with(`"reference":"order.77"`))
	other := s.ask("POST", "/v1/charges", s.key, good)
	list := s.ask("GET", "/v1/charges?limit=1", s.key, "")
	s.want(list, http.StatusOK, map[string]string{"data.items.0.id": other.text("data.id"), "data.hasMore": "true"})
	next := s.ask("GET", "/v1/charges?limit=1&cursor="+list.text("data.nextCursor"), s.key, "")
	s.want(next, http.StatusOK, map[string]string{"data.items.0.id": mine.text("data.id"), "data.hasMore": "false"})
	for _, reference := range []string{"order.77", mine.text("data.reference")} {
		s.want(s.ask("GET", "/v1/charges/by-reference/"+reference, s.key, ""), http.StatusOK, map[string]string{"data.id": mine.text("data.id")})
	}
	_, _, stranger := s.merchant("Bola Stores")
	// Our reference is the charge's also where the merchant made it a new order's, which has no charge.
	s.want(s.ask("POST", sessions, s.key, `{"amount":500000,"customerEmail":"ada@example.com","reference":"`+mine.text("data.reference")+`"}`), http.StatusCreated, nil)
	s.want(s.ask("GET", "/v1/charges/by-reference/"+mine.text("data.reference"), s.key, ""), http.StatusOK, map[string]string{"data.id": mine.text("data.id")})
	for _, path := range []string{"/by-reference/order.77", "/by-reference/" + mine.text("data.reference"), "/" + mine.text("data.id") + "/timeline"} {
		s.want(s.ask("GET", "/v1/charges"+path, stranger, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	}
	nobodys := "wsp_ref_00000000000000000000000000"
	for _, reference := range []string{mine.text("data.reference"), nobodys, "order.77", "order.78"} {
		s.want(s.ask("GET", "/v1/charges/by-reference/"+reference, stranger, ""), http.StatusNotFound, map[string]string{
			"error.message": `There is no charge with the reference "` + reference + `".`, // whoever's it is
		})
	}
	s.want(s.ask("POST", "/v1/charges/"+mine.text("data.id")+"/requery", stranger, ""), http.StatusNotFound, nil)
	s.want(s.ask("GET", "/v1/charges?status=SUCCEEDED", s.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	s.want(s.ask("GET", "/v1/charges?status=PAID", s.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})

	// The bank's notice was lost: asking finds the money, once in ten seconds.
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+mine.text("data.virtualAccount.accountNumber")+`","drop":true}`), http.StatusOK, nil)
	requery := "/v1/charges/" + mine.text("data.id") + "/requery"
	began := time.Now()
	s.want(s.ask("POST", requery, s.key, ""), http.StatusOK, map[string]string{"data.status": "SUCCEEDED"})
	limited := s.ask("POST", requery, s.key, "")
	s.want(limited, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited"})
	wait, err := strconv.Atoi(limited.header.Get("Retry-After"))
	if passed := int(time.Since(began).Seconds()); err != nil || wait > 10 || wait < 10-passed {
		t.Errorf("Retry-After is %q %d s after", limited.header.Get("Retry-After"), passed)
	}
	s.pass(11 * time.Second)
	s.want(s.ask("POST", requery, s.key, ""), http.StatusOK, nil)
	story := s.ask("GET", "/v1/charges/"+mine.text("data.id")+"/timeline?limit=100", s.key, "")
	for _, want := range []string{"opened", "rail.call", "credit", "matched ₦5,000: MATCHED", "merchant_pending", "charge.success"} {
		if !strings.Contains(story.body, want) {
			t.Errorf("the timeline does not tell of %s: %s", want, story.body)
		}
	}
}

// Whoever comes back as soon as a bank that was away is worth asking again is not
// refused for coming too soon.
func TestABankThatIsAwayIsAskedAgainWhenRetryAfterSays(t *testing.T) {
	s := open(t)
	requery := "/v1/charges/" + s.ask("POST", "/v1/charges", s.key, good).text("data.id") + "/requery"
	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{"up":false}`), http.StatusOK, nil)
	away := s.ask("POST", requery, s.key, "")
	s.want(away, http.StatusServiceUnavailable, map[string]string{"error.code": "rail_unavailable"})
	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{}`), http.StatusOK, nil)
	wait, err := strconv.Atoi(away.header.Get("Retry-After"))
	if err != nil {
		t.Fatal(err)
	}
	s.pass(time.Duration(wait) * time.Second)
	s.want(s.ask("POST", requery, s.key, ""), http.StatusOK, nil)
}

// pass lets time pass for the shop.
func (s *shop) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance += d
}

// tomorrow lets time pass until noon of the next day in Lagos, and is that day: none ends
// in the middle of a test.
func (s *shop) tomorrow() flow.Date {
	day := flow.DateOf(s.now()).Plus(1)
	s.pass(day.Start().Add(12 * time.Hour).Sub(s.now()))
	return day
}
