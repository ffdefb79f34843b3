package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/hooks"
	"till/rail"
	"till/rail/sandbox"
)

const (
	banksURL      = "/v1/verification/banks"
	resolveURL    = "/v1/verification/accounts/resolve"
	identitiesURL = "/v1/verification/identities"
)

// desk is a shop that verifies: the real server on a port, the real sandbox on
// another, a database of its own and an endpoint that hears of everything.
type desk struct {
	*shop

	base   string
	wire   *sandbox.Rail
	db     *store.DB
	board  *checkout.Board
	verify *checkout.Verifications
	stop   func() // ends the look-ups, as a shutdown does

	mu    sync.Mutex
	heard []string // bodies of webhooks
}

func openDesk(t *testing.T) *desk {
	t.Helper()
	return openHastyDesk(t, 0)
}

// openHastyDesk is a desk that waits so long for an answer of the bank; 0 is as usual.
func openHastyDesk(t *testing.T, patience time.Duration) *desk {
	t.Helper()
	s := open(t)
	d := &desk{shop: s}
	d.db = storetest.Open(t, storetest.SQLite(t, store.Checkout))
	t.Cleanup(func() { s.judgeEvents(d.db) })
	line := s.bankOn(filepath.Join(t.TempDir(), "bank.db"))
	d.wire = line(0)
	sender := hooks.New(hooks.Config{AllowLoopback: true, Now: time.Now})
	t.Cleanup(sender.Close)
	cfg := s.parts
	d.board = checkout.NewBoard(d.db, s.now, s.now, s.server.cfg.Log)
	cfg.DB, cfg.Board, cfg.Rail, cfg.Log = d.db, d.board, line(patience), s.server.cfg.Log
	cfg.Known = func(ctx context.Context, id flow.ProjectID) (bool, error) {
		return s.server.cfg.Accounts.Known(ctx, id, flow.Test)
	}
	cfg.Post = func(ctx context.Context, o flow.Delivery) flow.Verdict {
		at := time.Now()
		v := sender.Send(ctx, hooks.Request{URL: o.URL, ID: string(o.Event), Body: o.Body, Secrets: o.Secrets, At: at})
		return flow.Verdict{
			OK: v.OK, Gone: v.Gone, Status: v.Status, Reason: v.Err, Body: v.Body, Duration: v.Duration, URL: v.URL, SignedAt: at, Signature: v.Signature,
		}
	}
	service, err := checkout.New(cfg)
	must(t, err)
	d.runs(service.Run)
	if d.verify, err = checkout.NewVerifications(service, "a pepper of sixteen"); err != nil {
		t.Fatal(err)
	}
	d.stop = d.runs(d.verify.Run)
	front := s.server.cfg
	front.TestBank = d.wire
	front.Services = map[flow.Environment]*checkout.Service{flow.Test: service}
	front.Verifications = map[flow.Environment]*checkout.Verifications{flow.Test: d.verify}
	if s.server, err = New(front); err != nil {
		t.Fatal(err)
	}
	d.base = "http://" + s.listen()
	must(t, d.wire.Register(t.Context(), d.base+"/v1/rails/sandbox/notifications"))
	return d
}

// call sends a request over the network.
func (d *desk) call(method, path, key, body string, headers ...string) reply {
	d.t.Helper()
	r, err := http.NewRequest(method, d.base+path, strings.NewReader(body))
	must(d.t, err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	must(d.t, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	must(d.t, err)
	got := reply{res.StatusCode, res.Header, string(all)}
	conforms(d.t, r, body, got)
	return got
}

// listens registers an endpoint that hears of these kinds of event, or of
// everything that is not on request.
func (d *desk) listens(kinds ...flow.EventKind) {
	d.t.Helper()
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		delivered(d.t, body)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.heard = append(d.heard, string(body))
	}))
	d.t.Cleanup(sink.Close)
	asked, err := json.Marshal(struct {
		URL    string           `json:"url"`
		Events []flow.EventKind `json:"events,omitempty"`
	}{sink.URL, kinds})
	must(d.t, err)
	d.want(d.call("POST", "/v1/webhook-endpoints", d.key, string(asked)), http.StatusCreated, nil)
}

