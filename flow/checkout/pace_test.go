package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// However many questions are due at once, and while others become due besides, the
// bank is asked each of them, five hundred a second.
func TestEveryQuestionHasItsTurnHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	const backlog, seconds, newOnes = 100_000, 60, 300
	var p checkout.Pacer
	start := time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC)
	due := map[time.Duration]int{0: backlog}
	for s := range seconds * 10 {
		due[time.Duration(s)*100*time.Millisecond] += newOnes / 10
	}
	asked, all := 0, backlog+seconds*newOnes
	var now time.Duration
	for ; asked < all && now < time.Hour; now += 100 * time.Millisecond {
		before := asked
		for range due[now] {
			if wait := p.Turn(1, start.Add(now)); wait > 0 {
				due[now+wait]++
				continue
			}
			asked++
			p.Over()
		}
		delete(due, now)
		if asked-before > 250 {
			t.Fatalf("%d were asked at once", asked-before)
		}
	}
	if want := time.Duration(all/500)*time.Second + time.Second; asked != all || now > want {
		t.Errorf("%d of %d were asked within %s; %s are enough", asked, all, now, want)
	}
}

// A clock that goes back makes nobody wait for the time that it comes again.
func TestATurnDoesNotWaitForAClockThatWentBack(t *testing.T) {
	t.Parallel()
	var p checkout.Pacer
	now := time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC)
	for range 1000 {
		if p.Turn(1, now) == 0 {
			p.Over()
		}
	}
	if wait := p.Turn(1, now.Add(-24*time.Hour)); wait > 3*time.Second {
		t.Errorf("it waits %s", wait)
	}
}

// owing are so many sessions with live instructions that the bank is to be asked
// about now.
func (w *world) owing(count int) {
	w.t.Helper()
	for range count {
		w.must(w.instruct(w.t.Context(), w.session(flow.Headless).ID))
	}
	w.change("UPDATE tasks SET due = 1 WHERE kind = 'rail.check'")
}

// After a downtime many questions are due at once: they are spread, and none is
// forgotten.
func TestQuestionsThatAreDueAtOnceAreSpread(t *testing.T) {
	t.Parallel()
	w := one(t)
	const due = 300
	var mu sync.Mutex
	asked, now, most := map[string]int{}, 0, 0
	w.rail.checking(func(_ context.Context, reference string) ([]flow.Notice, error) {
		mu.Lock()
		asked[reference]++
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); defer mu.Unlock(); now-- }()
		return nil, nil
	})
	w.owing(due)
	w.service.Wake()
	w.rest()
	if n := len(asked); n > 250 || n == 0 {
		t.Errorf("%d of %d were asked at once", n, due)
	}
	w.passes(30, 100*time.Millisecond)
	if len(asked) != due || most > 32 {
		t.Errorf("%d of %d were asked within three seconds, %d together", len(asked), due, most)
	}
	for reference, times := range asked {
		if times != 1 {
			t.Errorf("%s was asked about %d times", reference, times)
		}
	}
}

// What asks the bank nothing, because it is over or nobody could pay it, waits for
// nothing and keeps no question waiting.
func TestWhatAsksNothingTakesNoTurn(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, paid := w.paying()
	w.paid(session)
	w.rest()
	const nothing = 300
	owe := func(kind flow.TaskKind, subject string) {
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddTask(t.Context(), flow.Task{Kind: kind, Subject: subject, Due: w.clock()}, "", time.Time{})
			return err
		}))
	}
	var subjects []string
	for range nothing {
		subjects = append(subjects, string(w.session(flow.Headless).ID))
		owe(flow.TaskCheck, subjects[len(subjects)-1])
	}
	owe(flow.TaskExpireAttempt, string(paid.ID))
	owe(flow.TaskExpireSession, string(session.ID))
	owe(flow.TaskCheck, string(session.ID))
	before := w.calls()["check"]
	w.service.Wake()
	w.rest()
	if n := w.calls()["check"] - before; n != 1 {
		t.Errorf("the bank was asked %d times, about what it may know of once", n)
	}
	if waiting, err := w.db.TasksOf(t.Context(), subjects); err != nil || len(waiting) > 0 {
		t.Errorf("%+v wait for a turn (%v)", waiting, err)
	}
}

