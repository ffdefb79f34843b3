package config

import "net"

// DefaultMetricsAddr is where metrics are read unless it is said otherwise.
const DefaultMetricsAddr = "127.0.0.1:9464"

// metricsOff is how --metrics-addr says that nobody reads them.
const metricsOff = "off"

// leastToken is how long a token has to be.
const leastToken = 16

// Metrics says whether metrics can be read at an address.
func (s Settings) Metrics() bool { return s.MetricsAddr != metricsOff && s.MetricsAddr != "" }

// checkMetrics finds what is wrong with how metrics are read: what others than
// this machine reach must ask who they are.
func (s Settings) checkMetrics() error {
	if s.MetricsToken != "" && len(s.MetricsToken) < leastToken {
		return fault("metrics-token", hidden, "give 16 characters or more: openssl rand -hex 32 prints some")
	}
	if !s.Metrics() {
		return nil
	}
	if !hasPort(s.MetricsAddr) {
		return fault("metrics-addr", s.MetricsAddr, "give host:port, as 127.0.0.1:9464, or off")
	}
	host, _, _ := net.SplitHostPort(s.MetricsAddr)
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && s.MetricsToken == "" {
		return fault("metrics-addr", s.MetricsAddr, "others than this machine reach it: set --metrics-token too, or listen on 127.0.0.1")
	}
	return nil
}
