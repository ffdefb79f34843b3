package wanet_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp/wanet"
)

// talk is a bot and a phone that have met.
func talk(t *testing.T) (*wanet.Network, *client, *wanet.Phone, *events.Message) {
	t.Helper()
	n, c, p := talking(t)
	say(t, p, botNumber, "hi")
	m := c.expect(t, "hi")
	c.text(t, m.Info.Chat, "ho")
	(&ear{}).hears(t, p, "ho")
	settle(t, n)
	return n, c, p, m
}

// once lets a fault hit the first delivery of a message to the phone or client.
func once(toPhone bool, act wanet.Action) func(wanet.Delivery) wanet.Action {
	var done atomic.Bool
	return func(d wanet.Delivery) wanet.Action {
		if d.Class == "message" && d.Phone == toPhone && done.CompareAndSwap(false, true) {
			return act
		}
		return wanet.Action{}
	}
}

func (e *ear) from(t *testing.T, p *wanet.Phone) *ear {
	t.Helper()
	items, _, err := p.Messages(t.Context(), 0, 0)
	must(t, err)
	for _, m := range items {
		e.next = m.Seq
	}
	return e
}

// Every message delivered twice is seen once, by clients and phones.
func TestDuplicates(t *testing.T) {
	n, c, p, m := talk(t)
	must(t, n.SetFaults(wanet.Faults{Duplicate: true}))
	n.Intercept(func(d wanet.Delivery) wanet.Action {
		if d.Phone {
			return wanet.Action{Do: wanet.Dup, Copies: 3}
		}
		return wanet.Action{}
	})
	e := new(ear).from(t, p)
	fresh := phone(t, n, payer(2)) // its first message is of the pre-key kind
	for i := range 3 {
		say(t, p, botNumber, fmt.Sprint("a", i))
		c.expect(t, fmt.Sprint("a", i))
		say(t, fresh, botNumber, fmt.Sprint("b", i))
		c.expect(t, fmt.Sprint("b", i))
		c.text(t, m.Info.Chat, fmt.Sprint("c", i))
		e.hears(t, p, fmt.Sprint("c", i))
	}
	settle(t, n)
	if len(c.messages) != 0 {
		t.Fatal("a duplicate came through")
	}
	if s := n.Stats(); s.Duplicates < 9 || s.Undecoded != 0 {
		t.Fatalf("stats %+v", s)
	}
}

// A dropped delivery comes with the next login, a held one when it is released.
func TestDropAndHold(t *testing.T) {
	n, c, p, m := talk(t)
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	n.Intercept(once(false, wanet.Action{Do: wanet.Drop}))
	say(t, p, botNumber, "dropped")
	say(t, p, botNumber, "not dropped")
	c.expect(t, "not dropped")
	eventually(t, "one is left", func() bool { return d.Pending("message") == 1 })
	d.Drop()
	c.expect(t, "dropped")

	n.Intercept(once(false, wanet.Action{Do: wanet.Hold}))
	say(t, p, botNumber, "held")
	say(t, p, botNumber, "next")
	c.expect(t, "next")
	n.Release()
	c.expect(t, "held")

	e := new(ear).from(t, p)
	n.Intercept(once(true, wanet.Action{Do: wanet.Hold}))
	c.text(t, m.Info.Chat, "held back")
	c.text(t, m.Info.Chat, "overtakes")
	e.hears(t, p, "overtakes")
	n.Release()
	e.hears(t, p, "held back")
	settle(t, n)
}

// A cut loses the stanza and the line; it comes after the client is back.
func TestCut(t *testing.T) {
	n, c, p, _ := talk(t)
	n.Intercept(once(false, wanet.Action{Do: wanet.Cut}))
	say(t, p, botNumber, "through the cut")
	next[*events.Disconnected](t, c)
	c.expect(t, "through the cut")
	n.Intercept(nil)
	must(t, n.SetFaults(wanet.Faults{DropPercent: 40}))
	for i := range 10 {
		say(t, p, botNumber, fmt.Sprint(i))
	}
	got := map[string]int{"through the cut": 1}
	distinct(t, c, got, 11)
	for i := range 10 {
		if got[fmt.Sprint(i)] == 0 {
			t.Fatalf("came: %v", got)
		}
	}
}

