package console

import (
	"errors"
	"net/http"
	"slices"

	"till/flow"
	"till/flow/store"
)

// merchantsShown is how many projects a page lists.
const merchantsShown = 50

// merchantsView is what the list of projects is given.
type merchantsView struct {
	Status   flow.KYCStatus // "" for all
	Statuses []flow.KYCStatus
	List     []store.Merchant
	Stopped  []string       // ids of projects
	Next     flow.ProjectID // of the next page, "" for none
}

// Stops says whether an operator stopped a project in the environment that is looked at.
func (m merchantsView) Stops(id flow.ProjectID) bool { return slices.Contains(m.Stopped, string(id)) }

// merchants is GET /ops/merchants: first those that wait for a ruling.
func (c *Console) merchants(v *visit) error {
	out := merchantsView{Status: flow.KYCStatus(v.query("status")), Statuses: flow.KYCStatuses()}
	if v.query("status") == "" {
		out.Status = flow.KYCSubmitted
	}
	if !slices.Contains(out.Statuses, out.Status) {
		out.Status = ""
	}
	var err error
	if out.List, err = c.cfg.Accounts.Merchants(v.ctx, out.Status, flow.ProjectID(v.query("after")), merchantsShown+1); err != nil {
		return err
	}
	if len(out.List) > merchantsShown {
		out.List = out.List[:merchantsShown]
		out.Next = out.List[merchantsShown-1].Project.ID
	}
	if board := c.cfg.Boards[v.env]; board != nil {
		out.Stopped = board.StoppedProjects()
	}
	return v.show("merchants", "Merchants", out)
}

// merchantView is what the page of one project is given.
type merchantView struct {
	store.Merchant

	KYC     []flow.KYCMove // newest first
	Handed  flow.KYCDetails
	Stopped bool
	Stop    *flow.SwitchMove // the last move of that switch, nil where it is long ago
	Rulings []rulingView
	Audits  []flow.Audited
	typed
}

// rulingView is what an operator may decide about a project now.
type rulingView struct {
	Ruling flow.Ruling
	Words  string // of the button
	Sure   string // what is asked before, "" for nothing
}

// rulings are what may be decided in a state, by the table of the rules.
func rulings(p flow.Project) []rulingView {
	var out []rulingView
	for _, r := range []rulingView{
		{flow.Approve, "Approve", ""},
		{flow.Reject, "Reject", ""},
		{flow.Suspend, "Suspend", "Suspend this project? Its live keys are refused at once."},
	} {
		if _, err := flow.DecideKYC(p, r.Ruling, "", p.CreatedAt); err == nil {
			out = append(out, r)
		}
	}
	return out
}

// merchant is GET /ops/merchants/{id}.
func (c *Console) merchant(v *visit) error { return c.showMerchant(v, typed{}) }

// auditsShown is how many acts about one project are shown, and stopsRead how many
// moves of switches are looked through for who stopped it.
const (
	auditsShown = 20
	stopsRead   = 200
)

func (c *Console) showMerchant(v *visit, t typed) error {
	id := flow.ProjectID(v.http.Params("id"))
	m, err := c.cfg.Accounts.Merchant(v.ctx, id)
	if err != nil {
		return err
	}
	out := merchantView{Merchant: m, Rulings: rulings(m.Project), typed: t}
	if out.KYC, err = c.cfg.Accounts.KYC(v.ctx, id); err != nil {
		return err
	}
	slices.Reverse(out.KYC)
	for _, k := range out.KYC {
		if k.To == flow.KYCSubmitted {
			out.Handed = k.Details
			break
		}
	}
	if board := c.cfg.Boards[v.env]; board != nil {
		out.Stopped = board.Stopped(id)
		moves, err := board.Moves(v.ctx, stopsRead)
		if err != nil {
			return err
		}
		for _, m := range moves { // oldest first
			if m.Kind == flow.SwitchMerchant && m.Name == string(id) {
				out.Stop = &m
			}
		}
	}
	if out.Audits, _, err = c.cfg.Accounts.Audits(v.ctx, store.AuditFilter{Subject: string(id), Limit: auditsShown}); err != nil {
		return err
	}
	return v.show("merchant", m.Project.Name, out)
}

