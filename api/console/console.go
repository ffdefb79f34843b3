// Package console is what people see of Till in a browser: the phone and sandbox
// to try it out, the sessions and conversations that supporters look into, the
// keys and webhooks of developers, and the numbers and switches of operators.
//
// Pages are made on the server, from templates, and work without JavaScript but
// for their live parts. Whatever a page does, a command of flow/checkout does:
// the package translates between forms and commands, and decides nothing. It must
// not know banks, WhatsApp or SQL, and nothing of it is loaded from elsewhere.
package console

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"till/flow"
	"till/flow/checkout"
)

//go:embed pages static
var files embed.FS

// Config is what a Console is made of.
type Config struct {
	// Accounts knows who may log in.
	Accounts *checkout.Accounts
	// Services are the environments that are open.
	Services map[flow.Environment]*checkout.Service
	// Boards are the numbers and switches of the environments.
	Boards map[flow.Environment]*checkout.Board
	// Demo is the e-mail address of the pretend world's account, whose console
	// opens without a password, to this machine alone; "" elsewhere.
	Demo string
	// Secure says that browsers reach the console over https.
	Secure bool
	// PublicURL is the address under which others reach the server.
	PublicURL string
	// Address is where a request came from.
	Address func(*fiber.Ctx) string
	// Near says whether a request came from this machine, to this machine.
	Near func(*fiber.Ctx) bool
	// Count counts a form against somebody who is logged in, or where that is nobody
	// against where it comes from. Errors: rate_limited.
	Count func(ctx context.Context, f *fiber.Ctx, who string) error
	// Request is a request's id.
	Request func(*fiber.Ctx) string
	// Refused notes why a request was refused, and is the HTTP status of that.
	Refused func(*fiber.Ctx, error) int
	// Verifications say whose a bank account is, in the environments that can.
	Verifications map[flow.Environment]*checkout.Verifications
	// CheckURL judges where the webhooks of an environment may be sent.
	CheckURL func(env flow.Environment, raw string) error
	// NewSecret makes what signs for a webhook endpoint.
	NewSecret func(flow.Signature) (string, error)
	// Typed are the API's own rules for what people type.
	Typed Typed
	// Requests is the log of the API's requests.
	Requests Requests
	// Tasks are programs to copy.
	Tasks []Task
	// Ready asks every part of the server whether it works.
	Ready func(ctx context.Context) []Part
	// Doctor looks for what is wrong with the machine, the data and the outsides.
	Doctor func(ctx context.Context) []Diagnosis
	// Pairing is what is to be scanned to link the test number; false when nothing is.
	Pairing func() (text string, waiting bool)
	// Sandbox is what /try plays with.
	Sandbox Sandbox
	// Closing is closed when the server begins to end.
	Closing <-chan struct{}
	// Real is the machine's clock. What is shown of an environment goes by that of
	// its service.
	Real func() time.Time
	Log  *slog.Logger
}

// Console serves the pages.
type Console struct {
	cfg     Config
	port    string                      // how the names of cookies end
	pages   map[flow.Environment]*pages // each by its clock; for nobody those of "", by the machine's
	streams streams                     // live parts under way
	queues  sync.Map                    // *queuePart of each inbox that was open, by its place
	looked  looked                      // by the doctor
	sandbox sandbox
}

// Page is one address of the console.
type Page struct {
	Method string
	Path   string
	Right  flow.Right // "" for pages that nobody has to log in for
	do     func(*Console, *visit) error

	machine  bool // no person sends it: its POST holds no form
	anywhere bool // its form means the same in every project and environment
}

// Pages is every address there is, in one table.
func Pages() []Page {
	var all []Page
	for _, some := range [][]Page{entryPages(), supportPages(), settlementPages(), bookPages(), replayPages(), developerPages(), operatorPages(), settingsPages(), tryPages()} {
		all = append(all, some...)
	}
	return all
}

