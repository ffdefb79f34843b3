package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Wait is for how long something waits, by what both clocks were seen to show.
func Wait(seen [][2]time.Time, began, machine time.Time) time.Duration {
	var m moves
	for _, s := range seen {
		m = m.see(s[0], s[1])
	}
	return m.wait(began, machine)
}

// Gatherer is what a scrape would read.
func (m *Meter) Gatherer() prometheus.Gatherer { return m.registry }
