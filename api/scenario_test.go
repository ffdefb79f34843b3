package api

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"till/flow"
	"till/flow/await"
)

// Scenario is one request and what must come of it. SESSION in a URL or a body
// stands for a session that was just opened; KEY, PUBLIC and "" for the key.
type Scenario struct {
	Name    string
	Before  func(s *shop) // what has happened before
	Method  string
	URL     string
	Key     string
	Header  http.Header
	Body    string
	Status  int
	Want    []string
	NotWant []string
}

func (sc Scenario) run(t *testing.T) {
	t.Helper()
	s := open(t)
	id := ""
	if strings.Contains(sc.URL+sc.Body, "SESSION") {
		id = s.session("")
	}
	if sc.Before != nil {
		sc.Before(s)
	}
	key := strings.NewReplacer("KEY", s.key, "PUBLIC", s.public).Replace(sc.Key)
	fill := strings.NewReplacer("SESSION", id)
	for name, v := range sc.Header {
		sc.Header[name] = []string{fill.Replace(v[0])}
	}
	r := s.ask(sc.Method, fill.Replace(sc.URL), key, fill.Replace(sc.Body), sc.Header)
	if r.status != sc.Status {
		t.Fatalf("want %d, got %d: %s", sc.Status, r.status, r.body)
	}
	for _, want := range sc.Want {
		if !strings.Contains(r.body, want) {
			t.Errorf("want %s in %s", want, r.body)
		}
	}
	for _, not := range sc.NotWant {
		if strings.Contains(r.body, not) {
			t.Errorf("do not want %s in %s", not, r.body)
		}
	}
	id = r.header.Get("X-Request-Id")
	if !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(id) || !strings.Contains(s.log.String(), id) {
		t.Errorf("the request has no name, or its line has not: %q", id)
	}
	if r.status >= http.StatusBadRequest && r.text("error.requestId") != id {
		t.Errorf("the error does not name the request: %s", r.body)
	}
}

func runAll(t *testing.T, all []Scenario) {
	t.Helper()
	for _, sc := range all {
		t.Run(sc.Name, func(t *testing.T) { t.Parallel(); sc.run(t) })
	}
}

const good = `{"amount":500000,"customerEmail":"ada@example.com"}`

// with is a good session with more fields.
func with(fields string) string { return good[:len(good)-1] + "," + fields + "}" }