// ruleMerchant is POST /ops/merchants/{id}/kyc.
func (c *Console) ruleMerchant(v *visit) error {
	m, err := c.cfg.Accounts.Merchant(v.ctx, flow.ProjectID(v.http.Params("id")))
	if err != nil {
		return err
	}
	ruling := flow.Ruling(v.field("ruling"))
	if !slices.Contains([]flow.Ruling{flow.Approve, flow.Reject, flow.Suspend}, ruling) {
		return flow.Refuse(flow.CodeInvalidField, "A project is approved, rejected or suspended.")
	}
	return c.act(v, act{"kyc", "kyc." + string(ruling), string(m.Project.ID), ruling == flow.Suspend}, func(reason string) error {
		moves, err := c.cfg.Accounts.RuleKYC(v.ctx, m.Project.ID, ruling, reason)
		if illegal, ok := errors.AsType[*flow.IllegalMove](err); ok {
			return flow.Refuse(flow.CodeInvalidField, "This project cannot be told to %s: its KYC is %s by now.", illegal.Trigger, illegal.From)
		}
		if err != nil {
			return err
		}
		return v.to("/ops/merchants/"+string(m.Project.ID), m.Project.Name+" is "+plain(moves[len(moves)-1].To)+" now.")
	}, func(t typed) error { return c.showMerchant(v, t) })
}

// switchMerchant is POST /ops/merchants/{id}/switch: it stops a project in the
// environment that is looked at, or lets it go on.
func (c *Console) switchMerchant(v *visit) error {
	m, err := c.cfg.Accounts.Merchant(v.ctx, flow.ProjectID(v.http.Params("id")))
	if err != nil {
		return err
	}
	board := c.cfg.Boards[v.env]
	if board == nil {
		return flow.Refuse(flow.CodeNotFound, "There are no switches in the %s environment.", v.env)
	}
	to, action, done := flow.MerchantStopped, "merchant.stop", "gets no new sessions, charges or instructions, and is paid nothing out. Money that comes is kept."
	if v.field("to") == "go" {
		to, action, done = "", "merchant.go", "goes on."
	}
	return c.act(v, act{"switch", action, string(m.Project.ID), to != ""}, func(reason string) error {
		if _, err := board.Move(v.ctx, flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(m.Project.ID), To: to, Reason: reason, By: v.who.Email}); err != nil {
			return err
		}
		return v.to("/ops/merchants/"+string(m.Project.ID), m.Project.Name+" "+done)
	}, func(t typed) error { return c.showMerchant(v, t) })
}

// operatorsView is what the page of operators is given.
type operatorsView struct {
	People []flow.Person
	Email  string // as it was typed
	Me     string
	// Added and Password are who was just added, and what they log in with.
	Added, Password string
	typed
}

// operators is GET /ops/people.
func (c *Console) operators(v *visit) error { return c.showOperators(v, "", typed{}) }

func (c *Console) showOperators(v *visit, email string, t typed) error {
	list, err := c.cfg.Accounts.People(v.ctx, "")
	if err != nil {
		return err
	}
	return v.show("operators", "Operators", operatorsView{People: list, Email: email, Me: v.who.Person, typed: t})
}

// addOperator is POST /ops/people: their password is shown once.
func (c *Console) addOperator(v *visit) error {
	email := flow.FoldEmail(v.field("email"))
	again := func(t typed) error { return c.showOperators(v, email, t) }
	if !c.cfg.Typed.Email(email) {
		v.refuses(http.StatusUnprocessableEntity, flow.CodeInvalidEmail)
		return again(typed{Form: "add", Reason: v.reason(), Wrong: []string{"This is not an e-mail address."}})
	}
	return c.act(v, act{"add", "operator.add", email, false}, func(string) error {
		password := oneTime()
		if _, err := c.cfg.Accounts.AddPerson(v.ctx, "", email, password, flow.RoleOperator, c.cfg.Address(v.http)); err != nil {
			return err
		}
		list, err := c.cfg.Accounts.People(v.ctx, "")
		if err != nil {
			return err
		}
		return v.show("operators", "Operators", operatorsView{People: list, Me: v.who.Person, Added: email, Password: password})
	}, again)
}

// endOperator is POST /ops/people/{id}/end.
func (c *Console) endOperator(v *visit) error {
	id := v.http.Params("id")
	list, err := c.cfg.Accounts.People(v.ctx, "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(p flow.Person) bool { return p.ID == id })
	if i < 0 {
		return flow.Refuse(flow.CodeNotFound, "There is no such operator.")
	}
	if id == v.who.Person {
		return flow.Refuse(codeNotAllowed, "Nobody shuts themselves out. Ask another operator.")
	}
	return c.act(v, act{id, "operator.end", list[i].Email, true}, func(string) error {
		if err := c.shutOut(v.ctx, list[i]); err != nil {
			return err
		}
		return v.to("/ops/people", list[i].Email+" is shut out. Whatever they had open ended with it; the bot has their chats again.")
	}, func(t typed) error { return c.showOperators(v, "", t) })
}
