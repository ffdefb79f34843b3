package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/hooks"
)

// about is a stretch of time as a replay takes it, with more fields.
func about(from, to time.Time, more string) string {
	return fmt.Sprintf(`{"from":%q,"to":%q%s}`, flow.Stamp(from), flow.Stamp(to), more)
}

func TestAStretchOfTimeIsSentAgain(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	id := d.endpoint(d.key, shop.url, "session.created").text("data.id")
	shop.answers(http.StatusServiceUnavailable, "closed")
	began := d.now().Add(-time.Second)
	var events []string
	for range 3 {
		d.want(d.call("POST", sessions, d.key, good), http.StatusCreated, nil)
		events = append(events, d.newest())
	}
	all := func(status, tries string) {
		t.Helper()
		for _, event := range events {
			d.stands(event, status, tries)
		}
	}
	all("DEAD", "1")
	ends := d.now().Add(time.Second)
	replay := func(id, body, count string) {
		t.Helper()
		d.want(d.call("POST", endpointsPath+"/"+id+"/replay", d.key, body), http.StatusOK, map[string]string{"data.endpointId": id, "data.count": count, "data.nextFrom": ""})
	}
	shop.answers(http.StatusOK, "")
	replay(id, about(began.Add(-time.Hour), began, ""), "0")
	replay(id, about(began, ends, `,"onlyFailed":true`), "3")
	all("DELIVERED", "2")
	replay(id, about(began, ends, `,"onlyFailed":true`), "0")
	replay(id, about(began, ends, ""), "3")
	all("DELIVERED", "3")
	// Who was added later is sent what they would have wanted.
	late := d.catches()
	replay(d.endpoint(d.key, late.url, "session.created").text("data.id"), about(began, ends, ""), "3")
	replay(d.endpoint(d.key, late.url, "charge.success").text("data.id"), about(began, ends, ""), "0")
	for _, event := range events {
		await.Until(t, event+" comes late", func() bool { return len(late.of(event)) == 1 })
	}
	for body, field := range map[string]string{
		about(began, began, ""):                      "to",
		about(began, began.Add(32*24*time.Hour), ""): "to",
		`{"from":"2026-11-21T09:00:00Z"}`:            "to",
		`{"to":"2026-11-21T09:00:00Z"}`:              "from",
	} {
		d.want(d.call("POST", endpointsPath+"/"+id+"/replay", d.key, body), http.StatusBadRequest, map[string]string{"error.fields.0.field": field})
	}
}

// What one call does not put on its way, the next one does, from where it was told
// to go on; events of one millisecond stay together.
func TestAReplayHasAnEndAndSaysWhereItIs(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	began := d.now().Truncate(time.Millisecond).Add(-time.Hour)
	const more = 5
	d.happened(checkout.MaxReplayed+more, func(i int) time.Time {
		return began.Add(time.Duration(min(i, checkout.MaxReplayed-2)) * time.Millisecond) // the last of them at once
	})
	id := d.endpoint(d.key, shop.url, "endpoint.disabled").text("data.id")
	whole := func(from time.Time) reply {
		return d.call("POST", endpointsPath+"/"+id+"/replay", d.key, about(from, began.Add(time.Hour), ""))
	}
	next := began.Add((checkout.MaxReplayed - 2) * time.Millisecond)
	d.want(whole(began), http.StatusOK, map[string]string{"data.count": fmt.Sprint(checkout.MaxReplayed - 2), "data.nextFrom": flow.Stamp(next)})
	d.want(whole(next), http.StatusOK, map[string]string{"data.count": fmt.Sprint(more + 2), "data.nextFrom": ""})
	await.Until(t, "each of them comes", func() bool {
		shop.mu.Lock()
		defer shop.mu.Unlock()
		return len(shop.caught) >= checkout.MaxReplayed+more
	})
	seen := map[string]int{}
	for _, one := range shop.caught {
		event := one.header.Get("webhook-id")
		if seen[event]++; seen[event] > 1 {
			t.Errorf("%s came twice", event)
		}
	}
}

