package whatsapp_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/bot"
	"till/bot/whatsapp"
)

// Nothing of what a payer types can be read in the library's own file, not while
// it waits to be kept, not in its write-ahead log, and not afterwards; a message
// that was decrypted and not kept when the program ended is still handled.
func TestNothingToReadInTheKeys(t *testing.T) {
	const card, name, answer = "4111 1111 1111 1111", "Adaeze 5105105105105100", "Transfer exactly 987654 naira"
	n := network(t)
	file := filepath.Join(t.TempDir(), "keys.db")
	d := open(t, n, file, n.DialContext)
	d.run()
	d.link(ourNumber)
	p := phone(t, n, ada, name)
	read := func(when string) {
		t.Helper()
		files, err := filepath.Glob(file + "*")
		must(t, err)
		size := 0
		for _, f := range files {
			raw, err := os.ReadFile(f)
			must(t, err)
			size += len(raw)
			for _, private := range []string{card, strings.ReplaceAll(card, " ", ""), "5105105105105100", "Adaeze", answer, "987654"} {
				if bytes.Contains(raw, []byte(private)) {
					t.Errorf("%s, %s holds %q", when, filepath.Base(f), private)
				}
			}
		}
		if len(files) < 2 || size < 10_000 {
			t.Errorf("%s, only %d bytes in %v were searched", when, size, files)
		}
	}

	// It is decrypted, and the handler holds it: this is when it rests in the file.
	held, done := make(chan struct{}, 10), make(chan struct{})
	d.onEach(func(m bot.Message) error {
		if m.Text != card {
			return nil
		}
		held <- struct{}{}
		<-done
		return errors.New("the process dies here")
	})
	sent := say(t, p, card)
	got(t, held)
	read("while it is handled")
	go d.stop() // no new line, on which it would be offered to this process again
	close(done)
	must(t, <-d.done)
	must(t, d.Close())
	if tail, err := os.ReadFile(file); err != nil || bytes.Contains(tail, []byte(card)) {
		t.Errorf("after the end it is in the file: %v", err)
	}

	d = open(t, n, file, n.DialContext)
	d.run()
	if m := got(t, d.messages); m.ID != sent.ID || m.Text != card {
		t.Errorf("after the restart got %+v", m)
	}
	d.await(whatsapp.StateConnected) // the network offers what waits before it says that the line stands
	must(t, d.send(p, "3EB0A", answer))
	hears(t, p, 1)
	settle(t, n)
	say(t, p, "thanks")
	if m := got(t, d.messages); m.Text != "thanks" {
		t.Errorf("got %+v: the card came twice?", m)
	}
	read("after it was handled")
}

// A payer's phone that could not read a message of ours asks for it again, and
// what was kept sealed for that is opened.
func TestSealedIsSentAgain(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	say(t, p, "hello")
	got(t, d.messages)
	must(t, d.send(p, "3EB0A", "first"))
	hears(t, p, 1)
	retries := d.net.Stats().Retries
	must(t, p.Reinstall()) // its keys are gone: what comes next it cannot read
	must(t, d.send(p, "3EB0B", "for a new phone"))
	if all := hears(t, p, 1); all[0].Text != "for a new phone" {
		t.Errorf("the phone shows %+v", all)
	}
	if d.net.Stats().Retries == retries {
		t.Error("nothing was asked for again, so this proves nothing")
	}
}