// Delayed messages are overtaken and still read.
func TestOutOfOrder(t *testing.T) {
	n, c, p, _ := talk(t)
	n.Intercept(once(false, wanet.Action{Do: wanet.Delay, After: 50 * time.Millisecond}))
	for i := range 3 {
		say(t, p, botNumber, fmt.Sprint(i))
	}
	c.expect(t, "1")
	c.expect(t, "2")
	c.expect(t, "0")
}

// What does not decrypt is asked for again, by the client and by the phone, on an
// old session and on a new one.
func TestRetry(t *testing.T) {
	n, c, p, m := talk(t)
	for _, who := range []*wanet.Phone{p, phone(t, n, payer(2))} {
		n.Intercept(once(false, wanet.Action{Do: wanet.Corrupt}))
		say(t, who, botNumber, "damaged")
		next[*events.UndecryptableMessage](t, c)
		c.expect(t, "damaged")
	}
	e := new(ear).from(t, p)
	n.Intercept(once(true, wanet.Action{Do: wanet.Corrupt}))
	c.text(t, m.Info.Chat, "damaged back")
	e.hears(t, p, "damaged back")

	// Damaged every time but the last: new keys are brought.
	n.Intercept(func(d wanet.Delivery) wanet.Action {
		if d.Class == "message" && d.Phone {
			return once3(d)
		}
		return wanet.Action{}
	})
	tries.Store(0)
	c.text(t, m.Info.Chat, "damaged thrice")
	e.hears(t, p, "damaged thrice")
	tries.Store(0)
	n.Intercept(func(d wanet.Delivery) wanet.Action {
		if d.Class == "message" && !d.Phone {
			return once3(d)
		}
		return wanet.Action{}
	})
	say(t, p, botNumber, "damaged thrice too")
	c.expect(t, "damaged thrice too")
	n.Intercept(nil)
	say(t, p, botNumber, "well again")
	c.expect(t, "well again")
	c.text(t, m.Info.Chat, "both ways")
	e.hears(t, p, "both ways")
	if s := n.Stats(); s.Retries < 8 {
		t.Fatalf("%d retries", s.Retries)
	}
}

var tries atomic.Int32

func once3(wanet.Delivery) wanet.Action {
	if tries.Add(1) <= 3 {
		return wanet.Action{Do: wanet.Corrupt}
	}
	return wanet.Action{}
}

// The server's refusals reach the sender as errors, and nobody else hears of it.
func TestNack(t *testing.T) {
	n, c, p, m := talk(t)
	e := new(ear).from(t, p)
	n.Nack(func(s wanet.Sent) int {
		if s.To == payer(1) {
			return 463
		}
		return 0
	})
	_, err := c.SendMessage(t.Context(), m.Info.Chat, &waE2E.Message{Conversation: new("refused")})
	if !errors.Is(err, whatsmeow.ErrServerReturnedError) {
		t.Fatalf("the error is %v", err)
	}
	n.Nack(nil)
	must(t, n.SetFaults(wanet.Faults{Nack: 479}))
	if _, err = c.SendMessage(t.Context(), m.Info.Chat, &waE2E.Message{Conversation: new("refused")}); err == nil {
		t.Fatal("not refused")
	}
	must(t, n.SetFaults(wanet.Faults{}))
	c.text(t, m.Info.Chat, "accepted")
	e.hears(t, p, "accepted")
}

// A slow server holds up the sender, not the receiver.
func TestAckDelay(t *testing.T) {
	n, c, p, m := talk(t)
	must(t, n.SetFaults(wanet.Faults{AckDelayMs: 150}))
	e := new(ear).from(t, p)
	start := time.Now()
	c.text(t, m.Info.Chat, "slow")
	if took := time.Since(start); took < 140*time.Millisecond {
		t.Fatalf("the ack took %s", took)
	}
	e.hears(t, p, "slow")
}

// The line breaks between a message and its ack: the client sends again, the
// phone sees it once.
func TestCutBeforeAck(t *testing.T) {
	if !stockMaySend {
		t.Skip("the line breaks under a send")
	}
	n, c, p, m := talk(t)
	must(t, n.SetFaults(wanet.Faults{AckDelayMs: 60_000}))
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	e := new(ear).from(t, p)
	var wg sync.WaitGroup
	wg.Go(func() { c.text(t, m.Info.Chat, "acked at last") })
	e.hears(t, p, "acked at last")
	must(t, n.SetFaults(wanet.Faults{}))
	d.Drop()
	wg.Wait()
	c.text(t, m.Info.Chat, "end")
	e.hears(t, p, "end")
}