func TestEveryCodeIsProvoked(t *testing.T) {
	h := func(pairs ...string) http.Header {
		out := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			out.Set(pairs[i], pairs[i+1])
		}
		return out
	}
	code := func(c string) []string {
		return []string{`{"status":false,"error":{`, `"code":"` + c + `"`, `"docUrl":"/docs/errors/` + c + `"`}
	}
	bad := func(name, body, c string) Scenario {
		return Scenario{Name: name, Method: "POST", URL: sessions, Key: "KEY", Body: body, Status: 400, Want: code(c)}
	}
	runAll(t, []Scenario{
		bad("malformed_json", `{"amount":`, "malformed_json"),
		bad("missing_field", `{}`, "missing_field"),
		bad("unknown_field", with(`"colour":"red"`), "unknown_field"),
		bad("amount_must_be_integer", `{"amount":5000.0,"customerEmail":"a@b.co"}`, "amount_must_be_integer"),
		bad("amount_below_minimum", `{"amount":99,"customerEmail":"a@b.co"}`, "amount_below_minimum"),
		bad("amount_above_maximum", `{"amount":2500000001,"customerEmail":"a@b.co"}`, "amount_above_maximum"),
		bad("currency_not_supported", with(`"currency":"USD"`), "currency_not_supported"),
		bad("invalid_mode", with(`"mode":"hosted"`), "invalid_mode"),
		bad("invalid_email", `{"amount":500000,"customerEmail":"ada"}`, "invalid_email"),
		bad("invalid_phone", with(`"customerPhone":"0803"`), "invalid_phone"),
		bad("invalid_field, reference", with(`"reference":"a b"`), "invalid_field"),
		bad("invalid_field, a reference that paths drop", with(`"reference":".."`), "invalid_field"),
		bad("invalid_field, methods", with(`"allowedMethods":[]`), "invalid_field"),
		bad("invalid_field, method twice", with(`"allowedMethods":["ussd","ussd"]`), "invalid_field"),
		bad("invalid_field, minutes", with(`"expiresInMinutes":4`), "invalid_field"),
		bad("invalid_field, callback", with(`"callbackUrl":"http://shop.example/done"`), "invalid_field"),
		bad("invalid_field, metadata", with(`"metadata":{"a":1}`), "invalid_field"),
		bad("invalid_field, name", with(`"customerName":"Ada\u0007"`), "invalid_field"),
		bad("invalid_field, policy", with(`"underpayment":"refund_excess"`), "invalid_field"),
		{Name: "card_data_not_accepted", Method: "POST", URL: sessions, Key: "KEY", Body: with(`"description":"4111 1111 1111 1111"`), Status: 400, Want: code("card_data_not_accepted"), NotWant: []string{"4111 1111", "41111111"}},
		{Name: "bank_not_supported", Method: "POST", URL: sessions + "/SESSION/pay/ussd", Key: "KEY", Body: `{"bankCode":"777"}`, Status: 400, Want: code("bank_not_supported")},
		{Name: "route_not_found, a slash too many", Method: "POST", URL: sessions + "/", Key: "KEY", Status: 404, Want: code("route_not_found")},
		{Name: "invalid_cursor", Method: "GET", URL: sessions + "?cursor=abc", Key: "KEY", Status: 400, Want: code("invalid_cursor")},
		{Name: "unknown parameter", Method: "GET", URL: sessions + "?state=PAID", Key: "KEY", Status: 400, Want: code("unknown_field")},
		{Name: "no charge is FAILED", Before: func(s *shop) { s.ask("POST", "/v1/charges", s.key, good) }, Method: "GET", URL: "/v1/charges?status=FAILED", Key: "KEY", Status: 200, Want: []string{`"items":[]`}},
		{Name: "no charge is PAID", Method: "GET", URL: "/v1/charges?status=PAID", Key: "KEY", Status: 400, Want: append(code("invalid_field"), "SUCCEEDED, FAILED")},
		{Name: "no session is SUCCEEDED", Method: "GET", URL: sessions + "?status=SUCCEEDED", Key: "KEY", Status: 400, Want: code("invalid_field")},
		{Name: "a parameter twice", Method: "GET", URL: sessions + "?limit=1&limit=2", Key: "KEY", Status: 400, Want: code("invalid_field")},
		{Name: "missing_api_key", Method: "POST", URL: sessions, Body: `{"amount":`, Status: 401, Want: code("missing_api_key")},
		{Name: "invalid_api_key", Method: "POST", URL: sessions, Key: "sk_test_nonsense", Body: good, Status: 401, Want: code("invalid_api_key")},
		{Name: "not a bearer key", Method: "POST", URL: sessions, Header: h("Authorization", "Basic YTpi"), Body: good, Status: 401, Want: code("invalid_api_key")},
		{Name: "secret_key_required", Method: "POST", URL: sessions, Key: "PUBLIC", Body: good, Status: 403, Want: code("secret_key_required")},
		{Name: "a public key without the client secret", Method: "GET", URL: sessions + "/SESSION", Key: "PUBLIC", Status: 403, Want: code("secret_key_required")},
		{Name: "a public key with another client secret", Method: "GET", URL: sessions + "/SESSION", Key: "PUBLIC", Header: h("X-Client-Secret", "cs_x"), Status: 403, Want: code("secret_key_required")},
		{Name: "a public key and a session of nobody's", Method: "GET", URL: sessions + "/wsp_sess_01m7y6b2svb0wy2rg89w393p3j", Key: "PUBLIC", Header: h("X-Client-Secret", "cs_wsp_sess_01m7y6b2svb0wy2rg89w393p3j"), Status: 403, Want: code("secret_key_required")},
		{Name: "a public key that cancels", Method: "POST", URL: sessions + "/SESSION/cancel", Key: "PUBLIC", Header: h("X-Client-Secret", "cs_SESSION"), Status: 403, Want: code("secret_key_required")},
		{Name: "resource_not_found", Method: "GET", URL: sessions + "/wsp_sess_01m7y6b2svb0wy2rg89w393p3j", Key: "KEY", Status: 404, Want: code("resource_not_found")},
		{Name: "resource_not_found, no id", Method: "GET", URL: sessions + "/1", Key: "KEY", Status: 404, Want: code("resource_not_found")},
		{Name: "resource_not_found, charge", Method: "GET", URL: "/v1/charges/wsp_chg_01m7y6b2svb0wy2rg89w393p3j", Key: "KEY", Status: 404, Want: code("resource_not_found")},
		{Name: "route_not_found", Method: "GET", URL: "/v1/nothing", Key: "KEY", Status: 404, Want: code("route_not_found")},
		{Name: "route_not_found, another case", Method: "GET", URL: "/V1/charges/x", Key: "KEY", Status: 404, Want: code("route_not_found")},
		{Name: "route_not_found, a bank of nobody's", Method: "POST", URL: "/v1/rails/zenith/notifications", Body: `{}`, Status: 404, Want: code("route_not_found")},
		{Name: "method_not_allowed", Method: "DELETE", URL: sessions, Key: "KEY", Status: 405, Want: code("method_not_allowed")},
		{Name: "unsupported_media_type", Method: "POST", URL: sessions, Key: "KEY", Header: h("Content-Type", "text/plain"), Body: good, Status: 415, Want: code("unsupported_media_type")},
		{Name: "unsupported_media_type, none", Method: "POST", URL: sessions, Key: "KEY", Header: h("Content-Type", ""), Body: good, Status: 415, Want: code("unsupported_media_type")},
		{Name: "unsupported_media_type, packed", Method: "POST", URL: sessions, Key: "KEY", Header: h("Content-Encoding", "gzip"), Body: good, Status: 415, Want: code("unsupported_media_type")},
		{Name: "an Idempotency-Key that is too long", Method: "POST", URL: sessions, Key: "KEY", Header: h("Idempotency-Key", strings.Repeat("k", 256)), Body: good, Status: 400, Want: code("invalid_field")},
		{Name: "whatsapp_unavailable", Before: func(s *shop) { s.number = "" }, Method: "POST", URL: sessions, Key: "KEY", Body: with(`"mode":"chat"`), Status: 503, Want: code("whatsapp_unavailable")},
		{Name: "whatsapp_unavailable, charge", Before: func(s *shop) { s.number = "" }, Method: "POST", URL: "/v1/charges", Key: "KEY", Body: good, Status: 503, Want: code("whatsapp_unavailable")},
		{Name: "headless goes on", Before: func(s *shop) { s.number = "" }, Method: "POST", URL: sessions, Key: "KEY", Body: good, Status: 201},
		{Name: "rail_unavailable", Before: func(s *shop) { s.bank.state.Up = false }, Method: "POST", URL: sessions + "/SESSION/pay/bank-transfer", Key: "KEY", Status: 503, Want: append(code("rail_unavailable"), `"retryable":true`)},
		{Name: "rail_timeout", Before: func(s *shop) { s.bank.state.TimeoutAfterCommit = true }, Method: "POST", URL: sessions + "/SESSION/pay/bank-transfer", Key: "KEY", Status: 503, Want: append(code("rail_timeout"), `"retryable":true`)},
		{Name: "rail_rejected", Method: "POST", URL: "/v1/charges", Key: "KEY", Body: with(`"customerName":"REFUSE"`), Status: 502, Want: code("rail_rejected")},
		{Name: "invalid_signature", Method: "POST", URL: "/v1/rails/sandbox/notifications", Body: `{}`, Status: 401, Want: code("invalid_signature")},
		{Name: "a NIP session id that is too short", Method: "POST", URL: "/v1/test/bank/transfers", Key: "KEY", Body: `{"accountNumber":"0000000001","nipSessionId":"12"}`, Status: 400, Want: code("invalid_field")},
		{Name: "not_ready", Before: func(s *shop) { s.checks = []Check{{Name: "store", Needed: true, Reason: "it is away"}} }, Method: "GET", URL: "/readyz", Status: 503, Want: append(code("not_ready"), `"store":"it is away"`)},
		{Name: "ready", Method: "GET", URL: "/readyz", Status: 200, Want: []string{`"ready":true`, `"state":"ready"`}},
		{Name: "a charge that is headless", Method: "POST", URL: "/v1/charges", Key: "KEY", Body: with(`"mode":"headless"`), Status: 400, Want: code("invalid_mode")},
		{Name: "a charge of a session with an amount", Method: "POST", URL: "/v1/charges", Key: "KEY", Body: `{"sessionId":"SESSION","amount":5}`, Status: 400, Want: code("unknown_field")},
		{Name: "an endpoint without a URL", Method: "POST", URL: "/v1/webhook-endpoints", Key: "KEY", Body: `{"events":["charge.success"]}`, Status: 400, Want: code("missing_field")},
		{Name: "an endpoint that is refused", Method: "POST", URL: "/v1/webhook-endpoints", Key: "KEY", Body: `{"url":"ftp://x"}`, Status: 400, Want: code("invalid_field")},
		{Name: "an event of nobody's", Method: "POST", URL: "/v1/webhook-endpoints", Key: "KEY", Body: `{"url":"https://x.example","events":["charge.won"]}`, Status: 400, Want: code("invalid_field")},
		{Name: "a weak password", Method: "POST", URL: "/v1/auth/signup", Body: `{"email":"a@b.co","password":"short","businessName":"Ada"}`, Status: 400, Want: code("invalid_field"), NotWant: []string{"short\""}},
		{Name: "spaces for a password and a name", Method: "POST", URL: "/v1/auth/signup", Body: `{"email":"a@b.co","password":"          ","businessName":" \u200b"}`, Status: 400, Want: append(code("invalid_field"), `"field":"password"`, `"field":"businessName"`)},
	})
}

