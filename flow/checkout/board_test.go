package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// fleet keeps live numbers that a process runs, by slot.
func fleet(t *testing.T, db *store.DB, now func() time.Time, numbers ...string) []*checkout.Lease {
	t.Helper()
	l := checkout.NewLeases(db, nil, "t:", "fleet", now, slog.New(slog.DiscardHandler))
	b := checkout.NewBoard(db, now, now, slog.New(slog.DiscardHandler))
	var held []*checkout.Lease
	for i, digits := range numbers {
		h, err := l.Take(t.Context(), i+1, "")
		must(t, err)
		n := flow.Number{Slot: i + 1, Token: h.Token, Digits: digits, State: flow.NumberLive, Since: now(), PhoneSeen: now()}
		must(t, b.Report(t.Context(), n))
		held = append(held, h)
	}
	return held
}

// moves switches something, as an operator's own process does.
func moves(t *testing.T, db *store.DB, m flow.SwitchMove) {
	t.Helper()
	b := checkout.NewBoard(db, time.Now, time.Now, slog.New(slog.DiscardHandler))
	if _, err := b.Move(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// What one process switches, another one sees soon, and knows who did it.
func TestASwitchIsSeenByEveryProcess(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		b := checkout.NewBoard(db, time.Now, time.Now, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		for _, m := range []struct {
			move flow.SwitchMove
			seen func() bool
		}{
			{flow.SwitchMove{Kind: flow.SwitchMethod, Name: "ussd", To: flow.MethodOff}, func() bool { return len(b.Served(flow.Methods(), "p")) == 2 }},
			{flow.SwitchMove{Kind: flow.SwitchMerchant, Name: "p", To: flow.MerchantStopped}, func() bool { return b.Stopped("p") && !b.Stopped("q") }},
			{flow.SwitchMove{Kind: flow.SwitchNumber, Name: "234", To: string(flow.NumberKill)}, func() bool { return b.Killed("234") && !b.Killed("235") }},
			{flow.SwitchMove{Kind: flow.SwitchNumber, Name: "234", To: string(flow.NumberDrains)}, func() bool { return !b.Killed("234") }},
			{flow.SwitchMove{Kind: flow.SwitchMethod, Name: "ussd"}, func() bool { return len(b.Served(flow.Methods(), "q")) == 3 }},
		} {
			began := time.Now()
			m.move.By, m.move.Reason = "eze@desk", "why"
			moves(t, db, m.move)
			await.Until(t, "the other process sees it", m.seen)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s until %+v was seen", took, m.move)
			}
		}
		if got := b.Served(flow.Methods(), "p"); len(got) != 0 {
			t.Errorf("a stopped project is served %v", got)
		}
		acts, err := b.Moves(t.Context(), 4)
		if err != nil || len(acts) != 4 {
			t.Fatalf("the acts are %v, %v", acts, err)
		}
		if a := acts[2]; a.From != "kill" || a.To != "drain" || a.By != "eze@desk" || a.Reason != "why" || a.At.IsZero() {
			t.Errorf("an act is %+v", a)
		}
		if _, err := b.Move(t.Context(), flow.SwitchMove{Kind: "number", Name: "234", To: "sideways"}); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("a switch that there is not: %v", err)
		}
	})
}

// New chats are spread over the numbers that take any, within what each takes a
// day; nothing is given out with a number that is drained.
func TestLinksCarryNumbersThatTakeNewChats(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		fleet(t, w.db, w.clock, "2348000000001", "2348000000002", "2348000000003")
		w.must(w.board.Refresh(t.Context()))
		count := func(n int) map[string]int {
			w.must(w.board.Refresh(t.Context()))
			got := map[string]int{}
			for range n {
				got[w.board.Pick()]++
			}
			return got
		}
		if got := count(9); got["2348000000001"] != 3 || got["2348000000002"] != 3 || got["2348000000003"] != 3 {
			t.Errorf("the links are %v", got)
		}
		w.must(w.board.Bound(t.Context(), 2, 3, 0))
		moves(t, w.db, flow.SwitchMove{Kind: flow.SwitchNumber, Name: "2348000000003", To: string(flow.NumberDrains)})
		if got := count(1000); got["2348000000003"] != 0 || got["2348000000002"] < 2*got["2348000000001"] {
			t.Errorf("with weights the links are %v", got)
		}
		w.must(w.board.Bound(t.Context(), 2, 3, 1))
		if got := count(1); got["2348000000002"] != 1 {
			t.Errorf("a number with room for one chat: %v", got)
		}
		w.must(w.service.Hear(t.Context(), checkout.Inbound{Number: "2348000000002", Person: "ada", Phone: "2348031000010", Message: "M1"}))
		if got := count(4); got["2348000000001"] != 4 {
			t.Errorf("with a number that is full for today the links are %v", got)
		}
		w.pass(24 * time.Hour) // no lease lasts that long: nobody runs anything
		if got := count(1); got[""] != 1 {
			t.Errorf("with nobody to run them: %v", got)
		}
	})
}

