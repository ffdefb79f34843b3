package config_test

import (
	"testing"

	"till/config"
)

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
		s := config.Settings{WebhookLoopback: true, HTTPAddr: c.addr, PublicURL: c.public}
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
