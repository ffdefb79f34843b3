package bot_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"till/bot"
	"till/bot/bottest"
	"till/flow"
	"till/flow/checkout"
)

var update = flag.Bool("update", false, "write the golden conversations anew")

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// A conversation is one file of testdata: it is played, and must come out as it
// is written. bottest.Stage.Play says how it is written.
func TestGoldenConversations(t *testing.T) {
	sweeps(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			must(t, err)
			places := &checkout.MemoryPlaces{}
			s := newStage(t, places, places.Forget)
			got := s.Play(string(want), func() {})
			if *record {
				s.recorded(filepath.Base(file))
			}
			if got == string(want) {
				return
			}
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			t.Errorf("%s came out as:\n%s", file, got)
		})
	}
}

// stage is a stage without any network.
type stage struct {
	*bottest.Stage
	*direct
}

// direct hands over without any network what is said.
type direct struct {
	t        *testing.T
	stage    *bottest.Stage
	messages int
	last     bot.Message
	wrote    string // the id of the last message that changes no other
	fades    time.Duration
	longest  time.Duration // that a message took to be taken in

	mu   sync.Mutex // guards sent
	sent []bottest.Heard
}

func newStage(t *testing.T, places checkout.Places, forget func()) *stage {
	t.Helper()
	d := &direct{t: t}
	d.stage = bottest.New(t, bottest.Config{Places: places, Forget: forget, Join: func(s *bottest.Stage) bottest.Network {
		d.stage = s
		return d
	}})
	return &stage{Stage: d.stage, direct: d}
}

// Send takes a message of the bot.
func (d *direct) Send(_ context.Context, o checkout.Outgoing) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, bottest.Heard{Payer: o.Person, ID: o.ID, Text: o.Text})
	return nil
}

// Heard is what was sent since it was asked last.
func (d *direct) Heard() []bottest.Heard {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.sent
	d.sent = nil
	slices.SortStableFunc(out, func(a, b bottest.Heard) int { return cmp.Compare(a.Payer, b.Payer) }) // chats do not wait for each other
	return out
}

// Say has a payer send something.
func (d *direct) Say(s bottest.Saying) {
	d.t.Helper()
	d.messages++
	m := bot.Message{
		Number: bottest.Number, Person: s.Payer, Phone: flow.Phone("23480310000" + strings.TrimPrefix(s.Payer, "person-") + "0"), Name: "Bola",
		ID: fmt.Sprintf("IN%d", d.messages), Kind: s.Kind, Text: s.Text, Own: s.Own, Quoted: s.Quoted, Fades: d.fades,
	}
	switch {
	case s.Edit:
		m.Edits = d.wrote
	case s.Kind == bot.KindRevoke:
		m.Revokes = d.wrote
	default:
		d.wrote = m.ID
	}
	d.last = m
	d.Again()
}

// Again delivers what was said last once more.
func (d *direct) Again() {
	d.t.Helper()
	began := time.Now()
	must(d.t, d.stage.Bot.Receive(d.t.Context(), d.last))
	d.longest = max(d.longest, time.Since(began))
}

// Fade makes what payers send from now on disappear.
func (d *direct) Fade(_ string, after time.Duration) { d.fades = after }
