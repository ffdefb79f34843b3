package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"till/api/console"
	"till/flow"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		``:                                        ``,
		`{"amount":500000,"reference":"a-1"}`:     `{"amount":500000,"reference":"a-1"}`,
		`{"clientSecret":"cs_x","a":1}`:           `{"clientSecret":"[redacted]","a":1}`,
		`{"BVN" : 22222222222 ,"a":1}`:            `{"BVN":"[redacted]","a":1}`,
		`{"pin":[1,{"x":"]"}],"a":1}`:             `{"pin":"[redacted]","a":1}`,
		`{"p\u0069n":"1","a":1}`:                  `{"p\u0069n":"[redacted]","a":1}`,
		`{"otp":"12\"34","a":1}`:                  `{"otp":"[redacted]","a":1}`,
		`{"password":"never closed`:               `{"password":"[redacted]"`,
		`{"note":"4084 0840-8408 4081"}`:          `{"note":"**** ****-**** ****"}`,
		`{"note":4084084084084081}`:               `{"note":****************}`,
		`{"note":"\u0034084084084084081"}`:        `{"note":"[redacted]"}`,
		`{"n\u0034ote":"x"}`:                      `{"[redacted]":"x"}`,
		`{"phone":"+2348031234567"}`:              `{"phone":"+*************"}`,
		`{"accountNumber":"9603547959"}`:          `{"accountNumber":"9603547959"}`,
		`{"at":"2026-11-22T12:28:37.676Z"}`:       `{"at":"2026-11-22T12:28:37.676Z"}`,
		`{"id":"evt_01000000000000000000000000"}`: `{"id":"evt_01000000000000000000000000"}`,
		`{"note":"my sk_test_abcDEF123 is"}`:      `{"note":"my sk_test_********* is"}`,
		`whsec_abc+/= and dash_xyz`:               `whsec_****** and dash_***`,
		`not json 22222222222`:                    `not json ***********`,
		`{"note":"4084.0840.8408.4081","a":1}`:    `{"note":"[redacted]","a":1}`,
		`{"note":"４０８４０８４０８４０８４０８１"}`:             `{"note":"[redacted]"}`,
		`{"note":"4084\u200b084084084081"}`:       `{"note":"[redacted]"}`,
		`{"note":"4084\u2013084084084081"}`:       `{"note":"[redacted]"}`,
		`{"note":"card4084084084084081x"}`:        `{"note":"[redacted]"}`,
		`{"note":"BVN22222222222"}`:               `{"note":"[redacted]"}`,
		`{"note":"my BVN is 222.22.222222"}`:      `{"note":"[redacted]"}`,
		`{"note":"say \"4.5.2026\""}`:             `{"note":"say \"4.5.2026\""}`,
		`not json 4084.0840.8408.4081`:            `"[redacted]"`,
	} {
		kept, cut := redact([]byte(in))
		if string(kept) != want || cut {
			t.Errorf("%s\nis kept as %s\n     not as %s (cut %v)", in, kept, want, cut)
		}
	}
}

// A number in an address is masked however it is escaped.
func TestTargetsAreMasked(t *testing.T) {
	for in, want := range map[string]string{
		"/v1/x?phone=2348031234567":                 "/v1/x?phone=*************",
		"/v1/x?phone=%2B2348031234567&a=1":          "/v1/x?phone=+*************&a=1",
		"/v1/x?phone=0803%20123%204567":             "/v1/x?phone=****+***+****",
		"/v1/x?phone=%30803%31234567":               "/v1/x?phone=***********",
		"/v1/x?cursor=a%3Db&limit=20":               "/v1/x?cursor=a%3Db&limit=20",
		"/v1/x?phone=%2B2348031234567%2":            "/v1/x?phone=+*************",
		"/v1/x?q=50%25%20of%20it":                   "/v1/x?q=50%25%20of%20it",
		"/v1/x/wsp_sess_01000000000000000000000":    "/v1/x/wsp_sess_01000000000000000000000",
		"/v1/x?q=4084+0840+8408+4081":               "/v1/:id?****",
		"/v1/x/4084.0840.8408.4081":                 "/v1/:id?****",
		"/v1/x?q=sk_test_" + "abcdefghijklmnopqrst": "/v1/:id?****",
	} {
		if got := maskTarget([]byte(in), "/v1/:id"); got != want {
			t.Errorf("%s is kept as %s, not as %s", in, got, want)
		}
	}
}

