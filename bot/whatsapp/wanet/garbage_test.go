package wanet

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// loose is a logged-in connection without a line: what is sent to it is dropped.
func loose(tb testing.TB) (*Network, *conn, *Phone) {
	tb.Helper()
	n, err := Open(tb.Context(), Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = n.Close() })
	a, err := n.AddAccount("2348012345678", "Bot")
	if err != nil {
		tb.Fatal(err)
	}
	d := &Device{a: a, id: 1, keys: deviceKeys{Identity: make([]byte, 32), Signed: signedKey{Public: make([]byte, 32), Signature: make([]byte, 64)}}}
	_, cancel := context.WithCancel(tb.Context())
	c := &conn{
		n: n, s: &tunnel{}, cancel: cancel, wake: make(chan struct{}, 1),
		timers: map[*time.Timer]struct{}{}, watches: map[*Account]string{},
	}
	n.mu.Lock()
	a.devices[1], c.dev, d.conn = d, d, c
	n.mu.Unlock()
	p, err := n.NewPhone("2348011111111", "Ada")
	if err != nil {
		tb.Fatal(err)
	}
	return n, c, p
}

var (
	tags  = []string{"iq", "message", "receipt", "ack", "presence", "chatstate", "ib", "enc", "participants", "to", "usync", "list", "user", "query", "devices", "key", "count", "active", "retry", "keys", "identity", "skey", "registration", "tokens", "token", "link_code_companion_reg", "remove-companion-device-", "item", "x"}
	names = []string{"id", "to", "type", "xmlns", "class", "jid", "from", "recipient", "name", "stage", "count", "edit", "t"}
	words = []string{"get", "set", "result", "error", "retry", "read", "encrypt", "usync", "md", "passive", "privacy", "w:p", "message", "receipt", "pkmsg", "msg", "subscribe", "available", "companion_hello", "companion_finish", "1", "99999999999999999999", "", "💥"}
)

// randomStanza makes something that has the vocabulary of the protocol and none
// of its grammar.
func randomStanza(r *rand.Rand, jids []types.JID, depth int) waBinary.Node {
	node := waBinary.Node{Tag: tags[r.IntN(len(tags))], Attrs: waBinary.Attrs{}}
	if depth == 0 {
		node.Tag = tags[r.IntN(7)]
	}
	for range r.IntN(6) {
		key := names[r.IntN(len(names))]
		if r.IntN(3) == 0 || key == "to" || key == "jid" {
			node.Attrs[key] = jids[r.IntN(len(jids))]
		} else {
			node.Attrs[key] = words[r.IntN(len(words))]
		}
	}
	switch {
	case r.IntN(3) == 0:
		b := make([]byte, []int{0, 1, 3, 4, 12, 32, 64, 80, 200}[r.IntN(9)])
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		node.Content = b
	case depth < 4:
		children := make([]waBinary.Node, r.IntN(5))
		for i := range children {
			children[i] = randomStanza(r, jids, depth+1)
		}
		node.Content = children
	}
	return node
}