// A bank that hangs leaves places for those who write meanwhile.
func TestABankThatHangsLeavesPlacesForPayers(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.Headless)
	w.must(w.instruct(t.Context(), session.ID))
	ending := w.attempts(session.ID)[0]
	w.later(ending.ExpiresAt.Sub(w.clock()) - time.Second)
	var hanging atomic.Int32
	release := make(chan bool)
	w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
		hanging.Add(1)
		<-release
		return nil, nil
	})
	w.owing(100)
	w.service.Wake()
	w.until("the bank to hang", func() bool { return hanging.Load() >= 32 })
	w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
	w.until("the payer to be answered", func() bool { return slices.Equal(w.texts("ada"), []string{"need_code"}) })
	// What ends waits for its place too: nothing ends before the bank was asked.
	w.pass(time.Second)
	w.until("an end to be put off", func() bool {
		tasks, err := w.db.TasksOf(t.Context(), []string{string(ending.ID)})
		w.must(err)
		return len(tasks) != 1 || tasks[0].Due.After(w.clock()) && tasks[0].Due.Before(w.clock().Add(30*time.Second)) // no lease ends so soon
	})
	if a := w.attempts(session.ID)[0]; a.Status != flow.AttemptActive {
		t.Errorf("it is %s before the bank was asked", a.Status)
	}
	if n := hanging.Load(); n != 32 {
		t.Errorf("%d were asked about at once", n)
	}
	close(release)
	w.passes(3, 3*time.Second)
	if a := w.attempts(session.ID)[0]; a.Status != flow.AttemptExpired {
		t.Errorf("it is %s once the bank was asked", a.Status)
	}
}

// So does one that hangs while it is told of the payouts of many merchants, and of what
// goes back to payers, and it is asked about who pays; once it answers each is sent, and once.
func TestABankThatHangsOverWhatLeavesLeavesPlacesForPayers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t, store.Checkout))
	w.pays("")
	w.start(true)
	w.spoilt = true // its lines are of no payment
	w.rest()        // the payday is planned
	refunded := []flow.Payment{w.earns(), w.earns()}
	const many = 103
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
		for n := range many {
			e := line(flow.EntryPayment, n, 482_500, w.clock())
			e.Project = flow.ProjectID(fmt.Sprintf("wsp_prj_%06d", n))
			if err := tx.Post(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	}))
	var hanging, told atomic.Int32
	release := make(chan bool)
	answers := sync.OnceFunc(func() { close(release) })
	defer answers()
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			hanging.Add(1)
			<-release
			told.Add(1)
			return call()
		}
	})
	for _, p := range refunded {
		w.ordered(p, 100_000)
	}
	w.pass(time.Date(2026, 11, 23, 8, 0, 1, 0, time.UTC).Sub(w.clock()))
	w.until("the bank to hang", func() bool { return hanging.Load() >= 16 })
	w.must(w.says("chidi", flow.Intent{Kind: flow.MeansMenu}))
	w.until("the payer to be answered", func() bool { return slices.Equal(w.texts("chidi"), []string{"need_code"}) })
	w.owing(1)
	before := w.calls()["check"]
	w.service.Wake()
	w.until("the bank to be asked about a session", func() bool { return w.calls()["check"] > before })
	if n := hanging.Load(); n != 16 {
		t.Errorf("%d were at the bank at once", n)
	}
	answers()
	w.passes(8, 3*time.Second)
	if n := told.Load(); n != many+1+int32(len(refunded)) {
		t.Errorf("the bank was told %d times", n)
	}
	for n := range many {
		of := flow.ProjectID(fmt.Sprintf("wsp_prj_%06d", n))
		if list := w.settlements(of); len(list) != 1 || !list[0].Final() || list[0].Tries != 1 {
			t.Fatalf("of %s: %+v", of, list)
		}
	}
}
