package sim

import (
	"strconv"
	"strings"
	"time"

	"till/flow/store/lite"
)

// What a merchant and a payer must be told of each move, in words of our own.
var (
	tellsOfSession    = map[string]string{"EXPIRED": "session.expired", "CANCELLED": "session.cancelled"}
	tellsOfRefund     = map[string]string{"PENDING": "refund.pending", "PROCESSED": "refund.processed", "FAILED": "refund.failed", "NEEDS_ATTENTION": "refund.needs_attention"}
	tellsOfSettlement = map[string]string{"SUCCEEDED": "settlement.success", "FAILED": "settlement.failed"}
	tellsOfPayment    = map[string]string{"LATE": "charge.late", "DUPLICATE": "charge.duplicate", "PARTIAL": "charge.underpaid"}
)

// owes takes in that this step must tell of something, by the session that it is of.
func (e *ledgerBook) owes(kind, session string) {
	if kind != "" && (session != "" || strings.HasPrefix(kind, "settlement.")) {
		e.owed[kind+" of "+session]++
	}
}

// judgeTold judges that each move of this step that a merchant is to hear of has its
// event.
func (e *ledgerBook) judgeTold() {
	w := e.w
	told := map[string]int{}
	for _, v := range e.news {
		told[v.kind+" of "+v.session]++
	}
	for _, what := range sorted(e.owed) {
		kind, session, _ := strings.Cut(what, " of ")
		if told[what] < e.owed[what] {
			w.breaks("I7", "%d events %s of %s are owed, and there are %d", e.owed[what], kind, w.called(session), told[what])
		}
	}
	clear(e.owed)
}

// judgeEarly judges that a session did not end before its time.
func (e *ledgerBook) judgeEarly(s *sessionRow) {
	w := e.w
	err := e.conn.Each(`SELECT created_at FROM events WHERE session = ? AND kind = 'session.expired'`, []any{s.id}, func(scan lite.Scanner) error {
		var at int64
		err := scan(&at)
		if err == nil && at < s.expires {
			w.breaks("I6", "%s expired %v before its time was over", w.called(s.id), time.Duration(s.expires-at)*time.Millisecond)
		}
		return err
	})
	if err != nil {
		w.breaks("sim", "read when a session expired: %v", err)
	}
}

// judgePaid judges that a session which was paid in this step is so with what its
// merchant was given for it, and that nothing of that was left aside. What the bank
// took back pays nothing, unless that was afterwards.
func (e *ledgerBook) judgePaid(s *sessionRow) {
	given := e.towards(s, func(*paymentRow) bool { return true })
	stayed := e.towards(s, func(p *paymentRow) bool { return !p.reversed })
	if given != s.paid && stayed != s.paid {
		e.w.breaks("I2", "%s is paid with %d kobo, and its merchant was given %d", e.w.called(s.id), s.paid, given)
	}
}

// towards is what of a session's money was given to its merchant, as far as it pays the
// session. Late money that is too much is theirs whole once they take it, unless what is
// too much is to go back.
func (e *ledgerBook) towards(s *sessionRow, counts func(*paymentRow) bool) int64 {
	sum, late := int64(0), int64(0)
	for _, id := range s.money {
		switch p := e.payments[id]; {
		case !counts(p):
		case p.match == "LATE" && s.over != "refund_excess":
			late += p.given
		default:
			sum += p.given
		}
	}
	return sum + min(late, max(s.amount-sum, 0))
}

// dueUntil is when what a payout of a day pays must have come: before that day in Lagos,
// and before the Friday where it is at a weekend. None of the days that are simulated is
// a holiday.
func dueUntil(on string) time.Time {
	day, err := time.ParseInLocation(time.DateOnly, on, time.FixedZone("Lagos", 3600))
	if err != nil {
		return time.Time{} // before all that is paid
	}
	return day.AddDate(0, 0, map[time.Weekday]int{time.Saturday: -1, time.Sunday: -2}[day.Weekday()])
}

// judgeTries judges that each try of a webhook left a record, but for the one that a
// crash may have cut off.
func (e *ledgerBook) judgeTries() {
	w := e.w
	err := e.conn.Each(`SELECT d.event, p.url, (SELECT count(*) FROM delivery_attempts a WHERE a.delivery = d.id) FROM deliveries d JOIN endpoints p ON p.id = d.endpoint ORDER BY d.id`, nil,
		func(scan lite.Scanner) error {
			var event, url string
			var records int
			if err := scan(&event, &url, &records); err != nil {
				return err
			}
			if to := w.sinks.all[url]; to != nil && to.got[event] != nil && to.got[event].tries > records+w.gen-1 {
				w.breaks("I7", "%s was brought to %s %d times, and %d tries are kept", w.called(event), url, to.got[event].tries, records)
			}
			return nil
		})
	if err != nil {
		w.breaks("sim", "read the tries: %v", err)
	}
}

// judgeAmounts judges that a merchant was told of the money that its session was paid
// with.
func (e *ledgerBook) judgeAmounts(k *sink) {
	for _, id := range sorted(k.got) {
		got := k.got[id]
		s := e.sessions[got.session]
		if got.kind != "charge.success" || s == nil {
			continue
		}
		if got.paid != strconv.FormatInt(s.paid, 10) {
			e.w.breaks("I2", "%s is paid with %d kobo, and its merchant was told %s", e.w.called(got.session), s.paid, got.paid)
		}
	}
}