// hook registers an endpoint that nobody listens at, and returns its id.
func (s *shop) hook() string {
	s.t.Helper()
	r := s.ask("POST", endpointsPath, s.key, `{"url":"http://127.0.0.1:9/","events":["charge.reversed"]}`)
	if r.status != http.StatusCreated {
		s.t.Fatalf("add an endpoint: %d %s", r.status, r.body)
	}
	return r.text("data.id")
}

// event waits for the webhook about a verification.
func (d *desk) event(id string) reply { return d.told(`"reference":"` + id + `"`) }

// told waits for a webhook that holds a text.
func (d *desk) told(text string) reply {
	d.t.Helper()
	var told reply
	await.Until(d.t, "a webhook tells of "+text, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		at := slices.IndexFunc(d.heard, func(b string) bool { return strings.Contains(b, text) })
		if at >= 0 {
			told.body = d.heard[at]
		}
		return at >= 0
	})
	return told
}

// settled waits until a verification is not PENDING any more.
func (d *desk) settled(id string) reply {
	d.t.Helper()
	var r reply
	await.Until(d.t, id+" is not PENDING any more", func() bool {
		r = d.call("GET", identitiesURL+"/"+id, d.key, "")
		return r.status != http.StatusOK || r.text("data.status") != "PENDING"
	})
	return r
}

// person is a good request about a number, with more fields.
func person(number, more string) string {
	return `{"type":"bvn","number":"` + number + `","firstName":"Ada","lastName":"Obi","consent":{"given":true,"purpose":"Account opening"}` + more + `}`
}

func TestBanksAreListedForAnyKey(t *testing.T) {
	d := openDesk(t)
	for _, key := range []string{d.key, d.public} {
		d.want(d.call("GET", banksURL, key, ""), http.StatusOK, map[string]string{"status": "true", "data.hasMore": "false", "data.nextCursor": ""})
	}
	list := func(url string) (items []map[string]any) {
		var out struct {
			Data struct {
				Items []map[string]any `json:"items"`
			} `json:"data"`
		}
		r := d.call("GET", url, d.public, "")
		if err := json.Unmarshal([]byte(r.body), &out); err != nil || r.status != http.StatusOK {
			t.Fatalf("%d %s: %v", r.status, r.body, err)
		}
		return out.Data.Items
	}
	all, ussd := list(banksURL), list(banksURL+"?supports=ussd")
	if len(all) != len(rail.Banks())+1 || len(ussd) == 0 || len(ussd) >= len(all) {
		t.Errorf("%d banks, %d with USSD", len(all), len(ussd))
	}
	for _, b := range ussd {
		if b["supportsUssd"] != true {
			t.Errorf("%v is listed for USSD", b)
		}
	}
	i := slices.IndexFunc(all, func(b map[string]any) bool { return b["code"] == "999" })
	want := map[string]any{
		"code": "999", "name": "Till Test Bank", "shortName": "Test Bank", "slug": "till-test-bank", "nipCode": "999999",
		"supportsUssd": false, "ussdBaseCode": nil,
	}
	if i < 0 || fmt.Sprint(all[i]) != fmt.Sprint(want) {
		t.Errorf("the test bank is %v", all[i])
	}
	for _, c := range []struct{ key, url, code string }{
		{"", banksURL, "missing_api_key"},
		{d.public, banksURL + "?supports=card", "invalid_field"},
		{d.public, banksURL + "?page=1", "unknown_field"},
		{d.public, banksURL + "?supports=ussd&supports=ussd", "invalid_field"},
	} {
		if r := d.call("GET", c.url, c.key, ""); r.code() != c.code {
			t.Errorf("%s: want %s, got %s", c.url, c.code, r.body)
		}
	}
}

