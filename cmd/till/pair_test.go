package main

import (
	"net/http"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// A number is linked before the first start, by a process that does nothing else, and
// is live with the first start.
func TestANumberIsLinkedBeforeTheFirstStart(t *testing.T) {
	o, dir, addr := newOutside(t), t.TempDir(), tilltest.FreePort(t)
	pair := start(t, dir, o.env, "pair")
	o.link(pair)
	pair.EndsWell()
	if !strings.Contains(pair.Said(), "\nlinked: +"+botNumber+"\n") {
		t.Errorf("it said:\n%s", pair.Said())
	}
	dev := start(t, dir, o.env, "dev", "--http-addr", addr)
	dev.Line(`of that network|/phone$`)
	m := &merchant{t: t, base: "http://" + addr, key: keptKey(t, dir)}
	waitReady(m)
	if pairing.MatchString(dev.Said()) {
		t.Errorf("it is to be linked once more:\n%s", dev.Said())
	}
}

// A data dir whose number was linked to another network goes on on the one inside:
// there is nobody who would link it.
func TestTheNetworkInsideLinksANumberOfAnotherOne(t *testing.T) {
	o, dir := newOutside(t), t.TempDir()
	pair := start(t, dir, o.env, "pair")
	o.link(pair)
	pair.EndsWell()
	for _, reference := range []string{"first", "second"} {
		addr := tilltest.FreePort(t)
		dev := start(t, dir, nil, "dev", "--http-addr", addr)
		dev.Line(`of that network|/phone$`)
		m := &merchant{t: t, base: "http://" + addr, key: keptKey(t, dir)}
		waitReady(m)
		m.until("the number takes chats, which the one that was killed said of itself before", func() bool {
			status, _, err := m.try(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500_000, "customerEmail": "bola@example.com", "mode": "chat"})
			return err == nil && status == http.StatusCreated
		})
		p := newPayer(m)
		_, text := m.openChat(500_000, reference)
		p.says(text)
		p.hears(`1 Bank transfer`)
		dev.Kill()
	}
}
