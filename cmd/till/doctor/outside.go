package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow"
	"till/flow/store"
)

// redis looks whether Redis answers, keeps what it is told, and tells its time.
func (l *look) redis(ctx context.Context) {
	if l.RedisURL == "" {
		if l.DatabaseURL != "" {
			l.warn("Each process uses a Redis of its own, and they share a database: numbers and limits are counted by each alone.", "TILL_REDIS_URL=redis://127.0.0.1:6379/0 till serve")
			return
		}
		l.ok("Redis runs inside the program; it holds only what may be lost.")
		return
	}
	options, err := redis.ParseURL(string(l.RedisURL))
	if err != nil {
		return // told with the settings
	}
	options.DialTimeout, options.ReadTimeout, options.MaxRetries, options.DisableIdentity = patience/2, patience/2, -1, true
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		l.redisAway(options.Addr, err)
		return
	}
	if said, err := client.Time(ctx).Result(); err == nil {
		l.clocks = append(l.clocks, clock{"Redis", said, l.Now()})
	}
	info := redisInfo(client.Info(ctx).Val())
	before := len(l.found)
	if major, _, _ := strings.Cut(info["redis_version"], "."); major != "" {
		if n, err := strconv.Atoi(major); err == nil && n < leastRedis {
			l.warn("Redis "+info["redis_version"]+" is older than Till is tried with.", "sudo apt-get install --only-upgrade redis-server   (version 6 or newer)")
		}
	}
	if info["rdb_last_bgsave_status"] == "err" || info["aof_last_write_status"] == "err" {
		l.fail("Redis could not write to its disk and refuses what it is told.", "redis-cli -u \"$TILL_REDIS_URL\" CONFIG GET dir   (make room there, then: redis-cli BGSAVE)")
	}
	if info["role"] == "slave" && info["slave_read_only"] == "1" {
		l.fail("Redis is a replica that can only be read: it refuses what it is told.", "redis-cli -u \"$TILL_REDIS_URL\" REPLICAOF NO ONE   (or give the one that it follows in --redis-url)")
	}
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	if most, err := strconv.ParseInt(info["maxmemory"], 10, 64); err == nil && most > 0 && used >= most && info["maxmemory_policy"] == "noeviction" {
		l.fail("Redis is full and refuses what it is told.", "redis-cli -u \"$TILL_REDIS_URL\" CONFIG SET maxmemory-policy volatile-ttl   (or give it more: CONFIG SET maxmemory)")
	}
	if policy := info["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys") {
		l.warn("Redis forgets what it likes when its memory is full ("+policy+"): a number's lease may go with it.", "redis-cli -u \"$TILL_REDIS_URL\" CONFIG SET maxmemory-policy volatile-ttl")
	}
	if len(l.found) > before {
		return
	}
	kept := ""
	saves, err := client.ConfigGet(ctx, "save").Result()
	switch at, told := saves["save"]; {
	case info["aof_enabled"] == "1":
		kept = "; it keeps a log on disk"
	case err != nil || !told: // it may not be asked
	case at == "":
		kept = "; what it holds is gone when it restarts, as it may be"
	default:
		kept = "; it saves to disk now and then"
	}
	l.ok("Redis " + info["redis_version"] + " answers" + kept + ".")
}

// leastRedis is the oldest major version that is tried.
const leastRedis = 6

func (l *look) redisAway(addr string, err error) {
	text := strings.ToUpper(err.Error())
	if strings.Contains(text, "NOAUTH") || strings.Contains(text, "WRONGPASS") || strings.Contains(text, "AUTH") {
		l.fail("Redis at "+addr+" refuses the password of --redis-url.", "redis-cli CONFIG GET requirepass   (then set it: TILL_REDIS_URL=redis://:PASSWORD@"+addr+"/0)")
		return
	}
	l.fail("Redis at "+addr+" does not answer: "+brief(err)+".", "sudo systemctl start redis-server   (or mend --redis-url)")
}

func redisInfo(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[name] = value
		}
	}
	return out
}

// bank looks whether the bank answers.
func (l *look) bank(ctx context.Context) {
	base := string(l.BankURL)
	if base == "" {
		addr, err := os.ReadFile(filepath.Join(l.DataDir, "bank.addr"))
		if err != nil || !l.serves {
			l.ok("The pretend bank runs inside the program, once it runs.")
			return
		}
		base = "http://" + strings.TrimSpace(string(addr))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, nil)
	at, bad := url.Parse(base)
	if err != nil || bad != nil || at.User != nil {
		return // told with the settings
	}
	res, err := l.client.Do(req)
	if err != nil {
		l.fail("The bank at "+base+" does not answer: "+brief(errors.Unwrap(err))+". Payers get no account to pay to.", "till bank --addr "+at.Host+" --file THE_FILE_IT_HAD   (in a new one it knows none of our accounts, and nothing of what was paid)")
		return
	}
	_ = res.Body.Close()
	if why := l.bankAway(ctx); why != "" {
		what, fix := "The bank at "+base+" answers, but the Till that runs here says: "+why, "till logs --level warn   (it says what the bank answered)"
		if _, rest, refuses := strings.Cut(why, "It refuses to register us"); refuses {
			what = "The bank at " + base + " answers, and refuses to register us" + rest
		}
		l.fail(what, fix)
		return
	}
	l.ok("The bank at " + base + " answers.")
}