// happened keeps events that nobody was sent, each of its time.
func (d *desk) happened(n int, when func(i int) time.Time) {
	t := d.t
	t.Helper()
	err := d.db.Update(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			at := when(i)
			id, err := flow.IDs{Now: func() time.Time { return at }, Rand: d.server.cfg.IDs.Rand}.New(flow.PrefixEvent)
			if err != nil {
				return err
			}
			e := flow.Event{ID: flow.EventID(id), Kind: flow.Ping, Project: d.project.ID, CreatedAt: at}
			if e.Body, err = flow.ComposeEvent(e, "wsp_we_01k9z3m5x8v2c7n4b6t1q0w9eq", flow.PingRecord{EndpointID: "wsp_we_01k9z3m5x8v2c7n4b6t1q0w9eq"}, false); err != nil {
				return err
			}
			e.Kind = flow.EndpointDisabledKind // pings are nobody's but whose they were
			if err := tx.AddEvent(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, err)
}

// So much of one millisecond as no clock that goes on lets be made is refused, and not
// taken into memory whole.
func TestAReplayOfOneMillisecondHasABound(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	at := d.now().Truncate(time.Millisecond).Add(-time.Hour)
	d.happened(checkout.MaxOfAMillisecond+1, func(int) time.Time { return at })
	id := d.endpoint(d.key, shop.url, "endpoint.disabled").text("data.id")
	got := d.call("POST", endpointsPath+"/"+id+"/replay", d.key, about(at, at.Add(time.Minute), ""))
	d.want(got, http.StatusBadRequest, map[string]string{"error.code": "invalid_field", "error.fields.0.field": "from"})
	d.want(d.call("POST", endpointsPath+"/"+id+"/replay", d.key, about(at.Add(time.Millisecond), at.Add(time.Minute), "")), http.StatusOK, map[string]string{"data.count": "0"})
}

// A millisecond in which more was made than one call is of is not begun with again and
// again: it goes out whole, once, and the next call goes on behind it.
func TestAReplayGoesOnBehindAFullMillisecond(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	began := d.now().Truncate(time.Millisecond).Add(-time.Hour)
	const more, later = 5, 3
	d.happened(checkout.MaxReplayed+more+later, func(i int) time.Time {
		if i < checkout.MaxReplayed+more {
			return began
		}
		return began.Add(time.Second)
	})
	id := d.endpoint(d.key, shop.url, "endpoint.disabled").text("data.id")
	sent := func() int {
		shop.mu.Lock()
		defer shop.mu.Unlock()
		return len(shop.caught)
	}
	from, calls, queued := flow.Stamp(began), 0, 0
	for ; from != "" && calls < 4; calls++ {
		got := d.call("POST", endpointsPath+"/"+id+"/replay", d.key, `{"from":"`+from+`","to":"`+flow.Stamp(began.Add(time.Minute))+`"}`)
		d.want(got, http.StatusOK, nil)
		n, err := strconv.Atoi(got.text("data.count"))
		must(t, err)
		queued += n
		await.Until(t, "all of it comes", func() bool { return sent() >= queued })
		from = got.text("data.nextFrom")
	}
	if calls != 2 || sent() != checkout.MaxReplayed+more+later {
		t.Errorf("%d calls sent %d events, of %d", calls, sent(), checkout.MaxReplayed+more+later)
	}
}

func TestWhatIsHeldIsDeliveredOrCancelledAsTheMerchantSays(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	id := d.endpoint(d.key, shop.url, "charge.reversed").text("data.id")
	owed := func(name string) string {
		t.Helper()
		event := d.ping(id)
		d.stands(event, "DELIVERED", "1")
		err := d.db.Update(t.Context(), func(tx *store.Tx) error { // another endpoint's: it waits for its next try
			e := flow.Event{ID: flow.EventID("evt_01k9z3m5x8v2c7n4b6t1q0w" + name), Kind: flow.Ping, Project: d.project.ID, CreatedAt: d.now()}
			var err error
			if e.Body, err = flow.ComposeEvent(e, id, flow.PingRecord{EndpointID: flow.EndpointID(id)}, false); err != nil {
				return err
			}
			if err := tx.AddEvent(t.Context(), e); err != nil {
				return err
			}
			event = string(e.ID)
			return tx.AddDelivery(t.Context(), flow.Delivery{ID: "dlv_01k9z3m5x8v2c7n4b6t1q0w" + name, Event: e.ID, Endpoint: flow.EndpointID(id)}, d.now(), d.now().Add(time.Hour))
		})
		must(t, err)
		return event
	}
	change := func(body string, want map[string]string) {
		t.Helper()
		d.want(d.call("PATCH", endpointsPath+"/"+id, d.key, body), http.StatusOK, want)
	}
	stop, run := map[string]string{"data.status": "DISABLED", "data.disabledReason": "requested"}, map[string]string{"data.status": "ENABLED", "data.disabledReason": "", "data.disabledAt": ""}
	first := owed("9e1")
	if at := d.stands(first, "PENDING", "0").text("data.items.0.nextAttemptAt"); at == "" {
		t.Error("nobody knows when it is tried")
	}
	change(`{"status":"DISABLED"}`, stop)
	d.stands(first, "HELD", "0")
	change(`{"status":"ENABLED","deliverHeld":false}`, run)
	d.stands(first, "CANCELLED", "0")
	second := owed("9e2")
	change(`{"status":"DISABLED"}`, stop)
	d.stands(second, "HELD", "0")
	change(`{"status":"ENABLED"}`, run)
	d.stands(second, "DELIVERED", "1")
	d.want(d.call("PATCH", endpointsPath+"/"+id, d.key, `{"deliverHeld":true}`), http.StatusBadRequest, map[string]string{"error.fields.0.field": "deliverHeld"})
	// Removed: what was owed is cancelled, what was sent stays to be read.
	third := owed("9e3")
	d.want(d.call("DELETE", endpointsPath+"/"+id, d.key, ""), http.StatusOK, map[string]string{"data.id": id, "data.deleted": "true"})
	d.stands(third, "CANCELLED", "0")
	d.stands(second, "DELIVERED", "1")
	d.want(d.call("GET", endpointsPath+"/"+id, d.key, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.call("GET", endpointsPath, d.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	if len(shop.of(first)) != 0 || len(shop.of(third)) != 0 {
		t.Error("what was cancelled was sent")
	}
}

func TestAnEndpointIsReadListedAndChangedLikeItWasMade(t *testing.T) {
	d := openDesk(t)
	d.server.cfg.CheckURL = func(env flow.Environment, raw string) error {
		return hooks.CheckURL(raw, hooks.Allow{Loopback: env == flow.Test})
	}
	live, _ := d.openEnvironment(flow.Live, d.wire)
	made := d.call("POST", endpointsPath, d.key, `{"url":"http://127.0.0.1:5000/a","description":"shop","events":["charge.success"]}`)
	read := d.call("GET", made.header.Get("Location"), d.key, "")
	if want := strings.Replace(made.body, `"secret":"`+made.text("data.secret")+`",`, "", 1); read.body != want {
		t.Errorf("made\n%s\nread\n%s", want, read.body)
	}
	id := made.text("data.id")
	change := func(body string, status int, want map[string]string) {
		t.Helper()
		d.want(d.call("PATCH", endpointsPath+"/"+id, d.key, body), status, want)
	}
	change(`{}`, http.StatusOK, map[string]string{"data.url": "http://127.0.0.1:5000/a", "data.description": "shop", "data.events.0": "charge.success"})
	change(`{"url":"http://127.0.0.1:5000/b","description":null,"events":null}`, http.StatusOK, map[string]string{"data.url": "http://127.0.0.1:5000/b", "data.description": "", "data.events": "[]"})
	change(`{"maxPerSecond":5}`, http.StatusOK, map[string]string{"data.maxPerSecond": "5"})
	change(`{"maxPerSecond":null}`, http.StatusOK, map[string]string{"data.maxPerSecond": ""})
	for _, bad := range []string{"http://169.254.169.254/latest", "ftp://127.0.0.1/", "https://10.0.0.1/", "https://u:p@shop.example/", "", "http://127.0.0.1:5000/\n"} {
		body := strings.ReplaceAll(fmt.Sprintf(`{"url":%q}`, bad), `\x`, `\u00`)
		change(body, http.StatusBadRequest, map[string]string{"error.fields.0.field": "url"})
	}
	d.want(d.call("GET", endpointsPath+"/"+id, d.key, ""), http.StatusOK, map[string]string{"data.url": "http://127.0.0.1:5000/b"})
	other := d.endpoint(d.key, "http://127.0.0.1:5000/c").text("data.id")
	first := d.call("GET", endpointsPath+"?limit=1", d.key, "")
	d.want(first, http.StatusOK, map[string]string{"data.items.0.id": id, "data.items.1": "", "data.hasMore": "true"})
	d.want(d.call("GET", endpointsPath+"?limit=1&cursor="+first.text("data.nextCursor"), d.key, ""), http.StatusOK, map[string]string{"data.items.0.id": other, "data.hasMore": "false"})
	// In live it is https alone, and nothing of this machine.
	made = d.call("POST", endpointsPath, live, `{"url":"https://shop.example/hooks"}`)
	d.want(made, http.StatusCreated, nil)
	for _, bad := range []string{"http://shop.example/hooks", "https://127.0.0.1/", "https://localhost/"} {
		d.want(d.call("PATCH", endpointsPath+"/"+made.text("data.id"), live, `{"url":"`+bad+`"}`), http.StatusBadRequest, map[string]string{"error.fields.0.field": "url"})
	}
	d.want(d.call("GET", endpointsPath+"/"+id, live, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
}

// Two who change an endpoint at once do not undo each other's words.
func TestAnEndpointThatSomebodyElseChangedIsNotOverwritten(t *testing.T) {
	s := open(t)
	id := flow.EndpointID(s.hook())
	err := s.checkouts.Update(t.Context(), func(tx *store.Tx) error {
		e, err := tx.Endpoint(t.Context(), s.project.ID, id)
		if err != nil {
			return err
		}
		mine, theirs := e, e
		mine.URL, theirs.URL = "http://127.0.0.1:9/mine", "http://127.0.0.1:9/theirs"
		if err := tx.ChangeEndpoint(t.Context(), &mine); err != nil {
			return err
		}
		if err := tx.ChangeEndpoint(context.Background(), &theirs); flow.CodeOf(err) != flow.CodeStorage {
			t.Errorf("the later of two was kept: %v", err)
		}
		return nil
	})
	must(t, err)
	s.want(s.ask("GET", endpointsPath+"/"+string(id), s.key, ""), http.StatusOK, map[string]string{"data.url": "http://127.0.0.1:9/mine"})
}
