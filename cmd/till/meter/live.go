package meter

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// LiveConfig is what is known in memory at any moment, and costs nothing to ask.
type LiveConfig struct {
	Deliveries map[flow.Environment]func() checkout.Deliveries
	Numbers    func() []flow.Number      // of the bot
	Stores     map[string]*store.DB      // by name
	Requests   func() (atWork, open int) // of the API, and its connections
	Now        func() time.Time          // of the numbers' leases
}

// live shows that.
type live struct{ cfg LiveConfig }

// Live shows what is known in memory, as it is at each scrape.
func (m *Meter) Live(c LiveConfig) { m.registry.MustRegister(live{c}) }

// The figures of live.
var (
	webhookDead      = total("till_webhook_dead_total", "Deliveries that were given up.", "env")
	webhookRefusals  = total("till_webhook_store_refusals_total", "Times the store would not keep what became of tries.", "env")
	webhookDisabled  = total("till_webhook_endpoints_disabled_total", "Endpoints that were switched off because they failed for too long.", "env")
	webhookSending   = gauge("till_webhook_sending", "Deliveries that are on their way now.", "env")
	webhookQueued    = gauge("till_webhook_queued", "Deliveries in memory that wait for a place.", "env")
	webhookBytes     = gauge("till_webhook_queued_bytes", "Size of those.", "env")
	connected        = gauge("till_whatsapp_connected", "WhatsApp numbers that hear and send.")
	loggedOut        = gauge("till_whatsapp_logged_out", "WhatsApp numbers that were unlinked or banned, or that WhatsApp refuses.")
	number           = gauge("till_whatsapp_number_state", "1 for where each WhatsApp number stands, by the place of its keys.", "slot", "state")
	phoneAway        = gauge("till_whatsapp_phone_away_seconds", "How long the phone of each WhatsApp number that hears was not seen; after 14 days WhatsApp unlinks us.", "slot")
	requestsInFlight = gauge("till_http_requests_in_flight", "Requests that are being answered.")
	connections      = gauge("till_http_connections", "Connections to the API and the console.")
	storeQueue       = gauge("till_db_queue", "Updates that wait for the one writer of a database.", "database")
	storeUnderWay    = gauge("till_db_updates_in_flight", "Updates of a database that have not returned.", "database")
)

// Describe implements prometheus.Collector.
func (live) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []figure{
		webhookDead, webhookRefusals, webhookDisabled, webhookSending, webhookQueued, webhookBytes, connected, loggedOut, number, phoneAway,
		requestsInFlight, connections, storeQueue, storeUnderWay,
	} {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (l live) Collect(to chan<- prometheus.Metric) {
	for env, of := range l.cfg.Deliveries {
		d, env := of(), string(env)
		webhookDead.show(to, float64(d.Dead), env)
		webhookRefusals.show(to, float64(d.StoreRefusals), env)
		webhookDisabled.show(to, float64(d.Disabled), env)
		webhookSending.show(to, float64(d.Sending), env)
		webhookQueued.show(to, float64(d.Queued), env)
		webhookBytes.show(to, float64(d.QueuedBytes), env)
	}
	l.numbers(to)
	atWork, open := l.cfg.Requests()
	requestsInFlight.show(to, float64(atWork))
	connections.show(to, float64(open))
	for name, db := range l.cfg.Stores {
		storeQueue.show(to, float64(db.Queued()), name)
		storeUnderWay.show(to, float64(db.UnderWay()), name)
	}
}

// numbers shows where our WhatsApp numbers stand. A slot is the place of a
// number's keys and not the number: those are people's.
func (l live) numbers(to chan<- prometheus.Metric) {
	up, out := 0, 0
	now := l.cfg.Now()
	for _, n := range l.cfg.Numbers() {
		at := n.At(now)
		if n.Digits == "" { // no number was ever linked there: it has no chats that nobody answers
			at = flow.NumberPairing
		}
		slot, hears := strconv.Itoa(n.Slot), false
		number.show(to, 1, slot, string(at))
		switch at {
		case flow.NumberLive, flow.NumberPhoneAway, flow.NumberTimelocked, flow.NumberDraining, flow.NumberSyncing:
			up++
			hears = true
		case flow.NumberMute:
			hears = true
		case flow.NumberLoggedOut, flow.NumberBanned, flow.NumberOutdated, flow.NumberPasskey:
			out++
		case flow.NumberOffline, flow.NumberConnecting, flow.NumberPairing, flow.NumberDeaf, flow.NumberReplaced, flow.NumberKilled:
		}
		if hears && !n.PhoneSeen.IsZero() { // of one that hears nothing the phone is not seen either
			phoneAway.show(to, max(0, now.Sub(n.PhoneSeen)).Seconds(), slot)
		}
	}
	connected.show(to, float64(up))
	loggedOut.show(to, float64(out))
}