// A session keeps its number; its link shows another while that one leads
// nowhere.
func TestALinkFollowsANumberThatIsGone(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		held := fleet(t, w.db, w.clock, ourNumber, "2348000000002")
		w.must(w.board.Refresh(t.Context()))
		session := w.session(flow.InChat)
		link := func() string {
			w.must(w.board.Refresh(t.Context()))
			return strings.TrimPrefix(w.service.Record(checkout.View{Session: w.read(session.ID)}).CheckoutURL, "https://wa.me/")
		}
		if got := link(); got != ourNumber+"/"+session.EntryCode {
			t.Errorf("the link is %q", got)
		}
		report := func(s flow.NumberState) {
			w.must(w.board.Report(t.Context(), flow.Number{Slot: 1, Token: held[0].Token, State: s}))
		}
		for _, s := range []flow.NumberState{flow.NumberBanned, flow.NumberLoggedOut} {
			report(s)
			if got := link(); got != "2348000000002/"+session.EntryCode {
				t.Errorf("%s: the link is %q", s, got)
			}
		}
		for _, s := range []flow.NumberState{flow.NumberConnecting, flow.NumberDeaf, flow.NumberLive} {
			report(s)
			if got := link(); got != ourNumber+"/"+session.EntryCode {
				t.Errorf("%s: the link is %q", s, got)
			}
		}
		if got := w.read(session.ID).Number; got != ourNumber {
			t.Errorf("the session's number is %q", got)
		}
		for _, c := range []struct {
			name, first, second string
			state               flow.NumberState // of the first
			want                string
		}{
			{"one phone is linked twice, and once no more", ourNumber, ourNumber, flow.NumberLoggedOut, ourNumber},
			{"another phone is linked where it was", "2348000000003", "2348000000002", flow.NumberLive, "2348000000003"},
		} {
			w.must(w.board.Report(t.Context(), flow.Number{Slot: 2, Token: held[1].Token, Digits: c.second, State: flow.NumberLive}))
			w.must(w.board.Report(t.Context(), flow.Number{Slot: 1, Token: held[0].Token, Digits: c.first, State: c.state}))
			if got := link(); got != c.want+"/"+session.EntryCode {
				t.Errorf("%s: the link is %q", c.name, got)
			}
		}
		stale := flow.Number{Slot: 1, Token: held[0].Token - 1, State: flow.NumberBanned}
		if err := w.board.Report(t.Context(), stale); !errors.Is(err, checkout.ErrLeaseLost) {
			t.Errorf("one that lost the number spoke for it: %v", err)
		}
	})
}

// A killed number answers nobody; what was written to it is kept, once.
func TestAKilledNumberAnswersNobody(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		kill := flow.SwitchMove{Kind: flow.SwitchNumber, Name: ourNumber, To: string(flow.NumberKill)}
		moves(t, w.db, kill)
		w.must(w.board.Refresh(t.Context()))
		w.must(w.hears("ada", "M1", code(session)))
		w.must(w.hears("ada", "M1", code(session)))
		w.rest()
		if got := w.texts("ada"); len(got) != 0 {
			t.Errorf("it answered %q", got)
		}
		chat, found, err := w.db.ChatOf(t.Context(), ourNumber, "ada")
		if err != nil || !found {
			t.Fatalf("the chat is not kept: %v", err)
		}
		line, err := w.db.Line(t.Context(), string(chat.ID), 1)
		if err != nil || line.Message != "M1" {
			t.Errorf("kept is %+v, %v", line, err)
		}
		if why, err := w.db.Line(t.Context(), string(chat.ID), 2); err != nil || !strings.Contains(string(why.Data), "switched this number off") {
			t.Errorf("why it is not answered is kept as %+v, %v", why, err)
		}
		if _, err := w.db.Line(t.Context(), string(chat.ID), 3); err == nil {
			t.Error("there is more than what was written")
		}
		story, err := checkout.Timeline(t.Context(), w.db.Reader, session.ID)
		if told := fmt.Sprint(story); err != nil || strings.Count(told, "understood as code") != 1 || !strings.Contains(told, "switched this number off") {
			t.Errorf("the session's story is %s, %v", told, err)
		}
		kill.To = ""
		moves(t, w.db, kill)
		w.must(w.board.Refresh(t.Context()))
		w.must(w.hears("ada", "M2", code(session)))
		w.rest()
		if got := w.texts("ada"); len(got) == 0 {
			t.Error("it answers nobody after it was let go on")
		}
	})
}

