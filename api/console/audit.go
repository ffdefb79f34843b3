package console

import (
	"context"
	"time"

	"till/flow"
	"till/flow/store"
)

// auditShown is how many rows of the audit log a page lists.
const auditShown = 100

// auditView is what the audit log's page is given.
type auditView struct {
	store.AuditFilter

	Path       string // of the page
	Own        bool   // of one account: an owner looks
	Day, Until string // the first and the last day, as a browser writes them
	List       []flow.Audited
	Next       string // address of the next page, "" for none
	File       string // address of all that fits, as a file
	Narrow     bool   // something narrows it
}

// audit is GET /ops/audit.
func (c *Console) audit(v *visit) error { return c.showAudit(v, "/ops/audit", "") }

// teamAudit is GET /team/audit: what people of one account did.
func (c *Console) teamAudit(v *visit) error { return c.showAudit(v, "/team/audit", v.who.Account) }

func (c *Console) showAudit(v *visit, path, account string) error {
	filter, query, err := v.auditFilter(account)
	if err != nil {
		return err
	}
	filter.Before, filter.Limit = v.query("before"), auditShown
	list, more, err := c.cfg.Accounts.Audits(v.ctx, filter)
	if err != nil {
		return err
	}
	out := auditView{
		AuditFilter: filter, Path: path, Own: account != "", Day: v.query("from"), Until: v.query("until"), List: list, File: path + ".csv?" + query,
		Narrow: query != "",
	}
	if more {
		out.Next = path + "?" + queryOf("before", list[len(list)-1].ID)
		if query != "" {
			out.Next += "&" + query
		}
	}
	return v.show("audit", "Audit log", out)
}

// auditFilter reads what the audit log is narrowed to, and the same as an address has
// it.
func (v *visit) auditFilter(account string) (f store.AuditFilter, query string, err error) {
	f = store.AuditFilter{Account: account, Actor: v.query("actor"), Action: v.query("action"), Subject: v.query("subject")}
	if f.From, err = v.day("from"); err != nil {
		return f, "", err
	}
	if f.Until, err = v.day("until"); err == nil && !f.Until.IsZero() {
		if f.Until.Before(f.From) {
			return f, "", flow.Refuse(flow.CodeInvalidField, "The last day is before the first: nothing was done in between.")
		}
		f.Until = f.Until.AddDate(0, 0, 1) // that day too
	}
	return f, queryOf("actor", f.Actor, "action", f.Action, "subject", f.Subject, "from", v.query("from"), "until", v.query("until")), err
}

// day is the beginning of a day in Lagos, as a browser writes it; zero for none.
func (v *visit) day(name string) (time.Time, error) {
	text := v.query(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, flow.Lagos)
	if err != nil || at.Year() < 2000 || at.Year() > 2200 {
		return time.Time{}, flow.Refuse(flow.CodeInvalidField, "Write a day as 2026-08-27.")
	}
	return at, nil
}

// auditFile is GET /ops/audit.csv.
func (c *Console) auditFile(v *visit) error { return c.sendAudit(v, "") }

// teamAuditFile is GET /team/audit.csv.
func (c *Console) teamAuditFile(v *visit) error { return c.sendAudit(v, v.who.Account) }

func (c *Console) sendAudit(v *visit, account string) error {
	filter, _, err := v.auditFilter(account)
	if err != nil {
		return err
	}
	if err := v.audit("audit.export", string(v.project.ID), "", false); err != nil {
		return err
	}
	accounts := c.cfg.Accounts
	return v.csv("audit.csv", []string{"at", "who", "role", "environment", "project", "action", "subject", "reason"}, inPages(func(ctx context.Context, before string, most int) ([][]string, string, error) {
		filter.Before, filter.Limit = before, most
		list, more, err := accounts.Audits(ctx, filter)
		if err != nil || len(list) == 0 {
			return nil, "", err
		}
		out := make([][]string, 0, len(list))
		for _, a := range list {
			out = append(out, []string{stamp(a.At), a.Actor, string(a.Role), string(a.Environment), string(a.Project), a.Action, a.Subject, a.Reason})
		}
		return out, lastOf(more, list[len(list)-1].ID), nil
	}))
}
