package sim

import (
	"fmt"
	"net/http"
	"time"

	"till/flow"
	"till/rail"
)

// swarm says which of all that can go wrong goes wrong in a seed: with all of it
// on at once, some of it would never be met.
type swarm struct {
	calm       int // 0: notices fare badly; 1: most are brought at once
	echo       int // of a hundred messages of payers that come twice
	double     int // of a hundred calls that are made twice at once
	sickEvents int // of a hundred events that their sink fails at first
	crashes    int
	fronts     int // times that the bank's line, the sinks, the number or the places fare badly
	chats      int // of a hundred sessions that are in a chat
}

func drawSwarm(w *world) swarm {
	return swarm{
		calm: pick(w, 0, 1, 1), echo: pick(w, 0, 10, 30), double: pick(w, 0, 5, 20), sickEvents: pick(w, 0, 15, 40),
		crashes: pick(w, 0, 2, 4, 6), fronts: pick(w, 3, 8, 14), chats: pick(w, 20, 45, 60),
	}
}

// fates has the bank treat what is sent out in a certain way for a while.
func (w *world) fates(refunds, payouts rail.Fate) {
	w.plays(fmt.Sprintf("the bank's fates: refunds %q, payouts %q", refunds, payouts), func() error {
		_, err := w.bank.player.SetConditions(w.ctx, rail.Conditions{Up: true, Refunds: refunds, Payouts: payouts})
		return err
	})
}

// front is a time of bad weather.
func (w *world) front() {
	for1 := w.between(time.Minute, 40*time.Minute)
	long := w.between(time.Hour, 20*time.Hour)
	switch w.rng.IntN(13) {
	case 0, 1, 2:
		line := pick(w, "down", "slow", "lost", "hang", "half")
		w.sets("the bank's line is "+line, for1, func() { w.bank.line = line }, func() { w.bank.line = "" })
	case 3, 4:
		fate := pick(w, rail.FateFail, rail.FateReject, rail.FatePending, rail.FateBounce)
		other := pick(w, rail.FateOK, rail.FateFail, rail.FateBounce, rail.FatePending, rail.FateReject)
		w.fates(fate, other)
		w.after(long, "fates", func() { w.fates(rail.FateOK, rail.FateOK) })
	case 5, 6:
		m := pick(w, w.merchants...)
		mode := pick(w, "500", "hang", "429", "reset", "302")
		k := pick(w, m.sinks...)
		w.sets(m.name+"'s sink is "+mode, long, func() { k.mode = mode }, func() { k.mode = "" })
	case 7:
		m := pick(w, w.merchants...)
		k := m.sinks[0]
		w.sets(m.name+"'s sink is gone", for1, func() { k.mode = "410" }, func() { k.mode = "" })
		w.after(for1+w.between(time.Minute, 5*time.Hour), "enable", func() { w.enables(k) })
	case 8, 9:
		w.sets("the number is not connected", for1, func() { w.phones.offline, w.phones.offlineSince = true, w.age() }, func() { w.phones.offline = false })
	case 11: // for longer than it is asked about; then it says what became of all of that
		w.fates(rail.FatePending, rail.FatePending)
		w.after(w.between(25*time.Hour, 40*time.Hour), "fates", func() {
			w.fates(pick(w, rail.FateOK, rail.FateFail), pick(w, rail.FateOK, rail.FateFail))
		})
		w.after(w.between(41*time.Hour, 44*time.Hour), "fates", func() { w.fates(rail.FateOK, rail.FateOK) })
	case 10:
		w.sets("no number takes new chats", for1, func() { w.phones.gone = true }, func() { w.phones.gone = false })
	default:
		w.saw("the places are flushed")
		was := w.inst.places.copied()
		w.inst.places.Forget()
		w.goals.reached("flush", "places", w)
		w.after(long, "places", func() {
			w.saw("the places are what they were %v ago", long)
			w.inst.places.restored(w.ctx, was)
			w.goals.reached("flush", "restored", w)
		})
	}
}

// sets changes the world for a while.
func (w *world) sets(name string, lasts time.Duration, on, off func()) {
	change := func(do func(), text string) {
		w.mu.Lock()
		do()
		w.mu.Unlock()
		w.saw("%s%s", name, text)
	}
	change(on, "")
	w.after(lasts, "weather", func() { change(off, " no more") })
}

// enables has a merchant switch an endpoint on again that was given up.
func (w *world) enables(k *sink) {
	key := k.m.secret
	if k.live {
		key = k.m.live
	}
	w.ask("enable "+k.url, request{method: http.MethodPatch, path: "/v1/webhook-endpoints/" + k.id, key: key, body: `{"status":"ENABLED"}`}, nil)
}

// dies has the process die, now or in the middle of what comes next.
func (w *world) dies() {
	at := pick(w, "now", atWrite, atWrite, "bank.before", "bank.after", "bank.after", "sink.after", "send.after", "send.before")
	if at == "now" {
		w.saw("crash")
		w.goals.reached("crash", at, w)
		w.observe()
		w.crash(false)
		return
	}
	w.untrap()
	t := &trap{at: at}
	if at == atWrite {
		w.cuts(t)
	}
	w.mu.Lock()
	w.trap = t
	w.mu.Unlock()
	w.saw("a trap at %s", at)
	w.after(2*time.Hour, "trap", func() {
		w.mu.Lock()
		mine := w.trap == t
		w.mu.Unlock()
		if mine {
			w.untrap()
		}
	})
}

// listens has every merchant register its sinks.
func (w *world) listens(m *merchant, live bool) {
	k := &sink{url: fmt.Sprintf("http://127.0.0.1:7000/%s/%d", m.name, len(m.sinks)), m: m, live: live, got: map[string]*received{}}
	key := m.secret
	if live {
		k.url, key = fmt.Sprintf("https://%s.shop.example/live", m.name), m.live
	}
	m.sinks = append(m.sinks, k)
	w.sinks.all[k.url] = k
	w.insist("endpoint "+k.url, request{
		method: http.MethodPost, path: "/v1/webhook-endpoints", key: key, once: m.once(), body: encoded(map[string]any{"url": k.url, "events": flow.EventKinds()}),
	}, func(out reply) {
		if out.status != http.StatusCreated {
			w.breaks("sim", "%s cannot be registered: %d %s", k.url, out.status, out.body)
			return
		}
		k.id, k.secrets, k.learnt = out.text("id"), []string{out.text("secret")}, []time.Duration{w.age()}
		w.name(k.id, k.url)
	})
}
