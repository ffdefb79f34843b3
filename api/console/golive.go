package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"till/flow"
	"till/rail"
)

// milestoneRow is one line of the checklist.
type milestoneRow struct {
	flow.Met

	Done    bool
	Title   string
	Text    string
	Command string // that shows it, "" where none does
	Says    bool   // Till cannot see it: somebody says so
}

// goLiveView is what the page about going live is given.
type goLiveView struct {
	Milestones []milestoneRow
	Ready      int // of them
	KYC        flow.KYCStatus
	History    []flow.KYCMove
	Form       kycForm
	Account    *flow.SettlementAccount
	BankName   string
	Banks      []flow.Bank
	Bank       string // as it was chosen
	Number     string
	AccWrong   []string
	LiveKeys   bool // there is a live secret key
	Own        bool
}

// kycForm is what is typed about a business.
type kycForm struct {
	LegalName, RegistrationNumber, Address, ContactName, ContactPhone, Website string

	Wrong []string
}

// May says whether there is anything to submit now.
func (g goLiveView) May() bool { return g.KYC == flow.KYCNone || g.KYC == flow.KYCRejected }

// goLivePage is GET /go-live.
func (c *Console) goLivePage(v *visit) error { return c.showGoLive(v, goLiveView{}) }

func (c *Console) showGoLive(v *visit, out goLiveView) error {
	if err := v.here(); err != nil {
		return err
	}
	out.Own = v.who.Role.May(flow.MayOwn)
	met, err := c.cfg.Accounts.Milestones(v.ctx, v.project.ID, c.cfg.Services[flow.Test])
	if err != nil {
		return err
	}
	out.Milestones = c.checklist(met)
	out.Ready = len(met)
	if out.History, err = c.cfg.Accounts.KYC(v.ctx, v.project.ID); err != nil {
		return err
	}
	out.KYC = flow.KYCNone
	if n := len(out.History); n > 0 {
		out.KYC = out.History[n-1].To
	}
	if out.KYC == flow.KYCRejected && len(out.Form.Wrong) == 0 {
		out.Form = handedIn(out.History)
	}
	to, found, err := c.cfg.Accounts.SettlementAccount(v.ctx, v.project.ID, v.env)
	if err != nil {
		return err
	}
	if found {
		bank, _ := rail.BankByCode(to.BankCode)
		out.Account, out.BankName = &to, bank.Name
	}
	out.Banks = rail.Banks()
	if v.env == flow.Test {
		out.Banks = append([]flow.Bank{rail.TestInstitution()}, out.Banks...)
	}
	if _, out.LiveKeys, err = c.cfg.Accounts.WorkingKey(v.ctx, v.project.ID, flow.Live, flow.SecretKey); err != nil {
		return err
	}
	return v.show("golive", "Go live", out)
}

// handedIn is the form as it was handed in last: an operator looks at what is in the next
// one alone.
func handedIn(history []flow.KYCMove) kycForm {
	for _, k := range slices.Backward(history) {
		if d := k.Details; k.To == flow.KYCSubmitted {
			form := kycForm{LegalName: d.LegalName, RegistrationNumber: d.RegistrationNumber, Address: d.Address, ContactName: d.ContactName, Website: d.Website}
			if d.ContactPhone != "" {
				form.ContactPhone = "+" + string(d.ContactPhone)
			}
			return form
		}
	}
	return kycForm{}
}

// checklist is what is to be seen before a project goes live, in words.
func (c *Console) checklist(met map[flow.Milestone]flow.Met) []milestoneRow {
	out := []milestoneRow{
		{
			Met: flow.Met{Milestone: flow.MilestoneKey}, Title: "Your server calls Till with its secret key",
			Text: "Ticks with the first call that a test key made; that may take a minute to show.", Command: c.firstRequest("$TILL_SECRET_KEY"),
		},
		{
			Met: flow.Met{Milestone: flow.MilestoneWebhook}, Title: "Your endpoint took an event of money",
			Text: "Ticks when it answers a charge.success, underpaid, late or duplicate event with a 2xx. Have one really happen:", Command: "bin/till trigger charge.success",
		},
		{
			Met: flow.Met{Milestone: flow.MilestoneOnce}, Title: "Your calls carry an Idempotency-Key",
			Text: "A call that was cut off can then be sent again without asking for money twice. Till remembers keys for a day: open this page within that.",
		},
		{
			Met: flow.Met{Milestone: flow.MilestoneEnded}, Title: "Your endpoint took the end of a charge that nobody paid",
			Text: "Ticks when it answers an expired or cancelled event with a 2xx: of a charge, or of a session where the endpoint names those kinds. Give the goods back to the shelf then; a charge.success may still follow, of money of the last minutes.", Command: "bin/till trigger charge.expired",
		},
		{
			Met: flow.Met{Milestone: flow.MilestoneForged}, Title: "Your endpoint refuses a signature that does not hold",
			Text: "Till sends no forged deliveries, so that it cannot see this. Post a body of your own to your endpoint, and tick this when it answers 4xx.", Says: true,
			Command: "curl -i -X POST \"$YOUR_ENDPOINT\" -H 'webhook-id: evt_forged' -H \"webhook-timestamp: $(date +%s)\" -H 'webhook-signature: v1,bm9wZQ==' -d '{}'",
		},
	}
	for i := range out {
		if m, there := met[out[i].Milestone]; there {
			out[i].Met, out[i].Done = m, true
		}
	}
	return out
}

