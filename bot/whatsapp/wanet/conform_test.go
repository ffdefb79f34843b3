package wanet_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp/wanet"
)

// Two stock clients, one in the payer's place as its primary phone, talk through
// the network; nothing of this package reads or writes a message.
func TestStockPayer(t *testing.T) {
	for _, kind := range []string{"as the phone itself", "linked beside a phone"} {
		t.Run(kind, func(t *testing.T) {
			n := open(t, "")
			c := bot(t, n)
			pay := newClient(t, n.HTTPClient(), filepath.Join(t.TempDir(), "payer.db"))
			pay.Store.PushName = "Ada"
			a, err := n.AddAccount(payer(1), "Ada")
			must(t, err)
			must(t, pay.Connect())
			qr := next[*events.QR](t, pay).Codes[0]
			if kind == "as the phone itself" {
				must(t, a.ScanQRAsPhone(qr))
			} else {
				_, err = a.AddPhone()
				must(t, err)
				must(t, a.ScanQR(qr))
			}
			next[*events.Connected](t, pay)
			must(t, c.SendPresence(t.Context(), types.PresenceAvailable))
			must(t, pay.SendPresence(t.Context(), types.PresenceAvailable))
			stockTalk(t, n, c, pay)
		})
	}
}

func stockTalk(t *testing.T, n *wanet.Network, c, pay *client) {
	t.Helper()
	to := types.NewJID(botNumber, types.DefaultUserServer)
	var back types.JID
	for i := range 5 {
		sent := pay.text(t, to, fmt.Sprint("ping ", i))
		m := c.expect(t, fmt.Sprint("ping ", i))
		if m.Info.SenderAlt.User != payer(1) || m.Info.ID != sent.ID || m.Info.PushName != "Ada" {
			t.Fatalf("the bot sees %+v", m.Info)
		}
		back = m.Info.Chat
		c.text(t, back, fmt.Sprint("pong ", i))
		pay.expect(t, fmt.Sprint("pong ", i))
	}
	// Corrupted both ways: retry receipts go from client to client.
	n.Intercept(corruptFirst(botNumber))
	pay.text(t, to, "damaged")
	c.expect(t, "damaged")
	n.Intercept(corruptFirst(payer(1)))
	c.text(t, back, "damaged back")
	pay.expect(t, "damaged back")
	n.Intercept(nil)
	settle(t, n)
	// One of them is away.
	pay.Disconnect()
	c.text(t, back, "while you were away")
	must(t, pay.Connect())
	pay.expect(t, "while you were away")
	poll := c.BuildPollCreation("which", []string{"a", "b"}, 1)
	_, err := c.SendMessage(t.Context(), back, poll)
	must(t, err)
	if m := pay.message(t); m.Message.GetPollCreationMessage().GetName() != "which" {
		t.Fatalf("not the poll: %v", m.Message)
	}
	settle(t, n)
}

// corruptFirst damages the next message on its way to a number's clients.
func corruptFirst(number string) func(wanet.Delivery) wanet.Action {
	hit := make(chan struct{}, 1)
	hit <- struct{}{}
	return func(d wanet.Delivery) wanet.Action {
		if d.Class != "message" || d.To != number || d.Phone {
			return wanet.Action{}
		}
		select {
		case <-hit:
			return wanet.Action{Do: wanet.Corrupt}
		default:
			return wanet.Action{}
		}
	}
}

// A phone that knows an edit and a revocation shows them.
func TestEditAndRevoke(t *testing.T) {
	_, c, p, m := talk(t)
	e := new(ear).from(t, p)
	sent := c.text(t, m.Info.Chat, "frist")
	e.hears(t, p, "frist")
	_, err := c.SendMessage(t.Context(), m.Info.Chat, c.BuildEdit(m.Info.Chat, sent.ID, &waE2E.Message{Conversation: new("first")}))
	must(t, err)
	shows := func(text string) func() bool {
		return func() bool { got, _ := p.Message(sent.ID); return got.Text == text }
	}
	eventually(t, "the edit", shows("first"))
	_, err = c.SendMessage(t.Context(), m.Info.Chat, c.BuildReaction(m.Info.Chat, types.EmptyJID, sent.ID, "👍"))
	must(t, err)
	_, err = c.SendMessage(t.Context(), m.Info.Chat, c.BuildRevoke(m.Info.Chat, types.EmptyJID, sent.ID))
	must(t, err)
	eventually(t, "the revocation", shows(""))
	c.text(t, m.Info.Chat, "the next")
	e.hears(t, p, "the next")
}

