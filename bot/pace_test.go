package bot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"till/bot"
	"till/flow/checkout"
)

// desk is a network that takes everything at once, and what it was given when.
type desk struct {
	mu    sync.Mutex
	sent  []sentAt
	typed []string
	fail  func(o checkout.Outgoing) error
}

type sentAt struct {
	checkout.Outgoing

	at time.Time
}

func (d *desk) Send(_ context.Context, o checkout.Outgoing) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail(o); err != nil {
			return err
		}
	}
	d.sent = append(d.sent, sentAt{o, time.Now()})
	return nil
}

func (d *desk) ids() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, s := range d.sent {
		b.WriteString(s.ID + " ")
	}
	return strings.TrimSpace(b.String())
}

func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sent)
}

func (d *desk) pacer(since func(context.Context, string) (time.Time, error)) *bot.Pacer {
	return bot.NewPacer(bot.PacerConfig{
		Sender: d, Pace: bot.Pace{Sends: 20, NewChats: 6}, Since: since, Now: time.Now,
		Typing: func(_ context.Context, number, person string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.typed = append(d.typed, number+"/"+person)
		},
	})
}

// deliver sends a message as the shell does: whatever is put off is asked about
// again when it is due. Nobody may be kept for longer than a message is typed.
func deliver(t *testing.T, p *bot.Pacer, o checkout.Outgoing) {
	t.Helper()
	for {
		began := time.Now()
		err := p.Send(context.WithoutCancel(t.Context()), o)
		if held := time.Since(began); held > 2500*time.Millisecond {
			t.Errorf("%s was held for %v", o.ID, held)
		}
		var later *checkout.NotYetError
		switch {
		case errors.As(err, &later):
			time.Sleep(later.Wait)
		case err != nil:
			t.Errorf("%s: %v", o.ID, err)
			return
		default:
			return
		}
	}
}

func TestAMessageIsTypedAsLongAsItsIDAndItsLengthSay(t *testing.T) {
	took := func(t *testing.T, id, text string) (d time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var to desk
			began := time.Now()
			deliver(t, to.pacer(nil), checkout.Outgoing{Number: "1", Person: "ada", ID: id, Text: text})
			if d = time.Since(began); len(to.typed) != 1 || to.typed[0] != "1/ada" {
				t.Errorf("seen to type: %q", to.typed)
			}
		})
		return d
	}
	different := map[time.Duration]bool{}
	for i := range 40 {
		id := fmt.Sprintf("3EB0%d", i)
		last := time.Duration(0)
		for _, length := range []int{1, 60, 150, 290, 5000} {
			d := took(t, id, strings.Repeat("ọ", length))
			if d < 600*time.Millisecond || d > 2500*time.Millisecond || d < last {
				t.Errorf("%s with %d letters is typed for %v, a shorter one for %v", id, length, d, last)
			}
			last = d
			if length == 150 {
				different[d] = true
			}
		}
		if a, b := took(t, id, "again"), took(t, id, "again"); a != b {
			t.Errorf("%s is typed for %v and then for %v", id, a, b)
		}
	}
	if len(different) < 30 {
		t.Errorf("40 messages of one length are typed for %d different times", len(different))
	}
}

func TestTheBubblesOfAChatAreApartAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to desk
		p := to.pacer(nil)
		for i := range 5 { // the shell sends the next one when the one before is sent
			deliver(t, p, checkout.Outgoing{Number: "1", Person: "ada", ID: fmt.Sprint(i), Text: "x", Money: i > 1})
		}
		if to.ids() != "0 1 2 3 4" {
			t.Errorf("sent %s", to.ids())
		}
		for i, s := range to.sent[1:] {
			if gap := s.at.Sub(to.sent[i].at); gap < 800*time.Millisecond {
				t.Errorf("bubble %d follows after %v", i+1, gap)
			}
		}
	})
}

// load is what a property draws: who writes when.
type load struct {
	after        time.Duration
	person       int
	money, first bool
}