// Astray is the page for addresses that are none of ours.
func Astray() Page {
	return Page{Method: http.MethodGet, do: func(*Console, *visit) error {
		return flow.Refuse(flow.CodeRouteNotFound, "There is no page at this address. The link may be cut off, or a sign of it may be mistyped.")
	}}
}

// New makes a Console.
func New(cfg Config) (*Console, error) {
	if cfg.Accounts == nil || len(cfg.Services) == 0 || cfg.Real == nil || cfg.Log == nil || cfg.Refused == nil || cfg.Request == nil || cfg.Address == nil || cfg.Near == nil || cfg.Count == nil {
		return nil, errors.New("make the console: a part is missing")
	}
	c := &Console{cfg: cfg, port: portOf(cfg.PublicURL), pages: map[flow.Environment]*pages{}}
	clocks := map[flow.Environment]func() time.Time{"": cfg.Real}
	for env, service := range cfg.Services {
		clocks[env] = service.Now
	}
	for env, now := range clocks {
		var err error
		if c.pages[env], err = pagesAt(now); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Serve answers one request for a page.
func (c *Console) Serve(ctx context.Context, p Page, f *fiber.Ctx) error {
	v := &visit{http: f, ctx: ctx, console: c}
	harden(f)
	f.Set("X-Request-Id", c.cfg.Request(f))
	err := v.begin(p)
	if err == nil {
		err = p.do(c, v)
	}
	if err == nil {
		return nil
	}
	return c.failed(v, err)
}

// policy keeps everything out that does not come from this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

func harden(f *fiber.Ctx) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
	} {
		f.Set(name, value)
	}
}

// codeNotAllowed is what a role may not do, or another site's page tried. No call
// of the API answers with it.
const codeNotAllowed flow.Code = "not_allowed"

// codeChanged is what is not done as it is not so any more what the form was about.
const codeChanged flow.Code = "changed_meanwhile"

// errLogin says that somebody has to log in first.
var errLogin = errors.New("nobody is logged in")

// errEntered says that somebody who is logged in sent a form to come in once
// more, as the browser does that loads its answer anew.
var errEntered = errors.New("somebody is logged in already")

// errOutlived says that somebody sent a form to come in whose cookie has ended.
var errOutlived = errors.New("the cookie of the form has ended")

// failed shows what went wrong, in the words of its error, and what to do.
func (c *Console) failed(v *visit, err error) error {
	switch {
	case errors.Is(err, errLogin):
		return c.toLogin(v)
	case errors.Is(err, errEntered) && v.http.Path() == "/signup":
		return v.to("/developers", "You are signed up and logged in. A key is shown once: make another one if you have not copied it.")
	case errors.Is(err, errEntered):
		return v.to("/", "You are logged in already.")
	case errors.Is(err, errOutlived):
		return c.askAgain(v)
	}
	status := v.refused(err)
	own, ok := errors.AsType[*flow.Error](err)
	if !ok {
		own = flow.Refuse(flow.CodeInternal, "Something went wrong on our side. Try again; if it stays, tell an operator the request id below.")
	}
	if own.Code == codeNotAllowed {
		status = http.StatusForbidden
	}
	title := "Not done"
	if status == http.StatusNotFound {
		title = "Not found"
	}
	v.http.Status(status)
	v.keepsWords()
	return v.show("error", title, own)
}

// asset is GET /console/{file}: styles and scripts.
func (c *Console) asset(v *visit) error {
	name := v.http.Params("file")
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	kind, known := kinds[path.Ext(name)]
	body, err := files.ReadFile("static/" + name)
	if !known || err != nil || path.Base(name) != name {
		return flow.Refuse(flow.CodeNotFound, "There is nothing at this address.")
	}
	v.http.Set("Cache-Control", "public, max-age=300")
	v.http.Set("Content-Type", kind)
	return v.http.Status(http.StatusOK).Send(body)
}