// sayMet is POST /go-live/said: what Till cannot see.
func (c *Console) sayMet(v *visit) error {
	if err := v.here(); err != nil {
		return err
	}
	m := flow.Milestone(v.field("milestone"))
	if err := v.audit("milestone.said", string(v.project.ID), string(m[:min(len(m), maxTypedName)]), false); err != nil {
		return err
	}
	if err := c.cfg.Accounts.SayMet(v.ctx, v.project.ID, m, v.who.Email); err != nil {
		return err
	}
	return v.to("/go-live", "Ticked, with your name.")
}

// submitKYC is POST /go-live/kyc.
func (c *Console) submitKYC(v *visit) error {
	t := v.typing()
	d := flow.KYCDetails{
		LegalName:          t.text("legalName", "The legal name", 0, maxTypedNote, false),
		RegistrationNumber: t.text("registrationNumber", "The registration number", 0, maxTypedName, false),
		Address:            t.text("address", "The address", 0, maxTypedNote, true),
		ContactName:        t.text("contactName", "The name of whom to ask", 0, maxTypedName, false),
		ContactPhone:       t.phone("contactPhone", "Their phone"),
		Website:            t.text("website", "The website", 0, maxTypedURL, false),
	}
	if !t.ok() {
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return c.showGoLive(v, goLiveView{Form: kycForm{
			v.field("legalName"), v.field("registrationNumber"), v.field("address"), v.field("contactName"), v.field("contactPhone"), v.field("website"), t.Wrong,
		}})
	}
	if err := v.here(); err != nil {
		return err
	}
	if err := v.audit("kyc.submit", string(v.project.ID), "", false); err != nil {
		return err
	}
	if _, err := c.cfg.Accounts.SubmitKYC(v.ctx, v.project.ID, d, v.plainly(v.project.ID)); err != nil {
		return err
	}
	return v.to("/go-live", "Handed in. An operator looks at it; this page shows what they decide.")
}

// setPayee is POST /go-live/account: where the project is paid out to in the
// environment that is looked at. Its bank says whose the account is.
func (c *Console) setPayee(v *visit) error {
	if err := v.here(); err != nil {
		return err
	}
	t := v.typing()
	number, code := v.field("number"), v.field("bank")
	bank, known := rail.BankByCode(code)
	if !known || bank.Code == rail.TestBankCode && v.env != flow.Test {
		t.fail("Choose a bank.")
	}
	const accountDigits = 10
	if len(number) != accountDigits || strings.Trim(number, "0123456789") != "" {
		t.fail("An account number has ten digits.")
	}
	again := func(wrong ...string) error {
		return c.showGoLive(v, goLiveView{AccWrong: wrong, Bank: code, Number: number})
	}
	if !t.ok() {
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return again(t.Wrong...)
	}
	if err := v.audit("payee.set", string(v.project.ID), rail.Account{Number: number, BankCode: code}.Told(), false); err != nil {
		return err
	}
	verifications := c.cfg.Verifications[v.env]
	if verifications == nil {
		return flow.NotServed("Nobody can be asked whose an account is in the " + string(v.env) + " environment of this server.")
	}
	name, err := verifications.ResolveAccount(v.ctx, rail.Account{Number: number, BankCode: code})
	if flow.CodeOf(err) == flow.CodeAccountNotResolved {
		const wrong = "The bank knows no such account. Check the number and the bank."
		v.refusesFor(http.StatusBadRequest, flow.Refuse(flow.CodeAccountNotResolved, wrong))
		return again(wrong)
	}
	if errors.Is(err, rail.ErrUnavailable) || errors.Is(err, rail.ErrUnknown) {
		down := &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank cannot be asked right now whose the account is. Nothing was changed. Try again.", Err: err}
		v.http.Status(v.refused(down))
		return again(down.Message)
	}
	if err != nil {
		return err
	}
	if _, err := c.cfg.Accounts.SetSettlementAccount(v.ctx, v.project.ID, v.env, flow.BankAccount{BankCode: code, Number: number, Name: name}); err != nil {
		return err
	}
	return v.to("/go-live", "Payouts go to "+name+" at "+bank.Name+" from now on.")
}
