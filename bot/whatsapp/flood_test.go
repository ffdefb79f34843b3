package whatsapp_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"till/bot"
	"till/bot/whatsapp/wanet"
	"till/flow/await"
)

// heldByTheLibrary is how many stanzas wait in the library while one is handled
// (whatsmeow, handlerQueueSize).
const heldByTheLibrary = 2048

// While the disk stands still, more arrives than the library holds in order. All of
// it is kept once the disk is back, and acknowledged only then.
func TestMoreArrivesThanTheLibraryHolds(t *testing.T) {
	n, err := wanet.Open(t.Context(), wanet.Config{RootSeed: rootSeed, Ahead: 2 * heldByTheLibrary})
	must(t, err)
	t.Cleanup(func() { must(t, n.Close()) })
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.run()
	d.link(ourNumber)
	back := make(chan struct{})
	goesOn := sync.OnceFunc(func() { close(back) })
	t.Cleanup(goesOn)
	var mu sync.Mutex
	kept := map[string]bool{}
	d.onEach(func(m bot.Message) error {
		<-back
		mu.Lock()
		defer mu.Unlock()
		kept[m.ID] = true
		return nil
	})
	sent := map[string]bool{}
	const payers = 25
	for i := range payers {
		p := phone(t, d.net, fmt.Sprintf("23480360%05d", i), "Payer")
		for range heldByTheLibrary/payers + 10 {
			sent[say(t, p, "hello").ID] = true
		}
	}
	await.Until(t, "the library's queue is full", func() bool { return strings.Contains(d.log.String(), "Handler queue is full") })
	mu.Lock()
	if len(kept) > 0 {
		t.Errorf("%d messages are kept on a disk that stands still", len(kept))
	}
	mu.Unlock()
	goesOn()
	d.forgets()
	await.Until(t, "all that was sent is kept", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(kept) >= len(sent)
	})
	settle(t, d.net)
	for id := range kept {
		if !sent[id] {
			t.Errorf("%s was kept, which nobody sent", id)
		}
	}
}
