package api

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// fromPage is what the phone page sends with its calls.
func fromPage() http.Header { return http.Header{"X-Till-Phone": {"1"}} }

func TestAPhoneWritesAndReads(t *testing.T) {
	s := open(t)
	made := s.ask("POST", "/v1/test/phones", s.key, `{"phone":"0803 123 4567","pushName":"Ada"}`)
	s.want(made, http.StatusCreated, map[string]string{"data.phone": "+2348031234567", "data.pushName": "Ada"})
	chat := "/v1/test/phones/%2B2348031234567/messages"
	s.want(s.ask("POST", chat, s.key, `{"text":"4111 1111 1111 1111"}`), http.StatusCreated, map[string]string{"data.fromMe": "true", "data.status": "sent"})
	r := s.ask("GET", "/v1/test/phones/2348031234567/messages?wait=0&after=", s.key, "")
	s.want(r, http.StatusOK, map[string]string{"data.nextCursor": "1"})
	for _, field := range []string{`"id":"M0"`, `"text":"4111 1111 1111 1111"`, `"fromMe":true`, `"at":"2027-01-15T08:00:00.000Z"`, `"status":"sent"`} {
		if !strings.Contains(r.body, field) {
			t.Errorf("want %s in %s", field, r.body)
		}
	}
	if strings.Contains(s.log.String(), "4111 1111") || strings.Contains(s.log.String(), "8031234567") {
		t.Error("the log holds what was written, or by whom")
	}
	s.want(s.ask("GET", chat+"?after=1&wait=1", s.key, ""), http.StatusOK, map[string]string{"data.nextCursor": "1", "data.items": "[]"})
	s.want(s.ask("GET", chat+"?wait=31", s.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	s.want(s.ask("POST", chat, s.key, `{"text":""}`), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	s.want(s.ask("POST", "/v1/test/phones/08099999999/messages", s.key, `{"text":"hi"}`), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	s.want(s.ask("DELETE", "/v1/test/phones/08031234567", s.key, ""), http.StatusOK, nil)
	s.want(s.ask("POST", "/v1/test/phones", s.key, ""), http.StatusCreated, nil)
	s.want(s.ask("GET", "/v1/test/whatsapp/pairing", s.key, ""), http.StatusOK, map[string]string{"data.pairing": "2@abc", "data.waiting": "true"})
}

func TestTheBankAndTheClockObey(t *testing.T) {
	s := open(t)
	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{"up":false}`), http.StatusOK, map[string]string{"data.up": "false"})
	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{}`), http.StatusOK, map[string]string{"data.up": "true"})
	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{"notifyLossPercent":101}`), http.StatusBadRequest, nil)
	id := s.session(`,"expiresInMinutes":5`)
	s.want(s.ask("POST", "/v1/test/clock", s.key, `{}`), http.StatusBadRequest, map[string]string{"error.code": "missing_field"})
	r := s.ask("POST", "/v1/test/clock", s.key, `{"advanceSeconds":3600}`)
	s.want(r, http.StatusOK, nil)
	if r.text("data.now") < s.ask("GET", sessions+"/"+id, s.key, "").text("data.expiresAt") {
		t.Errorf("the clock stands: %s", r.body)
	}
	far := s.ask("POST", "/v1/test/clock", s.key, `{"advanceSeconds":34560000}`)
	s.want(far, http.StatusOK, nil)
	s.want(s.ask("POST", "/v1/test/clock", s.key, `{"advanceSeconds":34560000}`), http.StatusBadRequest, map[string]string{
		"error.code": "invalid_field", "error.fields.0.field": "advanceSeconds",
	})
	if now := s.ask("POST", "/v1/test/clock", s.key, `{"advanceSeconds":0}`).text("data.now"); now[:10] != far.text("data.now")[:10] {
		t.Errorf("the clock was moved too far all the same, to %s", now)
	}
}

// Where strangers share the numbers nobody moves the clock of the others, and the
// number is linked with no phone of theirs.
func TestAServerKeepsItsClockAndItsNumber(t *testing.T) {
	s := open(t)
	s.server.cfg.AdvanceClock, s.server.cfg.TestPairing = nil, nil
	s.server.cfg.Pairing = func() (string, bool) { return "2@the operator's", true }
	s.want(s.ask("POST", "/v1/test/clock", s.key, `{"advanceSeconds":1}`), http.StatusForbidden, map[string]string{"error.code": "test_only"})
	s.want(s.ask("GET", "/v1/test/whatsapp/pairing", s.key, ""), http.StatusOK, map[string]string{"data.waiting": "false", "data.pairing": ""})
}

// Nor does anybody break the bank for the others there, whatever it does wrong; one
// that is broken is healed.
func TestAServerKeepsItsBank(t *testing.T) {
	s := open(t)
	const conditions = "/v1/test/bank/conditions"
	s.want(s.ask("PUT", conditions, s.key, `{"refunds":"fail"}`), http.StatusOK, map[string]string{"data.refunds": "fail"})
	s.server.cfg.SharedBank = true
	for _, body := range []string{`{"up":false}`, `{"latencyMs":1}`, `{"timeoutAfterCommit":true}`, `{"notifyLossPercent":1}`, `{"duplicatePercent":1}`, `{"refunds":"fail"}`, `{"payouts":"pending"}`} {
		s.want(s.ask("PUT", conditions, s.key, body), http.StatusForbidden, map[string]string{"error.code": "test_only"})
	}
	s.want(s.ask("PUT", conditions, s.key, `{"up":true,"latencyMs":0,"refunds":"ok"}`), http.StatusOK, map[string]string{"data.up": "true", "data.refunds": "ok"})
}

func TestThePhonePageIsThisMachinesAlone(t *testing.T) {
	s := open(t)
	for _, file := range []string{"/phone", "/phone/phone.js", "/phone/phone.css"} {
		r := s.ask("GET", file, "", "")
		if r.status != http.StatusOK || !strings.Contains(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", file, r.status, r.header)
		}
		if r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s lets other sites in", file)
		}
	}
	for _, name := range []string{"/phone/phone.go", "/phone/x.js", "/phone/static"} {
		s.want(s.ask("GET", name, "", ""), http.StatusNotFound, nil)
	}
	s.want(s.ask("GET", "/phone/api/phones", "", ""), http.StatusForbidden, map[string]string{"error.code": "test_only"})
	s.want(s.ask("GET", "/phone/api/phones", "", "", fromPage()), http.StatusOK, nil)
	s.want(s.ask("POST", "/phone/api/phones", "", `{"pushName":"Ada"}`, fromPage()), http.StatusCreated, nil)
	s.server.cfg.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} // of this machine, and reached from others
	addr := s.listen()
	for from, want := range map[string]int{"203.0.113.7": 403, "::ffff:203.0.113.7": 403, "2001:db8::1": 403, "127.0.0.1": 200, "::1": 200} {
		statuses, _ := probe(t, addr, "GET /phone/api/phones HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: "+from+"\r\nX-Till-Phone: 1\r\nConnection: close\r\n\r\n")
		if len(statuses) != 1 || statuses[0] != want {
			t.Errorf("from %s: want %d, got %v", from, want, statuses)
		}
	}
	for host, want := range map[string]int{"evil.example": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403, "localhost:8080": 200, "127.0.0.1:1": 200, "[::1]": 200} {
		statuses, _ := probe(t, addr, "GET /phone/api/phones HTTP/1.1\r\nHost: "+host+"\r\nX-Till-Phone: 1\r\nConnection: close\r\n\r\n")
		if len(statuses) != 1 || statuses[0] != want {
			t.Errorf("%s: want %d, got %v", host, want, statuses)
		}
	}
	for _, word := range []string{"X-Real-IP: 203.0.113.7", "Forwarded: for=203.0.113.7", "Via: 1.1 proxy", "X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 203.0.113.7"} { // proxies that have no X-Forwarded-For
		statuses, _ := probe(t, addr, "GET /phone/api/phones HTTP/1.1\r\nHost: localhost\r\n"+word+"\r\nX-Till-Phone: 1\r\nConnection: close\r\n\r\n")
		if len(statuses) != 1 || statuses[0] != http.StatusForbidden {
			t.Errorf("%s: want 403, got %v", word, statuses)
		}
	}
	if statuses, _ := probe(t, addr, "GET /phone HTTP/1.0\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n"); len(statuses) != 1 || statuses[0] != http.StatusNotFound {
		t.Errorf("by a proxy that says nothing of itself, as nginx is by default: %v", statuses)
	}
	if statuses, _ := probe(t, addr, "GET /phone/api/phones HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nX-Till-Phone: 1\r\nConnection: close\r\n\r\n"); len(statuses) != 1 || statuses[0] != http.StatusOK {
		t.Errorf("from here, by a proxy that says so in two ways: %v", statuses)
	}
	r := s.ask("GET", "/wa.me/2348000000001?text=Pay%207K3M-9QTX", "", "")
	if r.status != http.StatusFound || r.header.Get("Location") != "/phone?text=Pay+7K3M-9QTX" {
		t.Errorf("%d %v", r.status, r.header)
	}
}

// live opens the stream of what a phone shows, as its page does.
func (s *shop) live(phone string) (body io.Reader) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.listen()+phone+"/live", http.NoBody)
	must(s.t, err)
	r.Header = fromPage()
	answer, err := http.DefaultClient.Do(r)
	must(s.t, err)
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.t.Fatalf("%d %s", answer.StatusCode, kind)
	}
	return answer.Body
}

// What a phone shows is told live: to its own page, and to nobody else's.
func TestAPhoneIsLookedAtLive(t *testing.T) {
	s := open(t)
	phone := "/phone/api/phones/" + strings.TrimPrefix(s.ask("POST", "/phone/api/phones", "", `{"pushName":"Ada"}`, fromPage()).text("data.phone"), "+")
	s.want(s.ask("GET", phone+"/live", "", ""), http.StatusForbidden, map[string]string{"error.code": "test_only"})
	s.want(s.ask("GET", "/phone/api/phones/2348099999999/live", "", "", fromPage()), http.StatusNotFound, nil)
	s.want(s.ask("POST", phone+"/read", "", "", fromPage()), http.StatusOK, map[string]string{"data.read": "true"})
	s.want(s.ask("POST", "/phone/api/phones/2348099999999/read", "", "", fromPage()), http.StatusNotFound, nil)
	lines := bufio.NewScanner(s.live(phone))
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("%q never came: %v", text, lines.Err())
	}
	until(`"messages":[]`)
	s.want(s.ask("POST", phone+"/messages", "", `{"text":"hello","quoted":"M7"}`, fromPage()), http.StatusCreated, nil)
	until(`{"typing":true,"messages":[{"id":"M0","text":"hello","fromMe":true,"at":"2027-01-15T08:00:00.000Z","status":"sent","quoted":"M7"}]}`)
}

func TestThePhonePagePays(t *testing.T) {
	s := open(t)
	id := s.session("")
	account := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, "").text("data.accountNumber")
	s.want(s.ask("POST", "/phone/api/bank/transfers", "", `{"accountNumber":"`+account+`"}`, fromPage()), http.StatusOK, map[string]string{"data.amountMinor": "500000"})
	other := s.session("")
	code := s.ask("POST", sessions+"/"+other+"/pay/ussd", s.key, "").text("data.paymentCode")
	s.want(s.ask("POST", "/phone/api/ussd/"+code+"/complete", "", `{"outcome":"success"}`, fromPage()), http.StatusOK, nil)
	for _, paid := range []string{id, other} {
		s.want(s.ask("GET", sessions+"/"+paid, s.key, ""), http.StatusOK, map[string]string{"data.status": "PAID"})
	}
}

func TestThePageIsPlainAndSmall(t *testing.T) {
	files := os.DirFS("phone/static")
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".js") && len(body) > 15_000 {
			t.Errorf("%s has %d bytes", name, len(body))
		}
		if regexp.MustCompile(`innerHTML|insertAdjacentHTML|\beval\(|\son[a-z]+="|style="|<script>|<style|//[a-z0-9.-]+\.(com|net)`).Match(body) {
			t.Errorf("%s holds what the policy forbids", name)
		}
		return nil
	})
	must(t, err)
}

