package sim

import (
	"encoding/json"
	"slices"
	"time"

	"till/bot"
	"till/flow/store/lite"
)

// ack is an answer that a merchant was given to a call with an Idempotency-Key.
type ack struct {
	name string
	r    request
	got  reply
	at   time.Duration
}

// keysKept is how long an answer is promised to be given again.
const keysKept = 23 * time.Hour

// observe judges what changed since the last step: every move of every thing that
// has states, every line of the ledger, every event that was promised.
func (w *world) observe() {
	if w.inst == nil || w.inst.dead.Load() || w.book == nil || w.book.envs[0].conn == nil {
		return
	}
	for _, e := range w.book.envs {
		if err := e.read(); err != nil {
			w.breaks("sim", "%v", err)
			return
		}
		e.judgeStep()
	}
	w.judgeOrders()
	w.countQuestions()
}

// judgeStep judges what a step as a whole must have done: what was committed
// together is seen together.
func (e *ledgerBook) judgeStep() {
	w := e.w
	if e.summed != e.total { // lines were written
		e.judgeSums()
		e.summed = e.total
	}
	e.judgeTold()
	for _, id := range e.paidNow {
		e.judgeHeardOfEnd(id)
		e.judgePaid(e.sessions[id])
		if n := e.successes[id]; n != 1 {
			w.breaks("I4", "%s is paid, and has %d events that say so", w.called(id), n)
		}
	}
	for _, v := range e.news {
		if v.kind == "charge.success" && e.successes[v.session] != 1 {
			w.breaks("I4", "%s has %d events charge.success", w.called(v.session), e.successes[v.session])
		}
		if v.kind == "charge.success" && e.sessions[v.session].status != "PAID" {
			w.breaks("I4", "%s is %s, and its merchant is told that it is paid", w.called(v.session), e.sessions[v.session].status)
		}
		if v.kind == "ping" || v.kind == "endpoint.disabled" {
			continue
		}
		want := e.counted(`SELECT count(*) FROM endpoints p JOIN events v ON v.project = p.project WHERE v.id = ? AND p.status = 'ENABLED' AND p.deleted_at = 0 AND p.created_at < v.created_at`, v.id)
		if e.sent[v.id] < want {
			w.breaks("I7", "event %s is owed to %d endpoints, and is on its way to %d", w.called(v.id), want, e.sent[v.id])
		}
	}
	e.paidNow, e.news = nil, nil
	clear(e.sent)
}

// acked takes an answer in: what is promised with a key is given again.
func (w *world) acked(name string, r request, out reply) {
	if r.once == "" || out.status >= 500 || out.status == 429 || out.status == 400 || out.status == 401 || out.status == 403 || out.again {
		return
	}
	for _, a := range w.acks {
		if a.r.once != r.once || a.r.key != r.key || a.r.path != r.path || a.r.body != r.body || w.age()-a.at > keysKept {
			continue
		}
		if a.got.status != out.status || a.got.body != out.body {
			w.breaks("I5", "%s with the same key was answered %d %s, and is now %d %s", name, a.got.status, a.got.body, out.status, out.body)
		}
		return
	}
	if out.header["Idempotent-Replayed"] != "" && !w.unheard[r.key+r.once] && !w.twice[r.key+r.once] {
		w.breaks("I5", "%s is answered as if it had been asked before: %d %s", name, out.status, out.body)
	}
	if out.code == "idempotency_key_reused" {
		if !w.unheard[r.key+r.once] && !w.acknowledged(r) {
			w.breaks("I5", "%s is the first call with its key, and is told that it is not: somebody else's keys count", name)
		}
		return
	}
	w.acks = append(w.acks, &ack{name: name, r: r, got: out, at: w.firstMade(r)})
}

// acknowledged says whether a call with this merchant's key was answered for good.
func (w *world) acknowledged(r request) bool {
	return slices.ContainsFunc(w.acks, func(a *ack) bool { return a.r.key == r.key && a.r.once == r.once })
}

// firstMade is when a call was made the first time: from then on its answer is kept.
// It was answered later, and that is heard of later still.
func (w *world) firstMade(r request) time.Duration { return w.firstAsked[r.key+r.once] }

// told judges that what the bank was told to be kept is kept.
func (w *world) told(body []byte) {
	var m moved
	if json.Unmarshal(body, &m) != nil || m.Kind != "credit" {
		return
	}
	w.promised = append(w.promised, m.ID)
	w.kept(m.ID)
}

// kept judges that money which the bank was answered for has one outcome.
func (w *world) kept(railID string) {
	if n := w.book.envs[0].counted(`SELECT count(*) FROM payments WHERE rail_transaction_id = ?`, railID); n != 1 {
		w.breaks("I3", "the bank was told that %s is kept, and it has %d outcomes", railID, n)
	}
}

