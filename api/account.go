package api

import (
	"log/slog"
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

type loggedInRecord struct {
	Token     string      `json:"token"` // shown here and never again
	ExpiresAt string      `json:"expiresAt"`
	Account   ownerRecord `json:"account"`
}

type projectRecord struct {
	ID        flow.ProjectID `json:"id"`
	Name      string         `json:"name"`
	KYCStatus flow.KYCStatus `json:"kycStatus"`
	CreatedAt string         `json:"createdAt"`
}

type ownProjectRecord struct {
	projectRecord
	Stopped bool `json:"stopped"`
}

type madeProjectRecord struct {
	projectRecord
	Keys keysRecord `json:"keys"`
}

type kycRecord struct {
	ProjectID flow.ProjectID   `json:"projectId"`
	Status    flow.KYCStatus   `json:"status"`
	Reason    *string          `json:"reason"` // of the last ruling
	Details   kycDetailsRecord `json:"details"`
	History   []kycMoveRecord  `json:"history"`
}

type kycDetailsRecord struct {
	LegalName          *string `json:"legalName"`
	RegistrationNumber *string `json:"registrationNumber"`
	Address            *string `json:"address"`
	ContactName        *string `json:"contactName"`
	ContactPhone       *string `json:"contactPhone"`
	Website            *string `json:"website"`
}

type kycMoveRecord struct {
	Status flow.KYCStatus `json:"status"`
	At     string         `json:"at"`
	Reason *string        `json:"reason"`
}

func recordProject(p flow.Project) projectRecord {
	return projectRecord{p.ID, p.Name, p.KYC, flow.Stamp(p.CreatedAt)}
}

func recordKYC(p flow.ProjectID, moves []flow.KYCMove) kycRecord {
	r := kycRecord{ProjectID: p, Status: flow.KYCNone, History: []kycMoveRecord{}}
	for _, m := range moves {
		r.Status, r.Reason = m.To, flow.OrNull(m.Reason)
		if m.To == flow.KYCSubmitted {
			d := m.Details
			r.Details = kycDetailsRecord{
				flow.OrNull(d.LegalName), flow.OrNull(d.RegistrationNumber), flow.OrNull(d.Address), flow.OrNull(d.ContactName), nil, flow.OrNull(d.Website),
			}
			if d.ContactPhone != "" {
				r.Details.ContactPhone = flow.OrNull("+" + string(d.ContactPhone))
			}
		}
		r.History = append(r.History, kycMoveRecord{m.To, flow.Stamp(m.At), flow.OrNull(m.Reason)})
	}
	return r
}

// logIn is POST /v1/auth/login.
func (s *Server) logIn(c *call) error {
	f := c.form(decodeRules{})
	email := f.email("email")
	password := f.text("password", text{required: true, most: flow.MaxPassword})
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusOK, func(m checkout.Made) any {
		return loggedInRecord{m.LoggedIn.Token, flow.Stamp(m.LoggedIn.ExpiresAt), recordOwner(m.LoggedIn.Account)}
	}, "", func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.LogIn(c.ctx, email, password, c.address(), once)
	})
}

// logOut is POST /v1/auth/logout: the token it was called with ends.
func (s *Server) logOut(c *call) error {
	if err := c.nothing(); err != nil {
		return err
	}
	return c.effect(http.StatusOK, func(checkout.Made) any { return map[string]bool{"loggedOut": true} }, "", func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.LogOut(c.ctx, c.token, once)
	})
}

// ownProject finds the project of the path; another account's does not exist.
func (s *Server) ownProject(c *call) error {
	id := c.param("id")
	if !isID(id, flow.PrefixProject) {
		return flow.Refuse(flow.CodeNotFound, "There is no such project.")
	}
	var err error
	c.project, err = s.cfg.Accounts.Project(c.ctx, c.token.Account, flow.ProjectID(id))
	c.noted.project = c.project.ID
	return err
}

