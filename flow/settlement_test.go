package flow_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

var payee = flow.BankAccount{BankCode: "999", Number: "0123456789", Name: "ADA STORES LTD"}

// batch is a settlement of 482 500 kobo that stands somewhere.
func batch(status flow.SettlementStatus) flow.Settlement {
	b := flow.Settlement{
		ID: "wsp_stl_1", Project: "wsp_prj_1", SettlesOn: "2026-11-23", Status: status, Amount: 482_500, Lines: 1, To: payee, BankName: "Till Test Bank",
		CreatedAt: noon,
	}
	if status != flow.SettlementPending {
		b.Tries, b.SentAt = 1, noon
	}
	if status == flow.SettlementSucceeded {
		b.RailTransactionID, b.DoneAt = "out-1", noon
	}
	return b
}

// moved is what the entries of a change move, by account; it must sum to zero.
func moved(t *testing.T, c flow.Change) map[flow.LedgerAccount]flow.Kobo {
	t.Helper()
	out := map[flow.LedgerAccount]flow.Kobo{}
	for _, e := range c.Entries {
		if flow.Sum(e.Postings) != 0 || e.Project != "wsp_prj_1" || e.Payment != "" || e.Subject == "" {
			t.Errorf("%+v is no transaction of a settlement", e)
		}
		for _, line := range e.Postings {
			if out[line.Account] += line.Amount; out[line.Account] == 0 {
				delete(out, line.Account)
			}
		}
	}
	return out
}

func TestASettlementTakesWhatItsLinesComeToAndWhatIsAvailable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		net, available flow.Kobo
		amount         flow.Kobo // 0: there is none
		want           map[flow.LedgerAccount]flow.Kobo
	}{
		{"a kobo", 1, 0, 1, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 1, flow.Settled: -1}},
		{"lines alone", 500, 0, 500, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 500, flow.Settled: -500}},
		{"lines and what is available", 500, 200, 700, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 500, flow.MerchantAvailable: 200, flow.Settled: -700}},
		{"what is available alone", 0, 200, 200, map[flow.LedgerAccount]flow.Kobo{flow.MerchantAvailable: 200, flow.Settled: -200}},
		{"refunds against what is available", -150, 200, 50, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: -150, flow.MerchantAvailable: 200, flow.Settled: -50}},
		{"lines against what was paid twice", 500, -200, 300, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 500, flow.MerchantAvailable: -200, flow.Settled: -300}},
		{"nothing", 0, 0, 0, nil},
		{"refunds eat it all", -500, 500, 0, nil},
		{"refunds eat more", -501, 500, 0, nil},
	} {
		open := flow.Settlement{ID: "wsp_stl_1", Project: "wsp_prj_1", SettlesOn: "2026-11-20", Status: flow.SettlementPending, To: payee}
		change, made := open.Close(flow.Gathered{Lines: 7, Net: c.net}, c.available, "2026-11-23", noon)
		if made != (c.amount > 0) {
			t.Errorf("%s: made %v", c.name, made)
		}
		if !made {
			if change.Settlement != nil || len(change.Entries) != 0 {
				t.Errorf("%s: %+v", c.name, change)
			}
			continue
		}
		b := change.Settlement
		if b.Amount != c.amount || b.Carried != c.available || b.Lines != 7 || b.SettlesOn != "2026-11-23" || !b.CreatedAt.Equal(noon) || b.Amount != c.net+b.Carried {
			t.Errorf("%s: %+v", c.name, b)
		}
		if got := moved(t, change); !maps.Equal(got, c.want) || change.Entries[0].Kind != flow.EntrySettle || change.Entries[0].Subject != "wsp_stl_1" {
			t.Errorf("%s: it posts %v", c.name, got)
		}
	}
}

