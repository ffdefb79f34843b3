package whatsapp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"

	"till/bot"
	"till/bot/bottest"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/replay"
)

// atOnce is how many conversations one number holds at a time here.
const atOnce = 8

// Every golden conversation of the bot comes out as it is written when all that
// is said in it crosses the network: each payer is a phone, and one number
// speaks with all of them. Nothing is lost, doubled or out of order on the way,
// and what was recorded is decided again the same way.
func TestConversationsOverTheNetwork(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	e := newExchange(t)
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, file := range files {
		// Subtests that wait for each other's messages, not for the processor:
		// more of them than t.Parallel would let run.
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { e.plays(t, file) })
		})
	}
	all.Wait()
	settle(t, e.net)
	if s := e.net.Stats(); s.Retries > 0 || s.Undecoded > 0 || s.Nacked > 0 {
		t.Errorf("not everything arrived at once: %+v", s)
	}
}

// exchange is a network with one number of ours, that many stages share.
type exchange struct {
	t      *testing.T
	net    *wanet.Network
	client *whatsapp.Client
	own    *wanet.Phone // of our number

	mu    sync.Mutex       // guards all below
	lines map[string]*line // by the LID of a payer
	sent  map[string]*line // by the id of a message of ours
}

func newExchange(t *testing.T) *exchange {
	t.Helper()
	e := &exchange{t: t, net: network(t), lines: map[string]*line{}, sent: map[string]*line{}}
	root := e.net.RootKey()
	codes := make(chan string, 10)
	var err error
	e.client, err = whatsapp.Open(t.Context(), whatsapp.Config{
		File: filepath.Join(t.TempDir(), "keys.db"), Dial: e.net.DialContext, RootKey: &root, PushName: "Till", Now: time.Now,
		Log: slog.New(slog.DiscardHandler), OnPairing: func(qr string) { codes <- qr }, Receive: e.receive, Tick: e.tick,
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.client.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
		must(t, e.client.Close())
	})
	owner, err := e.net.AddAccount(bottest.Number, "Owner")
	must(t, err)
	e.own, err = owner.AddPhone()
	must(t, err)
	must(t, owner.ScanQR(got(t, codes)))
	soon, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	must(t, e.client.Await(soon, func(s whatsapp.State) bool { return s == whatsapp.StateConnected }))
	return e
}

// receive hands a message to the stage that its payer is on.
func (e *exchange) receive(ctx context.Context, m bot.Message) error {
	e.mu.Lock()
	l := e.lines[m.Person]
	e.mu.Unlock()
	if l == nil {
		e.t.Errorf("a message came from nobody: %+v", m)
		return bot.ErrMessage
	}
	if err := l.stage.Bot.Receive(ctx, m); err != nil {
		l.t.Errorf("a message was not taken in: %v", err)
		return err
	}
	select {
	case l.taken <- m.ID:
	default:
		l.t.Error("far more messages came than were sent")
	}
	return nil
}

func (e *exchange) tick(ctx context.Context, tick checkout.Tick) error {
	e.mu.Lock()
	l := e.sent[tick.Message]
	e.mu.Unlock()
	if l == nil { // it was typed on our own phone
		return nil
	}
	return l.stage.Bot.Tick(ctx, tick)
}

// line is how the payers of one conversation are reached.
type line struct {
	*exchange

	t      *testing.T
	stage  *bottest.Stage
	payers map[string]*payer // by what the conversation calls them
	taken  chan string       // the ids of what the bot took in
	last   func()            // sends what was sent last once more

	mu   sync.Mutex // guards owed
	owed map[string][]string
}

// payer is a phone that writes to us.
type payer struct {
	*wanet.Phone

	seen  int64  // how far its messages were read
	wrote string // the id of what it wrote last
	fades time.Duration
	typed map[string]bool // the ids of what was typed for it on our own phone
	heard []bottest.Heard
}

