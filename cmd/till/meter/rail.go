package meter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"till/flow"
	"till/rail"
)

const (
	// brokenAfter is how many calls in a row a bank has to leave unanswered until it
	// is taken to be away.
	brokenAfter = 5
	// brokenLasts is how long that is believed after the last of them: what waits for
	// the bank is asked about once an hour, and where nothing does nobody knows.
	brokenLasts = 90 * time.Minute
)

// Rail is an environment's rail, whose calls are counted and timed.
func (m *Meter) Rail(env flow.Environment, r rail.Rail) rail.Rail {
	t := timed{r, m, m.bank(env)}
	if v, can := r.(rail.Verifier); can {
		return verifying{t, v}
	}
	return t
}

// verifying is a timed rail that verifies.
type verifying struct {
	timed

	verifier rail.Verifier
}

// ResolveAccount implements rail.Verifier.
func (v verifying) ResolveAccount(ctx context.Context, a rail.Account) (name string, err error) {
	defer func(began time.Time) { v.took(ctx, "resolve", began, err) }(v.m.now())
	return v.verifier.ResolveAccount(ctx, a)
}

// LookUpIdentity implements rail.Verifier.
func (v verifying) LookUpIdentity(ctx context.Context, p rail.Person) (found flow.Matches, err error) {
	defer func(began time.Time) { v.took(ctx, "look_up", began, err) }(v.m.now())
	return v.verifier.LookUpIdentity(ctx, p)
}

// timed is a rail with a clock beside it.
type timed struct {
	rail.Rail

	m    *Meter
	bank *unanswered
}

// took keeps how long a call took and what came of it.
func (t timed) took(ctx context.Context, op string, began time.Time, err error) {
	t.m.railTimes.WithLabelValues(op, railResult(err)).Observe(t.m.now().Sub(began).Seconds())
	if !errors.Is(ctx.Err(), context.Canceled) { // whoever hangs up says nothing of the bank
		t.bank.heard(railAway(err), t.m.now())
	}
}

// railResult is what came of a call, in one word.
func railResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, rail.ErrRejected):
		return "rejected"
	case errors.Is(err, rail.ErrNotFound):
		return "not_found"
	case errors.Is(err, rail.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, rail.ErrUnknown):
		return "unknown"
	}
	return "failed"
}

func railAway(err error) bool {
	return errors.Is(err, rail.ErrUnavailable) || errors.Is(err, rail.ErrUnknown)
}

// Start implements rail.Rail.
func (t timed) Start(ctx context.Context, o flow.Order) (ins flow.Instructions, err error) {
	defer func(began time.Time) { t.took(ctx, "start", began, err) }(t.m.now())
	return t.Rail.Start(ctx, o)
}

// Check implements rail.Rail.
func (t timed) Check(ctx context.Context, reference string) (list []flow.Notice, err error) {
	defer func(began time.Time) { t.took(ctx, "check", began, err) }(t.m.now())
	return t.Rail.Check(ctx, reference)
}

// Disburse implements rail.Rail.
func (t timed) Disburse(ctx context.Context, d flow.Disbursement) (done flow.Disbursed, err error) {
	defer func(began time.Time) { t.took(ctx, "disburse", began, err) }(t.m.now())
	return t.Rail.Disburse(ctx, d)
}

// Disbursed implements rail.Rail.
func (t timed) Disbursed(ctx context.Context, reference string) (done flow.Disbursed, err error) {
	defer func(began time.Time) { t.took(ctx, "disbursed", began, err) }(t.m.now())
	return t.Rail.Disbursed(ctx, reference)
}

// Statement implements rail.Rail.
func (t timed) Statement(ctx context.Context, from, to time.Time) (list []flow.Notice, err error) {
	defer func(began time.Time) { t.took(ctx, "statement", began, err) }(t.m.now())
	return t.Rail.Statement(ctx, from, to)
}

// unanswered counts the calls in a row that a bank left unanswered.
type unanswered struct {
	env flow.Environment
	now func() time.Time

	mu    sync.Mutex
	calls int
	since time.Time // the first
	last  time.Time
}

// bank is what is known of an environment's bank.
func (m *Meter) bank(env flow.Environment) *unanswered {
	known, there := m.banks.LoadOrStore(env, &unanswered{env: env, now: m.now})
	bank := known.(*unanswered) //nolint:errcheck // nothing else is in the map
	if !there {
		m.registry.MustRegister(bank)
	}
	return bank
}

func (u *unanswered) heard(away bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if away && u.calls == 0 {
		u.since = now
	}
	if u.last = now; away {
		u.calls++
	} else {
		u.calls = 0
	}
}

// away says since when a bank answers nothing.
func (u *unanswered) away() (since time.Time, is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.since, u.calls >= brokenAfter && u.now().Sub(u.last) < brokenLasts
}

// BankAway is since when an environment's bank answers nothing; false while it does,
// or while nobody asks it.
func (m *Meter) BankAway(env flow.Environment) (since time.Time, away bool) {
	return m.bank(env).away()
}

func (u *unanswered) breaker() *prometheus.Desc {
	return prometheus.NewDesc("till_rail_breaker_state",
		"1 while the bank left the last five calls or more unanswered, else 0. Till goes on calling: each piece of work waits by its own schedule.",
		nil, prometheus.Labels{"env": string(u.env)})
}

// Describe implements prometheus.Collector.
func (u *unanswered) Describe(to chan<- *prometheus.Desc) { to <- u.breaker() }

// Collect implements prometheus.Collector.
func (u *unanswered) Collect(to chan<- prometheus.Metric) {
	_, away := u.away()
	to <- prometheus.MustNewConstMetric(u.breaker(), prometheus.GaugeValue, flag(away))
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
