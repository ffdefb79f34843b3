package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"till/flow"
	"till/flow/checkout"
)

// entryPages are how people come in, choose what they look at, and leave.
func entryPages() []Page {
	get, post := http.MethodGet, http.MethodPost
	return []Page{
		{Method: get, Path: "/login", do: (*Console).loginPage},
		{Method: post, Path: "/login", do: (*Console).login},
		{Method: post, Path: "/enter", do: (*Console).enter},
		{Method: post, Path: "/logout", Right: flow.MayRead, anywhere: true, do: (*Console).logout},
		{Method: get, Path: "/password", Right: flow.MayRead, do: (*Console).passwordPage},
		{Method: post, Path: "/password", Right: flow.MayRead, anywhere: true, do: (*Console).changePassword},
		{Method: post, Path: "/choose", Right: flow.MayRead, anywhere: true, do: (*Console).choose},
		{Method: get, Path: "/", Right: flow.MayRead, do: (*Console).overview},
		{Method: get, Path: "/console/:file", do: (*Console).asset},
	}
}

// toLogin sends somebody who must log in to where they can. A form whose login ended
// meanwhile leads to the page that it was on, and what was written in it is shown:
// nobody is to write it again.
func (c *Console) toLogin(v *visit) error {
	next := ""
	switch from, err := url.Parse(v.http.Get("Referer")); {
	case v.looksOnly():
		next = v.http.OriginalURL()
	case v.ownPage() && err == nil:
		next = from.RequestURI()
		if v.keepsWords(); len(v.undone) > 0 {
			v.refuses(http.StatusUnauthorized, flow.CodeExpiredKey)
			return c.askLogin(v, loginView{Next: inside(next), Wrong: "Nothing was done: your login had ended. What you wrote stands below."})
		}
	}
	if next != "" {
		next = "?next=" + url.QueryEscape(next)
	}
	return v.http.Redirect("/login"+next, http.StatusSeeOther)
}

// ownPage says whether the browser vouches that a page of ours sent the form.
func (v *visit) ownPage() bool { return v.http.Get("Sec-Fetch-Site") == "same-origin" }

// written are the fields that people write something of their own in.
var written = []string{
	"text", "note", "transfer", "reason", "legalName", "registrationNumber", "address", "contactName", "contactPhone", "website", "url", "description", "displayName", "brand",
}

// keepsWords keeps what a person wrote in the form, for the page that says that
// it was not done. Another site's words are nobody's.
func (v *visit) keepsWords() {
	if !v.ownPage() {
		return
	}
	if v.form == nil { // it was not even looked at: the login had ended, or the store is away
		if form, err := url.ParseQuery(string(v.http.Body())); err == nil && isText(form) && keepable(form) == nil {
			v.form = form
		}
	}
	for _, name := range written {
		if words := v.field(name); words != "" {
			v.undone = append(v.undone, words)
		}
	}
}

// counted refuses a form of somebody who sends more of them than people do: of each a
// line may stay in the audit log, of those too that are refused.
func (v *visit) counted() error {
	who := ""
	if v.who.Role != "" {
		who = cmp.Or(v.who.Person, v.who.Account, string(v.who.Role))
	}
	err := v.console.cfg.Count(v.ctx, v.http, who)
	if own, ok := errors.AsType[*flow.Error](err); ok && own.Code == flow.CodeRateLimited {
		own.Message = "Nothing was done: too many forms came at once. Wait a second, and send it again."
	}
	return err
}

// loginView is what the login page is given.
type loginView struct {
	Email string
	Next  string
	Wrong string
	Roles []flow.Role // that open without a password
}

// inside is a page of the console to go on to: never one of another site. What a form was
// sent to is none, although its answer may be looked at: that leads to the page above it,
// which is the one that the form stands on. Nor is a file, that leaves the browser where it is.
func inside(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, "\\") {
		return "/"
	}
	at, file := strings.CutSuffix(u.EscapedPath(), ".csv")
	if isPage(at) && !file {
		return u.RequestURI()
	}
	if isPage(at) {
		return at + "?" + u.RawQuery
	}
	for at != "/" && !isPage(at) {
		at = at[:max(strings.LastIndexByte(at, '/'), 1)]
	}
	return at
}

