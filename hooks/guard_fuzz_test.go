package hooks_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"till/hooks"
)

// FuzzCheckURL holds what must be true of any URL that is let through: https
// to a name or a public address, and nothing that another reader of the same
// text could take for something else.
func FuzzCheckURL(f *testing.F) {
	for _, r := range urls(f) {
		f.Add(r.value)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		strict := hooks.CheckURL(raw, hooks.Allow{})
		loose := hooks.CheckURL(raw, hooks.Allow{Loopback: true})
		if strict == nil && loose != nil {
			t.Fatalf("%q: allowing more refuses it: %v", raw, loose)
		}
		if loose != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if strict == nil && u.Scheme != "https" {
			t.Fatalf("%q: %s", raw, u.Scheme)
		}
		if len(raw) > 2048 || u.User != nil || strings.ContainsAny(u.Host, "@\\%") {
			t.Fatalf("%q was let through", raw)
		}
		if port := u.Port(); port != "" {
			if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
				t.Fatalf("%q: port %s", raw, port)
			}
		}
		host := u.Hostname()
		if to := dialled(t, raw); to != net.JoinHostPort(host, portOf(u)) {
			t.Fatalf("%q: the transport dials %q", raw, to)
		}
		if a, err := netip.ParseAddr(host); err == nil {
			if strict == nil && hooks.Refused(a, false) != nil || hooks.Refused(a, true) != nil {
				t.Fatalf("%q: %s", raw, a)
			}
			return
		}
		if aton(host) || strings.HasSuffix(host, ".") || host == "localhost" && strict == nil {
			t.Fatalf("%q: some resolvers read an address in %q", raw, host)
		}
	})
}

// dialled is where a transport would connect to for a URL. It never does.
func dialled(t *testing.T, raw string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, raw, http.NoBody)
	if err != nil {
		t.Fatalf("%q: no request can be made of it: %v", raw, err)
	}
	to := make(chan string, 1)
	never := &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		to <- address
		return nil, errors.ErrUnsupported
	}}
	if resp, err := never.RoundTrip(req); err == nil {
		resp.Body.Close()
		t.Fatalf("%q: %s", raw, resp.Status)
	}
	select {
	case address := <-to:
		return address
	default:
		return "" // refused without dialling
	}
}

// portOf is the port of a URL, said or not.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// aton says whether inet_aton would read a host: one to four numbers, each
// decimal, octal or hexadecimal, the last one filling what is left.
func aton(host string) bool {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return false
	}
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 0, 64); err != nil || strings.Contains(p, "_") {
			return false
		}
	}
	return true
}
