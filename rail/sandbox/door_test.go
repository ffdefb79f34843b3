package sandbox_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

func TestRailDoorNeedsTheSecret(t *testing.T) {
	w := openTown(t)
	body := `{"reference":"r","session":"s","amount":100,"accountName":"A","expiresAt":"2031-01-01T00:00:00Z"}`
	for name, header := range map[string][]string{
		"none":        nil,
		"empty":       {"Authorization", "Bearer "},
		"another":     {"Authorization", "Bearer another-secret-as-long"},
		"cut":         {"Authorization", "Bearer " + secret[:len(secret)-1]},
		"longer":      {"Authorization", "Bearer " + secret + "x"},
		"not bearer":  {"Authorization", secret},
		"other words": {"Authorization", "Basic " + secret},
	} {
		for _, path := range []string{"/virtual-accounts", "/ussd", "/card-pages"} {
			if status, text := send(t, "POST", w.url+"/bank/v1"+path, body, header...); status != 401 || strings.Contains(text, secret) {
				t.Errorf("%s: %s = %d %s", name, path, status, text)
			}
		}
		if status, _ := send(t, "GET", w.url+"/bank/v1/instruments/r/transactions", "", header...); status != 401 {
			t.Errorf("%s: transactions = %d", name, status)
		}
	}
	if calls, err := w.rail.Calls(t.Context(), 0, 100); err != nil || len(calls) != 0 {
		t.Errorf("strangers are in the call log: %+v, %v", calls, err)
	}
}

