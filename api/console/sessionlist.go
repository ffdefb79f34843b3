package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"till/flow"
	"till/flow/store"
)

// savedFilter is a search that the visitor keeps.
type savedFilter struct {
	flow.Filter

	Address string
}

// saved are the searches that the visitor keeps.
func (c *Console) saved(v *visit) ([]savedFilter, error) {
	list, err := c.cfg.Accounts.Filters(v.ctx, v.who)
	out := make([]savedFilter, 0, len(list))
	for _, f := range list {
		out = append(out, savedFilter{f, "/sessions?" + queryOf("q", f.Words, "status", string(f.Status))})
	}
	return out, err
}

// keepFilter is POST /filters: the visitor keeps a search under a name.
func (c *Console) keepFilter(v *visit) error {
	t := v.typing()
	f := flow.Filter{Name: t.text("name", "The name", 1, 40, false), Words: t.text("q", "What is searched for", 0, maxQuery, false), Status: statusOf(v.field("status"), flow.SessionStatuses())}
	if !t.ok() {
		return flow.Refuse(flow.CodeInvalidField, "%s", t.Wrong[0])
	}
	if f.Words == "" && f.Status == "" {
		return flow.Refuse(flow.CodeInvalidField, "Search for something first: there is nothing to keep.")
	}
	if err := c.cfg.Accounts.KeepFilter(v.ctx, v.who, f); err != nil {
		return err
	}
	return v.to("/sessions?"+queryOf("q", f.Words, "status", string(f.Status)), "The search is kept as "+f.Name+".")
}

// maxQuery is how long a search may be.
const maxQuery = 200

// dropFilter is POST /filters/drop.
func (c *Console) dropFilter(v *visit) error {
	name := v.field("name")
	if name == "" {
		return flow.Refuse(flow.CodeMissingField, "Say which search is to be forgotten.")
	}
	if err := c.cfg.Accounts.DropFilter(v.ctx, v.who, name); err != nil {
		return err
	}
	return v.to("/sessions", "The search is forgotten.")
}

// statusOf is the status of some that a text names, "" for none.
func statusOf[S ~string](text string, of []S) S {
	if s := S(text); slices.Contains(of, s) {
		return s
	}
	return ""
}

// sessionsFile is GET /sessions.csv: what a search finds, as a file for a
// spreadsheet, with the middle of phones hidden.
func (c *Console) sessionsFile(v *visit) error {
	search := flow.ReadSearch(v.query("q"), v.service.Now())
	status := cmp.Or(statusOf(v.query("status"), flow.SessionStatuses()), search.Status)
	filter := store.SearchFilter{Search: search, Project: v.project.ID, Status: status}
	// What was searched for may be a phone number: only what it was taken for is kept.
	meant := searchView{Search: filter.Search, Status: status}.Meant()
	if err := v.audit("sessions.export", string(v.project.ID), meant, false); err != nil {
		return err
	}
	names := map[flow.ProjectID]string{}
	for _, p := range v.projects {
		names[p.ID] = p.Name
	}
	reader := v.service.Reader()
	head := []string{
		"session", "opened", "status", "exceptions", "project", "customer", "email", "phone", "reference", "description", "currency",
		"amount_naira", "amount_kobo", "paid_naira", "paid_kobo", "paid_at", "expires",
		"came_naira", "came_kobo", "refunded_naira", "refunded_kobo", "reversed_naira", "reversed_kobo",
	}
	return v.csv("sessions-"+string(v.env)+".csv", head, inPages(func(ctx context.Context, before string, most int) ([][]string, string, error) {
		filter.Before, filter.Limit = flow.SessionID(before), most
		list, more, err := reader.Search(ctx, filter)
		if err != nil || len(list) == 0 {
			return nil, "", err
		}
		payments, err := paymentsFor(ctx, reader, list)
		out := make([][]string, 0, len(list))
		for _, f := range list {
			s := f.Session
			var came, refunded, reversed flow.Kobo
			for _, p := range payments[s.ID] {
				came, refunded, reversed = came+p.Amount, refunded+p.Refunded, reversed+p.Reversed
			}
			project := cmp.Or(names[s.Project], string(s.Project))
			out = append(out, []string{
				string(s.ID), stamp(s.CreatedAt), string(s.Status), joined(s.Exceptions), project, s.CustomerName, s.CustomerEmail, hidden(s.CustomerPhone), s.Reference, s.Description,
				flow.Currency, major(s.Amount), kobo(s.Amount), major(s.AmountPaid), kobo(s.AmountPaid), stamp(s.PaidAt), stamp(s.ExpiresAt),
				major(came), kobo(came), major(refunded), kobo(refunded), major(reversed), kobo(reversed),
			})
		}
		return out, lastOf(more, list[len(list)-1].Session.ID), err
	}))
}

// paymentsFor reads the payments of sessions that were found.
func paymentsFor(ctx context.Context, reader store.Reader, list []store.Found) (map[flow.SessionID][]flow.Payment, error) {
	ids := make([]string, len(list))
	for i, f := range list {
		ids[i] = string(f.Session.ID)
	}
	return reader.PaymentsFor(ctx, ids)
}

// wentBack is a word beside the status of a session that is paid, where what it was paid
// with went back to its payer, or is on its way: that it is paid is said still.
func wentBack(s flow.Session, payments []flow.Payment) string {
	back, _ := flow.Gone(s, payments)
	switch {
	case s.Status != flow.SessionPaid || back == 0:
		return ""
	case back < s.AmountPaid:
		return "PARTLY_REFUNDED"
	}
	return "REFUNDED"
}

// hidden is a phone number with its middle hidden, "" for none.
func hidden(p flow.Phone) string {
	if p == "" {
		return ""
	}
	return strings.TrimPrefix(p.String(), "+")
}

func joined(list []flow.Exception) string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = string(e)
	}
	return strings.Join(out, " ")
}
