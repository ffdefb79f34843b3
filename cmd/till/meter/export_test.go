package meter

import "github.com/prometheus/client_golang/prometheus"

// Gatherer is what a scrape would read.
func (m *Meter) Gatherer() prometheus.Gatherer { return m.registry }

// MaxAnswers is how many kinds of answer are told apart.
const MaxAnswers = maxAnswers