// heardOf judges that a payer's message which was taken is kept.
func (w *world) heardOf(m bot.Message) {
	w.taken = append(w.taken, m.ID)
	w.heardOnce(m.ID)
}

func (w *world) heardOnce(id string) {
	if n := w.book.envs[0].counted(`SELECT count(*) FROM log WHERE kind = 'heard' AND message = ?`, id); n != 1 {
		w.breaks("I12", "message %s was taken, and is kept %d times", id, n)
	}
}

// reopened judges that what was acknowledged before a crash is there after it.
func (w *world) reopened() {
	if err := w.book.open(w.inst.dir); err != nil {
		w.breaks("sim", "%v", err)
		return
	}
	for _, e := range w.book.envs {
		there := int64(0)
		err := e.conn.Each(`SELECT count(*) FROM sim_moves WHERE seq = ?`, []any{e.seq}, func(scan lite.Scanner) error { return scan(&there) })
		if err != nil || there != 1 && e.seq > 0 {
			w.breaks("I11", "what was seen before a crash is gone after it: %d of %s (%v)", e.seq, e.name, err)
		}
		if w.tpl.at != nil {
			continue
		}
		sound := ""
		if err := e.conn.Each(`PRAGMA quick_check(1)`, nil, func(scan lite.Scanner) error { return scan(&sound) }); err != nil || sound != "ok" {
			w.breaks("I11", "after a crash the file of %s is not sound: %s %v", e.name, sound, err)
		}
	}
	for _, id := range w.promised {
		w.kept(id)
	}
	for _, id := range w.taken {
		w.heardOnce(id)
	}
	for range 3 { // some answers are asked for again
		if len(w.acks) > 0 {
			w.askAgain(pick(w, w.acks...))
		}
	}
}

// askAgain repeats a call with its key.
func (w *world) askAgain(a *ack) {
	if w.age()-a.at < keysKept {
		w.ask("again "+a.name, a.r, nil)
	}
}

// judgeDay judges everything: sums, the bank's own books, what must have happened
// by now.
func (w *world) judgeDay() {
	w.observe() // a process may have died since the last step, and another one have begun
	if err := w.statement(); err != nil {
		w.breaks("sim", "read the bank's statement: %v", err)
		return
	}
	for _, e := range w.book.envs {
		e.judgeSums()
		e.judgeStuck()
	}
	w.judgeStrangers()
}

// judgeSums adds the whole ledger up, and all of it that is of one payment.
func (e *ledgerBook) judgeSums() {
	w := e.w
	var v [7]int64
	lines, wrong := 0, 0
	err := e.conn.Each(`SELECT count(*), coalesce(sum(rail_clearing), 0), coalesce(sum(merchant_pending), 0), coalesce(sum(merchant_available), 0), coalesce(sum(fees), 0), coalesce(sum(unapplied), 0),
 coalesce(sum(refunds_payable), 0), coalesce(sum(settled), 0), coalesce(sum(CASE WHEN rail_clearing + merchant_pending + merchant_available + fees + unapplied + refunds_payable + settled <> 0 THEN 1 ELSE 0 END), 0) FROM ledger`, nil,
		func(scan lite.Scanner) error {
			return scan(&lines, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &wrong)
		})
	if err != nil {
		w.breaks("sim", "add the ledger up: %v", err)
		return
	}
	sum := int64(0)
	for _, n := range v {
		sum += n
	}
	if sum != 0 || wrong != 0 {
		w.breaks("I1", "the %d lines of %s sum to %d, %d of them by themselves not to zero", lines, e.name, sum, wrong)
	}
	if v != e.total {
		w.breaks("I1", "the ledger of %s holds %v, and its lines came to %v as they were written", e.name, v, e.total)
	}
	if v[unapplied] > 0 || v[refundsPayable] > w.besides || v[settled] > 0 || v[fees] > 0 {
		w.breaks("I2", "an account of %s holds money that nobody brought: %v", e.name, v)
	}
}

// overdue is how long something may wait for its time, of a service that runs.
const overdue = 5 * time.Hour

// counted is how many rows a query counts.
func (e *ledgerBook) counted(query string, arg any) (n int) {
	if err := e.conn.Each(query, []any{arg}, func(scan lite.Scanner) error { return scan(&n) }); err != nil {
		e.w.breaks("sim", "%s: %v", query, err)
	}
	return n
}

