package crash

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"till/bot/whatsapp/wanet"
	"till/flow/redistest"
)

// turnMost is how long a turn of a chat may take while Redis is gone or lies, on a
// machine that does nothing else; busyTurn is what a test allows.
const (
	turnMost = time.Second
	busyTurn = 5 * time.Second
)

// redisServer is a real Redis of its own, which keeps its log of writes.
type redisServer struct {
	*redistest.Server

	tb testing.TB
}

// do runs a command that must work.
func (r *redisServer) do(args ...any) {
	r.tb.Helper()
	if err := r.Client.Do(context.Background(), args...).Err(); err != nil {
		r.tb.Fatalf("redis %v: %v", args, err)
	}
}

// lies makes every key one of another type.
func (r *redisServer) lies() {
	r.tb.Helper()
	keys, err := r.Client.Keys(context.Background(), "*").Result()
	must(r.tb, err)
	for _, key := range keys {
		r.do("DEL", key)
		r.do("LPUSH", key, "not what was there")
	}
}

// copied copies the log of writes to another place.
func (r *redisServer) copied(from, to string) {
	r.tb.Helper()
	_ = os.RemoveAll(to)
	if out, err := exec.Command("cp", "-r", from, to).CombinedOutput(); err != nil {
		r.tb.Fatalf("copy the log of Redis: %v: %s", err, out)
	}
}

// trouble is what befalls Redis while chats are under way.
type trouble struct {
	name   string
	before func(r *redisServer) // before the payers chose
	begins func(r *redisServer)
	ends   func(r *redisServer)
}

// troubles are all of them.
func troubles() []trouble {
	nothing := func(*redisServer) {}
	aof := func(r *redisServer) string { return filepath.Join(r.Dir, "appendonlydir") }
	return []trouble{
		{"FLUSHALL", nothing, func(r *redisServer) { r.do("FLUSHALL") }, nothing},
		{"kill -9", nothing, func(r *redisServer) { r.Kill() }, func(r *redisServer) { r.Again() }},
		{"CLIENT PAUSE", nothing, func(r *redisServer) { r.do("CLIENT", "PAUSE", "30000") }, func(r *redisServer) { r.Kill(); r.Again() }},
		{
			"out of memory", nothing, func(r *redisServer) {
				r.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
				r.do("CONFIG", "SET", "maxmemory", "1")
			}, func(r *redisServer) { r.do("CONFIG", "SET", "maxmemory", "0") },
		},
		{"wrong types", nothing, func(r *redisServer) { r.lies() }, nothing},
		{
			"stale log", func(r *redisServer) { r.copied(aof(r), filepath.Join(r.Dir, "old")) },
			func(r *redisServer) { r.Kill(); r.copied(filepath.Join(r.Dir, "old"), aof(r)); r.Again() }, nothing,
		},
	}
}

// troubled is what it came to.
type troubled struct {
	turns []time.Duration // from what a payer wrote to the answer, while it lasts
	after []time.Duration // the same, once it is over
	rest  time.Duration   // the longest call of a merchant while it lasts
}

// talking is a chat under way.
type talking struct {
	one     sale
	p       *payer
	account string
}

