package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// figure is one line of what is shown: a gauge or a counter of what is known
// elsewhere.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func total(name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

// show hands a figure to Prometheus.
func (f figure) show(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

// What a Watch reads.
var (
	exceptionsOpen   = gauge("till_exceptions_open", "What waits for somebody, counted up to 1000.", "env", "kind")
	exceptionsOldest = gauge("till_exceptions_oldest_seconds", "How long the oldest of them has waited; in test by a clock that can be moved.", "env", "kind")
	webhookBacklog   = gauge("till_webhook_backlog", "Deliveries that are owed by their schedule, counted up to 20000.", "env")
	webhookOldest    = gauge("till_webhook_oldest_seconds", "How long ago the oldest of them was made; in test by a clock that can be moved.", "env")
	webhookHeld      = gauge("till_webhook_held", "Deliveries that wait for endpoints that do not answer or are disabled.", "env")
	webhookHeldBack  = gauge("till_webhook_held_oldest_seconds", "How long ago the oldest was made of those for endpoints that do not answer; in test by a clock that can be moved.", "env")
	outboxOldest     = gauge("till_chat_outbox_oldest_seconds", "How long the oldest message to a payer waits that is to go out, by this machine's clock.", "env")
	callOldest       = gauge("till_chat_waiting_oldest_seconds", "How long somebody waits for a person to whom none has come, by this machine's clock.", "env")
	ledgerImbalance  = gauge("till_ledger_imbalance_kobo", "By how much transactions of the ledger do not sum to zero. It must be 0.")
	partUp           = gauge("till_part_up", "1 for a part that works, as GET /readyz says it.", "part")
	walBytes         = gauge("till_db_wal_bytes", "Size of the logs of SQLite that wait to be written back; 0 with PostgreSQL.")
	diskFree         = gauge("till_data_disk_free_bytes", "Room on the disk of the data dir.")
	diskSize         = gauge("till_data_disk_size_bytes", "Size of that disk.")
	backedUp         = gauge("till_backup_timestamp_seconds", "When the last backup of the data dir was made, 0 for never; with PostgreSQL, which has tools of its own for that, it is not there.")
	clockSkew        = gauge("till_clock_skew_seconds", "How far this machine's clock is ahead of another one, or was set forward in the last ten minutes.", "against")
	watchTook        = gauge("till_watch_duration_seconds", "How long the last reading of the store took.")
	watchedAt        = gauge("till_watch_timestamp_seconds", "When what is shown of the store was read; before the first reading that works, when reading began.")
)

// Describe implements prometheus.Collector.
func (*Watch) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []figure{
		exceptionsOpen, exceptionsOldest, webhookBacklog, webhookOldest, webhookHeld, webhookHeldBack, outboxOldest, callOldest, ledgerImbalance, partUp, walBytes, diskFree, diskSize,
		backedUp, clockSkew, watchTook, watchedAt,
	} {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector: it shows what was read last, and asks
// nobody.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	r := w.last
	w.mu.Unlock()
	for _, p := range r.parts {
		partUp.show(to, flag(p.OK), p.Name)
	}
	if r.at.IsZero() { // nothing is known yet, which is not the same as nothing being wrong
		watchedAt.show(to, unixSeconds(w.began)) // or nobody would ever hear that no reading works
		return
	}
	for env, queues := range r.exceptions {
		for name, q := range queues {
			exceptionsOpen.show(to, float64(q.count), string(env), string(name))
			exceptionsOldest.show(to, q.oldest.Seconds(), string(env), string(name))
		}
	}
	for env, b := range r.webhooks {
		webhookBacklog.show(to, float64(b.owed), string(env))
		webhookOldest.show(to, b.oldest.Seconds(), string(env))
		webhookHeld.show(to, float64(b.held), string(env))
		webhookHeldBack.show(to, b.heldBack.Seconds(), string(env))
	}
	for env, c := range r.chats {
		outboxOldest.show(to, c.outbox.Seconds(), string(env))
		callOldest.show(to, c.call.Seconds(), string(env))
	}
	ledgerImbalance.show(to, float64(r.imbalance))
	walBytes.show(to, float64(r.wal))
	if r.all > 0 {
		diskFree.show(to, float64(r.free))
		diskSize.show(to, float64(r.all))
	}
	if r.backedUp != nil {
		backedUp.show(to, *r.backedUp)
	}
	for name, skew := range r.skew {
		clockSkew.show(to, skew.Seconds(), name)
	}
	watchTook.show(to, r.took.Seconds())
	watchedAt.show(to, unixSeconds(r.at))
}

func unixSeconds(at time.Time) float64 {
	return float64(at.UnixMilli()) / float64(time.Second/time.Millisecond)
}
