package whatsapp_test

import (
	"strings"
	"testing"

	"till/bot/whatsapp"
	"till/flow"
	"till/flow/await"
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

// Keys that cannot even be opened are told of, as long as that lasts.
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
	must(t, file.Script(`DROP TRIGGER full`))
	s.awaits(1, flow.NumberLive)
	if err := s.Unkept(); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}