// trouble lets something befall Redis in the middle of chats: the menu is shown,
// then it begins, Till is killed and comes back to it, and the payer chooses.
func (s *shop) trouble(r *redisServer, t trouble, chats int) (out troubled) {
	w := s.w
	w.tb.Helper()
	over, end := context.WithCancel(context.Background())
	end()
	list := make([]*talking, chats)
	for n := range list {
		list[n] = &talking{one: sale{reference: fmt.Sprintf("redis-%s-%d", strings.ReplaceAll(t.name, " ", "-"), n), amount: 500_000, chat: true}}
	}
	check := func(one *talking, err error) {
		if err != nil {
			w.wrong("lost", "%s: %v", one.one.reference, err)
		}
	}
	each(list, func(c *talking) { check(c, s.opened(over, c)) })
	t.before(r)
	if t.name == "stale log" { // what comes now is in no copy
		each(list, func(c *talking) { _, err := c.turn("6", `1 Bank transfer`); check(c, err) })
	}
	t.begins(r)
	w.forgets()
	var mu sync.Mutex
	each(list, func(c *talking) {
		took, err := c.turn("1", `^\d{10}$`)
		check(c, err)
		call, err := w.call(http.MethodPost, sessionsPath, c.one.reference+"-rest", `{"amount":500000,"customerEmail":"bola@example.com"}`)
		if err != nil || call.status != http.StatusCreated {
			w.wrong("other", "a merchant's call while Redis has %s: %d %s (%v)", t.name, call.status, call.body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		out.turns, out.rest = append(out.turns, took), max(out.rest, call.took)
	})
	t.ends(r)
	each(list, func(c *talking) {
		took, err := c.turn("5", `^\d{10}$`)
		check(c, err)
		if err == nil {
			check(c, w.transfer(&c.one, c.account, c.one.amount))
			_, err = c.p.hears(`(?i)receipt(?s:.*)` + c.one.reference + `\b`)
			check(c, err)
		}
		if n, err := c.p.times(`(?i)^receipt`); err != nil || n != 1 {
			w.wrong("doubled", "%s heard %d receipts (%v)", c.one.reference, n, err)
		}
		mu.Lock()
		defer mu.Unlock()
		out.after = append(out.after, took)
		s.note(c.one)
	})
	return out
}

// forgets starts Till anew: it remembers by itself where the talks stand that it had
// last, and would ask Redis for none of them.
func (w *world) forgets() {
	w.tb.Helper()
	online := func() bool {
		list, err := w.network.Devices(context.Background())
		return err == nil && slices.ContainsFunc(list, func(d wanet.DeviceInfo) bool { return d.Phone == botNumber && d.Online })
	}
	w.p.Kill()
	w.until("the number is off its line", func() bool { return !online() })
	w.start()
	w.until("the number is on its line again", online)
}

// opened opens a chat and has the menu shown.
func (s *shop) opened(over context.Context, c *talking) error {
	r, err := s.w.surely(c.one.reference, sessionsPath,
		object{"amount": c.one.amount, "customerEmail": "bola@example.com", "reference": c.one.reference, "mode": "chat"})
	if err != nil || r.status >= 300 {
		return fmt.Errorf("open a session: %d %s %w", r.status, r.body, orGone(err))
	}
	c.one.session = r.text("id")
	link, err := url.Parse(r.text("checkoutUrl"))
	if err != nil {
		return err
	}
	if c.p, err = newPayer(over, s.w); err != nil {
		return err
	}
	_, err = c.turn(link.Query().Get("text"), `1 Bank transfer`)
	return err
}

// turn is one message of the payer and the answer to it.
func (c *talking) turn(text, answer string) (time.Duration, error) {
	if c.p == nil {
		return 0, errRefused
	}
	began := time.Now()
	if err := c.p.says(text); err != nil {
		return 0, err
	}
	heard, err := c.p.hears(answer)
	if answer == `^\d{10}$` && err == nil {
		if c.account != "" && c.account != heard {
			err = fmt.Errorf("the account was %s and is %s", c.account, heard)
		}
		c.account = heard
	}
	return time.Since(began), err
}

// throughTroubles lets all of it befall Redis, and returns what each came to.
func throughTroubles(tb testing.TB, chats int) (*world, []troubled) {
	tb.Helper()
	r := &redisServer{redistest.Start(tb, "--appendonly", "yes", "--appendfsync", "everysec"), tb}
	w := newWorld(tb, "TILL_REDIS_URL="+r.URL)
	s := &shop{w: w, sales: map[string]sale{}}
	a := &audit{w: w, shop: s, sink: newSink(w), ended: map[string]string{}}
	var list []troubled
	for _, t := range troubles() {
		list = append(list, s.trouble(r, t, chats))
		progress("%s: done", t.name)
	}
	a.end()
	return w, list
}

func TestRedisMayBeLostOrLie(t *testing.T) {
	w, list := throughTroubles(t, 2)
	for n, one := range list {
		if slow := max(at(one.turns, 100), at(one.after, 100), one.rest); slow > busyTurn {
			t.Errorf("%s: something took %s", troubles()[n].name, slow)
		}
	}
	w.verdict()
}

// BenchmarkFaultRedis lets each befall Redis in the middle of a hundred chats.
func BenchmarkFaultRedis(b *testing.B) {
	const chats = 100
	w, list := throughTroubles(b, chats)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "Redis\tchats\tturn p50\tmax\tafterwards p50\tmax\tlongest call\tturns over "+turnMost.String()+"\t")
	for n, one := range list {
		slow := 0
		for _, took := range append(one.turns, one.after...) {
			if took > turnMost {
				slow++
			}
		}
		if slow > 0 {
			w.wrong("slow", "%s: %d turns took longer than %s", troubles()[n].name, slow, turnMost)
		}
		fmt.Fprintf(out, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t\n", troubles()[n].name, chats, at(one.turns, 50), at(one.turns, 100), at(one.after, 50), at(one.after, 100), ms(one.rest), slow)
	}
	_ = out.Flush()
	fmt.Printf("lost %d, doubled %d\n", w.count("lost"), w.count("doubled"))
	w.verdict()
}
