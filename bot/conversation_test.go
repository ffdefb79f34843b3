package bot_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"till/flow/await"
	"till/bot"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
	"till/rail/sandbox"
)

var update = flag.Bool("update", false, "write the golden conversations anew")

// A conversation is one file of testdata: it is played, and must come out as it
// is written. A line that begins with
//
//	>  is what the payer writes          <  is what the bot answers
//	!  is what the world does            #  is for the reader
//
// and a line of a bot's message after its first begins with "| ".
func TestGoldenConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			places := &checkout.MemoryPlaces{}
			s := newStage(t, places, places.Forget)
			got := s.play(string(want), func() {})
			if *record {
				s.recorded(filepath.Base(file))
			}
			if got == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s came out as:\n%s", file, got)
		})
	}
}

// stage is everything a conversation needs: the real store, rules, words and
// bank, and a clock that the conversation moves.
type stage struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	now      time.Time
	sent     []string // what the bot said since it was last looked at
	told     chan struct{}
	bot      *bot.Bot
	service  *checkout.Service
	db       *store.DB
	rail     *sandbox.Rail
	places   checkout.Places
	forget   func()        // what the places hold
	longest  time.Duration // that a message took to be taken in
	bank     *httptest.Server
	messages int
	last     bot.Message
	session  flow.SessionID
	codes    []string          // of every session, oldest first
	said     map[string]string // the id of the last message of ours that begins with these words
	fades    time.Duration
	account  string
	dial     string
}

// play runs a conversation; between happens before each line of it.
func (s *stage) play(script string, between func()) string {
	s.t.Helper()
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "| ") || line == "|" {
			continue // what the bot really says is written instead
		}
		out.WriteString(line + "\n")
		between()
		switch {
		case strings.HasPrefix(line, "> "):
			s.says("person-1", strings.TrimPrefix(line, "> "))
		case strings.HasPrefix(line, "2> "):
			s.says("person-2", strings.TrimPrefix(line, "2> "))
		case strings.HasPrefix(line, "! "):
			s.world(strings.Fields(strings.TrimPrefix(line, "! ")))
		default:
			continue
		}
		s.settle()
		for _, text := range s.heard() {
			out.WriteString("< " + strings.ReplaceAll(text, "\n", "\n| ") + "\n")
		}
	}
	return out.String()
}

