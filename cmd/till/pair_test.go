package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
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
		p := newPayer(m)
		_, text := m.openChat(500_000, reference)
		p.says(text)
		p.hears(`1 Bank transfer`)
		dev.Kill()
	}
}

// till pair dies when the phone has linked the number and nobody has noted that. Run
// again it notes that number and links no other, and the start goes on with it.
func TestANumberWhoseLinkingNobodyNotedIsLinked(t *testing.T) {
	t.Parallel() // it mostly waits
	o, dir, addr := newOutside(t), t.TempDir(), tilltest.FreePort(t)
	pair := start(t, dir, o.env, "pair")
	await.Until(t, "it shows a code", func() bool { return pairing.MatchString(pair.Said()) })
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "data", "test.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	writing, err := db.BeginTx(t.Context(), nil) // whoever else wants to write waits
	must(t, err)
	o.link(pair)
	pair.Line(`^linked: `)
	pair.Kill()
	var noted int
	if err := writing.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM numbers WHERE number <> ''").Scan(&noted); err != nil || noted != 0 {
		t.Fatalf("%d numbers are noted: %v", noted, err)
	}
	must(t, writing.Rollback())
	await.Until(t, "it is run again", func() bool {
		soon, cancel := context.WithTimeout(t.Context(), tilltest.Patience)
		defer cancel()
		out, err := tilltest.Output(soon, dir, o.env, "pair")
		if err != nil && !strings.Contains(out, "died less than") || err == nil && (pairing.MatchString(out) || !strings.Contains(out, "linked: +"+botNumber+"\n")) {
			t.Fatalf("run again it said (%v):\n%s", err, out)
		}
		return err == nil
	})
	dev := start(t, dir, o.env, "dev", "--http-addr", addr)
	dev.Line(`of that network|/phone$`)
	m := &merchant{t: t, base: "http://" + addr, key: keptKey(t, dir)}
	waitReady(m)
	p := newPayer(m)
	_, text := m.openChat(500_000, "is-heard")
	p.says(text)
	p.hears(`1 Bank transfer`)
	if pairing.MatchString(dev.Said()) {
		t.Errorf("it is to be linked once more:\n%s", dev.Said())
	}
}
