package whatsapp_test

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/bot/whatsapp"
	"till/flow/checkout"
)

func outgoing(o [4]string) checkout.Outgoing {
	return checkout.Outgoing{Number: o[0], Person: o[1], ID: o[2], Text: o[3]}
}

// A process that starts again with the same file is still linked, and hears
// what was said meanwhile.
func TestRestart(t *testing.T) {
	n := network(t)
	file := filepath.Join(t.TempDir(), "a directory", "keys?50%#1.db")
	must(t, os.Mkdir(filepath.Dir(file), 0o700))
	d := open(t, n, file, n.DialContext)
	d.run()
	d.link(ourNumber)
	p := phone(t, n, ada, "Ada")
	say(t, p, "before")
	got(t, d.messages)
	must(t, d.send(p, "3EB01", "first"))
	settle(t, n)
	d.halt()
	if s := d.State(); s != string(whatsapp.StateStopped) || d.Number() != "" {
		t.Errorf("halted it is %s with %q", s, d.Number())
	}
	must(t, d.Close())
	for _, text := range []string{"one", "two", "three"} {
		say(t, p, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the keys are %v: %v", info.Mode(), err)
	}

	d = open(t, n, file, n.DialContext)
	if err := d.send(p, "3EB02", "second"); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("sent before it ran: %v", err)
	}
	d.run()
	for _, text := range []string{"one", "two", "three"} {
		if m := got(t, d.messages); m.Text != text || m.Number != ourNumber {
			t.Errorf("got %+v, want %q", m, text)
		}
	}
	d.await(whatsapp.StateConnected)
	if d.Number() != ourNumber || len(d.codes) != 0 {
		t.Errorf("number %q, %d codes", d.Number(), len(d.codes))
	}
	must(t, d.send(p, "3EB02", "second"))
	if all := hears(t, p, 2); all[1].Text != "second" {
		t.Errorf("the phone shows %+v", all)
	}
}

// One client can run again after it was halted.
func TestRunAgain(t *testing.T) {
	d := paired(t)
	if err := d.Run(t.Context()); !errors.Is(err, whatsapp.ErrClosed) {
		t.Errorf("a second Run: %v", err)
	}
	p := phone(t, d.net, ada, "Ada")
	d.halt()
	say(t, p, "meanwhile")
	d.run()
	if m := got(t, d.messages); m.Text != "meanwhile" {
		t.Errorf("got %+v", m)
	}
	must(t, d.Close())
	must(t, <-d.done)
	if err := d.Run(t.Context()); !errors.Is(err, whatsapp.ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
	if _, err := d.PairCode(t.Context(), ourNumber); !errors.Is(err, whatsapp.ErrClosed) {
		t.Errorf("PairCode after Close: %v", err)
	}
}

// A line that breaks is replaced, and nothing is lost by it.
func TestLineBreaks(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	for i, broken := range []func(){
		func() { d.device().Drop() },
		func() { d.device().StreamError(503) },
		func() { d.device().Drop() },
	} {
		d.breaks(broken)
		say(t, p, "hello")
		if m := got(t, d.messages); m.Text != "hello" {
			t.Errorf("after break %d got %+v", i, m)
		}
		d.await(whatsapp.StateConnected)
		must(t, d.send(p, "3EB00"+string(rune('A'+i)), "hello back"))
		if all := hears(t, p, i+1); len(all) != i+1 {
			t.Errorf("after break %d the phone shows %+v", i, all)
		}
	}
	if strings.Contains(d.log.String(), "level=ERROR") {
		t.Errorf("what mends itself is an error:\n%s", d.log)
	}
}

// A network that cannot be reached is tried again, with bounds, and Run ends at
// once all the same.
func TestUnreachable(t *testing.T) {
	n := network(t)
	var calls atomic.Int64
	reached := make(chan struct{}, 1)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), func(ctx context.Context) (net.Conn, error) {
		switch calls.Add(1) {
		case 1, 2:
			return nil, errors.New("no route")
		case 3:
			reached <- struct{}{}
			<-ctx.Done() // as a host that never answers
			return nil, ctx.Err()
		default:
			return n.DialContext(ctx)
		}
	})
	d.run()
	got(t, reached)
	if s := d.State(); s != string(whatsapp.StateConnecting) {
		t.Errorf("it is %s", s)
	}
	ended := time.Now()
	d.halt()
	if took := time.Since(ended); took > 5*time.Second {
		t.Errorf("halting took %s", took)
	}
	d.run()
	d.link(ourNumber)
}

