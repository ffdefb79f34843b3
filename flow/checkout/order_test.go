package checkout_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// twoAbove has two people agree to what is about more than an amount.
func (w *world) twoAbove(amount flow.Kobo) {
	w.t.Helper()
	w.end()
	w.second = amount
	w.start(true)
}

// attention is a refund of ₦2,000 that came back, of a session paid with ₦5,000.
func (w *world) attention() (flow.Session, flow.Refund) {
	w.t.Helper()
	session, p := w.paidFor(500_000)
	w.weather(rail.Conditions{Refunds: rail.FateBounce})
	r := w.goesBack(p, 200_000)
	w.pass(2 * time.Second)
	return session, w.becomes(r.ID, flow.RefundAttention)
}

func byHand(r flow.Refund, transfer string) checkout.MoneyOrder {
	return checkout.MoneyOrder{Act: flow.ActByHand, Subject: string(r.ID), Transfer: transfer, Reason: "paid at the counter", Key: "wsp_usr_1", By: "ada@shop.test"}
}

func TestARefundIsPaidByHand(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, r := w.attention()
		for _, wrong := range []string{"", "x", "a b c", strings.Repeat("x", 101), "FT;7"} {
			if _, err := w.service.Order(t.Context(), project, byHand(r, wrong)); flow.CodeOf(err) != flow.CodeInvalidField {
				t.Errorf("the transfer %q: %v", wrong, err)
			}
		}
		later := byHand(r, "HAND-7")
		later.SentAt = w.clock().Add(time.Minute)
		if _, err := w.service.Order(t.Context(), project, later); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("it was sent in the future: %v", err)
		}
		if _, err := w.service.Order(t.Context(), "wsp_prj_9", byHand(r, "HAND-7")); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another project's: %v", err)
		}
		if _, err := w.service.Order(t.Context(), project, byHand(r, w.payments(session.ID)[0].RailTransactionID)); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("a transfer that the books know: %v", err)
		}
		told := len(w.texts("ada"))
		if err := w.service.Refused(t.Context(), project, byHand(r, "HAND-7")); err != nil {
			t.Errorf("it would be refused: %v", err)
		}
		w.rest()
		w.becomes(r.ID, flow.RefundAttention) // as it was: it was only looked
		if read := w.texts("ada"); len(read) != told {
			t.Errorf("the payer read %q", read[told:])
		}
		waits, err := w.service.Order(t.Context(), project, byHand(r, "HAND-7"))
		if err != nil || waits.ID != "" {
			t.Fatalf("%+v, %v", waits, err)
		}
		w.rest()
		is := w.becomes(r.ID, flow.RefundProcessed)
		if is.RailTransactionID != "HAND-7" || is.Reference != string(r.ID)+"-2" {
			t.Errorf("%+v", is)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if e := w.events(session.ID); e[flow.RefundProcessedKind] != 2 { // before it came back, and now
			t.Errorf("told %v", e)
		}
		if read := w.texts("ada")[told:]; !slices.Equal(read, []string{"sent_by_hand"}) { // and not that it comes back where it came from
			t.Errorf("the payer read %q", read)
		}
		// Nothing pays it twice, and what the bank says of its own order changes nothing.
		for _, act := range []flow.MoneyAct{flow.ActByHand, flow.ActRetry} {
			o := byHand(r, "HAND-8")
			o.Act = act
			if _, err := w.service.Order(t.Context(), project, o); flow.CodeOf(err) != flow.CodeRefundNotRetryable {
				t.Errorf("%s, again: %v", act, err)
			}
		}
		for _, kind := range []flow.NoticeKind{flow.PaidOut, flow.PayoutFailed} {
			w.must(w.tell(flow.Notice{Kind: kind, Reference: string(r.ID), RailTransactionID: r.RailTransactionID, Amount: r.Amount, PaidAt: w.clock()}))
		}
		w.rest()
		w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
	})
}

