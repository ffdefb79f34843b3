package railtest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/rail"
)

// statement reads what was booked from until before to.
func statement(on trial, from, to time.Time) []flow.Notice {
	on.t.Helper()
	got, err := on.world.Rail.Statement(on.t.Context(), from, to)
	if err != nil {
		on.t.Fatalf("Statement = %v", err)
	}
	return got
}

// lines are the movements of a reference on the statement of these days.
func lines(on trial, reference string) []flow.Notice {
	on.t.Helper()
	now := on.world.Now()
	return slices.DeleteFunc(statement(on, now.Add(-48*time.Hour), now.Add(48*time.Hour)), func(n flow.Notice) bool { return n.Reference != reference })
}

// statements: a statement holds each movement once, oldest value time first, and
// those of its time alone: what did not move money is not on it.
func statements(on trial) {
	t, w := on.t, on.world
	noon := w.Now().Truncate(time.Hour).Add(-24 * time.Hour)
	o := order(w, flow.BankTransfer, "lines")
	ins := start(t, w.Rail, o)
	transfer := untold(on, ins)
	// Booked out of order: the statement is by value time.
	last := transfer(rail.Transfer{Amount: 30_000, ValueTime: noon.Add(time.Hour)})
	first := transfer(rail.Transfer{Amount: 10_000, ValueTime: noon})
	second := transfer(rail.Transfer{Amount: 20_000, ValueTime: noon.Add(time.Hour - time.Millisecond)})
	transfer(rail.Transfer{Amount: 40_000, ValueTime: noon, Returned: true})
	transfer(rail.Transfer{Amount: 50_000, ValueTime: noon, PendingMs: 9 * 60 * 1000})
	code := start(t, w.Rail, order(w, flow.USSD, "declined")).PaymentCode
	if err := w.Provider.CompleteUSSD(t.Context(), code, "failed"); err != nil {
		t.Fatalf("CompleteUSSD = %v", err)
	}
	next(t, w)
	for _, c := range []struct {
		from, to time.Time
		want     []string
	}{
		{noon, noon.Add(time.Hour), []string{first, second}},
		{noon.Add(time.Hour), noon.Add(2 * time.Hour), []string{last}},
		{noon.Add(time.Millisecond), noon.Add(time.Hour + time.Millisecond), []string{second, last}},
		{noon.Add(-time.Hour), noon, nil},
		{noon.Add(time.Nanosecond), noon.Add(time.Hour - time.Millisecond), nil},
		{noon.Add(-time.Nanosecond), noon.Add(time.Nanosecond), []string{first}},
		{noon.Add(time.Hour), noon.Add(time.Hour), nil},
		{noon.Add(time.Hour), noon, nil},
	} {
		var got []string
		for _, n := range statement(on, c.from, c.to) {
			got = append(got, n.RailTransactionID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("from %s to %s: %v; want %v", c.from, c.to, got, c.want)
		}
	}
	everyMovement(on, noon, []string{first, second, last})
}

// everyMovement: money that goes out or is taken back stands on the statement as
// it is told, beside the credits that are there already.
func everyMovement(on trial, from time.Time, want []string) {
	t, w := on.t, on.world
	to := w.Now().Add(time.Minute + soon)
	if _, err := w.Provider.Reverse(t.Context(), want[0]); err != nil {
		t.Fatalf("Reverse = %v", err)
	}
	said := parse(on, next(t, w))
	disburse(on, refund("wsp_rf_lines", 1_000, want[1]))
	w.Pass(soon)
	said = append(said, told(on, flow.PaidOut, refund("wsp_rf_lines", 1_000, want[1])))
	got := statement(on, from, to)
	if len(got) != len(want)+2 {
		t.Fatalf("statement %s; want %d credits, the reversal and the refund", names(got), len(want))
	}
	for i, id := range want {
		if got[i].RailTransactionID != id || got[i].Kind != flow.Credit {
			t.Errorf("line %d is %+v; want the credit %s", i, got[i], id)
		}
	}
	if !reflect.DeepEqual(got[len(want):], said) {
		t.Errorf("told and on the statement:\n%+v\n%+v", said, got[len(want):])
	}
	if again := statement(on, from, to); !reflect.DeepEqual(again, got) {
		t.Errorf("read again:\n%s\n%s", names(again), names(got))
	}
}

func names(all []flow.Notice) string {
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = n.RailTransactionID + " " + string(n.Kind)
	}
	return strings.Join(out, ", ")
}

// collects: money for an account of a project that no order was made for is told
// with the account and the project, and stands so on the statement.
func collects(on trial) {
	t, w := on.t, on.world
	sent := rail.Transfer{AccountNumber: "1234500000", Amount: 70_000, Collects: "prj_collects"}
	if _, err := w.Provider.Transfer(t.Context(), sent); err != nil {
		t.Fatalf("Transfer = %v", err)
	}
	got := parse(on, next(t, w))
	if len(got) != 1 || got[0].Kind != flow.Credit || got[0].Reference != "" || got[0].AccountNumber != sent.AccountNumber || got[0].Collects != sent.Collects {
		t.Fatalf("told %+v; want money of %s", got, sent.Collects)
	}
	now := w.Now()
	if on := statement(on, now.Add(-time.Hour), now.Add(time.Hour)); !reflect.DeepEqual(on, got) {
		t.Errorf("told and on the statement:\n%+v\n%+v", got, on)
	}
	// What nobody claimed can be sent back as well.
	d := refund("wsp_rf_collects", 70_000, got[0].RailTransactionID)
	disburse(on, d)
	w.Pass(soon)
	told(on, flow.PaidOut, d)
}
