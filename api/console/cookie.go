package console

import (
	"net/url"

	"github.com/gofiber/fiber/v2"
)

// The cookies. The prefix has browsers refuse one that another host or a plain
// connection set (RFC 6265bis, 4.1.3.2); over http, on this machine, there is none.
// A port that the public address names ends each name: browsers send the cookies of a
// host to all its ports, and another Till may be at one of those.
const (
	chosenCookie = "till-at"
	visitCookie  = "till-visit"
	saidCookie   = "till-said" // what was done, for the next page to say
	hostPrefix   = "__Host-"
)

func (v *visit) cookie(name string) string {
	name += v.console.port
	if v.console.cfg.Secure {
		return hostPrefix + name
	}
	return name
}

// portOf is the end of the names of the cookies of an address, "" where it names no port.
func portOf(address string) string {
	if at, err := url.Parse(address); err == nil && at.Port() != "" {
		return "-" + at.Port()
	}
	return ""
}

// setCookie sets a cookie that scripts cannot read, for so many seconds; 0 is for as
// long as the browser runs.
func (v *visit) setCookie(name, value string, age int) {
	v.http.Cookie(&fiber.Cookie{
		Name: v.cookie(name), Value: value, Path: "/", MaxAge: age, Secure: v.console.cfg.Secure, HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	})
}