// Whatever comes when, no minute sees more than the pace of the number, all of
// it is sent, and nobody is kept for longer than a message is typed.
func TestNoMinuteSeesMoreThanTheNumberMaySend(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loads := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) load {
			return load{
				after: time.Duration(rapid.IntRange(0, 8000).Draw(t, "ms")) * time.Millisecond, person: rapid.IntRange(0, 40).Draw(t, "person"),
				money: rapid.IntRange(0, 9).Draw(t, "money") == 0, first: rapid.IntRange(0, 3).Draw(t, "first") == 0,
			}
		}), 1, 120).Draw(rt, "loads")
		synctest.Test(t, func(t *testing.T) {
			var to desk
			p := to.pacer(nil)
			var all sync.WaitGroup
			chats := map[int]chan struct{}{} // the shell sends to one chat one message at a time
			for i, l := range loads {
				time.Sleep(l.after)
				if chats[l.person] == nil {
					chats[l.person] = make(chan struct{}, 1)
				}
				turn := chats[l.person]
				all.Go(func() {
					turn <- struct{}{}
					defer func() { <-turn }()
					deliver(t, p, checkout.Outgoing{Number: "1", Person: fmt.Sprint(l.person), ID: fmt.Sprint(i), Text: "some text", Money: l.money, First: l.first})
				})
			}
			all.Wait()
			if len(to.sent) != len(loads) {
				rt.Errorf("%d of %d were sent", len(to.sent), len(loads))
			}
			most, fresh := busiest(to.sent, func(s sentAt) bool { return !s.Money }), busiest(to.sent, func(s sentAt) bool { return s.First && !s.Money })
			if all := busiest(to.sent, func(sentAt) bool { return true }); most > 20 || all > 25 || fresh > 6 {
				rt.Errorf("a minute saw %d messages, %d with money, %d new chats", most, all, fresh)
			}
		})
	})
}

// busiest is how many messages of a kind the busiest minute saw.
func busiest(sent []sentAt, of func(sentAt) bool) int {
	sent = slices.DeleteFunc(slices.Clone(sent), func(s sentAt) bool { return !of(s) })
	slices.SortFunc(sent, func(a, b sentAt) int { return a.at.Compare(b.at) })
	most := 0
	for i, s := range sent {
		n := 0
		for _, other := range sent[i:] {
			if other.at.Sub(s.at) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestNewsOfMoneyGoesBeforeEverybodyElsesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to desk
		p := to.pacer(nil)
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				deliver(t, p, checkout.Outgoing{Number: "1", Person: fmt.Sprint("p", i), ID: fmt.Sprint(i), Text: "x"})
			})
		}
		time.Sleep(10 * time.Second)
		before := to.count()
		began := time.Now()
		deliver(t, p, checkout.Outgoing{Number: "1", Person: "payer", ID: "receipt", Text: "x", Money: true})
		if took := time.Since(began); took != 0 || before >= 60 {
			t.Errorf("the receipt took %v, with %d of 60 sent before it", took, before)
		}
		// One that was put off and then stands before a receipt hurries too.
		var slow checkout.Outgoing
		for _, s := range []string{"late", "later"} {
			slow = checkout.Outgoing{Number: "1", Person: s, ID: s, Text: "x"}
			var later *checkout.NotYetError
			if err := p.Send(t.Context(), slow); !errors.As(err, &later) || later.Wait < 30*time.Second {
				t.Errorf("behind 50 others: %v", err)
			}
		}
		began = time.Now()
		slow.Money = true
		deliver(t, p, slow)
		if took := time.Since(began); took != 0 {
			t.Errorf("what stands before a receipt took %v", took)
		}
		// Another number of ours has nothing to do with it.
		began = time.Now()
		deliver(t, p, checkout.Outgoing{Number: "2", Person: "p", ID: "other", Text: "x"})
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("another number took %v", took)
		}
		all.Wait()
		if took := to.sent[len(to.sent)-1].at.Sub(to.sent[0].at); took < 2*time.Minute || took > 4*time.Minute {
			t.Errorf("63 messages at 20 a minute took %v", took)
		}
	})
}

func TestTheFirstMessagesOfManyChatsWaitAndHoldNobodyElseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to desk
		p := to.pacer(nil)
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				deliver(t, p, checkout.Outgoing{Number: "1", Person: fmt.Sprint("new", i), ID: fmt.Sprint("new", i), Text: "x", First: true})
			})
		}
		time.Sleep(15 * time.Second)
		began := time.Now()
		deliver(t, p, checkout.Outgoing{Number: "1", Person: "known", ID: "known", Text: "x"})
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("behind new chats a known one waited %v", took)
		}
		all.Wait()
		if most := busiest(to.sent, func(s sentAt) bool { return s.First }); most != 6 {
			t.Errorf("the busiest minute saw %d new chats", most)
		}
		if took := time.Since(began); took < 4*time.Minute || took > 7*time.Minute {
			t.Errorf("30 new chats at 6 a minute took %v", took)
		}
	})
}