func TestSpacedTries(t *testing.T) {
	for n, want := range []int{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		if got := whatsapp.Spaced(n, time.Second, time.Minute); got != time.Duration(want)*time.Second {
			t.Errorf("try %d is after %s", n, got)
		}
	}
	if got := whatsapp.Spaced(math.MaxInt, time.Second, time.Minute); got != time.Minute {
		t.Errorf("much later: %s", got)
	}
}

// Another program on the same number: this one steps back and stays up, until
// somebody says that it may try again.
func TestReplaced(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	d.device().Replace()
	d.await(whatsapp.StateReplaced)
	if d.Number() != "" {
		t.Errorf("it still is %q", d.Number())
	}
	if err := d.send(p, "3EB01", "x"); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("sent: %v", err)
	}
	if _, err := d.PairCode(t.Context(), ourNumber); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("paired: %v", err)
	}
	select {
	case err := <-d.done:
		t.Fatalf("Run ended: %v", err)
	default:
	}
	say(t, p, "still there?")
	d.Resume()
	if m := got(t, d.messages); m.Text != "still there?" {
		t.Errorf("got %+v", m)
	}
	d.await(whatsapp.StateConnected)
	d.Resume() // nothing to resume
	if s := d.State(); s != string(whatsapp.StateConnected) {
		t.Errorf("it is %s", s)
	}
}

// Unlinked by the phone's owner: it says so, stays up, and pairs anew only when
// asked.
func TestLoggedOut(t *testing.T) {
	d := paired(t)
	must(t, d.device().Logout())
	d.await(whatsapp.StateLoggedOut)
	if _, ok := d.Pairing(); ok || d.Number() != "" {
		t.Errorf("it pairs by itself, or still is %q", d.Number())
	}
	owner, _ := d.net.Account(ourNumber)
	code, err := d.PairCode(t.Context(), ourNumber)
	must(t, err)
	must(t, owner.EnterCode(code))
	d.await(whatsapp.StateConnected)

	// Unlinked while it was away: the same, found at the next login.
	p := phone(t, d.net, ada, "Ada")
	say(t, p, "hello")
	got(t, d.messages)
	settle(t, d.net)
	d.halt()
	must(t, d.device().Logout())
	d.run()
	d.await(whatsapp.StateLoggedOut)
	for len(d.codes) > 0 {
		<-d.codes
	}
	d.Resume()
	d.link(ourNumber)
	say(t, p, "hello again")
	if m := got(t, d.messages); m.Text != "hello again" {
		t.Errorf("got %+v", m)
	}
}

