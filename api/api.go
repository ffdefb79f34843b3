package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"till/api/console"
	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// The bounds of a connection and of a request.
const (
	bodyLimit    = 64 << 10
	headerLimit  = 16 << 10
	connections  = 16 << 10 // open at the same time
	maxAtWork    = 1 << 10  // requests under way at once: beyond that, everybody would wait for seconds
	readTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second // of the answer alone: it begins when the handler is done
	idleTimeout  = 60 * time.Second
	workTimeout  = 40 * time.Second // of a handler: above the longest wait for messages
	drainTimeout = 10 * time.Second
)

// Config is what a Server is made of.
type Config struct {
	// Accounts signs merchants up and knows their keys.
	Accounts *checkout.Accounts
	// Services are the environments that are open on this server.
	Services map[flow.Environment]*checkout.Service
	// Verifications are those of the environments that verify.
	Verifications map[flow.Environment]*checkout.Verifications
	// Limits counts calls; nil lets everything through.
	Limits *Limiter
	// Rails are the names under which banks send notices, and whose they are.
	Rails map[string]flow.Environment
	// TestBank is the pretend bank of the test environment, nil for none.
	TestBank rail.TestBank
	// SharedBank says that strangers share the pretend bank: nobody breaks it for the
	// others.
	SharedBank bool
	// Phones are the pretend phones of the local network, nil for none.
	Phones Phones
	// Pairing is what is to be scanned to pair the test number, for operators; false
	// when nothing is. Nil where no number is ever paired.
	Pairing func() (text string, waiting bool)
	// TestPairing is the same for whoever has a test key; nil where nobody but the
	// operator may pair: on the real WhatsApp the number is theirs.
	TestPairing func() (text string, waiting bool)
	// AdvanceClock moves the test environment's clock and says what time it is
	// then; false where it would go too far. Nil where it stands fast: strangers
	// share the test environment, and none moves the time of the others.
	AdvanceClock func(seconds int64) (time.Time, bool)
	// Ready asks every part that the server uses whether it works. It returns soon,
	// whatever hangs.
	Ready func(ctx context.Context) []Check
	// Doctor looks for what is wrong with the machine, the data and the outsides;
	// nil where nobody looks.
	Doctor func(ctx context.Context) []console.Diagnosis
	// CheckURL judges where the webhooks of an environment may be sent.
	CheckURL func(env flow.Environment, raw string) error
	// NewSecret makes what signs for a webhook endpoint.
	NewSecret func(flow.Signature) (string, error)
	// BankNames knows the banks that payers pay from, by code.
	BankNames func(code string) (flow.Bank, bool)
	// Proxies are the networks of the proxies in front, whose word about who
	// called is believed.
	Proxies []netip.Prefix
	// Boards are the numbers and switches of the environments, for the console.
	Boards map[flow.Environment]*checkout.Board
	// Demo is the e-mail address of the account whose console opens without a
	// password, to this machine alone; "" for none.
	Demo string
	// PublicURL is the address under which others reach this server.
	PublicURL string
	// Dev serves the phone page and its keyless calls, to this machine alone.
	Dev bool
	// Docs is what an error's code is put behind to make its docUrl.
	Docs string
	// Answering is called when a request begins, and what it returns once it is
	// answered, with the pattern of its path, "" where it has none. Nil: nobody counts.
	// notServed: it was refused, as nobody offers what it asked for.
	Answering func() (done func(route, method string, code int, env flow.Environment, notServed bool))
	// Now is the machine's clock, for requests; what is of an environment goes by
	// that of its service.
	Now func() time.Time
	IDs flow.IDs
	Log *slog.Logger
}

// Server answers merchants.
type Server struct {
	cfg     Config
	app     *fiber.App
	closing chan struct{} // closed when no more waiting is to be done
	once    sync.Once
	pages   *pages
	console *console.Console
	health  health
	screens atomic.Int64 // phones that are looked at live
	atWork  atomic.Int64 // requests

	requests *requestLog
}

