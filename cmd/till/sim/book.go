package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"till/flow/store/lite"
)

// book is what the simulator knows of the service's files: an account of its own,
// written by SQLite's triggers and read over a connection of its own, and the
// state of everything as that account tells it.
type book struct {
	w    *world
	envs []*ledgerBook // test, live
}

// ledgerBook is the book of one environment.
type ledgerBook struct {
	w    *world
	name string
	conn reader
	seq  int64 // of the last move that was read

	sessions                     map[string]*sessionRow
	attempts                     map[string]*attemptRow
	byReference                  map[string]*attemptRow
	order                        []string // of the attempts
	payments                     map[string]*paymentRow
	refunds                      map[string]string // their states
	settlements                  map[string]string
	refundOrder, settlementOrder []string
	refundOf                     map[string]refundRow
	settlementAmount             map[string]int64
	wereHeld                     map[string]bool   // deliveries, at least once
	successes                    map[string]int    // charge.success events of a session
	railIDs                      map[string]string // the bank's movements that were posted, and as what
	heard                        map[string]int    // payers' messages that were decided
	talks                        map[string]string // chat/session to its state
	standing                     map[string]string // of a session: where its talk stands
	owners                       map[string]*owner // by project
	paidNow                      []string          // sessions that were paid in this step
	news                         []eventRow        // events of this step
	sent                         map[string]int    // deliveries of an event of this step
	owed                         map[string]int    // events that this step must tell of, by kind and session
	decided                      map[string]string // messages that decisions say, by their ids
	total                        [7]int64          // of each account of the ledger
	summed                       [7]int64          // the same, when the whole ledger was last added up
}

type (
	sessionRow struct {
		id, project, status   string
		amount, paid, expires int64
		under, over, late     string
		attempts, payments    int
		money                 []string
	}
	attemptRow struct {
		session, method, reference, status string
		created, expires                   int64
		finds                              int // times that the bank was asked what became of its order
	}
	paymentRow struct {
		id, session, match string
		amount, fee        int64
		at                 int64
		railID             string
		applied            int64
		given              int64 // to the merchant, and what is kept as a fee of that
		account            [7]int64
		reversed           bool
	}
	refundRow struct {
		payment, reference string
		amount             int64
	}
	eventRow struct{ id, kind, session string }
	owner    [7]int64 // of a project: what each account of the ledger holds
)

// The accounts of the ledger, in the order of the watchers.
const (
	railClearing = iota
	merchantPending
	merchantAvailable
	fees
	unapplied
	refundsPayable
	settled
)

func newBook(w *world) *book {
	b := &book{w: w}
	for _, name := range []string{"test", "live"} {
		b.envs = append(b.envs, &ledgerBook{
			w: w, name: name, sessions: map[string]*sessionRow{}, attempts: map[string]*attemptRow{}, byReference: map[string]*attemptRow{}, payments: map[string]*paymentRow{},
			refunds: map[string]string{}, settlements: map[string]string{}, wereHeld: map[string]bool{},
			successes: map[string]int{}, railIDs: map[string]string{}, heard: map[string]int{}, talks: map[string]string{}, owners: map[string]*owner{},
			refundOf: map[string]refundRow{}, settlementAmount: map[string]int64{}, sent: map[string]int{}, owed: map[string]int{}, decided: map[string]string{}, standing: map[string]string{},
		})
	}
	return b
}

// reader is a connection that only reads.
type reader interface {
	Each(query string, args []any, scan func(lite.Scanner) error) error
	Close() error
}

// open reads the databases of the process that runs.
func (b *book) open(dir string) error {
	for _, e := range b.envs {
		var err error
		if e.conn, err = b.w.tpl.read(dir, e.name); err != nil {
			return err
		}
	}
	return nil
}

// close lets go of them.
func (b *book) close() {
	for _, e := range b.envs {
		if e.conn != nil {
			if err := e.conn.Close(); err != nil {
				b.w.breaks("sim", "close the book: %v", err)
			}
			e.conn = nil
		}
	}
}

// move is a line of the account.
type move struct {
	seq                int64
	what, id, was, now string
	more               []string
	raw                string
}

