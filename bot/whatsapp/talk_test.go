package whatsapp_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/bot"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
)

// A phone is linked by QR code and by letters, over TCP and over a pipe, and
// then both sides hear each other.
func TestPairing(t *testing.T) {
	n := network(t)
	for way, dial := range dials(t, n) {
		for _, by := range []string{"qr", "code"} {
			t.Run(by+" over "+way, func(t *testing.T) {
				d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), dial)
				if s := d.State(); s != string(whatsapp.StateStopped) || d.Number() != "" {
					t.Errorf("before it runs it is %s with %q", s, d.Number())
				}
				d.run()
				number := "23480000001" + map[string]string{"qr pipe": "01", "qr tcp": "02", "code pipe": "03", "code tcp": "04"}[by+" "+way]
				if by == "qr" {
					d.await(whatsapp.StatePairing)
					shown, ok := d.Pairing()
					if code := got(t, d.codes); !ok || shown != code || !strings.HasPrefix(code, "https://wa.me/settings/linked_devices#") || d.Number() != "" {
						t.Errorf("shown %q, given %q, number %q", shown, code, d.Number())
					} else {
						d.codes <- code
					}
					d.link(number)
				} else {
					owner, err := n.AddAccount(number, "Owner")
					must(t, err)
					code, err := d.PairCode(t.Context(), "+"+number)
					must(t, err)
					must(t, owner.EnterCode(code))
					d.await(whatsapp.StateConnected)
				}
				if _, ok := d.Pairing(); ok || d.Number() != number {
					t.Errorf("paired as %q, still pairing: %t", d.Number(), ok)
				}
				if _, err := d.PairCode(t.Context(), number); !errors.Is(err, whatsapp.ErrPaired) {
					t.Errorf("a second pairing: %v", err)
				}
				p := phone(t, n, ada, "Ada")
				_, err := p.Send(t.Context(), number, "hello "+by+way)
				must(t, err)
				if m := got(t, d.messages); m.Text != "hello "+by+way || m.Number != number {
					t.Errorf("got %+v", m)
				}
				d.halt()
			})
		}
	}
}

func TestMessage(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	sent := say(t, p, "Pay 7K3M-9QTX")
	m := written(t, got(t, d.messages))
	want := bot.Message{
		Number: ourNumber, Person: p.Account().LID(), Phone: flow.Phone(ada), Name: "Ada", ID: sent.ID, Text: "Pay 7K3M-9QTX",
	}
	if m != want {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	quote, err := p.SendQuote(t.Context(), ourNumber, "1", sent.ID)
	must(t, err)
	if m := got(t, d.messages); m.Text != "1" || m.ID != quote.ID || m.Person != want.Person {
		t.Errorf("a quoting answer is %+v", m)
	}
	ok, err := p.WaitStatus(t.Context(), sent.ID, wanet.StatusRead, within)
	if err != nil || !ok {
		t.Errorf("it was not marked as read: %v", err)
	}
}

// Whatever the network does twice, each message is one by its id, and the order
// of one person's messages stays.
func TestMessagesTwice(t *testing.T) {
	d := paired(t)
	must(t, d.net.SetFaults(wanet.Faults{Duplicate: true}))
	p := phone(t, d.net, ada, "Ada")
	var ids []string
	for _, text := range []string{"a", "b", "c", "d"} {
		ids = append(ids, say(t, p, text).ID)
	}
	seen := map[string]bool{}
	var order []string
	for len(order) < len(ids) {
		if m := got(t, d.messages); !seen[m.ID] {
			seen[m.ID] = true
			order = append(order, m.ID)
		}
	}
	settle(t, d.net)
	if strings.Join(order, " ") != strings.Join(ids, " ") {
		t.Errorf("heard %v, sent %v", order, ids)
	}
}

// A message that was not kept comes again, whether keeping it failed or blew
// up, and then is acknowledged.
func TestMessageComesAgain(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("the disk is full") },
		"panic": func() error { panic("a bug") },
	} {
		t.Run(name, func(t *testing.T) {
			d := paired(t)
			p := phone(t, d.net, ada, "Ada")
			var tries atomic.Int64
			d.onEach(func(bot.Message) error {
				if tries.Add(1) <= 3 {
					return fail()
				}
				return nil
			})
			sent := say(t, p, "4")
			if m := got(t, d.messages); m.ID != sent.ID || m.Text != "4" || tries.Load() != 4 {
				t.Errorf("after %d tries got %+v", tries.Load(), m)
			}
			settle(t, d.net)
			d.await(whatsapp.StateConnected)
			must(t, d.send(p, "3EB0AFTER", "still here"))
			hears(t, p, 1)
		})
	}
}

