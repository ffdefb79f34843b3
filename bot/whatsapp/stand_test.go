package whatsapp_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp"
	"till/flow"
	"till/flow/await"
)

// A number that was replaced is tried once more, and not again and again: two
// programs that both come back would never end.
func TestReplacedNumberComesBackOnce(t *testing.T) {
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.HurryBack(time.Millisecond, time.Hour)
	d.run()
	d.link(ourNumber)
	d.device().Replace()
	await.Until(t, "it came back", func() bool {
		return strings.Contains(d.log.String(), "tried_again=true") && d.State() == string(whatsapp.StateConnected)
	})
	if strings.Contains(d.log.String(), "needs somebody") {
		t.Errorf("somebody is called for what mended itself:\n%s", d.log)
	}
	d.device().Replace()
	d.await(whatsapp.StateReplaced)
	await.Until(t, "somebody is called", func() bool {
		return strings.Contains(d.log.String(), `msg="whatsapp number needs somebody" state=replaced`)
	})
	if d.Standing().State != flow.NumberReplaced {
		t.Errorf("it stands %+v", d.Standing())
	}
	p := phone(t, n, ada, "Ada")
	say(t, p, "somebody looked after it")
	d.Resume()
	got(t, d.messages)
	if n := strings.Count(d.log.String(), "tried_again=true"); n != 1 {
		t.Errorf("it was tried %d times", n)
	}
}

// reopened is a linked number whose file was closed and opened again with other
// settings. It does not run yet.
func reopened(t *testing.T, change func(*whatsapp.Config)) *desk {
	t.Helper()
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.run()
	d.link(ourNumber)
	d.halt()
	must(t, d.Close())
	cfg := d.Settings()
	change(&cfg)
	c, err := whatsapp.Open(t.Context(), cfg)
	must(t, err)
	d.Client = c
	t.Cleanup(func() { must(t, c.Close()) })
	return d
}

// One that is another process's by now is not tried again, and opens no line.
func TestReplacedNumberOfAnotherProcess(t *testing.T) {
	var theirs atomic.Bool
	d := reopened(t, func(c *whatsapp.Config) {
		c.May = func(context.Context) error {
			if theirs.Load() {
				return errors.New("it is theirs")
			}
			return nil
		}
	})
	d.Hurry(time.Millisecond, within)
	d.HurryBack(time.Millisecond, time.Hour)
	d.run()
	d.await(whatsapp.StateConnected)
	p := phone(t, d.net, ada, "Ada")
	theirs.Store(true)
	if err := d.send(p, "3EB01", "x"); !errors.Is(err, whatsapp.ErrOffline) || !strings.Contains(err.Error(), "theirs") {
		t.Errorf("sent: %v", err)
	}
	d.device().Replace()
	await.Until(t, "it gives up", func() bool { return strings.Contains(d.log.String(), "tried_again=false") })
	await.Until(t, "its line is closed at the network's end too", func() bool { return !d.device().Online() })
	if s := d.State(); s != string(whatsapp.StateReplaced) {
		t.Errorf("it is %s", s)
	}
	d.Resume()
	await.Until(t, "it is refused a line", func() bool { return strings.Contains(d.log.String(), "it is theirs") })
	if d.device().Online() {
		t.Error("it opened a line")
	}
}

// While what was missed is coming in, the number says so.
func TestSyncing(t *testing.T) {
	d := paired(t)
	await.Until(t, "it is live", func() bool { return d.Standing().State == flow.NumberLive })
	began := d.Standing().Since
	if began.IsZero() || d.Syncing() {
		t.Errorf("it stands %+v", d.Standing())
	}
	d.Handle(t.Context(), &events.KeepAliveTimeout{ErrorCount: 1})
	if s := d.Standing(); s.State != flow.NumberDeaf || s.Detail == "" {
		t.Errorf("without an answer to a keep-alive it stands %+v", s)
	}
	d.Handle(t.Context(), &events.KeepAliveRestored{})
	if s := d.Standing(); s.State != flow.NumberLive || s.Since.Before(began) {
		t.Errorf("it stands %+v", s)
	}
}

// Its own phone is seen by what the phone does, and missed after ten days.
func TestThePhoneOfANumber(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	d := reopened(t, func(c *whatsapp.Config) {
		c.Now, c.Past = now, flow.Number{PhoneSeen: time.Now().Add(-9 * 24 * time.Hour)}
	})
	d.run()
	await.Until(t, "it is live", func() bool { return d.Standing().State == flow.NumberLive })
	ahead.Store(int64(25 * time.Hour))
	if s := d.Standing(); s.State != flow.NumberPhoneAway || s.Until.Sub(now()) > 4*24*time.Hour {
		t.Errorf("after ten days it stands %+v", s)
	}
	other := types.NewJID(ourNumber, types.DefaultUserServer)
	other.Device = 7
	d.Handle(t.Context(), &events.Receipt{MessageSource: types.MessageSource{IsFromMe: true, Sender: other}})
	if s := d.Standing(); s.State != flow.NumberPhoneAway {
		t.Errorf("another linked device is taken for the phone: %+v", s)
	}
	d.Handle(t.Context(), &events.Receipt{MessageSource: types.MessageSource{IsFromMe: true, Sender: types.NewJID(ourNumber, types.DefaultUserServer)}})
	if s := d.Standing(); s.State != flow.NumberLive {
		t.Errorf("its phone was there, and it stands %+v", s)
	}
}

// The version to pass for is one for the process, like the root key.
func TestTheVersionIsOneForTheProcess(t *testing.T) {
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	root := n.RootKey()
	for _, v := range []string{"2.3000.1", "not a version", "1.2", "1.2.3.4"} {
		cfg := d.Settings()
		cfg.Version, cfg.RootKey = v, &root
		if c, err := whatsapp.Open(t.Context(), cfg); !errors.Is(err, whatsapp.ErrInput) {
			t.Errorf("version %q: %v", v, err)
			if err == nil {
				must(t, c.Close())
			}
		}
	}
}
