package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"till/flow"
)

// settingsPages are what an owner sets for all sessions of a project.
func settingsPages() []Page {
	return []Page{
		{Method: http.MethodGet, Path: "/settings", Right: flow.MayOwn, do: (*Console).settings},
		{Method: http.MethodPost, Path: "/settings", Right: flow.MayOwn, do: (*Console).saveSettings},
	}
}

// choice is one value that a setting can have.
type choice struct {
	Value, Words string
}

// choices are the values of a setting, the first as Till has it.
func choices(values []string, words map[string]string) []choice {
	out := make([]choice, 0, len(values))
	for _, v := range values {
		out = append(out, choice{v, words[v]})
	}
	return out
}

// settingsView is what the settings' page is given.
type settingsView struct {
	Is       flow.Settings
	Policy   flow.Policy
	Minutes  string // as it was typed
	Name     string // of the project
	Preview  string
	Previews bool   // what is shown is not kept
	Seen     string // the revision that is changed
	Wrong    []string
	Base     string

	Under, Over, Late, Langs []choice
}

// settings is GET /settings.
func (c *Console) settings(v *visit) error {
	return c.showSettings(v, v.project, settingsView{Minutes: strconv.FormatInt(v.project.Settings.Minutes(), 10), Seen: v.project.Settings.Revision()})
}

func (c *Console) showSettings(v *visit, p flow.Project, out settingsView) error {
	out.Is, out.Policy, out.Name, out.Base = p.Settings, p.Settings.Policy(), v.project.Name, c.cfg.PublicURL
	if len(out.Wrong) == 0 {
		out.Preview = v.service.Greeting(p)
	}
	out.Under = choices(flow.Underpayments, map[string]string{
		"hold": "Hold it and wait for the rest", "accept": "Accept it as paid", "refund": "Send it back, and ask for all of it",
	})
	out.Over = choices(flow.Overpayments, map[string]string{"accept": "Accept it; what is too much waits for you", "refund_excess": "Send back what is too much"})
	out.Late = choices(flow.LatePayments, map[string]string{
		"review": "Set it aside for you to decide; after 24 hours it goes back", "accept": "Accept it as paid; too little waits for you, unless that is accepted or sent back", "refund": "Send it back",
	})
	for _, l := range flow.Langs() {
		out.Langs = append(out.Langs, choice{string(l), languages[l]})
	}
	return v.show("settings", "Settings", out)
}

// languages are the names of the languages.
var languages = map[flow.Lang]string{
	flow.English: "English", flow.Pidgin: "Nigerian Pidgin", flow.Hausa: "Hausa", flow.Yoruba: "Yoruba", flow.Igbo: "Igbo",
}

// saveSettings is POST /settings: it keeps them, or only shows what payers would
// read.
func (c *Console) saveSettings(v *visit) error {
	set := flow.Settings{
		DisplayName: v.field("displayName"), Brand: v.field("brand"), Lang: flow.Lang(v.field("lang")),
		Underpayment: v.field("underpayment"), Overpayment: v.field("overpayment"), LatePayment: v.field("latePayment"),
	}
	if set.Lang == flow.English { // which is what a chat speaks anyhow
		set.Lang = ""
	}
	form := settingsView{Minutes: v.field("minutes"), Seen: v.field("seen"), Previews: true}
	if form.Minutes != "" {
		n, err := strconv.ParseInt(form.Minutes, 10, 32)
		if err != nil || n == 0 {
			n = -1 // no number of minutes at all
		}
		set.SessionMinutes = n
	}
	p := v.project
	p.Settings = set
	if form.Wrong = set.Check(); len(form.Wrong) > 0 {
		v.refuses(http.StatusUnprocessableEntity, flow.CodeInvalidField)
		return c.showSettings(v, p, form)
	}
	if v.field("do") == "preview" {
		return c.showSettings(v, p, form)
	}
	if form.Seen != v.project.Settings.Revision() { // else what is not done would be kept as done
		return c.changedMeanwhile(v, p, form)
	}
	changed := changes(v.project.Settings, set)
	if len(changed) == 0 {
		return v.to("/settings", "Nothing was changed.")
	}
	if err := v.audit("settings.change", string(v.project.ID), strings.Join(changed, "; "), false); err != nil {
		return err
	}
	err := c.cfg.Accounts.Set(v.ctx, v.who.Account, v.project.ID, form.Seen, set)
	if errors.Is(err, flow.ErrSettings) {
		return c.changedMeanwhile(v, p, form)
	}
	if err != nil {
		return err
	}
	return v.to("/settings", "The settings are kept. They hold for sessions that are opened from now on.")
}

// changedMeanwhile shows what somebody typed beside what somebody else, or they
// themselves in another window, kept since the page was opened. Who keeps it then does
// so knowingly.
func (c *Console) changedMeanwhile(v *visit, typed flow.Project, form settingsView) error {
	is, err := c.cfg.Accounts.Project(v.ctx, v.who.Account, v.project.ID)
	if err != nil {
		return err
	}
	changed := changes(is.Settings, typed.Settings)
	if len(changed) == 0 {
		return v.to("/settings", "The settings are kept already as you typed them.")
	}
	form.Seen, form.Preview = is.Settings.Revision(), v.service.Greeting(typed)
	const wrong = "Nothing was kept: the settings were changed after you opened this page."
	form.Wrong = []string{wrong + " What you would change now: " + strings.Join(changed, "; ") + ". Keep it if you mean that."}
	v.refusesFor(http.StatusConflict, flow.Refuse(codeChanged, wrong))
	return c.showSettings(v, typed, form)
}

// changes tells what is set otherwise, as the audit log keeps it.
func changes(from, to flow.Settings) []string {
	was, is := from.Policy(), to.Policy()
	var out []string
	for _, one := range []struct{ name, from, to string }{
		{"name", from.DisplayName, to.DisplayName},
		{"words", from.Brand, to.Brand},
		{"language", string(from.Lang), string(to.Lang)},
		{"underpayment", was.Underpayment, is.Underpayment},
		{"overpayment", was.Overpayment, is.Overpayment},
		{"latePayment", was.LatePayment, is.LatePayment},
		{"minutes", strconv.FormatInt(from.Minutes(), 10), strconv.FormatInt(to.Minutes(), 10)},
	} {
		if one.from != one.to {
			out = append(out, fmt.Sprintf("%s: %q, was %q", one.name, one.to, one.from))
		}
	}
	return out
}
