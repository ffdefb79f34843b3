package whatsapp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
)

// WhatsApp's lock on first messages outlives the process, wherever that stood when it
// ended: without a line, and on its way to one for the second time.
func TestATimelockOutlivesALineThatIsLost(t *testing.T) {
	var away atomic.Bool
	broken := func(c *whatsapp.FleetConfig) {
		dial := c.Client.Dial
		c.Client.Dial = func(ctx context.Context) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("the network is away")
			}
			return dial(ctx)
		}
	}
	s := afresh(t, 1, broken)
	p := phone(t, s.net, ada, "Ada")
	until := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	locked := &events.NotifyAccountReachoutTimelock{IsActive: true}
	locked.TimeEnforcementEnds.Time = until
	s.Line(1).Handle(t.Context(), locked)
	s.awaits(1, flow.NumberTimelocked)
	away.Store(true)
	s.device(1).Drop()
	s.awaits(1, flow.NumberConnecting)
	s.halt()
	for range 2 {
		s = newSquad(t, s.net, s.db, s.dir, 1, broken)
		s.run()
		s.awaits(1, flow.NumberConnecting)
		s.halt()
	}
	away.Store(false)
	s = newSquad(t, s.net, s.db, s.dir, 1, broken)
	s.run()
	s.awaits(1, flow.NumberTimelocked)
	if row := s.row(1); !row.Until.Equal(until) {
		t.Errorf("it stands %+v, and is locked until %v", row, until)
	}
	first := checkout.Outgoing{Number: numberIn(1), Person: p.Account().LID(), ID: "3EB01", Text: "hello", First: true}
	if err := s.Send(t.Context(), first); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("a first message while the lock lasts: %v", err)
	}
	if got := s.picks(1); len(got) != 1 || got[""] != 1 {
		t.Errorf("new links are spread %v", got)
	}
}

// It is of the number, and not of the place where that was: another one that is linked
// there may write to strangers, and the same one that is linked anew may not.
func TestATimelockIsOfItsNumber(t *testing.T) {
	for _, c := range []struct {
		digits       string
		stands, want flow.NumberState
	}{
		{ourNumber, flow.NumberPairing, flow.NumberTimelocked},
		{ourNumber, flow.NumberLoggedOut, flow.NumberTimelocked},
		{"2348000000099", flow.NumberLoggedOut, flow.NumberLive},
	} {
		n := network(t)
		d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
		cfg := d.Settings()
		must(t, d.Close())
		cfg.Past = flow.Number{Digits: c.digits, State: c.stands, Until: time.Now().Add(time.Hour)}
		client, err := whatsapp.Open(t.Context(), cfg)
		must(t, err)
		d.Client = client
		t.Cleanup(func() { must(t, client.Close()) })
		d.run()
		if c.stands == flow.NumberLoggedOut {
			d.await(whatsapp.StateLoggedOut)
			d.Resume()
		}
		d.link(ourNumber)
		await.Until(t, fmt.Sprintf("%s, which stood %s, is %s", c.digits, c.stands, c.want), func() bool { return d.Standing().State == c.want })
	}
}

// WhatsApp refuses a first message and says until when it does so, in whichever order:
// what it said is not cut short by the refusal, which names no time.
func TestARefusalDoesNotShortenATimelock(t *testing.T) {
	s := afresh(t, 1, nil)
	p := phone(t, s.net, ada, "Ada")
	locked := &events.NotifyAccountReachoutTimelock{IsActive: true}
	locked.TimeEnforcementEnds.Time = time.Now().Add(24 * time.Hour).Truncate(time.Second)
	s.net.Nack(func(wanet.Sent) int {
		s.Line(1).Handle(t.Context(), locked)
		return 463
	})
	first := checkout.Outgoing{Number: numberIn(1), Person: p.Account().LID(), ID: "3EB01", Text: "hello", First: true}
	if err := s.Send(t.Context(), first); !errors.Is(err, whatsapp.ErrOffline) {
		t.Errorf("a first message under the lock: %v", err)
	}
	if n := s.Line(1).Standing(); n.State != flow.NumberTimelocked || !n.Until.Equal(locked.TimeEnforcementEnds.Time) {
		t.Errorf("it stands %+v", n)
	}
}