// What else WhatsApp can say about a number.
func TestLastingStates(t *testing.T) {
	d := paired(t)
	lasts := func(want whatsapp.State, evt any) {
		t.Helper()
		if !d.Handle(t.Context(), evt) {
			t.Errorf("%T was not taken", evt)
		}
		if s := d.State(); s != string(want) || d.Number() != "" {
			t.Errorf("after %T it is %s with %q", evt, s, d.Number())
		}
		d.Handle(t.Context(), &events.Disconnected{}) // the line's end changes nothing
		if s := d.State(); s != string(want) {
			t.Errorf("after the line's end it is %s", s)
		}
	}
	lasts(whatsapp.StateOutdated, &events.ClientOutdated{})
	d.Resume()
	d.await(whatsapp.StateConnected) // or the line that is opened now connects in the middle of what follows
	lasts(whatsapp.StateBanned, &events.TemporaryBan{Code: events.TempBanSentToTooManyPeople, Expire: time.Hour})
	d.Handle(t.Context(), &events.TemporaryBan{Expire: time.Nanosecond}) // over at once
	d.await(whatsapp.StateConnected)
	d.Handle(t.Context(), &events.KeepAliveTimeout{ErrorCount: 2})
	if s := d.State(); s != string(whatsapp.StateConnected) {
		t.Errorf("two lost pings and it is %s", s)
	}
	d.breaks(func() { d.Handle(t.Context(), &events.KeepAliveTimeout{ErrorCount: 3}) })
	d.await(whatsapp.StateConnected)
	d.Handle(t.Context(), &events.ConnectFailure{Reason: events.ConnectFailureGeneric})
	d.await(whatsapp.StateConnected)
	ada, group := types.NewJID("100200300400500", types.HiddenUserServer), types.NewJID("120363000000000000", types.GroupServer)
	for _, from := range []types.MessageSource{{Chat: ada, Sender: ada}, {Chat: group, Sender: ada, IsGroup: true}} {
		if !d.Handle(t.Context(), &events.UndecryptableMessage{Info: types.MessageInfo{MessageSource: from}}) {
			t.Error("a message that cannot be read was not taken")
		}
	}
	if n := d.unreadable.Load(); n != 1 {
		t.Errorf("of one message of a person that cannot be read, and one of a group, %d were told", n)
	}
	for _, evt := range []any{&events.UndecryptableMessage{}, &events.IdentityChange{JID: types.NewJID("100200300400500", types.HiddenUserServer)}, &events.NotifyAccountReachoutTimelock{IsActive: true}, &events.PushName{}} {
		if !d.Handle(t.Context(), evt) {
			t.Errorf("%T was not taken", evt)
		}
	}
}

// When Run ends, what is being kept is kept, and is not told twice.
func TestHaltWaitsForMessages(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	begun, release := make(chan struct{}), make(chan struct{})
	d.onEach(func(bot.Message) error { close(begun); <-release; return nil })
	say(t, p, "slow")
	<-begun
	d.stop()
	select {
	case <-d.done:
		t.Fatal("Run ended before the message was kept")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	must(t, <-d.done)
	if m := got(t, d.messages); m.Text != "slow" {
		t.Errorf("got %+v", m)
	}
}

func TestOpenRefuses(t *testing.T) {
	n := network(t)
	root, other := n.RootKey(), [32]byte{1}
	receive := func(context.Context, bot.Message) error { return nil }
	tick := func(context.Context, checkout.Tick) error { return nil }
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), nil)
	full := d.Settings()
	full.RootKey, full.Receive, full.Tick = &root, receive, tick
	for name, spoil := range map[string]func(*whatsapp.Config){
		"no file":         func(c *whatsapp.Config) { c.File = "" },
		"no receive":      func(c *whatsapp.Config) { c.Receive = nil },
		"no tick":         func(c *whatsapp.Config) { c.Tick = nil },
		"no clock":        func(c *whatsapp.Config) { c.Now = nil },
		"no log":          func(c *whatsapp.Config) { c.Log = nil },
		"another network": func(c *whatsapp.Config) { c.RootKey = &other },
		"the real one":    func(c *whatsapp.Config) { c.RootKey = nil },
		"a directory":     func(c *whatsapp.Config) { c.File = t.TempDir() },
		"no directory":    func(c *whatsapp.Config) { c.File = filepath.Join(t.TempDir(), "none", "keys.db") },
		"no keys": func(c *whatsapp.Config) {
			c.File = filepath.Join(t.TempDir(), "text")
			must(t, os.WriteFile(c.File, []byte("this is no database, and long enough to be read as one"), 0o600))
		},
	} {
		cfg := full
		spoil(&cfg)
		if c, err := whatsapp.Open(t.Context(), cfg); err == nil {
			must(t, c.Close())
			t.Errorf("%s: opened", name)
		}
	}
}

