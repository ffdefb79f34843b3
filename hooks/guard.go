package hooks

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// What is refused before a byte is sent.
var (
	// ErrAddress: the address is not a public one.
	ErrAddress = errors.New("not a public address")
	// ErrURL: the URL cannot be an endpoint.
	ErrURL = errors.New("not one that events can be sent to")
)

// Allow is what an endpoint may be beyond https to a public address.
type Allow struct {
	// Loopback also allows this machine, by https and by plain http.
	Loopback bool
}

const (
	maxURL   = 2048
	maxHost  = 253
	maxLabel = 63

	firstFree = 1024 // the first port that is not the system's
)

// localhost is the one name that means this machine.
const localhost = "localhost"

// block is a range of addresses and why events are not sent there.
type block struct{ prefix, why string }

// closedV4 is every range of IANA's registry of special-purpose IPv4 addresses,
// and two more that only lead inside. Three of them are called reachable: they
// are answered by whoever is nearest, which may be our own network.
func closedV4() []block {
	return []block{
		{"0.0.0.0/8", "this network"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "shared by carriers, and metadata of one cloud"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link-local, and metadata of most clouds"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "protocol assignments, and metadata of one cloud"},
		{"192.0.2.0/24", "documentation"},
		{"192.31.196.0/24", "a sink for name servers"},
		{"192.52.193.0/24", "multicast relays"},
		{"192.88.99.0/24", "6to4 relays"},
		{"192.168.0.0/16", "private"},
		{"192.175.48.0/24", "a sink for name servers"},
		{"198.18.0.0/15", "benchmarks"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved"},
		{"168.63.129.16/32", "the inside of one cloud"},
	}
}

// openV6 is all of IPv6 that is given out; outside of it lie loopback, private,
// link-local, multicast and most forms that wrap an IPv4 address.
const openV6 = "2000::/3"

// closedV6 is what is special inside openV6.
func closedV6() []block {
	return []block{
		{"2001::/23", "protocol assignments, and tunnels that wrap an IPv4 address"},
		{"2001:db8::/32", "documentation"},
		{"2002::/16", "6to4: it wraps an IPv4 address"},
		{"2620:4f:8000::/48", "a sink for name servers"},
		{"3fff::/20", "documentation"},
	}
}

// Refused says why an address may not be called, nil where it may. It decides
// from the address alone; whoever dials asks it about the very address that is
// dialled, since what a name meant a moment ago proves nothing.
func Refused(a netip.Addr, allowLoopback bool) error {
	if !a.IsValid() {
		return fmt.Errorf("%w: none at all", ErrAddress)
	}
	if a.Zone() != "" {
		return fmt.Errorf("%w: %s has a zone", ErrAddress, a)
	}
	a = a.Unmap()
	if allowLoopback && a.IsLoopback() {
		return nil
	}
	closed := closedV4()
	if a.Is6() {
		if !netip.MustParsePrefix(openV6).Contains(a) {
			return fmt.Errorf("%w: %s", ErrAddress, a)
		}
		closed = closedV6()
	}
	for _, b := range closed {
		if netip.MustParsePrefix(b.prefix).Contains(a) {
			return fmt.Errorf("%w: %s (%s)", ErrAddress, a, b.why)
		}
	}
	return nil
}

// control is a check that a dialer makes between resolving a name and
// connecting: every address passes it, whoever answered for the name.
type control = func(network, address string, c syscall.RawConn) error

// guard returns the check of every address.
func guard(allow Allow) control {
	return func(network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("%w: network %s", ErrAddress, network)
		}
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAddress, err)
		}
		return Refused(to.Addr(), allow.Loopback)
	}
}

// checkOf returns the check of what the host of an address leads to. CheckURL
// lets localhost pass as this machine, without TLS too, so it must lead nowhere
// else; for all others it is check.
func checkOf(address string, check control) control {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !strings.EqualFold(host, localhost) {
		return check
	}
	return func(network, address string, c syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
			return fmt.Errorf("%w: localhost leads to %s", ErrAddress, address)
		}
		return check(network, address, c)
	}
}

// CheckURL says why a URL cannot be an endpoint, in a sentence for its owner;
// nil where it can. A name is not resolved here: the dialer judges what it
// leads to, each time.
func CheckURL(raw string, allow Allow) error {
	_, err := judged(raw, allow)
	return err
}

// judged reads a URL that can be an endpoint.
func judged(raw string, allow Allow) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("%w: it is longer than %d characters", ErrURL, maxURL)
	}
	for _, c := range raw {
		if c <= ' ' || c > '~' || c == '\\' {
			return nil, fmt.Errorf("%w: it holds %q; write it percent-encoded, a name in its xn-- form", ErrURL, c)
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read", ErrURL) // the reason would repeat what was typed
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, begins(allow)
	case u.User != nil:
		return nil, fmt.Errorf("%w: it holds a user name", ErrURL)
	case u.Opaque != "" || u.Hostname() == "":
		return nil, fmt.Errorf("%w: it has no host", ErrURL)
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return nil, fmt.Errorf("%w: what follows # is never sent", ErrURL)
	}
	if err := checkPort(u); err != nil {
		return nil, err
	}
	loopback, err := checkHost(u, allow)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "http" && !loopback {
		return nil, begins(allow)
	}
	return u, nil
}

// begins says how a URL must begin.
func begins(allow Allow) error {
	if allow.Loopback {
		return fmt.Errorf("%w: it must begin with https://, or http:// where it leads to this machine", ErrURL)
	}
	return fmt.Errorf("%w: it must begin with https://", ErrURL)
}

// checkPort refuses a port that is empty, zero, too large or oddly written, and
// those that the system keeps for other protocols, such as mail.
func checkPort(u *url.URL) error {
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%w: a port is a number from 1 to 65535", ErrURL)
	}
	if n < firstFree && n != 80 && n != 443 {
		return fmt.Errorf("%w: port %d is another service's; take 443 or one from %d on", ErrURL, n, firstFree)
	}
	return nil
}

// checkHost judges a host as far as its spelling goes and says whether it is
// this machine, which only passes where loopback is allowed.
func checkHost(u *url.URL, allow Allow) (loopback bool, err error) {
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		if err := Refused(a, allow.Loopback); err != nil {
			return false, fmt.Errorf("%w: %w", ErrURL, err)
		}
		return a.Unmap().IsLoopback(), nil
	}
	host = strings.ToLower(host)
	if err := checkName(host); err != nil {
		return false, err
	}
	if host == localhost && allow.Loopback {
		return true, nil
	}
	return false, checkInside(host)
}

// checkName refuses what is no host name, above all the other spellings of an
// IPv4 address (2130706433, 0x7f.1, 0177.0.0.1): some resolvers understand
// them, we do not, and so no check would.
func checkName(host string) error {
	if len(host) > maxHost {
		return fmt.Errorf("%w: its host is longer than %d characters", ErrURL, maxHost)
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%w: its host is not a name", ErrURL)
		}
	}
	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		return fmt.Errorf("%w: write an IPv4 address as four decimal numbers", ErrURL)
	}
	return nil
}

// checkInside refuses names that only mean something inside a network. The
// dialer would refuse where they lead; said here, the owner learns of it.
func checkInside(host string) error {
	if !strings.Contains(host, ".") {
		return fmt.Errorf("%w: %s is a name without a domain", ErrURL, host)
	}
	for _, inside := range []string{".localhost", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, inside) {
			return fmt.Errorf("%w: names in %s are not public", ErrURL, inside[1:])
		}
	}
	return nil
}
