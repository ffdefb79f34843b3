package hooks_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"till/hooks"
)

// errNotDialled ends a delivery to an address that the guard allows and that no
// test may connect to.
var errNotDialled = errors.New("allowed, but not dialled")

// judged is what the guard was asked.
type judged struct {
	mu               sync.Mutex
	allowed, refused []netip.Addr
}

// watch keeps what the guard says of an address. It lets nothing be dialled but
// this machine, where a sentinel listens.
func (j *judged) watch(address string, verdict error, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if verdict != nil {
		j.refused = append(j.refused, to.Addr())
		return verdict
	}
	j.allowed = append(j.allowed, to.Addr())
	if !to.Addr().IsLoopback() {
		return errNotDialled
	}
	return nil
}

// guarded is a Sender that judges as any other does and dials this machine only.
func guarded(t *testing.T, loopback bool, r *net.Resolver) (*hooks.Sender, *judged) {
	t.Helper()
	j := new(judged)
	c := settings()
	c.AllowLoopback, c.Resolver = loopback, r
	se := hooks.NewWatched(c, j.watch)
	t.Cleanup(se.Close)
	return se, j
}

// toPort puts a port behind the host of a URL that has none, however the host is
// spelled.
func toPort(raw string, port uint16) (string, bool) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	host := rest[strings.LastIndex(rest[:end], "@")+1 : end]
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return "", false
	}
	return fmt.Sprintf("%s://%s:%d%s", scheme, rest[:end], port, rest[end:]), true
}