// audit keeps in the audit log what a call is about to do, as the console does: an
// owner asks there who made a key or moved the payouts, whichever way it was done.
// The same call sent again stands there again. told is what else is to be known of it,
// "" for nothing.
func (c *call) audit(env flow.Environment, action, subject, told string) error {
	how := "over REST"
	if told != "" {
		how += ": " + told
	}
	row := flow.Audited{Account: c.project.Account, Project: c.project.ID, Environment: env, Action: action, Subject: subject, Reason: how}
	var err error
	if c.token.Account != "" {
		row.Account = c.token.Account
		row, err = c.server.cfg.Accounts.AuditOwner(c.ctx, row)
	} else {
		row.Actor, row.Role = c.key.Hint+" "+c.key.ID, flow.RoleKey
		err = c.server.cfg.Accounts.Audit(c.ctx, row, false)
	}
	if err == nil {
		c.kept = row
	}
	return err
}

// do does what a route does. Where that is refused after it was kept as done, it is
// kept that it was refused.
func (c *call) do(r Route) error {
	err := r.do(c.server, c)
	if kept := c.server.cfg.Accounts.NotDone(c.ctx, c.kept, err); kept != nil {
		c.server.cfg.Log.LogAttrs(c.ctx, slog.LevelError, "it is not kept that a call was refused", slog.String("action", c.kept.Action),
			slog.String("subject", c.kept.Subject), slog.String("error", kept.Error()))
	}
	return err
}

// addProject is POST /v1/projects: a project and its test keys.
func (s *Server) addProject(c *call) error {
	f := c.form(decodeRules{})
	name := f.text("name", text{required: true, most: maxName, said: true})
	if err := f.done(); err != nil {
		return err
	}
	if err := c.audit("", "project.add", c.token.Account, name); err != nil {
		return err
	}
	return c.effect(http.StatusCreated, func(m checkout.Made) any {
		return madeProjectRecord{recordProject(m.Project), keysRecord{flow.Test, m.Pair[0].Text, m.Pair[1].Text}}
	}, projectsPath, func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.AddProject(c.ctx, c.token.Account, name, once)
	}, c.bearer)
}

// listProjects is GET /v1/projects, newest first.
func (s *Server) listProjects(c *call) error {
	limit, before, err := c.turnedPage(flow.PrefixProject)
	if err != nil {
		return err
	}
	projects, more, err := s.cfg.Accounts.Projects(c.ctx, c.token.Account, flow.ProjectID(before), limit)
	if err != nil {
		return err
	}
	return sendPage(c, projects, more, recordProject, func(p flow.Project) string { return string(p.ID) })
}

// turnedPage reads the parameters of a list that has no filters.
func (c *call) turnedPage(prefix string) (limit int, before string, err error) {
	q := c.query()
	limit, before = q.whole("limit", 1, maxPage, usualPage), q.cursor(func(at string) bool { return isID(at, prefix) })
	return limit, before, q.done()
}

// readProject is GET /v1/projects/{id}.
func (s *Server) readProject(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	if err := c.query().done(); err != nil {
		return err
	}
	return c.send(http.StatusOK, recordProject(c.project))
}

// readOwnProject is GET /v1/project: the project that the key belongs to.
func (s *Server) readOwnProject(c *call) error {
	p, err := s.cfg.Accounts.Project(c.ctx, c.project.Account, c.project.ID)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, ownProjectRecord{recordProject(p), c.service.Stopped(p.ID)})
}

// submitKYC is POST /v1/projects/{id}/kyc.
func (s *Server) submitKYC(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	d := flow.KYCDetails{
		LegalName:          f.text("legalName", text{most: maxDescription, said: true}),
		RegistrationNumber: f.text("registrationNumber", text{most: maxName, said: true}),
		Address:            f.text("address", text{most: maxDescription, multiline: true, said: true}),
		ContactName:        f.text("contactName", text{most: maxName, said: true}),
		ContactPhone:       f.phone("contactPhone"),
		Website:            f.text("website", text{most: maxURL}),
	}
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusOK, func(m checkout.Made) any { return recordKYC(c.project.ID, m.KYC) }, "", func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.SubmitKYC(c.ctx, c.project.ID, d, once)
	})
}

// readKYC is GET /v1/projects/{id}/kyc.
func (s *Server) readKYC(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	if err := c.query().done(); err != nil {
		return err
	}
	moves, err := s.cfg.Accounts.KYC(c.ctx, c.project.ID)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, recordKYC(c.project.ID, moves))
}
