package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/rail"
	"till/rail/sandbox"
)

// Of several processes of one Till the last to register is told. Where it is gone,
// another of them is, at once, and who has another secret is none of them.
func TestAnotherProcessIsToldWhereOneIsGone(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Hour)
	tells := func(d *door, amount flow.Kobo) {
		t.Helper()
		w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: amount})
		if n := (town{rail: w.rail, door: d}).hear(t); n.Amount != amount {
			t.Errorf("notice %+v, not of %d", n, amount)
		}
		w.settled(t)
	}
	second := openDoor(t)
	for _, at := range []string{nowhere(t), second.url} {
		must(t, w.rail.Register(t.Context(), at))
	}
	tells(second, 7)
	must(t, w.rail.Register(t.Context(), nowhere(t)))
	tells(second, 8)
	second.answer(http.StatusServiceUnavailable) // which has heard it all the same
	tells(w.door, 9)
	if n := (town{rail: w.rail, door: second}).hear(t); n.Amount != 9 {
		t.Errorf("notice %+v", n)
	}
	tells(w.door, 10) // who took the last is asked first
	w.silent(t)
	if len(second.got) > 0 {
		t.Errorf("the other was told %d times more", len(second.got))
	}
	w.door.answer(http.StatusServiceUnavailable)
	tells(w.door, 11)
	if n := (town{rail: w.rail, door: second}).hear(t); n.Amount != 11 { // one that answered, and took nothing, is still there
		t.Errorf("notice %+v", n)
	}
	stranger, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: w.url, Secret: "a-secret-of-someone-else", Now: w.clock.Now})
	must(t, err)
	defer stranger.Close()
	must(t, stranger.Register(t.Context(), nowhere(t)))
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 12})
	await.Until(t, "the try is kept", func() bool { tried, err := w.bank.Tried(); return err == nil && tried == 1 })
	w.silent(t)
}

// A process that registers again, as one does that waited too short for the answer,
// takes no other's place.
func TestWhoRegistersAgainKeepsItsPlace(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Hour)
	second := openDoor(t)
	for _, at := range []string{second.url, w.door.url} {
		must(t, w.rail.Register(t.Context(), at))
	}
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	if n := (town{rail: w.rail, door: second}).hear(t); n.Amount != 7 {
		t.Errorf("notice %+v", n)
	}
	w.settled(t)
	if len(w.door.got) > 0 {
		t.Error("the first is told, which registered again")
	}
}

// However many processes registered and are gone, those that registered last are
// told, and no more than eight are asked.
func TestTheLastProcessesAreToldHoweverManyAreGone(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Hour)
	register := func(at string) {
		t.Helper()
		must(t, w.rail.Register(t.Context(), at))
	}
	lives := openDoor(t)
	register(lives.url)
	for range 7 {
		register(nowhere(t))
	}
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 1})
	if n := (town{rail: w.rail, door: lives}).hear(t); n.Amount != 1 {
		t.Errorf("notice %+v", n)
	}
	w.settled(t)
	for range 100 {
		register(nowhere(t))
	}
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 2})
	await.Until(t, "the try is kept", func() bool { tried, err := w.bank.Tried(); return err == nil && tried == 1 })
	w.silent(t)
	if len(lives.got) > 0 {
		t.Error("a ninth process is asked")
	}
}

// Who registers while a notice is on its way to where nobody answers any more is told
// of it at once: that try began before, and its failure says nothing of who is there now.
func TestWhoRegistersDuringATryIsToldAtOnce(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Hour)
	asked, gone := make(chan struct{}), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-gone
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(hangs.Close)
	other, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: w.url, Secret: "the-secret-of-before-a-reset", Now: w.clock.Now})
	must(t, err)
	t.Cleanup(other.Close)
	must(t, other.Register(t.Context(), hangs.URL))
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	<-asked
	must(t, w.rail.Register(t.Context(), w.door.url))
	close(gone)
	if n := w.hear(t); n.Amount != 7 {
		t.Errorf("notice %+v", n)
	}
}

// Who registers again is told at once of what failed before, and of nothing sooner than its
// time.
func TestWhoRegistersAgainHurriesNothingThatIsDelayed(t *testing.T) {
	w := openTown(t)
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 1, DelayMs: 600_000})
	must(t, w.rail.Register(t.Context(), w.door.url))
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 2})
	if n := w.hear(t); n.Amount != 2 {
		t.Errorf("notice %+v", n)
	}
	await.Until(t, "the first alone is owed", func() bool { n, err := w.bank.Owed("owed"); return err == nil && n == 1 })
	w.silent(t)
}