// A method that is off is offered nowhere, and what is asked for all the same is
// refused; instructions that are out go on, and so does their money.
func TestAMethodThatIsOff(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		open := w.session(flow.Headless)
		_, paying, err := w.service.Instruct(t.Context(), project, open.ID, checkout.Ask{Method: flow.BankTransfer})
		w.must(err)
		moves(t, w.db, flow.SwitchMove{Kind: flow.SwitchMethod, Name: "bank_transfer", To: flow.MethodOff})
		w.must(w.board.Refresh(t.Context()))
		later := w.session(flow.Headless)
		v, err := w.service.View(t.Context(), project, later.ID)
		w.must(err)
		i := slices.IndexFunc(v.Offers, func(o flow.Offer) bool { return o.Method == flow.BankTransfer })
		if o := v.Offers[i]; o.Status != flow.OfferUnavailable || o.Reason != "rail_down" {
			t.Errorf("it is offered as %+v", o)
		}
		if _, _, err := w.service.Instruct(t.Context(), project, later.ID, checkout.Ask{Method: flow.BankTransfer}); flow.CodeOf(err) != flow.CodeRailUnavailable {
			t.Errorf("asked for all the same: %v", err)
		}
		_, again, err := w.service.Instruct(t.Context(), project, open.ID, checkout.Ask{Method: flow.BankTransfer})
		if err != nil || again.ID != paying.ID {
			t.Errorf("instructions that are out: %+v, %v", again, err)
		}
		w.paid(open)
	})
}

// A stopped merchant gets no new sessions, charges or instructions. Money that
// comes is kept.
func TestAStoppedMerchant(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		open, chat := w.session(flow.Headless), w.session(flow.InChat)
		_, _, err := w.service.Instruct(t.Context(), project, open.ID, checkout.Ask{Method: flow.BankTransfer})
		w.must(err)
		part := w.session(flow.InChat)
		w.hear("bola", code(part))
		w.hear("bola", method(flow.BankTransfer))
		w.must(w.tell(credit("T1", w.attempts(part.ID)[0].Reference, 200_000, w.clock())))
		w.rest()
		moves(t, w.db, flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), To: flow.MerchantStopped})
		w.must(w.board.Refresh(t.Context()))
		for name, try := range map[string]func() error{
			"session": func() error {
				_, err := w.service.Open(t.Context(), newSession(flow.Headless), call("", "", nil))
				return err
			},
			"charge": func() error {
				_, err := w.service.OpenCharge(t.Context(), newSession(flow.InChat), "", call("", "", nil))
				return err
			},
			"instructions": func() error {
				_, _, err := w.service.Instruct(t.Context(), project, open.ID, checkout.Ask{Method: flow.USSD})
				return err
			},
			"refund": func() error {
				_, err := w.refund(w.payments(part.ID)[0], 0)
				return err
			},
			"resolution": func() error {
				_, err := w.service.Resolve(t.Context(), w.payments(part.ID)[0].ID, checkout.NewResolution{}, call("", "", nil))
				return err
			},
		} {
			if err := try(); flow.CodeOf(err) != flow.CodeProjectSuspended {
				t.Errorf("a new %s: %v", name, err)
			}
		}
		w.hear("ada", code(chat))
		w.hear("ada", method(flow.BankTransfer))
		if got := w.attempts(chat.ID); len(got) != 0 {
			t.Errorf("a payer was given %+v", got)
		}
		w.hear("bola", method(flow.BankTransfer)) // what is out takes money, and is offered for the rest
		if got := w.texts("bola"); got[len(got)-1] != "wait_menu" || slices.Contains(got, "method_down") {
			t.Errorf("who chose the account that is offered is told %q", got)
		}
		w.paid(open)
	})
}

