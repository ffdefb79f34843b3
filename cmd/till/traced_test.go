package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// hooked is a webhook as it came.
type hooked struct {
	kind   string
	header http.Header
}

// A merchant's trace goes on through what it causes: into the log, with the
// session, and out with the webhook. What is not a trace is as good as none.
// Whatever happens in a checkout, no line of the log tells whose it is, however
// closely one looks.
func TestTheLogTellsWhatHappenedAndToNobodyWhom(t *testing.T) {
	m, _, dir := devServerWith(t, []string{"TILL_LOG_LEVEL=debug"})
	came := make(chan hooked, 100)
	var paid atomic.Int64
	sink := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var e struct{ Event string }
		_ = json.NewDecoder(r.Body).Decode(&e)
		if e.Event == "charge.success" && paid.Add(1) == 1 { // it comes once more
			rw.WriteHeader(http.StatusInternalServerError)
		}
		came <- hooked{e.Event, r.Header}
	}))
	t.Cleanup(sink.Close)
	hook := m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": sink.URL, "events": []string{"session.created", "charge.success"}})

	session, text := m.openTraced(t, parent)
	created := <-came
	if got := created.header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+traceID+"-") || got == parent || created.header.Get("Tracestate") != "congo=t61rcWkgMzE" {
		t.Errorf("%s came with %q and %q", created.kind, got, created.header.Get("Tracestate"))
	}
	other, _ := m.openTraced(t, strings.ToUpper(parent))
	untraced := <-came
	if got := untraced.header; strings.Contains(got.Get("Traceparent"), traceID) || got.Get("Traceparent") == "" || got.Get("Tracestate") != "" {
		t.Errorf("what is no trace is handed on: %v", got)
	}

	data := m.call(http.MethodPost, "/v1/test/phones", object{"pushName": "Quixotina"})
	phone := data["phone"].(string)
	p := &payer{m: m, phone: url.PathEscape(phone)}
	p.says(text)
	p.hears(`1 Bank transfer`)
	p.says("my card is 4111 1111 1111 1111")
	p.hears(`(?i)card`)
	p.says("1")
	account := p.hears(`^(\d{10})$`)[1]
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	p.hears(`(?i)receipt`)
	first := <-came
	m.call(http.MethodPost, "/v1/test/clock", object{"advanceSeconds": 60})
	again := <-came
	for i, try := range []hooked{created, untraced, first, again} {
		about := []string{session, other, session, session}[i]
		trace := strings.Split(try.header.Get("Traceparent"), "-")
		if len(trace) != 4 || try.kind != []string{"session.created", "session.created", "charge.success", "charge.success"}[i] {
			t.Fatalf("%s came with the trace %q", try.kind, trace)
		}
		line := regexp.MustCompile(`"msg":"delivery","environment":"test",.*"event":"` + try.header.Get("Webhook-Id") + `","session":"` + about + `",.*"trace_id":"` + trace[1] + `"`)
		m.until("the log has the try of "+try.kind+" with its session and the trace that it came with", func() bool { return line.MatchString(logged(t, dir)) })
	}

	log := logged(t, dir)
	line := regexp.MustCompile(`.*"msg":"request".*"session":"` + session + `".*`).FindString(log)
	if !strings.Contains(line, `"trace_id":"`+traceID+`"`) || !strings.Contains(line, `"request":"`) {
		t.Errorf("the log has no line of the request with its session and trace: %s", line)
	}
	if strings.Contains(regexp.MustCompile(`.*"session":"`+other+`".*`).FindString(log), traceID) {
		t.Error("the log has a trace of what was none")
	}
	if !regexp.MustCompile(`"msg":"turn","environment":"test","chat":"\w+","session":"` + session).MatchString(log) {
		t.Error("the log has no turn of the chat about the session")
	}
	digits := strings.TrimPrefix(phone, "+")
	for what, secret := range map[string]string{
		"key": m.key, "webhook's secret": hook["secret"].(string), "name": "Okonkwo", "chat's name": "Quixotina", "e-mail": "zebulon", "merchant's phone": "8031998877",
		"payer's phone": digits[3:], "account number": account, "card": "4111 1111", "card's digits": "41111111", "payer at the bank": "ADA TEST PAYER", "reference": "rent of the blue house",
	} {
		if at := strings.Index(strings.ToLower(log), strings.ToLower(secret)); secret == "" || at >= 0 {
			t.Errorf("the log tells the %s: %s", what, log[max(0, at-200):min(len(log), at+100)])
		}
	}
}

// logged is all that a server logged.
func logged(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "data", "logs", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no log: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		all.Write(text)
	}
	return all.String()
}

// openTraced opens a session in a chat, with headers of a trace.
func (m *merchant) openTraced(t *testing.T, parent string) (session, text string) {
	t.Helper()
	body, err := json.Marshal(object{
		"amount": 500_000, "mode": "chat", "customerEmail": "zebulon@example.com", "customerName": "Zebulon Okonkwo", "customerPhone": "+2348031998877",
		"description": "rent of the blue house",
	})
	must(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.base+"/v1/whatsapp/checkout/sessions", bytes.NewReader(body))
	must(t, err)
	for name, value := range map[string]string{"Authorization": "Bearer " + m.key, "Content-Type": "application/json", "Traceparent": parent, "Tracestate": "congo=t61rcWkgMzE"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	var out struct {
		Data struct{ ID, CheckoutURL string }
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Data.ID == "" {
		t.Fatalf("no session was opened: %d %v", res.StatusCode, err)
	}
	link, err := url.Parse(out.Data.CheckoutURL)
	must(t, err)
	return out.Data.ID, link.Query().Get("text")
}
