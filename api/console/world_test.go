package console_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/api"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/hooks"
	"till/rail"
	"till/rail/sandbox"
)

// world is a whole Till on loopback, on a temporary directory, without WhatsApp:
// real stores, both environments, the pretend bank over the network.
type world struct {
	t        *testing.T
	base     string // http://127.0.0.1:…
	accounts *checkout.Accounts
	people   *store.DB // of the accounts
	dbs      map[flow.Environment]*store.DB
	services map[flow.Environment]*checkout.Service
	boards   map[flow.Environment]*checkout.Board
	bank     *sandbox.Rail
	log      *await.Log
	ada      merchant // the demo account: whom as logs in

	moved   atomic.Int64           // how far the clock of test is ahead of all others
	ticks   atomic.Pointer[func()] // nil, or what happens as an environment's clock is read next
	entered atomic.Pointer[func()] // nil, or what happens as the accounts' clock is read next
	mu      sync.Mutex
	advance time.Duration
	posted  []flow.Delivery
	verdict flow.Verdict // what becomes of each delivery
	said    []checkout.Outgoing
	reword  func(key string) string // nil: a message says its key
}

// merchant is an account with one project and its keys.
type merchant struct {
	account string
	email   string
	project flow.Project
	public  string // test keys
	secret  string
}

// nowhere remembers no talk.
type nowhere struct{}

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (nowhere) Get(context.Context, flow.ChatID) (flow.Chat, bool) { return flow.Chat{}, false }
func (nowhere) Put(context.Context, flow.Chat)                     {}

// open opens a world. change may alter what its server is made of.
func open(t *testing.T, change ...func(*api.Config)) *world {
	t.Helper()
	w := &world{
		t: t, log: &await.Log{}, verdict: flow.Verdict{OK: true, Status: http.StatusOK, Body: []byte("thanks"), Duration: 3 * time.Millisecond},
		dbs: map[flow.Environment]*store.DB{}, services: map[flow.Environment]*checkout.Service{}, boards: map[flow.Environment]*checkout.Board{},
	}
	database := func(schema store.Schema) *store.DB { return storetest.Open(t, storetest.SQLite(t, schema)) }
	w.people = database(store.Accounts)
	w.accounts = checkout.NewAccounts(w.people, func() time.Time { meanwhile(&w.entered); return w.now() }, rand.Reader)
	w.accounts.PasswordsCost(8, 1)
	w.run(w.accounts.Run)
	w.dbs[flow.Test], w.dbs[flow.Live] = database(store.Checkout), database(store.Checkout)
	log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.openBank()
	verifications := map[flow.Environment]*checkout.Verifications{}
	for env, bank := range map[flow.Environment]rail.Rail{flow.Test: w.bank, flow.Live: rail.Closed{}} {
		w.boards[env] = checkout.NewBoard(w.dbs[env], w.now, w.now, log)
		service, err := checkout.New(w.parts(env, bank, log))
		must(t, err)
		w.services[env] = service
		w.run(service.Run)
		if verifications[env], err = checkout.NewVerifications(service, "a pepper of the tests"); err != nil {
			t.Fatal(err)
		}
	}
	w.ada = w.merchant("Ada Stores")
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	w.base = "http://" + ln.Addr().String()
	cfg := api.Config{
		Accounts: w.accounts, Services: w.services, Verifications: verifications, Rails: map[string]flow.Environment{"sandbox": flow.Test},
		TestBank: w.bank, Boards: w.boards, Demo: w.ada.email, PublicURL: w.base, Dev: true,
		CheckURL: func(_ flow.Environment, raw string) error {
			if !strings.HasPrefix(raw, "http") {
				return errors.New("not a URL that events can be sent to")
			}
			return nil
		},
		NewSecret: func(kind flow.Signature) (string, error) { return hooks.NewSecret(kind, rand.Reader) },
		BankNames: rail.BankByCode, Now: w.now, IDs: flow.IDs{Now: w.now, Rand: rand.Reader}, Log: log,
	}
	for _, c := range change {
		c(&cfg)
	}
	server, err := api.New(cfg)
	must(t, err)
	w.run(func(ctx context.Context) error { return server.Serve(ctx, ln) })
	must(t, w.bank.Register(t.Context(), w.base+"/v1/rails/sandbox/notifications"))
	return w
}

// parts are those of one environment's checkout.
func (w *world) parts(env flow.Environment, bank rail.Rail, log *slog.Logger) checkout.Config {
	return checkout.Config{
		DB: w.dbs[env], Rail: bank, Places: nowhere{}, Board: w.boards[env], Banks: rail.USSDMenu(), Now: func() time.Time { return w.clock(env) }, Rand: rand.Reader, Alone: true,
		Words:  func(say flow.Say, _ time.Time) string { return w.words(say) },
		Number: func() string { return "2348000000001" },
		Around: flow.Surroundings{
			Live:         env == flow.Live,
			ClientSecret: func(id flow.SessionID) string { return "cs_" + string(id) },
			CheckoutURL: func(x flow.Session) string {
				return "https://wa.me/" + x.Number + "?text=Pay%20" + flow.ShowCode(x.EntryCode)
			},
		},
		Send: func(_ context.Context, o checkout.Outgoing) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, o)
			return nil
		},
		Post: func(_ context.Context, d flow.Delivery) flow.Verdict {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.posted = append(w.posted, d)
			v := w.verdict
			v.URL, v.SignedAt, v.Signature = d.URL, time.Now(), "v1,bm90IGNoZWNrZWQ="
			return v
		},
		Next:  func(flow.Delivery, flow.Verdict) (time.Duration, bool) { return 0, false },
		Payee: w.accounts.Payee(env),
		Known: func(ctx context.Context, id flow.ProjectID) (bool, error) { return w.accounts.Known(ctx, id, env) },
		Log:   log,

		SecondAbove: 50_000_000,
	}
}

