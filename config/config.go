// Package config names every setting of the program: its flag, its environment
// variable, its default and what it is for.
//
// It checks settings and knows nothing else: who reads them is cmd/till, and no
// other package may import this one.
package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are what an operator can set, by flag, by TILL_* variable or by a
// line in till.toml, in that order.
type Settings struct {
	HTTPAddr        string        `name:"http-addr" env:"TILL_HTTP_ADDR" default:"127.0.0.1:8080" help:"Where the API listens."`
	MetricsAddr     string        `name:"metrics-addr" env:"TILL_METRICS_ADDR" default:"127.0.0.1:9464" help:"Where Prometheus reads /metrics; off for nowhere. Beyond this machine it needs a token."`
	MetricsToken    Secret        `name:"metrics-token" env:"TILL_METRICS_TOKEN" help:"What whoever reads /metrics has to bring as a bearer token; empty lets everybody who reaches the address."`
	DataDir         string        `name:"data-dir" env:"TILL_DATA_DIR" default:"./data" help:"Where everything that is kept stands."`
	DatabaseURL     Secret        `name:"database-url" env:"TILL_DATABASE_URL" help:"postgres:// address; empty keeps everything in SQLite in the data dir."`
	SecretsKey      Secret        `name:"secrets-key" env:"TILL_SECRETS_KEY" help:"What seals secrets in the databases: 32 bytes in hex, as openssl rand -hex 32 prints them. Empty is the file secrets.key in the data dir."`
	SecretsKeyOld   Secret        `name:"secrets-key-old" env:"TILL_SECRETS_KEY_OLD" help:"Keys that sealed before, with commas between: what they sealed is sealed anew at the next start."`
	RedisURL        Secret        `name:"redis-url" env:"TILL_REDIS_URL" help:"redis:// address; empty uses one inside the program, which forgets at its end and is counted by this process alone."`
	BankURL         Address       `name:"bank-url" env:"TILL_BANK_URL" help:"Address of a sandbox bank that runs by itself (till bank)."`
	WhatsAppNetwork string        `name:"whatsapp-network" env:"TILL_WHATSAPP_NETWORK" default:"local" enum:"local,whatsapp" help:"local: the network inside the program; whatsapp: the real one."`
	WhatsAppDial    string        `name:"whatsapp-dial" env:"TILL_WHATSAPP_DIAL" help:"host:port of a WhatsApp network that somebody else runs, over plain TCP."`
	WhatsAppRootKey string        `name:"whatsapp-root-key" env:"TILL_WHATSAPP_ROOT_KEY" help:"Trust root of that network: 32 bytes in hex."`
	WhatsAppPacing  string        `name:"whatsapp-pacing" env:"TILL_WHATSAPP_PACING" default:"auto" enum:"auto,on,off" help:"Whether the bot writes as slowly as a person: types for a while, leaves time between messages, and holds to the next two bounds. auto: on the real WhatsApp only."`
	WhatsAppSends   int           `name:"whatsapp-sends" env:"TILL_WHATSAPP_SENDS" default:"20" help:"Messages a minute that a number sends while paced; one younger than a week sends fewer."`
	WhatsAppChats   int           `name:"whatsapp-new-chats" env:"TILL_WHATSAPP_NEW_CHATS" default:"6" help:"Chats a minute that a number answers for the first time while paced."`
	WhatsAppNumbers int           `name:"whatsapp-numbers" aliases:"numbers" env:"TILL_WHATSAPP_NUMBERS" default:"1" help:"Numbers that the bot has at least. Those that were linked before are always there."`
	WhatsAppCanary  time.Duration `name:"whatsapp-canary" env:"TILL_WHATSAPP_CANARY" default:"10m0s" help:"How often numbers write to each other to prove that they hear; 0s for never."`
	WhatsAppVersion string        `name:"whatsapp-version" env:"TILL_WHATSAPP_VERSION" help:"Version of WhatsApp Web to pass for, as 2.3000.1012345678; empty is that of the library. For when WhatsApp calls it outdated."`
	WebhookLoopback bool          `name:"webhook-loopback" env:"TILL_WEBHOOK_LOOPBACK" default:"true" negatable:"" help:"Let webhooks of the test environment go to this machine, while nobody outside of it reaches Till."`
	RateLimitTest   int           `name:"rate-limit-test" env:"TILL_RATE_LIMIT_TEST" default:"50" help:"Calls a second that each test key has, and each address without a key that holds; twice as many at once."`
	RateLimitLive   int           `name:"rate-limit-live" env:"TILL_RATE_LIMIT_LIVE" default:"100" help:"Calls a second that each live key has; twice as many at once."`
	PublicURL       Address       `name:"public-url" env:"TILL_PUBLIC_URL" help:"Address under which others reach the API; empty is http:// and http-addr."`
	TrustedProxies  string        `name:"trusted-proxies" env:"TILL_TRUSTED_PROXIES" help:"Proxies in front of the API whose X-Forwarded-For is believed: addresses or networks, with commas between."`
	Holidays        string        `name:"holidays" env:"TILL_HOLIDAYS" help:"File with changes to the days on which banks are closed and nobody is paid out, one in each line, as 2026-08-27,Id-ul-Maulud; a minus in front opens a day again."`
	SecondAbove     int64         `name:"second-person-above" env:"TILL_SECOND_PERSON_ABOVE" default:"10000000" help:"Amount in kobo beyond which a second person has to agree to what somebody orders about money in the console; 0 for never."`
	RetentionChat   time.Duration `name:"retention-chat" env:"TILL_RETENTION_CHAT" default:"2160h0m0s" help:"How long what was written in a chat is kept after the last that happened there, from 168h; what was understood and decided, and money, stay. 0s keeps it for good."`
	RetentionHooks  time.Duration `name:"retention-webhooks" env:"TILL_RETENTION_WEBHOOKS" default:"2160h0m0s" help:"How long what endpoints answered to webhooks is kept, from 168h; that they were told, and how it went, stays. 0s keeps it for good."`
	LogLevel        string        `name:"log-level" env:"TILL_LOG_LEVEL" default:"warn" enum:"debug,info,warn,error" help:"What the log holds, from this level up."`
}