// Every bound of what the two doors take.
func TestRequestsAreJudged(t *testing.T) {
	w := openTown(t)
	long := strings.Repeat("x", 101)
	order := func(reference, session, amount, name, expires string) string {
		return `{"reference":"` + reference + `","session":"` + session + `","amount":` + amount + `,"accountName":"` + name + `","expiresAt":"` + expires + `"}`
	}
	const later = "2031-01-01T00:00:00Z"
	for _, c := range []struct {
		name, method, path, body string
		want                     int
		code                     string
	}{
		{"good order", "POST", "/v1/virtual-accounts", order("r", "s", "100", "A", later), 201, ""},
		{"same order", "POST", "/v1/virtual-accounts", order("r", "s", "100", "A", later), 200, ""},
		{"other method", "POST", "/v1/card-pages", order("r", "s", "100", "A", later), 409, "reference_reused"},
		{"other amount", "POST", "/v1/virtual-accounts", order("r", "s", "101", "A", later), 409, "reference_reused"},
		{"other session", "POST", "/v1/virtual-accounts", order("r", "t", "100", "A", later), 409, "reference_reused"},
		{"no reference", "POST", "/v1/ussd", order("", "s", "100", "A", later), 400, "invalid_reference"},
		{"long reference", "POST", "/v1/ussd", order(long, "s", "100", "A", later), 400, "invalid_reference"},
		{"odd reference", "POST", "/v1/ussd", order("a b", "s", "100", "A", later), 400, "invalid_reference"},
		{"long session", "POST", "/v1/ussd", order("x", long, "100", "A", later), 400, "invalid_session"},
		{"no amount", "POST", "/v1/ussd", order("x", "s", "0", "A", later), 422, "invalid_amount"},
		{"negative", "POST", "/v1/ussd", order("x", "s", "-1", "A", later), 422, "invalid_amount"},
		{"too much", "POST", "/v1/card-pages", order("x", "s", "2500000001", "A", later), 422, "invalid_amount"},
		{"fraction", "POST", "/v1/card-pages", order("x", "s", "1.5", "A", later), 400, "malformed_json"},
		{"exponent", "POST", "/v1/card-pages", order("x", "s", "1e3", "A", later), 400, "malformed_json"},
		{"ussd kobo", "POST", "/v1/ussd", order("x", "s", "150", "A", later), 422, "invalid_amount"},
		{"no name", "POST", "/v1/card-pages", order("x", "s", "100", "", later), 400, "invalid_name"},
		{"name with newline", "POST", "/v1/card-pages", order("x", "s", "100", `A\nB`, later), 400, "invalid_name"},
		{"no expiry", "POST", "/v1/card-pages", order("x", "s", "100", "A", "0001-01-01T00:00:00Z"), 400, "invalid_expiry"},
		{"unknown field", "POST", "/v1/card-pages", `{"reference":"x","cardNumber":"1"}`, 400, "malformed_json"},
		{"two values", "POST", "/v1/card-pages", order("x", "s", "100", "A", later) + "{}", 400, "malformed_json"},
		{"no body", "POST", "/v1/card-pages", "", 415, "unsupported_media_type"},
		{"huge body", "POST", "/v1/card-pages", `{"reference":"` + strings.Repeat("x", 70<<10) + `"}`, 413, "too_large"},
		{"odd find", "GET", "/v1/instruments/a%20b", "", 400, "invalid_reference"},
		{"odd after", "GET", "/v1/instruments/r/transactions?after=-1", "", 400, "invalid_after"},

		{"short account", "POST", "/test/transfers", `{"accountNumber":"123","amount":1}`, 400, "invalid_account"},
		{"negative transfer", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":-1}`, 400, "invalid_amount"},
		{"endless transfer", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1000000000001}`, 400, "invalid_amount"},
		{"21 copies", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"copies":21}`, 400, "invalid_copies"},
		{"negative copies", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"copies":-1}`, 400, "invalid_copies"},
		{"long delay", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"delayMs":600001}`, 400, "invalid_delay"},
		{"negative delay", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"delayMs":-1}`, 400, "invalid_delay"},
		{"unknown bank", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"senderBankCode":"000"}`, 400, "unknown_bank"},
		{"long sender", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"senderName":"` + long + `"}`, 400, "invalid_sender"},
		{"short NIP", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"nipSessionId":"1"}`, 400, "invalid_nip_session"},
		{"odd value time", "POST", "/test/transfers", `{"accountNumber":"0123456789","amount":1,"valueTime":"1066-10-14T00:00:00Z"}`, 400, "invalid_value_time"},

		{"latency", "PUT", "/test/conditions", `{"latencyMs":30001}`, 400, "invalid_latency"},
		{"negative latency", "PUT", "/test/conditions", `{"latencyMs":-1}`, 400, "invalid_latency"},
		{"loss", "PUT", "/test/conditions", `{"notifyLossPercent":101}`, 400, "invalid_percent"},
		{"duplicates", "PUT", "/test/conditions", `{"duplicatePercent":-1}`, 400, "invalid_percent"},
		{"unknown weather", "PUT", "/test/conditions", `{"raining":true}`, 400, "malformed_json"},
		{"part of it", "PUT", "/test/conditions", `{"latencyMs":1}`, 200, `"up":true`},

		{"notify elsewhere", "PUT", "/test/client", `{"notifyUrl":"http://example.com/x","secret":"` + secret + `"}`, 400, "invalid_notify_url"},
		{"notify metadata", "PUT", "/test/client", `{"notifyUrl":"http://169.254.169.254/","secret":"` + secret + `"}`, 400, "invalid_notify_url"},
		{"notify file", "PUT", "/test/client", `{"notifyUrl":"file:///etc/passwd","secret":"` + secret + `"}`, 400, "invalid_notify_url"},
		{"notify user", "PUT", "/test/client", `{"notifyUrl":"http://a:b@127.0.0.1/","secret":"` + secret + `"}`, 400, "invalid_notify_url"},
		{"short secret", "PUT", "/test/client", `{"notifyUrl":"http://127.0.0.1/","secret":"short"}`, 400, "invalid_secret"},

		{"calls limit", "GET", "/test/calls?limit=101", "", 400, "invalid_page"},
		{"calls after", "GET", "/test/calls?after=x", "", 400, "invalid_page"},
		{"no such card", "POST", "/test/cards/none/complete", `{"outcome":"approved"}`, 404, "no_such_payment"},
		{"transfer as card", "POST", "/test/cards/r/complete", `{"outcome":"approved"}`, 404, "no_such_payment"},
		{"no route", "GET", "/v2/x", "", 404, "no_such_route"},
	} {
		status, text := send(t, c.method, w.url+"/bank"+c.path, c.body, "Authorization", "Bearer "+secret)
		if status != c.want || !strings.Contains(text, c.code) {
			t.Errorf("%s: %d %s; want %d %s", c.name, status, text, c.want, c.code)
		}
	}
	w.silent(t)
}

