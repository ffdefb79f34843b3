package wanet_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp/wanet"
)

// The 8-letter code links as well as the QR code does, and a wrong one does not.
func TestPairByCode(t *testing.T) {
	n := open(t, "")
	a, err := n.AddAccount(botNumber, "Owner")
	must(t, err)
	c := newClient(t, n.HTTPClient(), filepath.Join(t.TempDir(), "bot.db"))
	must(t, c.Connect())
	next[*events.QR](t, c)
	code, err := c.PairPhone(t.Context(), botNumber, true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	must(t, err)
	if err = a.EnterCode("ABCD-EFGH"); err == nil {
		t.Fatal("a wrong code linked the client")
	}
	must(t, a.EnterCode(code))
	next[*events.Connected](t, c)
	p := phone(t, n, payer(1))
	say(t, p, botNumber, "hi")
	m := c.expect(t, "hi")
	c.text(t, m.Info.Chat, "ho")
	(&ear{}).hears(t, p, "ho")
}

// What comes while the bot is away waits, comes in order and is announced.
func TestOfflineQueue(t *testing.T) {
	n, c, p := talking(t)
	say(t, p, botNumber, "first")
	c.expect(t, "first")
	settle(t, n)
	c.Disconnect()
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	eventually(t, "offline", func() bool { return !d.Online() })
	for i := range 5 {
		say(t, p, botNumber, fmt.Sprint("while away ", i))
	}
	if got := d.Pending("message"); got != 5 {
		t.Fatalf("%d messages wait, want 5", got)
	}
	must(t, c.Connect())
	for i := range 5 {
		c.expect(t, fmt.Sprint("while away ", i))
	}
	for next[*events.OfflineSyncCompleted](t, c).Count < 5 {
		t.Log("this was the mark of the first login")
	}
	eventually(t, "all acked", func() bool { return d.Pending("") == 0 })
}

// More than fits on the line at once still comes whole and in order.
func TestLongQueue(t *testing.T) {
	_, c, p := talking(t)
	c.Disconnect()
	const many = 600
	for i := range many {
		say(t, p, botNumber, fmt.Sprint(i))
	}
	must(t, c.Connect())
	for i := range many {
		c.expect(t, fmt.Sprint(i))
	}
	next[*events.OfflineSyncCompleted](t, c)
}

// A phone sees its ticks, and so does the client.
func TestTicks(t *testing.T) {
	n, c, p := talking(t)
	first := say(t, p, botNumber, "one")
	if first.Status != wanet.StatusSent {
		t.Fatalf("status %q", first.Status)
	}
	m := c.expect(t, "one")
	settle(t, n)
	must(t, c.SendPresence(t.Context(), types.PresenceAvailable))
	second := say(t, p, botNumber, "two")
	c.expect(t, "two")
	if ok, err := p.WaitStatus(t.Context(), second.ID, wanet.StatusDelivered, within); err != nil || !ok {
		t.Fatalf("not delivered: %v", err)
	}
	// A client that is not "available" confirms in a way that phones do not show.
	if got, _ := p.Message(first.ID); got.Status != wanet.StatusSent {
		t.Fatalf("a delivery to an inactive client shows as %q", got.Status)
	}
	must(t, c.MarkRead(t.Context(), []string{first.ID, second.ID}, time.Now(), m.Info.Chat, m.Info.Sender))
	for _, id := range []string{first.ID, second.ID} {
		if ok, err := p.WaitStatus(t.Context(), id, wanet.StatusRead, within); err != nil || !ok {
			t.Fatalf("%s is not read: %v", id, err)
		}
	}
	sent := c.text(t, m.Info.Chat, "three")
	(&ear{}).hears(t, p, "three")
	must(t, p.MarkRead(t.Context(), botNumber))
	seen := map[types.ReceiptType]bool{}
	for len(seen) < 2 {
		r := <-c.receipts
		if r.MessageIDs[0] != sent.ID || r.Sender.Server != types.HiddenUserServer {
			t.Fatalf("receipt for %v from %s", r.MessageIDs, r.Sender)
		}
		seen[r.Type] = true
	}
	if !seen[types.ReceiptTypeDelivered] || !seen[types.ReceiptTypeRead] {
		t.Fatalf("receipts: %v", seen)
	}
}

// Typing and presence go both ways.
func TestTypingAndPresence(t *testing.T) {
	_, c, p := talking(t)
	say(t, p, botNumber, "hi")
	m := c.expect(t, "hi")
	must(t, p.Typing(t.Context(), botNumber, true))
	if e := next[*events.ChatPresence](t, c); e.State != types.ChatPresenceComposing || e.Sender.User != p.Account().LID() {
		t.Fatalf("chat presence %+v", e)
	}
	must(t, c.SendPresence(t.Context(), types.PresenceAvailable))
	must(t, c.SubscribePresence(t.Context(), m.Info.Chat))
	if e := next[*events.Presence](t, c); e.Unavailable {
		t.Fatal("a phone that is on is said to be away")
	}
	must(t, c.SendChatPresence(t.Context(), m.Info.Chat, types.ChatPresenceComposing, types.ChatPresenceMediaText))
	eventually(t, "typing is seen", func() bool { return p.PeerTyping(botNumber) })
	seen, err := p.Screen(t.Context(), botNumber, 0, 0)
	if err != nil || !seen.Typing || len(seen.Messages) != 1 {
		t.Fatalf("the phone shows %+v, %v", seen, err)
	}
	c.text(t, m.Info.Chat, "done")
	(&ear{}).hears(t, p, "done")
	if now, err := p.Screen(t.Context(), botNumber, seen.Version, time.Minute); err != nil || now.Version == seen.Version {
		t.Fatalf("the phone still shows %+v, %v", now, err)
	}
	if p.PeerTyping(botNumber) {
		t.Fatal("still typing after the message")
	}
}

// A quote arrives as one, both ways; an id used twice sends once.
func TestQuoteAndRepeat(t *testing.T) {
	_, c, p := talking(t)
	first := say(t, p, botNumber, "the question")
	m := c.expect(t, "the question")
	_, err := p.SendQuote(t.Context(), botNumber, "about that", first.ID)
	must(t, err)
	q := c.expect(t, "about that")
	if got := q.Message.GetExtendedTextMessage().GetContextInfo().GetStanzaID(); got != first.ID {
		t.Fatalf("quotes %q", got)
	}
	for range 2 {
		_, err = c.SendMessage(t.Context(), m.Info.Chat, q.Message, whatsmeow.SendRequestExtra{ID: "3EB0TWICE"})
		must(t, err)
	}
	c.text(t, m.Info.Chat, "end")
	var e ear
	if got := e.hears(t, p, "about that"); got.Quoted != first.ID {
		t.Fatalf("the phone sees a quote of %q", got.Quoted)
	}
	e.hears(t, p, "end")
}

// Keys run low and are brought anew.
func TestKeyRefill(t *testing.T) {
	n := open(t, "")
	c := bot(t, n)
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	if d.PreKeys() < 800 {
		t.Fatalf("%d keys after the first login", d.PreKeys())
	}
	must(t, d.CutPreKeys(2))
	eventually(t, "new keys", func() bool { return d.PreKeys() >= 50 })
	// Each new phone takes a key.
	for i := range 3 {
		say(t, phone(t, n, payer(10+i)), botNumber, "hi")
		c.expect(t, "hi")
	}
}

// The owner's phone, if it is a real one, sees what its linked client sends.
func TestOwnersPhone(t *testing.T) {
	n := open(t, "")
	c := bot(t, n)
	owner := phone(t, n, botNumber)
	p := phone(t, n, payer(1))
	say(t, p, botNumber, "to both")
	m := c.expect(t, "to both")
	(&ear{}).hears(t, owner, "to both")
	c.text(t, m.Info.Chat, "from the client")
	(&ear{}).hears(t, p, "from the client")
	eventually(t, "the copy", func() bool {
		items, _, err := owner.Messages(t.Context(), 0, 0)
		return err == nil && len(items) == 2 && items[1].FromMe && items[1].Text == "from the client" && items[1].Chat == payer(1)
	})
	say(t, owner, payer(1), "from the phone")
	if e := c.expect(t, "from the phone"); !e.Info.IsFromMe {
		t.Fatal("a copy from the own phone is not marked as such")
	}
	(&ear{next: 2}).hears(t, p, "from the phone")
}

// A message that its phone sends again under its id arrives again, and is one
// message on the phone; what it did not write it cannot send.
func TestRepeat(t *testing.T) {
	_, c, p := talking(t)
	first := say(t, p, botNumber, "Pay 7K3M-9QTX")
	c.expect(t, "Pay 7K3M-9QTX")
	must(t, p.Repeat(t.Context(), botNumber, first.ID))
	if m := c.expect(t, "Pay 7K3M-9QTX"); m.Info.ID != first.ID {
		t.Errorf("it came again as %s, not %s", m.Info.ID, first.ID)
	}
	if all, _, err := p.Messages(t.Context(), 0, 0); err != nil || len(all) != 1 {
		t.Errorf("the phone shows %+v, %v", all, err)
	}
	if err := p.Repeat(t.Context(), botNumber, "3EB0NONE"); !errors.Is(err, wanet.ErrInput) {
		t.Errorf("a message that is not there: %v", err)
	}
	if err := p.Repeat(t.Context(), payer(9), first.ID); !errors.Is(err, wanet.ErrNoAccount) {
		t.Errorf("a number that is not there: %v", err)
	}
}
