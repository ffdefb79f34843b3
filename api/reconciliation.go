package api

import (
	"net/http"
	"strconv"

	"till/flow"
	"till/flow/checkout"
)

// reconciled is a reconciled day with a page of its differences.
type reconciled struct {
	checkout.ReconciliationRecord
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
}

// reconcile is GET /v1/reconciliation: the project's own movements of a day, as
// the bank, the ledger and the events tell them.
func (*Server) reconcile(c *call) error {
	q := c.query()
	text, limit, cursor := q.text("date", maxDate), q.whole("limit", 1, maxPage, usualPage), q.text("cursor", 200)
	day, err := flow.ParseDate(text)
	switch {
	case text == "" && q.values.Get("date") != "": // what is wrong with it is said
	case text == "":
		q.form.fail("date", flow.CodeMissingField, "date is required: a day in Lagos, like 2026-11-21.")
	case err != nil:
		q.form.fail("date", flow.CodeInvalidField, "date must be a day in Lagos, like 2026-11-21.")
	case day < checkout.FirstReconciled:
		q.form.fail("date", flow.CodeInvalidField, "date must be %s or later.", checkout.FirstReconciled)
	case day.Start().After(c.service.Now()):
		q.form.fail("date", flow.CodeInvalidField, "%s has not begun in Lagos.", day)
	}
	if err := q.done(); err != nil {
		return err
	}
	from := 0
	if after, err := readCursor(cursor, isPlace); err != nil {
		return err
	} else if after != "" {
		from, _ = strconv.Atoi(after)
	}
	got, err := c.service.Reconcile(c.ctx, c.project.ID, day)
	if err != nil {
		return err
	}
	shown := got.Differences[min(from, len(got.Differences)):]
	out := reconciled{HasMore: len(shown) > limit}
	if out.HasMore {
		shown = shown[:limit]
		out.NextCursor = cursorOf(strconv.Itoa(from + limit))
	}
	out.ReconciliationRecord = checkout.RecordReconciliation(got, shown)
	return c.send(http.StatusOK, out)
}

// isPlace says whether a cursor's text is a place in a list that is counted.
func isPlace(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n < 1_000_000_000
}