// What can go wrong while a phone is being linked leads back to a code, or says
// who is needed.
func TestPairingGoesWrong(t *testing.T) {
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.run()
	first := got(t, d.codes)
	d.Handle(t.Context(), &events.PairError{Error: errors.New("for 2348000000001")})
	if second := got(t, d.codes); second == first {
		t.Error("the keys of a failed pairing are used again")
	}
	d.Handle(t.Context(), &events.PairPasskeyRequest{})
	if _, ok := d.Pairing(); ok || d.State() != string(whatsapp.StatePasskey) {
		t.Errorf("it is %s and shows a code: %t", d.State(), ok)
	}
	d.Handle(t.Context(), &events.Disconnected{}) // not of this line, which is up
	if d.State() != string(whatsapp.StatePasskey) {
		t.Errorf("the end of an old line made it %s", d.State())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.PairCode(ctx, ourNumber); !errors.Is(err, context.Canceled) {
		t.Errorf("a code without a line: %v", err)
	}
	d.halt()
	if strings.Contains(d.log.String(), ourNumber) {
		t.Error("the log holds the number")
	}
}

// Ticks are news of single chats alone, and one that cannot be kept is only
// logged.
func TestTicks(t *testing.T) {
	d := paired(t)
	lid := types.NewJID("100200300400500", types.HiddenUserServer)
	for name, c := range map[string]struct {
		evt   events.Receipt
		state string
	}{
		"delivered":        {events.Receipt{MessageSource: types.MessageSource{Sender: lid}}, "delivered"},
		"read":             {events.Receipt{MessageSource: types.MessageSource{Sender: lid}, Type: types.ReceiptTypeRead}, "read"},
		"played":           {events.Receipt{MessageSource: types.MessageSource{Sender: lid}, Type: types.ReceiptTypePlayed}, "read"},
		"asked for again":  {events.Receipt{MessageSource: types.MessageSource{Sender: lid}, Type: types.ReceiptTypeRetry}, ""},
		"on an idle web":   {events.Receipt{MessageSource: types.MessageSource{Sender: lid}, Type: types.ReceiptTypeInactive}, ""},
		"by ourselves":     {events.Receipt{MessageSource: types.MessageSource{Sender: lid, IsFromMe: true}, Type: types.ReceiptTypeRead}, ""},
		"in a group":       {events.Receipt{MessageSource: types.MessageSource{Sender: lid, IsGroup: true}}, ""},
		"by nobody":        {events.Receipt{}, ""},
		"more than it may": {events.Receipt{MessageSource: types.MessageSource{Sender: lid}, MessageIDs: make([]string, 300)}, "delivered"},
	} {
		many := len(c.evt.MessageIDs)
		if many == 0 {
			c.evt.MessageIDs, many = []string{"3EB0"}, 1
		}
		count := make(chan int, 1)
		go func() {
			seen := 0
			for ; c.state != "" && seen < min(many, 256); seen++ {
				if tick := <-d.ticks; tick.State != c.state || tick.At.IsZero() || tick.Number != ourNumber {
					t.Errorf("%s: %+v", name, tick)
				}
			}
			count <- seen
		}()
		if !d.Handle(t.Context(), &c.evt) {
			t.Errorf("%s: not taken", name)
		}
		<-count
		if len(d.ticks) > 0 {
			t.Errorf("%s: %d more ticks", name, len(d.ticks))
		}
	}
	d.failTicks.Store(true)
	if !d.Handle(t.Context(), &events.Receipt{MessageSource: types.MessageSource{Sender: lid}, MessageIDs: []string{"3EB0"}}) {
		t.Error("a tick that was not kept counts as a message")
	}
	if !strings.Contains(d.log.String(), "whatsapp tick not kept") {
		t.Error("nothing is logged")
	}
}
