package main

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till/config"
	"till/flow"
	"till/flow/await"
	"till/hooks"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A receiver that goes on talking after its answer writes nothing of its own into
// any log: the standard library would quote it on the process's stderr.
func TestWhatAReceiverSaysUnaskedStandsInNoLog(t *testing.T) { //nolint:paralleltest // the standard logger is the process's
	var kept, printed lines
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr); log.SetFlags(log.LstdFlags) })
	set := config.Settings{HTTPAddr: "127.0.0.1:0", DataDir: filepath.Join(t.TempDir(), "data"), RateLimitTest: 1, RateLimitLive: 1, WhatsAppSends: 1, WhatsAppChats: 1, WhatsAppNumbers: 1}
	a, err := prepare(t.Context(), set, slog.New(slog.NewJSONHandler(&kept, &slog.HandlerOptions{Level: slog.LevelDebug})), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	defer done.Wait()
	defer ln.Close()
	answered := make(chan bool)
	done.Go(func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-answered
		_, _ = io.WriteString(c, "sneaky bytes of a stranger\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	sender := hooks.New(hooks.Config{AllowLoopback: true, Now: time.Now})
	defer sender.Close()
	v := post(t.Context(), sender, flow.Delivery{Event: "evt_1", URL: "http://" + ln.Addr().String(), Body: []byte("{}"), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}, time.Now())
	if !v.OK {
		t.Fatalf("%+v", v)
	}
	close(answered)
	await.Until(t, "the standard library to tell of it", func() bool { return strings.Contains(kept.String()+printed.String(), "Unsolicited response") })
	if strings.Contains(kept.String(), "sneaky") || printed.String() != "" {
		t.Errorf("kept:\n%s\nprinted:\n%s", kept.String(), printed.String())
	}
}