func TestWhatABankSaysOfASettlement(t *testing.T) {
	t.Parallel()
	done := flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-1", At: noon.Add(time.Hour)}
	failed := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "back-1", Reason: "No such account."}
	back, timeless := failed, done
	back.Reverses, back.At, timeless.At = "out-1", noon.Add(2*time.Hour), time.UnixMilli(0)
	paid := map[flow.LedgerAccount]flow.Kobo{flow.Settled: 482_500, flow.RailClearing: -482_500}
	freed := map[flow.LedgerAccount]flow.Kobo{flow.Settled: 482_500, flow.MerchantAvailable: -482_500}
	returned := batch(flow.SettlementFailed)
	returned.Returned, returned.RailTransactionID = true, "out-1"
	nameless, before := returned, returned
	nameless.RailTransactionID, before.RailTransactionID = "", "out-0"
	for _, c := range []struct {
		name string
		at   flow.Settlement
		said flow.Disbursed
		to   flow.SettlementStatus // "": nothing changes
		kind flow.EntryKind
		want map[flow.LedgerAccount]flow.Kobo
		told flow.EventKind
	}{
		{"it is taken on", batch(flow.SettlementProcessing), flow.Disbursed{Status: flow.DisbursementPending}, "", "", nil, ""},
		{"nothing is said", batch(flow.SettlementProcessing), flow.Disbursed{}, "", "", nil, ""},
		{"it was sent", batch(flow.SettlementProcessing), done, flow.SettlementSucceeded, flow.EntrySettlePaid, paid, flow.SettlementSuccessKind},
		{"it was sent, nobody says when", batch(flow.SettlementProcessing), timeless, flow.SettlementSucceeded, flow.EntrySettlePaid, paid, flow.SettlementSuccessKind},
		{"it was sent, again", batch(flow.SettlementSucceeded), done, "", "", nil, ""},
		{"it cannot be sent", batch(flow.SettlementProcessing), failed, flow.SettlementFailed, flow.EntrySettleFailed, freed, flow.SettlementFailedKind},
		{"it cannot be sent, again", batch(flow.SettlementFailed), failed, "", "", nil, ""},
		{
			"it came back", batch(flow.SettlementSucceeded), back, flow.SettlementFailed, flow.EntrySettleReturned,
			map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 482_500, flow.MerchantAvailable: -482_500},
			flow.SettlementFailedKind,
		},
		{
			"it was sent after all", batch(flow.SettlementFailed), done, flow.SettlementSucceeded, flow.EntrySettlePaid,
			map[flow.LedgerAccount]flow.Kobo{flow.MerchantAvailable: 482_500, flow.RailClearing: -482_500},
			flow.SettlementSuccessKind,
		},
		{"it was sent, said after it came back", returned, done, "", "", nil, ""},
		{"it was sent, said after it came back without a name", nameless, done, "", "", nil, ""},
		{
			"it was sent once more after it came back", before, done, flow.SettlementSucceeded, flow.EntrySettlePaid,
			map[flow.LedgerAccount]flow.Kobo{flow.MerchantAvailable: 482_500, flow.RailClearing: -482_500},
			flow.SettlementSuccessKind,
		},
		{"it cannot be sent, said after it was", batch(flow.SettlementSucceeded), failed, "", "", nil, ""},
		{"it came back, again", returned, back, "", "", nil, ""},
	} {
		change, err := c.at.Heard(c.said, noon)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.to == "" {
			if change.Settlement != nil || len(change.Entries)+len(change.Facts) != 0 {
				t.Errorf("%s: %+v", c.name, change)
			}
			continue
		}
		if again := c.at.Returned; (change.Entries[0].Subject == "wsp_stl_1-out-1") != again || again && change.Settlement.Returned {
			t.Errorf("%s: it is booked as %s: %+v", c.name, change.Entries[0].Subject, change.Settlement)
		}
		b := change.Settlement
		if b == nil || b.Status != c.to || (b.Status == flow.SettlementSucceeded) != !b.DoneAt.IsZero() || (b.Status == flow.SettlementFailed) != (b.Failure != "") {
			t.Errorf("%s: %+v", c.name, b)
			continue
		}
		e := change.Entries[0]
		if got := moved(t, change); !maps.Equal(got, c.want) || e.Kind != c.kind || !e.At.Equal(noon) {
			t.Errorf("%s: it posts %v as %s", c.name, got, e.Kind)
		}
		var rail string // what moved at the bank has its name there, and its time
		var at time.Time
		if c.want[flow.RailClearing] != 0 {
			if rail, at = c.said.RailTransactionID, c.said.At; c.said.At.UnixMilli() == 0 {
				at = noon
			}
		}
		if e.RailID != rail || !e.ValueAt.Equal(at) || c.to == flow.SettlementSucceeded && (!b.DoneAt.Equal(at) || b.RailTransactionID != "out-1") {
			t.Errorf("%s: at the bank it is %s of %s: %+v", c.name, e.RailID, e.ValueAt, b)
		}
		if len(change.Facts) != 1 || change.Facts[0].Kind != c.told || change.Facts[0].Settlement.Status != c.to {
			t.Errorf("%s: the merchant is told %+v", c.name, change.Facts)
		}
	}
}