// Whatever CheckURL refuses is refused again at each delivery: no name is asked
// for, no address judged, and the sentinel, to whose port each URL leads as well
// and which every name would lead to, hears nothing.
func TestSendRefusesHostileURLs(t *testing.T) {
	at := sentinel(t)
	here, asked := names("127.0.0.1")
	for _, loopback := range []bool{false, true} {
		se, j := guarded(t, loopback, here)
		n := 0
		for _, r := range urls(t) {
			if expect(r.class, loopback) {
				continue
			}
			all := []string{r.value}
			if other, ok := toPort(r.value, at.Port()); ok {
				all = append(all, other)
			}
			for _, u := range all {
				n++
				if v := se.Send(t.Context(), to(t, u)); v.OK || v.Err != hooks.WordGuard || v.Status != 0 {
					t.Errorf("%q, loopback allowed %t: verdict %+v", u, loopback, v)
				}
			}
		}
		if n < 600 || len(j.allowed)+len(j.refused) != 0 {
			t.Errorf("of %d URLs were %v allowed and %v refused only when dialled", n, j.allowed, j.refused)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d names were asked for", n)
	}
}

// What CheckURL lets pass is judged again by the address: a good name that leads
// inside is refused between resolving and connecting, for every name and every
// way inside.
func TestSendJudgesWhereNamesLead(t *testing.T) {
	at := sentinel(t)
	var names, inside []string
	for _, r := range table(t, "endpoints.txt", true) {
		u, err := url.Parse(r.value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := netip.ParseAddr(u.Hostname()); err == nil || r.class != "open" {
			continue
		}
		names = append(names, r.value)
		if other, ok := toPort(r.value, at.Port()); ok {
			names = append(names, other)
		}
	}
	for _, r := range addresses(t) {
		if r.class == "shut" && !strings.Contains(r.value, "%") { // a name never leads to a zone
			inside = append(inside, r.value)
		}
	}
	for _, loopback := range []bool{false, true} {
		ways := []string{"10.0.0.1", "169.254.169.254", "0.0.0.0", "::", "fd00:ec2::254", "64:ff9b::7f00:1", "2002:7f00:1::"}
		if !loopback {
			ways = append(ways, "127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1")
		}
		for _, way := range ways {
			refusedAtDial(t, loopback, way, names)
		}
		for _, way := range inside {
			refusedAtDial(t, loopback, way, names[:1])
		}
	}
}

// refusedAtDial holds that no name is called that leads one way.
func refusedAtDial(t *testing.T, loopback bool, way string, names []string) {
	t.Helper()
	se, j := guarded(t, loopback, leads(way))
	for _, u := range names {
		if v := se.Send(t.Context(), to(t, u)); v.OK || v.Err != hooks.WordGuard || v.Status != 0 {
			t.Errorf("%q leads to %s, loopback allowed %t: verdict %+v", u, way, loopback, v)
		}
	}
	want := netip.MustParseAddr(way).Unmap()
	for _, a := range j.refused {
		if a.Unmap() != want && (!a.IsUnspecified() || !want.IsUnspecified()) { // :: is tried in both families
			t.Errorf("refused %s, not %s", a, way)
		}
	}
	if len(j.allowed) != 0 || len(j.refused) < len(names) {
		t.Errorf("%s: %d allowed, %d refused of %d", way, len(j.allowed), len(j.refused), len(names))
	}
}

// Ordinary endpoints are let through to the last step, which alone is not taken.
func TestSendWouldCallOrdinaryEndpoints(t *testing.T) {
	for _, loopback := range []bool{false, true} {
		se, j := guarded(t, loopback, leads("8.8.8.8"))
		n := 0
		for _, r := range table(t, "endpoints.txt", true) {
			if r.class != "open" {
				continue
			}
			n++
			if v := se.Send(t.Context(), to(t, r.value)); v.OK || v.Err != hooks.WordUnreachable { // by errNotDialled
				t.Errorf("%q: verdict %+v", r.value, v)
			}
		}
		if len(j.allowed) != n || len(j.refused) != 0 {
			t.Errorf("of %d endpoints %d were allowed and %v refused", n, len(j.allowed), j.refused)
		}
	}
}

// Where a name leads to several places, each of them is judged; that one is
// public opens no other.
func TestSendJudgesEachAddressOfAName(t *testing.T) {
	at := sentinel(t)
	crowd := []string{"127.0.0.1"}
	for i := range 200 {
		crowd = append(crowd, fmt.Sprintf("8.8.%d.8", i), fmt.Sprintf("127.0.%d.1", i+1))
	}
	for name, c := range map[string]struct {
		resolver  *net.Resolver
		addresses []string
	}{
		"this machine last":          {nil, []string{"8.8.8.8", "1.1.1.1", "127.0.0.1"}},
		"this machine first":         {nil, []string{"127.0.0.1", "8.8.8.8"}},
		"both families, IPv4 inside": {nil, []string{"127.0.0.1", "2606:4700:4700::1111"}},
		"both families, IPv6 inside": {nil, []string{"8.8.8.8", "::1"}},
		"both families inside":       {nil, []string{"127.0.0.1", "::1"}},
		"metadata among public ones": {nil, []string{"8.8.8.8", "169.254.169.254", "1.1.1.1", "fd00:ec2::254"}},
		"many":                       {nil, crowd},
		"one link":                   {chain(1, "8.8.8.8", "127.0.0.1"), []string{"8.8.8.8", "127.0.0.1"}},
		"eight links":                {chain(8, "127.0.0.1", "::1"), []string{"127.0.0.1", "::1"}},
		"forty links":                {chain(40, "127.0.0.1"), []string{"127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.resolver == nil {
				c.resolver = leads(c.addresses...)
			}
			se, j := guarded(t, false, c.resolver)
			v := se.Send(t.Context(), to(t, fmt.Sprintf("https://hook.example.com:%d/", at.Port())))
			if v.OK || v.Status != 0 || v.Err != hooks.WordGuard && v.Err != hooks.WordUnreachable {
				t.Errorf("verdict %+v", v)
			}
			for _, text := range c.addresses {
				a := netip.MustParseAddr(text)
				if open := hooks.Refused(a, false) == nil; slices.Contains(j.allowed, a) != open || slices.Contains(j.refused, a) == open {
					t.Errorf("%s was not judged as it is", a)
				}
			}
			if n := len(j.allowed) + len(j.refused); n != len(c.addresses) {
				t.Errorf("%d addresses were judged of %d", n, len(c.addresses))
			}
		})
	}
}

// A name that is public whenever it is looked at and leads inside when it is
// dialled gains nothing: what is judged is what would be dialled, and it is
// looked up once for both.
func TestSendSurvivesFlippingNames(t *testing.T) {
	at := sentinel(t)
	endpoint := fmt.Sprintf("https://flip.example.com:%d/", at.Port())
	var mu sync.Mutex
	turn := map[dnsmessage.Type]int{}
	flip := resolver(func(q dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) {
		mu.Lock()
		turn[q.Type]++
		public := turn[q.Type]%2 == 1
		mu.Unlock()
		if public {
			return records(q, q.Name, "8.8.8.8", "2606:4700:4700::1111"), dnsmessage.RCodeSuccess
		}
		return records(q, q.Name, "127.0.0.1", "::1"), dnsmessage.RCodeSuccess
	})
	se, j := guarded(t, false, flip)
	for i := range 20 {
		if err := hooks.CheckURL(endpoint, hooks.Allow{}); err != nil {
			t.Fatal(err)
		}
		want := hooks.WordUnreachable // by errNotDialled
		if i%2 == 1 {
			want = hooks.WordGuard
		}
		if v := se.Send(t.Context(), to(t, endpoint)); v.Err != want || v.Status != 0 {
			t.Errorf("delivery %d: verdict %+v", i, v)
		}
	}
	if turn[dnsmessage.TypeA] != 20 || turn[dnsmessage.TypeAAAA] != 20 || len(j.allowed) != 20 || len(j.refused) != 20 {
		t.Errorf("asked %v, %d allowed, %d refused", turn, len(j.allowed), len(j.refused))
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if v := se.Send(t.Context(), to(t, endpoint)); v.OK || v.Status != 0 {
				t.Errorf("verdict %+v", v)
			}
		})
	}
	all.Wait()
	for _, a := range j.allowed {
		if a.IsLoopback() {
			t.Errorf("%s was allowed", a)
		}
	}
}