// openBank opens the pretend bank and the rail to it.
func (w *world) openBank() {
	w.t.Helper()
	bank, err := sandbox.Open(sandbox.Config{Now: w.now})
	must(w.t, err)
	w.t.Cleanup(func() { _ = bank.Close() })
	var lc net.ListenConfig
	ln, err := lc.Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	must(w.t, err)
	w.run(func(ctx context.Context) error { return bank.Serve(ctx, ln) })
	w.bank, err = sandbox.NewRail(sandbox.RailConfig{BaseURL: "http://" + ln.Addr().String(), Secret: "a secret of both directions", Now: w.now})
	must(w.t, err)
	w.t.Cleanup(w.bank.Close)
}

// run runs a part until the test ends.
func (w *world) run(part func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("it did not end well: %v", err)
		}
	})
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.advance).UTC()
}

// meanwhile does what is to happen as a clock is read, and nothing while it does.
func meanwhile(what *atomic.Pointer[func()]) {
	if do := what.Swap(nil); do != nil {
		(*do)()
	}
}

// clock is that of an environment.
func (w *world) clock(env flow.Environment) time.Time {
	if env == flow.Test {
		meanwhile(&w.ticks)
	}
	if env == flow.Test {
		return w.now().Add(time.Duration(w.moved.Load()))
	}
	return w.now()
}

// words writes a message: its key, or what an agent wrote.
func (w *world) words(say flow.Say) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := say.Args["text"]; text != "" {
		return text
	}
	if w.reword == nil {
		return say.Key
	}
	return w.reword(say.Key)
}

// rewords has messages say something else from now on.
func (w *world) rewords(as func(key string) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reword = as
}

// pass moves the clock of everything.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	w.advance += d
	w.mu.Unlock()
	for _, s := range w.services {
		s.Wake()
	}
}

// answers sets what becomes of deliveries from now on.
func (w *world) answers(v flow.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verdict = v
}

// deliveries are what was sent to endpoints until now.
func (w *world) deliveries() []flow.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]flow.Delivery(nil), w.posted...)
}

// newKey is a key of a project that is not kept yet, and its text.
func (w *world) newKey(project flow.ProjectID, env flow.Environment, kind flow.KeyKind) (flow.Key, string) {
	w.t.Helper()
	text, err := flow.NewKeyText(env, kind, rand.Reader)
	must(w.t, err)
	return flow.Key{ID: "key_" + string(env), Project: project, Environment: env, Kind: kind, Hash: flow.HashKey(text), Hint: flow.HintKey(text), CreatedAt: w.now()}, text
}

// merchant adds an account, without the cost of hashing a password.
func (w *world) merchant(name string) merchant {
	w.t.Helper()
	ids := flow.IDs{Now: w.now, Rand: rand.Reader}
	id := func(prefix string) string {
		made, err := ids.New(prefix)
		must(w.t, err)
		return made
	}
	account := flow.Account{ID: id(flow.PrefixAccount), Email: id("") + "@example.com", PasswordHash: "x", Business: name, CreatedAt: w.now()}
	m := merchant{account: account.ID, email: account.Email}
	m.project = flow.Project{ID: flow.ProjectID(id(flow.PrefixProject)), Account: account.ID, Name: name, KYC: flow.KYCNone, CreatedAt: w.now()}
	var keys []flow.Key
	for kind, text := range map[flow.KeyKind]*string{flow.PublicKey: &m.public, flow.SecretKey: &m.secret} {
		var k flow.Key
		k, *text = w.newKey(m.project.ID, flow.Test, kind)
		k.ID = id(flow.PrefixKey)
		keys = append(keys, k)
	}
	must(w.t, w.people.Update(w.t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddAccount(w.t.Context(), account, m.project, keys)
		return err
	}))
	return m
}

// admit approves a merchant's KYC, so that its live keys may work.
func (w *world) admit(m merchant) {
	w.t.Helper()
	_, err := w.accounts.SubmitKYC(w.t.Context(), m.project.ID, flow.KYCDetails{}, checkout.Call{
		Render: func(checkout.Made) (int, []byte, error) { return http.StatusOK, nil, nil },
	})
	if err == nil {
		_, err = w.accounts.RuleKYC(w.t.Context(), m.project.ID, flow.Approve, "known to the tests")
	}
	must(w.t, err)
}

// TestTheWorldOpens holds the fixture itself: each role comes in, nobody else.
func TestTheWorldOpens(t *testing.T) {
	w := open(t)
	for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator} {
		w.wants(w.as(role).get("/"), http.StatusOK, "Overview", fmt.Sprintf("Role: %s", role))
	}
	w.wants(w.visitor().get("/"), http.StatusSeeOther)
	w.wants(w.as(flow.RoleOwner).post("/logout", form("csrf", "x")), http.StatusForbidden)
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions", w.ada.secret, `{"amount":500000,"customerEmail":"a@example.com"}`), http.StatusCreated)
}

// stops has an operator move a merchant's switch.
func (w *world) stops(m merchant, to string) {
	w.t.Helper()
	_, err := w.boards[flow.Test].Move(w.t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(m.project.ID), To: to, By: "an operator", Reason: "told by a terminal"})
	must(w.t, err)
}
