package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"till/flow"
)

// Result is what came of one seed.
type Result struct {
	Seed     uint64   `json:"seed"`
	Steps    int      `json:"steps"`
	Sessions int      `json:"sessions"`
	Crashes  int      `json:"crashes"`
	Hash     string   `json:"hash"`
	Broken   *Broken  `json:"broken,omitempty"`
	Last     []string `json:"last,omitempty"` // lines of the trace

	acts []Action
	cut  bool // the power went in the middle of a write
}

// The people who pay.
const people = 8

func newWorld(seed uint64, t *template) *world {
	var key [32]byte
	sum := sha256.Sum256(fmt.Appendf(nil, "till sim %d", seed))
	copy(key[:], sum[:])
	w := &world{
		seed: seed, began: time.Now(), rng: rand.New(rand.NewChaCha8(key)), tpl: t, naming: naming{names: map[string]string{}}, hash: sha256.New(), //nolint:gosec // it is no secret; the bubble's clock
		goals: newGoals(), unheard: map[string]bool{}, twice: map[string]bool{}, firstAsked: map[string]time.Duration{}, minds: map[string]moved{}, taking: map[string]int{}, ctx: context.Background(), kyc: "NONE", // of the world
	}
	w.phones = &phones{w: w}
	w.sinks = &sinks{w: w, all: map[string]*sink{}}
	return w
}

func kobo(n int64) flow.Kobo { return flow.Kobo(n) }

// play is how a seed is to be simulated, inside a bubble.
type play struct {
	seed    uint64
	tpl     *template
	out     io.Writer // of the trace, nil for nobody
	goals   *Goals
	meddles func(*world) // does things behind the service's back; nil for nobody
	some    bool         // only the actions of with
	with    map[int]bool
	until   time.Duration
}

// only leaves out all other actions.
func (p *play) only(numbers []int) {
	p.some, p.with = true, map[int]bool{}
	for _, n := range numbers {
		p.with[n] = true
	}
}

// run simulates it.
func (p play) run() (r Result) {
	seed, t := p.seed, p.tpl
	r.Seed = seed
	w := newWorld(seed, t)
	defer t.disk.Remove(process)
	w.out, w.meddles, w.some, w.with, w.until = p.out, p.meddles, p.some, p.with, p.until
	w.swarm = drawSwarm(w)
	if err := w.begin(); err != nil {
		w.breaks("sim", "begin: %v", err)
	} else {
		w.plan()
		w.run()
		w.finish()
	}
	w.stopped()
	if w.book != nil {
		w.book.close()
	}
	if w.inst != nil {
		w.inst.kill()
		if err := w.inst.end(); err != nil {
			w.breaks("sim", "end: %v", err)
		}
	}
	if w.bank != nil {
		w.bank.stop()
		if err := w.bank.bank.Close(); err != nil {
			w.breaks("sim", "close the bank: %v", err)
		}
	}
	w.stopped()
	p.goals.Add(w.goals)
	r.acts, r.cut = w.acts, w.cut
	r.Steps, r.Sessions, r.Crashes, r.Broken, r.Hash = w.steps, len(w.sessions), w.gen-1, w.fault, hex.EncodeToString(w.hash.Sum(nil))
	if r.Broken != nil {
		r.Last = w.last[max(0, len(w.last)-keptLines):]
	}
	return r
}

// begin opens everything.
func (w *world) begin() error {
	if err := w.openBank(w.ctx); err != nil {
		return err
	}
	dir := process + "1"
	w.tpl.disk.Copy(beginnings, dir, nil)
	if w.tpl.at != nil {
		if err := w.tpl.at.begin(dir, beginnings); err != nil {
			return err
		}
	}
	for i := range people {
		w.phones.people = append(w.phones.people, &person{
			name: fmt.Sprintf("p%d", i), lid: fmt.Sprintf("10000000%04d", i), phone: flow.Phone(fmt.Sprintf("23480300000%02d", i)), shown: map[string]int{},
		})
	}
	for i := range w.tpl.merchants {
		m := w.tpl.merchants[i]
		w.name(string(m.project), m.name)
		w.merchants = append(w.merchants, &m)
	}
	w.book = newBook(w)
	if err := w.open(dir); err != nil {
		return err
	}
	return w.book.open(dir)
}

// sessionsOf is how many sessions a seed has.
const sessionsOf = 43

// plan puts what will happen into the queue.
func (w *world) plan() {
	for _, m := range w.merchants {
		w.after(time.Second, "listens", func() { w.listens(m, false) })
		if m.n < 2 {
			w.after(2*time.Second, "listens", func() { w.listens(m, true) })
		}
	}
	w.planning = true
	for range sessionsOf {
		live, chat := w.roll(6), w.roll(w.swarm.chats)
		method := pick(w, "bank-transfer", "bank-transfer", "bank-transfer", "bank-transfer", "ussd", "card")
		w.after(w.between(time.Minute, lasts-30*time.Hour), "opens", func() {
			w.opens(chat && !live, live, func(s *session) {
				switch {
				case live:
					w.after(w.between(time.Second, time.Hour), "live", func() { w.crosses(s) })
				case chat:
					w.chats(s)
				case w.roll(93):
					w.after(w.between(time.Second, 6*time.Minute), "pays", func() { w.pays(s, method) })
				}
			})
		})
	}
	for range w.swarm.fronts {
		w.after(w.between(time.Hour, lasts-time.Hour), "front", w.front)
	}
	for range w.swarm.crashes {
		w.after(w.between(time.Hour, lasts-time.Hour), "dies", w.dies)
	}
	w.tours()
	w.errands()
	w.planning = false
	for day := range days {
		w.after(time.Duration(day+1)*24*time.Hour-time.Millisecond, "judge the day", w.judgeDay)
	}
	w.after(lasts, "calm", w.calms)
}

// calms ends the bad weather: from now on, everything must come to its end.
func (w *world) calms() {
	w.untrap()
	w.mu.Lock()
	w.ending = true
	w.bank.line, w.phones.offline, w.phones.gone = "", false, false
	for _, k := range w.sinks.all {
		k.mode = ""
	}
	w.mu.Unlock()
	w.fates("", "")
}

// settles is how long everything has to come to its end: the schedule of webhooks
// is the longest there is.
const settles = 6 * 24 * time.Hour

// finish lets time go by until every schedule is over, and judges what is left.
func (w *world) finish() {
	if w.stopped() || w.until > 0 && w.age() > w.until {
		return
	}
	time.Sleep(settles)
	w.drain()
	w.close("the end")
	if !w.stopped() {
		w.judgeEnd()
	}
}
