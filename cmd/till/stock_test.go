package main

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/tilltest"
)

// stockPayer is a payer whose phone is the stock client: nothing of ours reads
// or writes a message on its side.
type stockPayer struct {
	t      *testing.T
	client *whatsmeow.Client
	texts  chan string
}

// newStockPayer links a stock client as the phone of a new account.
func newStockPayer(t *testing.T, n *wanet.Network, number string) *stockPayer {
	t.Helper()
	whatsmeow.WACertPubKey = n.RootKey()
	ctx := t.Context()
	box, err := sqlstore.New(ctx, "sqlite", "file:"+filepath.Join(t.TempDir(), "payer.db")+
		"?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate", waLog.Noop)
	must(t, err)
	device, err := box.GetFirstDevice(ctx)
	must(t, err)
	device.PushName = "Chidi"
	p := &stockPayer{t: t, client: whatsmeow.NewClient(device, waLog.Noop), texts: make(chan string, 100)}
	web := n.HTTPClient()
	p.client.SetWebsocketHTTPClient(web)
	p.client.SetPreLoginHTTPClient(web)
	p.client.SetMediaHTTPClient(web)
	codes, connected := make(chan string, 10), make(chan struct{}, 10)
	p.client.AddEventHandler(func(e any) {
		switch e := e.(type) {
		case *events.QR:
			codes <- e.Codes[0]
		case *events.Connected:
			connected <- struct{}{}
		case *events.Message:
			text := e.Message.GetConversation()
			if text == "" {
				text = e.Message.GetExtendedTextMessage().GetText()
			}
			p.texts <- text
		}
	})
	t.Cleanup(func() { p.client.Disconnect(); _ = box.Close() })
	account, err := n.AddAccount(number, "Chidi")
	must(t, err)
	must(t, p.client.Connect())
	must(t, account.ScanQRAsPhone(<-codes))
	<-connected
	return p
}

func (p *stockPayer) says(text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tilltest.Patience)
	defer cancel()
	_, err := p.client.SendMessage(ctx, types.NewJID(botNumber, types.DefaultUserServer), &waE2E.Message{Conversation: &text})
	must(p.t, err)
}

func (p *stockPayer) hears(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(tilltest.Patience)
	for {
		select {
		case text := <-p.texts:
			if match := re.FindStringSubmatch(text); match != nil {
				return match
			}
		case <-deadline:
			p.t.Fatalf("the stock client never heard %q", pattern)
		}
	}
}

// elsewhere is a network that somebody else runs, and what Till is told to use it.
func elsewhere(tb testing.TB) (n *wanet.Network, env []string) {
	tb.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	must(tb, err)
	if n, err = wanet.Open(tb.Context(), wanet.Config{Now: time.Now}); err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, ln) }()
	tb.Cleanup(func() { stop(); <-served; _ = n.Close() })
	key := n.RootKey()
	return n, []string{"TILL_WHATSAPP_DIAL=" + ln.Addr().String(), "TILL_WHATSAPP_ROOT_KEY=" + hex.EncodeToString(key[:])}
}

// A whole payment by a payer whose phone is the stock client, with Till on a
// network that somebody else runs: no control API, only the protocol.
func TestAStockClientPays(t *testing.T) {
	n, env := elsewhere(t)
	dir, addr := t.TempDir(), tilltest.FreePort(t)
	p := start(t, dir, env, "dev", "--http-addr", addr)
	shown := ""
	for served := false; shown == "" || !served; { // whichever is first
		if got := p.Line(`^pairing: (.+)$|/phone$|of that network`); got[1] != "" {
			shown = got[1]
		} else {
			served = true
		}
	}
	m := &merchant{t: t, base: "http://" + addr, key: keptKey(t, dir)}
	asked := m.call(http.MethodGet, "/v1/test/whatsapp/pairing", nil)
	if !strings.Contains(firstText(asked), shown[:40]) {
		t.Errorf("the pairing call says %v and the terminal %q", asked, shown)
	}
	owner, err := n.AddAccount(botNumber, botName)
	must(t, err)
	if _, err := owner.AddPhone(); err != nil {
		t.Fatal(err)
	}
	must(t, owner.ScanQR(shown))
	waitReady(m)
	s := newSink(m)
	payer := newStockPayer(t, n, "2348035551212")
	for _, way := range ways() {
		t.Run(way.name, func(t *testing.T) {
			m := &merchant{t: t, base: m.base, key: m.key}
			s.t, payer.t = t, t
			payThroughTheChat(t, m, payer, s, dir, way)
		})
	}
}

// firstText is the first text in an object, whatever its name.
func firstText(o object) string {
	for _, v := range o {
		if s, ok := v.(string); ok {
			return s
		}
	}
	return ""
}
