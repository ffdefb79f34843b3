package railtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"till/flow"
	"till/rail"
)

// soon is longer than a provider may take to say what became of money it was
// ordered to send, and to send it back.
const soon = time.Minute

// credited is the provider's name of money that came in, unheard.
func credited(on trial, reference string, amount flow.Kobo) string {
	t, w := on.t, on.world
	t.Helper()
	ins := start(t, w.Rail, order(w, flow.BankTransfer, reference))
	done, err := w.Provider.Transfer(t.Context(), rail.Transfer{AccountNumber: ins.AccountNumber, Amount: amount, Drop: true})
	if err != nil {
		t.Fatalf("Transfer = %v", err)
	}
	return done.RailTransactionID
}

func refund(reference string, amount flow.Kobo, credit string) flow.Disbursement {
	return flow.Disbursement{Kind: flow.DisburseRefund, Reference: reference, Amount: amount, Credit: credit, Narration: "Refund " + reference}
}

func payout(reference string, amount flow.Kobo) flow.Disbursement {
	return flow.Disbursement{
		Kind: flow.DisbursePayout, Reference: reference, Amount: amount, Narration: "Payout " + reference,
		To: flow.BankAccount{BankCode: rail.TestBankCode, Number: "0123456789", Name: "ADA STORES"},
	}
}

func disburse(on trial, d flow.Disbursement) flow.Disbursed {
	on.t.Helper()
	got, err := on.world.Rail.Disburse(on.t.Context(), d)
	if err != nil {
		on.t.Fatalf("Disburse(%s) = %v", d.Reference, err)
	}
	return got
}

// refused wants an order to be refused, and not to have been taken on.
func refused(on trial, why string, d flow.Disbursement) {
	on.t.Helper()
	if got, err := on.world.Rail.Disburse(on.t.Context(), d); !errors.Is(err, rail.ErrRejected) {
		on.t.Errorf("%s: Disburse = %+v, %v; want ErrRejected", why, got, err)
	}
	neverTaken(on, why, d.Reference)
}

func neverTaken(on trial, why, reference string) {
	on.t.Helper()
	if got, err := on.world.Rail.Disbursed(on.t.Context(), reference); !errors.Is(err, rail.ErrNotFound) {
		on.t.Errorf("%s: Disbursed = %+v, %v; want ErrNotFound", why, got, err)
	}
}

// stands wants an order to stand so, and returns what the provider says.
func stands(on trial, reference string, want flow.DisbursementStatus) flow.Disbursed {
	on.t.Helper()
	got, err := on.world.Rail.Disbursed(on.t.Context(), reference)
	if err != nil || got.Status != want || got.At.IsZero() || (got.RailTransactionID == "") != (want == flow.DisbursementPending) {
		on.t.Fatalf("Disbursed(%s) = %+v, %v; want %s", reference, got, err, want)
	}
	return got
}

// told reads the next message, which is to be one notice of a kind about d.
func told(on trial, kind flow.NoticeKind, d flow.Disbursement) flow.Notice {
	on.t.Helper()
	got := parse(on, next(on.t, on.world))
	if len(got) != 1 || got[0].Kind != kind || got[0].Reference != d.Reference || got[0].Amount != d.Amount || got[0].RailTransactionID == "" {
		on.t.Fatalf("told %+v; want %s of %s", got, kind, d.Reference)
	}
	return got[0]
}

// same wants that a notice and an answer tell the same.
func same(on trial, n flow.Notice, d flow.Disbursed) {
	on.t.Helper()
	if n.RailTransactionID != d.RailTransactionID || !n.PaidAt.Equal(d.At) || n.Reason != d.Reason || n.Reverses != d.Reverses || !n.SentAt.Equal(d.SentAt) {
		on.t.Errorf("told and asked:\n%+v\n%+v", n, d)
	}
}

// sends: what is ordered is sent once, told, and known to whoever asks.
func sends(on trial) {
	w := on.world
	credit := credited(on, "sends", 500_000)
	for _, d := range []flow.Disbursement{refund("wsp_rf_sends", 200_000, credit), payout("wsp_set_sends", 300_000)} {
		if got := disburse(on, d); got.Status == flow.DisbursementFailed {
			on.t.Errorf("%s: Disburse = %+v", d.Reference, got)
		}
		w.Pass(soon)
		n := told(on, flow.PaidOut, d)
		done := stands(on, d.Reference, flow.DisbursementDone)
		same(on, n, done)
		if again := disburse(on, d); again != done {
			on.t.Errorf("%s: ordered again:\n%+v\n%+v", d.Reference, again, done)
		}
	}
	// An order is more than its reference.
	for _, d := range []flow.Disbursement{payout("wsp_set_sends", 300_001), refund("wsp_rf_sends", 199_999, credit), payout("wsp_rf_sends", 200_000)} {
		if got, err := w.Rail.Disburse(on.t.Context(), d); !errors.Is(err, rail.ErrRejected) {
			on.t.Errorf("another order with the reference %s = %+v, %v; want ErrRejected", d.Reference, got, err)
		}
	}
}

