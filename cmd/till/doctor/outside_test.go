package doctor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"till/cmd/till/doctor"
	"till/config"
	"till/flow"
	"till/flow/store"
)

func faultsOutside() []fault {
	return []fault{
		{
			name: "Redis is down", check: "redis", state: doctor.Fail, what: `^Redis at 127\.0\.0\.1:\d+ does not answer: .*refused`, fix: `systemctl start redis-server`,
			breaks: func(s *stage) { s.redis().Close() },
			mends:  func(s *stage, _ string) { s.redis() },
		},
		{
			name: "Redis wants another password", check: "redis", state: doctor.Fail, what: `refuses the password of --redis-url`, fix: `TILL_REDIS_URL=redis://:PASSWORD@`,
			breaks: func(s *stage) { s.redis().RequireAuth("a long and secret word") },
			mends: func(s *stage, _ string) {
				s.cfg.RedisURL = config.Secret(strings.Replace(string(s.cfg.RedisURL), "redis://", "redis://:a%20long%20and%20secret%20word@", 1))
			},
		},
		{
			name: "the clock is off", check: "clock", state: doctor.Fail, what: `clock of this machine is 5m0s ahead of that of Redis`, fix: `timedatectl set-ntp true`,
			breaks: func(s *stage) { s.redis().SetTime(time.Now().Add(-5 * time.Minute)) },
			mends:  func(s *stage, _ string) { s.redis() },
		},
		{
			name: "PostgreSQL is down", check: "database", state: doctor.Fail, what: `^PostgreSQL cannot be used: .*refused`, fix: `^psql "\$TILL_DATABASE_URL" -c 'select 1' `,
			breaks: func(s *stage) { s.cfg.DatabaseURL = "postgres://till:x@127.0.0.1:1/till?connect_timeout=2" },
			mends:  func(s *stage, _ string) { s.cfg.DatabaseURL = "" },
		},
		{
			name: "the bank is away", check: "bank", state: doctor.Fail, what: `^The bank at http://127\.0\.0\.1:1 does not answer`, fix: `^till bank --addr 127\.0\.0\.1:1 --file THE_FILE_IT_HAD `,
			breaks: func(s *stage) { s.cfg.BankURL = "http://127.0.0.1:1" },
			mends: func(s *stage, _ string) {
				bank := httptest.NewServer(http.NotFoundHandler())
				s.t.Cleanup(bank.Close)
				s.cfg.BankURL = config.Address(bank.URL)
			},
		},
		{
			name: "the WhatsApp network is away", check: "whatsapp", state: doctor.Fail, what: `network at 127\.0\.0\.1:1 does not answer`, fix: `^till network --addr 127\.0\.0\.1:1$`,
			breaks: func(s *stage) { s.cfg.WhatsAppDial, s.cfg.WhatsAppRootKey = "127.0.0.1:1", strings.Repeat("00", 32) },
			mends: func(s *stage, _ string) {
				network := httptest.NewServer(http.NotFoundHandler())
				s.t.Cleanup(network.Close)
				s.cfg.WhatsAppDial = network.Listener.Addr().String()
			},
		},
		{
			name: "the number was unlinked", check: "whatsapp", state: doctor.Fail, what: `Number 1 \(.*5678\) is logged-out since .*unlinked us`, fix: `^till pair --slot 1 `,
			breaks: func(s *stage) { s.cfg.WhatsAppNetwork = "whatsapp"; s.number(flow.NumberLoggedOut) },
			mends:  func(s *stage, _ string) { s.number(flow.NumberLive) },
		},
		{
			name: "the number's keys are elsewhere", check: "whatsapp", state: doctor.Fail, what: `Number 1 \(.*5678\) is logged-out since .* It says: its keys are elsewhere\.$`, fix: `^till numbers .*till pair --slot 1 `,
			breaks: func(s *stage) {
				s.cfg.WhatsAppNetwork = "whatsapp"
				s.numberAs(flow.Number{Slot: 1, Digits: "2348012345678", State: flow.NumberLoggedOut, Detail: "its keys are elsewhere"})
			},
			mends: func(s *stage, _ string) { s.number(flow.NumberLive) },
		},
		{
			name: "the number was linked to another network", check: "whatsapp", state: doctor.Warn, what: `Number 1 .* is logged-out since .*another network`, fix: `^till dev, which links it`,
			breaks: func(s *stage) { s.number(flow.NumberLoggedOut) },
			mends:  func(s *stage, _ string) { s.number(flow.NumberLive) },
		},
		{
			name: "one phone is linked twice", check: "whatsapp", state: doctor.Warn, what: `Numbers 1 and 2 are one phone, .*5678:`, fix: `^till pair --slot 2 `,
			breaks: func(s *stage) {
				s.number(flow.NumberLive)
				s.numberIn(2, "2348012345678", flow.NumberLive)
			},
			mends: func(s *stage, _ string) { s.numberIn(2, "2348099999999", flow.NumberLive) },
		},
		{
			name: "the number is killed", check: "whatsapp", state: doctor.Warn, what: `Number 1 .* is killed`, fix: `^till numbers resume 1$`,
			breaks: func(s *stage) { s.kill(string(flow.NumberKill)) },
			mends:  func(s *stage, _ string) { s.kill(string(flow.NumberGoes)) },
		},
		{
			name: "the public name is unknown", check: "public-url", state: doctor.Fail, what: `The name pay\.till\.test of --public-url is not known to DNS`, fix: `^dig \+short pay\.till\.test`,
			breaks: func(s *stage) {
				s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test")
				s.cfg.Resolve = func(context.Context, string) ([]string, error) { return nil, &net.DNSError{IsNotFound: true} }
			},
			mends: func(s *stage, _ string) {
				s.cfg.Resolve = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
			},
		},
		{
			name: "the certificate expired", check: "public-url", state: doctor.Fail, what: `certificate of pay\.till\.test expired on 20`, fix: `certbot renew`,
			breaks: func(s *stage) { s.proxy(time.Now().Add(-time.Hour), "pay.till.test") },
			mends:  func(s *stage, _ string) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test") },
		},
		{
			name: "the certificate ends soon", check: "public-url", state: doctor.Warn, what: `ends in 3 days`, fix: `certbot renew`,
			breaks: func(s *stage) { s.proxy(time.Now().Add(3*24*time.Hour+time.Hour), "pay.till.test") },
			mends:  func(s *stage, _ string) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test") },
		},
		{
			name: "the certificate is for another name", check: "public-url", state: doctor.Fail, what: `is not for pay\.till\.test`, fix: `certbot certonly -d pay\.till\.test`,
			breaks: func(s *stage) { s.proxy(time.Now().Add(90*24*time.Hour), "shop.till.test") },
			mends:  func(s *stage, _ string) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test") },
		},
		{
			name: "the public address has no TLS", check: "public-url", state: doctor.Fail, what: `has no TLS`, fix: `^TILL_PUBLIC_URL=https://pay\.till\.test`,
			breaks: func(s *stage) { s.cfg.PublicURL = "http://pay.till.test" },
			mends:  func(s *stage, _ string) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test") },
		},
		{ // a start asks nobody where such a name leads, and refuses it
			name: "the public address has no TLS, and a name of its own", check: "public-url", state: doctor.Fail, what: `has no TLS`, fix: `^TILL_PUBLIC_URL=https://till\.localhost:8080`,
			breaks: func(s *stage) { s.cfg.PublicURL = "http://till.localhost:8080" },
			mends:  func(s *stage, _ string) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test") },
		},
		{
			name: "the public address has a path", check: "public-url", state: doctor.Warn, what: `has a path, /till: .*the links of the console .*do not`, fix: `^TILL_PUBLIC_URL=https://pay\.till\.test`,
			breaks: func(s *stage) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test"); s.cfg.PublicURL += "/till" },
			mends:  func(s *stage, _ string) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test") },
		},
		{
			name: "nobody is named as the proxy in front", check: "public-url", state: doctor.Warn, what: `fifty wrong passwords of anybody's keep everybody from logging in`, fix: `^TILL_TRUSTED_PROXIES=127\.0\.0\.1`,
			breaks: func(s *stage) { s.proxy(time.Now().Add(90*24*time.Hour), "pay.till.test"); s.cfg.TrustedProxies = "" },
			mends:  func(s *stage, _ string) { s.cfg.TrustedProxies = "127.0.0.1" },
		},
		{
			name: "a password can be guessed", check: "secrets", state: doctor.Fail, what: `--database-url has a password that can be guessed`, fix: `^psql .*openssl rand -hex 24`,
			breaks: func(s *stage) { s.cfg.DatabaseURL = "postgres://till:till@db.till.test/till?connect_timeout=1" },
			mends: func(s *stage, _ string) {
				s.cfg.DatabaseURL = "postgres://till:9f2d41c07be84a6d93f0@db.till.test/till?connect_timeout=1"
			},
		},
		{
			name: "a password behind the question mark can be guessed", check: "secrets", state: doctor.Fail, what: `--database-url has a password that can be guessed`, fix: `^psql `,
			breaks: func(s *stage) {
				s.cfg.DatabaseURL = "postgres:///till?host=db.till.test&user=till&password=till&connect_timeout=1"
			},
			mends: func(s *stage, _ string) {
				s.cfg.DatabaseURL = "postgres://db.till.test/till?user=till&password=9f2d41c07be84a6d93f0&connect_timeout=1"
			},
		},
	}
}