// bankAway is why the Till that runs here gets nothing from the bank, "" where it
// does or none runs.
func (l *look) bankAway(ctx context.Context) string {
	if !l.serves {
		return ""
	}
	said, err := l.readiness(ctx)
	if err != nil {
		return ""
	}
	for _, one := range said.Data.Checks {
		if one.Name == "bank" {
			return one.Reason
		}
	}
	return said.Error.Details["bank"]
}

// whatsapp looks at the network and at each number.
func (l *look) whatsapp(ctx context.Context) {
	if l.WhatsAppDial != "" {
		d := net.Dialer{Timeout: patience}
		conn, err := d.DialContext(ctx, "tcp", l.WhatsAppDial)
		if err != nil {
			l.fail("The WhatsApp network at "+l.WhatsAppDial+" does not answer: "+brief(err)+".", "till network --addr "+quoted(l.WhatsAppDial))
		} else {
			_ = conn.Close()
		}
	}
	var list []flow.Number
	err := l.reads(ctx, flow.Test, func(ctx context.Context, r store.Reader) (err error) {
		list, err = r.Numbers(ctx, flow.DayOf(l.Now()))
		return err
	})
	if err != nil {
		if _, gone := os.Stat(filepath.Join(l.DataDir, "test.db")); gone != nil && l.DatabaseURL == "" {
			l.ok("No number was ever linked: nothing ran here yet.")
		}
		return // a database that is away is told already
	}
	linked, places := 0, map[string]int{}
	for _, n := range list {
		if n.Digits == "" {
			continue
		}
		linked++
		l.number(n)
		if first, again := places[n.Digits]; again {
			l.warn(fmt.Sprintf("Numbers %d and %d are one phone, %s: it counts twice among those that take chats.", first, n.Slot, flow.Phone(n.Digits)),
				fmt.Sprintf("till pair --slot %d --whatsapp-network=%s   (with another phone, once this one's Linked devices have one of the two no more)", n.Slot, l.WhatsAppNetwork))
		}
		places[n.Digits] = n.Slot
	}
	switch {
	case linked > 0:
	case l.InsideWhatsApp():
		l.warn("No number is linked: payers can write to nobody.", "till dev   (on the local network it links one by itself)")
	case l.serves: // till pair is refused the number whose code it shows
		l.fail("No number is linked: payers can write to nobody.", "Scan the code that Till shows under Operations of its console.")
	default:
		l.fail("No number is linked: payers can write to nobody.", "till pair --whatsapp-network="+l.WhatsAppNetwork)
	}
}

// number tells how one of our numbers stands.
func (l *look) number(n flow.Number) {
	now := l.Now()
	state := n.At(now)
	name := fmt.Sprintf("Number %d (%s)", n.Slot, flow.Phone(n.Digits))
	since := ""
	if began := n.Began(now); !began.IsZero() {
		since = " since " + flow.Stamp(began)
	}
	what := fmt.Sprintf("%s is %s%s.", name, state, since)
	slot := strconv.Itoa(n.Slot)
	switch state {
	case flow.NumberLive, flow.NumberSyncing:
		if away := now.Sub(n.PhoneSeen); !n.PhoneSeen.IsZero() && away > flow.PhoneAwayWarns {
			l.warn(fmt.Sprintf("%s works, but its phone was last seen %d days ago: WhatsApp unlinks us after 14.", name, int(away.Hours()/24)), flow.NumberPhoneAway.Advice())
			return
		}
		l.ok(what)
	case flow.NumberOffline:
		if l.serves {
			l.warn(what, state.Advice())
			return
		}
		l.ok(name + " is linked; no Till runs it now.")
	case flow.NumberDraining, flow.NumberKilled:
		l.warn(what, "till numbers resume "+slot)
	case flow.NumberLoggedOut:
		if l.InsideWhatsApp() {
			l.warn(what+" It was linked to another network.", "till dev, which links it by itself")
			return
		}
		again := "till pair --slot " + slot + " --whatsapp-network=" + l.WhatsAppNetwork
		if n.Detail != "" {
			l.fail(what+" It says: "+n.Detail+".", "till numbers   (it names the holder; where the keys are lost: "+again+")")
			return
		}
		l.fail(what+" Its owner unlinked us.", again)
	case flow.NumberPasskey:
		l.fail(what, "till pair --slot "+slot+" --phone "+n.Digits+" --whatsapp-network="+l.WhatsAppNetwork)
	case flow.NumberConnecting, flow.NumberPairing, flow.NumberTimelocked, flow.NumberPhoneAway:
		l.warn(what, state.Advice())
	case flow.NumberMute:
		if n.Detail != "" {
			what += " It says: " + n.Detail + "."
		}
		l.fail(what, state.Advice())
	case flow.NumberDeaf, flow.NumberBanned, flow.NumberReplaced, flow.NumberOutdated:
		l.fail(what, state.Advice())
	}
}

