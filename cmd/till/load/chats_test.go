//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/tilltest"
)

// chatter is a payer whose chat is open.
type chatter struct {
	phone *wanet.Phone
	mu    sync.Mutex // one message at a time
	seen  int64      // what was shown so far
}

// chats measures many open chats, with messages that come at a fixed rate: how
// soon the answer is on the payer's phone, and what Till and Redis hold for them.
// The phones and the network are in the process that asks.
func chats(b *testing.B, t *table) {
	b.Helper()
	w := newWorld(b, settings{limit: 1_000_000, chat: true})
	n, rate := size(5000, 200), float64(size(100, 50))
	before := w.till.rss()
	held := w.redisBytes()
	list := w.chatters(b, n, rate)
	open := w.till.rss()
	var answers atomic.Int64
	count := int(rate) * size(60, 6)
	cpu := w.till.cpu()
	o := pace(rate, count, n, func(i int) error {
		got, err := list[i%n].turn("menu")
		answers.Add(int64(got))
		return err
	})
	cpu = w.till.cpu() - cpu
	t.Judge(fmt.Sprintf("%d open chats, %.0f messages/s: answer on the phone", n, rate), fmt.Sprintf("p50 %s, p99 %s", ms(o.Took.at(0.5)), ms(o.Took.at(0.99))), "",
		"p99 ≤ 300 ms", o.Took.at(0.99) <= 300)
	t.Promise("of these messages unanswered, answered twice", fmt.Sprintf("%d, %d of %d%s", o.failed()+o.Missed, int(answers.Load())-len(o.Took), count, reasons(o.Faults)), "0, 0",
		o.failed()+o.Missed == 0 && int(answers.Load()) == len(o.Took))
	t.Add("CPU of one such message and its answer in Till", fmt.Sprintf("%.1f ms", cpu.Seconds()*1000/float64(count)), "")
	t.Judge("RSS before the chats, with them, after the messages", mib(before)+", "+mib(open)+", "+mib(w.till.rss()), "", "≤ 400 MiB", w.till.rss() <= 400)
	if w.redis != nil {
		each := float64(w.redisBytes()-held) / float64(n)
		t.Judge("Redis for one chat", fmt.Sprintf("%.1f KiB", each/1024), "", "≤ 4 KiB", each <= 4096)
	}
}

// chatters opens so many chats, so many a second.
func (w *world) chatters(tb testing.TB, n int, rate float64) []*chatter {
	tb.Helper()
	list := make([]*chatter, n)
	for i := range list {
		phone, err := w.network.NewPhone(fmt.Sprintf("2348031%06d", i), "Payer")
		must(tb, err)
		list[i] = &chatter{phone: phone}
	}
	progress("  %d phones made", n)
	var done atomic.Int64
	o := pace(rate, n, 200, func(i int) error {
		_, link, err := w.open(context.Background(), i, "chat")
		if err != nil {
			return err
		}
		_, code, found := strings.Cut(link, "?text=")
		text, err := url.QueryUnescape(code)
		if !found || err != nil {
			return errors.New("no link to a chat")
		}
		_, err = list[i].turn(text)
		if k := done.Add(1); k%1000 == 0 {
			progress("  %d chats are open", k)
		}
		return err
	})
	if o.failed()+o.Missed > 0 {
		tb.Fatalf("%d of %d chats could not be opened%s", o.failed()+o.Missed, n, reasons(o.Faults))
	}
	return list
}

// turn writes and waits for the answer. It returns how many answers there were.
func (c *chatter) turn(text string) (answers int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), tilltest.Patience)
	defer cancel()
	if _, err := c.phone.Send(ctx, botNumber, text); err != nil {
		return 0, err
	}
	for answers == 0 {
		items, next, err := c.phone.Messages(ctx, c.seen, tilltest.Patience)
		if err != nil {
			return 0, err
		}
		if len(items) == 0 {
			return 0, errors.New("no answer in time")
		}
		c.seen = next
		for _, m := range items {
			if !m.FromMe {
				answers++
			}
		}
	}
	return answers, nil
}

// redisBytes is what Redis holds.
func (w *world) redisBytes() int64 {
	if w.redis == nil {
		return 0
	}
	text, _ := w.redis.Client.Info(context.Background(), "memory").Result()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "used_memory_dataset:"); ok {
			var n int64
			_, _ = fmt.Sscan(strings.TrimSpace(value), &n)
			return n
		}
	}
	return 0
}
