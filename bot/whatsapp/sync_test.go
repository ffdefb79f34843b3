package whatsapp_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/bot"
	"till/bot/whatsapp"
	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// missed is a linked number that is about to run, and that somebody wrote to while it
// did not.
func missed(t *testing.T, texts ...string) *desk {
	t.Helper()
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	say(t, p, "before")
	got(t, d.messages)
	settle(t, d.net) // or it comes once more with what was missed
	d.halt()
	for _, text := range texts {
		say(t, p, text)
	}
	return d
}

// What was missed is still coming in for as long as it does, however long a message of it
// takes to be kept: what is told by the clock waits for the last of it.
func TestWhatWasMissedComesInHoweverLongThatTakes(t *testing.T) {
	d := missed(t, "one", "two", "three")
	const quiet = 2 * time.Second // longer than it takes to the first of it, also on a busy machine
	d.HurrySync(quiet, time.Hour)
	waits := make(chan bool, 1)
	d.onEach(func(m bot.Message) error {
		if m.Text == "one" {
			<-time.After(quiet + quiet/2)
			waits <- d.Syncing()
		}
		return nil
	})
	d.run()
	if !<-waits {
		t.Error("while one is being kept all that was missed is taken to be in")
	}
	for _, text := range []string{"one", "two", "three"} {
		if m := got(t, d.messages); m.Text != text {
			t.Errorf("%q came in, want %q", m.Text, text)
		}
	}
	await.Until(t, "it is live", func() bool { return d.Standing().State == flow.NumberLive })
}

// It ends by itself all the same.
func TestWhatWasMissedIsNotWaitedForForEver(t *testing.T) {
	d := missed(t, "one")
	d.HurrySync(time.Hour, 100*time.Millisecond)
	free := make(chan struct{})
	let := sync.OnceFunc(func() { close(free) })
	t.Cleanup(let) // before the client is closed, which waits for it
	d.onEach(func(bot.Message) error {
		<-free
		return nil
	})
	d.run()
	d.await(whatsapp.StateConnected)
	await.Until(t, "it is taken to be in", func() bool { return !d.Syncing() })
	let()
	got(t, d.messages)
}

// What a number missed may come in to another process: what is told by the clock waits for
// it there too, for as long as that one runs the number.
func TestWhatComesInElsewhereIsWaitedFor(t *testing.T) {
	s := newSquad(t, network(t), storetest.Open(t, storetest.SQLite(t, store.Checkout)), t.TempDir(), 1, nil)
	other := flow.Number{Slot: 1, Digits: numberIn(1), Holder: "other", Token: 1, HeldUntil: time.Now().Add(time.Hour)}
	must(t, s.db.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.AddNumber(t.Context(), 1, time.Now()); err != nil {
			return err
		}
		_, err := tx.TakeNumber(t.Context(), other, "", time.Now())
		return err
	}))
	says := func(state flow.NumberState, since time.Duration) {
		other.State, other.Since = state, time.Now().Add(-since)
		must(t, s.board.Report(t.Context(), other))
	}
	for _, c := range []struct {
		state flow.NumberState
		since time.Duration
		waits bool
	}{
		{flow.NumberConnecting, time.Second, true}, {flow.NumberConnecting, time.Hour, false}, {flow.NumberSyncing, time.Second, true}, {flow.NumberLive, 0, false},
	} {
		if says(c.state, c.since); s.Syncing() != c.waits {
			t.Errorf("while it is %s there for %s, it is waited for here: %v", c.state, c.since, s.Syncing())
		}
	}
	says(flow.NumberSyncing, 0)
	must(t, s.db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.HoldNumber(t.Context(), 1, other.Token, time.Now().Add(-time.Second))
		return err
	}))
	if s.row(1); s.Syncing() {
		t.Error("it is waited for though nobody runs it any more")
	}
}

// What was written while no process ran is waited for from the start on: what fell due
// meanwhile is told by the clock at once, and the line is open a moment later.
func TestWhatIsStillToComeAtTheStartIsWaitedFor(t *testing.T) {
	s := afresh(t, 1, nil)
	p := phone(t, s.net, ada, "Ada")
	say(t, p, "before")
	got(t, s.messages)
	settle(t, s.net)
	s.halt()
	say(t, p, "meanwhile")
	again := newSquad(t, s.net, s.db, s.dir, 1, nil)
	waits := again.Syncing()
	again.run()
	for waits {
		waits = again.Syncing()
	}
	select {
	case m := <-again.messages:
		if m.Text != "meanwhile" {
			t.Errorf("%q came in", m.Text)
		}
	default:
		t.Errorf("all that was missed is taken to be in before any of it came: %+v\n%s", again.row(1), again.log)
	}
}

// A line that breaks is open again in a moment, as one that opens at the start is: what is
// written meanwhile is waited for, and a network that stays away is not for ever.
func TestALineThatDoesNotOpenIsNotWaitedForForEver(t *testing.T) {
	n, away := network(t), atomic.Bool{}
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), func(ctx context.Context) (net.Conn, error) {
		if away.Load() {
			return nil, errors.New("the network is away")
		}
		return n.DialContext(ctx)
	})
	d.HurrySync(time.Hour, time.Second)
	d.run()
	d.link(ourNumber)
	await.Until(t, "it is live", func() bool { return d.Standing().State == flow.NumberLive })
	for name, goes := range map[string]func(){
		"that breaks": func() { d.device().Drop() },
		"at the start": func() {
			d.halt()
			d.run()
		},
	} {
		away.Store(true)
		goes()
		await.Until(t, "a line "+name+" is waited for", d.Syncing)
		await.Until(t, "a line "+name+" is waited for no longer", func() bool { return !d.Syncing() })
		if s := d.State(); s != string(whatsapp.StateConnecting) {
			t.Errorf("it is %s", s)
		}
		away.Store(false)
		await.Until(t, "it is live again", func() bool { return d.Standing().State == flow.NumberLive })
	}
}