// maxRate is the highest number of calls a second that is counted.
const maxRate = 1_000_000

// maxNumbers is how many WhatsApp numbers one process runs.
const maxNumbers = 50

// version is what a version of WhatsApp Web looks like.
var version = regexp.MustCompile(`^\d{1,9}\.\d{1,9}\.\d{1,10}$`)

// maxPace is the highest number of messages a minute: beyond it, pacing is off.
const maxPace = 6000

// The bounds of how long words are kept: support has to find them for a while, and
// nobody needs them after ten years.
const (
	minRetention = 7 * 24 * time.Hour
	maxRetention = 10 * 365 * 24 * time.Hour
)

// Check finds everything that is wrong with the settings, all at once, each
// with what to do about it.
func (s Settings) Check() error {
	var faults []error
	if !hasPort(s.HTTPAddr) {
		faults = append(faults, fault("http-addr", s.HTTPAddr, "give host:port, as 127.0.0.1:8080"))
	}
	if err := s.checkMetrics(); err != nil {
		faults = append(faults, err)
	}
	if !namesFolder(s.DataDir) {
		faults = append(faults, fault("data-dir", s.DataDir, "give a folder, as ./data or /var/lib/till/data: without quotes, blanks or line ends around it, and without ~"))
	}
	if u := string(s.RedisURL); u != "" && !hasScheme(u, "redis", "rediss", "unix") {
		faults = append(faults, fault("redis-url", s.RedisURL.String(), "give a redis:// address, as redis://127.0.0.1:6379/0"))
	}
	if u := string(s.DatabaseURL); u != "" && !hasScheme(u, "postgres", "postgresql") {
		faults = append(faults, fault("database-url", s.DatabaseURL.String(), "give a postgres:// address, or leave it empty for SQLite"))
	} else if _, rest, _ := strings.Cut(u, "://"); strings.Count(rest[:strings.IndexAny(rest+"/", "/?")], "@") > 1 { // else half of a password is taken for the host, and told
		faults = append(faults, fault("database-url", s.DatabaseURL.String(), "write an @ in the password as %40"))
	}
	if _, _, err := s.SealingKeys(); err != nil {
		faults = append(faults, err)
	}
	if err := s.checkPublicURL(); err != nil {
		faults = append(faults, err)
	}
	if u := string(s.BankURL); u != "" && (!hasScheme(u, "http") || !OnThisMachine(u)) {
		faults = append(faults, fault("bank-url", s.BankURL.String(), "the sandbox bank runs on this machine: give its address, as http://127.0.0.1:8091"))
	} else if strings.Contains(u, "@") { // it asks for none, and who gave one would read it in the log
		faults = append(faults, fault("bank-url", s.BankURL.String(), "give it without a user and a password: the sandbox bank asks for none"))
	}
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"rate-limit-test", s.RateLimitTest, maxRate},
		{"rate-limit-live", s.RateLimitLive, maxRate},
		{"whatsapp-sends", s.WhatsAppSends, maxPace},
		{"whatsapp-new-chats", s.WhatsAppChats, maxPace},
		{"whatsapp-numbers", s.WhatsAppNumbers, maxNumbers},
	} {
		if n.value < 1 || n.value > n.most {
			faults = append(faults, fault(n.name, strconv.Itoa(n.value), fmt.Sprintf("give a number from 1 to %d", n.most)))
		}
	}
	if d := s.WhatsAppCanary; d != 0 && (d < time.Second || d > 24*time.Hour) {
		faults = append(faults, fault("whatsapp-canary", d.String(), "give a time from 1s to 24h, or 0s for never"))
	}
	if v := s.WhatsAppVersion; v != "" && !version.MatchString(v) {
		faults = append(faults, fault("whatsapp-version", v, "give three numbers with dots between, as 2.3000.1012345678"))
	}
	if s.SecondAbove < 0 {
		faults = append(faults, fault("second-person-above", strconv.FormatInt(s.SecondAbove, 10), "give an amount in kobo, as 10000000 for ₦100,000, or 0 for never"))
	}
	for _, keep := range []struct {
		name string
		time time.Duration
	}{{"retention-chat", s.RetentionChat}, {"retention-webhooks", s.RetentionHooks}} {
		if keep.time != 0 && (keep.time < minRetention || keep.time > maxRetention) {
			faults = append(faults, fault(keep.name, keep.time.String(), "give a time from 168h (7 days) to 87600h (10 years), or 0s to keep it for good"))
		}
	}
	if _, err := s.Proxies(); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, s.checkDial())
	return errors.Join(faults...)
}

