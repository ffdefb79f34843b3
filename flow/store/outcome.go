package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// Outcome is what became of one try of a delivery.
type Outcome struct {
	flow.Delivery
	flow.Verdict

	State string    // delivered, dead, held or pending
	Next  time.Time // when a pending one is due again
	Spent bool      // the try counts against the schedule
	At    time.Time // when it ended
}

// EndTries keeps what became of tries. One that delivered is kept whoever holds
// the lease by now; any other leaves only its record once its lease is somebody
// else's.
func (t *Tx) EndTries(ctx context.Context, outcomes []Outcome) error {
	slices.SortStableFunc(outcomes, func(a, b Outcome) int { return strings.Compare(a.ID, b.ID) }) // two processes must not wait for each other
	var delivered []string
	var last time.Time
	for _, o := range outcomes {
		var err error
		switch {
		case o.State == flow.DeliveryDelivered && !o.ByHand():
			delivered, last = append(delivered, o.ID), o.At
		case o.State == flow.DeliveryDelivered:
			err = t.deliveredByHand(ctx, o)
		case o.ByHand() && o.Spent:
			err = t.failedByHand(ctx, o)
		default:
			err = t.failed(ctx, o)
		}
		if err != nil {
			return fmt.Errorf("end a try of delivery %s: %w", o.ID, err)
		}
	}
	if err := t.delivered(ctx, delivered, last); err != nil {
		return err
	}
	return t.addTries(ctx, outcomes)
}

// delivered keeps what was delivered by its schedule. What was meanwhile asked
// for by hand is still to be done.
func (t *Tx) delivered(ctx context.Context, ids []string, now time.Time) error {
	for part := range t.run.parts(ids) {
		n, err := t.run.exec(ctx, `UPDATE deliveries SET state = 'delivered', attempts = attempts + 1, next_at = 0, token = '', done_at = ?
 WHERE id IN (`+part.marks+`) AND state <> 'delivered' AND cause = 'auto'`, args(flow.Millis(now), part.args)...)
		if err == nil && n < int64(len(part.ids)) {
			err = t.run.put(ctx, `UPDATE deliveries SET back_to = 'delivered', back_at = 0, done_at = ?
 WHERE id IN (`+part.marks+`) AND state = 'pending' AND cause <> 'auto'`, args(flow.Millis(now), part.args)...)
		}
		if err != nil {
			return fmt.Errorf("keep what was delivered: %w", err)
		}
	}
	return nil
}

func (t *Tx) deliveredByHand(ctx context.Context, o Outcome) error {
	n, err := t.run.exec(ctx, `UPDATE deliveries SET state = 'delivered', next_at = 0, token = '', done_at = ?, cause = 'auto', back_to = '', back_at = 0
 WHERE id = ? AND (token = ? OR cause = 'auto')`, flow.Millis(o.At), o.ID, o.Lease)
	if err == nil && n == 0 { // asked for once more meanwhile
		err = t.run.put(ctx, `UPDATE deliveries SET back_to = 'delivered', back_at = 0, done_at = ? WHERE id = ? AND state = 'pending'`, flow.Millis(o.At), o.ID)
	}
	return err
}

// failedByHand ends a try by hand that failed: the delivery is again what it was. An
// endpoint that asked for time gets it from the next try of the schedule too.
func (t *Tx) failedByHand(ctx context.Context, o Outcome) error {
	spare := int64(0)
	if o.RetryAfter > 0 {
		spare = flow.Millis(o.At.Add(o.RetryAfter))
	}
	err := t.run.put(ctx, `UPDATE deliveries SET state = back_to, token = '', cause = 'auto', back_to = '', back_at = 0,
 next_at = CASE WHEN back_to IN ('pending', 'held') AND back_at < ? THEN CAST(? AS BIGINT) ELSE back_at END,
 done_at = CASE WHEN back_to = 'dead' AND done_at = 0 THEN CAST(? AS BIGINT) ELSE done_at END WHERE id = ? AND state = 'pending' AND token = ?`,
		spare, spare, flow.Millis(o.At), o.ID, o.Lease)
	return err
}