// New makes a Server.
func New(cfg Config) (*Server, error) {
	if cfg.Accounts == nil || len(cfg.Services) == 0 || cfg.Now == nil || cfg.IDs.Rand == nil || cfg.CheckURL == nil || cfg.NewSecret == nil {
		return nil, errors.New("make the API: a part is missing")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Answering == nil {
		cfg.Answering = func() func(string, string, int, flow.Environment, bool) {
			return func(string, string, int, flow.Environment, bool) {}
		}
	}
	cfg.Docs = cmp.Or(cfg.Docs, docErrors+"/")
	docs, err := readPages()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, pages: docs, closing: make(chan struct{}), requests: newRequestLog()}
	s.app = fiber.New(fiber.Config{
		Immutable: true, StrictRouting: true, CaseSensitive: true, BodyLimit: bodyLimit, ReadBufferSize: headerLimit, Concurrency: connections,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, DisableStartupMessage: true,
		DisablePreParseMultipartForm: true, ErrorHandler: s.fault, RequestMethods: append(slices.Clone(fiber.DefaultMethods), otherMethod),
	})
	for _, r := range Routes() {
		if r.Dev && !cfg.Dev {
			continue
		}
		if r.Method == http.MethodGet {
			s.app.Get(r.Path, s.handle(r)) // answers HEAD too
		} else {
			s.app.Add(r.Method, r.Path, s.handle(r))
		}
	}
	if err := s.openConsole(); err != nil {
		return nil, err
	}
	s.answerPreflights()
	server := s.app.Server()
	server.Handler = s.front(server.Handler)
	server.HeaderReceived = headersRead
	server.Logger = silent{cfg.Log}
	server.SecureErrorLogMessage = true
	server.CloseOnShutdown = true
	return s, nil
}

// Serve answers on a listener until ctx ends, then finishes what it began, for
// at most ten seconds.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ended := make(chan error, 1)
	seen := &watched{Listener: ln}
	go func() { ended <- s.app.Listener(seen) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the API: %w", err)
	case <-ctx.Done():
	}
	s.once.Do(func() { close(s.closing) })
	seen.end()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := s.app.ShutdownWithContext(drain); err != nil {
		return fmt.Errorf("shut the API down: %w", err)
	}
	_ = ln.Close() // the server below us closes only what it has begun to serve on, and would begin now
	return <-ended
}

// Test answers one request without a network, for tests.
func (s *Server) Test(r *http.Request, wait time.Duration) (*http.Response, error) {
	return s.app.Test(r, int(wait.Milliseconds()))
}

// AtWork is how many requests are being answered, and how many connections are
// open.
func (s *Server) AtWork() (requests, connections int) {
	server := s.app.Server()
	return int(s.atWork.Load()), int(server.GetOpenConnectionsCount())
}

// Handler is the whole server as a function, for a listener of someone else's.
func (s *Server) Handler() fasthttp.RequestHandler { return s.front(s.app.Handler()) }

// call is one request on its way through a handler.
type call struct {
	http    *fiber.Ctx
	ctx     context.Context //nolint:containedctx // lives as long as the request it belongs to
	noted   *noted
	key     flow.Key
	token   flow.Token // of a dashboard call
	bearer  string     // its text
	proxies []netip.Prefix
	project flow.Project
	service *checkout.Service
	server  *Server
	kept    flow.Audited // that is kept as done by this call; zero for nothing
	began   bool         // something outside was asked: a refusal from here on is an answer to keep
}

// handle runs a route: key first, then its handler.
func (s *Server) handle(r Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), workTimeout)
		defer cancel()
		one := &call{http: c, noted: s.note(c.Context()), proxies: s.cfg.Proxies, server: s}
		one.ctx = flow.WithTrace(ctx, one.noted.trace)
		one.noted.route = r.Path
		allowOrigin(one, r)
		if err := s.admit(one, r.Key); err != nil {
			return err
		}
		if !r.Asks {
			if err := one.query().done(); err != nil {
				return err
			}
		}
		if r.Key != KeyNone && (r.Method == http.MethodGet || r.Method == http.MethodDelete) {
			if err := one.bodiless(); err != nil {
				return err
			}
		}
		if r.takesKey() && !r.Own {
			return one.onceOnly(r)
		}
		return one.do(r)
	}
}

// waiting is a context that also ends when the server closes: for calls that
// wait for something that may never come.
func (s *Server) waiting(of context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(of)
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
