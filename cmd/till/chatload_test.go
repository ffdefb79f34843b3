//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/tilltest"
	"till/flow/benchtest"
)

// The size of a run. Nobody may write more than a few messages a minute to Till,
// so there are many payers, and so many write at once.
const (
	chatRounds = 5
	chatTurns  = 500 // of a round
	chatPayers = 700
	echoNumber = "2349010000002"
)

func chatAtOnce() []int { return []int{1, 10, 100} }

// BenchmarkChat measures Till's bot beside a bare echo bot of the same library on
// the same network, each in a process of its own: make bench-chat. A turn is a
// payer's message and the bot's answer to it. It prints one table and fails
// nothing.
func BenchmarkChat(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	where := benchtest.Machine(b)
	n, env := elsewhere(b)
	progress("starting an echo bot and Till, %d payers for each", chatPayers)
	bots := []*chatBot{echoBot(b, n, env), tillBot(b, n, env)}
	for _, bot := range bots {
		bot.greet(b)
	}
	for round := range chatRounds {
		for _, at := range chatAtOnce() {
			for _, bot := range bots {
				bot.found[at] = append(bot.found[at], bot.run(b, at))
			}
		}
		progress("round %d of %d", round+1, chatRounds)
	}
	t := chatTable(bots)
	fmt.Printf("\n%s\n%d rounds of %d turns each, interleaved; each bot in a process of its own, payers and network in another.\n\n%s\n", where, chatRounds, chatTurns, t.Text())
	if err := errors.Join(t.Leave(), t.Broken()); err != nil {
		b.Error(err)
	}
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// chatBot is a bot in a process of its own, and those who write to it.
type chatBot struct {
	name    string
	number  string
	pid     int
	payers  chan *chatPayer
	lost    int
	doubled int
	found   map[int][]chatMeasure
}

// chatPayer is somebody who writes.
type chatPayer struct {
	phone *wanet.Phone
	first string // the first message
	seen  int64  // what was shown so far
}

// chatMeasure is one round.
type chatMeasure struct{ rate, cpu, p50, p99 float64 }

// newChatBot makes the payers of a bot. Each writes once, so that all have keys.
func newChatBot(b *testing.B, n *wanet.Network, name, number string, first func(i int) string) *chatBot {
	b.Helper()
	c := &chatBot{name: name, number: number, payers: make(chan *chatPayer, chatPayers), found: map[int][]chatMeasure{}}
	for i := range chatPayers {
		phone, err := n.NewPhone(fmt.Sprintf("234803%s%06d", number[len(number)-1:], i), "Payer")
		must(b, err)
		c.payers <- &chatPayer{phone: phone, first: first(i)}
	}
	return c
}

// greet lets each payer write for the first time.
func (c *chatBot) greet(b *testing.B) {
	b.Helper()
	all := len(c.payers)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range all / 20 {
				p := <-c.payers
				if _, ok := p.turn(c.number, p.first); !ok {
					b.Errorf("%s did not answer %q", c.name, p.first)
				}
				c.payers <- p
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// turn writes and waits for the answer. It returns how many answers there were.
func (p *chatPayer) turn(to, text string) (answers int, ok bool) {
	ctx := context.Background()
	if _, err := p.phone.Send(ctx, to, text); err != nil {
		return 0, false
	}
	for {
		items, next, err := p.phone.Messages(ctx, p.seen, tilltest.Patience)
		if err != nil || len(items) == 0 {
			return 0, false
		}
		p.seen = next
		answers += countTheirs(items)
		if answers > 0 {
			return answers, true
		}
	}
}

func countTheirs(items []wanet.Message) (n int) {
	for _, m := range items {
		if !m.FromMe {
			n++
		}
	}
	return n
}

// run measures one round with so many payers at once.
func (c *chatBot) run(b *testing.B, atOnce int) chatMeasure {
	b.Helper()
	took := make([][]time.Duration, atOnce)
	var left atomic.Int64
	left.Store(chatTurns)
	var lost, doubled atomic.Int64
	before := settled(c.pid)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range took {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				p := <-c.payers
				asked := time.Now()
				answers, ok := p.turn(c.number, "menu")
				took[i] = append(took[i], time.Since(asked))
				if !ok {
					lost.Add(1)
				}
				doubled.Add(int64(max(answers-1, 0)))
				c.payers <- p
			}
		})
	}
	wg.Wait()
	spent := time.Since(began)
	cpu := settled(c.pid) - before
	for range len(c.payers) { // what came when nobody waited any more
		p := <-c.payers
		if items, next, err := p.phone.Messages(context.Background(), p.seen, 0); err == nil && len(items) > 0 {
			p.seen = next
			doubled.Add(int64(countTheirs(items)))
		}
		c.payers <- p
	}
	c.lost += int(lost.Load())
	c.doubled += int(doubled.Load())
	all := slices.Concat(took...)
	slices.Sort(all)
	at := func(part float64) float64 {
		return float64(all[int(part*float64(len(all)-1))].Microseconds()) / 1000
	}
	return chatMeasure{
		rate: float64(len(all)) / spent.Seconds(), cpu: float64(cpu.Microseconds()) / float64(len(all)), p50: at(0.5), p99: at(0.99),
	}
}

// settled is the time that a process has spent working, once it rests: what
// follows an answer belongs to its turn.
func settled(pid int) time.Duration {
	last, since := tilltest.CPU(pid), time.Now()
	for end := since.Add(5 * time.Second); time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond) // between two looks
		if now := tilltest.CPU(pid); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > 150*time.Millisecond {
			break
		}
	}
	return last
}

// chatTable is what was measured: the middle of the rounds, each figure by
// itself, and Till's share of the echo's.
func chatTable(bots []*chatBot) *benchtest.Table {
	t := &benchtest.Table{}
	for _, at := range chatAtOnce() {
		var rate, cpu [2]float64
		for i, bot := range bots {
			middle := func(of func(chatMeasure) float64) float64 {
				var all []float64
				for _, m := range bot.found[at] {
					all = append(all, of(m))
				}
				slices.Sort(all)
				return all[len(all)/2]
			}
			rate[i], cpu[i] = middle(func(m chatMeasure) float64 { return m.rate }), middle(func(m chatMeasure) float64 { return m.cpu })
			what := fmt.Sprintf("%s, %d payers at once", bot.name, at)
			figure := fmt.Sprintf("%.0f turns/s, %.0f µs of CPU each, p50 %.1f ms, p99 %.1f ms", rate[i], cpu[i],
				middle(func(m chatMeasure) float64 { return m.p50 }), middle(func(m chatMeasure) float64 { return m.p99 }))
			if i == 0 {
				t.Add(what, figure, "the limit")
				continue
			}
			share, dearer := rate[1]/rate[0], cpu[1]/cpu[0]
			t.Judge(what, figure, fmt.Sprintf("%.2f of the echo's rate, %.2f of its CPU", share, dearer), "≥ 0.75, CPU ≤ 1.35", share >= 0.75 && dearer <= 1.35)
		}
	}
	for _, bot := range bots {
		t.Promise(bot.name+": lost, doubled", fmt.Sprintf("%d, %d", bot.lost, bot.doubled), "0, 0", bot.lost+bot.doubled == 0)
	}
	return t
}