// sendsOnce: an order that comes fifty times at once is sent once.
func sendsOnce(on trial) {
	w := on.world
	d := refund("wsp_rf_once", 100_000, credited(on, "once", 5_000_000))
	var errs [50]error
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = w.Rail.Disburse(on.t.Context(), d) })
	}
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		on.t.Fatalf("Disburse = %v", err)
	}
	w.Pass(soon)
	told(on, flow.PaidOut, d)
	if n := len(lines(on, d.Reference)); n != 1 {
		on.t.Errorf("%d movements of %s; want 1", n, d.Reference)
	}
}

// refuses: what cannot be is refused, and the answer stays the same.
func refuses(on trial) {
	t, w := on.t, on.world
	credit, other := credited(on, "refuses", 500_000), credited(on, "another", 100_000)
	refused(on, "no such credit", refund("wsp_rf_none", 1, "none"))
	refused(on, "more than the credit", refund("wsp_rf_more", 500_001, credit))
	disburse(on, refund("wsp_rf_part", 400_000, credit))
	refused(on, "more than is left of the credit", refund("wsp_rf_rest", 100_001, credit))
	refused(on, "more than lies at the bank", payout("wsp_set_more", 200_001))
	refused(on, "nothing", payout("wsp_set_zero", 0))
	refused(on, "less than nothing", payout("wsp_set_less", -1))
	if _, err := w.Provider.Reverse(t.Context(), other); err != nil {
		t.Fatalf("Reverse = %v", err)
	}
	refused(on, "a credit that was taken back", refund("wsp_rf_back", 1, other))

	weather(t, w, rail.Conditions{Up: true, Refunds: rail.FateReject, Payouts: rail.FateReject})
	refused(on, "refunds are refused", refund("wsp_rf_closed", 1, credit))
	refused(on, "payouts are refused", payout("wsp_set_closed", 1))
	weather(t, w, rail.Conditions{Up: true})
	refused(on, "refused before", refund("wsp_rf_closed", 1, credit))
	refused(on, "refused before", payout("wsp_set_closed", 1))
	disburse(on, payout("wsp_set_open", 1))
}

// sentUnknown: an order whose answer never came is found by asking.
func sentUnknown(on trial) {
	t, w := on.t, on.world
	d := refund("wsp_rf_unknown", 500_000, credited(on, "unknown", 500_000))
	weather(t, w, rail.Conditions{Up: true, TimeoutAfterCommit: true})
	if got, err := w.Hasty.Disburse(t.Context(), d); !errors.Is(err, rail.ErrUnknown) || errors.Is(err, rail.ErrUnavailable) {
		t.Fatalf("Disburse = %+v, %v; want ErrUnknown", got, err)
	}
	if got, err := w.Hasty.Disbursed(t.Context(), d.Reference); !errors.Is(err, rail.ErrUnknown) || errors.Is(err, rail.ErrNotFound) {
		t.Errorf("Disbursed = %+v, %v; want ErrUnknown", got, err)
	}
	weather(t, w, rail.Conditions{Up: true})
	w.Pass(soon)
	same(on, told(on, flow.PaidOut, d), stands(on, d.Reference, flow.DisbursementDone))
	disburse(on, d)
	if n := len(lines(on, d.Reference)); n != 1 {
		t.Errorf("%d movements of %s; want 1", n, d.Reference)
	}
}

// notTaken: where nobody is there, or the provider is closed, nothing is taken
// on, and nothing is claimed of what may have been taken on before.
func notTaken(on trial) {
	t, w := on.t, on.world
	d := refund("wsp_rf_nobody", 1, credited(on, "nobody", 500_000))
	ask := func(why string, r rail.Rail, want error) {
		t.Helper()
		_, sent := r.Disburse(t.Context(), d)
		_, asked := r.Disbursed(t.Context(), d.Reference)
		_, read := r.Statement(t.Context(), w.Now().Add(-time.Hour), w.Now())
		for what, err := range map[string]error{"Disburse": sent, "Disbursed": asked, "Statement": read} {
			if !errors.Is(err, want) || errors.Is(err, rail.ErrNotFound) {
				t.Errorf("%s: %s = %v; want %v", why, what, err, want)
			}
		}
	}
	ask("nobody there", w.Unreachable, rail.ErrUnavailable)
	weather(t, w, rail.Conditions{Up: false})
	ask("closed", w.Rail, rail.ErrUnavailable)
	weather(t, w, rail.Conditions{Up: true})
	neverTaken(on, "never taken on", d.Reference)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Rail.Disburse(ctx, d); !errors.Is(err, rail.ErrUnknown) && !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("gone caller: Disburse = %v", err)
	}
	if _, err := w.Rail.Disbursed(ctx, d.Reference); !errors.Is(err, context.Canceled) || errors.Is(err, rail.ErrNotFound) {
		t.Errorf("gone caller: Disbursed = %v; want context.Canceled within", err)
	}
	disburse(on, d)
}

