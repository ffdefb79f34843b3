package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// shop is a whole Till on a temporary directory, without WhatsApp: real store,
// real checkout, a bank on paper.
type shop struct {
	t         *testing.T
	server    *Server
	bank      *paper
	phones    *drawer
	accounts  *store.DB
	checkouts *store.DB
	parts     checkout.Config
	number    string // the live WhatsApp number, "" for none
	checks    []Check
	log       *await.Log
	key       string // a secret test key
	public    string
	project   flow.Project

	mu      sync.Mutex
	advance time.Duration
}

// clockGoes is how far a shop's clock can be moved.
const clockGoes = 700 * 24 * time.Hour

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (s *shop) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.advance).UTC()
}

// nowhere remembers no talk.
type nowhere struct{}

func (nowhere) Get(context.Context, flow.ChatID) (flow.Chat, bool) { return flow.Chat{}, false }
func (nowhere) Put(context.Context, flow.Chat)                     {}

func open(t *testing.T) *shop {
	t.Helper()
	return openOn(t, storetest.SQLite(t, store.Accounts), storetest.SQLite(t, store.Checkout))
}

// openOn is open on databases of the test's choice.
func openOn(t *testing.T, accounts, checkouts store.Config) *shop {
	t.Helper()
	s := &shop{t: t, number: "2348000000001", log: &await.Log{}}
	s.bank, s.phones = newPaper(s.now), &drawer{}
	s.accounts, s.checkouts = storetest.Open(t, accounts), storetest.Open(t, checkouts)
	t.Cleanup(func() { s.judgeEvents(s.checkouts) })
	s.parts = checkout.Config{
		DB: s.checkouts, Rail: s.bank, Places: nowhere{}, Banks: paperBanks(), Now: s.now, Rand: rand.Reader, Alone: true,
		Words:  func(say flow.Say, _ time.Time) string { return say.Key },
		Number: func() string { return s.number },
		Around: flow.Surroundings{
			ClientSecret: func(id flow.SessionID) string { return "cs_" + string(id) },
			CheckoutURL: func(x flow.Session) string {
				return "https://wa.me/" + x.Number + "?text=Pay%20" + flow.ShowCode(x.EntryCode)
			},
		},
		Send: func(context.Context, checkout.Outgoing) error { return nil },
		Post: func(_ context.Context, d flow.Delivery) flow.Verdict {
			delivered(t, d.Body)
			return flow.Verdict{OK: true}
		},
		Next:  func(flow.Delivery, flow.Verdict) (time.Duration, bool) { return 0, false },
		Payee: checkout.NewAccounts(s.accounts, s.now, rand.Reader).Payee(flow.Test),
		Known: func(ctx context.Context, id flow.ProjectID) (bool, error) {
			return checkout.NewAccounts(s.accounts, s.now, rand.Reader).Known(ctx, id, flow.Test)
		},
	}
	service, err := checkout.New(s.parts)
	must(t, err)
	s.runs(service.Run)
	ids := flow.IDs{Now: s.now, Rand: rand.Reader}
	s.server, err = New(Config{
		Accounts: s.second(), Services: map[flow.Environment]*checkout.Service{flow.Test: service},
		Rails: map[string]flow.Environment{"sandbox": flow.Test}, TestBank: s.bank, Phones: s.phones,
		TestPairing: func() (string, bool) { return "2@abc", true },
		AdvanceClock: func(seconds int64) (time.Time, bool) {
			s.mu.Lock()
			moved := s.advance+time.Duration(seconds)*time.Second <= clockGoes
			if moved {
				s.advance += time.Duration(seconds) * time.Second
			}
			s.mu.Unlock()
			return s.now(), moved
		},
		Ready: func(context.Context) []Check {
			return s.checks
		},
		CheckURL: func(_ flow.Environment, raw string) error {
			if !strings.HasPrefix(raw, "http") {
				return errors.New("not a URL that events can be sent to")
			}
			return nil
		},
		NewSecret: func(flow.Signature) (string, error) { return "whsec_" + strings.Repeat("A", 43) + "=", nil },
		BankNames: func(code string) (flow.Bank, bool) {
			for _, b := range paperBanks() {
				if b.Code == code {
					return b, true
				}
			}
			return flow.Bank{}, false
		},
		Dev: true, Now: s.now, IDs: ids, Log: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	must(t, err)
	s.bank.notify = func(h http.Header, body []byte) int {
		return s.ask("POST", "/v1/rails/sandbox/notifications", "", string(body), h).status
	}
	s.project, s.public, s.key = s.merchant("Ada Stores")
	return s
}

// judgeEvents holds every event that a test left against the document, also those
// that nobody was sent.
func (s *shop) judgeEvents(db *store.DB) {
	list, err := db.ProjectEvents(context.Background(), store.EventFilter{Project: s.project.ID, Limit: 10_000})
	if err != nil {
		return // the store is what the test broke
	}
	for _, e := range list {
		delivered(s.t, e.Body)
	}
}

// begins runs a part until stop is called; ended then gets what it ended with.
func begins(part func(context.Context) error) (stop context.CancelFunc, ended <-chan error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	return stop, done
}

// runs runs a part until the test, or what is returned, ends it.
func (s *shop) runs(part func(context.Context) error) (end func()) {
	stop, ended := begins(part)
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("it did not end well: %v", err)
		}
	})
	s.t.Cleanup(end)
	return end
}

