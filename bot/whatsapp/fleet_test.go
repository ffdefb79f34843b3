package whatsapp_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/await"
	"till/bot"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// squad is a fleet on a network, and what it was handed.
type squad struct {
	*whatsapp.Fleet
	t        *testing.T
	net      *wanet.Network
	db       *store.DB
	board    *checkout.Board
	log      *safeBuffer
	messages chan bot.Message
	linked   atomic.Int64 // times that a QR code was scanned
	dir      string
	stop     context.CancelFunc
	done     chan error
}

// numberIn is our number in a slot.
func numberIn(slot int) string { return fmt.Sprintf("23480000000%02d", slot) }

// newSquad makes a fleet whose phones link it by themselves. It does not run yet.
func newSquad(t *testing.T, n *wanet.Network, db *store.DB, dir string, numbers int, change func(*whatsapp.FleetConfig)) *squad {
	t.Helper()
	s := &squad{t: t, net: n, db: db, dir: dir, log: &safeBuffer{}, messages: make(chan bot.Message, 100)}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.board = checkout.NewBoard(db, time.Now, time.Now, log)
	root := n.RootKey()
	cfg := whatsapp.FleetConfig{
		Dir: dir, Name: "test", Numbers: numbers, Board: s.board, Within: within, Rand: rand.Reader,
		Leases: checkout.NewLeases(db, nil, "t:", fmt.Sprintf("%s/%p", t.Name(), s), time.Now, log),
		Client: whatsapp.Config{
			Dial: n.DialContext, RootKey: &root, PushName: "Till", Now: time.Now, Log: log,
			Receive: func(_ context.Context, m bot.Message) error { s.messages <- m; return nil },
			Tick:    func(context.Context, checkout.Tick) error { return nil },
		},
		OnPairing: func(slot int, qr string) {
			owner, err := n.AddAccount(numberIn(slot), "")
			if err != nil {
				t.Error(err)
				return
			}
			if err := owner.ScanQR(qr); err != nil {
				t.Error(err)
			}
			s.linked.Add(1)
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	s.Fleet, err = whatsapp.NewFleet(cfg)
	must(t, err)
	return s
}

// afresh is a fleet of some numbers that runs, with a store of its own.
func afresh(t *testing.T, numbers int) *squad {
	t.Helper()
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), numbers, nil)
	s.run()
	for slot := 1; slot <= numbers; slot++ {
		s.awaits(slot, flow.NumberLive)
	}
	return s
}

func (s *squad) run() {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	s.stop, s.done = stop, make(chan error, 1)
	done := s.done
	go func() { done <- s.Run(ctx) }()
	s.t.Cleanup(s.halt)
}

func (s *squad) halt() {
	if s.done == nil {
		return
	}
	s.stop()
	if err := <-s.done; err != nil {
		s.t.Error(err)
	}
	s.done = nil
}

// row is how a number stands as everybody reads it.
func (s *squad) row(slot int) flow.Number {
	must(s.t, s.board.Refresh(s.t.Context()))
	for _, n := range s.board.Numbers() {
		if n.Slot == slot {
			return n
		}
	}
	return flow.Number{}
}

func (s *squad) awaits(slot int, want flow.NumberState) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("number %d is %+v\n%s", slot, s.row(slot), s.log)
		}
	}()
	await.Until(s.t, fmt.Sprintf("number %d is %s", slot, want), func() bool { return s.row(slot).At(time.Now()) == want })
}

// device is the linked client of a slot as the network sees it.
func (s *squad) device(slot int) *wanet.Device {
	a, _ := s.net.Account(numberIn(slot))
	for _, dev := range a.Devices() {
		if dev.ID() != 0 {
			return dev
		}
	}
	s.t.Fatal("nothing is linked")
	return nil
}

// picks are the numbers that so many new links would carry.
func (s *squad) picks(count int) map[string]int {
	must(s.t, s.board.Refresh(s.t.Context()))
	got := map[string]int{}
	for range count {
		got[s.board.Pick()]++
	}
	return got
}

func (s *squad) sends(slot int, p *wanet.Phone, id, text string) error {
	return s.Send(s.t.Context(), checkout.Outgoing{Number: numberIn(slot), Person: p.Account().LID(), ID: id, Text: text})
}