// sendFails: what was taken on and not sent is failed for good, and the money is
// free for another order.
func sendFails(on trial) {
	t, w := on.t, on.world
	credit := credited(on, "fails", 500_000)
	for _, d := range []flow.Disbursement{refund("wsp_rf_fails", 500_000, credit), payout("wsp_set_fails", 500_000)} {
		weather(t, w, rail.Conditions{Up: true, Refunds: rail.FateFail, Payouts: rail.FateFail})
		disburse(on, d)
		w.Pass(soon)
		n := told(on, flow.PayoutFailed, d)
		failed := stands(on, d.Reference, flow.DisbursementFailed)
		same(on, n, failed)
		if n.Reverses != "" || n.Reason == "" {
			t.Errorf("told %+v; want a reason, and nothing that came back", n)
		}
		weather(t, w, rail.Conditions{Up: true})
		if again := disburse(on, d); again != failed {
			t.Errorf("ordered again:\n%+v\n%+v", again, failed)
		}
		if got := lines(on, d.Reference); len(got) != 0 {
			t.Errorf("statement %+v; nothing was sent", got)
		}
	}
	d := refund("wsp_rf_instead", 500_000, credit)
	disburse(on, d)
	w.Pass(soon)
	told(on, flow.PaidOut, d)
}

// holds: an order may be on its way for long; it is pending all the while.
func holds(on trial) {
	t, w := on.t, on.world
	d, p := refund("wsp_rf_held", 200_000, credited(on, "held", 500_000)), payout("wsp_set_held", 100_000)
	weather(t, w, rail.Conditions{Up: true, Refunds: rail.FatePending, Payouts: rail.FatePending})
	for _, one := range []flow.Disbursement{d, p} {
		if got := disburse(on, one); got.Status != flow.DisbursementPending {
			t.Errorf("%s: Disburse = %+v; want pending", one.Reference, got)
		}
	}
	w.Pass(24 * time.Hour)
	stands(on, d.Reference, flow.DisbursementPending)
	if got := lines(on, d.Reference); len(got) != 0 {
		t.Errorf("statement %+v; nothing was sent yet", got)
	}
	weather(t, w, rail.Conditions{Up: true, Payouts: rail.FatePending}) // of the two, only refunds
	w.Pass(soon)
	same(on, told(on, flow.PaidOut, d), stands(on, d.Reference, flow.DisbursementDone))
	stands(on, p.Reference, flow.DisbursementPending)
	weather(t, w, rail.Conditions{Up: true, Payouts: rail.FateReject}) // too late to refuse
	w.Pass(soon)
	same(on, told(on, flow.PayoutFailed, p), stands(on, p.Reference, flow.DisbursementFailed))
}

// comesBack: what was sent may come back, as a movement of its own that names
// the one it undoes.
func comesBack(on trial) {
	t, w := on.t, on.world
	credit := credited(on, "bounces", 500_000)
	weather(t, w, rail.Conditions{Up: true, Refunds: rail.FateBounce, Payouts: rail.FateBounce})
	for _, d := range []flow.Disbursement{refund("wsp_rf_bounces", 500_000, credit), payout("wsp_set_bounces", 500_000)} {
		disburse(on, d)
		w.Pass(soon)
		// Two messages may overtake one another.
		said := map[flow.NoticeKind]flow.Notice{}
		for range 2 {
			for _, n := range parse(on, next(t, w)) {
				said[n.Kind] = n
			}
		}
		sent, back := said[flow.PaidOut], said[flow.PayoutFailed]
		if sent.Reference != d.Reference || back.Reference != d.Reference || back.Reverses != sent.RailTransactionID || back.Reverses == "" ||
			back.RailTransactionID == sent.RailTransactionID || back.Amount != d.Amount || back.Reason == "" || back.PaidAt.Before(sent.PaidAt) {
			t.Fatalf("told:\n%+v\n%+v", sent, back)
		}
		same(on, back, stands(on, d.Reference, flow.DisbursementFailed))
		got := lines(on, d.Reference)
		if len(got) != 2 || got[0] != sent || got[1] != back {
			t.Errorf("statement:\n%+v\nwant:\n%+v\n%+v", got, sent, back)
		}
	}
	weather(t, w, rail.Conditions{Up: true})
	disburse(on, refund("wsp_rf_better", 500_000, credit)) // the money is there again
}
