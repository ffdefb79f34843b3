package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// settlementPages are what whoever keeps a merchant's books looks at: what was paid
// out, and what each payout is made of.
func settlementPages() []Page {
	get := http.MethodGet
	return []Page{
		{Method: get, Path: "/settlements", Right: flow.MayRead, do: (*Console).settlements},
		{Method: get, Path: "/settlements.csv", Right: flow.MayRead, do: (*Console).settlementsFile},
		{Method: get, Path: "/settlements/:id", Right: flow.MayRead, do: (*Console).settlementPage},
		{Method: get, Path: "/settlements/:id/transactions.csv", Right: flow.MayRead, do: (*Console).settlementFile},
	}
}

// owned is what a project has at us.
type owned struct {
	Balance *flow.BalanceRecord // nil while no project is looked at
	Next    flow.Kobo           // what waits to be paid out; negative where it is owed to us
	Blocked string              // why nothing is paid out, "" where nothing is in the way
	Failed  *flow.Settlement    // the last payout, where it did not arrive and its money waits for the next
}

// blockedTold says for people why nobody is paid out.
var blockedTold = map[string]string{
	flow.BlockedNoAccount: "it is not said yet to which account. An owner says it under Go live.",
	flow.BlockedStopped:   "this project is stopped. No sessions open in it either. Ask the operator of this service.",
}

// owned is what the project that is looked at has at us.
func (v *visit) owned() (owned, error) {
	balance, err := v.service.Balance(v.ctx, v.project.ID)
	if err != nil {
		return owned{}, err
	}
	out := owned{Balance: &balance}
	for _, minor := range []string{balance.PendingMinor, balance.AvailableMinor} { // what a payout that failed left goes with it
		kobo, err := flow.ParseMinor(minor)
		if err != nil {
			return owned{}, err
		}
		out.Next += kobo
	}
	list, _, err := v.service.Settlements(v.ctx, v.project.ID, checkout.SettlementFilter{Limit: 1})
	if err != nil {
		return owned{}, err
	}
	if len(list) == 1 && list[0].Status == flow.SettlementFailed && out.Next > 0 {
		out.Failed = &list[0]
	}
	switch {
	case balance.BlockedReason != nil:
		out.Blocked = blockedTold[*balance.BlockedReason]
	case out.Next < 0:
		out.Blocked = "more went back, or was taken back, than came since the last payout. What comes makes up for it first."
	}
	return out, nil
}

// settlementRow is a settlement with what it is made of: Came, less Gone and Fees, with
// what earlier payouts left, is its amount.
type settlementRow struct {
	flow.Settlement

	Sums             []sumRow
	Came, Gone, Fees flow.Kobo
}

// sumRow is what the lines of one kind come to.
type sumRow struct {
	What             string
	Lines            int64
	Amount, Fee, Net flow.Kobo
}

// lineTold is what a line of a settlement is, for people.
var lineTold = map[flow.EntryKind]string{
	flow.EntryPayment: "Payment", flow.EntryAccept: "Money that was set aside at first", flow.EntryRefund: "Refund",
	flow.EntryRefundFailed: "Refund that was not sent after all", flow.EntryReversal: "Taken back by the bank",
}

// settlementRows are settlements with what each is made of.
func settlementRows(ctx context.Context, r store.Reader, list []flow.Settlement) ([]settlementRow, error) {
	sums, err := r.SettlementSums(ctx, list)
	rows := make([]settlementRow, 0, len(list))
	for _, b := range list {
		row := settlementRow{Settlement: b}
		for _, s := range sums[b.ID] {
			row.add(s)
		}
		rows = append(rows, row)
	}
	return rows, err
}

