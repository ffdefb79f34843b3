package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"till/api"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// projectsCmd is what an owner does with projects.
type projectsCmd struct {
	List   projectsListCmd   `cmd:"" default:"withargs" help:"List the projects of an account."`
	Create projectsCreateCmd `cmd:"" help:"Make a project, with a pair of test keys."`
}

// owning is what commands about projects and keys are told. They work on the
// data dir, whether a server runs on it or not.
type owning struct {
	local

	EnvFile string `name:"env-file" default:".env.till" placeholder:"FILE" help:"File with TILL_SECRET_KEY, for where that variable is not set: its project, or its account, is meant where no other is named."`
}

// besideHelp says in each help what these commands need.
const besideHelp = "\n\nIt works on the data dir, whether a server runs on it or not; a server that runs holds to it within a second."

// owned opens the accounts, with the clocks that the server has.
func (o *owning) owned(w *world, do func(*checkout.Accounts) error) error {
	return beside(w, o.Settings, store.Accounts, "accounts", "there are no projects", func(db *store.DB) error {
		a := checkout.NewAccounts(db, newClock(under(o.DataDir, "clock")).Now, rand.Reader)
		a.Clocks(time.Now, time.Now)
		return do(a)
	})
}

// mine is the project of the key at hand; or says what else to do where there is none.
func (o *owning) mine(w *world, a *checkout.Accounts, or string) (flow.Project, error) {
	kept, err := readEnvFile(o.EnvFile)
	if err != nil {
		return flow.Project{}, err
	}
	text := keyAtHand(kept)
	if text == "" {
		return flow.Project{}, usageError{errors.New(or + " (see: till merchants list), or have a key of it in TILL_SECRET_KEY or " + o.EnvFile)}
	}
	_, p, err := a.Authenticate(w.ctx, text)
	if err != nil {
		return flow.Project{}, fmt.Errorf("find the project of the key at hand: %w", err)
	}
	return p, nil
}

// project is the project of an id, or that of the key at hand.
func (o *owning) project(w *world, a *checkout.Accounts, id string) (flow.Project, error) {
	if id == "" {
		return o.mine(w, a, "name the project")
	}
	m, err := findMerchant(w, a, func(m store.Merchant) bool { return string(m.Project.ID) == id })
	if err == nil && m.Project.ID == "" {
		err = fmt.Errorf("there is no project %q (see: till merchants list)", id)
	}
	return m.Project, err
}

// account is the account of an owner, or that of the key at hand.
func (o *owning) account(w *world, a *checkout.Accounts, email string) (string, error) {
	if email == "" {
		p, err := o.mine(w, a, "give --account, the e-mail address of its owner")
		return p.Account, err
	}
	m, err := findMerchant(w, a, func(m store.Merchant) bool { return strings.EqualFold(m.Account.Email, email) })
	if err == nil && m.Project.ID == "" {
		err = fmt.Errorf("there is no account of %q (see: till merchants list)", email)
	}
	return m.Project.Account, err
}

// findMerchant is the first one that is meant; none is no error.
func findMerchant(w *world, a *checkout.Accounts, is func(store.Merchant) bool) (store.Merchant, error) {
	for after := flow.ProjectID(""); ; {
		some, err := a.Merchants(w.ctx, "", after, merchantsPage)
		if err != nil {
			return store.Merchant{}, err
		}
		for _, m := range some {
			if after = m.Project.ID; is(m) {
				return m, nil
			}
		}
		if len(some) < merchantsPage {
			return store.Merchant{}, nil
		}
	}
}

// aProject is a project as it is listed.
type aProject struct {
	ID        flow.ProjectID  `json:"id"`
	Name      string          `json:"name"`
	KYCStatus flow.KYCStatus  `json:"kycStatus"`
	CreatedAt string          `json:"createdAt"`
	Keys      []api.KeyRecord `json:"keys,omitempty"`
}

func listedProject(p flow.Project) aProject {
	return aProject{ID: p.ID, Name: p.Name, KYCStatus: p.KYC, CreatedAt: flow.Stamp(p.CreatedAt)}
}

// projectsListCmd lists projects.
type projectsListCmd struct {
	owning

	Account string `aliases:"owner" placeholder:"EMAIL" help:"E-mail address of the account's owner; without it, that of the key at hand."`
}

func (projectsListCmd) Help() string {
	return "Example:\n\n    till projects list --account obi@example.com" + besideHelp
}

// Run prints one line for each, newest first.
func (c *projectsListCmd) Run(w *world) error {
	return c.owned(w, func(a *checkout.Accounts) error {
		account, err := c.account(w, a, c.Account)
		if err != nil {
			return err
		}
		list := []aProject{}
		for before, more := flow.ProjectID(""), true; more; {
			var some []flow.Project
			if some, more, err = a.Projects(w.ctx, account, before, merchantsPage); err != nil {
				return err
			}
			for _, p := range some {
				before = p.ID
				list = append(list, listedProject(p))
			}
		}
		if c.JSON {
			return printJSON(w, list)
		}
		return printTable(w, "PROJECT\tKYC\tCREATED\tNAME", list, func(p aProject) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", p.ID, p.KYCStatus, p.CreatedAt, plain(p.Name))
		})
	})
}

// projectsCreateCmd makes a project.
type projectsCreateCmd struct {
	owning

	Name    string `arg:"" help:"What payers read: the shop's name."`
	Account string `aliases:"owner" placeholder:"EMAIL" help:"E-mail address of the account's owner; without it, that of the key at hand."`
}

func (projectsCreateCmd) Help() string {
	return "Example:\n\n    till projects create 'Obi Stores Yaba'" + besideHelp
}

// maxProjectName bounds a shop's name, in bytes.
const maxProjectName = 100

// Run makes it and its test keys, which are shown this once.
func (c *projectsCreateCmd) Run(w *world) error {
	if name := strings.TrimSpace(c.Name); name == "" || len(c.Name) > maxProjectName || plain(c.Name) != c.Name {
		return usageError{fmt.Errorf("a name is one line of 1 to %d characters", maxProjectName)}
	}
	if err := keepable("a name", c.Name); err != nil {
		return err
	}
	return c.owned(w, func(a *checkout.Accounts) error {
		account, err := c.account(w, a, c.Account)
		if err != nil {
			return err
		}
		var shown aProject
		err = audited(w, a, flow.Audited{Account: account, Action: "project.add", Subject: account, Reason: c.Name}, func() error {
			_, err := a.AddProject(w.ctx, account, c.Name, keeping(func(m checkout.Made) {
				shown = listedProject(m.Project)
				for _, k := range m.Pair {
					shown.Keys = append(shown.Keys, api.RecordKey(a, k.Key, k.Text))
				}
			}))
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(w, shown)
		}
		_, err = fmt.Fprintf(w.out, "project     %s\npublic key  %s\nsecret key  %s\n", shown.ID, shown.Keys[0].Key, shown.Keys[1].Key)
		_, also := fmt.Fprintln(w.err, "till: the secret key is shown this once")
		return errors.Join(err, also)
	})
}

// keeping is a call whose answer nobody sends: what was made is taken as it is.
func keeping(take func(checkout.Made)) checkout.Call {
	return checkout.Call{Render: func(m checkout.Made) (int, []byte, error) {
		take(m)
		return 0, nil, nil
	}}
}