// Requests that get no answer time out at the client; others are answered.
func TestSilentIQ(t *testing.T) {
	n, c, _, m := talk(t)
	heard := make(chan struct{}, 8)
	n.SilenceIQ(func(xmlns string) bool {
		if xmlns == "usync" {
			heard <- struct{}{}
		}
		return xmlns == "usync"
	})
	asked := make(chan error, 1)
	go func() {
		_, err := c.IsOnWhatsApp(t.Context(), []string{"+" + payer(1)})
		asked <- err
	}()
	<-heard
	c.text(t, m.Info.Chat, "goes on")
	select {
	case err := <-asked:
		t.Fatalf("it was answered: %v", err)
	default:
	}
	// Once the line was cut the client asks again.
	n.SilenceIQ(nil)
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	d.Drop()
	must(t, <-asked)
	known, err := c.IsOnWhatsApp(t.Context(), []string{"+" + payer(1), "+2348099999999"})
	must(t, err)
	if len(known) != 2 || !known[0].IsIn || known[1].IsIn || known[0].PhoneNumber.User != payer(1) {
		t.Fatalf("known: %+v", known)
	}
}

// The ways a session ends: 503 and it comes back; replaced and it stays away;
// logged out and it forgets.
func TestEnds(t *testing.T) {
	n, c, p, _ := talk(t)
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	d.StreamError(503)
	next[*events.Disconnected](t, c)
	say(t, p, botNumber, "after 503")
	c.expect(t, "after 503")
	settle(t, n)
	d.Replace()
	next[*events.StreamReplaced](t, c)
	say(t, p, botNumber, "after replaced")
	c.Disconnect()
	must(t, c.Connect())
	c.expect(t, "after replaced")
	settle(t, n)
	must(t, d.Logout())
	if e := next[*events.LoggedOut](t, c); e.OnConnect {
		t.Fatal("it heard of it too late")
	}
	eventually(t, "the client forgets who it was", func() bool {
		var left int
		return c.db.QueryRow("SELECT count(*) FROM whatsmeow_device").Scan(&left) == nil && left == 0
	})
	if _, ok := a.Device(1); ok {
		t.Fatal("the device is still there")
	}
	// Linked anew it is another device.
	c.Disconnect()
	c2 := newClient(t, n.HTTPClient(), filepath.Join(t.TempDir(), "bot2.db"))
	link(t, n, c2)
	if _, ok := a.Device(2); !ok {
		t.Fatal("the id of a removed device was given again")
	}
	say(t, p, botNumber, "to the new one")
	m := c2.expect(t, "to the new one")
	e := new(ear).from(t, p)
	c2.text(t, m.Info.Chat, "from the new one")
	e.hears(t, p, "from the new one")
}

// A client that logs in while its device is connected takes the place.
func TestTakeOver(t *testing.T) {
	n := open(t, "")
	path := filepath.Join(t.TempDir(), "bot.db")
	first := newClient(t, n.HTTPClient(), path)
	link(t, n, first)
	second := newClient(t, n.HTTPClient(), path)
	must(t, second.Connect())
	next[*events.StreamReplaced](t, first)
	p := phone(t, n, payer(1))
	say(t, p, botNumber, "hi")
	second.expect(t, "hi")
}

// A client whose device was unlinked while it was away is told at the login.
func TestUnlinkedWhileAway(t *testing.T) {
	n := open(t, "")
	c := bot(t, n)
	c.Disconnect()
	a, _ := n.Account(botNumber)
	d, _ := a.Device(1)
	must(t, d.Logout())
	must(t, c.Connect())
	if e := next[*events.LoggedOut](t, c); !e.OnConnect {
		t.Fatalf("%+v", e)
	}
}

// A client logs itself out.
func TestClientLogsOut(t *testing.T) {
	n := open(t, "")
	c := bot(t, n)
	must(t, c.Logout(t.Context()))
	a, _ := n.Account(botNumber)
	if _, ok := a.Device(1); ok {
		t.Fatal("the device is still there")
	}
}
