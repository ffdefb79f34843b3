package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// supportPages are what supporters look at: sessions, what became of money, and
// what waits for somebody.
func supportPages() []Page {
	get, post := http.MethodGet, http.MethodPost
	return []Page{
		{Method: get, Path: "/sessions", Right: flow.MayRead, do: (*Console).searchSessions},
		{Method: get, Path: "/sessions.csv", Right: flow.MayRead, do: (*Console).sessionsFile},
		{Method: post, Path: "/filters", Right: flow.MayRead, do: (*Console).keepFilter},
		{Method: post, Path: "/filters/drop", Right: flow.MayRead, do: (*Console).dropFilter},
		{Method: get, Path: "/sessions/:id", Right: flow.MayRead, do: (*Console).sessionPage},
		{Method: get, Path: "/sessions/:id/live", Right: flow.MayRead, do: (*Console).liveSession},
		{Method: get, Path: "/sessions/:id/export", Right: flow.MayRead, do: (*Console).exportSession},
		{Method: get, Path: "/sessions/:id/receipt.png", Right: flow.MayRead, do: (*Console).receipt},
		{Method: post, Path: "/sessions/:id/reveal", Right: flow.MayReveal, do: (*Console).revealPhone},
		{Method: post, Path: "/sessions/:id/note", Right: flow.MayAnswer, do: (*Console).noteSession},
		{Method: post, Path: "/sessions/:id/instructions", Right: flow.MayResend, do: (*Console).sayAgain},
		{Method: post, Path: "/sessions/:id/check", Right: flow.MayResend, do: (*Console).askBank},
		{Method: post, Path: "/sessions/:id/resend", Right: flow.MayResend, do: (*Console).resendHere},
		{Method: post, Path: "/sessions/:id/resolve", Right: flow.MayMoveMoney, do: (*Console).resolvePayment},
		{Method: post, Path: "/sessions/:id/retry", Right: flow.MayMoveMoney, do: (*Console).retryRefund},
		{Method: post, Path: "/sessions/:id/by-hand", Right: flow.MayMoveMoney, do: (*Console).refundByHand},
		{Method: post, Path: "/sessions/:id/cancel", Right: flow.MayMoveMoney, do: (*Console).cancelSession},
		{Method: post, Path: "/sessions/:id/expire", Right: flow.MayMoveMoney, do: (*Console).expireSession},
		{Method: get, Path: "/exceptions", Right: flow.MayRead, do: (*Console).exceptions},
		{Method: post, Path: "/exceptions/resolve", Right: flow.MayMoveMoney, do: (*Console).resolveUnmatched},
		{Method: post, Path: "/exceptions/retry", Right: flow.MayMoveMoney, do: (*Console).retryUnmatched},
		{Method: post, Path: "/exceptions/by-hand", Right: flow.MayMoveMoney, do: (*Console).unmatchedByHand},
		{Method: post, Path: "/exceptions/second", Right: flow.MayMoveMoney, do: (*Console).secondPerson},
	}
}

// perPage is how many rows one page of a list shows.
const perPage = 25

// searchView is what the search page is given.
type searchView struct {
	Q        string
	Status   flow.SessionStatus
	Statuses []flow.SessionStatus
	Search   flow.Search
	Found    []foundRow
	Next     string // address of older ones, "" for none
	Took     time.Duration
	All      bool // of all projects
	Saved    []savedFilter
	File     string // address of all that is found, as a file
	Command  string // that lists the same, "" for none
}

// foundRow is one session that was found.
type foundRow struct {
	store.Found

	Project string // its name, or its id
	Back    string // what is said of money that went back
}

// Meant says what the words were taken for, "" where there were none.
func (s searchView) Meant() string {
	var parts []string
	for _, k := range s.Search.Keys {
		text := string(k.Kind)
		switch {
		case k.Amount > 0 && k.Kind == flow.ByAmount:
			text += " " + naira(k.Amount)
		case k.Amount > 0:
			text += " with the amount " + naira(k.Amount)
		}
		parts = append(parts, text)
	}
	meant := strings.Join(parts, ", or ")
	if s.Status != "" { // which may have been read out of the words
		meant = strings.TrimPrefix(meant+", status "+strings.ToLower(string(s.Status)), ", ")
	}
	if !s.Search.From.IsZero() {
		form := "2 Jan 2006 15:04"
		if meant != "" {
			meant += ", "
		}
		meant += "opened from " + s.Search.From.In(flow.Lagos).Format(form) + " to " + s.Search.Until.In(flow.Lagos).Format(form) + " in Lagos"
	}
	return meant
}