func TestANoticeThatAPayoutCameBackAlsoSaysThatItWasSent(t *testing.T) {
	t.Parallel()
	back := flow.Notice{Kind: flow.PayoutFailed, RailTransactionID: "back-1", Reverses: "out-1", Reference: "wsp_stl_1", PaidAt: noon}
	for status, entries := range map[flow.SettlementStatus]int{flow.SettlementProcessing: 2, flow.SettlementSucceeded: 1} {
		change, err := batch(status).HeardAll(back.Outcomes(), noon)
		if err != nil || change.Settlement.Status != flow.SettlementFailed || !change.Settlement.Returned || len(change.Entries) != entries || len(change.Facts) != entries {
			t.Errorf("of one that is %s: %+v, %v", status, change, err)
			continue
		}
		if got := moved(t, change)[flow.MerchantAvailable]; got != -482_500 {
			t.Errorf("of one that is %s: %d kobo are available", status, got)
		}
		again, err := change.Settlement.HeardAll(back.Outcomes(), noon)
		if err != nil || again.Settlement != nil {
			t.Errorf("said again: %+v, %v", again, err)
		}
	}
}

func TestASettlementIsSentOnceAndNeverAfterItsEnd(t *testing.T) {
	t.Parallel()
	for _, status := range flow.SettlementStatuses() {
		b := batch(status)
		change, err := b.Send(noon.Add(time.Minute))
		if illegal := (*flow.IllegalMove)(nil); b.Final() != errors.As(err, &illegal) {
			t.Errorf("one that is %s is sent: %v", status, err)
		}
		if err == nil && (change.Settlement.Tries != b.Tries+1 || change.Settlement.Status != flow.SettlementProcessing || len(change.Entries) != 0) {
			t.Errorf("%+v", change.Settlement)
		}
		if err == nil && b.Tries > 0 && !change.Settlement.SentAt.Equal(noon) {
			t.Errorf("when it was first sent changed to %v", change.Settlement.SentAt)
		}
	}
	order := batch(flow.SettlementPending).Order()
	if order.Kind != flow.DisbursePayout || order.Reference != "wsp_stl_1" || order.Amount != 482_500 || order.To != payee || len("Settlement "+flow.PrefixSettlement)+26 > 50 {
		t.Errorf("%+v", order)
	}
	asked := 0
	at, ok := batch(flow.SettlementProcessing).NextAsk(noon, false, true)
	for ok {
		asked++
		at, ok = batch(flow.SettlementProcessing).NextAsk(at, false, true)
	}
	if asked < 5 || at.Sub(noon) > 24*time.Hour {
		t.Errorf("the bank is asked %d times until %v", asked, at)
	}
}

