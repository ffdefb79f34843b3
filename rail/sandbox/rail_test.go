package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

// What each answer of a provider says about the deed.
func TestAnswersAreJudged(t *testing.T) {
	const whole = `{"reference":"ref","method":"bank_transfer","amount":500000,"accountNumber":"9000000000","expiresAt":"2031-01-01T00:00:00Z"}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"whole":           {201, whole, nil},
		"bad request":     {400, `{"error":{"code":"invalid_amount","message":"no"}}`, rail.ErrRejected},
		"no words":        {422, `<html>`, rail.ErrRejected},
		"conflict":        {409, `{"error":{"code":"reference_reused","message":"no"}}`, rail.ErrRejected},
		"unauthorized":    {401, ``, rail.ErrUnavailable},
		"too many":        {429, ``, rail.ErrUnavailable},
		"unavailable":     {503, ``, rail.ErrUnavailable},
		"fault":           {500, ``, rail.ErrUnknown},
		"gateway":         {502, ``, rail.ErrUnknown},
		"gateway timeout": {504, ``, rail.ErrUnknown},
		"redirect":        {307, ``, rail.ErrUnknown},
		"empty":           {200, ``, rail.ErrUnknown},
		"not JSON":        {200, `<html>`, rail.ErrUnknown},
		"half":            {200, whole[:len(whole)/2], rail.ErrUnknown},
		"too large":       {200, whole + strings.Repeat(" ", 70<<10), rail.ErrUnknown},
		"another order":   {200, strings.Replace(whole, `"ref"`, `"raf"`, 1), rail.ErrUnknown},
		"another amount":  {200, strings.Replace(whole, `500000`, `500001`, 1), rail.ErrUnknown},
		"another method":  {200, strings.Replace(whole, `bank_transfer`, `card`, 1), rail.ErrUnknown},
		"no account":      {200, strings.Replace(whole, `9000000000`, ``, 1), rail.ErrUnknown},
		// Readers differ in which of two they take.
		"two accounts":    {200, strings.Replace(whole, `{`, `{"accountNumber":"9111111111",`, 1), rail.ErrUnknown},
		"two, in capital": {200, strings.Replace(whole, `{`, `{"ACCOUNTNUMBER":"9111111111",`, 1), rail.ErrUnknown},
		"two of its own":  {200, strings.Replace(whole, `{`, `{"branch":{"id":1,"id":2},`, 1), nil},
		"no expiry":       {200, strings.Replace(whole, `"expiresAt":"2031-01-01T00:00:00Z"`, `"x":1`, 1), rail.ErrUnknown},
	} {
		hits := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits++
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		r := newRail(t, server.URL, time.Now, 0)
		_, err := r.Start(t.Context(), flow.Order{Reference: "ref", Method: flow.BankTransfer, Amount: 500_000})
		if !errors.Is(err, c.want) || hits != 1 {
			t.Errorf("%s: %v after %d calls; want %v", name, err, hits, c.want)
		}
		for _, other := range []error{rail.ErrRejected, rail.ErrUnavailable, rail.ErrUnknown} {
			if !errors.Is(c.want, other) && errors.Is(err, other) {
				t.Errorf("%s: %v is also %v", name, err, other)
			}
		}
		server.Close()
	}
}

// An answer with two values under one name is one that cannot be read: what it is about is
// not known, and asked for again.
func TestAnAmbiguousAnswerIsNotKnown(t *testing.T) {
	const moved = `{"seq":1,"id":"ttb_1","kind":"credit","reference":"ref","amount":500000,"channel":"bank_transfer","valueTime":"2026-01-01T00:00:00Z"}`
	const sent = `{"found":true,"reference":"ref","status":"done","railTransactionId":"ttb_2","at":"2026-01-01T00:00:00Z"}`
	const dial = `{"reference":"ref","method":"ussd","amount":500000,"paymentCode":"1234","dialCodes":[{"bankCode":"058","ussdCode":"*737*1#"}],"expiresAt":"2031-01-01T00:00:00Z"}`
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		whole, of, twice string
		ask              func(*sandbox.Rail) error
	}{
		"movements": {`{"items":[` + moved + `]}`, `"amount":500000`, `"amount":100000,`, func(r *sandbox.Rail) error {
			_, err := r.Check(t.Context(), "ref")
			return err
		}},
		"two lists of them": {`{"items":[` + moved + `]}`, `"items":[`, `"items":[],`, func(r *sandbox.Rail) error {
			_, err := r.Check(t.Context(), "ref")
			return err
		}},
		"statement": {`{"items":[` + moved + `]}`, `"kind":"credit"`, `"Kind":"reversal",`, func(r *sandbox.Rail) error {
			_, err := r.Statement(t.Context(), at, at.Add(time.Hour))
			return err
		}},
		"money that went out": {sent, `"status":"done"`, `"ſtatus":"failed",`, func(r *sandbox.Rail) error {
			_, err := r.Disbursed(t.Context(), "ref")
			return err
		}},
		"what to dial": {dial, `"ussdCode"`, `"ussdCode":"*1#",`, func(r *sandbox.Rail) error {
			_, err := r.Start(t.Context(), flow.Order{Reference: "ref", Method: flow.USSD, Amount: 500_000})
			return err
		}},
	} {
		answer := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		r := newRail(t, server.URL, time.Now, 0)
		if answer = c.whole; c.ask(r) != nil {
			t.Errorf("%s: the whole answer says %v", name, c.ask(r))
		}
		if answer = strings.Replace(c.whole, c.of, c.twice+c.of, 1); !errors.Is(c.ask(r), rail.ErrUnknown) {
			t.Errorf("%s: %s says %v", name, answer, c.ask(r))
		}
		server.Close()
	}
}

// Connections that break after the call was sent leave its outcome unknown.
func TestBrokenConnections(t *testing.T) {
	for name, speak := range map[string]func(net.Conn){
		"closed without a word": func(net.Conn) {},
		"half a status line":    func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 2") },
		"half a body":           func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{\"ref") },
		"other protocol":        func(c net.Conn) { fmt.Fprint(c, "220 smtp\r\n") },
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			speak(conn)
			_ = conn.Close()
		}()
		r := newRail(t, "http://"+ln.Addr().String(), time.Now, 2*time.Second)
		_, err = r.Start(t.Context(), flow.Order{Reference: "ref", Method: flow.BankTransfer, Amount: 500_000})
		if !errors.Is(err, rail.ErrUnknown) || errors.Is(err, rail.ErrUnavailable) {
			t.Errorf("%s: %v; want ErrUnknown", name, err)
		}
		_ = ln.Close()
		<-done
	}
}

// The caller's context ends a call before the rail's own patience does.
func TestContextEndsACall(t *testing.T) {
	w := openTown(t)
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, TimeoutAfterCommit: true}); err != nil {
		t.Fatal(err)
	}
	err := w.leaves(t, func(ctx context.Context) error {
		_, err := w.rail.Start(ctx, w.order(flow.Card, "ref"))
		return err
	})
	if !errors.Is(err, rail.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v", err)
	}
}

func TestNewRailRefuses(t *testing.T) {
	good := sandbox.RailConfig{BaseURL: "http://127.0.0.1:1", Secret: secret, Now: time.Now}
	for name, spoil := range map[string]func(*sandbox.RailConfig){
		"no URL":       func(c *sandbox.RailConfig) { c.BaseURL = "" },
		"no scheme":    func(c *sandbox.RailConfig) { c.BaseURL = "127.0.0.1:1" },
		"user":         func(c *sandbox.RailConfig) { c.BaseURL = "http://a:b@127.0.0.1:1" },
		"file":         func(c *sandbox.RailConfig) { c.BaseURL = "file:///x" },
		"no secret":    func(c *sandbox.RailConfig) { c.Secret = "" },
		"short secret": func(c *sandbox.RailConfig) { c.Secret = "short" },
		"no clock":     func(c *sandbox.RailConfig) { c.Now = nil },
	} {
		c := good
		spoil(&c)
		if _, err := sandbox.NewRail(c); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := sandbox.NewRail(good); err != nil {
		t.Errorf("good: %v", err)
	} else if err := r.Register(t.Context(), "http://127.0.0.1:2/"); !errors.Is(err, rail.ErrUnavailable) || strings.Contains(err.Error(), secret) {
		t.Errorf("Register with nobody there = %v", err)
	}
}

// A message of the bank that is signed and makes no sense is an error, not a
// forgery and not a notice.
func TestParseOfNonsense(t *testing.T) {
	r := newRail(t, "http://127.0.0.1:1", time.Now, 0)
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `{"kind":"credit"}`, `{"id":"a","kind":"gift","channel":"card","amount":1,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"cowries","amount":1,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":0,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":-5,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":1.5,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":1}`,
		// Readers differ in which of two they take, and in whose money a number is.
		`{"id":"a","kind":"credit","channel":"card","amount":1,"amount":500000,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":1,"AMOUNT":500000,"valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":1,"currency":"USD","valueTime":"2026-01-01T00:00:00Z"}`,
		`{"id":"a","kind":"credit","channel":"card","amount":1,"currency":"ngn","valueTime":"2026-01-01T00:00:00Z"}`,
	} {
		h := http.Header{}
		h.Set(sandbox.SignatureHeader, sandbox.Sign(secret, time.Now(), []byte(body)))
		if got, err := r.Parse(h, []byte(body)); err == nil || errors.Is(err, rail.ErrForged) || len(got) != 0 {
			t.Errorf("Parse(%s) = %+v, %v", body, got, err)
		}
	}
	// A bank that says no currency is one of before it said one; what it adds is its own business.
	for _, rest := range []string{``, `,"currency":"NGN"`, `,"branch":{"amount":7,"Amount":8}`} {
		body := []byte(`{"id":"a","kind":"credit","channel":"card","amount":1,"valueTime":"2026-01-01T00:00:00Z"` + rest + `}`)
		if got, err := r.Parse(http.Header{sandbox.SignatureHeader: {sandbox.Sign(secret, time.Now(), body)}}, body); err != nil || len(got) != 1 || got[0].Amount != 1 {
			t.Errorf("Parse(%s) = %+v, %v", body, got, err)
		}
	}
}

// FuzzParse: no message without the secret is taken, none with it panics, and
// what is taken makes sense.
func FuzzParse(f *testing.F) {
	at := time.Unix(1_767_225_600, 0)
	good := []byte(`{"seq":1,"id":"ttb_1","kind":"credit","reference":"wsp_ref_1","accountNumber":"9000000000","amount":500000,` +
		`"channel":"bank_transfer","valueTime":"2026-01-01T00:00:00Z","payerName":"A","payerBank":"B","payerAccount":"******1234"}`)
	f.Add(sandbox.Sign(secret, at, good), good)
	f.Add("t=1767225600,v1=00", good)
	f.Add("", []byte("{}"))
	f.Add("t=,v1=", []byte{})
	f.Add("t=-1,v1=ff,v1=ff", []byte("null"))
	r, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: "http://127.0.0.1:1", Secret: secret, Now: func() time.Time { return at }})
	must(f, err)
	f.Fuzz(func(t *testing.T, signature string, body []byte) {
		got, err := r.Parse(http.Header{sandbox.SignatureHeader: {signature}}, body)
		if err == nil && signature != sandbox.Sign(secret, at, body) {
			// Another second within the tolerance is the one other good signature.
			var s int64
			if _, scanErr := fmt.Sscanf(signature, "t=%d,", &s); scanErr != nil || signature != sandbox.Sign(secret, time.Unix(s, 0), body) {
				t.Fatalf("taken with the signature %q: %+v", signature, got)
			}
		}
		got, err = r.Parse(http.Header{sandbox.SignatureHeader: {sandbox.Sign(secret, at, body)}}, body)
		if errors.Is(err, rail.ErrForged) && len(body) <= 64<<10 {
			t.Fatalf("refused with a good signature: %v", err)
		}
		for _, n := range got {
			if n.RailTransactionID == "" || n.Amount < 1 || n.PaidAt.IsZero() {
				t.Fatalf("taken: %+v", n)
			}
		}
	})
}