// Why says by what a session was found, "" where it is only new.
func (f foundRow) Why() string {
	var parts []string
	for _, by := range f.By {
		if by != "newest" {
			parts = append(parts, string(by))
		}
	}
	return strings.Join(parts, ", ")
}

// searchSessions is GET /sessions: one box for whatever a payer says.
func (c *Console) searchSessions(v *visit) error {
	out := searchView{
		Q: v.query("q"), All: v.project.ID == "", Statuses: flow.SessionStatuses(),
	}
	out.Search = flow.ReadSearch(out.Q, v.service.Now())
	out.Status = cmp.Or(statusOf(v.query("status"), flow.SessionStatuses()), out.Search.Status)
	out.File = "/sessions.csv?" + queryOf("q", out.Q, "status", string(out.Status))
	if out.Q == "" { // the command line searches for no words
		if out.Command = fmt.Sprintf("bin/till sessions list --limit %d", maxCSV); out.Status != "" {
			out.Command += " --status " + string(out.Status)
		}
	}
	var err error
	if out.Saved, err = c.saved(v); err != nil {
		return err
	}
	began := c.cfg.Real()
	list, more, err := v.service.Reader().Search(v.ctx, store.SearchFilter{
		Search: out.Search, Project: v.project.ID, Status: out.Status, Before: flow.SessionID(v.query("before")), Limit: perPage,
	})
	if err != nil {
		return err
	}
	out.Took = c.cfg.Real().Sub(began)
	payments, err := paymentsFor(v.ctx, v.service.Reader(), list)
	if err != nil {
		return err
	}
	for _, f := range list {
		out.Found = append(out.Found, foundRow{f, v.projectName(f.Session.Project), wentBack(f.Session, payments[f.Session.ID])})
	}
	if more {
		next := url.Values{"q": {out.Q}, "status": {string(out.Status)}, "before": {string(list[len(list)-1].Session.ID)}}
		out.Next = "/sessions?" + next.Encode()
	}
	return v.show("sessions", "Sessions", out)
}

// projectName is the name of a project that can be chosen, or the id of another.
func (v *visit) projectName(id flow.ProjectID) string {
	for _, p := range v.projects {
		if p.ID == id {
			return p.Name
		}
	}
	return string(id)
}

// session reads the session that an address names. One of another project's is
// not there, but for operators who look at all projects; of one that can be chosen it is
// said which, also in the other environment.
func (v *visit) session() (flow.Session, error) {
	id := flow.SessionID(v.http.Params("id"))
	s, err := v.service.Reader().Session(v.ctx, id)
	if err == nil && (v.project.ID == "" || s.Project == v.project.ID) || err != nil && flow.CodeOf(err) != flow.CodeNotFound {
		return s, err
	}
	for env, service := range v.console.cfg.Services {
		s, err := service.Reader().Session(v.ctx, id)
		if err == nil && slices.ContainsFunc(v.projects, func(p flow.Project) bool { return p.ID == s.Project }) {
			return flow.Session{}, v.lookThere(s.Project, env)
		}
	}
	return flow.Session{}, flow.Refuse(flow.CodeNotFound, "There is no session %q.", id)
}

// lookThere says of what is not there in which project and environment it is.
func (v *visit) lookThere(project flow.ProjectID, env flow.Environment) error {
	return flow.Refuse(flow.CodeNotFound, "It is of %s (%s), and you look at %s (%s). Open the menu with that name at the top of this page, choose the other, and press Look there.",
		v.named(project), env, v.named(v.project.ID), v.env)
}

// elsewhere is why something could not be read; where it is not there, and is in another
// project or environment that can be chosen, that it is there.
func (v *visit) elsewhere(why error, read func(*checkout.Service, flow.ProjectID) error) error {
	if flow.CodeOf(why) != flow.CodeNotFound {
		return why
	}
	for env, service := range v.console.cfg.Services {
		for _, p := range v.projects {
			if read(service, p.ID) == nil {
				return v.lookThere(p.ID, env)
			}
		}
	}
	return why
}