// A page of another site, or a name made to point here, plays nobody.
func TestTestDoorIsLocal(t *testing.T) {
	w := openTown(t)
	const body = `{"accountNumber":"0123456789","amount":1}`
	for name, header := range map[string][]string{
		"rebound name":   {"Host", "evil.example"},
		"cross-site":     {"Sec-Fetch-Site", "cross-site"},
		"foreign origin": {"Origin", "http://evil.example"},
	} {
		if status, text := send(t, "POST", w.url+"/bank/test/transfers", body, header...); status != 403 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := send(t, "POST", w.url+"/bank/test/transfers", body, "Content-Type", "text/plain"); status != 415 {
		t.Errorf("plain text: %d %s", status, text)
	}
	w.settled(t)
	w.silent(t)
}

func TestNotifyAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"10.0.0.1:80": false, "169.254.169.254:80": false, "0.0.0.0:80": false, "[::]:80": false, "[fe80::1]:80": false,
		"192.0.2.1:80": false, "[::ffff:10.0.0.1]:80": false, "example.com:80": false, "127.0.0.1": false, "": false,
	} {
		if err := sandbox.NotifyAddress(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestConditionsAreKept(t *testing.T) {
	w := openTown(t)
	if c, err := w.rail.Conditions(t.Context()); err != nil || c != (rail.Conditions{Up: true}) {
		t.Errorf("at first %+v, %v", c, err)
	}
	want := rail.Conditions{Up: true, LatencyMs: 40, NotifyLossPercent: 3, DuplicatePercent: 4}
	if c, err := w.rail.SetConditions(t.Context(), want); err != nil || c != want {
		t.Errorf("set %+v, %v", c, err)
	}
	began := time.Now()
	w.start(t, flow.BankTransfer, "slow")
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("a slow bank took %s", took)
	}
}

// While its answer hangs, the bank has done what it was asked, once, and lets
// go of the caller who left.
func TestTimeoutAfterCommit(t *testing.T) {
	w := openTown(t)
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, TimeoutAfterCommit: true}); err != nil {
		t.Fatal(err)
	}
	o := w.order(flow.BankTransfer, "ref")
	for range 3 {
		err := w.leaves(t, func(ctx context.Context) error {
			_, err := w.rail.Start(ctx, o)
			return err
		})
		if err == nil {
			t.Fatal("an answer came")
		}
		o.Again = true
	}
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true}); err != nil {
		t.Fatal(err)
	}
	ins, err := w.rail.Start(t.Context(), o)
	must(t, err)
	w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	if n := w.hear(t); n.Reference != "ref" {
		t.Errorf("notice %+v", n)
	}
	calls, err := w.rail.Calls(t.Context(), 0, 100)
	if err != nil || len(calls) != 4 || calls[0].Outcome != "timeout" || calls[1].Operation != "find" || calls[3].Outcome != "ok" {
		t.Errorf("calls %+v, %v", calls, err)
	}
}

// A door that is full says so at once, and is free again afterwards.
func TestDoorIsBounded(t *testing.T) {
	b, err := sandbox.Open(sandbox.Config{Now: time.Now})
	must(t, err)
	defer func() { _ = b.Close() }()
	entered, leave := make(chan struct{}), make(chan struct{})
	door := b.Bounded(1, func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})
	ask := func() int {
		w := httptest.NewRecorder()
		door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code
	}
	first := make(chan int)
	go func() { first <- ask() }()
	<-entered
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("a full door answers %d", got)
	}
	leave <- struct{}{}
	if got := <-first; got != http.StatusOK {
		t.Errorf("the first was answered %d", got)
	}
	go func() { <-entered; leave <- struct{}{} }()
	if got := ask(); got != http.StatusOK {
		t.Errorf("the door stays full: %d", got)
	}
}

// Payers may reach the bank by another name than the rail does.
func TestBaseURL(t *testing.T) {
	b, err := sandbox.Open(sandbox.Config{Now: time.Now, BaseURL: "https://bank.example.com/"})
	must(t, err)
	w := town{bank: b, url: serve(t, b), clock: &clock{}}
	w.rail = newRail(t, w.url, w.clock.Now, 0)
	must(t, w.rail.Register(t.Context(), nowhere(t)))
	if got := w.start(t, flow.Card, "ref").CheckoutURL; !strings.HasPrefix(got, "https://bank.example.com/card/") {
		t.Errorf("checkout URL %q", got)
	}
}
