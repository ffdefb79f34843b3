package console

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"till/flow"
	"till/flow/checkout"
)

// maxFields bounds a form.
const maxFields = 64

// visit is one request for a page, by somebody or nobody.
type visit struct {
	http     *fiber.Ctx
	ctx      context.Context //nolint:containedctx // lives as long as the request it belongs to
	console  *Console
	text     string         // of the cookie
	who      flow.Visit     // zero for nobody
	project  flow.Project   // zero where an operator looks at all of them
	projects []flow.Project // that can be chosen
	env      flow.Environment
	service  *checkout.Service
	form     url.Values   // of a POST
	undone   []string     // what a person wrote in a form that was not done
	kept     flow.Audited // the last that is kept as done in this visit; zero for nothing
}

// begin finds out who asks, for which project and environment, and whether they
// may; and judges a POST's form.
func (v *visit) begin(p Page) error {
	if err := v.recognise(); err != nil {
		return err
	}
	if p.Right != "" {
		if v.who.Role == "" {
			return errLogin
		}
		if !v.who.Role.May(p.Right) {
			return flow.Refuse(codeNotAllowed, "This is not open to the role %s. Ask the owner of the account.", v.who.Role)
		}
	}
	if p.Method != http.MethodPost || p.machine {
		return nil
	}
	err := v.readForm()
	if err != nil && p.Right == "" { // the cookie that the form was for is another one now
		switch {
		case v.who.Role != "":
			return errEntered
		case v.form != nil && v.ownPage():
			return errOutlived
		}
	}
	if err == nil {
		err = v.counted()
	}
	if err == nil && p.Right != "" && !p.anywhere {
		err = v.stayed()
	}
	return err
}

// recognise reads the cookie, and finds project and environment.
func (v *visit) recognise() error {
	v.env = flow.Test
	v.text = v.http.Cookies(v.cookie(visitCookie))
	if v.text != "" {
		who, err := v.console.cfg.Accounts.Visit(v.ctx, v.text)
		if err != nil && !stranger(err) {
			return err
		}
		v.who = who
	}
	if v.who.Role == "" {
		return nil
	}
	return v.choose()
}

// stranger says of an error that a cookie stands for nobody, or nobody any more.
func stranger(err error) bool {
	code := flow.CodeOf(err)
	return code == flow.CodeInvalidKey || code == flow.CodeExpiredKey || code == flow.CodeRevokedKey
}

// choose finds the project and the environment that were last chosen. What is
// not theirs counts as not chosen.
func (v *visit) choose() error {
	chosen, env, _ := strings.Cut(v.http.Cookies(v.cookie(chosenCookie)), ".")
	if _, open := v.console.cfg.Services[flow.Live]; open && flow.Environment(env) == flow.Live {
		v.env = flow.Live
	}
	service, open := v.console.cfg.Services[v.env]
	if !open {
		return flow.Refuse(flow.CodeKYCRequired, "The %s environment is not open on this server.", v.env)
	}
	v.service = service
	if v.who.Role == flow.RoleOperator {
		list, err := v.console.cfg.Accounts.Merchants(v.ctx, "", "", flow.MaxProjects)
		for _, m := range list {
			v.projects = append(v.projects, m.Project)
		}
		if err != nil {
			return err
		}
	} else {
		var err error
		if v.projects, _, err = v.console.cfg.Accounts.Projects(v.ctx, v.who.Account, "", flow.MaxProjects); err != nil {
			return err
		}
		if len(v.projects) == 0 { // no project at all is what only operators look at: all of them
			return flow.Refuse(flow.CodeNotFound, "This account has no project.")
		}
		v.project = v.projects[0]
	}
	if i := slices.IndexFunc(v.projects, func(p flow.Project) bool { return string(p.ID) == chosen }); i >= 0 {
		v.project = v.projects[i]
	} else if v.who.Role == flow.RoleOperator && chosen != "" { // there are more than a menu lists
		m, err := v.console.cfg.Accounts.Merchant(v.ctx, flow.ProjectID(chosen))
		if err != nil && flow.CodeOf(err) != flow.CodeNotFound {
			return err
		}
		if err == nil {
			v.project, v.projects = m.Project, append(v.projects, m.Project)
		}
	}
	return nil
}

