package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// reconcileCmd compares a day of the bank with the ledger and the events.
type reconcileCmd struct {
	books

	Date string `help:"The day in Lagos, by the bank's value time: 2026-11-21. Without it, yesterday." placeholder:"YYYY-MM-DD"`
}

func (reconcileCmd) Help() string {
	return "Example:\n\n    till reconcile --date 2026-11-21\n\nIt compares all projects: what the bank's statement lists, what the ledger booked and what merchants were told. " +
		"Exits with 1 where they differ."
}

// errDifferent ends a reconciliation that found something.
var errDifferent = errors.New("the bank, the ledger and the events differ")

// errNoBank refuses to call a day balanced that was compared with nothing.
var errNoBank = errors.New("no bank is connected whose statement could be read: there is nothing to compare with")

// Run compares a day.
func (c *reconcileCmd) Run(w *world) error {
	day := flow.Date(c.Date)
	if c.Date != "" {
		if _, err := flow.ParseDate(c.Date); err != nil {
			return usageError{fmt.Errorf("--date: %w", err)}
		}
	}
	return c.open(w, func(db *store.DB, bank rail.Rail, _ time.Time) error {
		if bank == nil {
			return errNoBank
		}
		now := c.now() // a day begins, and is booked, by the clock that the ledger has
		if c.Date == "" {
			day = flow.DateOf(now).Plus(-1)
		}
		if day.Start().After(now) {
			return usageError{fmt.Errorf("--date: %s has not begun in Lagos", day)}
		}
		var lines []flow.Notice
		var got checkout.Reconciliation
		err := patiently(w, "still comparing", func() (err error) {
			if lines, err = bank.Statement(w.ctx, day.Start(), day.Plus(1).Start()); err != nil {
				return bankFault(err)
			}
			return db.View(w.ctx, func(r store.Reader) (err error) {
				got, err = checkout.ReconcileDay(w.ctx, r, lines, "", day, now)
				return err
			})
		})
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(w, checkout.RecordReconciliation(got, got.Differences))
		} else {
			err = printReconciliation(w.out, got)
		}
		if err == nil && !got.Balanced() {
			err = errDifferent
		}
		return err
	})
}

// printReconciliation prints totals and differences for people.
func printReconciliation(to io.Writer, got checkout.Reconciliation) error {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	note := ""
	if !got.Complete {
		note = "  (the day is not over, or has only just ended)"
	}
	_, _ = fmt.Fprintf(out, "%s%s\nthe bank was asked at %s\n\nMOVEMENT\tBANK\tLEDGER\tEVENTS\n", got.Date, note, stamp(got.Read))
	for _, kind := range flow.MovementKinds() {
		if got.Rail[kind].Count+got.Ledger[kind].Count+got.Events[kind].Count == 0 {
			continue
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", kind, total(got.Rail[kind]), total(got.Ledger[kind]), total(got.Events[kind]))
	}
	_, _ = fmt.Fprintln(out)
	if got.Balanced() {
		_, _ = fmt.Fprintln(out, "balanced: the three agree")
		return out.Flush()
	}
	_, _ = fmt.Fprintf(out, "%s\n\nDIFFERENCE\tMOVEMENT\tBANK'S NAME\tBANK\tLEDGER\tEVENT\tPAYMENT\tPROJECT\n", flow.Count(len(got.Differences), "difference"))
	for _, d := range got.Differences {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Kind, d.Movement, plain(d.RailTransactionID), amount(d.Rail), amount(d.Ledger), amount(d.Event),
			cmp.Or(string(d.Payment), "-"), cmp.Or(string(d.Project), "-"))
	}
	return out.Flush()
}

func total(t flow.Total) string { return fmt.Sprintf("%d × %s", t.Count, t.Amount.Naira()) }

func amount(k *flow.Kobo) string {
	if k == nil {
		return "-"
	}
	return k.Naira()
}