// Whatever becomes of one number, the others go on and the process lives; new
// links carry a number that works.
func TestOneNumberStopsNoOther(t *testing.T) {
	s := afresh(t, 3)
	if got := s.picks(6); got[numberIn(1)] != 2 || got[numberIn(2)] != 2 || got[numberIn(3)] != 2 {
		t.Errorf("new links are spread %v", got)
	}
	s.device(1).Replace()
	s.awaits(1, flow.NumberReplaced)
	must(t, s.device(2).Logout())
	s.awaits(2, flow.NumberLoggedOut)
	p := phone(t, s.net, ada, "Ada")
	_, err := p.Send(t.Context(), numberIn(3), "hello")
	must(t, err)
	if m := got(t, s.messages); m.Text != "hello" || m.Number != numberIn(3) {
		t.Errorf("got %+v", m)
	}
	must(t, s.sends(3, p, "3EB01", "hello back"))
	hears(t, p, 1)
	for _, slot := range []int{1, 2} {
		if err := s.sends(slot, p, "3EB02", "x"); !errors.Is(err, whatsapp.ErrOffline) {
			t.Errorf("sent with number %d: %v", slot, err)
		}
		if now := s.board.Current(numberIn(slot)); now != numberIn(3) {
			t.Errorf("a link to number %d carries %s", slot, now)
		}
	}
	if got := s.picks(4); got[numberIn(3)] != 4 {
		t.Errorf("new links are spread %v", got)
	}
	select {
	case err := <-s.done:
		t.Fatalf("the fleet ended: %v", err)
	default:
	}
}

// One that was logged out is kept, and linked again only when somebody decides.
func TestALoggedOutNumberIsNotLinkedByItself(t *testing.T) {
	s := afresh(t, 2)
	must(t, s.device(1).Logout())
	s.awaits(1, flow.NumberLoggedOut)
	s.halt()
	if n := s.row(1); n.At(time.Now()) != flow.NumberLoggedOut || n.Digits != numberIn(1) || n.Holder != "" {
		t.Errorf("it is kept as %+v", n)
	}
	again := newSquad(t, s.net, s.db, s.dir, 2, nil)
	again.run()
	again.awaits(2, flow.NumberLive)
	again.awaits(1, flow.NumberLoggedOut)
	if n := again.linked.Load(); n != 0 {
		t.Errorf("it was linked %d times", n)
	}
	if again.row(1).State.Advice() == "" {
		t.Error("nobody is told what to do")
	}
}

// A panic in one number is an error of that number, which is tried again.
func TestAPanicOfOneNumber(t *testing.T) {
	var panicked atomic.Bool
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 2, func(c *whatsapp.FleetConfig) {
		link := c.OnPairing
		c.OnPairing = func(slot int, qr string) {
			if slot == 1 && panicked.CompareAndSwap(false, true) {
				panic("a bug")
			}
			link(slot, qr)
		}
	})
	s.run()
	s.awaits(2, flow.NumberLive)
	s.awaits(1, flow.NumberLive)
	if !panicked.Load() || !strings.Contains(s.log.String(), "panicked: a bug") {
		t.Error("nothing was said of the panic")
	}
}

// A number that is connected and hears nothing is found out by another, its
// line is renewed once, and it takes no new chats until it hears again.
func TestADeafNumber(t *testing.T) {
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 2,
		func(c *whatsapp.FleetConfig) { c.Within = 300 * time.Millisecond })
	s.run()
	s.awaits(1, flow.NumberLive)
	s.awaits(2, flow.NumberLive)
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
	s := afresh(t, 2)
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
	s := afresh(t, 1)
	s.Line(1).Handle(t.Context(), &events.TemporaryBan{Code: events.TempBanSentToTooManyPeople, Expire: time.Hour})
	s.awaits(1, flow.NumberBanned)
	n := s.row(1)
	if left := time.Until(n.Until); left < 59*time.Minute || left > time.Hour || !strings.Contains(n.Detail, "101") {
		t.Errorf("it is kept as %+v", n)
	}
	s.halt()
	again := newSquad(t, s.net, s.db, s.dir, 1, nil)
	again.run()
	await.Until(t, "it runs", func() bool { return again.Line(1) != nil && again.Line(1).Standing().State == flow.NumberBanned })
	if s.device(1).Online() || again.board.Pick() != "" {
		t.Error("a banned number connects or takes new chats")
	}
}

// An operator's switch holds at the next message.
func TestAKilledNumberSendsNothing(t *testing.T) {
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 2,
		func(c *whatsapp.FleetConfig) { c.Within = 300 * time.Millisecond })
	s.run()
	s.awaits(1, flow.NumberLive)
	s.awaits(2, flow.NumberLive)
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