// plays plays a conversation. Its messages have ids of their own, and its payers
// numbers.
func (e *exchange) plays(t *testing.T, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	must(t, err)
	places := &checkout.MemoryPlaces{}
	l := &line{exchange: e, t: t, payers: map[string]*payer{}, taken: make(chan string, 1000), owed: map[string][]string{}}
	for _, name := range []string{bottest.First, bottest.Second} {
		p := &payer{Phone: phone(t, e.net, "", "Bola"), typed: map[string]bool{}}
		l.payers[name] = p
		e.mu.Lock()
		e.lines[p.Account().LID()] = l
		e.mu.Unlock()
	}
	l.stage = bottest.New(t, bottest.Config{Places: places, Forget: places.Forget, Seed: file, Join: func(s *bottest.Stage) bottest.Network {
		l.stage = s
		return l
	}})
	if got := l.stage.Play(string(want), func() {}); got != string(want) {
		t.Errorf("%s came out as:\n%s", file, got)
	}
	for _, p := range l.payers {
		l.recorded(p)
	}
}

// recorded holds the recorded chat of a payer to what their phone shows: all of
// it was sent once and read, and it is decided again the same way.
func (l *line) recorded(p *payer) {
	l.t.Helper()
	lid := p.Account().LID()
	rec, found := l.stage.Recording(lid)
	if !found {
		if len(p.heard) > 0 {
			l.t.Error("a chat is not recorded")
		}
		return
	}
	if report := l.stage.Verify(rec); report.Worst() != replay.Same || report.Turns == 0 {
		l.t.Errorf("decided again, %d turns come out as %+v", report.Turns, report.Differences)
	}
	texts := map[string]string{}
	for _, r := range rec.Lines {
		if r.Kind == replay.Decided {
			var o replay.Outcome
			must(l.t, json.Unmarshal(r.Data, &o))
			for _, text := range o.Texts {
				texts[text.ID] = text.Text
			}
		}
	}
	for _, h := range p.heard {
		if text, is := texts[h.ID]; !is || text != h.Text {
			l.t.Errorf("the phone shows %q, recorded is %q", h.Text, text)
		}
	}
	await.Until(l.t, "it is recorded that all was read", func() bool {
		rec, _ := l.stage.Recording(lid)
		became := map[string]int{} // a tick can overtake the word that the message was sent
		for _, r := range rec.Lines {
			switch r.Kind {
			case "sent", "delivered", "read":
				became[r.Kind]++
				became[r.Kind+r.Message]++
			}
		}
		for _, h := range p.heard {
			if became["read"+h.ID] != 1 {
				return false
			}
		}
		return became["read"] == len(p.heard) && became["sent"] <= len(p.heard) && became["delivered"] <= len(p.heard)
	})
}

// Send takes a message of the bot to a payer.
func (l *line) Send(ctx context.Context, o checkout.Outgoing) error {
	l.exchange.mu.Lock()
	l.sent[o.ID] = l
	l.exchange.mu.Unlock()
	if err := l.client.Send(ctx, o); err != nil {
		l.t.Errorf("a message was not sent: %v", err)
		return err
	}
	l.owe(o.Person, o.ID)
	return nil
}

// owe keeps in mind that a message is to arrive.
func (l *line) owe(person, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed[person] = append(l.owed[person], id)
}

// Heard waits for all that was sent, and returns what the phones show of it.
func (l *line) Heard() []bottest.Heard {
	l.t.Helper()
	var out []bottest.Heard
	for _, name := range []string{bottest.First, bottest.Second} {
		p := l.payers[name]
		l.mu.Lock()
		owed := map[string]bool{}
		for _, id := range l.owed[p.Account().LID()] {
			owed[id] = true
		}
		delete(l.owed, p.Account().LID())
		l.mu.Unlock()
		for {
			wait := within
			if len(owed) == 0 {
				wait = 0
			}
			shown, next, err := p.Messages(l.t.Context(), p.seen, wait)
			must(l.t, err)
			if len(shown) == 0 {
				break
			}
			p.seen = next
			for _, m := range shown {
				if m.FromMe {
					continue
				}
				if !owed[m.ID] {
					l.t.Errorf("a message was shown that was not sent, or twice: %+v", m)
				}
				delete(owed, m.ID)
				if p.typed[m.ID] {
					continue
				}
				if m.Fades != uint32(p.fades/time.Second) {
					l.t.Errorf("a message stays for %d seconds, the chat keeps them for %v", m.Fades, p.fades)
				}
				h := bottest.Heard{Payer: name, ID: m.ID, Text: m.Text}
				p.heard = append(p.heard, h)
				out = append(out, h)
			}
		}
		if len(owed) > 0 {
			l.t.Errorf("%d messages never arrived", len(owed))
		}
		must(l.t, p.MarkRead(l.t.Context(), bottest.Number))
	}
	return out
}