// A message that can never be kept is dropped, and does not renew the line for
// ever.
func TestMessageThatIsNone(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	d.onEach(func(m bot.Message) error {
		if m.Text == "bad" {
			return bot.ErrMessage
		}
		return nil
	})
	say(t, p, "bad")
	say(t, p, "good")
	if m := got(t, d.messages); m.Text != "good" {
		t.Errorf("got %+v", m)
	}
	settle(t, d.net)
	if strings.Contains(d.log.String(), "renewed") {
		t.Error("the line was renewed")
	}
}

// Sent twice under one id, a message is shown once; and our own ticks arrive.
func TestSend(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	for range 2 {
		must(t, d.send(p, "3EB0000000000000000001", "9012345678"))
	}
	must(t, d.send(p, "3EB0000000000000000002", "4 I have paid"))
	hears(t, p, 2)
	settle(t, d.net)
	all := hears(t, p, 2)
	if len(all) != 2 || all[0].Text != "9012345678" || all[0].ID != "3EB0000000000000000001" || all[1].Text != "4 I have paid" {
		t.Errorf("the phone shows %+v", all)
	}
	must(t, p.MarkRead(t.Context(), ourNumber))
	ticks := map[string]bool{}
	for len(ticks) < 4 {
		tick := got(t, d.ticks)
		if tick.Number != ourNumber || tick.At.IsZero() {
			t.Fatalf("got %+v", tick)
		}
		ticks[tick.Message[len(tick.Message)-1:]+" "+tick.State] = true
	}
	for _, want := range []string{"1 delivered", "2 delivered", "1 read", "2 read"} {
		if !ticks[want] {
			t.Errorf("no tick %q in %v", want, ticks)
		}
	}
}

func TestSendRefuses(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	lid := p.Account().LID()
	for name, o := range map[string][4]string{
		"no id":          {ourNumber, lid, "", "x"},
		"a long id":      {ourNumber, lid, strings.Repeat("A", 65), "x"},
		"no text":        {ourNumber, lid, "A", ""},
		"a long text":    {ourNumber, lid, "A", strings.Repeat("x", 65_537)},
		"no person":      {ourNumber, "", "A", "x"},
		"no LID":         {ourNumber, "ada@s.whatsapp.net", "A", "x"},
		"another number": {bola, lid, "A", "x"},
	} {
		err := d.Send(t.Context(), outgoing(o))
		if !errors.Is(err, whatsapp.ErrInput) || errors.Is(err, checkout.ErrUndeliverable) != (name != "another number") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, d.net.SetFaults(wanet.Faults{Nack: 463}))
	if err := d.send(p, "3EB0B", "x"); !errors.Is(err, whatsapp.ErrRefused) || !errors.Is(err, checkout.ErrUndeliverable) || !strings.Contains(err.Error(), "463") {
		t.Errorf("refused by the server: %v", err)
	}
	for _, passes := range []int{429, 500, 503} { // haste, and trouble of the server's own
		must(t, d.net.SetFaults(wanet.Faults{Nack: passes}))
		if err := d.send(p, "3EB0B", "x"); !errors.Is(err, whatsapp.ErrUnconfirmed) || errors.Is(err, checkout.ErrUndeliverable) {
			t.Errorf("refused with %d for now: %v", passes, err)
		}
	}
	must(t, d.net.SetFaults(wanet.Faults{}))
	must(t, d.send(p, "3EB0B", "x"))
	if all := hears(t, p, 1); len(all) != 1 || all[0].Text != "x" {
		t.Errorf("the phone shows %+v", all)
	}
}