func TestANewNumberWarmsUp(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		age         time.Duration
		sends, news int
	}{{0, 5, 1}, {day - 20*time.Minute, 5, 1}, {day, 10, 3}, {3 * day, 15, 4}, {7 * day, 20, 6}, {1000 * day, 20, 6}} {
		for first, want := range map[bool]int{false: c.sends, true: c.news} {
			synctest.Test(t, func(t *testing.T) {
				var to desk
				since := time.Now().Add(-c.age)
				p := to.pacer(func(_ context.Context, number string) (time.Time, error) {
					if number != "1" {
						t.Errorf("asked about the number %q", number)
					}
					return since, nil
				})
				for i := range 40 {
					deliver(t, p, checkout.Outgoing{Number: "1", Person: fmt.Sprint(i), ID: fmt.Sprint(i), Text: "x", First: first})
					if time.Since(since) > c.age+15*time.Minute {
						break
					}
				}
				if most := busiest(to.sent, func(sentAt) bool { return true }); most > want || most < want-1 {
					t.Errorf("%v old, new chats %t: the busiest minute saw %d messages, not %d", c.age, first, most, want)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := (&desk{}).pacer(func(context.Context, string) (time.Time, error) { return time.Time{}, errors.New("the disk is gone") })
		if err := p.Send(t.Context(), checkout.Outgoing{Number: "1", Person: "a", ID: "1", Text: "x"}); err == nil {
			t.Error("a number of no age sends")
		}
	})
}

func TestWhatWasNotSentIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := desk{fail: func(checkout.Outgoing) error { return errors.New("not connected") }}
		p := to.pacer(nil)
		o := checkout.Outgoing{Number: "1", Person: "a", ID: "1", Text: "x", First: true}
		for range 100 {
			var later *checkout.NotYetError
			if err := p.Send(t.Context(), o); err == nil || errors.As(err, &later) {
				t.Fatalf("the pacer said %v", err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := p.Send(gone, o); !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("nobody waits any more: %v after %v", err, time.Since(began))
		}
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var later *checkout.NotYetError
		if err := p.Send(short, o); !errors.As(err, &later) {
			t.Errorf("with no time left: %v", err)
		}
		to.fail = nil
		began = time.Now()
		deliver(t, p, o)
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("connected again it took %v", took)
		}
	})
}

func TestMoreThanWaitsInLineIsSentAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to desk
		p := to.pacer(nil)
		const many = 1300 // a line holds 1000
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				deliver(t, p, checkout.Outgoing{Number: "1", Person: fmt.Sprint(i), ID: fmt.Sprint(i), Text: "x"})
			})
		}
		// One whose chat is gone never asks again, and holds nobody up for long.
		synctest.Wait()
		var later *checkout.NotYetError
		if err := p.Send(t.Context(), checkout.Outgoing{Number: "1", Person: "gone", ID: "gone", Text: "x"}); !errors.As(err, &later) {
			t.Errorf("it was %v", err)
		}
		all.Wait()
		if len(to.sent) != many {
			t.Errorf("%d were sent", len(to.sent))
		}
		if most := busiest(to.sent, func(sentAt) bool { return true }); most > 20 {
			t.Errorf("the busiest minute saw %d", most)
		}
	})
}

func TestFewTypeAtOnceWhateverTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to desk
		p := to.pacer(nil)
		var all sync.WaitGroup
		for i := range 50 { // fifty numbers of ours
			all.Go(func() {
				deliver(t, p, checkout.Outgoing{Number: fmt.Sprint(i), Person: "a", ID: fmt.Sprint(i), Text: "x"})
			})
		}
		synctest.Wait()
		if len(to.typed) != 32 {
			t.Errorf("%d type at once", len(to.typed))
		}
		began := time.Now()
		deliver(t, p, checkout.Outgoing{Number: "0", Person: "b", ID: "receipt", Text: "x", Money: true})
		if took := time.Since(began); took != 0 {
			t.Errorf("meanwhile a receipt took %v", took)
		}
		all.Wait()
	})
}