// checkDial finds what is wrong with the WhatsApp network of somebody else's.
func (s Settings) checkDial() error {
	if s.WhatsAppDial == "" {
		if s.WhatsAppRootKey != "" { // what was meant for that network would go to another, the real one perhaps
			return fault("whatsapp-root-key", s.WhatsAppRootKey, "it is of the network that --whatsapp-dial names: set that too, or leave this out")
		}
		return nil
	}
	_, err := s.RootKey()
	if !hasPort(s.WhatsAppDial) {
		err = errors.Join(fault("whatsapp-dial", s.WhatsAppDial, "give host:port"), err)
	}
	return err
}

// checkPublicURL finds what is wrong with the public address: links are made by
// putting more behind it, and everybody reads them.
func (s Settings) checkPublicURL() error {
	if s.PublicURL == "" {
		return nil
	}
	raw := string(s.PublicURL)
	if !hasScheme(raw, "http", "https") || unquoted(raw) != raw {
		return fault("public-url", s.PublicURL.String(), "give an https:// address, as "+asHTTPS(raw))
	}
	u, err := url.Parse(raw)
	if err == nil && (u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#")) {
		shown := s.PublicURL.String()
		u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
		return fault("public-url", shown, "give it without a user, a query and a fragment, as "+u.String())
	}
	return nil
}

// Proxies are the networks of the proxies in front of the API.
func (s Settings) Proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for part := range strings.SplitSeq(s.TrustedProxies, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		network, err := netip.ParsePrefix(part)
		if ip, single := netip.ParseAddr(part); single == nil {
			network, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return nil, fault("trusted-proxies", part, "give addresses or networks, as 10.0.0.7 or 10.0.0.0/8")
		}
		if network.Bits() == 0 { // everybody: each caller could say that it is another, and the limits would hold nobody
			return nil, fault("trusted-proxies", part, "name the proxies alone, as 10.0.0.7 or 10.0.0.0/8")
		}
		out = append(out, network.Masked())
	}
	return out, nil
}

