package console

import (
	"context"
	"errors"
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// bookPages are what whoever keeps a merchant's books looks at besides payouts: what
// went back to payers, and whether a day's money is the same at the bank, in the ledger
// and in what the merchant was told.
func bookPages() []Page {
	get := http.MethodGet
	return []Page{
		{Method: get, Path: "/refunds", Right: flow.MayRead, do: (*Console).refunds},
		{Method: get, Path: "/refunds.csv", Right: flow.MayRead, do: (*Console).refundsFile},
		{Method: get, Path: "/reconciliation", Right: flow.MayRead, do: (*Console).reconciliation},
	}
}

// originTold is who wanted a refund, for people.
var originTold = map[flow.RefundOrigin]string{
	flow.OriginMerchant: "asked for", flow.OriginPolicy: "by the session’s policy", flow.OriginClock: "by itself", flow.OriginResolve: "decided so",
}

// refundsView is what the page of refunds is given.
type refundsView struct {
	Status   flow.RefundStatus
	Statuses []flow.RefundStatus
	Rows     []refundRow
	Older    string // address of older ones, "" for none
	File     string // address of all of them, as a file
	Base     string // of calls over REST
}

// refundRow is a refund with who wanted it.
type refundRow struct {
	flow.Refund

	By string
}

// refunds is GET /refunds, newest first.
func (c *Console) refunds(v *visit) error {
	out := refundsView{Status: statusOf(v.query("status"), flow.RefundStatuses()), Statuses: flow.RefundStatuses(), Base: c.cfg.PublicURL}
	if v.project.ID == "" {
		return v.show("refunds", "Refunds", out)
	}
	list, more, err := v.service.Refunds(v.ctx, v.project.ID, checkout.RefundFilter{Status: out.Status, Before: v.query("before"), Limit: perPage})
	if err != nil {
		return err
	}
	for _, r := range list {
		out.Rows = append(out.Rows, refundRow{Refund: r, By: originTold[r.Origin]})
	}
	out.File = "/refunds.csv?" + queryOf("status", string(out.Status))
	if more {
		out.Older = "/refunds?" + queryOf("status", string(out.Status), "before", string(list[len(list)-1].ID))
	}
	return v.show("refunds", "Refunds", out)
}

// refundsFile is GET /refunds.csv.
func (c *Console) refundsFile(v *visit) error {
	if err := v.ofOne("refunds"); err != nil {
		return err
	}
	filter := checkout.RefundFilter{Status: statusOf(v.query("status"), flow.RefundStatuses())}
	if err := v.audit("refunds.export", string(v.project.ID), string(filter.Status), false); err != nil {
		return err
	}
	service, project := v.service, v.project
	head := []string{"refund", "status", "project", "currency", "amount_naira", "amount_kobo", "origin", "reason", "session", "payment", "bank_reference", "failure", "made", "processed_at"}
	return v.csv("refunds-"+string(v.env)+".csv", head, inPages(func(ctx context.Context, before string, most int) ([][]string, string, error) {
		filter.Before, filter.Limit = before, most
		list, more, err := service.Refunds(ctx, project.ID, filter)
		if err != nil || len(list) == 0 {
			return nil, "", err
		}
		out := make([][]string, 0, len(list))
		for _, r := range list {
			out = append(out, []string{
				string(r.ID), string(r.Status), project.Name, flow.Currency, major(r.Amount), kobo(r.Amount), string(r.Origin), r.Reason, string(r.Session), string(r.Payment),
				r.RailTransactionID, r.Failure, stamp(r.CreatedAt), stamp(r.DoneAt),
			})
		}
		return out, lastOf(more, list[len(list)-1].ID), nil
	}))
}

// differencesShown is how many differences of a day a page lists.
const differencesShown = 100

// reconciliationView is what the page of a reconciled day is given.
type reconciliationView struct {
	Date  flow.Date // that is looked at, or offered
	First flow.Date // that can be
	Last  flow.Date
	Day   *checkout.ReconciliationRecord
	More  int      // differences that are not shown
	Why   []string // it could not be compared
	Base  string   // of calls over REST
}

// differenceTold is how the three disagree, for people.
var differenceTold = map[flow.DifferenceKind]string{
	flow.MissingInLedger:     "The bank moved it, and it is not booked.",
	flow.MissingAtRail:       "It is booked, and the bank does not know of it.",
	flow.AmountDiffers:       "The bank and the ledger give two amounts.",
	flow.TwiceAtRail:         "The bank lists it more than once.",
	flow.TwiceInLedger:       "It is booked more than once.",
	flow.MissingEvent:        "It is booked, and no webhook told of it.",
	flow.EventDiffers:        "A webhook told of another amount.",
	flow.EventWithoutBooking: "A webhook told of what is not booked.",
}

// Told is how the three disagree about something, for people.
func (reconciliationView) Told(k flow.DifferenceKind) string { return differenceTold[k] }

// Money is an amount in kobo that one of the three may not know.
func (reconciliationView) Money(minor *string) string {
	if minor == nil {
		return "–"
	}
	return naira(*minor)
}

// reconciliation is GET /reconciliation: a day as the bank, the ledger and the events
// tell it. Without a day it offers the last one that is over, and asks nobody.
func (c *Console) reconciliation(v *visit) error {
	today := flow.DateOf(v.service.Now())
	out := reconciliationView{Date: today.Plus(-1), First: checkout.FirstReconciled, Last: today, Base: c.cfg.PublicURL}
	if v.project.ID == "" || v.query("date") == "" {
		return v.show("reconciliation", "A day at the bank", out)
	}
	day, err := flow.ParseDate(v.query("date"))
	if err != nil || day < out.First {
		out.Why = []string{"Choose a day, like " + string(out.Date) + "."}
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return v.show("reconciliation", "A day at the bank", out)
	}
	out.Date = day
	got, err := v.service.Reconcile(v.ctx, v.project.ID, day)
	if refusal, ok := errors.AsType[*flow.Error](err); ok && refusal.Code != flow.CodeInternal && refusal.Code != flow.CodeStorage {
		out.Why = []string{refusal.Message}
		v.http.Status(v.refused(err))
		return v.show("reconciliation", "A day at the bank", out)
	}
	if err != nil {
		return err
	}
	shown := got.Differences[:min(len(got.Differences), differencesShown)]
	record := checkout.RecordReconciliation(got, shown)
	out.Day, out.More = &record, len(got.Differences)-len(shown)
	return v.show("reconciliation", "A day at the bank", out)
}
