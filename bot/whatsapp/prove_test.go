package whatsapp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A number that is connected and hears nothing is found out by another, its
// line is renewed once, and it takes no new chats until it hears again.
func TestADeafNumber(t *testing.T) {
	s := afresh(t, 2, func(c *whatsapp.FleetConfig) { c.Within = 300 * time.Millisecond })
	if !s.Prove(t.Context()) {
		t.Fatalf("they do not hear each other\n%s", s.log)
	}
	s.net.Intercept(func(d wanet.Delivery) wanet.Action {
		if d.To == numberIn(2) && !d.Phone {
			return wanet.Action{Do: wanet.Drop}
		}
		return wanet.Action{}
	})
	if s.Prove(t.Context()) {
		t.Fatal("a deaf number hears")
	}
	s.awaits(2, flow.NumberDeaf)
	s.awaits(1, flow.NumberLive)
	if got := s.picks(4); got[numberIn(1)] != 4 {
		t.Errorf("new links are spread %v", got)
	}
	if now := s.board.Current(numberIn(2)); now != numberIn(2) { // it comes back: chats stay
		t.Errorf("a link to the deaf number carries %s", now)
	}
	await.Until(t, "its line is renewed", func() bool { return s.device(2).Online() && s.Line(2).State() == string(whatsapp.StateConnected) })
	s.Prove(t.Context())
	s.awaits(2, flow.NumberDeaf) // a new line alone proves nothing
	if n := strings.Count(s.log.String(), "is deaf"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	s.net.Intercept(nil)
	s.device(2).Drop() // what was dropped comes with the next login
	s.awaits(2, flow.NumberLive)
	await.Until(t, "they hear each other again", func() bool { return s.Prove(t.Context()) })
	p := phone(t, s.net, ada, "Ada")
	_, err := p.Send(t.Context(), numberIn(2), "till ear 3EB0")
	must(t, err)
	if m := got(t, s.messages); m.Text != "till ear 3EB0" || len(s.messages) != 0 {
		t.Errorf("%+v was handed over, and %d more: signs belong to our own numbers alone", m, len(s.messages))
	}
}

// One number alone has only its own phone to ask: an answer is a proof, silence
// is none.
func TestOneNumberAloneProvesItsEar(t *testing.T) {
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 1,
		func(c *whatsapp.FleetConfig) { c.Within = 2 * time.Second })
	phone(t, s.net, numberIn(1), "Owner")
	s.run()
	s.awaits(1, flow.NumberLive)
	const silent = "has no proof that it hears any more"
	s.Prove(t.Context())
	if strings.Contains(s.log.String(), "no proof") {
		t.Errorf("its phone did not answer\n%s", s.log)
	}
	s.net.Intercept(func(d wanet.Delivery) wanet.Action {
		if d.To == numberIn(1) && d.Class == "receipt" {
			return wanet.Action{Do: wanet.Drop}
		}
		return wanet.Action{}
	})
	for range 2 {
		s.Prove(t.Context())
	}
	if n := strings.Count(s.log.String(), silent); n != 1 {
		t.Errorf("it was said %d times that its phone does not answer", n)
	}
	if s.row(1).At(time.Now()) != flow.NumberLive {
		t.Errorf("it is %s", s.row(1).State)
	}
	if len(s.messages) != 0 {
		t.Error("a sign was handed over")
	}
}

