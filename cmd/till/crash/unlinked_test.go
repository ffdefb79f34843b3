package crash

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow/await"
)

// alarmed is how long it may take until a number that was unlinked is said to be away.
const alarmed = 5 * time.Second

// A number that WhatsApp unlinks is said to be away, and all that needs none goes on:
// sessions are opened and paid, also one that was chosen in a chat, and what its payer
// is owed waits for the number.
func TestAnUnlinkedNumberStopsNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &shop{w: w}
	over, end := context.WithCancel(context.Background())
	end()
	c := &talking{one: sale{reference: "unlinked-chat", amount: 500_000, chat: true}}
	must(t, s.opened(over, c))
	_, err := c.turn("1", `^\d{10}$`)
	must(t, err)
	list, err := w.network.Devices(t.Context())
	must(t, err)
	for _, d := range list {
		if d.Phone == botNumber {
			must(t, w.network.Device(t.Context(), botNumber, d.Device, "logout", 0))
		}
	}
	if !await.Within(alarmed, func() bool {
		r, err := w.call(http.MethodGet, "/readyz", "", "")
		return err == nil && r.status == http.StatusOK && r.text("state") == "degraded" && strings.Contains(r.body, "logged-out")
	}) {
		w.wrong("other", "nobody is told within %s that the number was unlinked", alarmed)
	}
	alone := sale{reference: "unlinked-alone", amount: 500_000}
	must(t, w.transfer(&alone, w.sell(&alone), alone.amount))
	must(t, w.transfer(&c.one, c.account, c.one.amount))
	for _, one := range []sale{alone, c.one} {
		w.until(one.reference+" is paid", func() bool { return w.status(one.session) == "PAID" })
	}
	kept := w.books("test")
	defer kept.Close()
	w.until("the receipt waits", func() bool { return w.number(kept, "SELECT COUNT(*) FROM says WHERE state = 'pending'") > 0 })
	w.verdict()
}
