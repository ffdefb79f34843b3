package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestEachChatIsAnsweredInOrderByOneSenderHoweverManyWrite(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		const chats, messages = 90, 5 // more chats than are worked on at once
		var mu sync.Mutex
		busy, most := map[string]bool{}, 0
		w.sending(func(o checkout.Outgoing) error {
			mu.Lock()
			if busy[o.Person] {
				t.Errorf("two messages to %s are under way at once", o.Person)
			}
			busy[o.Person] = true
			most = max(most, len(busy))
			mu.Unlock()
			defer func() { mu.Lock(); defer mu.Unlock(); delete(busy, o.Person) }()
			return nil
		})
		session := w.session(flow.InChat)
		var all sync.WaitGroup
		for c := range chats {
			all.Go(func() {
				for m := range messages {
					in := flow.Intent{Kind: flow.MeansMenu}
					if m == 0 {
						in = code(session)
					}
					if err := w.hears(fmt.Sprintf("p%d", c), fmt.Sprintf("M%d", m), in); err != nil {
						t.Errorf("hear: %v", err)
					}
				}
			})
		}
		all.Wait()
		w.rest()
		for c := range chats {
			want := slices.Repeat([]string{"summary"}, messages)
			if got := w.texts(fmt.Sprintf("p%d", c)); !slices.Equal(got, want) {
				t.Fatalf("chat %d read %q", c, got)
			}
		}
		if most > 64 {
			t.Errorf("%d messages were under way at once", most)
		}
	})
}

func TestWorkThatFailsThroughAFaultOfOursIsGivenUpVisiblyAndRevivedWhenAskedFor(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddTask(t.Context(), flow.Task{Kind: flow.TaskCheck, Subject: "wsp_sess_gone", Due: w.clock()}, "", time.Time{})
			return err
		}))
		w.rest()
		w.passes(40, 11*time.Minute)
		if n := w.logged("given_up=true"); n != 1 {
			t.Errorf("it was given up %d times", n)
		}
		told := w.logged("subject=wsp_sess_gone")
		if w.logged("given_up=true attempts=24 ") != 1 { // those before it
			t.Errorf("it was not tried 25 times: %s", w.logs)
		}
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddTask(t.Context(), flow.Task{Kind: flow.TaskCheck, Subject: "wsp_sess_gone", Due: w.clock()}, "", time.Time{})
			return err
		}))
		w.rest()
		if n := w.logged("subject=wsp_sess_gone"); n != told+1 {
			t.Errorf("asked for anew it was tried %d times", n-told)
		}
	})
}

func TestAMessageThatCannotBeSentHoldsTheChatBackForADayAndNoLonger(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		w.sending(func(checkout.Outgoing) error { return errors.New("no number is live") })
		w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
		w.rest()
		w.passes(23, time.Hour-time.Minute)
		w.must(w.says("ada", method(flow.BankTransfer)))
		w.rest()
		if n := w.logged("a message to a payer is given up"); n != 0 {
			t.Fatalf("%d messages were given up within a day", n)
		}
		w.later(2 * time.Hour)
		w.sending(nil)
		w.later(time.Minute)
		if n := w.logged("a message to a payer is given up"); n != 1 {
			t.Errorf("%d messages were given up", n)
		}
		if got := w.texts("ada"); len(got) < 2 || got[0] != "summary" || got[1] != "transfer_how" {
			t.Errorf("the payer read %q", got)
		}
	})
}

func TestAPanicInATaskIsAFailedTryAndTakesNothingElseWithIt(t *testing.T) {
	t.Parallel()
	w := one(t)
	var tries atomic.Int32
	w.sending(func(o checkout.Outgoing) error {
		if o.Person == "ada" && tries.Add(1) == 1 {
			panic("a bug")
		}
		return nil
	})
	w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
	w.hear("ben", flow.Intent{Kind: flow.MeansMenu})
	w.later(time.Minute)
	if a, b := w.texts("ada"), w.texts("ben"); len(a) != 1 || len(b) != 1 {
		t.Errorf("ada read %q and ben %q", a, b)
	}
	if w.logged("panic: a bug") == 0 {
		t.Error("nobody was told of the panic")
	}
}

// What the end of the program cuts short is nothing to look into, and there may be much
// of it: the next start goes on with it. A panic is, whenever it comes.
func TestWhatTheEndCutsShortIsNoWarning(t *testing.T) {
	t.Parallel()
	for how, warnings := range map[string]int{"it is cut short": 0, "it panics": 1} {
		w := one(t)
		begun := make(chan bool, 1)
		w.rail.starting(func(ctx context.Context, _ flow.Order, _ func() (flow.Instructions, error)) (flow.Instructions, error) {
			begun <- true
			<-ctx.Done()
			if warnings > 0 {
				panic("a bug")
			}
			return flow.Instructions{}, ctx.Err()
		})
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		w.must(w.says("ada", method(flow.BankTransfer)))
		<-begun
		w.end()
		if n := w.logged("level=WARN msg=task"); n != warnings {
			t.Errorf("%s: it warned of %d tasks: %s", how, n, w.logs)
		}
	}
}

func TestRunEndsOnlyWhenNothingIsAtWorkAndDoesNothingAfterwards(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		begun, release := make(chan bool), make(chan bool)
		w.sending(func(checkout.Outgoing) error { begun <- true; <-release; return nil })
		w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
		<-begun
		ended := make(chan bool)
		go func() { w.end(); close(ended) }()
		select {
		case <-ended:
			t.Fatal("Run ended while a message was being sent")
		case <-time.After(20 * time.Millisecond): // it must not end, however long this is
		}
		close(release)
		<-ended
		if got := w.texts("ada"); !slices.Equal(got, []string{"need_code"}) {
			t.Errorf("the message under way was %q", got)
		}
		w.sending(nil)
		w.open(true)
		w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu})) // nothing runs
		if got := w.texts("ada"); len(got) != 1 {
			t.Errorf("a service that does not run sent %q", got)
		}
		w.run()
		w.rest()
		if got := w.texts("ada"); len(got) != 2 {
			t.Errorf("the payer read %q", got)
		}
	})
}