// add adds what the lines of one kind come to.
func (row *settlementRow) add(s flow.SettlementSum) {
	amount, what := s.Net+s.Fee, lineTold[s.Kind.Told()]
	row.Fees += s.Fee
	if s.Kind == flow.EntryPayment || s.Kind == flow.EntryAccept {
		row.Came += amount
	} else {
		row.Gone -= amount
	}
	i := slices.IndexFunc(row.Sums, func(r sumRow) bool { return r.What == what })
	if i < 0 {
		i, row.Sums = len(row.Sums), append(row.Sums, sumRow{What: what})
	}
	at := &row.Sums[i]
	at.Lines, at.Amount, at.Fee, at.Net = at.Lines+s.Lines, at.Amount+amount, at.Fee+s.Fee, at.Net+s.Net
}

// settlementsView is what the page of settlements is given.
type settlementsView struct {
	owned

	Status   flow.SettlementStatus
	Statuses []flow.SettlementStatus
	Rows     []settlementRow
	Older    string    // address of older ones, "" for none
	File     string    // address of all of them, as a file
	Payday   time.Time // when the project is paid out next
	Before   time.Time // when money must have come to be in that
	TryFor   flow.Date // a day to try it out for: what comes now is paid out on it
	Base     string    // of calls over REST
}

// settlements is GET /settlements, newest first.
func (c *Console) settlements(v *visit) error {
	out := settlementsView{Status: statusOf(v.query("status"), flow.SettlementStatuses()), Statuses: flow.SettlementStatuses(), Base: c.cfg.PublicURL}
	if v.project.ID == "" {
		return v.show("settlements", "Settlements", out)
	}
	var err error
	if out.owned, err = v.owned(); err != nil {
		return err
	}
	if out.Payday, out.Before, err = v.service.NextPayout(v.ctx, v.project.ID); err != nil {
		return err
	}
	out.TryFor = v.service.SettlesOn()
	list, more, err := v.service.Settlements(v.ctx, v.project.ID, checkout.SettlementFilter{Status: out.Status, Before: v.query("before"), Limit: perPage})
	if err != nil {
		return err
	}
	if out.Rows, err = settlementRows(v.ctx, v.service.Reader(), list); err != nil {
		return err
	}
	out.File = "/settlements.csv?" + queryOf("status", string(out.Status))
	if more {
		out.Older = "/settlements?" + queryOf("status", string(out.Status), "before", string(list[len(list)-1].ID))
	}
	return v.show("settlements", "Settlements", out)
}

// settlementsFile is GET /settlements.csv.
func (c *Console) settlementsFile(v *visit) error {
	if err := v.ofOne("settlements"); err != nil {
		return err
	}
	filter := checkout.SettlementFilter{Status: statusOf(v.query("status"), flow.SettlementStatuses())}
	if err := v.audit("settlements.export", string(v.project.ID), string(filter.Status), false); err != nil {
		return err
	}
	service, project := v.service, v.project
	head := []string{
		"settlement", "settles_on", "status", "project", "currency", "came_naira", "came_kobo", "gone_back_naira", "gone_back_kobo", "fees_naira", "fees_kobo",
		"carried_naira", "carried_kobo", "amount_naira", "amount_kobo", "transactions", "bank", "account", "account_name", "bank_reference", "failure", "made", "paid_at",
	}
	return v.csv("settlements-"+string(v.env)+".csv", head, inPages(func(ctx context.Context, before string, most int) ([][]string, string, error) {
		filter.Before, filter.Limit = before, min(most, perPage) // each may have ten thousand lines to add up
		list, more, err := service.Settlements(ctx, project.ID, filter)
		if err != nil || len(list) == 0 {
			return nil, "", err
		}
		rows, err := settlementRows(ctx, service.Reader(), list)
		out := make([][]string, 0, len(rows))
		for _, b := range rows {
			out = append(out, []string{
				string(b.ID), string(b.SettlesOn), string(b.Status), project.Name, flow.Currency, major(b.Came), kobo(b.Came), major(b.Gone), kobo(b.Gone),
				major(b.Fees), kobo(b.Fees), major(b.Carried), kobo(b.Carried), major(b.Amount), kobo(b.Amount), strconv.FormatInt(b.Lines, 10), b.BankName,
				b.To.Masked(), b.To.Name, b.RailTransactionID, b.Failure, stamp(b.CreatedAt), stamp(b.DoneAt),
			})
		}
		return out, lastOf(more, list[len(list)-1].ID), err
	}))
}

