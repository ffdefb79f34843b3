package api

import (
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

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
	text, limit, after := q.text("date", maxDate), q.whole("limit", 1, maxPage, usualPage), q.cursor(isPlace)
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
	got, err := c.service.Reconcile(c.ctx, c.project.ID, day)
	if err != nil {
		return err
	}
	shown := following(got.Differences, after)
	out := reconciled{HasMore: len(shown) > limit}
	if out.HasMore {
		shown = shown[:limit]
		out.NextCursor = cursorOf(placeOf(shown[limit-1]))
	}
	out.ReconciliationRecord = checkout.RecordReconciliation(got, shown)
	return c.send(http.StatusOK, out)
}

// placeOf says where a difference stands in its day's list: by its value time, and which of
// that time it is. To count them would skip some once others before them are no more.
func placeOf(d flow.Difference) string {
	return strconv.FormatInt(d.ValueAt.UnixMilli(), 10) + "." + hex.EncodeToString(hashOf(d.RailTransactionID, string(d.Kind))[:8])
}

// following are the differences after a place; all where it is "". Where that one is no
// more, those of its time are listed again.
func following(list []flow.Difference, place string) []flow.Difference {
	if place == "" {
		return list
	}
	if i := slices.IndexFunc(list, func(d flow.Difference) bool { return placeOf(d) == place }); i >= 0 {
		return list[i+1:]
	}
	text, _, _ := strings.Cut(place, ".")
	at, _ := strconv.ParseInt(text, 10, 64)
	for len(list) > 0 && list[0].ValueAt.UnixMilli() < at {
		list = list[1:]
	}
	return list
}

// isPlace says whether a cursor's text may be of placeOf.
func isPlace(text string) bool {
	at, name, _ := strings.Cut(text, ".")
	_, err := strconv.ParseInt(at, 10, 64)
	return err == nil && len(name) == 16
}
