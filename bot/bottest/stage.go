// Package bottest plays conversations: it puts a bot with the real store, rules,
// words and bank on a stage, moves its clock, and does around the chat what a
// conversation says. Who carries the messages is handed to it, so that the same
// conversation can be played without any network and over a whole one.
//
// It must not know any single network. It is imported by tests alone.
package bottest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
	"till/rail/sandbox"
)

// Number is the bot's own number on a stage.
const Number = "2349010000001"

// Names that a conversation gives its payers.
const (
	First  = "person-1"
	Second = "person-2"
)

// Network carries what payers send to the bot of one stage, and what the bot
// says to them. Payers have the names that the conversation gives them; what the
// network itself calls them is its own affair.
type Network interface {
	// Send takes a message of the bot, as checkout.Config.Send does.
	Send(ctx context.Context, o checkout.Outgoing) error
	// Say has a payer send something, and returns when the bot has taken it in.
	Say(s Saying)
	// Again delivers what was said last once more.
	Again()
	// Fade makes the messages of a payer's chat disappear after a while.
	Fade(payer string, after time.Duration)
	// Heard is what payers read since it was asked last: first what the first one
	// read, in order, then the second one.
	Heard() []Heard
}

// Saying is something that a payer sends.
type Saying struct {
	Payer  string
	Kind   bot.Kind
	Text   string
	Own    bool   // it is typed on the phone of the bot's number, to the payer
	Edit   bool   // it takes the place of what the payer said last
	Quoted string // the id of the message that it answers to, "" for none
}

// Heard is a message as a payer read it.
type Heard struct{ Payer, ID, Text string }

// Config is what a stage is made of.
type Config struct {
	Places checkout.Places
	Forget func() // what Places hold
	// Seed is what ids are made from, "" for the usual one. Stages whose messages
	// meet need one each.
	Seed string
	// Join makes the network, once the stage has a bot that can be written to.
	Join func(s *Stage) Network
}

// Stage is everything that a conversation needs: the real store, rules, words
// and bank, and a clock that the conversation moves.
type Stage struct {
	Bot     *bot.Bot
	Service *checkout.Service

	tb     testing.TB
	forget func()
	net    Network
	db     *store.DB
	words  *bot.Words
	rail   *sandbox.Rail
	told   chan struct{}

	mu  sync.Mutex // guards now
	now time.Time

	// only the conversation touches these
	policy  flow.Policy // of the sessions that it opens
	session flow.SessionID
	codes   []string          // of every session, oldest first
	said    map[string]string // the id of the last message of ours that begins with these words
	account string
	paid    string // the bank's name of the last transfer
	dial    string
	turns   int // that payers took
}

// New puts a bot on a stage, until the test ends.
func New(tb testing.TB, c Config) *Stage {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	s := &Stage{
		tb: tb, forget: c.Forget, told: make(chan struct{}, 100), said: map[string]string{},
		now: time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC), policy: flow.DefaultPolicy(),
	}
	var err error
	s.db, err = store.Open(ctx, storetest.SQLite(tb, store.Checkout))
	s.must(err)
	bank, err := sandbox.Open(sandbox.Config{Now: s.Clock, Rand: seeded(1, ""), BaseURL: "http://bank.test"})
	s.must(err)
	doors := httptest.NewServer(bank.Handler())
	s.rail, err = sandbox.NewRail(sandbox.RailConfig{ //nolint:gosec // as its secret says
		BaseURL: doors.URL, HTTP: doors.Client(), Now: s.Clock,
		Secret: "not a real secret, only long enough",
	})
	s.must(err)
	s.words, err = bot.LoadWords()
	s.must(err)
	s.Service, err = checkout.New(checkout.Config{
		DB: s.db, Rail: s.rail, Places: c.Places, Words: s.words.Render, Copy: s.words.Version(), Banks: rail.USSDMenu(),
		Number: func() string { return Number }, Send: func(ctx context.Context, o checkout.Outgoing) error { return s.net.Send(ctx, o) },
		Post: func(context.Context, flow.Delivery) flow.Verdict { return flow.Verdict{OK: true} },
		Next: func(flow.Delivery, flow.Verdict) (time.Duration, bool) { return 0, false },
		Now:  s.Clock, Rand: seeded(2, c.Seed), Alone: true, Log: slog.New(slog.DiscardHandler),
	})
	s.must(err)
	s.Bot = bot.New(s.Service.Hear, s.Service.Tick, rail.USSDMenu(), s.Clock)
	s.net = c.Join(s)
	notices := httptest.NewServer(http.HandlerFunc(s.notice))
	var done sync.WaitGroup
	done.Go(func() { _ = s.Service.Run(ctx) })
	done.Go(func() { _ = bank.Run(ctx) })
	tb.Cleanup(func() {
		cancel()
		done.Wait()
		notices.Close()
		s.rail.Close()
		doors.Close()
		_ = bank.Close()
		_ = s.db.Close()
	})
	s.must(s.rail.Register(ctx, notices.URL))
	return s
}

