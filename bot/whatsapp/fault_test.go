package whatsapp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
)

// happening is something that WhatsApp does just before a payer writes, and how it
// ends.
type happening struct {
	name   string
	before func()
	after  func()
	most   int // times that it can happen, where there is a bound
}

// Whatever WhatsApp does, each payer's message is answered, and once (I12).
// TILL_FAULT_WHATSAPP is how often it does each.
func TestATalkGoesOnWhateverWhatsAppDoes(t *testing.T) {
	often := 1
	if text := os.Getenv("TILL_FAULT_WHATSAPP"); text != "" {
		var err error
		if often, err = strconv.Atoi(text); err != nil || often < 1 || often > 10_000 {
			t.Fatalf("TILL_FAULT_WHATSAPP is %q: give a number from 1 to 10000", text)
		}
	}
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.Hurry(time.Millisecond, 100*time.Millisecond)
	d.run()
	own, err := d.link(ourNumber).AddPhone()
	must(t, err)
	answers(t, d, d.Send)
	d.forgets()
	payers := 0
	friend := phone(t, n, "2348036000000", "Friend")
	chats := func() {
		_, err := own.Send(t.Context(), friend.Account().Phone(), "see you at six")
		must(t, err)
	}
	for _, h := range append(happenings(t, d), happening{"our own phone writes to a friend", chats, nil, 0}) {
		began := time.Now()
		var asked []*wanet.Phone
		often := often
		if h.most > 0 {
			often = min(often, h.most)
		}
		for range often {
			payers++
			p := phone(t, n, fmt.Sprintf("23480350%05d", payers), "Payer")
			h.before()
			say(t, p, "hello")
			if h.after != nil {
				h.after()
			}
			hears(t, p, 1)
			asked = append(asked, p)
		}
		settle(t, n)
		for _, p := range asked {
			if all := hears(t, p, 1); len(all) != 1 {
				t.Errorf("%s: a payer is answered %d times", h.name, len(all))
			}
		}
		t.Logf("%s: %d times, each answered once, in %s", h.name, often, time.Since(began).Round(time.Millisecond))
	}
	if all := hears(t, friend, often); len(all) != often {
		t.Errorf("a friend to whom our own phone wrote %d times was told %+v", often, all)
	}
	d.halt()
}

// happenings are what WhatsApp does, on the line where the network can, and else by
// the library's word for it.
func happenings(t *testing.T, d *desk) []happening {
	t.Helper()
	group, payer := jid("120363000000000001", types.GroupServer), jid("100200300400500", types.HiddenUserServer)
	weather := func(f wanet.Faults) func() { return func() { must(t, d.net.SetFaults(f)) } }
	says := func(e any) func() { return func() { d.Handle(t.Context(), e) } }
	fine := weather(wanet.Faults{})
	resumes := func() { d.Resume(); d.await(whatsapp.StateConnected) }
	lifted := func() { // the line was never down, so that nothing but the ban's end says that it is well
		d.Handle(t.Context(), &events.TemporaryBan{Expire: time.Nanosecond})
		d.await(whatsapp.StateConnected)
	}
	return []happening{
		{"nothing", func() {}, nil, 0},
		{"the line breaks", func() { d.device().Drop() }, nil, 0},
		{"the line breaks after a message", func() {}, func() { d.device().Drop() }, 0},
		{"a stream error", func() { d.device().StreamError(503) }, nil, 0},
		{"another program takes the number", func() { d.device().Replace(); d.await(whatsapp.StateReplaced) }, resumes, 0},
		{"unlinked and linked again", func() {
			must(t, d.device().Logout())
			d.await(whatsapp.StateLoggedOut)
			for len(d.codes) > 0 {
				<-d.codes
			}
			d.Resume()
			d.link(ourNumber)
		}, nil, 90}, // an account has 99 devices in its life
		{"banned for a while", says(&events.TemporaryBan{Code: events.TempBanSentToTooManyPeople, Expire: time.Hour}), lifted, 0},
		{"a ban that is over", says(&events.TemporaryBan{Expire: time.Nanosecond}), nil, 0},
		{"too old a client", says(&events.ClientOutdated{}), lifted, 0},
		{"a login that fails", says(&events.ConnectFailure{Reason: events.ConnectFailureGeneric}), nil, 0},
		{"lost pings", says(&events.KeepAliveTimeout{ErrorCount: 3}), nil, 0},
		{"an end that was none", says(&events.Disconnected{}), nil, 0},
		{"a message that cannot be read at first", weather(wanet.Faults{CorruptPercent: 100}), fine, 0},
		{"every message twice", weather(wanet.Faults{Duplicate: true}), fine, 0},
		{"messages late", weather(wanet.Faults{DelayPercent: 50, DelayMs: 20}), fine, 0},
		{"messages lost with the line", weather(wanet.Faults{DropPercent: 50}), fine, 0},
		{"a send whose confirmation is late", weather(wanet.Faults{AckDelayMs: 150}), fine, 0},
		{"a group talks", says(event(types.MessageSource{Chat: group, Sender: payer, IsGroup: true})), nil, 0},
		{"a status is shown", says(event(types.MessageSource{Chat: types.StatusBroadcastJID, Sender: payer, IsGroup: true})), nil, 0},
		{"an echo of ours comes", says(event(types.MessageSource{Chat: payer, Sender: jid(ourNumber, types.DefaultUserServer), IsFromMe: true})), nil, 0},
	}
}