// take waits until the bot has taken in a message.
func (l *line) take(id string) {
	l.t.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		select {
		case taken := <-l.taken:
			if taken == id {
				return
			}
		case <-late.C:
			l.t.Fatalf("the bot never took in what was sent")
		}
	}
}

// Say has a payer send something.
func (l *line) Say(s bottest.Saying) {
	l.t.Helper()
	ctx, p := l.t.Context(), l.payers[s.Payer]
	if s.Own {
		m, err := l.own.Send(ctx, p.Account().Phone(), s.Text)
		must(l.t, err)
		p.typed[m.ID] = true
		l.owe(p.Account().LID(), m.ID)
		l.take(m.ID)
		return
	}
	if s.Kind == bot.KindCall {
		id, err := p.Call(ctx, bottest.Number, false)
		must(l.t, err)
		l.take(id)
		if ok, err := p.WaitRejected(ctx, id, within); !ok || err != nil {
			l.t.Errorf("a call was not rejected: %v", err)
		}
		return
	}
	m, err := p.write(ctx, s)
	must(l.t, err)
	l.take(m.ID)
	l.last = func() {
		must(l.t, p.Repeat(ctx, bottest.Number, m.ID))
		l.take(m.ID)
	}
}

// write sends what a phone can write.
func (p *payer) write(ctx context.Context, s bottest.Saying) (m wanet.Message, err error) {
	media := map[bot.Kind]*waE2E.Message{
		bot.KindPicture:  {ImageMessage: &waE2E.ImageMessage{Caption: &s.Text}},
		bot.KindDocument: {DocumentMessage: &waE2E.DocumentMessage{FileName: new("receipt.pdf"), Caption: &s.Text}},
		bot.KindVoice:    {AudioMessage: &waE2E.AudioMessage{PTT: new(true)}},
		bot.KindVideo:    {VideoMessage: &waE2E.VideoMessage{}},
		bot.KindSticker:  {StickerMessage: &waE2E.StickerMessage{}},
		bot.KindPlace:    {LocationMessage: &waE2E.LocationMessage{Name: new("the shop")}},
		bot.KindContact:  {ContactMessage: &waE2E.ContactMessage{DisplayName: new("Ada")}},
		bot.KindPoll:     {PollCreationMessage: &waE2E.PollCreationMessage{Name: new("how?")}},
	}
	switch {
	case s.Edit:
		return p.Edit(ctx, bottest.Number, p.wrote, s.Text)
	case s.Kind == bot.KindRevoke:
		return p.Revoke(ctx, bottest.Number, p.wrote)
	case s.Kind == bot.KindReaction:
		return p.React(ctx, bottest.Number, p.heard[len(p.heard)-1].ID, "👍")
	case s.Quoted != "":
		m, err = p.SendQuote(ctx, bottest.Number, s.Text, s.Quoted)
	case media[s.Kind] != nil:
		m, err = p.SendMessage(ctx, bottest.Number, media[s.Kind])
	default:
		m, err = p.Send(ctx, bottest.Number, s.Text)
	}
	p.wrote = m.ID
	return m, err
}

// Again has the phone that wrote last send it again, as one does that was not
// told whether it arrived.
func (l *line) Again() {
	l.t.Helper()
	l.last()
}

// Fade makes the messages of a payer's chat disappear.
func (l *line) Fade(name string, after time.Duration) {
	l.t.Helper()
	p := l.payers[name]
	p.fades = after
	m, err := p.SetDisappearing(l.t.Context(), bottest.Number, after)
	must(l.t, err)
	l.take(m.ID)
}
