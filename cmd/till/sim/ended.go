package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow/store/lite"
)

// judgeOrdered judges that what was to be sent out has come to its end: it was
// sent, it was not, or it is known that somebody must look.
func (e *ledgerBook) judgeOrdered() {
	w := e.w
	for _, id := range e.refundOrder {
		if is := e.refunds[id]; is == "PENDING" || is == "PROCESSING" {
			w.breaks("I3", "%s is %s when every schedule is over", w.called(id), is)
		}
	}
	for _, id := range e.settlementOrder {
		if is := e.settlements[id]; is == "PENDING" || is == "PROCESSING" {
			w.breaks("I3", "%s is %s when every schedule is over", w.called(id), is)
		}
	}
}

// judgePending judges that no webhook waits any more.
func (e *ledgerBook) judgePending() {
	w := e.w
	err := e.conn.Each(`SELECT d.event, p.url, d.attempts, d.next_at, d.cause FROM deliveries d JOIN endpoints p ON p.id = d.endpoint WHERE d.state = 'pending' ORDER BY d.id`, nil,
		func(scan lite.Scanner) error {
			var event, url, cause string
			var tries int
			var next int64
			if err := scan(&event, &url, &tries, &next, &cause); err != nil {
				return err
			}
			w.breaks("I7", "%s waits for %s when every schedule is over: %d tries (%s), the next at %s", w.called(event), url, tries, cause, clockOf(time.UnixMilli(next).Sub(epoch)))
			return nil
		})
	if err != nil {
		w.breaks("sim", "read what waits: %v", err)
	}
}

// promisedTries is how often merchants are told that a webhook is tried, and promisedFor
// for how long.
const (
	promisedTries = 10
	promisedFor   = 72 * time.Hour
)

// judgeGivenUp judges that no webhook was given up that was not tried as often as
// merchants are told. One that was held back because its endpoint was gone or
// failed is given up when its time is over; a ping is sent once, and so is what was only
// ever sent by hand.
func (e *ledgerBook) judgeGivenUp() {
	w := e.w
	err := e.conn.Each(`SELECT d.id, d.event, p.url, v.kind FROM deliveries d JOIN endpoints p ON p.id = d.endpoint JOIN events v ON v.id = d.event WHERE d.state = 'dead'
 AND (NOT EXISTS (SELECT 1 FROM delivery_attempts a WHERE a.delivery = d.id) OR EXISTS (SELECT 1 FROM delivery_attempts a WHERE a.delivery = d.id AND a.cause = 'auto'))`, nil,
		func(scan lite.Scanner) error {
			var id, event, url, kind string
			if err := scan(&id, &event, &url, &kind); err != nil {
				return err
			}
			to := w.sinks.all[url]
			if kind == "ping" || e.wereHeld[id] || to == nil {
				return nil
			}
			switch got := to.got[event]; {
			case got == nil || got.tries < promisedTries && !got.gone:
				w.breaks("I7", "%s was given up at %s, which was not asked %d times to take it", w.called(event), url, promisedTries)
			case got.last-got.first < promisedFor && !got.gone:
				w.breaks("I7", "%s was given up at %s after %v", w.called(event), url, got.last-got.first)
			}
			return nil
		})
	if err != nil {
		w.breaks("sim", "read what was given up: %v", err)
	}
}

// judgeStrangers judges that no merchant was told of another's session.
func (w *world) judgeStrangers() {
	whose := map[string]*merchant{}
	for _, s := range w.sessions {
		whose[s.id] = s.m
	}
	delete(whose, "") // of those that were never opened
	w.mu.Lock()
	var told []string
	for _, url := range sorted(w.sinks.all) {
		k := w.sinks.all[url]
		for _, id := range sorted(k.got) {
			if m := whose[k.got[id].session]; m != nil && m != k.m {
				told = append(told, k.got[id].kind+" of "+k.got[id].session+" at "+url)
			}
		}
	}
	w.mu.Unlock()
	if len(told) > 0 {
		w.breaks("I10", "a merchant was told what is another's: %s", strings.Join(told, ", "))
	}
}

// wrote says whether a payer wrote the message of an id.
func (w *world) wrote(message string) bool {
	return slices.ContainsFunc(w.phones.people, func(p *person) bool {
		number, is := strings.CutPrefix(message, p.name+"-")
		n, err := strconv.Atoi(number)
		return is && err == nil && n >= 1 && n <= p.wrote
	})
}

// The bounds of learning a new secret: a merchant uses it after a while, and of
// several that were drawn within the time of one call it knows no order.
const (
	learns = time.Minute
	unsure = 15 * time.Minute
)

// current are the secrets that a merchant verifies with who has thrown away what
// was replaced: the one that was learnt last, and others that may be newer. The
// caller holds the lock.
func (k *sink) current(now time.Duration) []string {
	known := 0
	for known < len(k.learnt) && (known == 0 || k.learnt[known] <= now-learns) {
		known++
	}
	first := 0
	for first < known-1 && k.learnt[first] < k.learnt[known-1]-unsure {
		first++
	}
	return append(slices.Clone(k.secrets[first:known]), k.secrets[known:]...)
}
