package wanet_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.mau.fi/whatsmeow/types"
)

// A stock client is linked by QR, gets a phone's message and answers it.
func TestEcho(t *testing.T) {
	n, c, p := talking(t)
	var e ear
	for _, text := range []string{"hello", "and again", "third"} {
		say(t, p, "+"+botNumber, text)
		m := c.expect(t, text)
		if m.Info.Sender.Server != types.HiddenUserServer || m.Info.SenderAlt.User != payer(1) {
			t.Fatalf("the sender is %s, alt %s: want a LID with the number beside it", m.Info.Sender, m.Info.SenderAlt)
		}
		if m.Info.PushName != p.Account().PushName() {
			t.Fatalf("push name %q", m.Info.PushName)
		}
		c.text(t, m.Info.Chat, "you said "+text)
		e.hears(t, p, "you said "+text)
	}
	a, _ := n.Account(botNumber)
	d, ok := a.Device(1)
	if !ok || !d.Online() {
		t.Fatal("the bot's device is not online")
	}
	settle(t, n)
}

// One phone and one stock client, one message there and one back at a time.
func BenchmarkEcho(b *testing.B) {
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("file=%t", kept), func(b *testing.B) {
			file := ""
			if kept {
				file = filepath.Join(b.TempDir(), "network")
			}
			n := open(b, file)
			c := bot(b, n)
			p := phone(b, n, payer(1))
			var e ear
			for b.Loop() {
				say(b, p, botNumber, "ping")
				c.text(b, c.expect(b, "ping").Info.Chat, "pong")
				e.hears(b, p, "pong")
			}
		})
	}
}
