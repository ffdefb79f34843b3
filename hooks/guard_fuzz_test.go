package hooks_test

import (
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
	for _, r := range table(f, "urls.txt") {
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
