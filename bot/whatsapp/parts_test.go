package whatsapp_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/bot/whatsapp"
)

// With a fake clock: the first QR code is good for a minute, the others for 20
// seconds, and when they are used up a new line brings new ones.
func TestCodesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network(t)
		d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
		d.run()
		seen, last := map[string]bool{}, time.Now()
		for i, want := range []int{0, 60, 20, 20, 20, 20, 20, 60, 20} {
			code := <-d.codes
			if took := time.Since(last).Round(time.Second); took != time.Duration(want)*time.Second {
				t.Errorf("code %d came after %s, want %d s", i, took, want)
			}
			if shown, ok := d.Pairing(); seen[code] || !ok || shown != code {
				t.Errorf("code %d: seen %t, shown %t", i, seen[code], shown == code)
			}
			seen[code], last = true, time.Now()
		}
		shown, _ := d.Pairing()
		d.codes <- shown
		d.link(ourNumber)
		d.halt()
	})
}

// With a fake clock: hours of silence keep the line, keep-alives that stay
// without an answer end it, and a new one is there in minutes.
func TestDeadLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network(t)
		d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
		d.run()
		d.link(ourNumber)
		time.Sleep(5 * time.Hour)
		if strings.Contains(d.log.String(), "line is dead") || d.State() != string(whatsapp.StateConnected) {
			t.Fatalf("it is %s", d.State())
		}
		begun := time.Now()
		n.SilenceIQ(func(xmlns string) bool { return xmlns == "w:p" })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, d.Await(ctx, func(s whatsapp.State) bool { return s != whatsapp.StateConnected }))
		if took := time.Since(begun); took > 3*time.Minute {
			t.Errorf("noticed after %s", took)
		}
		n.SilenceIQ(nil)
		d.await(whatsapp.StateConnected)
		p := phone(t, n, ada, "Ada")
		say(t, p, "hello")
		if m := got(t, d.messages); m.Text != "hello" {
			t.Errorf("got %+v", m)
		}
		d.halt()
	})
}

// With a fake clock: a message that can never be kept does not make the line
// hectic, and others are heard all the while.
func TestRenewalsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network(t)
		var lines atomic.Int64
		d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), func(ctx context.Context) (net.Conn, error) {
			lines.Add(1)
			return n.DialContext(ctx)
		})
		d.Unhurried()
		d.run()
		d.link(ourNumber)
		d.onEach(func(m bot.Message) error {
			if m.Text == "poison" {
				return errors.New("never")
			}
			return nil
		})
		p := phone(t, n, ada, "Ada")
		say(t, p, "poison")
		begun := lines.Load()
		for i := range 20 {
			time.Sleep(time.Minute)
			say(t, p, "hello")
			if m := got(t, d.messages); m.Text != "hello" {
				t.Errorf("minute %d: got %+v", i, m)
			}
		}
		if renewed := lines.Load() - begun; renewed < 10 || renewed > 30 {
			t.Errorf("%d lines in 20 minutes", renewed)
		}
		d.halt()
	})
}

// With a fake clock: when the end of the line after a pairing gets lost, or
// nothing ever answers, a new line is tried all the same.
func TestLoginThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network(t)
		var deaf atomic.Bool
		d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), func(ctx context.Context) (net.Conn, error) {
			if deaf.Load() {
				ours, theirs := net.Pipe()
				context.AfterFunc(ctx, func() { _ = theirs.Close() })
				return ours, nil
			}
			return n.DialContext(ctx)
		})
		d.Unhurried()
		d.run()
		d.link(ourNumber)
		begun := time.Now()
		d.Handle(t.Context(), &events.PairSuccess{ID: types.NewJID(ourNumber, types.DefaultUserServer)})
		if d.State() != string(whatsapp.StateConnecting) {
			t.Errorf("it is %s", d.State())
		}
		d.await(whatsapp.StateConnected)
		if took := time.Since(begun); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("back after %s", took)
		}
		// The library holds a lock while it connects, and who waits for a lock
		// stops the fake clock.
		synctest.Wait()
		deaf.Store(true)
		d.device().Drop()
		d.disconnects()
		time.Sleep(10 * time.Minute)
		deaf.Store(false)
		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, d.Await(ctx, func(s whatsapp.State) bool { return s == whatsapp.StateConnected }))
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("back after %s", took)
		}
		d.halt()
	})
}