// isPage says whether an address without what is asked for is one that can be looked at.
func isPage(address string) bool {
	parts := strings.Split(address, "/")
	return slices.ContainsFunc(Pages(), func(p Page) bool {
		return p.Method == http.MethodGet && !strings.HasSuffix(p.Path, "/export") && slices.EqualFunc(strings.Split(p.Path, "/"), parts, func(pattern, part string) bool {
			return pattern == part || strings.HasPrefix(pattern, ":") && part != ""
		})
	})
}

// loginPage is GET /login.
func (c *Console) loginPage(v *visit) error {
	return c.askLogin(v, loginView{Next: inside(v.http.Query("next"))}) // whole: a search may be long
}

func (c *Console) askLogin(v *visit, data loginView) error {
	if v.who.Role != "" {
		return v.to(data.Next, "")
	}
	v.greet()
	if c.cfg.Demo != "" && c.cfg.Near(v.http) {
		data.Roles = []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator}
	}
	return v.show("login", "Log in", data)
}

// askAgain shows a form to come in that outlived its cookie, as it was filled in.
func (c *Console) askAgain(v *visit) error {
	v.refuses(http.StatusForbidden, codeNotAllowed)
	const why = "This page had stood open for too long. "
	if v.http.Path() == "/signup" {
		return c.askSignUp(v, signUpView{v.field("email"), v.field("business"), []string{why + "Nothing was done yet: sign up once more."}})
	}
	return c.askLogin(v, loginView{Email: v.field("email"), Next: inside(v.field("next")), Wrong: why + "Log in once more."})
}

// login is POST /login.
func (c *Console) login(v *visit) error {
	email := v.field("email")
	next := inside(v.field("next"))
	if len(email) > maxTypedURL { // it is nobody's, and need not be shown again
		email = ""
	}
	in, err := c.cfg.Accounts.Enter(v.ctx, email, v.form.Get("password"), c.cfg.Address(v.http))
	if err != nil {
		wrong := loginView{Email: email, Next: next, Wrong: "There is nobody with this e-mail address and password."}
		code := flow.CodeOf(err)
		if code == flow.CodeRateLimited {
			wrong.Wrong = plainWords(err)
		} else if code != flow.CodeCredentials {
			return err
		}
		v.http.Status(v.refused(err))
		return c.askLogin(v, wrong)
	}
	if err := v.enters(in); err != nil {
		return err
	}
	return v.to(next, "")
}

// enters gives the browser a login, and ends the one that it had: nobody would
// hold that any more who could end it.
func (v *visit) enters(in checkout.Entered) error {
	if v.who.Role != "" {
		if err := v.console.cfg.Accounts.Leave(v.ctx, v.who); err != nil {
			return err
		}
	}
	v.setCookie(visitCookie, in.Text, int(flow.DashboardLife.Seconds()))
	return nil
}

// enter is POST /enter: the pretend world's console, without a password.
func (c *Console) enter(v *visit) error {
	role := flow.Role(v.field("role"))
	if c.cfg.Demo == "" || !c.cfg.Near(v.http) || !flow.IsRole(role) {
		return flow.Refuse(codeNotAllowed, "Only the pretend world of till dev opens without a password, and only on its own machine.")
	}
	in, err := c.cfg.Accounts.EnterAs(v.ctx, c.cfg.Demo, role)
	if err != nil {
		return err
	}
	if err := v.enters(in); err != nil {
		return err
	}
	return v.to(inside(v.field("next")), "")
}

// logout is POST /logout.
func (c *Console) logout(v *visit) error {
	if err := c.cfg.Accounts.Leave(v.ctx, v.who); err != nil {
		return err
	}
	v.setCookie(visitCookie, "", -1)
	return v.to("/login", "You are logged out.")
}

// choose is POST /choose: another project or environment to look at.
func (c *Console) choose(v *visit) error {
	env := flow.Environment(v.field("env"))
	if _, open := c.cfg.Services[env]; !open {
		return flow.Refuse(flow.CodeInvalidField, "There is no environment %q.", v.field("env"))
	}
	project := v.field("project")
	if !strings.HasPrefix(project, flow.PrefixProject) || strings.ContainsAny(project, ";, \"") {
		project = ""
	}
	v.setCookie(chosenCookie, project+"."+string(env), int(flow.DashboardLife.Seconds())*60)
	return v.to(inside(v.field("next")), "")
}
