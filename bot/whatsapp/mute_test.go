package whatsapp_test

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till/bot/whatsapp"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store/lite"
)

// A number whose keys cannot be kept, as on a disk that is full, sends nothing: it says
// so for as long as that lasts and no longer, and what it is to send leaves once there
// is room. What it hears is heard all the same.
func TestANumberWhoseKeysCannotBeKeptIsMute(t *testing.T) {
	s := afresh(t, 1, nil)
	p := phone(t, s.net, ada, "Ada")
	_, err := p.Send(t.Context(), numberIn(1), "hello")
	must(t, err)
	got(t, s.messages)
	must(t, s.sends(1, p, "3EB01", "hello back"))
	hears(t, p, 1)
	if err := s.Unkept(); err != nil {
		t.Fatalf("while all is well: %v", err)
	}
	file, err := lite.Open("file:"+whatsapp.KeysFile(s.dir, "test", 1), "busy_timeout(10000)")
	must(t, err)
	defer func() { must(t, file.Close()) }()
	must(t, file.Script(`CREATE TRIGGER full BEFORE UPDATE ON whatsmeow_sessions BEGIN SELECT RAISE(ABORT, 'no room'); END`))
	if err := s.sends(1, p, "3EB02", "are you there?"); err == nil {
		t.Error("it was sent")
	}
	s.awaits(1, flow.NumberMute)
	if row := s.row(1); !strings.Contains(row.Detail, "no room") || row.Since.IsZero() {
		t.Errorf("it stands %+v", row)
	}
	if err := s.Unkept(); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("why nothing is kept: %v", err)
	}
	if s.board.Any() != "" {
		t.Error("it takes new chats")
	}
	_, err = p.Send(t.Context(), numberIn(1), "and you?")
	must(t, err)
	if m := got(t, s.messages); m.Text != "and you?" {
		t.Errorf("it heard %+v", m)
	}
	must(t, file.Script(`DROP TRIGGER full`))
	s.awaits(1, flow.NumberLive) // by itself
	if err := s.Unkept(); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	must(t, s.sends(1, p, "3EB02", "are you there?"))
	hears(t, p, 2)
}

// Keys that cannot even be opened are told of, as long as that lasts: the number is mute
// and not just offline, so that nobody is told to start what runs already.
func TestKeysThatCannotBeOpenedAreToldOf(t *testing.T) {
	s := afresh(t, 1, nil)
	s.halt()
	name := whatsapp.KeysFile(s.dir, "test", 1)
	file, err := lite.Open("file:"+name, "busy_timeout(10000)")
	must(t, err)
	defer func() { must(t, file.Close()) }()
	must(t, file.Script(`CREATE TRIGGER full BEFORE UPDATE ON till_claim BEGIN SELECT RAISE(ABORT, 'no room'); END`))
	s.run()
	await.Until(t, "it is told", func() bool { err := s.Unkept(); return err != nil && strings.Contains(err.Error(), "no room") })
	s.awaits(1, flow.NumberMute)
	row := s.row(1)
	if !strings.Contains(row.Detail, "no room") || row.Since.IsZero() || row.Digits != numberIn(1) || row.Able(time.Now()) && s.board.Any() != "" {
		t.Errorf("it stands %+v", row)
	}
	must(t, file.Script(`DROP TRIGGER full`))
	s.awaits(1, flow.NumberLive)
	if err := s.Unkept(); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

// readOnly is a fleet of one number, in a folder that is read-only from now on: not even
// the lock beside the keys can be opened. On tries it tells of each try, until mended.
func readOnly(t *testing.T) (s *squad, leases *checkout.Leases, tries <-chan struct{}, mend func()) {
	t.Helper()
	var broken atomic.Bool
	told := make(chan struct{}, 100)
	s = afresh(t, 1, func(cfg *whatsapp.FleetConfig) {
		leases = cfg.Leases
		cfg.Lock = func(path string) (func() error, error) {
			if !broken.Load() {
				return func() error { return nil }, nil
			}
			told <- struct{}{}
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EROFS}
		}
	})
	s.halt()
	broken.Store(true)
	return s, leases, told, func() { broken.Store(false) }
}

// It is told since when that is so, and not when it was last tried.
func TestKeysThatCannotBeLockedAreToldOf(t *testing.T) {
	s, _, tries, mend := readOnly(t)
	s.run()
	s.awaits(1, flow.NumberMute)
	began := s.row(1).Since
	for range 3 { // before the third the second has ended
		<-tries
	}
	if row := s.row(1); row.At(time.Now()) != flow.NumberMute || !row.Since.Equal(began) || !strings.Contains(row.Detail, "read-only") {
		t.Errorf("tried again, it stands %+v, and stood so since %v", row, began)
	}
	mend()
	s.awaits(1, flow.NumberLive)
}

// What else is known of a number is not told over by that: a ban is remembered, and
// nothing is sent before it is over.
func TestABanOutlivesKeysThatCannotBeOpened(t *testing.T) {
	s, leases, tries, _ := readOnly(t)
	lease, err := leases.Take(t.Context(), 1, "")
	must(t, err)
	until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	must(t, s.board.Report(t.Context(), flow.Number{Slot: 1, Token: lease.Token, State: flow.NumberBanned, Until: until}))
	must(t, lease.Drop(t.Context()))
	s.run()
	<-tries
	<-tries
	if row := s.row(1); row.At(time.Now()) != flow.NumberBanned || !row.Until.Equal(until) {
		t.Errorf("it stands %+v", row)
	}
}