func TestOutsideDevelopmentThereIsNoPage(t *testing.T) {
	s := open(t)
	cfg := s.server.cfg
	cfg.Dev = false
	plain, err := New(cfg)
	must(t, err)
	s.server = plain
	for _, url := range []string{"/phone", "/phone/phone.js", "/phone/api/phones", "/wa.me/2348000000001?text=x"} {
		s.want(s.ask("GET", url, "", "", fromPage()), http.StatusNotFound, map[string]string{"error.code": "route_not_found"})
	}
}

func TestAPanicIsOneAnswerAndOneLine(t *testing.T) {
	s := open(t)
	s.server.cfg.Ready = nil
	s.server.cfg.TestBank = nil // nil inside an interface is a refusal; nil phones inside one would be a panic
	s.server.cfg.Phones = (*drawer)(nil)
	r := s.ask("GET", "/v1/test/phones", s.key, "")
	s.want(r, http.StatusInternalServerError, map[string]string{"error.code": "internal_error"})
	if strings.Contains(r.body, "nil pointer") || !strings.Contains(s.log.String(), "nil pointer") || !strings.Contains(s.log.String(), "phone.go") {
		t.Errorf("the stack is in the wrong place: %s\n%s", r.body, s.log)
	}
	s.want(s.ask("GET", "/livez", "", ""), http.StatusOK, nil)
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"0000000001"}`), http.StatusForbidden, map[string]string{"error.code": "test_only"})
}

// crashing are phones whose screens crash once they are looked at again.
type crashing struct{ Phones }

func (p crashing) Screen(ctx context.Context, phone flow.Phone, seen int64, wait time.Duration) (Screen, error) {
	if seen > 0 {
		panic("a screen fell down")
	}
	return p.Phones.Screen(ctx, phone, seen, wait)
}

// A crash under a live screen ends that screen alone, and is told with its stack.
func TestACrashUnderALiveScreenEndsItAlone(t *testing.T) {
	s := open(t)
	s.server.cfg.Phones = crashing{s.server.cfg.Phones}
	phone := "/phone/api/phones/" + strings.TrimPrefix(s.ask("POST", "/phone/api/phones", "", "", fromPage()).text("data.phone"), "+")
	if body, err := io.ReadAll(s.live(phone)); err != nil || !strings.HasPrefix(string(body), "event: screen\n") {
		t.Errorf("%q, %v", body, err)
	}
	if told := s.log.String(); !strings.Contains(told, "a screen fell down") || !strings.Contains(told, "phone_test.go") {
		t.Errorf("the log does not hold the crash with its stack: %s", told)
	}
}