// failed ends a try of the schedule that failed. Where the delivery was asked for by hand
// meanwhile and that ended in vain before it, the delivery stands there unclaimed, to the
// end of a lease that was never needed; where that is still to be done, this is what it
// goes back to. Either way no other try of the schedule came between: attempts says so.
func (t *Tx) failed(ctx context.Context, o Outcome) error {
	if o.ByHand() { // it was cut short, and is still to be made
		return t.run.put(ctx, `UPDATE deliveries SET next_at = ?, token = '' WHERE id = ? AND state = 'pending' AND token = ?`, flow.Millis(o.Next), o.ID, o.Lease)
	}
	done, next := int64(0), flow.Millis(o.Next)
	if o.State == flow.DeliveryDead {
		done, next = flow.Millis(o.At), 0
	}
	n, err := t.run.exec(ctx, `UPDATE deliveries SET state = ?, attempts = attempts + ?, next_at = ?, token = '', done_at = ?
 WHERE id = ? AND state = 'pending' AND (token = ? OR cause = 'auto' AND token = '' AND attempts = ? AND next_at > ?)`,
		o.State, flag(o.Spent), next, done, o.ID, o.Lease, o.Attempts, flow.Millis(o.At))
	if err == nil && n == 0 {
		err = t.run.put(ctx, `UPDATE deliveries SET attempts = attempts + ?, back_to = ?, back_at = ?
 WHERE id = ? AND state = 'pending' AND cause <> 'auto' AND back_to = 'pending' AND attempts = ?`, flag(o.Spent), o.State, next, o.ID, o.Attempts)
	}
	return err
}

const addTriesSQL = `INSERT INTO delivery_attempts (delivery, n, at, status, reason, body, micros, cause, url, signature, signed_at) VALUES `

// manyTriesSQL is addTriesSQL for PostgreSQL, which takes each column of many rows
// as one parameter.
const manyTriesSQL = `INSERT INTO delivery_attempts (delivery, n, at, status, reason, body, micros, cause, url, signature, signed_at)
 SELECT t.delivery, COALESCE((SELECT MAX(a.n) FROM delivery_attempts a WHERE a.delivery = t.delivery), 0) + 1,
 t.at, t.status, t.reason, t.body, t.micros, t.cause, t.url, t.signature, t.signed_at
 FROM UNNEST(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]), CAST(? AS BYTEA[]), CAST(? AS BIGINT[]),
 CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS BIGINT[])) AS t (delivery, at, status, reason, body, micros, cause, url, signature, signed_at)`

// columns are the records of tries as manyTriesSQL takes them.
func columns(outcomes []Outcome) []any {
	n := len(outcomes)
	ids, reasons, causes, urls, signatures := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	at, status, micros, signed, bodies := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([][]byte, n)
	for i, o := range outcomes {
		ids[i], reasons[i], causes[i], urls[i], signatures[i] = o.ID, o.Reason, cause(o.Delivery), o.Verdict.URL, o.Signature
		at[i], status[i], micros[i], signed[i] = flow.Millis(o.At), int64(o.Status), o.Duration.Microseconds(), flow.Millis(o.SignedAt)
		bodies[i] = notNil(o.Verdict.Body)
	}
	return []any{ids, at, status, reasons, bodies, micros, causes, urls, signatures, signed}
}

// addTries keeps the records of tries, many by one statement.
func (t *Tx) addTries(ctx context.Context, outcomes []Outcome) error {
	if t.run.dialect == postgresDialect && len(outcomes) > 1 && apart(outcomes) {
		if err := t.run.put(ctx, manyTriesSQL, columns(outcomes)...); err != nil {
			return fmt.Errorf("record tries: %w", err)
		}
		return nil
	}
	const row = `(?, (SELECT COALESCE(MAX(n), 0) + 1 FROM delivery_attempts WHERE delivery = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	for len(outcomes) > 0 {
		size := 1
		for _, s := range []int{8, 64} {
			if s <= len(outcomes) && apart(outcomes[:s]) {
				size = s
			}
		}
		var all []any
		for _, o := range outcomes[:size] {
			all = append(all, o.ID, o.ID, flow.Millis(o.At), o.Status, o.Reason, notNil(o.Verdict.Body), o.Duration.Microseconds(),
				cause(o.Delivery), o.Verdict.URL, o.Signature, flow.Millis(o.SignedAt))
		}
		if err := t.run.put(ctx, addTriesSQL+strings.Repeat(row+", ", size-1)+row, all...); err != nil {
			return fmt.Errorf("record tries: %w", err)
		}
		outcomes = outcomes[size:]
	}
	return nil
}

// apart says whether no two of some outcomes, in the order of their deliveries,
// are of the same one: the second could not count the first.
func apart(outcomes []Outcome) bool {
	for i := range outcomes[1:] {
		if outcomes[i].ID == outcomes[i+1].ID {
			return false
		}
	}
	return true
}
