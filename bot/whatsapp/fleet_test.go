package whatsapp_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/bot"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/await"
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
	log      *await.Log
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
	s := &squad{t: t, net: n, db: db, dir: dir, log: &await.Log{}, messages: make(chan bot.Message, 100)}
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
func afresh(t *testing.T, numbers int, change func(*whatsapp.FleetConfig)) *squad {
	t.Helper()
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), numbers, change)
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
	s := afresh(t, 3, nil)
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
	// Somebody who reads the log knows which of them it is.
	for _, line := range []string{`msg="whatsapp connected" slot=3`, `msg="whatsapp number needs somebody" slot=2 state=logged_out`} {
		await.Until(t, "the log says "+line, func() bool { return strings.Contains(s.log.String(), line) })
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
	s := afresh(t, 2, nil)
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

// The keys go a moment before it is kept that the number was logged out. Killed in
// between, it is logged out all the same.
func TestANumberWhoseKeysAreGoneIsNotLinkedByItself(t *testing.T) {
	s := afresh(t, 2, nil)
	s.halt()
	if n := s.row(1); n.State != flow.NumberLive || n.Digits != numberIn(1) {
		t.Fatalf("it is kept as %+v", n)
	}
	keys, err := filepath.Glob(whatsapp.KeysFile(s.dir, "test", 1) + "*")
	must(t, err)
	if len(keys) == 0 {
		t.Fatal("it has no keys")
	}
	for _, file := range keys {
		must(t, os.Remove(file))
	}
	again := newSquad(t, s.net, s.db, s.dir, 2, nil)
	again.run()
	again.awaits(2, flow.NumberLive)
	again.awaits(1, flow.NumberLoggedOut)
	if n := again.linked.Load(); n != 0 {
		t.Errorf("it was linked %d times", n)
	}
	// Nobody unlinked it: its keys may lie in the data dir of another machine.
	tells := func(s *squad) {
		t.Helper()
		if n := s.row(1); !strings.Contains(n.Detail, "its keys are not in the data dir") {
			t.Errorf("it is kept as %+v", n)
		}
	}
	tells(again)
	again.halt()
	later := newSquad(t, s.net, s.db, s.dir, 2, nil)
	later.run()
	later.awaits(2, flow.NumberLive)
	later.awaits(1, flow.NumberLoggedOut)
	tells(later)
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

// Two processes on the same keys: the second waits, and takes over as soon as
// the first lets go.
func TestTheSecondProcessTakesOver(t *testing.T) {
	first := afresh(t, 2, nil)
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
	s := afresh(t, 1, nil)
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
	await.Until(t, "its line is closed at the network's end too", func() bool { return !s.device(1).Online() })
}

// Keys that are another user's are said to be so: nobody looks for a process that
// is not there.
func TestKeysOfAnotherUserAreNotCalledUsed(t *testing.T) {
	locked := func(path string) (func() error, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 1, func(c *whatsapp.FleetConfig) { c.Lock = locked })
	s.run()
	await.Until(t, "it says why it does not run", func() bool { return strings.Contains(s.log.String(), "does not run here") })
	if said := s.log.String(); !strings.Contains(said, "test-1.db.lock: permission denied") || strings.Contains(said, "another process") {
		t.Errorf("it says %s", said)
	}
	if got := s.row(1); got.Holder != "" {
		t.Errorf("it holds a number that it cannot run: %+v", got)
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
	if _, ok := s.Pairing(); ok || s.Trouble() != "" || s.Syncing() {
		t.Error("a fleet that does not run says something")
	}
}