// kill moves the switch of the number.
func (s *stage) kill(to string) {
	s.t.Helper()
	s.with("test", func(db *store.DB) {
		s.must(db.Update(s.t.Context(), func(tx *store.Tx) error {
			_, err := tx.MoveSwitch(s.t.Context(), flow.SwitchMove{Kind: flow.SwitchNumber, Name: "2348012345678", To: to, At: time.Now()})
			return err
		}))
	})
}

// proxy puts something with a certificate in front of Till.
func (s *stage) proxy(until time.Time, name string) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	shown := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: until.Add(-100 * 24 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, shown, shown, &key.PublicKey, key)
	s.must(err)
	parsed, err := x509.ParseCertificate(raw)
	s.must(err)
	front := httptest.NewUnstartedServer(http.NotFoundHandler())
	front.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	front.Config.ErrorLog = quiet
	front.StartTLS()
	s.t.Cleanup(front.Close)
	_, port, err := net.SplitHostPort(front.Listener.Addr().String())
	s.must(err)
	s.cfg.Roots = x509.NewCertPool()
	s.cfg.Roots.AddCert(parsed)
	s.cfg.PublicURL, s.cfg.TrustedProxies = config.Address("https://pay.till.test:"+port), "127.0.0.1"
}

// A look changes nothing: neither the data nor what a server that starts now
// needs.
func TestTheDoctorChangesNothing(t *testing.T) {
	s := well(t)
	before := s.listing()
	for _, f := range doctor.Run(t.Context(), s.cfg, nil) {
		if f.State != doctor.OK || f.What == "" || f.Fix != "" {
			t.Errorf("a Till that is well: %+v", f)
		}
	}
	if after := s.listing(); after != before {
		t.Errorf("the data dir was\n%s\nand is\n%s", before, after)
	}
	s.cfg.DataDir = s.file("none")
	if got := s.found("data-dir"); got.State != doctor.Warn || !strings.HasPrefix(got.Fix, "till dev ") {
		t.Errorf("without a data dir: %+v", got)
	}
	if _, err := s.stat("none"); err == nil {
		t.Error("the doctor made a data dir")
	}
}

func (s *stage) stat(name string) (os.FileInfo, error) { return os.Stat(s.file(name)) }

// listing is every file of the data dir with its size.
func (s *stage) listing() string {
	entries, err := os.ReadDir(s.dir)
	s.must(err)
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		s.must(err)
		fmt.Fprintln(&b, e.Name(), info.Size())
	}
	return b.String()
}

// quiet hears what a proxy says of handshakes that the doctor breaks off.
var quiet = log.New(io.Discard, "", 0)
