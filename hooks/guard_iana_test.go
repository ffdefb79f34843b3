package hooks_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"till/hooks"
)

// special are the ranges of IANA's registries of special-purpose IPv4 and IPv6
// addresses (iana.org/assignments/iana-ipv4-special-registry and …-ipv6-…) and
// of multicast, with what else is closed for good reason. Loopback is what the
// setting may allow. ::ffff:0:0/96 is not here: what it wraps is judged, which
// the test does for each IPv4 range.
const special = `
	0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
	192.0.0.0/24 192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/31 192.0.2.0/24
	192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24
	198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
	168.63.129.16/32
	::/128 ::1/128 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
	2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28
	2001:20::/28 2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16
	fc00::/7 fe80::/10 fec0::/10 ff00::/8
	::/96 ::ffff:0:0:0/96 ::/3 4000::/2 8000::/1`

// The first, the middle and the last address of each range are refused; the two
// outside of it are not, unless they lie in another.
func TestRefusedRanges(t *testing.T) {
	var ranges []netip.Prefix
	for text := range strings.FieldsSeq(special) {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	closed := func(a netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	neighbours := 0
	for _, p := range ranges {
		first, last := p.Masked().Addr(), end(p, true)
		for _, a := range []netip.Addr{first, end(p, false), last} {
			refuse(t, a)
			if a.Is4() {
				refuse(t, netip.AddrFrom16(a.As16()))
			}
		}
		for _, a := range []netip.Addr{first.Prev(), last.Next()} {
			if !a.IsValid() || closed(a) || a.Is4In6() {
				continue
			}
			neighbours++
			if err := hooks.Refused(a, false); err != nil {
				t.Errorf("%s, beside %s: %v", a, p, err)
			}
		}
	}
	if neighbours < 40 {
		t.Errorf("only %d addresses beside a range", neighbours)
	}
}

// refuse holds that an address is refused, and loopback alone where that is
// allowed.
func refuse(t *testing.T, a netip.Addr) {
	t.Helper()
	if hooks.Refused(a, false) == nil {
		t.Errorf("%s was let through", a)
	}
	if err := hooks.Refused(a, true); (err == nil) != a.Unmap().IsLoopback() {
		t.Errorf("%s, loopback allowed: %v", a, err)
	}
}

// end is the last address of a range, or the one before the second half of it.
func end(p netip.Prefix, last bool) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		if last || bit > p.Bits() {
			b[bit/8] |= 0x80 >> (bit % 8)
		}
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		panic(fmt.Sprintf("%v is no address", b))
	}
	return a
}