// Instructions that are out take money while a merchant is stopped, and are given
// again to whoever asks for them: its payer chose the only number of the menu, and
// was told to choose it once more.
func TestInstructionsThatAreOutWhileAMerchantIsStopped(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		open, chat := w.session(flow.Headless), w.session(flow.InChat)
		_, paying, err := w.service.Instruct(t.Context(), project, open.ID, checkout.Ask{Method: flow.BankTransfer})
		w.must(err)
		w.hear("ada", code(chat))
		w.hear("ada", method(flow.BankTransfer))
		moves(t, w.db, flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), To: flow.MerchantStopped})
		w.must(w.board.Refresh(t.Context()))
		if _, again, err := w.service.Instruct(t.Context(), project, open.ID, checkout.Ask{Method: flow.BankTransfer}); err != nil || again.ID != paying.ID {
			t.Errorf("over REST: %+v, %v", again, err)
		}
		w.comes(chat.ID, 200_000)
		w.hear("ada", method(flow.BankTransfer))
		account := w.attempts(chat.ID)[0].Instructions.AccountNumber
		if got := w.texts("ada"); !slices.Equal(got[len(got)-4:], []string{"part_paid", "transfer_how", account, "wait_menu"}) {
			t.Errorf("in the chat: %q", got)
		}
	})
}

// Who is suspended in live gets as little as who is stopped, is not paid out, and
// cannot say another account. In test nothing is in its way.
func TestASuspendedMerchant(t *testing.T) {
	t.Parallel()
	w := one(t)
	people, err := store.Open(t.Context(), storetest.SQLite(t, store.Accounts))
	w.must(err)
	t.Cleanup(func() { _ = people.Close() })
	a, _ := desk(t, people)
	var up checkout.Made
	_, err = a.SignUp(t.Context(), "owner@example.com", "correct horse battery", "Ada Stores", "", call("", "", &up))
	w.must(err)
	id := up.SignedUp.Project.ID
	n := newSession(flow.InChat)
	var chat checkout.Made
	of := call("", "", &chat)
	of.Project = id
	_, err = w.service.Open(t.Context(), n, of)
	w.must(err)
	w.board.Heed(a.Suspended)
	refused := func(err error) flow.Code {
		if err == nil {
			return ""
		}
		return flow.CodeOf(err)
	}
	payee := flow.BankAccount{BankCode: "058", Number: "0123456789", Name: "ADA STORES"}
	_, err = a.SetSettlementAccount(t.Context(), id, flow.Live, payee)
	w.must(err)
	_, err = a.SubmitKYC(t.Context(), id, flow.KYCDetails{}, call("", "", nil))
	w.must(err)
	for _, c := range []struct {
		ruling  flow.Ruling
		code    flow.Code
		blocked string
		opened  int
	}{
		{flow.Suspend, flow.CodeProjectSuspended, flow.BlockedStopped, 0},
		{flow.Approve, "", flow.BlockedNoAccount, 1}, // of the service in this test, which knows of no account
	} {
		_, err = a.RuleKYC(t.Context(), id, c.ruling, "a reason")
		w.must(err)
		w.must(w.board.Refresh(t.Context()))
		if _, err := w.service.Open(t.Context(), n, of); refused(err) != c.code {
			t.Errorf("%s: a new session: %v", c.ruling, err)
		}
		w.hear("ada", code(chat.Session))
		w.hear("ada", method(flow.BankTransfer))
		if got := w.attempts(chat.Session.ID); len(got) != c.opened {
			t.Errorf("%s: a payer was given %+v", c.ruling, got)
		}
		if blocked, err := w.service.Blocked(t.Context(), id); err != nil || blocked != c.blocked {
			t.Errorf("%s: payouts are blocked by %q (%v)", c.ruling, blocked, err)
		}
		for env, want := range map[flow.Environment]flow.Code{flow.Live: c.code, flow.Test: ""} {
			if _, err := a.SetSettlementAccount(t.Context(), id, env, payee); refused(err) != want {
				t.Errorf("%s: another account in %s: %v", c.ruling, env, err)
			}
		}
	}
}