func newStage(t *testing.T, places checkout.Places, forget func()) *stage {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stage{
		t: t, ctx: ctx, now: time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC), told: make(chan struct{}, 100), places: places, forget: forget,
		said: map[string]string{},
	}
	var err error
	if s.db, err = store.Open(ctx, store.Config{Schema: store.Checkout, Dir: t.TempDir(), Name: "test"}); err != nil {
		t.Fatal(err)
	}
	bank, err := sandbox.Open(sandbox.Config{Now: s.clock, Rand: seeded(1), BaseURL: "http://bank.test"})
	if err != nil {
		t.Fatal(err)
	}
	s.bank = httptest.NewServer(bank.Handler())
	if s.rail, err = sandbox.NewRail(sandbox.RailConfig{BaseURL: s.bank.URL, Secret: "not a real secret, only long enough", HTTP: s.bank.Client(), Now: s.clock}); err != nil {
		t.Fatal(err)
	}
	words, err := bot.LoadWords()
	if err != nil {
		t.Fatal(err)
	}
	s.service, err = checkout.New(checkout.Config{
		DB: s.db, Rail: s.rail, Places: s.places, Words: words.Render, Copy: words.Version(), Banks: rail.USSDMenu(),
		Number: func() string { return "2349010000001" }, Send: s.send,
		Post: func(context.Context, flow.Delivery) flow.Verdict { return flow.Verdict{OK: true} },
		Next: func(flow.Delivery, flow.Verdict) (time.Duration, bool) { return 0, false },
		Now:  s.clock, Rand: seeded(2), Alone: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.bot = bot.New(s.service.Hear, s.service.Tick, rail.USSDMenu(), s.clock, slog.New(slog.DiscardHandler))
	notices := httptest.NewServer(http.HandlerFunc(s.notice))
	var done sync.WaitGroup
	done.Go(func() { _ = s.service.Run(ctx) })
	done.Go(func() { _ = bank.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
		notices.Close()
		s.bank.Close()
		_ = bank.Close()
		_ = s.db.Close()
	})
	if err := s.rail.Register(ctx, notices.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

// seeded is a source of the same bytes every time.
func seeded(n byte) io.Reader { return &lockedSource{r: rand.NewChaCha8([32]byte{n})} }

type lockedSource struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (l *lockedSource) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

func (s *stage) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

var (
	account = regexp.MustCompile(`^\d{10}$`)
	dialled = regexp.MustCompile(`^\*\d+\*000\*(\d+)#$`)
)

func (s *stage) send(_ context.Context, o checkout.Outgoing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := o.Text
	first, _, _ := strings.Cut(text, "\n")
	s.said[first] = o.ID
	if account.MatchString(text) {
		s.account = text
	}
	if m := dialled.FindStringSubmatch(text); m != nil {
		s.dial = m[1]
	}
	if o.Person != "person-1" {
		text = "(" + o.Person + ") " + text
	}
	s.sent = append(s.sent, text)
	return nil
}

func (s *stage) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	slices.SortStableFunc(out, func(a, b string) int { // chats do not wait for each other
		return cmp.Compare(strings.Index(a, "(person-"), strings.Index(b, "(person-"))
	})
	return out
}

// notice is where the bank's notices arrive.
func (s *stage) notice(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.service.Notice(r.Context(), r.Header, body)
	}
	if err != nil {
		s.t.Errorf("a notice was not taken in: %v", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.told <- struct{}{}
}

// settle waits until nothing that is due is left undone.
func (s *stage) settle() {
	s.t.Helper()
	await.Until(s.t, "the service rests", func() bool {
		s.service.Wake()
		idle, err := s.service.Idle(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		return idle
	})
}

// kinds are the messages that are not text, as a conversation writes them.
var kinds = map[string]bot.Kind{
	"(picture)": bot.KindPicture, "(document)": bot.KindDocument, "(voice)": bot.KindVoice, "(sticker)": bot.KindSticker, "(place)": bot.KindPlace,
	"(reaction)": bot.KindReaction, "(took back)": bot.KindRevoke, "(call)": bot.KindCall,
}

// says is a person sending something. A text may begin with what it is: an edit
// of the last one, something typed on the phone of our number, or an answer to
// the message of ours that begins with certain words.
func (s *stage) says(person, text string) {
	s.t.Helper()
	s.messages++
	m := bot.Message{
		Number: "2349010000001", Person: person, Phone: flow.Phone("23480310000" + strings.TrimPrefix(person, "person-") + "0"), Name: "Bola",
		ID: fmt.Sprintf("IN%d", s.messages), Fades: s.fades, At: s.clock(),
	}
	if rest, is := strings.CutPrefix(text, "(edit) "); is {
		text, m.Edits = rest, s.last.ID
	}
	if rest, is := strings.CutPrefix(text, "(typed on our phone) "); is {
		text, m.Own = rest, true
	}
	if rest, is := strings.CutPrefix(text, "(quoting "); is {
		quoted, rest, _ := strings.Cut(rest, ") ")
		text = rest
		for first, id := range s.said {
			if strings.HasPrefix(first, quoted) {
				m.Quoted = id
			}
		}
		if m.Quoted == "" {
			s.t.Fatalf("nothing that was said begins with %q", quoted)
		}
	}
	for i, code := range s.codes {
		text = strings.ReplaceAll(text, fmt.Sprint("CODE", i+1), flow.ShowCode(code))
	}
	if len(s.codes) > 0 {
		text = strings.ReplaceAll(text, "CODE", flow.ShowCode(s.codes[len(s.codes)-1]))
	}
	m.Text = text
	if kind, is := kinds[text]; is {
		m.Kind, m.Text = kind, ""
	}
	s.last = m
	s.receive()
}

func (s *stage) receive() {
	s.t.Helper()
	began := time.Now()
	if err := s.bot.Receive(s.ctx, s.last); err != nil {
		s.t.Fatal(err)
	}
	s.longest = max(s.longest, time.Since(began))
}

// world is what happens around the chat.
func (s *stage) world(words []string) {
	s.t.Helper()
	amount := 0
	if len(words) > 1 {
		amount, _ = strconv.Atoi(strings.ReplaceAll(words[1], ",", ""))
	}
	switch words[0] {
	case "session": // amount in kobo, methods
		s.open(amount, 1, words[2:])
	case "session-days": // amount in kobo, days, methods
		days, _ := strconv.Atoi(words[2])
		s.open(amount, days, words[3:])
	case "again": // WhatsApp delivers the payer's last message once more
		s.receive()
	case "flushall":
		s.forget()
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.mu.Lock()
		s.now = s.now.Add(d)
		s.mu.Unlock()
		s.service.Wake()
	case "pay": // kobo, to the account number in the chat; nothing: what is asked for
		s.transfer(rail.Transfer{AccountNumber: s.account, Amount: flow.Kobo(amount), SenderName: "BOLA ADE"}, 1)
	case "pay-unheard": // the bank's notice is lost
		s.transfer(rail.Transfer{AccountNumber: s.account, Drop: true}, 0)
	case "pay-thrice": // the bank tells three times of one transfer
		s.transfer(rail.Transfer{AccountNumber: s.account, Copies: 3}, 3)
	case "ussd":
		s.must(s.rail.CompleteUSSD(s.ctx, s.dial, words[1]))
		s.wait(1)
	case "card":
		attempts, err := s.db.Attempts(s.ctx, s.session)
		s.must(err)
		s.must(s.rail.CompleteCard(s.ctx, attempts[len(attempts)-1].Reference, words[1]))
		s.wait(1)
	case "bank": // up or down
		_, err := s.rail.SetConditions(s.ctx, rail.Conditions{Up: words[1] == "up"})
		s.must(err)
	case "fades": // the payer makes messages of this chat disappear
		s.fades = 24 * time.Hour
	case "agent": // claim, reply TEXT or release
		s.agent(words[1], strings.Join(words[2:], " "))
	case "merchant-cancels":
		_, err := s.service.Cancel(s.ctx, s.session, s.call())
		s.must(err)
	case "calls": // how often the bank was called for this session
		calls, err := s.rail.Calls(s.ctx, 0, 100)
		s.must(err)
		n := len(slices.DeleteFunc(calls, func(c rail.Call) bool { return c.Session != string(s.session) }))
		if n != amount {
			s.t.Errorf("the bank was called %d times, not %d", n, amount)
		}
	default:
		s.t.Fatalf("the world cannot do %q", words)
	}
}

// agent is somebody of support who does something in the chat that waits
// longest.
func (s *stage) agent(does, text string) {
	s.t.Helper()
	queue, err := s.service.Desk(s.ctx)
	s.must(err)
	if len(queue) == 0 {
		s.t.Fatal("no chat waits for anybody")
	}
	switch does {
	case "claim":
		s.must(s.service.Claim(s.ctx, queue[0].ID, "ngozi", 0))
	case "reply":
		s.must(s.service.Reply(s.ctx, queue[0].ID, "ngozi", text))
	case "release":
		s.must(s.service.Release(s.ctx, queue[0].ID, "ngozi"))
	default:
		s.t.Fatalf("an agent cannot %s", does)
	}
	s.service.Wake()
}

func (s *stage) transfer(t rail.Transfer, notices int) {
	s.t.Helper()
	_, err := s.rail.Transfer(s.ctx, t)
	s.must(err)
	s.wait(notices)
}

// wait waits until the bank's notices were taken in.
func (s *stage) wait(n int) {
	s.t.Helper()
	for range n {
		select {
		case <-s.told:
		case <-time.After(20 * time.Second):
			s.t.Fatal("the bank's notice never came")
		}
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) call() checkout.Call {
	return checkout.Call{Project: "wsp_prj_1", Render: func(v checkout.Made) (int, []byte, error) {
		if s.session != v.Session.ID && v.Session.EntryCode != "" {
			s.codes = append(s.codes, v.Session.EntryCode)
		}
		s.session = v.Session.ID
		body, err := json.Marshal(v.Session.ID)
		return http.StatusCreated, body, err
	}}
}

func (s *stage) open(amount, days int, methods []string) {
	s.t.Helper()
	n := checkout.NewSession{
		Merchant: "Ada Stores", Mode: flow.InChat, Amount: flow.Kobo(amount), CustomerEmail: "bola@example.com", Reference: "order-" + strconv.Itoa(s.messages+1),
		AllowedMethods: flow.Methods(), ExpiresIn: time.Duration(days) * 24 * time.Hour, Policy: flow.DefaultPolicy(),
	}
	if len(methods) > 0 {
		n.AllowedMethods = nil
		for _, m := range methods {
			n.AllowedMethods = append(n.AllowedMethods, flow.Method(m))
		}
	}
	_, err := s.service.Open(s.ctx, n, s.call())
	s.must(err)
}