// WhatsApp's lock on first messages stops those alone.
func TestATimelockedNumber(t *testing.T) {
	s := afresh(t, 2, nil)
	p := phone(t, s.net, ada, "Ada")
	s.net.Nack(func(m wanet.Sent) int {
		if m.From == numberIn(1) {
			return 463
		}
		return 0
	})
	first := checkout.Outgoing{Number: numberIn(1), Person: p.Account().LID(), ID: "3EB01", Text: "hello", First: true}
	if err := s.Send(t.Context(), first); !errors.Is(err, whatsapp.ErrOffline) || errors.Is(err, checkout.ErrUndeliverable) {
		t.Errorf("a first message under the lock: %v", err)
	}
	s.awaits(1, flow.NumberTimelocked)
	s.net.Nack(nil)
	if err := s.Send(t.Context(), first); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("a first message while the lock lasts: %v", err)
	}
	must(t, s.sends(1, p, "3EB02", "a reply goes on"))
	hears(t, p, 1)
	if got := s.picks(4); got[numberIn(2)] != 4 {
		t.Errorf("new links are spread %v", got)
	}
	// It outlives the process, and WhatsApp's word ends it.
	s.halt()
	again := newSquad(t, s.net, s.db, s.dir, 2, nil)
	again.run()
	await.Until(t, "it is connected", func() bool {
		return again.Line(1) != nil && again.Line(1).Standing().State == flow.NumberTimelocked
	})
	again.awaits(1, flow.NumberTimelocked)
	again.Line(1).Handle(t.Context(), &events.NotifyAccountReachoutTimelock{IsActive: false})
	again.awaits(1, flow.NumberLive)
	must(t, again.Send(t.Context(), first))
	hears(t, p, 1)
}

// A ban is waited for, over a restart too.
func TestABannedNumber(t *testing.T) {
	s := afresh(t, 1, nil)
	s.Line(1).Handle(t.Context(), &events.TemporaryBan{Code: events.TempBanSentToTooManyPeople, Expire: time.Hour})
	s.awaits(1, flow.NumberBanned)
	n := s.row(1)
	if left := time.Until(n.Until); left < 59*time.Minute || left > time.Hour || !strings.Contains(n.Detail, "101") {
		t.Errorf("it is kept as %+v", n)
	}
	s.halt()
	await.Until(t, "its line is closed at the network's end too", func() bool { return !s.device(1).Online() })
	again := newSquad(t, s.net, s.db, s.dir, 1, nil)
	again.run()
	await.Until(t, "it runs", func() bool { return again.Line(1) != nil && again.Line(1).Standing().State == flow.NumberBanned })
	if s.device(1).Online() || again.board.Pick() != "" {
		t.Error("a banned number connects or takes new chats")
	}
}

// An operator's switch holds at the next message.
func TestAKilledNumberSendsNothing(t *testing.T) {
	s := afresh(t, 2, func(c *whatsapp.FleetConfig) { c.Within = 300 * time.Millisecond })
	p := phone(t, s.net, ada, "Ada")
	move := func(to flow.NumberSwitch) {
		_, err := s.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchNumber, Name: numberIn(1), To: string(to)})
		must(t, err)
	}
	move(flow.NumberDrains)
	s.awaits(1, flow.NumberDraining)
	must(t, s.sends(1, p, "3EB01", "open chats go on"))
	hears(t, p, 1)
	move(flow.NumberKill)
	s.awaits(1, flow.NumberKilled)
	if err := s.sends(1, p, "3EB02", "x"); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("sent with a killed number: %v", err)
	}
	if !s.Prove(t.Context()) || s.row(2).At(time.Now()) != flow.NumberLive {
		t.Error("the other number is judged by one that may not send")
	}
	move(flow.NumberGoes)
	must(t, s.sends(1, p, "3EB02", "y"))
	hears(t, p, 1)
}

// One phone that was linked in two places is one number: it has no other to hear from, and
// that says nothing against either line.
func TestANumberThatIsLinkedTwiceIsNotDeaf(t *testing.T) {
	n := network(t)
	s := newSquad(t, n, storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 2, func(c *whatsapp.FleetConfig) {
		c.Within = 300 * time.Millisecond
		owner, err := n.AddAccount(numberIn(1), "")
		must(t, err)
		c.OnPairing = func(_ int, qr string) {
			if err := owner.ScanQR(qr); err != nil {
				t.Error(err)
			}
		}
	})
	s.run()
	for slot := range 2 {
		s.awaits(slot+1, flow.NumberLive)
	}
	for range 2 {
		if !s.Prove(t.Context()) {
			t.Error("a number does not hear itself")
		}
	}
	for slot := range 2 {
		if row := s.row(slot + 1); row.At(time.Now()) != flow.NumberLive {
			t.Errorf("it stands %+v", row)
		}
	}
}
