package railtest

import (
	"slices"
	"time"

	"till/flow"
	"till/rail"
)

// onTheWay: a transfer that is on its way is known to whoever asks, and is no
// money; when it is there it is, and only then there is a notice.
func onTheWay(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.BankTransfer, "way")
	ins := start(t, w.Rail, o)
	sent := rail.Transfer{AccountNumber: ins.AccountNumber, Amount: 200_000, PendingMs: 5 * 60 * 1000}
	if _, err := w.Provider.Transfer(t.Context(), sent); err != nil {
		t.Fatalf("Transfer = %v", err)
	}
	for range 2 {
		got := check(t, w, o.Reference)
		if len(got) != 1 || got[0].Kind != flow.Pending || got[0].Amount != 200_000 || got[0].Reference != o.Reference || got[0].Channel != o.Method {
			t.Fatalf("Check = %+v; want a transfer on its way", got)
		}
	}
	select {
	case m := <-w.Notices:
		t.Fatalf("a notice came of what is on its way: %s", m.Body)
	default:
	}
	w.Pass(5 * time.Minute)
	got := check(t, w, o.Reference)
	if len(got) != 1 || got[0].Kind != flow.Credit || got[0].Amount != 200_000 || got[0].RailTransactionID == "" {
		t.Fatalf("Check = %+v; want the transfer that arrived, once", got)
	}
	if told := parse(on, next(t, w)); len(told) != 1 || told[0].Kind != flow.Credit || told[0].RailTransactionID != got[0].RailTransactionID {
		t.Errorf("told %+v; want %+v", told, got)
	}
}

// sentBack: what a provider sends back by itself is never a credit.
func sentBack(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.BankTransfer, "back")
	ins := start(t, w.Rail, o)
	sent := rail.Transfer{AccountNumber: ins.AccountNumber, Amount: 300_000, Returned: true}
	if _, err := w.Provider.Transfer(t.Context(), sent); err != nil {
		t.Fatalf("Transfer = %v", err)
	}
	told := parse(on, next(t, w))
	if len(told) != 1 || told[0].Kind != flow.Returned || told[0].Amount != 300_000 || told[0].RailTransactionID == "" || told[0].Reference != o.Reference {
		t.Fatalf("told %+v; want a transfer that was sent back", told)
	}
	for range 2 {
		if got := check(t, w, o.Reference); len(got) != 1 || got[0].Kind != flow.Returned || got[0].RailTransactionID != told[0].RailTransactionID {
			t.Errorf("Check = %+v; want %+v", got, told)
		}
	}
}

// untold books transfers to an account of which the bank says nothing by itself,
// and says what it calls each.
func untold(on trial, to flow.Instructions) func(rail.Transfer) string {
	return func(x rail.Transfer) string {
		on.t.Helper()
		x.AccountNumber, x.Drop = to.AccountNumber, true
		done, err := on.world.Provider.Transfer(on.t.Context(), x)
		if err != nil {
			on.t.Fatalf("Transfer = %v", err)
		}
		return done.RailTransactionID
	}
}

// takenBack: a reversal has a name of its own and names its credit, which stays
// in every answer. What was taken back, sent back or not there yet cannot be.
func takenBack(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.BankTransfer, "taken")
	ins := start(t, w.Rail, o)
	transfer := untold(on, ins)
	credit := transfer(rail.Transfer{})
	if _, err := w.Provider.Reverse(t.Context(), credit); err != nil {
		t.Fatalf("Reverse = %v", err)
	}
	told := parse(on, next(t, w))
	if len(told) != 1 || told[0].Kind != flow.Reversal || told[0].Reverses != credit || told[0].Amount != o.Amount || told[0].RailTransactionID == credit {
		t.Fatalf("told %+v; want the reversal of %s", told, credit)
	}
	got := check(t, w, o.Reference)
	if len(got) != 2 || got[0].Kind != flow.Credit || got[0].RailTransactionID != credit || got[1].Kind != flow.Reversal ||
		got[1].RailTransactionID != told[0].RailTransactionID || got[1].Reverses != credit {
		t.Errorf("Check = %+v; want the credit and its reversal", got)
	}
	for _, id := range []string{
		credit, told[0].RailTransactionID, "nothing", transfer(rail.Transfer{Returned: true}), transfer(rail.Transfer{PendingMs: 60_000}),
	} {
		if again, err := w.Provider.Reverse(t.Context(), id); err == nil {
			t.Errorf("Reverse(%s) = %+v", id, again)
		}
	}
	kinds := []flow.NoticeKind{}
	for _, n := range check(t, w, o.Reference) {
		kinds = append(kinds, n.Kind)
	}
	if want := []flow.NoticeKind{flow.Credit, flow.Reversal, flow.Returned, flow.Pending}; !slices.Equal(kinds, want) {
		t.Errorf("Check = %v; want %v", kinds, want)
	}
}

func parse(on trial, m Message) []flow.Notice {
	on.t.Helper()
	got, err := on.world.Rail.Parse(m.Header, m.Body)
	if err != nil {
		on.t.Fatalf("Parse(%s) = %v", m.Body, err)
	}
	return got
}