func TestWhatSomebodySawAtTheBankIsNotBookedTwiceWhenTheBankTellsIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(p, 200_000)
		w.rest()
		w.passes(16, 4*time.Hour)
		r = w.becomes(r.ID, flow.RefundAttention)
		_, err := w.service.Order(t.Context(), project, byHand(r, "BANK-1"))
		w.must(err)
		for range 2 {
			w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: string(r.ID), RailTransactionID: "BANK-1", Amount: r.Amount, PaidAt: w.clock()}))
			w.rest()
			if r = w.becomes(r.ID, flow.RefundProcessed); r.Overpaid != 0 {
				t.Errorf("it is taken for sent twice: %+v", r)
			}
		}
		if e := w.events(session.ID); e[flow.RefundProcessedKind] != 1 {
			t.Errorf("told %v", e)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
	})
}

// What came back lies aside for whoever it is of: to send it again, or to have it paid by
// hand, takes nothing out of a balance, also where that is used up.
func TestWhatCameBackGoesOutAgainWhateverIsLeft(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for _, act := range []flow.MoneyAct{flow.ActRetry, flow.ActByHand} {
			_, r := w.attention()
			w.weather(rail.Conditions{})
			session, p := w.paidFor(500_000)
			w.goesBack(p, 500_000)
			w.must(w.tell(reversal("R"+string(p.ID), p.RailTransactionID, w.attempts(session.ID)[0], 500_000, w.clock()))) // and is lost a second time
			w.rest()
			if left := w.left(); left >= 0 {
				t.Fatalf("%d are left", left)
			}
			o := byHand(r, "HAND-"+string(r.ID))
			o.Act = act
			if _, err := w.service.Order(t.Context(), project, o); err != nil {
				t.Errorf("%s: %v", act, err)
			}
			w.rest()
			w.pass(time.Second)
			w.becomes(r.ID, flow.RefundProcessed)
		}
	})
}

