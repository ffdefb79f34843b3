package whatsapp_test

import (
	"sync"
	"testing"
	"time"

	"till/bot"
	"till/bot/whatsapp"
	"till/flow"
	"till/flow/await"
)

// missed is a linked number that is about to run, and that somebody wrote to while it
// did not.
func missed(t *testing.T, texts ...string) *desk {
	t.Helper()
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	say(t, p, "before")
	got(t, d.messages)
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
	d.HurrySync(300*time.Millisecond, time.Hour)
	seen := make(chan bool, 3)
	d.onEach(func(m bot.Message) error {
		if m.Text == "one" {
			for late := time.Now().Add(900 * time.Millisecond); d.Syncing() && time.Now().Before(late); {
				time.Sleep(time.Millisecond)
			}
		}
		seen <- d.Syncing()
		return nil
	})
	d.run()
	for _, text := range []string{"one", "two", "three"} {
		if m := got(t, d.messages); m.Text != text || !<-seen {
			t.Errorf("%q came in, and all that was missed was taken to be in", m.Text)
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
