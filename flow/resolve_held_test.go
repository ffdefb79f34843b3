package flow_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
)

// heldPart is a part of ₦3,000 that waits in a session of ₦5,000 that is over.
func heldPart(id flow.PaymentID) flow.Payment {
	p := came(flow.Partial)
	p.ID, p.Amount, p.Fee, p.Unapplied, p.ReturnsAt = id, 300_000, 0, 300_000, noon.Add(time.Hour)
	return p
}

// What parts hold beyond what their session asks for is as visible as any other
// money that is too much: it goes back by policy, or when its time comes.
func TestWhatPartsHoldBeyondTheirSessionIsNotForgotten(t *testing.T) {
	for policy, back := range map[string]flow.Kobo{"accept": 0, "refund_excess": 100_000} {
		for name, c := range map[string]struct {
			accepted flow.PaymentID
			applied  map[flow.PaymentID]flow.Kobo
		}{
			"what came first is accepted":  {"a", map[flow.PaymentID]flow.Kobo{"b": 300_000}},
			"what came second is accepted": {"b", map[flow.PaymentID]flow.Kobo{"a": 300_000}},
		} {
			s := open()
			s.Status, s.AmountPaid, s.Policy.Overpayment = flow.SessionExpired, s.Amount-1, policy
			m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{heldPart("a"), heldPart("b")}, Charge: "wsp_chg_1", Now: noon}
			got, err := flow.Resolve(m, heldPart(c.accepted), true, flow.Ruled{By: "wsp_key_1", At: noon})
			if err != nil {
				t.Fatal(err)
			}
			if got.Session.AmountPaid != 500_000 || !slices.Contains(got.Session.Exceptions, flow.Overpaid) || got.News[0].Extra != 100_000 {
				t.Errorf("%s, %s: %+v, the payer reads of %d too much", policy, name, got.Session, got.News[0].Extra)
			}
			applied, fee := flow.Kobo(0), flow.Kobo(0)
			for _, p := range got.Payments {
				applied, fee = applied+p.Applied, fee+p.Fee
				if want := c.applied[p.ID]; want != 0 && p.Applied != want || p.Unapplied != 0 || p.Resolution != flow.ResolvedAccepted {
					t.Errorf("%s, %s: %+v", policy, name, p)
				}
			}
			if applied != 600_000-back || fee != flow.Fee(applied) {
				t.Errorf("%s, %s: %d are the merchant's, with a fee of %d", policy, name, applied, fee)
			}
			if sent := len(got.Returns) == 1 && got.Returns[0].Amount == back; sent != (back > 0) {
				t.Errorf("%s, %s: back goes %+v", policy, name, got.Returns)
			}
		}
		// Of three, what is left of one that nobody decided about still waits.
		s := open()
		s.Status, s.AmountPaid, s.Policy.Overpayment = flow.SessionExpired, s.Amount-1, policy
		m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{heldPart("a"), heldPart("b"), heldPart("c")}, Charge: "wsp_chg_1", Now: noon}
		got, err := flow.Resolve(m, heldPart("c"), true, flow.Ruled{By: "wsp_key_1", At: noon})
		if err != nil {
			t.Fatal(err)
		}
		b := got.Payments[slices.IndexFunc(got.Payments, func(p flow.Payment) bool { return p.ID == "b" })]
		if b.Applied != 200_000 || b.Refunded != back || b.Unapplied != 100_000-back || (back > 0) != b.ReturnsAt.IsZero() || back == 0 && !b.Waits(*got.Session) {
			t.Errorf("%s: what is left waits: %+v", policy, b)
		}
	}
}

// A part that stays after all beside the rest of it is too much: what is left of it
// waits for a decision, and not for ever.
func TestAPartThatStaysBesideTheRestOfItWaitsForItsTime(t *testing.T) {
	s := open()
	s.AmountPaid = s.Amount - 1
	part, rest := heldPart("a"), heldPart("b")
	part.ReturnsAt, rest.ReturnsAt = time.Time{}, time.Time{}
	m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{part, rest}, Charge: "wsp_chg_1", Now: noon}
	c, err := flow.Complete(m, part)
	if err != nil || c.Session == nil {
		t.Fatalf("%+v (%v)", c, err)
	}
	p := c.Payments[len(c.Payments)-1]
	if p.ID != "a" || p.Applied != 200_000 || p.Unapplied != 100_000 || !p.ReturnsAt.Equal(noon.Add(flow.ReturnAfter)) || !p.Waits(*c.Session) {
		t.Errorf("%+v", p)
	}
	if over := flow.Overdue(*c.Session, p, p.ReturnsAt); len(over.Returns) != 1 || over.Returns[0].Amount != 100_000 {
		t.Errorf("when its time comes: %+v", over)
	}
}