// merchant adds a merchant without the cost of hashing a password.
func (s *shop) merchant(name string) (p flow.Project, public, secret string) {
	s.t.Helper()
	public, secret = s.newKey(flow.Test, flow.PublicKey), s.newKey(flow.Test, flow.SecretKey)
	p = s.keep(name, flow.Key{Environment: flow.Test, Kind: flow.PublicKey, Hash: flow.HashKey(public), Hint: flow.HintKey(public)},
		flow.Key{Environment: flow.Test, Kind: flow.SecretKey, Hash: flow.HashKey(secret), Hint: flow.HintKey(secret)})
	return p, public, secret
}

func (s *shop) newKey(env flow.Environment, kind flow.KeyKind) string {
	s.t.Helper()
	key, err := flow.NewKeyText(env, kind, rand.Reader)
	must(s.t, err)
	return key
}

// keep adds an account with a project and these keys.
func (s *shop) keep(name string, keys ...flow.Key) flow.Project {
	s.t.Helper()
	id := func(prefix string) string {
		made, err := s.server.cfg.IDs.New(prefix)
		must(s.t, err)
		return made
	}
	account := flow.Account{ID: id(flow.PrefixAccount), Email: id("") + "@example.com", PasswordHash: "x", Business: name, CreatedAt: s.now()}
	project := flow.Project{ID: flow.ProjectID(id(flow.PrefixProject)), Account: account.ID, Name: name, CreatedAt: s.now()}
	for i := range keys {
		keys[i].ID, keys[i].Project, keys[i].CreatedAt = id(flow.PrefixKey), project.ID, s.now()
	}
	err := s.accounts.Update(s.t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddAccount(s.t.Context(), account, project, keys)
		return err
	})
	must(s.t, err)
	return project
}

// reply is what was answered.
type reply struct {
	status int
	header http.Header
	body   string
}

// code is the code of an error, "" for a success.
func (r reply) code() string { return r.text("error.code") }

// text is a value of the answer by its path, "" where there is none.
func (r reply) text(path string) string {
	var at any
	if json.Unmarshal([]byte(r.body), &at) != nil {
		return ""
	}
	for name := range strings.SplitSeq(path, ".") {
		if list, ok := at.([]any); ok {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(list) {
				return ""
			}
			at = list[i]
			continue
		}
		set, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = set[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}

// ask sends one request through the whole server. Headers are pairs.
func (s *shop) ask(method, url, key, body string, headers ...http.Header) reply {
	s.t.Helper()
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Host = "127.0.0.1"
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		for name, v := range h {
			if v[0] == "" {
				r.Header.Del(name)
			} else {
				r.Header[name] = v
			}
		}
	}
	answer, err := s.server.Test(r, 30*time.Second)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	must(s.t, err)
	got := reply{answer.StatusCode, answer.Header, string(all)}
	conforms(s.t, r, body, got)
	return got
}

const sessions = "/v1/whatsapp/checkout/sessions"

// session opens a session and returns its id.
func (s *shop) session(more string) string {
	s.t.Helper()
	r := s.ask("POST", sessions, s.key, `{"amount":500000,"customerEmail":"ada@example.com"`+more+`}`)
	if r.status != http.StatusCreated {
		s.t.Fatalf("open a session: %d %s", r.status, r.body)
	}
	return r.text("data.id")
}