// RealWhatsApp says whether the numbers are on WhatsApp itself, and not on a network
// of somebody's.
func (s Settings) RealWhatsApp() bool { return s.WhatsAppDial == "" && s.WhatsAppNetwork == "whatsapp" }

// InsideWhatsApp says whether the numbers are on the network that till dev has inside.
func (s Settings) InsideWhatsApp() bool { return s.WhatsAppDial == "" && !s.RealWhatsApp() }

// Paced says whether the bot writes as slowly as a person.
func (s Settings) Paced() bool {
	if s.WhatsAppPacing == "auto" {
		return s.RealWhatsApp()
	}
	return s.WhatsAppPacing == "on"
}

// RootKey is the trust root of a WhatsApp network of somebody else's.
func (s Settings) RootKey() ([32]byte, error) {
	var key [32]byte
	raw, err := hex.DecodeString(strings.TrimSpace(s.WhatsAppRootKey))
	if err != nil || len(raw) != len(key) {
		return key, fault("whatsapp-root-key", s.WhatsAppRootKey, "give the 32 bytes of the network's root key in hex (64 characters)")
	}
	return [32]byte(raw), nil
}

// SealingKeys are the keys that seal secrets: the one that seals now, nil for that
// of the data dir, and those that did before.
func (s Settings) SealingKeys() (current *[32]byte, old [][32]byte, err error) {
	if s.SecretsKey != "" {
		key, err := sealingKey("secrets-key", string(s.SecretsKey))
		if err != nil {
			return nil, nil, err
		}
		current = &key
	}
	for part := range strings.SplitSeq(string(s.SecretsKeyOld), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, err := sealingKey("secrets-key-old", part)
		if err != nil {
			return nil, nil, err
		}
		old = append(old, key)
	}
	return current, old, nil
}

// sealingKey reads a key. One whose bytes are all the same was not drawn.
func sealingKey(name, text string) (key [32]byte, err error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != len(key) || len(slices.Compact(slices.Clone(raw))) == 1 {
		return key, fault(name, hidden, "give 32 random bytes in hex (64 characters): openssl rand -hex 32 prints some")
	}
	return [32]byte(raw), nil
}

// fault is one setting that is wrong, and the way out.
func fault(name, value, advice string) error {
	return fmt.Errorf("--%s %q cannot be used: %s", name, value, advice)
}

// namesFolder says whether a text is the name of a folder as it was meant. A file of
// settings is read as it stands by containers: with the quotes of another file, or the
// end of a line of Windows, it names a folder that is empty, in which Till would begin anew.
func namesFolder(dir string) bool {
	home := dir == "~" || strings.HasPrefix(dir, "~/") // no shell read it
	return dir != "" && unquoted(dir) == dir && !home
}

// unquoted is a text without what shells and editors leave around it.
func unquoted(text string) string { return strings.Trim(text, "\"' \t\r\n") }

// hasPort says of host:port whether its port is a number that there is.
func hasPort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// asHTTPS is an address as it was probably meant, an example where that is not clear.
func asHTTPS(raw string) string {
	raw = unquoted(raw)
	if _, rest, found := strings.Cut(raw, "://"); found {
		raw = rest
	}
	raw = raw[strings.LastIndexByte(raw, '@')+1:]
	if meant := "https://" + raw; hasScheme(meant, "https") {
		return meant
	}
	return "https://pay.example.com"
}

func hasScheme(raw string, schemes ...string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" && u.Scheme != "unix" && u.Query().Get("host") == "" { // postgres:///db?host=/socket/dir
		return false
	}
	return slices.Contains(schemes, u.Scheme)
}

// LoopbackWebhooks says whether webhooks of the test environment may go to programs
// on this machine: never where a merchant outside of it could have them sent there,
// and read what they answer. Whoever names a proxy is reached through it.
func (s Settings) LoopbackWebhooks() bool {
	host, _, err := net.SplitHostPort(s.HTTPAddr)
	return s.WebhookLoopback && err == nil && s.TrustedProxies == "" && OnThisMachine("http://"+net.JoinHostPort(host, "1")) && (s.PublicURL == "" || OnThisMachine(string(s.PublicURL)))
}

// OnThisMachine says whether an address leads nowhere else. It asks nobody.
func OnThisMachine(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}