// Two processes on the same keys: the second waits, and takes over as soon as
// the first lets go.
func TestTheSecondProcessTakesOver(t *testing.T) {
	first := afresh(t, 2)
	second := newSquad(t, first.net, first.db, first.dir, 2, nil)
	second.run()
	await.Until(t, "the second waits", func() bool { return strings.Contains(second.log.String(), "another process runs it") })
	p := phone(t, first.net, ada, "Ada")
	must(t, first.sends(1, p, "3EB01", "one"))
	if err := second.sends(1, p, "3EB02", "two"); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("the second sent: %v", err)
	}
	token := first.row(1).Token
	first.halt()
	second.awaits(1, flow.NumberLive)
	second.awaits(2, flow.NumberLive)
	if now := second.row(1).Token; now <= token {
		t.Errorf("the tokens are %d, %d", token, now)
	}
	must(t, second.sends(1, p, "3EB02", "two"))
	if all := hears(t, p, 2); all[1].Text != "two" {
		t.Errorf("the phone shows %+v", all)
	}
	if n := second.linked.Load(); n != 0 {
		t.Errorf("it was linked %d times", n)
	}
}

// A process whose lease another one has by now sends nothing, opens no line and
// lets go.
func TestALostLeaseSendsNothing(t *testing.T) {
	s := afresh(t, 1)
	p := phone(t, s.net, ada, "Ada")
	row := s.row(1)
	must(t, s.db.Update(t.Context(), func(tx *store.Tx) error {
		taken, err := tx.TakeNumber(t.Context(), flow.Number{Slot: 1, Holder: "other", Token: row.Token + 1, HeldUntil: time.Now().Add(time.Hour)}, row.Holder, time.Now())
		if err == nil && !taken {
			err = errors.New("not taken")
		}
		return err
	}))
	if err := s.sends(1, p, "3EB01", "x"); !errors.Is(err, checkout.ErrLeaseLost) || !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("sent: %v", err)
	}
	await.Until(t, "it lets go", func() bool { return s.Line(1) == nil })
	if n := s.row(1); n.Holder != "other" || n.Token != row.Token+1 {
		t.Errorf("it is %+v", n)
	}
	if s.device(1).Online() {
		t.Error("its line stays open")
	}
}

// Keys that a process with another database uses are left alone, and so are
// those of one whose lock is held though its lease has run out, until the row
// says that it is that one.
func TestTheLockOnTheKeys(t *testing.T) {
	n, dir := network(t), t.TempDir()
	taken := func(string) (func() error, error) { return nil, errors.New("another process holds it") }
	file := filepath.Join(dir, "test-1.db.lock")
	must(t, os.WriteFile(file, []byte("somebody else\n"), 0o600))
	s := newSquad(t, n, storetest.Open(t, storetest.SQLite(t, store.Checkout)), dir, 1, func(c *whatsapp.FleetConfig) { c.Lock = taken })
	s.run()
	await.Until(t, "it says why it waits", func() bool { return strings.Contains(s.log.String(), "another process runs it") })
	if s.Line(1) != nil || s.row(1).Holder != "" {
		t.Errorf("it uses keys that are locked: %+v", s.row(1))
	}
	// The row's holder is that very process, and its lease is over: it is paused.
	must(t, s.db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.TakeNumber(t.Context(), flow.Number{Slot: 1, Holder: "somebody else", Token: 1_000_000, HeldUntil: time.Now().Add(-time.Second)}, "", time.Now())
		return err
	}))
	s.awaits(1, flow.NumberLive)
	if raw, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(raw), "!") {
		t.Errorf("the lock says %q, %v", raw, err)
	}
	if got := s.row(1).Token; got != 1_000_001 {
		t.Errorf("the token is %d", got)
	}
}

func TestAFleetHasItsParts(t *testing.T) {
	n := network(t)
	s := newSquad(t, n, storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 1, nil)
	for _, name := range []string{"test-7.db", "test-12.db", "live-3.db", "test-0.db", "test-7.db.lock", "test-x.db", "other"} {
		must(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
	}
	if slots, err := whatsapp.Slots(s.dir, "test"); err != nil || !slices.Equal(slots, []int{7, 12}) {
		t.Errorf("the slots are %v, %v", slots, err)
	}
	if _, err := whatsapp.NewFleet(whatsapp.FleetConfig{}); !errors.Is(err, whatsapp.ErrInput) {
		t.Errorf("a fleet of nothing: %v", err)
	}
	if _, ok := s.Pairing(); ok || s.Trouble() != "" || s.Syncing(numberIn(1)) {
		t.Error("a fleet that does not run says something")
	}
}
