package main

import (
	"bufio"
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

// A receiver that goes on talking after its answer writes nothing of its own into
// any log, and is sent the next webhook over another connection.
func TestWhatAReceiverSaysUnaskedStandsInNoLog(t *testing.T) { // the standard logger is the process's
	var kept, printed await.Log
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr); log.SetFlags(log.LstdFlags) })
	set := config.Settings{HTTPAddr: "127.0.0.1:0", DataDir: filepath.Join(t.TempDir(), "data"), RateLimitTest: 1, RateLimitLive: 1, WhatsAppSends: 1, WhatsAppChats: 1, WhatsAppNumbers: 1}
	preparedApp(t, set, slog.New(slog.NewJSONHandler(&kept, &slog.HandlerOptions{Level: slog.LevelDebug})), false)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var done sync.WaitGroup
	defer done.Wait()
	defer ln.Close()
	answered, said := make(chan bool), make(chan bool)
	talks := sync.OnceFunc(func() { close(answered) })
	defer talks()
	done.Go(func() {
		for n := range 2 {
			c, err := ln.Accept()
			if err != nil {
				t.Errorf("connection %d: %v", n+1, err)
				return
			}
			defer c.Close()
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			if n == 0 {
				<-answered
				_, _ = io.WriteString(c, "sneaky bytes of a stranger\r\n")
				close(said)
			}
		}
	})
	sender := hooks.New(hooks.Config{AllowLoopback: true, Now: time.Now})
	defer sender.Close()
	for n := range 2 {
		v := post(t.Context(), sender, flow.Delivery{Event: "evt_1", URL: "http://" + ln.Addr().String(), Body: []byte("{}"), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}, time.Now())
		if !v.OK {
			t.Fatalf("post %d: %+v", n+1, v)
		}
		if n == 0 {
			talks()
			<-said
		}
	}
	done.Wait()
	if strings.Contains(kept.String(), "sneaky") || printed.String() != "" {
		t.Errorf("kept:\n%s\nprinted:\n%s", kept.String(), printed.String())
	}
}
