package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// merchantsCmd is what an operator does about merchants.
type merchantsCmd struct {
	List    merchantsListCmd    `cmd:"" help:"List all projects, whose they are, how far their KYC is and where they are stopped."`
	Stop    merchantsStopCmd    `cmd:"" help:"Take nothing new of a project, and pay nothing out to it; money that comes is kept."`
	Go      merchantsGoCmd      `cmd:"" help:"Let a project go on."`
	Lookups merchantsLookupsCmd `cmd:"" help:"List who looked a BVN or NIN up with a project's keys, and why."`
	KYC     struct {
		Approve kycApproveCmd `cmd:"" help:"Let a project have live keys, or end its suspension."`
		Reject  kycRejectCmd  `cmd:"" help:"Refuse what a project submitted; its merchant may submit again."`
		Suspend kycSuspendCmd `cmd:"" help:"Refuse every call with a project's live keys."`
	} `cmd:"" name:"kyc" help:"Decide about a project: approve, reject or suspend."`
}

// merchantsListCmd lists projects.
type merchantsListCmd struct {
	local

	Status string `help:"Only those whose KYC is in this state: NONE, SUBMITTED, APPROVED, REJECTED or SUSPENDED." enum:",NONE,SUBMITTED,APPROVED,REJECTED,SUSPENDED" default:""`
}

func (merchantsListCmd) Help() string {
	return "Example:\n\n    till merchants list --status SUBMITTED"
}

// merchantsPage is how many projects are read at a time.
const merchantsPage = 500

// Run prints one line for each project, oldest first.
func (c *merchantsListCmd) Run(w *world) error {
	stopped, err := stoppedIn(w, c.Settings)
	if err != nil {
		return err
	}
	return withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		list := []merchantLine{}
		_, err := findMerchant(w, a, func(m store.Merchant) bool {
			if p := m.Project; c.Status == "" || c.Status == string(p.KYC) {
				list = append(list, merchantLine{p.ID, p.KYC, append([]flow.Environment{}, stopped[p.ID]...), flow.Stamp(p.CreatedAt), m.Account.Email, p.Name})
			}
			return false // all are looked at
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(w, list)
		}
		return printTable(w, "PROJECT\tKYC\tSTOPPED\tCREATED\tE-MAIL\tNAME", list, func(l merchantLine) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", l.ID, l.KYCStatus, cmp.Or(strings.Trim(fmt.Sprint(l.Stopped), "[]"), "-"), l.CreatedAt, l.Email, l.Name)
		})
	})
}

// merchantLine is a project as it is listed.
type merchantLine struct {
	ID        flow.ProjectID     `json:"id"`
	KYCStatus flow.KYCStatus     `json:"kycStatus"`
	Stopped   []flow.Environment `json:"stopped"` // in which an operator stopped it
	CreatedAt string             `json:"createdAt"`
	Email     string             `json:"email"`
	Name      string             `json:"name"`
}

// stoppedIn are the projects that operators stopped, and in which environments.
func stoppedIn(w *world, set config.Settings) (map[flow.ProjectID][]flow.Environment, error) {
	out := map[flow.ProjectID][]flow.Environment{}
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		err := beside(w, set, store.Checkout, string(env), "there are no switches", func(db *store.DB) error {
			switches, err := db.Switches(w.ctx)
			for project := range switches[flow.SwitchMerchant] {
				out[flow.ProjectID(project)] = append(out[flow.ProjectID(project)], env)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
}

// ruling is what every decision about a project is told.
type ruling struct {
	local

	Project string `arg:"" help:"Id of the project: wsp_prj_…"`
	Reason  string `help:"Why; the merchant reads it."`
}

type (
	kycApproveCmd struct{ ruling }
	kycRejectCmd  struct{ ruling }
	kycSuspendCmd struct{ ruling }
)

func (kycApproveCmd) Help() string {
	return "Example:\n\n    till merchants kyc approve wsp_prj_01jd…"
}

func (kycRejectCmd) Help() string {
	return "Example:\n\n    till merchants kyc reject wsp_prj_01jd… --reason 'The RC number is that of another company'"
}

func (kycSuspendCmd) Help() string {
	return "Example:\n\n    till merchants kyc suspend wsp_prj_01jd… --reason 'Reports of fraud'"
}

// Run approves a project.
func (c *kycApproveCmd) Run(w *world) error { return c.rule(w, flow.Approve) }

// Run rejects what a project submitted.
func (c *kycRejectCmd) Run(w *world) error { return c.rule(w, flow.Reject) }

// Run suspends a project.
func (c *kycSuspendCmd) Run(w *world) error { return c.rule(w, flow.Suspend) }

// maxReason bounds what a merchant is told about a ruling.
const maxReason = 500

// beforeRuling is what would have to happen before another ruling.
func beforeRuling(stands flow.KYCStatus) string {
	switch stands {
	case flow.KYCApproved:
		return "only suspend changes that"
	case flow.KYCSuspended:
		return "only approve ends that"
	case flow.KYCNone, flow.KYCRejected, flow.KYCSubmitted: // of what is submitted every ruling is legal
	}
	return "its merchant submits it first, under /go-live of the console or by POST /v1/projects/{id}/kyc; until then it has no live keys"
}

// rule decides, and ends once every server that runs has heard of it.
func (r *ruling) rule(w *world, what flow.Ruling) error {
	if err := reasoned(r.Reason); err != nil {
		return err
	}
	return withAccounts(w, r.Settings, func(a *checkout.Accounts) error {
		var moves []flow.KYCMove
		err := audited(w, a, flow.Audited{Action: "kyc." + string(what), Subject: r.Project, Reason: r.Reason}, func() (err error) {
			moves, err = a.RuleKYC(w.ctx, flow.ProjectID(r.Project), what, r.Reason)
			return err
		})
		if illegal, ok := errors.AsType[*flow.IllegalMove](err); ok {
			return fmt.Errorf("this project cannot be told to %s: its KYC is %s (%s)", illegal.Trigger, illegal.From, beforeRuling(flow.KYCStatus(illegal.From)))
		}
		if flow.CodeOf(err) == flow.CodeNotFound {
			return fmt.Errorf("there is no project %q (see: till merchants list)", r.Project)
		}
		if err != nil {
			return err
		}
		heard(w)
		last := moves[len(moves)-1]
		return printDone(w, r.JSON, map[string]any{"project": r.Project, "from": last.From, "to": last.To, "at": flow.Stamp(last.At), "reason": last.Reason},
			"%s  %s -> %s\n", r.Project, last.From, last.To)
	})
}

// known fails where there is no such project: a wrong id must not look like a project
// without money, or be switched.
func known(w *world, set config.Settings, project string) error {
	err := withAccounts(w, set, func(a *checkout.Accounts) error { return a.HasProject(w.ctx, flow.ProjectID(project)) })
	if flow.CodeOf(err) == flow.CodeNotFound {
		return fmt.Errorf("there is no project %q (see: till merchants list)", project)
	}
	return err
}

// withAccounts opens the accounts, beside whatever else has them open.
func withAccounts(w *world, set config.Settings, do func(*checkout.Accounts) error) error {
	return beside(w, set, store.Accounts, "accounts", "there are no accounts", func(db *store.DB) error {
		return do(checkout.NewAccounts(db, time.Now, rand.Reader))
	})
}