// Nothing but WhatsApp is ever called, and no media at all.
func TestOnlyWhatsAppIsCalled(t *testing.T) {
	called := ""
	fake := whatsapp.WebClient(func(context.Context) (net.Conn, error) {
		called = "dialled"
		return nil, errors.New("far enough")
	})
	for _, genuine := range []bool{false, true} {
		web := fake
		if genuine {
			web = whatsapp.WebClient(nil)
		}
		for _, url := range []string{"https://example.com/ws/chat", "http://web.whatsapp.com/ws/chat", "https://web.whatsapp.com:8443/", "https://web.whatsapp.com.example.com/", "https://127.0.0.1/"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			must(t, err)
			if resp, err := web.Do(r); err == nil || called != "" || !strings.Contains(err.Error(), "only web.whatsapp.com is called") {
				if resp != nil {
					_ = resp.Body.Close()
				}
				t.Errorf("%s (genuine: %t): %v", url, genuine, err)
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://web.whatsapp.com/ws/chat", http.NoBody)
	must(t, err)
	if resp, err := fake.Do(r); err == nil || called == "" {
		_ = resp.Body.Close()
		t.Errorf("not dialled: %v", err)
	}
	if resp, err := whatsapp.NoMedia.RoundTrip(r); err == nil {
		_ = resp.Body.Close()
		t.Error("media was fetched")
	}
}

// The keys are opened with what the store needs not to lose messages, and what
// is deleted is overwritten.
func TestKeysFile(t *testing.T) {
	db, err := whatsapp.OpenFile(filepath.Join(t.TempDir(), "keys.db"))
	must(t, err)
	defer func() { must(t, db.Close()) }()
	for pragma, want := range map[string]string{"foreign_keys": "1", "busy_timeout": "10000", "journal_mode": "wal", "synchronous": "2", "secure_delete": "1"} {
		var got sql.NullString
		must(t, db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		if got.String != want {
			t.Errorf("%s is %s, want %s", pragma, got.String, want)
		}
	}
}

func TestLibraryLog(t *testing.T) {
	var b bytes.Buffer
	log := whatsapp.LogOf(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), "client").Sub("Send")
	log.Debugf("a stanza %s", "body")
	log.Infof("an info %s", "body")
	log.Warnf("Error sending close to websocket: %v", errors.New("x"))
	if b.Len() > 0 {
		t.Errorf("logged %s", &b)
	}
	log.Warnf("Failed to get LID for %s in %s", "2348012345678@s.whatsapp.net", "100200300400500:3@lid")
	log.Errorf("node %s", strings.Repeat("é", 1000))
	text := b.String()
	for _, want := range []string{"level=WARN", "level=ERROR", "part=client/Send", "…5678@s.whatsapp.net", "…0500:3@lid"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "80123") || strings.Contains(text, "10020") || len(text) > 1000 {
		t.Errorf("logged %s", text)
	}
	if got := whatsapp.Scrub("call 0801 or 123456 or +2348012345678"); got != "call 0801 or 123456 or +…5678" {
		t.Errorf("got %q", got)
	}
}

func TestTerminalQR(t *testing.T) {
	text := "https://wa.me/settings/linked_devices#2@" + strings.Repeat("abcdefghij", 20)
	drawn := whatsapp.TerminalQR(text)
	lines := strings.Split(strings.TrimRight(drawn, "\n"), "\n")
	if len(lines) < 20 || len(lines) > 50 || drawn != whatsapp.TerminalQR(text) {
		t.Errorf("%d lines:\n%s", len(lines), drawn)
	}
	for _, l := range lines {
		if len([]rune(l)) != len([]rune(lines[0])) || strings.Trim(l, " ▀▄█") != "" {
			t.Errorf("a line %q", l)
		}
	}
	long := strings.Repeat("x", 5000)
	if got := whatsapp.TerminalQR(long); got != long {
		t.Error("what does not fit is not given back")
	}
}

// speechless is a connection to a network that takes it, and says nothing then.
type speechless struct {
	net.Conn

	heard   []byte
	silent  chan struct{} // closed once it is
	hungUp  chan struct{}
	hanging sync.Once
}

func (s *speechless) Read(p []byte) (int, error) {
	if bytes.Contains(s.heard, []byte("\r\n\r\n")) {
		close(s.silent)
		<-s.hungUp
		return 0, net.ErrClosed
	}
	n, err := s.Conn.Read(p)
	s.heard = append(s.heard, p[:n]...)
	return n, err
}

func (s *speechless) Close() error {
	s.hanging.Do(func() { close(s.hungUp) })
	return s.Conn.Close()
}

// With a fake clock: who is told to stop while a network leaves the first word of a
// line without an answer does not wait for one, as the library does for 20 s.
func TestStoppingDoesNotWaitForTheFirstAnswerOfALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network(t)
		silent := make(chan struct{})
		d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), func(ctx context.Context) (net.Conn, error) {
			c, err := n.DialContext(ctx)
			return &speechless{Conn: c, silent: silent, hungUp: make(chan struct{})}, err
		})
		d.run()
		<-silent
		synctest.Wait() // the first word is said
		told := time.Now()
		d.halt()
		if took := time.Since(told); took > 2*time.Second {
			t.Errorf("halting took %s", took)
		}
		time.Sleep(20 * time.Second) // by the fake clock, which ends with us: the library's wait, so that what it left behind ends too
	})
}
