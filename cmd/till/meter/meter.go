package meter

import (
	"cmp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"till/flow"
	"till/flow/checkout"
)

// The bounds of what is kept.
const (
	// maxAnswers is how many kinds of answer (route, method, code, environment) are told apart;
	// what comes after them is counted as other.
	maxAnswers = 1000
	other      = "other"
)

// Meter counts. It is safe for use from everywhere at once.
type Meter struct {
	now      func() time.Time
	registry *prometheus.Registry

	answers     *prometheus.CounterVec
	answerTimes prometheus.Histogram
	answerKinds sync.Map // of answerKind, to prometheus.Counter
	answerCount atomic.Int64

	commits     prometheus.Histogram
	sessions    *prometheus.CounterVec
	transitions *prometheus.CounterVec
	charges     *prometheus.CounterVec
	amounts     *prometheus.CounterVec
	notices     *prometheus.CounterVec
	messages    *prometheus.CounterVec
	intents     *prometheus.CounterVec
	unsent      *prometheus.CounterVec
	unreadable  prometheus.Counter
	redactions  *prometheus.CounterVec
	replies     prometheus.Histogram
	attempts    *prometheus.CounterVec
	railTimes   *prometheus.HistogramVec
	banks       sync.Map // environment → *unanswered
}

// answerKind tells answers apart.
type answerKind struct {
	route, method string
	code          int
	env           flow.Environment // of the key that was used, "" for none
	notServed     bool             // refused, as nobody offers what it asked for
}

// New makes a Meter. now is the real time, which no merchant moves.
func New(version string, now func() time.Time) *Meter {
	m := &Meter{now: now, registry: prometheus.NewRegistry()}
	m.answers = m.counter("till_http_requests_total", "Requests to the API and the console that were answered, env by the key that was used.", "route", "method", "code", "env", "why")
	m.answerTimes = m.histogram("till_http_request_duration_seconds", "How long requests took, from their header to their answer.",
		.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 40)
	m.commits = m.histogram("till_db_commit_duration_seconds", "How long commits took: on SQLite one holds the work of many callers.",
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5)
	m.sessions = m.counter("till_sessions_total", "Sessions that came to a status, new ones as pending.", "env", "status")
	m.transitions = m.counter("till_session_transitions_total", "Moves of sessions between statuses.", "from", "to")
	m.charges = m.counter("till_charges_total", "Payments that a bank confirmed, by what came of them.", "env", "outcome")
	m.amounts = m.counter("till_charge_amount_kobo_total", "Money of the payments that a bank confirmed.", "env")
	m.notices = m.counter("till_bank_notifications_total", "What banks sent us, by its kind or by why it was not kept.", "outcome")
	m.messages = m.counter("till_chat_messages_total", "Messages from payers and to payers.", "direction", "kind")
	m.intents = m.counter("till_chat_intent_total", "What payers meant.", "intent", "understood")
	m.unsent = m.counter("till_chat_unsent_total", "Messages to payers that were given up, or that wait for a word of theirs because WhatsApp refuses them, with what was to follow.", "env", "reason")
	m.unreadable = m.counter("till_chat_undecryptable_total", "Messages of payers that could not be decrypted when they came; most come again and can be.").WithLabelValues()
	m.redactions = m.counter("till_redactions_total", "Secrets that payers typed and that were not kept.", "kind")
	m.replies = m.histogram("till_chat_reply_duration_seconds", "How long payers waited for the first message in answer to theirs.",
		.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300)
	m.attempts = m.counter("till_webhook_attempts_total", "Tries to deliver webhooks, by what came of them.", "env", "result")
	m.railTimes = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "till_rail_request_duration_seconds", Help: "How long a bank took to answer, by what it was asked and what came of it.",
		Buckets: []float64{.025, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"op", "result"})
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "till_build_info", Help: "The program that runs; its value is always 1."}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(m.railTimes, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, kind := range []string{redactedCard, other} { // there from the start, so that the first one is seen as a rise
		m.redactions.WithLabelValues(kind)
	}
	return m
}

func (m *Meter) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Meter) histogram(name, help string, buckets ...float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// Commits takes the time of one commit: see store.Config.
func (m *Meter) Commits() (done func()) {
	began := m.now()
	return func() { m.commits.Observe(m.now().Sub(began).Seconds()) }
}

// Answering takes the time of one request: see api.Config. Route is the pattern
// and never the path, which names sessions.
func (m *Meter) Answering() (done func(route, method string, code int, env flow.Environment, notServed bool)) {
	began := m.now()
	return func(route, method string, code int, env flow.Environment, notServed bool) {
		m.answerTimes.Observe(m.now().Sub(began).Seconds())
		m.answer(answerKind{route, method, code, env, notServed}).Inc()
	}
}

// answer is the counter of a kind of answer.
func (m *Meter) answer(kind answerKind) prometheus.Counter {
	kind.route = cmp.Or(kind.route, other)
	if known, ok := m.answerKinds.Load(kind); ok {
		return known.(prometheus.Counter) //nolint:errcheck // nothing else is in the map
	}
	why := ""
	if kind.notServed {
		why = "not_served"
	}
	if m.answerCount.Add(1) > maxAnswers {
		return m.answers.WithLabelValues(other, other, strconv.Itoa(kind.code/100)+"xx", string(kind.env), why)
	}
	c := m.answers.WithLabelValues(kind.route, kind.method, strconv.Itoa(kind.code), string(kind.env), why)
	m.answerKinds.Store(kind, c)
	return c
}

// ofEnv counts for one environment.
type ofEnv struct {
	m       *Meter
	env     string
	amounts prometheus.Counter
}

// Of is what an environment's checkout counts with.
func (m *Meter) Of(env flow.Environment) checkout.Meter {
	name := string(env)
	for _, outcome := range flow.MatchStatuses() { // there from the start: an alert compares them with what was
		m.charges.WithLabelValues(name, lower(outcome))
	}
	for _, reason := range checkout.UnsentReasons() { // likewise
		m.unsent.WithLabelValues(name, reason)
	}
	return ofEnv{m, name, m.amounts.WithLabelValues(name)}
}