// The whole network runs in a bubble of fake time: hours of keep-alives, a long
// delay and a reconnect take no time at all.
func TestFakeTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	file := filepath.Join(t.TempDir(), "network")
	synctest.Test(t, func(t *testing.T) {
		n, err := wanet.Open(t.Context(), wanet.Config{RootSeed: rootSeed, File: file, AckDelay: 80 * time.Millisecond})
		must(t, err)
		c := newClient(t, n.HTTPClient(), path)
		a := link(t, n, c)
		p := phone(t, n, payer(1))
		var e ear
		for hour := range 6 {
			say(t, p, botNumber, fmt.Sprint("hour ", hour))
			m := c.expect(t, fmt.Sprint("hour ", hour))
			c.text(t, m.Info.Chat, fmt.Sprint("answer ", hour))
			e.hears(t, p, fmt.Sprint("answer ", hour))
			time.Sleep(time.Hour)
		}
		d, _ := a.Device(1)
		if !d.Online() {
			t.Fatal("the client did not last six hours")
		}
		for len(c.others) > 0 {
			if _, gone := (<-c.others).(*events.Disconnected); gone {
				t.Fatal("it was disconnected in between")
			}
		}
		n.Intercept(once(false, wanet.Action{Do: wanet.Delay, After: 20 * time.Minute}))
		start := time.Now()
		say(t, p, botNumber, "late")
		time.Sleep(20*time.Minute - within/2)
		c.expect(t, "late")
		if took := time.Since(start); took != 20*time.Minute {
			t.Fatalf("it took %s", took)
		}
		synctest.Wait() // or the client, not done with it, would hand it over again
		d.Drop()
		next[*events.Connected](t, c)
		say(t, p, botNumber, "back")
		c.expect(t, "back")
		// A line that is up but dead: the client finds out and makes a new one.
		n.SilenceIQ(func(xmlns string) bool { return xmlns == "w:p" })
		time.Sleep(time.Minute)
		next[*events.KeepAliveTimeout](t, c)
		time.Sleep(5 * time.Minute)
		next[*events.Connected](t, c)
		n.SilenceIQ(nil)
		say(t, p, botNumber, "alive")
		c.expect(t, "alive")
		synctest.Wait()
		c.stop()
		must(t, n.Close())
		// The client's HTTP transport lets its idle connections go by itself.
		time.Sleep(5 * time.Minute)
	})
}

// A client that acknowledges only after its handlers, and asks its own phone for
// what it can not read, gets it from the sender all the same.
func TestSynchronousAck(t *testing.T) {
	for _, realOwner := range []bool{false, true} {
		n := open(t, "")
		c := newClient(t, n.HTTPClient(), filepath.Join(t.TempDir(), "bot.db"))
		c.SynchronousAck = true
		c.AutomaticMessageRerequestFromPhone = true
		if realOwner {
			phone(t, n, botNumber)
		}
		link(t, n, c)
		p := phone(t, n, payer(1))
		say(t, p, botNumber, "hi")
		m := c.expect(t, "hi")
		c.text(t, m.Info.Chat, "ho") // with a copy for the owner's phone
		for i := range 3 {
			n.Intercept(corruptFirst(botNumber))
			say(t, p, botNumber, fmt.Sprint("damaged ", i))
			c.expect(t, fmt.Sprint("damaged ", i))
		}
		settle(t, n)
	}
}

// A pairing code nobody scans is withdrawn, as WhatsApp does.
func TestPairingWindow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	synctest.Test(t, func(t *testing.T) {
		n, err := wanet.Open(t.Context(), wanet.Config{RootSeed: rootSeed})
		must(t, err)
		c := newClient(t, n.HTTPClient(), path)
		a, err := n.AddAccount(botNumber, "Owner")
		must(t, err)
		must(t, c.Connect())
		qr := next[*events.QR](t, c).Codes[0]
		time.Sleep(5 * time.Minute)
		if err = a.ScanQR(qr); err == nil {
			t.Fatal("a code of five minutes ago still works")
		}
		synctest.Wait()
		c.stop()
		must(t, n.Close())
		time.Sleep(5 * time.Minute)
	})
}

// A new phone with the old number: both sides find each other again, the client
// is told that the identity changed, and linked clients of that account are out.
func TestReinstall(t *testing.T) {
	n, c, p, m := talk(t)
	must(t, p.Reinstall())
	// The client still writes on the session of the old phone.
	c.text(t, m.Info.Chat, "to the old phone")
	var e ear
	e.hears(t, p, "to the old phone")
	next[*events.IdentityChange](t, c)
	must(t, p.Reinstall())
	say(t, p, botNumber, "new again")
	c.expect(t, "new again")
	next[*events.IdentityChange](t, c)
	e = *new(ear).from(t, p)
	c.text(t, m.Info.Chat, "fine")
	e.hears(t, p, "fine")

	owner := phone(t, n, botNumber)
	must(t, owner.Reinstall())
	next[*events.LoggedOut](t, c)
}

// Phones that write from their number are understood too, and answered.
func TestAddressByNumber(t *testing.T) {
	n, c, p := talking(t)
	must(t, c.SendPresence(t.Context(), types.PresenceAvailable))
	var e ear
	for i, byNumber := range []bool{true, true, false, true} { // and back and forth
		must(t, p.AddressByNumber(byNumber))
		sent := say(t, p, botNumber, fmt.Sprint(i))
		m := c.expect(t, fmt.Sprint(i))
		who, alt := payer(1), p.Account().LID()
		if !byNumber {
			who, alt = alt, who
		}
		if m.Info.Sender.User != who || m.Info.SenderAlt.User != alt {
			t.Fatalf("the sender is %s, alt %s", m.Info.Sender, m.Info.SenderAlt)
		}
		if ok, err := p.WaitStatus(t.Context(), sent.ID, wanet.StatusDelivered, within); err != nil || !ok {
			t.Fatalf("no tick: %v", err)
		}
		c.text(t, m.Info.Chat, fmt.Sprint("re ", i))
		e.hears(t, p, fmt.Sprint("re ", i))
	}
	n.Intercept(corruptFirst(botNumber))
	say(t, p, botNumber, "damaged")
	c.expect(t, "damaged")
}