func TestTheRecordOfASettlementAndOfItsLines(t *testing.T) {
	t.Parallel()
	b := batch(flow.SettlementSucceeded)
	b.Carried = -100
	for _, c := range []struct{ record, want any }{
		{flow.RecordSettlement(b, flow.Surroundings{}), `{"id":"wsp_stl_1","status":"SUCCEEDED","amountMinor":"482500","currency":"NGN","settlesOn":"2026-11-23","transactionCount":1,` +
			`"carriedMinor":"-100","bankAccount":{"bankCode":"999","bankName":"Till Test Bank","accountNumberMasked":"******6789","accountName":"ADA STORES LTD"},` +
			`"failureReason":null,"railTransactionId":"out-1","createdAt":"` + flow.Stamp(noon) + `","paidAt":"` + flow.Stamp(noon) + `","livemode":false}`},
		{
			flow.RecordSettlementLine(flow.SettlementLine{Kind: flow.EntryPayment, Subject: "wsp_pay_1", Payment: "wsp_pay_1", Net: 482_500, Fee: 17_500, At: noon}),
			`{"type":"payment","paymentId":"wsp_pay_1","refundId":null,"sessionId":null,"reference":null,"amountMinor":"500000","feeMinor":"17500","netMinor":"482500","at":"` + flow.Stamp(noon) + `"}`,
		},
		{
			flow.RecordSettlementLine(flow.SettlementLine{Kind: flow.EntryRefund, Subject: "wsp_rfd_1", Payment: "wsp_pay_1", Net: -500, At: noon}),
			`{"type":"refund","paymentId":"wsp_pay_1","refundId":"wsp_rfd_1","sessionId":null,"reference":null,"amountMinor":"-500","feeMinor":"0","netMinor":"-500","at":"` + flow.Stamp(noon) + `"}`,
		},
		{
			flow.RecordSettlementLine(flow.SettlementLine{Kind: flow.EntryRefundPaid, Subject: "wsp_rfd_1-2", Payment: "wsp_pay_1", Net: -500, At: noon}),
			`{"type":"refund","paymentId":"wsp_pay_1","refundId":"wsp_rfd_1","sessionId":null,"reference":null,"amountMinor":"-500","feeMinor":"0","netMinor":"-500","at":"` + flow.Stamp(noon) + `"}`,
		},
	} {
		text, err := json.Marshal(c.record)
		if err != nil || string(text) != c.want {
			t.Errorf("got  %s\nwant %s (%v)", text, c.want, err)
		}
	}
	if got := (flow.BankAccount{Number: "123"}).Masked(); got != "123" {
		t.Errorf("%q", got)
	}
}

func TestWhatIsDueOnADayIsWhatSettlesOnItOrBefore(t *testing.T) {
	t.Parallel()
	calendar, err := flow.NewCalendar("2026-11-24,Declared\n2026-11-25,Declared")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		came := from.Add(time.Duration(rapid.Int64Range(0, int64(80*24*time.Hour/time.Millisecond)).Draw(t, "came")) * time.Millisecond)
		day := flow.DateOf(from).Plus(rapid.IntRange(0, 90).Draw(t, "day"))
		if due := came.Before(calendar.DueBefore(day)); due != (calendar.SettlesOn(came) <= day) {
			t.Fatalf("what came at %v settles on %s; on %s it is due: %v", came, calendar.SettlesOn(came), day, due)
		}
	})
}

func TestMerchantsArePaidOutFromNineInLagosOnWorkingDays(t *testing.T) {
	t.Parallel()
	calendar, err := flow.NewCalendar("2026-11-24,Declared")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now  string
		last flow.Date
		next string
	}{
		{"2026-11-23T07:59:59Z", "2026-11-20", "2026-11-23T08:00:00Z"},
		{"2026-11-23T08:00:00Z", "2026-11-23", "2026-11-25T08:00:00Z"},
		{"2026-11-23T22:59:59Z", "2026-11-23", "2026-11-25T08:00:00Z"},
		{"2026-11-23T23:00:00Z", "2026-11-23", "2026-11-25T08:00:00Z"}, // a holiday in Lagos already
		{"2026-11-21T12:00:00Z", "2026-11-20", "2026-11-23T08:00:00Z"},
		{"2026-11-20T12:00:00Z", "2026-11-20", "2026-11-23T08:00:00Z"},
		{"2026-12-24T08:00:00Z", "2026-12-24", "2026-12-29T08:00:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		next := calendar.NextPayday(now)
		if got := next.UTC().Format(time.RFC3339); calendar.LastPayday(now) != c.last || got != c.next || calendar.LastPayday(next) != flow.DateOf(next) {
			t.Errorf("at %s merchants were paid out on %s, and next at %s; want %s, %s", c.now, calendar.LastPayday(now), got, c.last, c.next)
		}
	}
}

func TestNothingIsBelievedOfASettlementThatNobodyWasToldOf(t *testing.T) {
	for _, said := range []flow.DisbursementStatus{flow.DisbursementDone, flow.DisbursementFailed} {
		c, err := batch(flow.SettlementPending).Heard(flow.Disbursed{Status: said, RailTransactionID: "out-1", At: noon}, noon)
		if illegal := (*flow.IllegalMove)(nil); !errors.As(err, &illegal) || c.Settlement != nil || len(c.Entries) != 0 {
			t.Errorf("%s: %+v (%v)", said, c, err)
		}
	}
}