func TestKeysThatAreOverOrOfAnotherWorld(t *testing.T) {
	s := open(t)
	expired, revoked, live := s.newKey("test", "secret"), s.newKey("test", "secret"), s.newKey("live", "secret")
	s.keep("Old", key(expired, "test", -1, 0), key(revoked, "test", 0, -1), key(live, "live", 0, 0))
	for _, c := range []struct{ key, url, code string }{
		{expired, sessions, "expired_api_key"}, {revoked, sessions, "revoked_api_key"}, {live, sessions, "kyc_required"}, {live, "/v1/test/bank/calls", "test_only"},
	} {
		if r := s.ask("GET", c.url, c.key, ""); r.code() != c.code {
			t.Errorf("want %s, got %d %s", c.code, r.status, r.body)
		}
	}
}

func TestAnotherProjectsThingsDoNotExist(t *testing.T) {
	s := open(t)
	id := s.session("")
	attempt := s.ask("POST", sessions+"/"+id+"/pay/card", s.key, "").text("data.attemptId")
	code := s.ask("POST", sessions+"/"+id+"/pay/ussd", s.key, "").text("data.paymentCode")
	charge := s.ask("POST", "/v1/charges", s.key, good).text("data.id")
	_, _, other := s.merchant("Bola Stores")
	for _, c := range []struct{ method, url string }{
		{"GET", sessions + "/" + id},
		{"POST", sessions + "/" + id + "/cancel"},
		{"POST", sessions + "/" + id + "/pay/bank-transfer"},
		{"POST", sessions + "/" + id + "/pay/ussd"},
		{"POST", sessions + "/" + id + "/pay/card"},
		{"GET", "/v1/charges/" + charge},
		{"POST", "/v1/test/cards/" + attempt + "/complete"},
		{"POST", "/v1/test/ussd/" + code + "/complete"},
	} {
		if r := s.ask(c.method, c.url, other, ""); r.status != http.StatusNotFound || r.code() != "resource_not_found" {
			t.Errorf("%s %s: %d %s", c.method, c.url, r.status, r.body)
		}
	}
	if r := s.ask("POST", "/v1/charges", other, `{"sessionId":"`+id+`"}`); r.status != http.StatusNotFound {
		t.Errorf("a charge of another's session: %d %s", r.status, r.body)
	}
	if r := s.ask("GET", "/v1/test/bank/calls", other, ""); r.status != http.StatusOK || strings.Contains(r.body, "wsp_sess_") {
		t.Errorf("another's calls: %s", r.body)
	}
	if r := s.ask("GET", sessions, other, ""); strings.Contains(r.body, "wsp_sess_") {
		t.Errorf("another's sessions: %s", r.body)
	}
}