// trust is how the certificate of a host is judged.
func (l *look) trust(host string) *tls.Config {
	return &tls.Config{RootCAs: l.Roots, ServerName: host, MinVersion: tls.VersionTLS12, Time: l.Now}
}

// soonEnds is when a certificate should have been renewed.
const soonEnds = 14 * 24 * time.Hour

// public looks at the address under which others reach us: its name, its
// certificate, and whether it leads here.
func (l *look) public(ctx context.Context) {
	if l.PublicURL == "" {
		if host, _, err := net.SplitHostPort(l.HTTPAddr); err == nil && !loopback(host) {
			l.warn("The API listens on "+l.HTTPAddr+" for others too, and they reach it without TLS: keys pass in the clear.",
				"till serve --http-addr 127.0.0.1:8080 --public-url https://YOUR.NAME   (with a proxy in front that has a certificate)")
			return
		}
		l.ok("Only this machine reaches Till: no --public-url is set.")
		return
	}
	u, err := url.Parse(string(l.PublicURL))
	if err != nil || u.Hostname() == "" {
		return // told with the settings
	}
	if strings.Trim(u.Path, "/") != "" {
		l.warn("--public-url has a path, "+u.Path+": the API works below it where the proxy in front takes it away, and the links of the console and the documents do not.",
			"TILL_PUBLIC_URL="+u.Scheme+"://"+u.Host+" till serve   (give Till a name of its own)")
	}
	host := u.Hostname()
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := []string{host}
	if net.ParseIP(host) == nil {
		if at, err = l.Resolve(short, host); err != nil || len(at) == 0 {
			l.fail("The name "+host+" of --public-url is not known to DNS.", "dig +short "+quoted(host)+"   (add an A record for it where its domain is kept, or mend --public-url)")
			return
		}
	}
	if instead, open := l.PublicURL.InTheClear(); open {
		l.fail("--public-url "+l.PublicURL.String()+" has no TLS: keys, passwords and payers' names pass in the clear.", "TILL_PUBLIC_URL="+instead+" till serve   (with a proxy in front that has a certificate)")
		return
	}
	if u.Scheme != "https" {
		l.ok("--public-url leads to this machine alone.")
		return
	}
	if l.TrustedProxies == "" { // it is the proxy in front that has the certificate
		l.warn("--trusted-proxies names nobody: whoever comes through the proxy in front counts as one address, so that fifty wrong passwords of anybody's keep everybody from logging in for a quarter of an hour.",
			"TILL_TRUSTED_PROXIES=127.0.0.1 till serve   (the address that the proxy calls from; it must add X-Forwarded-For)")
	}
	l.certificate(short, host, net.JoinHostPort(at[0], portOf(u)))
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}

// certificate looks at what the proxy in front shows.
func (l *look) certificate(ctx context.Context, host, addr string) {
	const renew = "sudo certbot renew --force-renewal   (then reload the proxy in front)"
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: patience}, Config: l.trust(host)}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		defer func() { _ = conn.Close() }()
		shown, ok := conn.(*tls.Conn)
		if !ok || len(shown.ConnectionState().PeerCertificates) == 0 {
			return
		}
		left := shown.ConnectionState().PeerCertificates[0].NotAfter.Sub(l.Now())
		if left < soonEnds {
			l.warn(fmt.Sprintf("The certificate of %s ends in %s.", host, flow.Count(int(left.Hours()/24), "day")), renew)
			return
		}
		l.ok(fmt.Sprintf("%s has a certificate for %d days more.", host, int(left.Hours()/24)))
		return
	}
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok && bad.Reason == x509.Expired {
		ended := bad.Cert.NotAfter
		if l.Now().Before(bad.Cert.NotBefore) {
			l.fail(fmt.Sprintf("The certificate of %s only begins on %s, or this machine's clock is wrong.", host, bad.Cert.NotBefore.Format(time.DateOnly)), "date -u   (set the clock right, or wait)")
			return
		}
		l.fail(fmt.Sprintf("The certificate of %s expired on %s: no payer and no merchant gets through.", host, ended.Format(time.DateOnly)), renew)
		return
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		l.fail("The certificate that "+addr+" shows is not for "+host+".", "sudo certbot certonly -d "+quoted(host)+"   (then have the proxy in front use it)")
		return
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		l.fail("The certificate of "+host+" is of no authority that others trust.", "sudo certbot certonly -d "+quoted(host)+"   (then have the proxy in front use it)")
		return
	}
	l.fail("Nobody answers at "+addr+" for "+host+": "+brief(err)+".", "sudo systemctl start caddy   (or whichever proxy stands in front of Till)")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
