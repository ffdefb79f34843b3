package hooks_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/hooks"
)

// What a merchant's server gets is what the contract promises, and the library
// of the Standard Webhooks authors verifies it as it arrived.
func TestSendArrives(t *testing.T) {
	got := make(chan *http.Request, 1)
	body := make(chan []byte, 1)
	s := sink(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r
		body <- b
		io.WriteString(w, "thank you")
	})
	v := sender(t, nil).Send(t.Context(), to(t, s.URL+"/hook?project=1"))
	if !v.OK || v.Status != 200 || v.Err != "" || string(v.Body) != "thank you" || v.URL != s.URL+"/hook?project=1" || v.Duration <= 0 {
		t.Errorf("verdict %+v", v)
	}
	r := <-got
	if err := verifier(t, secret(t, 1)).Verify(<-body, r.Header); err != nil {
		t.Error(err)
	}
	if r.Method != http.MethodPost || r.RequestURI != "/hook?project=1" || r.ContentLength != 14 {
		t.Errorf("%s %s with %d bytes", r.Method, r.RequestURI, r.ContentLength)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Webhook-Id": "evt_1", "User-Agent": "Till-Webhooks/1", "Accept-Encoding": "",
	} {
		if value := r.Header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
}

func TestSendJudgesStatusAndRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		after  string
		want   hooks.Verdict
	}{
		{200, "", hooks.Verdict{OK: true}},
		{201, "60", hooks.Verdict{OK: true}}, // a success asks for nothing
		{204, "", hooks.Verdict{OK: true}},
		{299, "", hooks.Verdict{OK: true}},
		{300, "", hooks.Verdict{Err: hooks.WordRedirect}},
		{304, "", hooks.Verdict{Err: hooks.WordRedirect}},
		{399, "", hooks.Verdict{Err: hooks.WordRedirect}},
		{400, "", hooks.Verdict{Err: hooks.WordStatus}},
		{404, "", hooks.Verdict{Err: hooks.WordStatus}},
		{410, "", hooks.Verdict{Err: hooks.WordGone, Gone: true}},
		{500, "", hooks.Verdict{Err: hooks.WordStatus}},
		{999, "", hooks.Verdict{Err: hooks.WordStatus}},
		{429, "120", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 2 * time.Minute}},
		{429, " 7 ", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 7 * time.Second}},
		{429, "0", hooks.Verdict{Err: hooks.WordStatus}},
		{429, "86400", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 24 * time.Hour}},
		{429, "86401", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 24 * time.Hour}},
		{503, strings.Repeat("9", 64), hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 24 * time.Hour}},
		{503, strings.Repeat("9", 65), hooks.Verdict{Err: hooks.WordStatus}},
		{503, "99999999999999999999999", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 24 * time.Hour}},
		{503, "Thu, 01 Jan 2026 12:10:00 GMT", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 10 * time.Minute}},
		{503, "Thursday, 01-Jan-26 12:10:00 GMT", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 10 * time.Minute}},
		{503, "Thu, 01 Jan 2026 11:00:00 GMT", hooks.Verdict{Err: hooks.WordStatus}},
		{503, "Fri, 01 Jan 2077 12:00:00 GMT", hooks.Verdict{Err: hooks.WordStatus, RetryAfter: 24 * time.Hour}},
		{503, "soon", hooks.Verdict{Err: hooks.WordStatus}},
		{503, "-5", hooks.Verdict{Err: hooks.WordStatus}},
		{503, "1.5", hooks.Verdict{Err: hooks.WordStatus}},
		{503, "1e3", hooks.Verdict{Err: hooks.WordStatus}},
	} {
		s := sink(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.status)
		})
		v := sender(t, func(c *hooks.Config) { c.Now = func() time.Time { return now } }).Send(t.Context(), to(t, s.URL))
		if v.Status != c.status || v.OK != c.want.OK || v.Err != c.want.Err || v.Gone != c.want.Gone || v.RetryAfter != c.want.RetryAfter {
			t.Errorf("%d with Retry-After %q: %+v", c.status, c.after, v)
		}
		s.Close()
	}
}

// No redirect is followed, wherever it leads and however it is spelled.
func TestSendFollowsNoRedirect(t *testing.T) {
	other := "http://" + sentinel(t).String()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{other + "/stolen", "/again", "", "http://[broken", "http://user@127.0.0.1/"} {
			var calls atomic.Int32
			s := sink(t, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				if location != "" {
					w.Header().Set("Location", location)
				}
				w.WriteHeader(status)
			})
			v := sender(t, nil).Send(t.Context(), to(t, s.URL))
			if v.OK || v.Err != hooks.WordRedirect || v.Status != status || calls.Load() != 1 {
				t.Errorf("%d to %q: %+v after %d calls", status, location, v, calls.Load())
			}
			s.Close()
		}
	}
}

// Deliveries to one endpoint share a connection: a new one each time costs
// thirteen times as much over TLS.
func TestSendKeepsConnections(t *testing.T) {
	var opened atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		w.Write(make([]byte, 32<<10)) // more than is kept, less than is read
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	se := sender(t, nil)
	for range 5 {
		if v := se.Send(t.Context(), to(t, s.URL)); v.Status != 500 || len(v.Body) != 4096+256 {
			t.Errorf("verdict %d with %d bytes", v.Status, len(v.Body))
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 5 deliveries", n)
	}
}

func TestSendByManyAtOnce(t *testing.T) {
	s := sink(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	se := sender(t, nil)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 10 {
				if v := se.Send(t.Context(), to(t, s.URL)); !v.OK {
					t.Errorf("verdict %+v", v)
				}
			}
		})
	}
	all.Wait()
}

// A delivery that was stopped by us is told apart from one that failed: it is
// no attempt.
func TestSendStopped(t *testing.T) {
	arrived := make(chan struct{})
	s := sink(t, func(_ http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-t.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	se := sender(t, nil)
	if v := se.Send(ctx, to(t, s.URL)); v.OK || v.Err != hooks.WordStopped {
		t.Errorf("verdict %+v", v)
	}
	if v := se.Send(ctx, to(t, s.URL)); v.OK || v.Err != hooks.WordStopped {
		t.Errorf("already stopped: verdict %+v", v)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if v := se.Send(late, to(t, s.URL)); v.OK || v.Err != hooks.WordTimeout {
		t.Errorf("the caller's deadline: verdict %+v", v)
	}
}

func TestSendUnsendable(t *testing.T) {
	url := "http://" + sentinel(t).String()
	for name, change := range map[string]func(*hooks.Request){
		"no secret":    func(r *hooks.Request) { r.Secrets = nil },
		"broken":       func(r *hooks.Request) { r.Secrets = []string{"whsec_"} },
		"no id":        func(r *hooks.Request) { r.ID = "" },
		"id with line": func(r *hooks.Request) { r.ID = "evt\r\nHost: x" },
		"no time":      func(r *hooks.Request) { r.At = time.Time{} },
	} {
		r := to(t, url)
		change(&r)
		if v := sender(t, nil).Send(t.Context(), r); v.OK || v.Err != hooks.WordUnsendable || !v.Ours || !v.Unsent || v.Status != 0 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	large := to(t, url)
	large.Body = make([]byte, 256<<10+1)
	if v := sender(t, nil).Send(t.Context(), large); v.OK || v.Err != hooks.WordTooLarge || !v.Ours || v.Unsent || v.Status != 0 {
		t.Errorf("too large: %+v", v)
	}
}

func TestNewNeedsAClock(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("made without a clock")
		}
	}()
	hooks.New(hooks.Config{})
}