func TestTheListOfBanksIsSentOnce(t *testing.T) {
	d := openDesk(t)
	first := d.call("GET", banksURL, d.public, "")
	tag := first.header.Get("ETag")
	if !regexp.MustCompile(`^"[A-Za-z0-9_-]{43}"$`).MatchString(tag) || first.header.Get("Cache-Control") != "private, no-cache" || first.header.Get("Vary") != "Authorization" {
		t.Errorf("headers %v", first.header)
	}
	if other := d.call("GET", banksURL+"?supports=ussd", d.public, "").header.Get("ETag"); other == tag || other == "" {
		t.Errorf("two lists have the tag %s", other)
	}
	for _, c := range []struct {
		header string
		status int
	}{
		{tag, 304}, {"W/" + tag, 304}, {`"x", ` + tag, 304}, {"*", 304}, {`"x"`, 200}, {strings.Trim(tag, `"`), 200}, {"", 200},
	} {
		r := d.call("GET", banksURL, d.public, "", "If-None-Match", c.header)
		if r.status != c.status || (r.body == "") != (c.status == 304) || r.header.Get("ETag") != tag {
			t.Errorf("%s: %d, %d bytes, %v", c.header, r.status, len(r.body), r.header)
		}
	}
	if r := d.call("HEAD", banksURL, d.public, ""); r.status != http.StatusOK || r.body != "" || r.header.Get("ETag") != tag {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
}

func TestAnAccountIsResolved(t *testing.T) {
	d := openHastyDesk(t, 2*time.Second)
	pay := d.call("POST", sessions+"/"+d.call("POST", sessions, d.key, good).text("data.id")+"/pay/bank-transfer", d.key, "")
	for _, c := range []struct {
		body   string
		status int
		want   map[string]string
	}{
		{`{"accountNumber":"0000000001","bankCode":"999"}`, 200, map[string]string{
			"data.accountNumber": "0000000001", "data.accountName": "ADA TEST PAYER", "data.bankCode": "999", "data.bankName": "Till Test Bank",
			"data.checkDigitValid": "false",
		}},
		{`{"accountNumber":"` + pay.text("data.accountNumber") + `","bankCode":"999"}`, 200, map[string]string{"data.accountName": "Ada Stores/CHECKOUT", "data.checkDigitValid": "true"}},
		{`{"accountNumber":"0000000002","bankCode":"999"}`, 422, map[string]string{"error.code": "account_not_resolved", "error.type": "verification", "error.retryable": "false"}},
		{`{"accountNumber":"0000000001","bankCode":"058"}`, 422, map[string]string{"error.code": "account_not_resolved"}},
		{`{"accountNumber":"0000000003","bankCode":"999"}`, 503, map[string]string{"error.code": "rail_unavailable", "error.retryable": "true"}},
		{`{"accountNumber":"0000000004","bankCode":"999"}`, 503, map[string]string{"error.code": "rail_timeout", "error.retryable": "true"}},
		{`{"accountNumber":"0000000001","bankCode":"777"}`, 400, map[string]string{"error.code": "bank_not_supported"}},
		{`{"accountNumber":1,"bankCode":999}`, 400, map[string]string{"error.code": "invalid_field"}},
		{`{"accountNumber":"000000001","bankCode":"999"}`, 400, map[string]string{"error.code": "invalid_field"}},
		{`{"accountNumber":"00000000011","bankCode":"999"}`, 400, map[string]string{"error.code": "invalid_field"}},
		{`{"accountNumber":"000000000१","bankCode":"999"}`, 400, map[string]string{"error.code": "invalid_field"}},
		{`{"accountNumber":"0000000001"}`, 400, map[string]string{"error.code": "missing_field"}},
		{`{"accountNumber":"0000000001","bankCode":"999","amount":1}`, 400, map[string]string{"error.code": "unknown_field"}},
	} {
		r := d.call("POST", resolveURL, d.key, c.body)
		d.want(r, c.status, c.want)
		if r.status == http.StatusBadRequest && !strings.Contains(r.body, `"fields":[{`) {
			t.Errorf("%s: no field is named: %s", c.body, r.body)
		}
	}
	if r := d.call("POST", resolveURL, d.public, `{`); r.code() != "secret_key_required" {
		t.Errorf("a public key: %s", r.body)
	}
	first := d.call("POST", resolveURL, d.key, `{"accountNumber":"0000000001","bankCode":"999"}`, "Idempotency-Key", "who")
	again := d.call("POST", resolveURL, d.key, `{"accountNumber":"0000000001","bankCode":"999"}`, "Idempotency-Key", "who")
	if first.body != again.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %s %v", again.body, again.header)
	}
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{"up":false}`), http.StatusOK, nil)
	d.want(d.call("POST", resolveURL, d.key, `{"accountNumber":"0000000001","bankCode":"999"}`), 503, map[string]string{"error.code": "rail_unavailable"})
}
