//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/tilltest"
	"till/flow/await"
	"till/flow/redistest"
)

// child starts a process that prints what to link it by, and returns that. It
// ends with the benchmark.
func child(b *testing.B, cmd *exec.Cmd) (pid int, line func(pattern string) string) {
	b.Helper()
	out, err := cmd.StdoutPipe()
	must(b, err)
	cmd.Stderr = os.Stderr
	must(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return cmd.Process.Pid, func(pattern string) string {
		re := regexp.MustCompile(pattern)
		late := time.After(tilltest.Patience)
		for {
			select {
			case l, ok := <-lines:
				if m := re.FindStringSubmatch(l); m != nil {
					return m[1]
				} else if !ok {
					b.Fatalf("a bot ended before it said %q", pattern)
				}
			case <-late:
				b.Fatalf("a bot never said %q", pattern)
			}
		}
	}
}

// linkBot scans what a bot shows. The number has no phone of its own: its copy of
// each message would cost both bots as much.
func linkBot(b *testing.B, n *wanet.Network, number, code string) {
	b.Helper()
	owner, err := n.AddAccount(number, "Bot")
	if err == nil {
		err = owner.ScanQR(code)
	}
	must(b, err)
	await.Until(b, "a bot comes online", func() bool {
		d, ok := owner.Device(1)
		return ok && d.Online()
	})
}

// echoBot starts the bare bot.
func echoBot(b *testing.B, n *wanet.Network, env []string) *chatBot {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	cmd := exec.CommandContext(b.Context(), self, "-test.run", "^$", "-test.bench", "^BenchmarkChatEcho$", "-test.benchtime", "1x")
	cmd.Env = append(append(os.Environ(), env...), "TILL_ECHO="+b.TempDir())
	if _, err := cmd.StdinPipe(); err != nil { // it ends with us
		b.Fatal(err)
	}
	c := newChatBot(b, n, "bare echo", echoNumber, func(int) string { return "hello" })
	pid, line := child(b, cmd)
	c.pid = pid
	linkBot(b, n, echoNumber, line(`^pairing: (.+)$`))
	line(`^(connected)$`)
	return c
}

// BenchmarkChatEcho is the process of the bare bot: what whatsmeow's own example
// does, on its sqlstore with foreign keys, in WAL mode, with a timeout for a busy
// file (else it loses messages) and as safe against a power cut as Till's file of
// keys and as SQLite is by itself: synchronous=FULL. All else is as the library
// has it, so it keeps no decrypted message for a handler that fails, marks
// nothing as read and has no bookkeeping. Nothing is tuned, for or against it.
func BenchmarkChatEcho(b *testing.B) {
	dir := os.Getenv("TILL_ECHO")
	if dir == "" || b.N > 1 {
		b.Skip("only as a part of BenchmarkChat")
	}
	ctx := b.Context()
	key, err := hex.DecodeString(os.Getenv("TILL_WHATSAPP_ROOT_KEY"))
	must(b, err)
	whatsmeow.WACertPubKey = [32]byte(key)
	box, err := sqlstore.New(ctx, "sqlite", "file:"+filepath.Join(dir, "echo.db")+
		"?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate", waLog.Noop)
	must(b, err)
	device, err := box.GetFirstDevice(ctx)
	must(b, err)
	device.PushName = "Echo"
	client := whatsmeow.NewClient(device, waLog.Noop)
	web := &http.Client{Transport: &http.Transport{DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", os.Getenv("TILL_WHATSAPP_DIAL"))
	}}}
	client.SetWebsocketHTTPClient(web)
	client.SetPreLoginHTTPClient(web)
	client.AddEventHandler(func(e any) {
		switch e := e.(type) {
		case *events.QR:
			fmt.Println("pairing: " + e.Codes[0])
		case *events.Connected:
			fmt.Println("connected")
		case *events.Message:
			if _, err := client.SendMessage(ctx, e.Info.Chat, &waE2E.Message{Conversation: new(e.Message.GetConversation())}); err != nil {
				fmt.Fprintln(os.Stderr, "echo:", err)
			}
		}
	})
	must(b, client.Connect())
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever measures is gone
}

// tillBot starts Till with everything on: the store as it always is, a Redis
// where one is installed, the rules and the words.
func tillBot(b *testing.B, n *wanet.Network, env []string) *chatBot {
	b.Helper()
	bin := tilltest.Program(b)
	dir := b.TempDir()
	var lc net.ListenConfig
	ln, err := lc.Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	addr := ln.Addr().String()
	must(b, ln.Close())
	env = append(env, "TILL_LOG_LEVEL=warn", "TILL_METRICS_ADDR=off", "TILL_RATE_LIMIT_TEST=100000")
	if redistest.Installed() {
		env = append(env, "TILL_REDIS_URL="+redistest.Start(b).URL)
	} else {
		progress("redis is not installed: Till uses the one inside, which costs it more")
	}
	cmd := exec.CommandContext(b.Context(), bin, "dev", "--http-addr", addr)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	pid, line := child(b, cmd)
	linkBot(b, n, botNumber, line(`^pairing: (.+)$`))
	base := "http://" + addr
	await.Until(b, "its number is there", func() bool { // asked so that nothing is refused: the log has a line for that
		resp, err := http.Get(base + "/readyz")
		if err != nil {
			return false
		}
		text, err := io.ReadAll(resp.Body)
		return errors.Join(err, resp.Body.Close()) == nil && !strings.Contains(string(text), `"degraded"`)
	})
	key := keptKey(b, dir)
	c := newChatBot(b, n, "Till", botNumber, func(int) string {
		text, err := opening(b, base, key)
		must(b, err)
		return text
	})
	c.pid = pid
	return c
}

// opening makes a session for a payer, and is what the payer writes first.
func opening(b *testing.B, base, key string) (string, error) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/whatsapp/checkout/sessions",
		strings.NewReader(`{"amount":500000,"customerEmail":"ada@example.com","mode":"chat"}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	var made struct {
		Data struct {
			CheckoutURL string `json:"checkoutUrl"`
		} `json:"data"`
	}
	if err = errors.Join(err, resp.Body.Close(), json.Unmarshal(text, &made)); err != nil {
		return "", err
	}
	_, code, found := strings.Cut(made.Data.CheckoutURL, "?text=")
	if !found {
		return "", fmt.Errorf("no session was made: %s", text)
	}
	return url.QueryUnescape(code)
}