// seeded is a source of the same bytes every time.
func seeded(n byte, seed string) io.Reader {
	key := [32]byte{n}
	if seed != "" {
		key = sha256.Sum256(append(key[:], seed...))
	}
	return &source{r: rand.NewChaCha8(key)}
}

type source struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

// Read never fails.
func (l *source) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

// Clock is what time it is on the stage.
func (s *Stage) Clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// moment is how much later each thing happens than the one before it: what is
// told apart by when it was made has to be.
const moment = time.Millisecond

// pass moves the clock.
func (s *Stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Play runs a conversation and returns it as it came out; between happens before
// each line of it. A line that begins with
//
//	>  is what the payer writes          2> what another one writes
//	<  is what the bot answers           !  is what the world does
//	#  is for the reader
//
// and a line of a bot's message after its first begins with "| ".
func (s *Stage) Play(script string, between func()) string {
	s.tb.Helper()
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "| ") || line == "|" {
			continue // what the bot really says is written instead
		}
		_, _ = out.WriteString(line + "\n")
		between()
		text, is := strings.CutPrefix(line, "> ")
		other, isOther := strings.CutPrefix(line, "2> ")
		does, isWorld := strings.CutPrefix(line, "! ")
		var heard []string
		switch {
		case is:
			heard = s.Turn(First, text)
		case isOther:
			heard = s.Turn(Second, other)
		case isWorld:
			heard = s.World(strings.Fields(does)...)
		}
		for _, text := range heard {
			_, _ = out.WriteString("< " + strings.ReplaceAll(text, "\n", "\n| ") + "\n")
		}
	}
	return out.String()
}

// Turn lets a payer send something, and returns what is answered. What is
// answered to anybody but the first payer begins with their name in brackets.
func (s *Stage) Turn(payer, text string) []string {
	s.tb.Helper()
	s.pass(moment)
	s.says(payer, text)
	return s.heard()
}

// World lets something happen around the chat, and returns what is said of it,
// as Turn does.
func (s *Stage) World(words ...string) []string {
	s.tb.Helper()
	s.pass(moment)
	s.happens(words)
	return s.heard()
}

// Recording is the recorded chat of a person with the bot, as checkout.Inbound
// names them; false where there is none.
func (s *Stage) Recording(person string) (replay.Recording, bool) {
	s.tb.Helper()
	row, found, err := s.db.ChatOf(s.tb.Context(), Number, person)
	s.must(err)
	if !found {
		return replay.Recording{}, false
	}
	list, err := checkout.Recordings(s.tb.Context(), s.db.Reader, "", row.ID)
	s.must(err)
	return list[0], true
}

// Verify decides every turn of a recording again.
func (s *Stage) Verify(rec replay.Recording) replay.Report {
	s.tb.Helper()
	report, err := replay.Verify(rec, s.words.Render)
	s.must(err)
	return report
}

var (
	account = regexp.MustCompile(`^\d{10}$`)
	dialled = regexp.MustCompile(`^\*\d+\*000\*(\d+)#$`)
)

// heard waits until nothing that is due is left undone, and then listens.
func (s *Stage) heard() []string {
	s.tb.Helper()
	await.Until(s.tb, "the service rests", func() bool {
		s.Service.Wake()
		idle, err := s.Service.Idle(s.tb.Context())
		s.must(err)
		return idle
	})
	var out []string
	for _, h := range s.net.Heard() {
		first, _, _ := strings.Cut(h.Text, "\n")
		s.said[first] = h.ID
		if account.MatchString(h.Text) {
			s.account = h.Text
		}
		if m := dialled.FindStringSubmatch(h.Text); m != nil {
			s.dial = m[1]
		}
		if h.Payer != First {
			h.Text = "(" + h.Payer + ") " + h.Text
		}
		out = append(out, h.Text)
	}
	return out
}

// notice is where the bank's notices arrive.
func (s *Stage) notice(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.Service.Notice(r.Context(), r.Header, body)
	}
	if err != nil {
		s.tb.Errorf("a notice was not taken in: %v", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.told <- struct{}{}
}

func (s *Stage) must(err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
}

// call is an API call that makes a session.
func (s *Stage) call() checkout.Call {
	return checkout.Call{Project: "wsp_prj_1", Render: func(v checkout.Made) (int, []byte, error) {
		if s.session != v.Session.ID && v.Session.EntryCode != "" {
			s.codes = append(s.codes, v.Session.EntryCode)
		}
		s.session = v.Session.ID
		body, err := json.Marshal(v.Session.ID)
		return http.StatusCreated, body, err
	}}
}
