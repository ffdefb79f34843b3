package checkout

import (
	"sync/atomic"

	"till/flow"
	"till/flow/store"
)

// counts is what was done since the program began.
type counts struct {
	delivered, failed, dead, held, released, open, probes, disabled, refused atomic.Int64
}

func (c *counts) tried(o store.Outcome) {
	switch o.State {
	case flow.DeliveryDelivered:
		c.delivered.Add(1)
	case flow.DeliveryDead:
		c.failed.Add(1)
		c.dead.Add(1)
	default:
		c.failed.Add(1)
	}
}

func (c *counts) opened(first bool) {
	if first {
		c.open.Add(1)
	} else {
		c.probes.Add(1)
	}
}

// Deliveries is what an operator watches of webhooks: what was done since the
// program began, and what is in its memory now.
type Deliveries struct {
	Delivered     int64 `json:"delivered"`
	Failed        int64 `json:"failed"`        // tries
	Dead          int64 `json:"dead"`          // given up
	Held          int64 `json:"held"`          // for endpoints that do not answer
	Released      int64 `json:"released"`      // once they did
	HeldBack      int64 `json:"heldBack"`      // endpoints
	FailedProbes  int64 `json:"failedProbes"`  // of those
	Disabled      int64 `json:"disabled"`      // endpoints, by us
	StoreRefusals int64 `json:"storeRefusals"` // to keep what became of tries
	Sending       int   `json:"sending"`
	Queued        int   `json:"queued"`
	QueuedBytes   int   `json:"queuedBytes"`
	NotYetKept    int   `json:"notYetKept"` // tries, with those that are under way
	Endpoints     int   `json:"endpoints"`  // that something is remembered of
}

// Deliveries reads the counters.
func (s *Service) Deliveries() Deliveries {
	c := &s.counts
	d := Deliveries{
		Delivered: c.delivered.Load(), Failed: c.failed.Load(), Dead: c.dead.Load(), Held: c.held.Load(), Released: c.released.Load(),
		HeldBack: c.open.Load(), FailedProbes: c.probes.Load(), Disabled: c.disabled.Load(), StoreRefusals: c.refused.Load(),
	}
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	p := &s.worker.posts
	d.Sending, d.Queued, d.QueuedBytes, d.NotYetKept, d.Endpoints = p.count, p.queued, p.bytes, p.keeps, len(p.lanes)
	return d
}
