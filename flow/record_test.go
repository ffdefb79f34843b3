package flow_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// around is what the records of these tests are made with.
var around = flow.Surroundings{
	ClientSecret: func(id flow.SessionID) string { return "secret-of-" + string(id) },
	CheckoutURL:  func(s flow.Session) string { return "https://wa.me/234800?text=Pay%20" + flow.ShowCode(s.EntryCode) },
}

// rich is a session with everything in it.
func rich() flow.Session {
	s := open()
	s.CustomerPhone, s.CustomerName, s.Reference, s.Description = "2348012345678", "Obi <b>", "order-1001", "Two shirts & a \"hat\""
	s.Metadata, s.CallbackURL, s.Charge, s.ChargeAsked = map[string]string{"b": "2", "a": "1"}, "https://shop.example/back?a=1&b=2", "wsp_chg_1", true
	return s
}

// settledBy are the payments of a session that was paid in two parts.
func settledBy() []flow.Payment {
	p := flow.Payment{
		ID: "wsp_pay_1", Project: "wsp_prj_1", Session: "wsp_sess_1", Attempt: "t", Amount: 200_000, Channel: flow.BankTransfer, PaidAt: noon, ReceivedAt: noon.Add(time.Second),
		Payer: flow.PaidBy{Name: "OBI ADE", BankName: "GTBank", AccountNumberMasked: "******1234"}, NIPSessionID: "000013", RailTransactionID: "rail-1", Match: flow.Partial, Applied: 200_000,
	}
	q := p
	q.ID, q.Amount, q.Fee, q.RailTransactionID, q.Match, q.NIPSessionID = "wsp_pay_2", 310_000, flow.Fee(500_000), "rail-2", flow.Excess, "000014"
	q.Payer.Name = "ADA OBI"
	q.Applied, q.Unapplied, q.Refunded = 300_000, 0, 10_000
	q.Resolution, q.ResolvedAt, q.ResolvedBy, q.ResolvedWhy = flow.ResolvedRefunded, noon.Add(time.Minute), "wsp_key_1", "Asked for it"
	late := p
	late.ID, late.Amount, late.Match, late.Applied, late.Unapplied, late.ReturnsAt = "wsp_pay_3", 999_999, flow.Duplicate, 0, 999_999, noon.Add(24*time.Hour)
	return []flow.Payment{p, q, late}
}

