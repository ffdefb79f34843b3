package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/rail"
)

// tryPages are the sandbox: a phone, and what goes on behind it.
func tryPages() []Page {
	get, post := http.MethodGet, http.MethodPost
	return []Page{
		{Method: get, Path: "/try", Right: flow.MayRead, do: (*Console).try},
		{Method: get, Path: "/try/live", Right: flow.MayRead, do: (*Console).liveTry},
		{Method: post, Path: "/try/open", Right: flow.MayDevelop, do: (*Console).tryOpen},
		{Method: post, Path: "/try/bank", Right: flow.MayRead, do: (*Console).tryBank},
		{Method: post, Path: "/try/dial", Right: flow.MayRead, do: (*Console).tryDial},
		{Method: post, Path: "/try/card", Right: flow.MayRead, do: (*Console).tryCard},
		{Method: post, Path: "/try/clock", Right: flow.MayRead, do: (*Console).tryClock},
		{Method: post, Path: "/try/chaos", Right: flow.MayRead, do: (*Console).tryChaos},
		{Method: post, Path: "/try/catch", Right: flow.MayDevelop, do: (*Console).tryCatch},
		{Method: post, Path: "/try/catcher", Right: flow.MayRead, do: (*Console).tryCatcher},
		{Method: post, Path: "/try/caught/:project", machine: true, do: (*Console).caught},
	}
}

// Sandbox is what /try plays with.
type Sandbox struct {
	// Bank is the pretend bank; nil where there is none.
	Bank Bank
	// AdvanceClock moves the clock of the test environment, false where it goes no
	// further; nil where it cannot be moved.
	AdvanceClock func(seconds int64) (time.Time, bool)
}

// Bank is the pretend bank, and how it is set.
type Bank interface {
	rail.TestBank
	// Conditions is how the bank behaves now.
	Conditions(ctx context.Context) (rail.Conditions, error)
}

// The bounds of what is tried out.
const (
	trySessions = 10
	maxLatency  = 30_000          // ms
	maxAhead    = 400 * 24 * 3600 // seconds
)

// sandboxed refuses what is only there in a pretend world, on its own machine.
func (c *Console) sandboxed(v *visit) error {
	switch {
	case c.cfg.Demo == "" || c.cfg.Sandbox.Bank == nil || !c.cfg.Near(v.http):
		return flow.Refuse(flow.CodeNotFound, "The sandbox is only there in the pretend world of till dev, on its own machine.")
	case v.env != flow.Test:
		return flow.Refuse(flow.CodeTestOnly, "There is no pretending with real money. Choose the test environment above.")
	case v.project.ID == "":
		return errNoProject
	}
	return nil
}

// errNoProject says that an operator looks at all projects, and plays with none.
var errNoProject = flow.Refuse(flow.CodeInvalidField, "Choose a project above: the sandbox plays with its sessions.")

// tryView is what the page is given.
type tryView struct {
	CSRF       string
	Sessions   []flow.Session // the newest
	Session    flow.SessionID // that is looked at
	Phone      string         // address of the phone's page
	Conditions rail.Conditions
	Fates      []string
	Now        time.Time
	Clock      bool // it can be moved
	Catching   bool
	Inspector  inspector
}

// inspector is the live part of the page.
type inspector struct {
	CSRF     string
	View     checkout.View
	Chat     flow.ChatID // it was opened in, "" for none yet
	Step     *replay.Step
	Steps    int
	Calls    []rail.Call
	Caught   []caught
	Catching bool
	Answers  int
}

// try is GET /try.
func (c *Console) try(v *visit) error {
	if err := c.sandboxed(v); errors.Is(err, errNoProject) && len(v.projects) > 0 {
		return v.show("choose", "Try it out", nil)
	} else if err != nil {
		return err
	}
	views, _, err := v.service.List(v.ctx, v.project.ID, checkout.Filter{Limit: trySessions})
	if err != nil {
		return err
	}
	data := tryView{CSRF: v.csrf(), Session: flow.SessionID(v.query("session")), Phone: "/phone?bare", Now: v.service.Now(), Fates: rail.Fates(), Clock: c.cfg.Sandbox.AdvanceClock != nil}
	for _, one := range views {
		data.Sessions = append(data.Sessions, one.Session)
	}
	if data.Session == "" && len(views) > 0 {
		data.Session = views[0].Session.ID
	}
	if data.Conditions, err = c.cfg.Sandbox.Bank.Conditions(v.ctx); err != nil {
		return err
	}
	if data.Inspector, err = c.inspect(v.ctx, v.service, v.project.ID, data.Session, v.csrf()); err != nil {
		return err
	}
	data.Catching = data.Inspector.Catching
	if link, err := url.Parse(v.service.Record(data.Inspector.View).CheckoutURL); err == nil && data.Inspector.Chat == "" && link.Query().Get("text") != "" {
		data.Phone += "&" + url.Values{"text": {link.Query().Get("text")}}.Encode()
	}
	v.http.Set("Content-Security-Policy", policy+"; frame-src 'self'")
	return v.show("try", "Try", data)
}