func TestMuchMoneyWaitsForASecondPerson(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.twoAbove(199_999)
		session, r := w.attention()
		o := byHand(r, "HAND-7")
		if amount, second, err := w.service.NeedsSecond(t.Context(), project, o); err != nil || !second || amount != 200_000 {
			t.Fatalf("%d, %v, %v", amount, second, err)
		}
		if _, err := w.service.Order(t.Context(), project, byHand(r, w.payments(session.ID)[0].RailTransactionID)); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("a second person is asked about a transfer that the books know: %v", err)
		}
		waits, err := w.service.Order(t.Context(), project, o)
		if err != nil || waits.ID == "" || waits.By != "ada@shop.test" || waits.Session != session.ID {
			t.Fatalf("%+v, %v", waits, err)
		}
		if _, err := w.service.Order(t.Context(), project, o); flow.CodeOf(err) != flow.CodeNotResolvable {
			t.Errorf("asked for twice: %v", err)
		}
		w.becomes(r.ID, flow.RefundAttention)
		for by, of := range map[string]flow.ProjectID{"ada@shop.test": project, "obi@shop.test": "wsp_prj_9"} {
			if _, err := w.service.Agree(t.Context(), of, waits.ID, by, "looked at it"); err == nil {
				t.Errorf("%s of %s agrees", by, of)
			}
		}
		w.becomes(r.ID, flow.RefundAttention)

		// Two agree at the same moment: it is done once.
		var wait sync.WaitGroup
		errs := make([]error, 2)
		for i, by := range []string{"obi@shop.test", "uche@shop.test"} {
			wait.Go(func() {
				_, errs[i] = w.service.Agree(context.WithoutCancel(t.Context()), project, waits.ID, by, "looked at it")
			})
		}
		wait.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("not one of two: %v, %v", errs[0], errs[1])
		}
		for _, err := range errs {
			if err != nil && flow.CodeOf(err) != flow.CodeNotResolvable {
				t.Errorf("who came second reads: %v", err)
			}
		}
		w.rest()
		w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		p, err := w.db.Proposal(t.Context(), waits.ID)
		if err != nil || p.Status != flow.ProposalAgreed || p.By == p.EndedBy {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func TestWhatNobodyAgreesToIsNotDone(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.twoAbove(100_000)
		session := w.payingUnder(func(*flow.Policy) {})
		p := w.comes(session.ID, 700_000)
		o := checkout.MoneyOrder{Act: flow.ActSendBack, Subject: string(p.ID), Reason: "asked for it", Key: "wsp_usr_1", By: "ada@shop.test"}
		first, err := w.service.Order(t.Context(), project, o)
		if err != nil || first.ID == "" || first.Amount != 200_000 {
			t.Fatalf("%+v, %v", first, err)
		}
		if _, err := w.service.Disagree(t.Context(), "wsp_prj_9", first.ID, "obi@shop.test", "it is ours"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another merchant refuses it: %v", err)
		}
		if _, err := w.service.Disagree(t.Context(), project, first.ID, "obi@shop.test", "it is ours"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Agree(t.Context(), project, first.ID, "uche@shop.test", "looked at it"); flow.CodeOf(err) != flow.CodeNotResolvable {
			t.Errorf("what was refused is agreed to: %v", err)
		}
		second, err := w.service.Order(t.Context(), project, o)
		w.must(err)
		w.pass(flow.ProposalLife)
		if _, err := w.service.Agree(t.Context(), project, second.ID, "obi@shop.test", "looked at it"); flow.CodeOf(err) != flow.CodeNotResolvable {
			t.Errorf("after a day: %v", err)
		}
		if p = w.payment(p.ID); p.Resolution != flow.Unresolved {
			t.Errorf("it was decided: %+v", p)
		}
		third, err := w.service.Order(t.Context(), project, o) // the one that expired is not in the way
		w.must(err)
		// The merchant decides over REST meanwhile: there is nothing to agree to any more.
		_, err = w.service.Resolve(t.Context(), p.ID, checkout.NewResolution{Accept: true, Key: "wsp_key_1"}, call("", "", nil))
		w.must(err)
		if _, err := w.service.Agree(t.Context(), project, third.ID, "obi@shop.test", "looked at it"); flow.CodeOf(err) != flow.CodeNotResolvable {
			t.Errorf("what is decided is decided again: %v", err)
		}
		if p = w.payment(p.ID); p.Resolution != flow.ResolvedAccepted || len(w.refundsOf(session.ID)) != 0 {
			t.Errorf("it became %+v", p)
		}
	})
}

// Accepting one part gives the merchant all parts of a session that is over: all of
// them are what somebody orders.
func TestPartsThatAreAcceptedTogetherAreMuchMoneyTogether(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.twoAbove(200_000)
		session := w.payingUnder(func(*flow.Policy) {})
		w.comes(session.ID, 150_000)
		p := w.comes(session.ID, 100_000)
		o := checkout.MoneyOrder{Act: flow.ActAccept, Subject: string(p.ID), Reason: "asked for it", Key: "wsp_usr_1", By: "ada@shop.test"}
		if waits, err := w.service.Order(t.Context(), project, o); flow.CodeOf(err) != flow.CodeNotResolvable { // its session waits for the rest
			t.Errorf("a second person is asked for what would be refused: %+v, %v", waits, err)
		}
		w.later(2 * time.Hour)
		w.is(session.ID, flow.SessionExpired)
		if amount, second, err := w.service.NeedsSecond(t.Context(), project, o); err != nil || !second || amount != 250_000 {
			t.Errorf("%d, %v, %v", amount, second, err)
		}
		waits, err := w.service.Order(t.Context(), project, o)
		if err != nil || waits.ID == "" || waits.Amount != 250_000 {
			t.Fatalf("%+v, %v", waits, err)
		}
		w.is(session.ID, flow.SessionExpired)
		_, err = w.service.Agree(t.Context(), project, waits.ID, "obi@shop.test", "looked at it")
		w.must(err)
		if s := w.read(session.ID); s.Status != flow.SessionPaid || s.AmountPaid != 250_000 {
			t.Errorf("%+v", s)
		}
		// One of them goes back without the other.
		other := w.payingUnder(func(*flow.Policy) {})
		w.comes(other.ID, 150_000)
		p = w.comes(other.ID, 100_000)
		w.later(2 * time.Hour)
		o = checkout.MoneyOrder{Act: flow.ActSendBack, Subject: string(p.ID), Reason: "asked for it", Key: "wsp_usr_1", By: "ada@shop.test"}
		if waits, err := w.service.Order(t.Context(), project, o); err != nil || waits.ID != "" {
			t.Errorf("%+v, %v", waits, err)
		}
	})
}