// TestRedactCuts sees that nothing longer than the bound is kept, and that no cut
// leaves a part of a number.
func TestRedactCuts(t *testing.T) {
	for fill := range 40 {
		body := []byte(`{"note":"` + strings.Repeat("x", keptBody-40+fill) + ` 4084084084084081"}`)
		before := bytes.Clone(body)
		kept, cut := redact(body)
		if len(kept) > keptBody || bytes.Contains(kept, []byte("4")) || cut != (len(body) > keptBody) {
			t.Fatalf("of %d bytes %d are kept, cut %v: …%s", len(body), len(kept), cut, kept[len(kept)-30:])
		}
		if !bytes.Equal(before, body) {
			t.Fatal("the body itself was changed")
		}
	}
}

// TestRequestLogIsBounded holds both bounds: of a project, and of all.
func TestRequestLogIsBounded(t *testing.T) {
	l := newRequestLog()
	for i := range requestsKept + 10 {
		l.add(requestPlace{"p", flow.Test}, &console.Request{ID: fmt.Sprint(i)})
	}
	all, more := l.Requests("p", flow.Test, 0, "", 1000)
	if len(all) != requestsKept || more || all[0].ID != fmt.Sprint(requestsKept+9) || all[len(all)-1].ID != "10" {
		t.Fatalf("%d are kept, from %s to %s", len(all), all[0].ID, all[len(all)-1].ID)
	}
	if next, more := l.Requests("p", flow.Test, 0, all[2].ID, 2); len(next) != 2 || next[0].ID != all[3].ID || !more {
		t.Errorf("the second page is %v", next)
	}
	for i := range 10_000 {
		l.add(requestPlace{flow.ProjectID(fmt.Sprint(i % 40)), flow.Live}, &console.Request{ID: "x", Body: make([]byte, keptBody), Answer: make([]byte, keptBody)})
	}
	if l.bytes > requestsBytes || l.bytes < requestsBytes/2 || l.order.Len() != len(l.places) {
		t.Errorf("%d bytes are kept in %d places, %d known", l.bytes, l.order.Len(), len(l.places))
	}
	if _, found := l.Request("p", flow.Test, "20"); found {
		t.Error("what is oldest outlived what is new")
	}
}

// TestRequestLogSparesItself keeps so many bodies of a second and no more, and
// every request all the same.
func TestRequestLogSparesItself(t *testing.T) {
	l := newRequestLog()
	at := time.UnixMilli(1_800_000_000_000)
	send := func(times int, at time.Time) (whole, busy int) {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI("/v1/balance")
		ctx.Response.SetBodyString(`{"status":true}`)
		for i := range times {
			l.note(&ctx, &noted{request: fmt.Sprint(at.Unix(), i), project: "p", env: flow.Test}, at, 0)
		}
		all, _ := l.Requests("p", flow.Test, 0, "", times)
		for _, r := range all {
			if r.Busy {
				busy++
			} else if len(r.Answer) > 0 {
				whole++
			}
		}
		return whole, busy
	}
	if whole, busy := send(bodiesEach+7, at); whole != bodiesEach || busy != 7 {
		t.Errorf("of one second %d are whole and %d are not", whole, busy)
	}
	if whole, busy := send(3, at.Add(time.Second)); whole != 3 || busy != 0 {
		t.Errorf("of the next second %d are whole and %d are not", whole, busy)
	}
}

// BenchmarkRequestLog is what it costs a request that it is kept for the console.
func BenchmarkRequestLog(b *testing.B) {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(http.MethodPost)
	ctx.Request.SetRequestURI("/v1/whatsapp/checkout/sessions")
	ctx.Request.SetBodyString(`{"amount":500000,"customerEmail":"ada@example.com","mode":"headless","metadata":{"cart":"7"}}`)
	ctx.Response.SetStatusCode(http.StatusCreated)
	ctx.Response.SetBodyString(`{"status":true,"data":{` +
		strings.Repeat(`"accountNumber":"9603547959","amountMinor":"500000","createdAt":"2026-11-22T12:28:37.676Z",`, 14) + `"clientSecret":"cs_x"}}`)
	l, n := newRequestLog(), &noted{request: "req_x", route: "/v1/whatsapp/checkout/sessions", project: "p", env: flow.Test}
	b.ReportAllocs()
	for b.Loop() {
		l.note(&ctx, n, time.Time{}, time.Millisecond)
	}
}
