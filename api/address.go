package api

import (
	"net/netip"
	"slices"
	"strings"
)

// address is where a call came from, as it is counted: a whole IPv6 network is
// one address, because it is one customer's.
func (c *call) address() string {
	ip, _ := c.client()
	const network = 64
	if p, err := ip.Prefix(network); ip.Is6() && err == nil {
		return p.String()
	}
	return ip.String()
}

// near says whether a call came from this machine, to this machine by its own
// name: another site's name that resolves here is not ours. What a proxy says of
// the host does not count: a page of that site can say it too. That there is a
// proxy does, also one that nobody named to us: many ask for us by our own name.
func (c *call) near() bool {
	from, beyond := c.client()
	return isLoopback(c.hostname()) && !beyond && !c.sentOn() && (from.IsLoopback() || from.IsUnspecified()) // the latter has no network at all
}

// sentOn says whether a proxy tells of itself, and not in the one way that we read: for
// whom it sent a call on we do not know. No browser writes these headers. Where both are
// there, X-Forwarded-For may be the caller's own, which the proxy let pass. One that says
// nothing may still show itself: nginx calls in HTTP/1.0 by default, as no browser does.
func (c *call) sentOn() bool {
	if !c.http.Request().Header.IsHTTP11() {
		return true
	}
	told := func(name string) bool { return c.http.Get(name) != "" }
	if ip, ok := forwarded(c.http.Get("X-Real-Ip")); ok && !ip.Unmap().IsLoopback() {
		return true
	}
	return !told("X-Forwarded-For") && slices.ContainsFunc([]string{"Forwarded", "Via", "X-Real-Ip"}, told)
}

// client is whose call it is, as far as whoever sent it cannot choose it freely:
// what a proxy of ours says, else the other end of the connection. beyond says that
// it was sent on for somebody of whom we cannot know that.
func (c *call) client() (from netip.Addr, beyond bool) {
	ip, _ := netip.AddrFromSlice(c.http.Context().RemoteIP())
	ip = ip.Unmap()
	// Each proxy adds whom it heard it from at the end. What stands before the
	// last one that is not ours, anybody can have written.
	var told []string
	for _, line := range c.http.Request().Header.PeekAll("X-Forwarded-For") {
		told = append(told, strings.Split(string(line), ",")...)
	}
	for len(told) > 0 && c.fromProxy(ip) {
		next, ok := forwarded(told[len(told)-1])
		if !ok {
			break
		}
		ip, told = next.Unmap().WithZone(""), told[:len(told)-1]
	}
	return ip, len(told) > 0
}

// forwarded is whom a proxy says that it heard a call from: an address, which some
// write with the port, and one of IPv6 in brackets.
func forwarded(entry string) (netip.Addr, bool) {
	entry = strings.TrimSpace(entry)
	if at, err := netip.ParseAddrPort(entry); err == nil {
		return at.Addr(), true
	}
	if within, open := strings.CutPrefix(entry, "["); open {
		entry = strings.TrimSuffix(within, "]")
	}
	ip, err := netip.ParseAddr(entry)
	return ip, err == nil
}

// fromProxy says whether an address is one of our proxies'.
func (c *call) fromProxy(ip netip.Addr) bool {
	return slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(ip) })
}