func TestLittleMoneyIsOrderedByOnePerson(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.twoAbove(200_000)
	for _, act := range []flow.MoneyAct{flow.ActAccept, flow.ActSendBack} {
		session := w.payingUnder(func(*flow.Policy) {})
		p := w.comes(session.ID, 700_000)
		waits, err := w.service.Order(t.Context(), project, checkout.MoneyOrder{Act: act, Subject: string(p.ID), Reason: "asked for it", Key: "wsp_usr_1", By: "ada@shop.test"})
		if p = w.payment(p.ID); err != nil || waits.ID != "" || p.Resolution == flow.Unresolved || p.ResolvedBy != "wsp_usr_1" || (act == flow.ActAccept) != (p.Resolution == flow.ResolvedAccepted) {
			t.Errorf("%s: %+v, %v, %+v", act, waits, err, p)
		}
	}
	if _, err := w.service.Order(t.Context(), project, checkout.MoneyOrder{Act: "payment.burn", Subject: "wsp_pay_1"}); err == nil {
		t.Error("an unknown act is done")
	}
}

func TestTheTimeOfASessionIsEndedOnceTheBankWasAsked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook", flow.SessionExpiredKind, flow.ChargeLate)
		session := w.payingUnder(func(*flow.Policy) {})
		asked := w.calls()["check"]
		if err := w.service.EndNow(t.Context(), "wsp_prj_9", session.ID, "wsp_per_1"); flow.CodeOf(err) != flow.CodeNotFound || w.calls()["check"] != asked {
			t.Errorf("another project's: %v, and the bank was asked %d times", err, w.calls()["check"]-asked)
		}
		w.must(w.service.EndNow(t.Context(), project, session.ID, "wsp_per_1"))
		w.rest()
		is, err := w.db.Session(t.Context(), session.ID)
		if err != nil || is.Status != flow.SessionExpired || is.ExpiresAt.After(w.clock()) || w.events(session.ID)[flow.SessionExpiredKind] != 1 {
			t.Errorf("%+v, %v, told %v", is, err, w.events(session.ID))
		}
		if err := w.service.EndNow(t.Context(), project, session.ID, "wsp_per_1"); flow.CodeOf(err) != flow.CodeNotCancellable {
			t.Errorf("ended twice: %v", err)
		}
		w.pass(10 * time.Minute)
		if p := w.comes(session.ID, 500_000); p.Match != flow.Late {
			t.Errorf("money that came afterwards: %+v", p)
		}
	})
}

// A merchant who is stopped is given nothing, and their payers get back what is
// theirs.
func TestMoneyGoesBackToThePayersOfWhoIsStopped(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		p := w.comes(session.ID, 700_000)
		moves(t, w.db, flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), To: flow.MerchantStopped})
		w.must(w.board.Refresh(t.Context()))
		o := checkout.MoneyOrder{Act: flow.ActAccept, Subject: string(p.ID), Reason: "asked for it", Key: "wsp_usr_1", By: "ada@shop.test"}
		if _, err := w.service.Order(t.Context(), project, o); flow.CodeOf(err) != flow.CodeProjectSuspended {
			t.Errorf("given to who is stopped: %v", err)
		}
		o.Act = flow.ActSendBack
		if _, err := w.service.Order(t.Context(), project, o); err != nil {
			t.Errorf("sent back: %v", err)
		}
		if p = w.payment(p.ID); p.Resolution != flow.ResolvedRefunded {
			t.Errorf("%+v", p)
		}
	})
}