// liveTry is GET /try/live.
func (c *Console) liveTry(v *visit) error {
	if err := cmp.Or(c.sandboxed(v), v.ofHere()); err != nil {
		return err
	}
	service, project, id, csrf := v.service, v.project.ID, flow.SessionID(v.query("session")), v.csrf()
	if _, err := c.inspect(v.ctx, service, project, id, csrf); err != nil {
		return err
	}
	return v.live(func(ctx context.Context) ([]byte, error) {
		now, err := c.inspect(ctx, service, project, id, csrf)
		if err != nil {
			return nil, err
		}
		return v.part("try", "inspector", now)
	})
}

// inspect reads what goes on behind a session, of this project alone.
func (c *Console) inspect(ctx context.Context, service *checkout.Service, project flow.ProjectID, id flow.SessionID, csrf string) (inspector, error) {
	out := inspector{CSRF: csrf, Caught: c.sandbox.of(project), Answers: c.sandbox.answer()}
	endpoint, catching, err := c.catching(ctx, service, project)
	if err != nil {
		return out, err
	}
	out.Catching = catching && endpoint.Status == flow.EndpointEnabled
	if id == "" {
		return out, nil
	}
	if out.View, err = service.View(ctx, project, id); err != nil {
		return out, err
	}
	_, chats, err := service.ChatsOf(ctx, project, id)
	if err != nil {
		return out, err
	}
	if len(chats) > 0 {
		out.Chat = chats[0].ID
		steps, err := service.Read(ctx, project, out.Chat)
		if err != nil {
			return out, err
		}
		for i := range steps {
			if steps[i].Session == id {
				out.Step = &steps[i]
				out.Steps++
			}
		}
	}
	out.Calls, err = c.sandbox.calls(ctx, c.cfg.Sandbox.Bank, c.cfg.Real(), id)
	return out, err
}

// Of is the newest attempt of a method that has instructions, nil for none.
func (i inspector) Of(method string) *flow.Attempt {
	for n := len(i.View.Attempts) - 1; n >= 0; n-- {
		if a := &i.View.Attempts[n]; string(a.Method) == method && a.Instructions != nil {
			return a
		}
	}
	return nil
}

// play keeps what the visitor is about to try out, and does it.
func (c *Console) play(v *visit, action string, subject flow.SessionID, do func() (said string, err error)) error {
	if err := c.sandboxed(v); err != nil {
		return err
	}
	if subject != "" {
		if _, err := v.service.View(v.ctx, v.project.ID, subject); err != nil {
			return err
		}
	}
	if err := v.audit("sandbox."+action, string(subject), "", false); err != nil {
		return err
	}
	said, err := do()
	if own, ok := errors.AsType[*flow.Error](err); ok && own.Code == flow.CodeRailRejected { // it is about what was asked: nothing broke
		err = &flow.Error{Code: flow.CodeInvalidField, Message: own.Message, Err: err}
	}
	if err != nil {
		return err
	}
	to := "/try"
	if subject != "" {
		to += "?" + url.Values{"session": {string(subject)}}.Encode()
	}
	return v.to(to, said)
}

// trySession is the session that a form is about.
func trySession(v *visit) flow.SessionID { return flow.SessionID(v.field("session")) }

// tryOpen is POST /try/open: a merchant asks for money in a chat.
func (c *Console) tryOpen(v *visit) error {
	amount, ok := koboOf(v.field("amount"))
	if !ok || amount < flow.MinAmount || amount > flow.MaxAmount {
		return flow.Refuse(flow.CodeInvalidField, "The amount is %s to %s, as 4500 or 4500.00.", naira(flow.MinAmount), naira(flow.MaxAmount))
	}
	if err := c.sandboxed(v); err != nil {
		return err
	}
	if err := v.audit("sandbox.open", "", "", false); err != nil {
		return err
	}
	answer, err := v.service.Open(v.ctx, checkout.NewSession{
		Merchant: v.project.Shown(), Mode: flow.InChat, Amount: amount, CustomerEmail: "payer@example.com", CustomerName: "Payer of the sandbox",
		AllowedMethods: flow.Methods(), ExpiresIn: time.Hour, Description: "Tried out in the sandbox",
		Policy: v.project.Settings.Policy(),
	}, checkout.Call{Project: v.project.ID, Render: func(checkout.Made) (int, []byte, error) { return http.StatusCreated, nil, nil }})
	if err != nil {
		return err
	}
	return v.to("/try?"+url.Values{"session": {answer.Location}}.Encode(), "A session is open. Its words stand in the phone's message field: send them.")
}

// koboOf reads naira, with or without kobo.
func koboOf(text string) (flow.Kobo, bool) {
	whole, part, dotted := strings.Cut(strings.ReplaceAll(text, ",", ""), ".")
	if dotted && len(part) != 2 || len(whole) > 12 {
		return 0, false
	}
	if !dotted {
		part = "00"
	}
	n, err := strconv.ParseUint(whole+part, 10, 63)
	return flow.Kobo(n), err == nil
}
