package wanet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp/wanet"
)

// serve runs a network on a port of its own; the test ends it and waits.
func serve(t *testing.T, n *wanet.Network) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	return ln.Addr().String()
}

// plainTCP dials one port whatever the address, as a program told to use a
// network of another process does.
func plainTCP(t *testing.T, addr string) *http.Client {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	tr := &http.Transport{DialContext: dial, DialTLSContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A network in another process is driven by its control API alone.
func TestRemote(t *testing.T) {
	n := open(t, "")
	addr := serve(t, n)
	web := plainTCP(t, addr)
	r := wanet.NewRemote("http://"+addr, web)
	ctx := t.Context()
	root, err := r.RootKey(ctx)
	must(t, err)
	if root != n.RootKey() {
		t.Fatal("another root key")
	}
	c := newClient(t, web, filepath.Join(t.TempDir(), "bot.db"))
	must(t, c.Connect())
	if _, err = r.ScanQR(ctx, botNumber, "Owner", "nonsense"); !errors.Is(err, wanet.ErrInput) {
		t.Fatalf("nonsense was scanned: %v", err)
	}
	_, err = r.ScanQR(ctx, botNumber, "Owner", next[*events.QR](t, c).Codes[2])
	must(t, err)
	next[*events.Connected](t, c)

	p, err := r.AddPhone(ctx, "", "Ada")
	must(t, err)
	if !strings.HasPrefix(p.Phone, "234900") || len(p.Phone) != 13 {
		t.Fatalf("the number given is %s", p.Phone)
	}
	must(t, r.SetFaults(ctx, wanet.Faults{Duplicate: true}))
	sent, err := r.Send(ctx, p.Phone, botNumber, "hello")
	must(t, err)
	m := c.expect(t, "hello")
	c.text(t, m.Info.Chat, "welcome")
	items, cursor, err := r.Messages(ctx, p.Phone, sent.Seq, within)
	must(t, err)
	if len(items) != 1 || items[0].Text != "welcome" || cursor != items[0].Seq {
		t.Fatalf("messages: %+v", items)
	}
	if items, cursor, err = r.Messages(ctx, p.Phone, cursor, 0); err != nil || len(items) != 0 || cursor == 0 {
		t.Fatalf("after the last: %+v, %d, %v", items, cursor, err)
	}
	must(t, r.MarkRead(ctx, p.Phone, botNumber))
	must(t, r.Typing(ctx, p.Phone, botNumber, true))
	next[*events.ChatPresence](t, c)
	_, err = r.SendQuote(ctx, p.Phone, botNumber, "quoting", sent.ID)
	must(t, err)
	c.expect(t, "quoting")
	devices, err := r.Devices(ctx)
	if err != nil || len(devices) != 2 || devices[0].Device != 1 || !devices[0].Online || devices[1].Phone != p.Phone {
		t.Fatalf("devices: %+v, %v", devices, err)
	}
	must(t, r.Device(ctx, botNumber, 1, "drop", 0))
	next[*events.Disconnected](t, c)
	all, err := r.Phones(ctx)
	if err != nil || len(all) != 1 || all[0] != p {
		t.Fatalf("phones: %+v, %v", all, err)
	}
	must(t, r.RemovePhone(ctx, p.Phone))
	if _, err = r.Send(ctx, p.Phone, botNumber, "?"); !errors.Is(err, wanet.ErrNoAccount) {
		t.Fatalf("a removed phone sent: %v", err)
	}
	if again, err := r.AddPhone(ctx, "", ""); err != nil || again.Phone == p.Phone {
		t.Fatalf("a number was given twice: %v", err)
	}
	info, err := r.Info(ctx)
	if err != nil || info.Stats.Phones != 1 || info.Stats.Duplicates == 0 || !info.Faults.Duplicate {
		t.Fatalf("info %+v, %v", info, err)
	}
}

// The control API answers its own machine only, and strict requests only.
func TestControlRefusals(t *testing.T) {
	n := open(t, "")
	addr := serve(t, n)
	web := plainTCP(t, addr)
	web.Timeout = 10 * time.Second
	try := func(method, host, path, body string, head ...string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		must(t, err)
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(head); i += 2 {
			req.Header.Set(head[i], head[i+1])
		}
		resp, err := web.Do(req)
		must(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		must(t, resp.Body.Close())
		return resp.StatusCode
	}
	ok := `{"phone":"2348011111111"}`
	for name, got := range map[string][2]int{
		"fine":            {try("POST", addr, "/network/phones", ok), 200},
		"a foreign host":  {try("POST", "evil.example:80", "/network/phones", ok), 403},
		"a web page":      {try("POST", addr, "/network/phones", ok, "Origin", "http://evil.example"), 403},
		"a form":          {try("POST", addr, "/network/phones", ok, "Content-Type", "text/plain"), 400},
		"unknown field":   {try("POST", addr, "/network/phones", `{"phone":"2348011111111","x":1}`), 400},
		"two values":      {try("POST", addr, "/network/phones", ok+ok), 400},
		"not a number":    {try("POST", addr, "/network/phones", `{"phone":"08012345678"}`), 400},
		"reserved number": {try("POST", addr, "/network/phones", `{"phone":"13135550002"}`), 400},
		"too large":       {try("POST", addr, "/network/phones", `{"phone":"`+strings.Repeat("1", 300<<10)+`"}`), 400},
		"no such phone":   {try("POST", addr, "/network/phones/2348099999999/messages", `{"to":"1","text":"x"}`), 404},
		"bad cursor":      {try("GET", addr, "/network/phones/2348011111111/messages?after=-1", ""), 400},
		"bad faults":      {try("PUT", addr, "/network/faults", `{"dropPercent":101}`), 400},
		"no pairing":      {try("POST", addr, "/network/pairings", `{"phone":"2348011111111","code":"ABCDEFGH"}`), 404},
		"no path":         {try("GET", addr, "/network/else", ""), 404},
		"a web socket":    {try("GET", addr, "/ws/chat", "", "Origin", "http://evil.example"), 403},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", name, got[0], got[1])
		}
	}
	other := wanet.NewRemote("http://192.0.2.1:80", web)
	if _, err := other.Info(t.Context()); !errors.Is(err, wanet.ErrNotLoopback) {
		t.Errorf("a remote on another machine: %v", err)
	}
}

// A listener that others could reach is refused and closed.
func TestLoopbackOnly(t *testing.T) {
	n := open(t, "")
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	if err = n.Serve(t.Context(), ln); !errors.Is(err, wanet.ErrNotLoopback) {
		t.Fatalf("it listens to the world: %v", err)
	}
	if _, err = ln.Accept(); err == nil {
		t.Fatal("the listener is still open")
	}
	if resp, err := n.HTTPClient().Get("http://example.com/"); !errors.Is(err, wanet.ErrInput) {
		_ = resp.Body.Close()
		t.Fatalf("its client reaches others: %v", err)
	}
}