// When the server's word does not come in time, or nobody waits for it, the
// outcome is unknown, and a second try under the same id leaves one message.
func TestSendUnconfirmed(t *testing.T) {
	for name, hurried := range map[string]time.Duration{"nobody waits": within, "in time": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			n := network(t)
			d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
			d.Hurry(time.Millisecond, hurried)
			d.run()
			d.link(ourNumber)
			p := phone(t, n, ada, "Ada")
			must(t, n.SetFaults(wanet.Faults{AckDelayMs: 2000}))
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			sent := make(chan error, 1)
			go func() { sent <- d.Send(ctx, outgoing([4]string{ourNumber, p.Account().LID(), "3EB0C", "once"})) }()
			hears(t, p, 1) // it left, only the word on it is missing
			if hurried == within {
				giveUp()
			}
			if err := <-sent; !errors.Is(err, whatsapp.ErrUnconfirmed) {
				t.Errorf("got %v", err)
			}
			must(t, n.SetFaults(wanet.Faults{}))
			for _, m := range [][2]string{{"3EB0C", "once"}, {"3EB0D", "last"}} {
				await.Until(t, m[0]+" is confirmed", func() bool {
					err := d.send(p, m[0], m[1])
					if err != nil && !errors.Is(err, whatsapp.ErrUnconfirmed) {
						t.Fatal(err)
					}
					return err == nil
				})
			}
			settle(t, n)
			if all := hears(t, p, 2); len(all) != 2 || all[0].Text != "once" || all[1].Text != "last" {
				t.Errorf("the phone shows %+v", all)
			}
			d.halt()
		})
	}
}

// A payer sees that an answer is being written, until it is there.
func TestTyping(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	say(t, p, "hello")
	lid := got(t, d.messages).Person
	for _, nobody := range []string{"", "ada", strings.Repeat("1", 21)} {
		d.Typing(t.Context(), ourNumber, nobody)
	}
	d.Typing(t.Context(), bola, lid)
	settle(t, d.net)
	if p.PeerTyping(ourNumber) {
		t.Error("it is shown for another number")
	}
	d.Typing(t.Context(), ourNumber, lid)
	for limit := time.Now().Add(within); !p.PeerTyping(ourNumber); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatal("typing is never seen")
		}
	}
	must(t, d.send(p, "3EB0F", "the answer"))
	hears(t, p, 1)
	d.halt()
	d.Typing(t.Context(), ourNumber, lid) // nobody to show it to
}

// More messages than can be under way wait for their turn, and give up without
// having left.
func TestSendIsBounded(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	must(t, d.net.SetFaults(wanet.Faults{AckDelayMs: 60_000}))
	const under = 64
	ctx, giveUp := context.WithCancel(t.Context())
	results := make(chan error, under)
	for i := range under {
		go func() {
			results <- d.Send(ctx, outgoing([4]string{ourNumber, p.Account().LID(), fmt.Sprintf("3EB0%04d", i), "x"}))
		}()
	}
	hears(t, p, 1)
	for d.UnderWay() < under {
		runtime.Gosched()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Send(gone, outgoing([4]string{ourNumber, p.Account().LID(), "3EB0Z", "x"})); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("one too many: %v", err)
	}
	giveUp()
	for range under {
		if err := <-results; !errors.Is(err, whatsapp.ErrUnconfirmed) {
			t.Errorf("got %v", err)
		}
	}
	d.halt() // ends those that nobody waits for
	if d.UnderWay() != 0 {
		t.Errorf("%d are still under way", d.UnderWay())
	}
}

// Neither what is said nor to whom reaches the log, whatever happens.
func TestLogIsClean(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Adaeze")
	failed := false
	d.onEach(func(bot.Message) error {
		if failed = !failed; failed {
			return errors.New("cannot keep the message of 2349000000002")
		}
		return nil
	})
	say(t, p, "a secret question")
	got(t, d.messages)
	d.await(whatsapp.StateConnected)
	must(t, d.send(p, "3EB0E", "a secret answer"))
	hears(t, p, 1)
	d.breaks(d.device().Drop)
	d.await(whatsapp.StateConnected)
	d.halt()
	log := d.log.String()
	for _, private := range []string{"secret", ada, "Adaeze", p.Account().LID(), ourNumber} {
		if strings.Contains(log, private) {
			t.Errorf("the log holds %q:\n%s", private, log)
		}
	}
	if !strings.Contains(log, "whatsapp message not kept") || !strings.Contains(log, "+234•••••0002") {
		t.Errorf("the log does not say what happened:\n%s", log)
	}
}
