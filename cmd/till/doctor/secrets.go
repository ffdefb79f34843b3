package doctor

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
)

// webhooks looks whether a merchant could have us call what only this machine
// reaches. Webhooks of the live environment never may.
func (l *look) webhooks(context.Context) {
	if l.LoopbackWebhooks() {
		l.ok("Test webhooks may go to this machine, which others do not reach; live ones never, nor either to other private addresses.")
		return
	}
	l.ok("No webhook goes to this machine or to a private address.")
}

// leastSecret is how long a password is that nobody guesses.
const leastSecret = 12

// secrets looks whether somebody could guess the passwords of what we use.
func (l *look) secrets(context.Context) {
	before := len(l.found)
	for _, one := range []struct{ flag, variable, address, fix string }{
		{"--database-url", "TILL_DATABASE_URL", string(l.DatabaseURL), `psql "$TILL_DATABASE_URL" -c '\password'   (give what this prints: openssl rand -hex 24)`},
		{"--redis-url", "TILL_REDIS_URL", string(l.RedisURL), "redis-cli CONFIG SET requirepass \"$(openssl rand -hex 24)\""},
	} {
		u, err := url.Parse(one.address)
		if one.address == "" || err != nil {
			continue
		}
		asked := u.Query() // PostgreSQL takes all of it there too, before what stands in front
		host, user := cmp.Or(asked.Get("host"), u.Hostname()), cmp.Or(asked.Get("user"), u.User.Username())
		near := loopback(host) || host == "" || strings.HasPrefix(host, "/")
		password, given := u.User.Password()
		if asked.Has("password") {
			password, given = asked.Get("password"), true
		}
		var why string
		switch {
		case !given && near:
			continue // this machine lets its own users in as it likes
		case !given:
			why = "no password"
		case weak(password, user):
			why = "a password that can be guessed"
		default:
			continue
		}
		what := "The address of " + one.flag + " has " + why + "."
		fix := one.fix + "   (then put it into " + one.variable + ")"
		if near {
			l.warn(what, fix)
		} else {
			l.fail(what, fix)
		}
	}
	if len(l.found) == before {
		l.ok("No password that Till is given can be guessed.")
	}
}

// weak says of a password whether somebody would try it soon.
func weak(password, user string) bool {
	folded := strings.ToLower(password)
	common := []string{"password", "postgres", "changeme", "redis", "till", "secret", "admin", "123456", "letmein", "default", "qwerty"}
	if len(password) < leastSecret || user != "" && strings.Contains(folded, strings.ToLower(user)) {
		return true
	}
	return slices.ContainsFunc(common, func(word string) bool { return strings.HasPrefix(folded, word) })
}