// csrf is what a form of this visitor holds: nobody else's page can know its first
// half. The second is what the page was of, in which the form is meant.
func (v *visit) csrf() string { return v.secret() + "." + v.place() }

func (v *visit) secret() string {
	mac := hmac.New(sha256.New, []byte(v.text))
	_, _ = mac.Write([]byte("a form of the console"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// place is the project and the environment that are looked at.
func (v *visit) place() string { return string(v.project.ID) + "." + string(v.env) }

// stayed refuses a form of a page that was of another project or environment: all
// pages of a browser share one choice, and who chose anew on one of them would
// have set, on the other, where the wrong project is paid out to.
func (v *visit) stayed() error {
	_, of, _ := strings.Cut(v.form.Get("csrf"), ".")
	if of == v.place() {
		return nil
	}
	id, env, _ := strings.Cut(of, ".")
	return flow.Refuse(codeNotAllowed, "Nothing was done: the page with this form was of %s (%s), and you look at %s (%s) by now. Look there again first, or load the page anew.",
		v.named(flow.ProjectID(id)), env, v.named(v.project.ID), v.env)
}

// named is what people call a project that can be chosen.
func (v *visit) named(id flow.ProjectID) string {
	if id == "" {
		return "all projects"
	}
	return v.projectName(id)
}

// greet gives somebody who is not known a cookie, so that the form to log in has
// something that another site's cannot have.
func (v *visit) greet() {
	if v.text != "" && v.who.Role == "" && strings.HasPrefix(v.text, "form_") {
		return
	}
	v.text = "form_" + rand.Text()
	v.setCookie(visitCookie, v.text, 0)
}

// readForm reads a POST's fields. One that another site's page sent is refused.
func (v *visit) readForm() error {
	foreign := flow.Refuse(codeNotAllowed, "This form is not of this visit. Load the page again, and send it from there.")
	if site := v.http.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return foreign
	}
	if kind, _, _ := strings.Cut(v.http.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return flow.Refuse(flow.CodeMediaType, "Forms are sent as application/x-www-form-urlencoded.")
	}
	if bytes.Count(v.http.Body(), []byte("&")) >= maxFields {
		return flow.Refuse(flow.CodeTooLarge, "The form has more than %d fields.", maxFields)
	}
	form, err := url.ParseQuery(string(v.http.Body()))
	if err != nil || !isText(form) {
		return flow.Refuse(flow.CodeInvalidField, "The form cannot be read.")
	}
	if err := keepable(form); err != nil {
		return err
	}
	v.form = form
	secret, _, _ := strings.Cut(form.Get("csrf"), ".")
	if v.text == "" || !hmac.Equal([]byte(secret), []byte(v.secret())) {
		return foreign
	}
	return nil
}

// looksOnly says that no form was sent.
func (v *visit) looksOnly() bool {
	return v.http.Method() == http.MethodGet || v.bodiless()
}

// bodiless says that what would be answered is asked for, and not the answer itself.
func (v *visit) bodiless() bool { return v.http.Method() == http.MethodHead }

// keepable refuses a form that holds what may not be kept anywhere. Passwords are
// kept nowhere, and the pretend bank's page wants a pretend card.
func keepable(form url.Values) error {
	for name, values := range form {
		if strings.Contains(name, "password") || name == "csrf" {
			continue
		}
		for _, s := range values {
			if err := flow.MayKeep("The form", name, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// isText says whether a form holds text alone: no database keeps anything else.
func isText(form url.Values) bool {
	for name, values := range form {
		for _, s := range append(values, name) {
			if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				return false
			}
		}
	}
	return true
}

// field is one field of the form, without white space around it. A new line is one
// character, as the page counts it, and not the two that a browser sends for it.
func (v *visit) field(name string) string {
	return strings.ReplaceAll(strings.TrimSpace(v.form.Get(name)), "\r\n", "\n")
}

// query is one value behind the question mark, at most 200 bytes of it.
func (v *visit) query(name string) string {
	s := strings.TrimSpace(v.http.Query(name))
	return flow.OneLine(s[:min(len(s), 200)])
}

// act is something that the visitor does, in a project, as it is kept.
func (v *visit) act(project flow.ProjectID, action, subject string) flow.Audited {
	return flow.Audited{
		Actor: v.who.Email, Role: v.who.Role, Account: v.who.Account, Project: project, Environment: v.env, Action: action, Subject: subject,
	}
}

// audit keeps what the visitor is about to do. reasoned refuses one who does not
// say why.
func (v *visit) audit(action, subject, reason string, reasoned bool) error {
	return v.auditIn(v.project.ID, action, subject, reason, reasoned)
}

// auditIn is audit for what is done in a project, whatever the visitor looks at. Who
// asks for no body takes nothing, and a form that did already what it says does nothing.
func (v *visit) auditIn(project flow.ProjectID, action, subject, reason string, reasoned bool) error {
	if v.bodiless() {
		return nil
	}
	form := v.plainly(project)
	again, err := v.service.Answered(v.ctx, form)
	if err == nil && !again { // what is done about keys and projects is kept with the accounts
		again, err = v.console.cfg.Accounts.Answered(v.ctx, form)
	}
	if again || err != nil {
		return err
	}
	row := v.act(project, action, subject)
	row.Reason = reason
	if err = v.console.cfg.Accounts.Audit(v.ctx, row, reasoned); err == nil {
		v.kept = row
	}
	return err
}

// looks keeps that the visitor sees what is kept of a payer. Where that cannot be
// kept the page is shown all the same, or support would be blind when the disk is
// full; the log has it then.
func (v *visit) looks(action string, project flow.ProjectID, subject string) {
	if err := v.console.cfg.Accounts.Saw(v.ctx, v.act(project, action, subject)); err != nil {
		v.console.cfg.Log.LogAttrs(v.ctx, slog.LevelError, "it is not kept who looked", slog.String("person", v.who.Person), slog.String("action", action),
			slog.String("subject", subject), slog.String("error", err.Error()))
	}
}

// to sends the browser on, with words to show there.
func (v *visit) to(address, words string) error {
	if words != "" {
		v.setCookie(saidCookie, base64.RawURLEncoding.EncodeToString([]byte(words)), 30)
	}
	return v.http.Redirect(address, http.StatusSeeOther)
}

func (v *visit) said() string {
	raw, err := base64.RawURLEncoding.DecodeString(v.http.Cookies(v.cookie(saidCookie)))
	if err != nil || len(raw) == 0 {
		return ""
	}
	v.setCookie(saidCookie, "", -1)
	return string(raw[:min(len(raw), 500)])
}

// view is what every page is given.
type view struct {
	Title    string
	Here     string // the page's template, for the menu
	Who      flow.Visit
	Env      flow.Environment
	Project  flow.Project
	Projects []flow.Project
	CSRF     string
	Said     string
	Undone   []string // see visit
	Request  string
	Path     string
	Demo     bool   // a pretend world, on this machine
	Once     string // makes what this page's forms order happen once
	Data     any
}

// May says whether whoever looks has a right.
func (v view) May(what string) bool { return v.Who.Role.May(flow.Right(what)) }

// page is a page's template, by the clock of the environment that is looked at.
func (v *visit) page(name string) (*template.Template, error) {
	of := v.env
	if v.service == nil {
		of = "" // nobody is logged in
	}
	return v.console.pages[of].page(name)
}

// show answers with a page.
func (v *visit) show(name, title string, data any) error {
	page, err := v.page(name)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, "layout", view{
		Title: title, Here: name, Who: v.who, Env: v.env, Project: v.project, Projects: v.projects, CSRF: v.csrf(), Said: v.said(), Undone: v.undone,
		Request: v.console.cfg.Request(v.http), Path: v.http.OriginalURL(), Demo: v.console.cfg.Demo != "" && v.console.cfg.Near(v.http), Once: rand.Text(), Data: data,
	}); err != nil {
		return fmt.Errorf("write the page %s: %w", name, err)
	}
	v.http.Set("Content-Type", "text/html; charset=utf-8")
	return v.http.Send(seen(out.Bytes()))
}

// part answers with one template of a page alone: what a live part of it shows
// now.
func (v *visit) part(page, name string, data any) ([]byte, error) {
	var out bytes.Buffer
	p, err := v.page(page)
	if err != nil {
		return nil, err
	}
	if err := p.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("write a part of the page %s: %w", page, err)
	}
	return seen(out.Bytes()), nil
}

// seen is a page without what nobody sees: payers, banks and merchants choose
// names, and none of them turns round what stands beside it.
func seen(page []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if flow.Unseen(r) {
			return -1
		}
		return r
	}, page)
}