// read takes in what happened since it was read last.
func (e *ledgerBook) read() error {
	var list []move
	err := e.conn.Each(`SELECT seq, what, id, was, now, more FROM sim_moves WHERE seq > ? ORDER BY seq`, []any{e.seq}, func(scan lite.Scanner) error {
		var m move
		if err := scan(&m.seq, &m.what, &m.id, &m.was, &m.now, &m.raw); err != nil {
			return err
		}
		if m.what != "talk" {
			m.more = strings.Split(m.raw, "/")
		}
		list = append(list, m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the account of %s: %w", e.name, err)
	}
	for _, m := range list {
		e.seq = m.seq
		if err := e.take(m); err != nil {
			return fmt.Errorf("%s %s %s: %w", m.what, m.id, m.raw, err)
		}
	}
	return nil
}

// take takes in one line.
func (e *ledgerBook) take(m move) error {
	w := e.w
	switch m.what {
	case "session":
		return e.takeSession(m)
	case "attempt":
		e.takeAttempt(m)
	case "payment":
		return e.takePayment(m)
	case "ledger":
		return e.takeLedger(m)
	case "resolution":
		w.saw("payment %s (%s): %s", w.called(m.id), m.raw, m.now)
		w.goals.reached("resolution", m.raw+" "+m.now, w)
	case "refund":
		e.takeRefund(m)
	case "settlement":
		e.takeSettlement(m)
	case "delivery":
		e.takeDelivery(m)
	case "event":
		w.name(m.id, fmt.Sprintf("%s of %s", m.now, w.called(m.raw)))
		w.goals.reached("event", m.now, w)
		w.saw("event %s of %s", m.now, w.called(m.raw))
		e.news = append(e.news, eventRow{m.id, m.now, m.raw})
		if m.now == "charge.success" {
			e.successes[m.raw]++
		}
	case "heard":
		if m.now == "" { // nobody wrote it
			return nil
		}
		if !w.wrote(m.now) {
			w.breaks("I12", "message %s was decided, which no payer wrote", m.now)
		}
		e.heard[m.now]++
		if e.heard[m.now] > 1 {
			w.breaks("I12", "message %s was decided %d times", m.now, e.heard[m.now])
		}
	case "talk":
		return e.takeTalk(m)
	}
	return nil
}

func (e *ledgerBook) takeSession(m move) error {
	w := e.w
	if m.was == "" {
		s := &sessionRow{id: m.id, project: m.raw, status: m.now}
		var policy, reference string
		err := e.conn.Each(`SELECT amount, amount_paid, expires_at, policy, reference FROM sessions WHERE id = ?`, []any{m.id}, func(scan lite.Scanner) error {
			return scan(&s.amount, &s.paid, &s.expires, &policy, &reference)
		})
		if err != nil {
			return err
		}
		var p struct{ Underpayment, Overpayment, LatePayment string }
		if err := json.Unmarshal([]byte(policy), &p); err != nil {
			return err
		}
		s.paid, s.under, s.over, s.late = 0, p.Underpayment, p.Overpayment, p.LatePayment
		e.sessions[m.id] = s
		w.name(m.id, reference)
		w.goals.reached("session", "→"+m.now, w)
		w.saw("session %s: %s", reference, m.now)
		return nil
	}
	s := e.sessions[m.id]
	paid, expires := whole(m.more[0]), whole(m.more[1])
	if m.was != m.now {
		e.edge("session", m.id, s.status, m)
		w.saw("session %s: %s → %s", w.called(m.id), m.was, m.now)
		e.owes(tellsOfSession[m.now], m.id)
	}
	s.status, s.paid, s.expires = m.now, paid, expires
	switch {
	case m.was == m.now:
	case m.now == "PAID":
		e.paidNow = append(e.paidNow, m.id)
	case m.now == "EXPIRED":
		e.judgeEarly(s)
	}
	return nil
}

// edge judges a move of a thing that has states: it began where the thing was
// last, its table knows it, and it leaves nothing that is over for good.
func (e *ledgerBook) edge(table, id, stood string, m move) {
	w := e.w
	if stood != m.was {
		w.breaks("I6", "%s %s was %s and moved from %s to %s", table, w.called(id), stood, m.was, m.now)
	}
	if over := map[string]string{"session": "PAID", "attempt": "SUCCEEDED"}[table]; over != "" && m.was == over {
		w.breaks("I6", "%s %s left %s for %s", table, w.called(id), m.was, m.now)
	}
	if table == "session" && (m.was == "EXPIRED" || m.was == "CANCELLED") && m.now != "PAID" {
		w.breaks("I6", "%s %s left %s for %s", table, w.called(id), m.was, m.now)
	}
	if !w.goals.edge(table, m.was, m.now) {
		w.breaks("I6", "%s %s went from %s to %s, which no table knows", table, w.called(id), m.was, m.now)
	}
}

func (e *ledgerBook) takeAttempt(m move) {
	w := e.w
	session, expires := m.more[0], whole(m.more[3])
	a := e.attempts[m.id]
	if a == nil {
		a = &attemptRow{session: session, method: m.more[1], reference: m.more[2], status: m.now}
		e.attempts[m.id], e.byReference[a.reference] = a, a
		if err := e.conn.Each(`SELECT created_at FROM attempts WHERE id = ?`, []any{m.id}, func(scan lite.Scanner) error { return scan(&a.created) }); err != nil {
			w.breaks("sim", "read an attempt: %v", err)
		}
		e.order = append(e.order, m.id)
		n := 0
		if s := e.sessions[session]; s != nil {
			s.attempts++
			n = s.attempts
		}
		w.name(m.id, fmt.Sprintf("%s.%s%d", w.called(session), a.method, n))
		w.name(a.reference, w.called(m.id))
		w.saw("attempt %s: %s", w.called(m.id), m.now)
	} else if m.was != m.now {
		e.edge("attempt", m.id, a.status, m)
		w.saw("attempt %s: %s → %s", w.called(m.id), m.was, m.now)
	}
	a.status, a.expires = m.now, expires
	if m.now == "ACTIVE" {
		live := 0
		for _, other := range e.attempts {
			if other.session == session && other.method == a.method && other.status == "ACTIVE" {
				live++
			}
		}
		if live > 1 {
			w.breaks("I8", "%s has %d live attempts by %s", w.called(session), live, a.method)
		}
	}
}

func (e *ledgerBook) takeRefund(m move) {
	w := e.w
	if m.was == "" {
		w.name(m.id, fmt.Sprintf("refund of %s", w.called(m.more[0])))
		w.goals.reached("refund origin", m.more[2], w)
	} else {
		if m.was != m.now {
			e.edge("refund", m.id, e.refunds[m.id], m)
		}
		w.goals.reached("refund order", m.more[1], w)
		w.goals.reached("refund failure", m.more[2], w)
	}
	if p := e.payments[m.more[0]]; p != nil && m.was != m.now {
		e.owes(tellsOfRefund[m.now], p.session)
	}
	if e.refunds[m.id] == "" {
		e.refundOrder = append(e.refundOrder, m.id)
	}
	var amount int64
	var reference string
	if err := e.conn.Each(`SELECT amount, reference FROM refunds WHERE id = ?`, []any{m.id}, func(scan lite.Scanner) error { return scan(&amount, &reference) }); err != nil {
		w.breaks("sim", "read a refund: %v", err)
	}
	e.refundOf[m.id] = refundRow{m.more[0], reference, amount}
	e.refunds[m.id] = m.now
	w.saw("%s: %s → %s", w.called(m.id), m.was, m.now)
}

func (e *ledgerBook) takeSettlement(m move) {
	w := e.w
	w.name(m.id, fmt.Sprintf("settlement of %s", w.called(m.more[0])))
	if m.was != "" && m.was != m.now {
		e.edge("settlement", m.id, e.settlements[m.id], m)
	}
	if e.settlements[m.id] != m.now {
		e.owes(tellsOfSettlement[m.now], "")
		w.saw("%s %s kobo: %s → %s", w.called(m.id), m.more[2], m.was, m.now)
	}
	if e.settlements[m.id] == "" {
		e.settlementOrder = append(e.settlementOrder, m.id)
	}
	e.settlementAmount[m.id] = whole(m.more[2])
	e.settlements[m.id] = m.now
}

func (e *ledgerBook) takeDelivery(m move) {
	w := e.w
	if m.was == "" {
		e.sent[m.more[0]]++
	}
	w.goals.reached("delivery", m.was+"→"+m.now, w)
	if m.now == "held" {
		e.wereHeld[m.id] = true
	}
}

func whole(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(errors.Join(errors.New("the account holds no number"), err)) // the watchers write nothing else
	}
	return n
}
