package config_test

import (
	"fmt"
	"strings"
	"testing"

	"till/config"
)

// What is put behind the public address, and read by everybody, has neither a
// password nor a question in it.
func TestThePublicAddressIsOneThatLinksAreMadeOf(t *testing.T) {
	t.Parallel()
	for address, meant := range map[string]string{
		"": "", "https://pay.example.com": "", "http://127.0.0.1:8080/": "", "https://example.com/till": "",
		"https://u:hunter2@pay.example.com": "https://pay.example.com", "https://u@pay.example.com/x": "https://pay.example.com/x",
		"https://pay.example.com?z=1": "https://pay.example.com", "https://pay.example.com/?": "https://pay.example.com/",
		"https://pay.example.com#top": "https://pay.example.com", "https://pay.example.com/#": "https://pay.example.com/",
		"pay.example.com": "https://pay.example.com", `"https://pay.example.com"`: "https://pay.example.com", `https://pay.example.com"`: "https://pay.example.com",
	} {
		s := config.Settings{
			HTTPAddr: "127.0.0.1:8080", DataDir: "data", MetricsAddr: "off", RateLimitTest: 1, RateLimitLive: 1, WhatsAppSends: 1, WhatsAppChats: 1, WhatsAppNumbers: 1,
			PublicURL: config.Address(address),
		}
		err := s.Check()
		if (meant == "") != (err == nil) {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && (!strings.HasSuffix(err.Error(), ", as "+meant) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q is told as %v", address, err)
		}
	}
}

// Nothing begins anew in a folder that nobody meant: a container's file of settings
// keeps the quotes and the line ends of another.
func TestTheDataDirIsAFolderThatWasMeant(t *testing.T) {
	t.Parallel()
	for dir, fine := range map[string]bool{
		"./data": true, "/var/lib/till/data": true, "/srv/o'brien/till": true, "C:\\till": true, "~till": true,
		"": false, " ": false, "data ": false, "/var/lib/till/data\r": false, `"/var/lib/till/data"`: false, "'data'": false, "~": false, "~/till": false,
	} {
		s := config.Settings{DataDir: dir}
		if told := strings.Contains(fmt.Sprint(s.Check()), "--data-dir"); told == fine {
			t.Errorf("%q: told %v", dir, told)
		}
	}
}

// What only this machine reaches is called for merchants of this machine alone.
func TestWebhooksGoToThisMachineWhereNobodyElseReachesTill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr, public string
		want         bool
	}{
		{"127.0.0.1:8080", "", true},
		{"localhost:8080", "", true},
		{"[::1]:8080", "http://localhost:8080", true},
		{"127.8.9.1:8080", "http://127.0.0.1:8080", true},
		{":8080", "", false},
		{"0.0.0.0:8080", "", false},
		{"[::]:8080", "http://localhost:8080", false},
		{"10.0.0.7:8080", "", false},
		{"till.example:8080", "", false},
		{"127.0.0.1:8080", "https://pay.example", false},
		{"127.0.0.1:8080", "https://localhost.example", false},
		{"127.0.0.1:8080", "https://127.0.0.1.example", false},
		{"127.0.0.1:8080", "://", false},
		{"127.0.0.1", "", false},
		{"", "", false},
	} {
		s := config.Settings{WebhookLoopback: true, HTTPAddr: c.addr, PublicURL: config.Address(c.public)}
		if got := s.LoopbackWebhooks(); got != c.want {
			t.Errorf("at %q, as %q: %v, not %v", c.addr, c.public, got, c.want)
		}
		s.TrustedProxies = "127.0.0.1"
		if s.LoopbackWebhooks() {
			t.Errorf("at %q, as %q: although a proxy is in front", c.addr, c.public)
		}
		s.WebhookLoopback, s.TrustedProxies = false, ""
		if s.LoopbackWebhooks() {
			t.Errorf("at %q, as %q: although it is off", c.addr, c.public)
		}
	}
}

// Whoever is believed about whose call they pass on is a proxy, and not everybody.
func TestProxiesAreSomebody(t *testing.T) {
	t.Parallel()
	for given, fine := range map[string]bool{
		"": true, "10.0.0.7": true, "10.0.0.0/8, 2001:db8::/32": true, "::1": true, "0.0.0.0/0": false, "10.0.0.7,::/0": false, "proxy.local": false,
	} {
		if _, err := (config.Settings{TrustedProxies: given}).Proxies(); (err == nil) != fine {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// What is sent to an address without TLS passes in the clear, unless it stays on this machine.
func TestAnAddressWithoutTLSPassesInTheClear(t *testing.T) {
	t.Parallel()
	for address, want := range map[config.Address]string{
		"http://pay.example.com":      "https://pay.example.com",
		"HTTP://pay.example.com:81/a": "https://pay.example.com:81",
		"http://till.localhost:8080":  "https://till.localhost:8080",
		"http://10.0.0.7":             "https://10.0.0.7",
		"https://pay.example.com":     "",
		"http://localhost:8080":       "",
		"http://LOCALHOST:8080":       "",
		"http://127.8.9.1":            "",
		"http://[::1]:8080":           "",
		"://":                         "",
		"":                            "",
	} {
		if instead, open := address.InTheClear(); instead != want || open != (want != "") {
			t.Errorf("%q: %v, instead %q", address, open, instead)
		}
	}
}