// Stanzas of any shape neither crash the server nor stop it.
func TestRandomStanzas(t *testing.T) {
	n, c, p := loose(t)
	jids := []types.JID{
		types.ServerJID,
		{},
		types.NewJID("2348012345678", types.DefaultUserServer),
		types.NewJID("2348011111111", types.DefaultUserServer),
		types.NewJID(p.a.lid, types.HiddenUserServer),
		{User: p.a.lid, Device: 7, Server: types.HiddenUserServer},
		{User: "2348012345678", Device: 1, Server: types.DefaultUserServer},
		types.NewJID("1", types.GroupServer),
		types.NewJID("404", types.DefaultUserServer),
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 20_000 {
		node := randomStanza(r, jids, 0)
		raw, err := encodeNode(node)
		if err != nil {
			continue
		}
		back, err := decodeNode(raw)
		if err != nil {
			t.Fatalf("what was encoded does not decode: %s: %v", node, err)
		}
		_ = n.handle(t.Context(), c, back)
		if i%100 == 0 {
			c.mu.Lock()
			c.out, c.shut = nil, false
			c.mu.Unlock()
		}
	}
	// Still in order: the phone takes what is for it, and sends.
	if _, err := p.Send(t.Context(), "2348011111111", "note to self"); err != nil {
		t.Fatal(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, node := range []waBinary.Node{
		{Tag: "iq", Attrs: waBinary.Attrs{"to": types.ServerJID, "id": "1.2-3", "n": 12}, Content: []waBinary.Node{{Tag: "ping"}}},
		{Tag: "message", Attrs: waBinary.Attrs{"to": types.JID{User: "1", Device: 3, Server: types.HiddenUserServer}}, Content: []byte("abc")},
	} {
		raw, err := encodeNode(node)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{0, 248, 255})
	f.Add([]byte{2, 0x78, 0x9c})
	f.Add(append([]byte{0}, bytes.Repeat([]byte{249, 255, 255}, 1000)...))
	f.Add(append([]byte{0}, bytes.Repeat([]byte{248, 2, 3, 248, 1}, 50_000)...))
	n, c, _ := loose(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		node, err := decodeNode(raw)
		if err != nil {
			return
		}
		_ = n.handle(t.Context(), c, node)
		c.mu.Lock()
		c.out, c.shut = nil, false
		c.mu.Unlock()
	})
}

// Bytes that are no protocol at all end their own connection and nothing else.
func TestGarbageBytes(t *testing.T) {
	n, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return b
	}
	hello := func(body []byte) []byte {
		return append([]byte{'W', 'A', 6, 3, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	}
	for i, first := range [][]byte{
		nil,
		noise(3),
		noise(1000),
		[]byte("WA"),
		{'W', 'A', 6, 3},
		{'W', 'A', 6, 3, 0, 0, 0},
		{'W', 'A', 6, 3, 255, 255, 255},
		hello(noise(40)),
		hello([]byte{0x12, 0x22, 0x0a, 0x20}),
		hello(append([]byte{0x12, 0x22, 0x0a, 0x20}, make([]byte, 32)...)),
		hello(append([]byte{0x12, 0x22, 0x0a, 0x20}, noise(32)...)),
	} {
		ws, _, err := websocket.Dial(t.Context(), "ws://web.whatsapp.com/ws/chat", &websocket.DialOptions{HTTPClient: n.HTTPClient()}) //nolint:bodyclose // a websocket has none
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		_ = ws.Write(t.Context(), websocket.MessageBinary, first)
		if i == 10 { // it looked like a hello: an answer comes
			if _, _, err = ws.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			_ = ws.Write(t.Context(), websocket.MessageBinary, hello(noise(200))[4:])
		}
		for err == nil {
			_, _, err = ws.Read(t.Context())
		}
		_ = ws.CloseNow()
	}
	for _, raw := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", strings.Repeat("x", 70_000)} {
		c, err := n.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprint(c, raw)
		_ = c.Close()
	}
	resp, err := n.HTTPClient().Get("http://web.whatsapp.com/ws/chat")
	if err != nil || resp.StatusCode == http.StatusOK {
		t.Fatalf("after all that: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if _, err = n.NewPhone("", ""); err != nil {
		t.Fatal(err)
	}
}

// A device that nobody fetches from any more does not stop its account, and one
// that is the account's only one is refused more in the end.
func TestFullQueue(t *testing.T) {
	n, c, p := loose(t)
	n.mu.Lock()
	bot := n.accounts["2348012345678"]
	dead := bot.devices[1]
	dead.conn = nil
	for i := range maxQueue {
		dead.queue = append(dead.queue, &item{seq: uint64(i)})
	}
	dead.nextSeq = maxQueue
	n.mu.Unlock()
	if _, err := p.Send(t.Context(), "2348012345678", "too much"); err == nil {
		t.Fatal("a full queue took more")
	}
	owner, err := bot.AddPhone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Send(t.Context(), "2348012345678", "to the phone"); err != nil {
		t.Fatal(err)
	}
	items, _, err := owner.Messages(t.Context(), 0, 10*time.Second)
	if err != nil || len(items) != 1 {
		t.Fatalf("%v, %v", items, err)
	}
	_ = c
}