// judgeStuck looks for what should have happened long ago.
func (e *ledgerBook) judgeStuck() {
	w := e.w
	before := w.now().Add(-overdue).UnixMilli()
	for _, c := range []struct{ invariant, what, query string }{
		{"I6", "sessions whose time is over are still open", `SELECT count(*) FROM sessions WHERE status = 'PENDING' AND expires_at < ?`},
		{"I7", "deliveries wait for longer than their schedule says", `SELECT count(*) FROM deliveries WHERE state = 'pending' AND next_at < ?`},
		{"I12", "messages to payers were never sent", `SELECT count(*) FROM says WHERE state = 'pending' AND created_at < ?`},
		{"I6", "tasks wait for longer than they were put off", `SELECT count(*) FROM tasks WHERE due < ?`},
		{"I3", "attempts ask for another amount than what is left to be paid", `SELECT count(*) FROM attempts a JOIN sessions s ON s.id = a.session WHERE CAST(? AS BIGINT) > 0
 AND (a.amount > s.amount OR a.status = 'ACTIVE' AND a.method = 'bank_transfer' AND s.status IN ('PENDING', 'PROCESSING') AND a.amount <> s.amount - s.amount_paid)`},
	} {
		if w.phones.offlineSince > 0 && c.invariant == "I12" && w.age()-w.phones.offlineSince < 2*overdue {
			continue
		}
		if n := e.counted(c.query, before); n > 0 {
			w.breaks(c.invariant, "%s: %d %s", e.name, n, c.what)
		}
	}
}

// judgeEnd judges what must be so when nothing goes wrong any more and all
// schedules are over.
func (w *world) judgeEnd() {
	w.judgeDay()
	test := w.book.envs[0]
	w.mu.Lock()
	var credits []moved
	for _, id := range sorted(w.bank.moves) {
		m := w.bank.moves[id]
		if m.Kind == "credit" || m.Kind == "reversal" || m.Kind == "paid_out" && w.minds[m.Reference].ID == "" { // what a bank sends against its own word, a statement tells
			credits = append(credits, m)
		}
	}
	w.mu.Unlock()
	for _, m := range credits {
		if _, posted := test.railIDs[m.ID]; !posted {
			w.breaks("I3", "the bank booked a %s of %d kobo for %s at %s, which has no outcome", m.Kind, m.Amount, w.called(m.Reference), m.ValueTime.Format(time.RFC3339))
		}
	}
	for _, s := range test.sessions {
		if want := map[bool]int{true: 1}[s.status == "PAID"]; test.successes[s.id] != want {
			w.breaks("I4", "%s is %s and has %d events charge.success", w.called(s.id), s.status, test.successes[s.id])
		}
	}
	test.judgePending()
	test.judgeOrdered()
	test.judgeGivenUp()
	w.judgeReceived()
	for _, e := range w.book.envs {
		e.judgeTries()
	}
	for _, url := range sorted(w.sinks.all) {
		test.judgeAmounts(w.sinks.all[url])
	}
	w.judgeScreens()
	w.judgeTalks()
	w.judgeSecrets()
}

// judgeReceived holds what sinks received against what is said to be delivered.
func (w *world) judgeReceived() {
	for _, e := range w.book.envs {
		err := e.conn.Each(`SELECT d.event, p.url FROM deliveries d JOIN endpoints p ON p.id = d.endpoint WHERE d.state = 'delivered'`, nil, func(scan lite.Scanner) error {
			var id, url string
			if err := scan(&id, &url); err != nil {
				return err
			}
			if to := w.sinks.all[url]; to == nil || to.got[id] == nil || to.got[id].taken == 0 {
				w.breaks("I7", "%s is said to be delivered to %s, which never took it", w.called(id), url)
			}
			return nil
		})
		if err != nil {
			w.breaks("sim", "read the deliveries: %v", err)
		}
	}
}

// judgeScreens holds what payers read against what is said to be sent.
func (w *world) judgeScreens() {
	shown := map[string]string{}
	for _, p := range w.phones.people {
		for _, b := range p.screen {
			shown[b.id] = b.text
		}
	}
	decided := w.book.envs[0].decided
	kept := map[string]bool{}
	err := w.book.envs[0].conn.Each(`SELECT id, text, state FROM says`, nil, func(scan lite.Scanner) error {
		var id, text, state string
		if err := scan(&id, &text, &state); err != nil {
			return err
		}
		kept[id] = true
		if said, is := decided[id]; !is || said != text {
			w.breaks("I12", "message %s is kept as %q, and was decided as %q", id, text, said)
		}
		switch got, there := shown[id]; {
		case state == "pending":
			w.breaks("I12", "message %s was never sent nor given up", id)
		case !there && state != "failed":
			w.breaks("I12", "message %s is %s, and no phone shows it", id, state)
		case there && got != text:
			w.breaks("I12", "message %s is kept as %q, and the payer reads %q", id, text, got)
		}
		return nil
	})
	if err != nil {
		w.breaks("sim", "read the messages: %v", err)
	}
	for _, all := range []map[string]string{decided, shown} {
		for _, id := range sorted(all) {
			if !kept[id] {
				w.breaks("I12", "message %s was decided or read, and is not kept: %q", id, all[id])
			}
		}
	}
}