func TestAMovedClockNeitherDoublesNorLosesWhatIsAtWork(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook", flow.SessionCreated)
		begun, release := make(chan bool, 10), make(chan bool)
		w.sending(func(checkout.Outgoing) error { begun <- true; <-release; return nil })
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			begun <- true
			<-release
			return flow.Verdict{OK: true}
		})
		w.session(flow.Headless)
		w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
		<-begun
		<-begun
		w.pass(time.Hour) // every lease is over now, by this clock
		w.until("the worker to look for what is due", func() bool {
			w.service.Wake()
			next, err := w.db.Next(t.Context())
			w.must(err)
			return next.Tasks().After(w.clock()) && next.Deliveries().After(w.clock()) && !w.service.Claiming() // else it would find what ends meanwhile not at work
		})
		close(release)
		w.rest()
		if len(w.texts("ada")) != 1 || len(w.deliveries(flow.SessionCreated)) != 1 || len(begun) != 0 {
			t.Errorf("sent %q, posted %d times", w.texts("ada"), len(w.deliveries(flow.SessionCreated)))
		}
	})
}

func TestMoreWorkThanThereIsRoomForIsDoneAfterAll(t *testing.T) {
	t.Parallel()
	w := one(t)
	const chats = 400
	release := make(chan bool)
	w.sending(func(checkout.Outgoing) error { <-release; return nil })
	var all sync.WaitGroup
	for c := range chats {
		all.Go(func() {
			if err := w.hears(fmt.Sprintf("p%d", c), "M", flow.Intent{Kind: flow.MeansMenu}); err != nil {
				t.Errorf("hear: %v", err)
			}
		})
	}
	all.Wait()
	close(release)
	w.rest()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) != chats {
		t.Errorf("%d of %d were answered", len(w.sent), chats)
	}
}

func TestAProgramThatIsStoppedWhileABankIsAskedTellsNobodyThatTheBankIsDown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.paying()
		begun := make(chan bool)
		w.rail.checking(func(ctx context.Context, _ string) ([]flow.Notice, error) {
			begun <- true
			<-ctx.Done()
			return nil, ctx.Err()
		})
		w.must(w.says("ada", flow.Intent{Kind: flow.MeansPaid}))
		<-begun
		w.end()
		w.rail.set(func(r *shakyRail) { r.onCheck = nil })
		w.open(false) // and nobody needs to wait for a lease
		w.pay(session.ID, 0, true)
		w.run()
		w.rest()
		got := strings.Join(w.texts("ada"), " ")
		if strings.Contains(got, "bank_down") || !strings.HasSuffix(got, "checking receipt") {
			t.Errorf("the payer read %q", got)
		}
	})
}

// Where several processes share a database, another one does at once what one that
// ends has no time to begin: the payer is in the middle of a talk.
func TestWhatAnEndingProgramDidNotBeginWaitsForNoLease(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		begun, release, ends := make(chan bool), make(chan bool), make(chan bool)
		w.rail.starting(func(ctx context.Context, _ flow.Order, _ func() (flow.Instructions, error)) (flow.Instructions, error) {
			begun <- true
			<-ctx.Done()
			close(ends)
			return flow.Instructions{}, ctx.Err()
		})
		w.must(w.says("ada", method(flow.BankTransfer)))
		<-begun
		w.sending(func(checkout.Outgoing) error {
			select {
			case begun <- true:
			case <-release:
			}
			<-release
			return nil
		})
		w.must(w.says("bola", flow.Intent{Kind: flow.MeansMenu}))
		<-begun
		w.must(w.says("bola", flow.Intent{Kind: flow.MeansMenu})) // behind what is at work
		ended := make(chan bool)
		go func() { w.end(); close(ended) }()
		<-ends
		w.must(w.says("chidi", flow.Intent{Kind: flow.MeansMenu})) // it is still heard
		close(release)
		<-ended
		w.sending(nil)
		w.rail.starting(nil)
		w.open(false) // nothing is freed
		w.run()
		w.rest()
		for person, want := range map[string]int{"bola": 2, "chidi": 1} {
			if got := w.texts(person); len(got) != want {
				t.Errorf("%s read %q", person, got)
			}
		}
	})
}

// slowPlaces holds up what follows a commit.
type slowPlaces struct {
	checkout.MemoryPlaces

	begun, release chan bool
}

func (p *slowPlaces) Put(ctx context.Context, c flow.Chat) {
	p.begun <- true
	<-p.release
	p.MemoryPlaces.Put(ctx, c)
}

func TestAServiceDoesNotRestBetweenACommitAndWhatFollowsIt(t *testing.T) {
	t.Parallel()
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		t.Parallel()
		w := newWorld(t, c)
		places := &slowPlaces{begun: make(chan bool), release: make(chan bool)}
		w.places = places
		w.start(true)
		w.rest()
		heard := make(chan error, 1)
		go func() { heard <- w.says("ada", flow.Intent{Kind: flow.MeansMenu}) }()
		<-places.begun // the answer is owed, and nobody has it
		if idle, err := w.service.Idle(t.Context()); err != nil || idle {
			t.Errorf("the service rests: %t, %v", idle, err)
		}
		places.release <- true
		w.must(<-heard)
		w.rest()
		if got := w.texts("ada"); len(got) != 1 {
			t.Errorf("the payer read %q", got)
		}
	})
}