// settlementView is what the page of a settlement is given.
type settlementView struct {
	settlementRow

	Project string // its name, or its id
	List    []lineRow
	First   bool   // the page begins with the first line
	Next    string // address of the next page of lines, "" for none
	Base    string // of calls over REST
}

// lineRow is one line of a settlement.
type lineRow struct {
	flow.SettlementLine

	What   string
	Amount flow.Kobo
}

// linesShown is how many lines of a settlement a page lists.
const linesShown = 100

// settlement reads the settlement that an address names. One of another project's is not
// there, but for operators who look at all projects.
func (v *visit) settlement() (flow.Settlement, error) {
	id := flow.SettlementID(v.http.Params("id"))
	project := v.project.ID
	if project == "" {
		b, err := v.service.Reader().Settlement(v.ctx, id)
		if err != nil {
			return b, err
		}
		project = b.Project
	}
	b, err := v.service.Settlement(v.ctx, project, id)
	return b, v.elsewhere(err, func(s *checkout.Service, p flow.ProjectID) error {
		_, err := s.Settlement(v.ctx, p, id)
		return err
	})
}

// settlementPage is GET /settlements/{id}: what it is made of, so that it adds up.
func (c *Console) settlementPage(v *visit) error {
	b, err := v.settlement()
	if err != nil {
		return err
	}
	rows, err := settlementRows(v.ctx, v.service.Reader(), []flow.Settlement{b})
	if err != nil {
		return err
	}
	out := settlementView{settlementRow: rows[0], Project: v.projectName(b.Project), Base: c.cfg.PublicURL}
	after, known := store.ReadLinePlace(v.query("after"))
	out.First = !known // as of an address that was mistyped
	list, more, err := v.service.SettlementLines(v.ctx, b.Project, b.ID, after, linesShown)
	if err != nil {
		return err
	}
	for _, l := range list {
		out.List = append(out.List, lineRow{l, lineTold[l.Kind.Told()], l.Net + l.Fee})
	}
	if more {
		out.Next = "/settlements/" + string(b.ID) + "?" + queryOf("after", store.PlaceOf(list[len(list)-1]).String())
	}
	return v.show("settlement", "Settlement "+string(b.ID), out)
}

// settlementFile is GET /settlements/{id}/transactions.csv: its lines, as a file.
func (c *Console) settlementFile(v *visit) error {
	b, err := v.settlement()
	if err != nil {
		return err
	}
	if err := v.auditIn(b.Project, "settlement.export", string(b.ID), "", false); err != nil {
		return err
	}
	service, ended := v.service, false
	var after store.LinePlace
	head := []string{
		"at", "type", "payment", "refund", "session", "reference", "customer", "currency", "amount_naira", "amount_kobo", "fee_naira", "fee_kobo", "net_naira", "net_kobo",
	}
	return v.csv(string(b.ID)+".csv", head, func(ctx context.Context, most int) ([][]string, error) {
		if ended {
			return nil, nil
		}
		list, more, err := service.SettlementLines(ctx, b.Project, b.ID, after, most)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		ended, after = !more, store.PlaceOf(list[len(list)-1])
		out := make([][]string, 0, len(list))
		for _, l := range list {
			record := flow.RecordSettlementLine(l)
			amount := l.Net + l.Fee
			refund := ""
			if record.RefundID != nil {
				refund = *record.RefundID
			}
			out = append(out, []string{
				stamp(l.At), record.Type, string(l.Payment), refund, string(l.Session), l.Reference, l.Customer, flow.Currency, major(amount), kobo(amount),
				major(l.Fee), kobo(l.Fee), major(l.Net), kobo(l.Net),
			})
		}
		return out, nil
	})
}
