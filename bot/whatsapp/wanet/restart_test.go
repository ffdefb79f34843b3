package wanet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp/wanet"
)

// follow is a client of whichever network runs now.
func follow(now *atomic.Pointer[wanet.Network]) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if n := now.Load(); n != nil {
			return n.DialContext(ctx)
		}
		return nil, errors.New("no network runs")
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}
}

// A network that is opened again knows its clients, phones, chats and what was
// not delivered; neither side has to start over.
func TestRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "network")
	var now atomic.Pointer[wanet.Network]
	now.Store(open(t, file))
	c := newClient(t, follow(&now), filepath.Join(t.TempDir(), "bot.db"))
	link(t, now.Load(), c)
	p := phone(t, now.Load(), payer(1))
	owner := phone(t, now.Load(), botNumber)
	say(t, p, botNumber, "before")
	m := c.expect(t, "before")
	c.text(t, m.Info.Chat, "answer before")
	(&ear{}).hears(t, p, "answer before")
	(&ear{}).hears(t, owner, "before")
	settle(t, now.Load())
	c.Disconnect()
	waiting := say(t, p, botNumber, "waits")
	root, lid := now.Load().RootKey(), p.Account().LID()
	must(t, now.Load().Close())

	n := open(t, file)
	now.Store(n)
	t.Cleanup(c.stop) // before the network: the stock client races with itself when both hang up
	if n.RootKey() != root {
		t.Fatal("the root key changed")
	}
	p, ok := n.Phone(payer(1))
	if !ok || p.Account().LID() != lid {
		t.Fatal("the phone is not there any more, or is another person")
	}
	items, _, err := p.Messages(t.Context(), 0, 0)
	must(t, err)
	if len(items) != 3 || items[1].Text != "answer before" || items[2].ID != waiting.ID {
		t.Fatalf("the chat is now %+v", items)
	}
	must(t, c.Connect())
	c.expect(t, "waits")
	e := ear{next: items[2].Seq}
	for i := range 3 {
		say(t, p, botNumber, fmt.Sprint("after ", i))
		c.expect(t, fmt.Sprint("after ", i))
		c.text(t, m.Info.Chat, fmt.Sprint("answer ", i))
		e.hears(t, p, fmt.Sprint("answer ", i))
	}
	settle(t, n)
}

// The network goes away in the middle of a talk and comes back; the client
// reconnects by itself, and nothing is lost.
func TestRestartInTheMiddle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "network")
	var now atomic.Pointer[wanet.Network]
	now.Store(open(t, file))
	c := newClient(t, follow(&now), filepath.Join(t.TempDir(), "bot.db"))
	link(t, now.Load(), c)
	phone(t, now.Load(), payer(1))
	sent := 0
	for range 3 {
		n := now.Load()
		p, _ := n.Phone(payer(1))
		for range 5 {
			say(t, p, botNumber, fmt.Sprint("m", sent))
			sent++
		}
		must(t, n.Close())
		now.Store(open(t, file))
	}
	t.Cleanup(c.stop) // before the network: the stock client races with itself when both hang up
	got := map[string]int{}
	distinct(t, c, got, sent)
	for i := range sent {
		if got[fmt.Sprint("m", i)] == 0 {
			t.Fatalf("came: %v", got)
		}
	}
	settle(t, now.Load())
}

const helperEnv = "WANET_HELPER_FILE"

// TestHelperProcess is not a test: TestKilled runs it as the process to kill.
func TestHelperProcess(t *testing.T) {
	file := os.Getenv(helperEnv)
	if file == "" {
		t.Skip("only run by TestKilled")
	}
	n := open(t, file)
	ln, err := net.Listen("tcp", os.Getenv("WANET_HELPER_ADDR"))
	must(t, err)
	fmt.Println("serving " + ln.Addr().String())
	must(t, n.Serve(t.Context(), ln))
}

// helper starts a network in a process of its own and returns when it serves.
func helper(t *testing.T, file, addr string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperProcess$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), helperEnv+"="+file, "WANET_HELPER_ADDR="+addr)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			return cmd, rest
		}
	}
	t.Fatal("the helper did not serve")
	return nil, ""
}

// A network process that is killed, without a chance to tidy up, loses nothing
// that it had accepted, and doubles nothing.
func TestKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "network")
	cmd, addr := helper(t, file, "127.0.0.1:0")
	web := plainTCP(t, addr)
	r := wanet.NewRemote("http://"+addr, web)
	c := newClient(t, web, filepath.Join(t.TempDir(), "bot.db"))
	must(t, c.Connect())
	_, err := r.ScanQR(t.Context(), botNumber, "Owner", next[*events.QR](t, c).Codes[0])
	must(t, err)
	next[*events.Connected](t, c)
	p, err := r.AddPhone(t.Context(), "", "Ada")
	must(t, err)

	var mu sync.Mutex
	got := map[string]int{}
	var accepted []string
	heard := func() int { mu.Lock(); defer mu.Unlock(); return len(got) }
	done := make(chan struct{})
	var echoes sync.WaitGroup
	echoes.Go(func() {
		answerAll(t, c, done, stockMaySend, func(text string) { mu.Lock(); defer mu.Unlock(); got[text]++ })
	})
	for round := range 2 {
		var talk sync.WaitGroup
		talk.Go(func() {
			pace := time.NewTicker(5 * time.Millisecond) // or it sends far more than can be answered
			defer pace.Stop()
			for i := 0; ; i++ {
				<-pace.C
				text := fmt.Sprintf("%d-%d", round, i)
				if _, err := r.Send(t.Context(), p.Phone, botNumber, text); err != nil {
					return // it was killed
				}
				mu.Lock()
				accepted = append(accepted, text)
				mu.Unlock()
			}
		})
		before := heard()
		eventually(t, "the talk goes on", func() bool { return heard() >= before+8 })
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		talk.Wait()
		cmd, _ = helper(t, file, addr)
	}
	defer func() {
		if t.Failed() {
			mu.Lock()
			defer mu.Unlock()
			missing := slices.DeleteFunc(slices.Clone(accepted), func(text string) bool { return got[text] > 0 })
			t.Logf("%d accepted, %d missing from %v, %d wait unhandled", len(accepted), len(missing), missing[:min(3, len(missing))], len(c.messages))
			devices, err := r.Devices(context.Background())
			t.Logf("devices %+v %v", devices, err)
		}
	}()
	eventually(t, "every accepted message has come", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(accepted, func(text string) bool { return got[text] == 0 })
	})
	answers := map[string]int{}
	after := int64(0)
	eventually(t, "every one was answered", func() bool {
		items, next, err := r.Messages(t.Context(), p.Phone, after, 0)
		must(t, err)
		after = next
		for _, m := range items {
			if !m.FromMe {
				answers[m.Text]++
			}
		}
		return len(answers) >= heard() || !stockMaySend
	})
	close(done)
	echoes.Wait()
	for text := range got {
		// The stock client may hand a message over twice when the line broke before
		// it had acknowledged it; the phone sees one answer all the same.
		if stockMaySend && answers["re "+text] != 1 {
			t.Errorf("%q was answered %d times", text, answers["re "+text])
		}
	}
	t.Logf("%d messages over two kills", len(accepted))
	c.stop() // first: the stock client races with itself when both hang up
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// distinct takes messages until n different ones have come. When a line breaks
// before an ack, the stock client may hand a message over twice.
func distinct(t *testing.T, c *client, got map[string]int, n int) {
	t.Helper()
	for len(got) < n {
		got[textOf(c.message(t))]++
	}
}
