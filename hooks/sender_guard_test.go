package hooks_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/hooks"
)

// A name that leads to an open address once and inside the next time gains
// nothing: each connection is judged by the address it is made to. Loopback
// plays the open address here.
func TestSendSurvivesRebinding(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that the next delivery resolves anew
	}))
	t.Cleanup(s.Close)
	url := strings.Replace(s.URL, "127.0.0.1", "rebind.example.com", 1)
	for _, inside := range []string{"10.0.0.1", "169.254.169.254", "192.168.0.1", "100.100.100.200", "0.0.0.0", "224.0.0.1"} {
		resolver, asked := names("127.0.0.1", inside)
		se := sender(t, func(c *hooks.Config) {
			c.Resolver = resolver
			c.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		})
		if v := se.Send(t.Context(), to(t, url)); !v.OK {
			t.Errorf("first: verdict %+v", v)
		}
		if v := se.Send(t.Context(), to(t, url)); v.OK || v.Err != hooks.WordGuard {
			t.Errorf("then %s: verdict %+v", inside, v)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	}
}

// A URL without a port means that of its scheme.
func TestSendDialsThePortOfItsScheme(t *testing.T) {
	for url, want := range map[string]string{
		"https://8.8.8.8/hook": "8.8.8.8:443", "https://8.8.8.8:8443/hook": "8.8.8.8:8443",
		"http://127.0.0.1/hook": "127.0.0.1:80",
	} {
		var dialled []string
		se := hooks.NewWatched(hooks.Config{Now: time.Now, AllowLoopback: true}, func(address string, verdict error, _ syscall.RawConn) error {
			dialled = append(dialled, address)
			return errors.Join(verdict, hooks.ErrAddress) // nothing is sent
		})
		if v := se.Send(t.Context(), to(t, url)); v.Err != hooks.WordGuard || !slices.Equal(dialled, []string{want}) {
			t.Errorf("%s dials %v: %+v", url, dialled, v)
		}
	}
}

func TestSendToANameThatIsNot(t *testing.T) {
	resolver, _ := names()
	se := sender(t, func(c *hooks.Config) { c.Resolver = resolver })
	if v := se.Send(t.Context(), to(t, "https://hook.example.com/")); v.OK || v.Err != hooks.WordDNS {
		t.Errorf("verdict %+v", v)
	}
}

// A proxy would resolve and dial for us, past the guard; the environment must
// not be able to name one.
func TestSendIgnoresProxies(t *testing.T) {
	req := httptest.NewRequest(http.MethodPost, "https://hook.example.com/", http.NoBody)
	if u, err := http.ProxyFromEnvironment(req); err != nil || u == nil || u.String() != proxy {
		t.Fatalf("the environment names %v, %v", u, err)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	resolver, _ := names("127.0.0.1")
	se := sender(t, func(c *hooks.Config) {
		c.Resolver = resolver
		c.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	})
	if v := se.Send(t.Context(), to(t, strings.Replace(s.URL, "127.0.0.1", "hook.example.com", 1))); !v.OK {
		t.Errorf("verdict %+v", v)
	}
}