// indented is a value as JSON for a golden file.
func indented(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGoldenRecordsThatMerchantsRead(t *testing.T) {
	plain := open()
	plain.Mode, plain.EntryCode = flow.Headless, ""
	paid := rich()
	paid.Status, paid.AmountPaid, paid.PaidAt, paid.Exceptions = flow.SessionPaid, paid.Amount, noon.Add(1500*time.Microsecond), []flow.Exception{flow.Overpaid}
	transfer, card := trying("t", flow.BankTransfer), trying("c", flow.Card)
	done := transfer
	done.Status = flow.AttemptSucceeded
	attempts := []flow.Attempt{transfer, card}
	lost := flow.Payment{ID: "wsp_pay_9", Amount: 700, Unapplied: 700, Channel: flow.BankTransfer, PaidAt: noon, ReceivedAt: noon, RailTransactionID: "rail-9", Match: flow.Unmatched}
	for name, v := range map[string]any{
		"session_plain.json":   flow.RecordSession(plain, flow.Offers(plain, nil, flow.Methods(), noon), flow.Surroundings{}),
		"session_rich.json":    flow.RecordSession(rich(), flow.Offers(rich(), attempts, flow.Methods(), noon), around),
		"charge_pending.json":  flow.RecordCharge(rich(), attempts, nil, around),
		"charge_bare.json":     flow.RecordCharge(plain, nil, nil, flow.Surroundings{Live: true}),
		"charge_paid.json":     flow.RecordCharge(paid, []flow.Attempt{done, card}, settledBy(), around),
		"payment_matched.json": flow.RecordPayment(settledBy()[1]),
		"payment_waits.json":   flow.RecordPayment(settledBy()[2]),
		"payment_nobodys.json": flow.RecordPayment(lost),
	} {
		golden(t, name, indented(t, v))
	}
}

func TestGoldenEventWithItsChargeAndTheMoneyItIsAbout(t *testing.T) {
	paid := rich()
	paid.Status, paid.AmountPaid, paid.PaidAt = flow.SessionPaid, paid.Amount, noon
	paid.Exceptions = []flow.Exception{flow.Overpaid}
	done := trying("t", flow.BankTransfer)
	done.Status = flow.AttemptSucceeded
	charge := flow.RecordCharge(paid, []flow.Attempt{done}, settledBy(), around)
	e := flow.Event{ID: "evt_1", Kind: flow.ChargeSuccess, Sequence: 3, CreatedAt: noon}
	body, err := flow.ComposeEvent(e, flow.EventReference(paid, charge.Reference), flow.ChargeData(charge, "t", &settledBy()[1]), false)
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	if err := json.Indent(&shown, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "event_charge_success.json", shown.String()+"\n")
	if bytes.ContainsAny(body, "\n") || strings.Contains(string(body), "secret-of") {
		t.Errorf("the body: %s", body)
	}
	if got := flow.EventReference(open(), "wsp_ref_1"); got != "wsp_ref_1" {
		t.Error(got)
	}
	if _, err := flow.ComposeEvent(e, "x", func() {}, false); err == nil {
		t.Error("what is no JSON was composed")
	}
}

func TestWhoCompletedAPaymentIsNamedWhateverTheOrderOfItsParts(t *testing.T) {
	s := rich()
	s.Status, s.AmountPaid, s.PaidAt = flow.SessionPaid, s.Amount, noon
	s.Exceptions = []flow.Exception{flow.Overpaid}
	p := settledBy()
	for _, order := range [][]flow.Payment{{p[0], p[1]}, {p[1], p[0]}} {
		r := flow.RecordCharge(s, nil, order, around)
		if r.Payer.Name != "ADA OBI" || r.NIPSessionID != "000014" || r.ExcessMinor != "10000" || r.FeeMinor != "17500" || r.NetMinor != "482500" {
			t.Errorf("%+v", r)
		}
	}
}

func TestWhatWentBackBeforeAllWasPaidIsNoExcess(t *testing.T) {
	s := rich()
	s.Status, s.AmountPaid, s.PaidAt = flow.SessionPaid, 500_000, noon
	part := flow.Payment{ID: "a", Amount: 200_000, Refunded: 150_000, Applied: 50_000, Match: flow.Partial}
	rest := flow.Payment{ID: "b", Amount: 450_000, Applied: 450_000, Match: flow.Matched}
	over := flow.Payment{ID: "b", Amount: 460_000, Applied: 450_000, Unapplied: 10_000, Match: flow.Excess}
	late := flow.Payment{ID: "c", Amount: 700_000, Refunded: 200_000, Applied: 500_000, Match: flow.Late, Resolution: flow.ResolvedAccepted}
	taken := flow.Payment{ID: "a", Amount: 200_000, Reversed: 150_000, Applied: 50_000, Match: flow.Partial}
	halved := flow.Payment{ID: "c", Amount: 1_020_000, Reversed: 510_000, Refunded: 10_000, Applied: 500_000, Match: flow.Late, Resolution: flow.ResolvedAccepted}
	kept := halved
	kept.Refunded, kept.Applied = 0, 510_000
	for excess, payments := range map[string][][]flow.Payment{"": {{part, rest}, {late}, {taken, rest}}, "10000": {{part, over}, {taken, over}, {kept}}} {
		if s.Exceptions = nil; excess != "" {
			s.Exceptions = []flow.Exception{flow.Overpaid}
		}
		for _, list := range payments {
			for _, policy := range []string{"accept", "refund_excess"} {
				s.Policy.Overpayment = policy
				if r := flow.RecordCharge(s, nil, list, around); r.ExcessMinor != excess {
					t.Errorf("%s: the excess of %+v is %q, not %q", policy, list, r.ExcessMinor, excess)
				}
			}
		}
	}
	s.Policy.Overpayment, s.Exceptions = "refund_excess", []flow.Exception{flow.Overpaid}
	if r := flow.RecordCharge(s, nil, []flow.Payment{halved}, around); r.ExcessMinor != "10000" {
		t.Errorf("what the bank took of it before is told as excess: %s", r.ExcessMinor)
	}
	s.Policy.Underpayment = "refund"
	waits := flow.Payment{ID: "a", Amount: 200_000, Unapplied: 200_000, Match: flow.Partial} // the bank refused to send it back
	whole := flow.Payment{ID: "b", Amount: 510_000, Refunded: 10_000, Applied: 500_000, Match: flow.Excess, Resolution: flow.ResolvedRefunded}
	if r := flow.RecordCharge(s, nil, []flow.Payment{waits, whole}, around); r.ExcessMinor != "10000" {
		t.Errorf("what is sent back again is told as excess: %s", r.ExcessMinor)
	}
}

func TestAChargeStandsAsItsSessionDoes(t *testing.T) {
	for status, want := range map[flow.SessionStatus]flow.ChargeStatus{
		flow.SessionPending: "PENDING", flow.SessionProcessing: "PROCESSING", flow.SessionPaid: "SUCCEEDED", flow.SessionExpired: "EXPIRED", flow.SessionCancelled: "CANCELLED",
	} {
		s := rich()
		s.Status = status
		if got := flow.RecordCharge(s, nil, nil, around).Status; got != want {
			t.Errorf("of a session that is %s it is %s", status, got)
		}
	}
}

func TestALinkIntoTheChatIsOnlyGivenWhereThereIsAChat(t *testing.T) {
	for _, c := range []struct {
		mode    flow.Mode
		charged bool
		want    bool
	}{{flow.Headless, false, false}, {flow.Headless, true, true}, {flow.InChat, false, true}} {
		s := open()
		s.Mode, s.ChargeAsked = c.mode, c.charged
		if got := flow.RecordSession(s, nil, around).CheckoutURL; (got != "") != c.want {
			t.Errorf("%s charged %v: %q", c.mode, c.charged, got)
		}
	}
}

func TestTimesAreKeptInMilliseconds(t *testing.T) {
	at := time.Date(2026, 3, 2, 13, 0, 0, 7_999_999, time.FixedZone("WAT", 3600))
	if got := flow.Stamp(at); got != "2026-03-02T12:00:00.007Z" {
		t.Error(got)
	}
	if got := flow.FromMillis(flow.Millis(at)); flow.Stamp(got) != flow.Stamp(at) || got.Location() != time.UTC {
		t.Error(got)
	}
	if flow.Millis(time.Time{}) != 0 || !flow.FromMillis(0).IsZero() {
		t.Error("no time became one")
	}
}

// An account that was switched away from is paid into as well, and whoever shows it asks for
// what is left.
func TestTheAccountOfAChargeAsksForWhatIsLeft(t *testing.T) {
	for _, status := range []flow.AttemptStatus{flow.AttemptActive, flow.AttemptSuperseded, flow.AttemptExpired} {
		s, a := open(), trying("a", flow.BankTransfer)
		s.AmountPaid, a.Status = 100_050, status
		if r := flow.RecordCharge(s, []flow.Attempt{a}, nil, flow.Surroundings{}); r.VirtualAccount == nil || r.VirtualAccount.Amount != "3999.50" {
			t.Errorf("one that is %s asks for %+v", status, r.VirtualAccount)
		}
	}
}
