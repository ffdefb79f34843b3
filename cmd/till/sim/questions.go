package sim

import (
	"fmt"
	"strings"
	"time"

	"till/flow"
	"till/flow/store/lite"
)

// question is one that the service asked the bank, and when.
type question struct {
	path string
	at   int64 // ms
}

// onTime is how late a question may be that a schedule asks, in ms. What is asked
// later is asked because it was not answered, or because somebody wanted to know.
const onTime = 1000

// questioned keeps that the bank was asked something, from any goroutine.
func (w *world) questioned(method, path string) {
	if method != "GET" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.questions = append(w.questions, question{path, w.now().UnixMilli()})
}

// countQuestions says which places of which schedules the questions of a step were.
func (w *world) countQuestions() {
	w.mu.Lock()
	list := w.questions
	w.questions = nil
	w.mu.Unlock()
	e := w.book.envs[0]
	for _, q := range list {
		if reference, is := strings.CutPrefix(q.path, "/bank/v1/disbursements/"); is {
			e.askedOut(reference, q.at)
			continue
		}
		reference, is := strings.CutPrefix(q.path, "/bank/v1/instruments/")
		if !is {
			continue
		}
		reference, money := strings.CutSuffix(reference, "/transactions")
		if a := e.byReference[reference]; a != nil && money {
			e.askedAbout(a, q.at)
		} else if a != nil {
			a.finds++
			e.stands(a)
			w.goals.reached("start again", fmt.Sprint(min(a.finds, len(flow.StartWaits()))), w)
		}
	}
}

// stands looks whether an attempt that the bank has not answered for is still the order
// that the bank was given: the answer would be about another one.
func (e *ledgerBook) stands(a *attemptRow) {
	w := e.w
	w.mu.Lock()
	made, there := w.bank.made[a.reference]
	w.mu.Unlock()
	if !there {
		return
	}
	if n := e.counted(`SELECT count(*) FROM attempts WHERE reference = ? AND instructions = '' AND amount <> `+fmt.Sprint(made), a.reference); n > 0 {
		w.breaks("I3", "%s was ordered for %d kobo, and asks the bank for another amount now", w.called(a.reference), made)
	}
}

// askedOut counts a question about money that is to be sent out.
func (e *ledgerBook) askedOut(reference string, at int64) {
	what, from := "refund asked", `SELECT sent_at FROM refunds WHERE reference = ?`
	if strings.HasPrefix(reference, flow.PrefixSettlement) {
		what, from = "settlement asked", `SELECT sent_at FROM settlements WHERE id = ?`
	}
	sent := int64(0)
	if err := e.conn.Each(from, []any{reference}, func(scan lite.Scanner) error { return scan(&sent) }); err != nil {
		e.w.breaks("sim", "read when money was sent: %v", err)
	}
	if sent > 0 {
		e.onSchedule(what, flow.AskAges(), sent, at)
	}
}

// askedAbout counts a question about money for an attempt.
func (e *ledgerBook) askedAbout(a *attemptRow, at int64) {
	if a.status == "SUCCEEDED" || a.status == "FAILED" {
		e.onSchedule("requery after the end", flow.AfterwardsWaits(), a.expires, at)
		return
	}
	e.onSchedule("requery", flow.CheckAges(), a.created, at)
	e.onSchedule("requery when late", flow.LateWaits(), a.expires, at)
}

// onSchedule counts at which place of a schedule something happened, if at one.
func (e *ledgerBook) onSchedule(what string, ages []time.Duration, from, at int64) {
	for i, age := range ages {
		if late := at - from - age.Milliseconds(); late >= 0 && late < onTime {
			e.w.goals.reached(what, fmt.Sprint(i+1), e.w)
		}
	}
}