func TestAStoreThatDoesNotAnswerIsSaidToBeAway(t *testing.T) {
	s := open(t)
	await.Until(t, "what is done at the start is done", func() bool {
		idle, err := s.server.cfg.Services[flow.Test].Idle(t.Context())
		return idle && err == nil
	})
	must(t, s.checkouts.Close())
	r := s.ask("POST", sessions, s.key, good)
	s.want(r, http.StatusServiceUnavailable, map[string]string{"error.code": "storage_unavailable", "error.retryable": "true"})
	if r.header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
}

func TestTwoOfTheSameChargeAtOnceMakeOne(t *testing.T) {
	s := open(t)
	s.bank.hold = make(chan struct{})
	once := http.Header{"Idempotency-Key": {"twice"}}
	first := make(chan reply, 1)
	go func() { first <- s.ask("POST", "/v1/charges", s.key, good, once) }()
	s.bank.hold <- struct{}{} // the bank has been called and has not answered
	r := s.ask("POST", "/v1/charges", s.key, good, once)
	s.want(r, http.StatusConflict, map[string]string{"error.code": "idempotency_in_progress"})
	if r.header.Get("Retry-After") != "1" {
		t.Error("nothing says when to try again")
	}
	s.bank.hold <- struct{}{}
	done := <-first
	s.want(done, http.StatusCreated, nil)
	if again := s.ask("POST", "/v1/charges", s.key, good, once); again.body != done.body {
		t.Errorf("said again: %s", again.body)
	}
}

func TestASessionThatIsOverIsExpired(t *testing.T) {
	s := open(t)
	id := s.session(`,"expiresInMinutes":5`)
	s.want(s.ask("POST", "/v1/test/clock", s.key, `{"advanceSeconds":301}`), http.StatusOK, nil)
	s.until(id, "EXPIRED")
	s.want(s.ask("POST", sessions+"/"+id+"/pay/card", s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_expired"})
}
