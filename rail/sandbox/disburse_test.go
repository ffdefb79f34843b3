package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

// paid is a credit of ₦5,000 for an order, and its notice is heard.
func (w town) paid(t *testing.T, reference string) rail.TransferResult {
	t.Helper()
	ins := w.start(t, flow.BankTransfer, reference)
	made := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	w.hear(t)
	return made
}

// refund is an order to refund a credit.
func refund(reference string, amount flow.Kobo, credit string) flow.Disbursement {
	return flow.Disbursement{Kind: flow.DisburseRefund, Reference: reference, Amount: amount, Credit: credit, Narration: "Refund"}
}

// payout is an order to pay an account of the test bank.
func payout(reference string, amount flow.Kobo, account string) flow.Disbursement {
	return flow.Disbursement{
		Kind: flow.DisbursePayout, Reference: reference, Amount: amount, Narration: "Till " + reference,
		To: flow.BankAccount{BankCode: rail.TestBankCode, Number: account, Name: "ADA STORES"},
	}
}

func (w town) disburse(t *testing.T, d flow.Disbursement) flow.Disbursed {
	t.Helper()
	got, err := w.rail.Disburse(t.Context(), d)
	if err != nil {
		t.Fatalf("Disburse(%+v) = %v", d, err)
	}
	return got
}

// What is sent is told, asked and on the statement as the same.
func TestDisburse(t *testing.T) {
	w := openTown(t)
	credit := w.paid(t, "ref")
	for _, d := range []flow.Disbursement{refund("rf_1", 200_000, credit.RailTransactionID), payout("set_1", 300_000, "0123456789")} {
		if got := w.disburse(t, d); got.Status != flow.DisbursementPending || got.RailTransactionID != "" || got.At.IsZero() {
			t.Errorf("%s: Disburse = %+v; want it to be on its way", d.Reference, got)
		}
		n := w.hear(t)
		if n.Kind != flow.PaidOut || n.Reference != d.Reference || n.Amount != d.Amount || n.AccountNumber != d.To.Number || len(n.NIPSessionID) != 30 {
			t.Errorf("%s: notice %+v", d.Reference, n)
		}
		got, err := w.rail.Disbursed(t.Context(), d.Reference)
		if err != nil || got != (flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: n.RailTransactionID, At: n.PaidAt}) {
			t.Errorf("%s: Disbursed = %+v, %v of %+v", d.Reference, got, err, n)
		}
	}
	now := w.clock.Now()
	lines, err := w.rail.Statement(t.Context(), now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil || len(lines) != 3 || lines[0].Kind != flow.Credit || lines[1].Reference != "rf_1" || lines[2].Reference != "set_1" {
		t.Errorf("Statement = %+v, %v", lines, err)
	}
	if _, err := w.rail.Disburse(t.Context(), payout("set_2", 1, "0123456789")); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("more than there is = %v", err)
	}
}

// Where the clock of the test environment was moved and the bank's was not, the bank books
// what it is ordered at the moved time, as it does with transfers; it is there and told of
// by its own clock.
func TestABankOfItsOwnBooksAtTheTimeOfWhoOrders(t *testing.T) {
	w := openTown(t)
	moved := func() time.Time { return w.clock.Now().Add(72 * time.Hour) }
	ours, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: w.url, Secret: secret, Now: w.clock.Now, Day: moved})
	must(t, err)
	t.Cleanup(ours.Close)
	began := moved()
	at := func(what string, got time.Time) {
		t.Helper()
		if got.Before(began.Truncate(time.Millisecond)) || got.After(moved().Add(time.Minute)) {
			t.Errorf("%s is booked at %v; want %v", what, got, began)
		}
	}
	first, second := w.paid(t, "ref_1"), w.paid(t, "ref_2")
	w.rail = ours
	for _, d := range []flow.Disbursement{refund("rf_1", 200_000, first.RailTransactionID), payout("set_1", 300_000, "0123456789")} {
		at(string(d.Kind)+" that is on its way", w.disburse(t, d).At)
		at(string(d.Kind), w.hear(t).PaidAt)
		got, err := ours.Disbursed(t.Context(), d.Reference)
		must(t, err)
		at(string(d.Kind)+" that is done", got.At)
	}
	_, err = ours.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FatePending})
	must(t, err)
	w.disburse(t, refund("rf_2", 1_000, first.RailTransactionID))
	_, err = ours.SetConditions(t.Context(), rail.Conditions{Up: true})
	must(t, err)
	at("a refund that was held", w.hear(t).PaidAt)
	_, err = ours.Reverse(t.Context(), second.RailTransactionID)
	must(t, err)
	at("a reversal", w.hear(t).PaidAt)
	dialled := w.start(t, flow.USSD, "ref_3")
	must(t, ours.CompleteUSSD(t.Context(), dialled.PaymentCode, "success"))
	at("a payment by USSD", w.hear(t).PaidAt)
	lines, err := ours.Statement(t.Context(), began.Add(-time.Hour), began.Add(time.Hour))
	if err != nil || len(lines) != 5 {
		t.Errorf("the statement of that day has %d lines, %v", len(lines), err)
	}
}

// A day of many payments is paid out as one, and may be more than any payment is: what
// the bank says of it is believed all the same.
func TestAPayoutMayBeMoreThanAnyPayment(t *testing.T) {
	w := openTown(t)
	const most = 1_000_000_000_000 // kobo: of one transfer
	for i := range 2 {
		w.transfer(t, rail.Transfer{AccountNumber: w.start(t, flow.BankTransfer, "ref_"+strconv.Itoa(i)).AccountNumber, Amount: most})
		w.hear(t)
	}
	d := payout("set_1", most+1, "0123456789")
	w.disburse(t, d)
	if n := w.hear(t); n.Kind != flow.PaidOut || n.Amount != d.Amount {
		t.Errorf("notice %+v", n)
	}
	now := w.clock.Now()
	lines, err := w.rail.Statement(t.Context(), now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil || len(lines) != 3 || lines[2].Amount != d.Amount {
		t.Errorf("Statement = %+v, %v", lines, err)
	}
}

// The accounts of the test bank that exist to be tried, for payouts.
func TestPayoutAccounts(t *testing.T) {
	w := openTown(t)
	w.paid(t, "ref")
	for _, c := range []struct {
		account string
		want    error
		code    string
		known   bool // the bank took it on
	}{
		{"0000000001", nil, "", true},
		{"0000000002", rail.ErrRejected, "account_not_found", false},
		{"0000000003", rail.ErrUnavailable, "issuer_down", false},
		{"0000000004", rail.ErrUnknown, "", true},
		{"9999999999", nil, "", true},
	} {
		d := payout("set_"+c.account, 1_000, c.account)
		var got flow.Disbursed
		send := func(ctx context.Context) (err error) {
			got, err = w.rail.Disburse(ctx, d)
			return err
		}
		var err error
		if errors.Is(c.want, rail.ErrUnknown) {
			err = w.leaves(t, send)
		} else {
			err = send(t.Context())
		}
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.code) {
			t.Errorf("%s: Disburse = %+v, %v; want %v", c.account, got, err, c.want)
		}
		got, err = w.rail.Disbursed(t.Context(), d.Reference)
		if (err == nil) != c.known || !c.known && !errors.Is(err, rail.ErrNotFound) {
			t.Errorf("%s: Disbursed = %+v, %v", c.account, got, err)
		}
	}
	// The slow one is a payout like any other when it is waited for.
	w.clock.advance(time.Second)
	if got, err := w.rail.Disbursed(t.Context(), "set_0000000004"); err != nil || got.Status != flow.DisbursementPending {
		t.Errorf("slow: Disbursed = %+v, %v", got, err)
	}
	w.clock.advance(time.Minute)
	if got, err := w.rail.Disbursed(t.Context(), "set_0000000004"); err != nil || got.Status != flow.DisbursementDone {
		t.Errorf("slow: Disbursed = %+v, %v", got, err)
	}
}

// Why an order is refused is said in words that can be acted on.
func TestDisburseSaysWhy(t *testing.T) {
	w := openTown(t)
	credit := w.paid(t, "ref").RailTransactionID
	w.disburse(t, refund("rf", 400_000, credit))
	for code, d := range map[string]flow.Disbursement{
		"no_such_credit":                          refund("rf_a", 1, "ttb_none"),
		"exceeds_credit: of the credit":           refund("rf_b", 100_001, credit),
		"insufficient_funds: less than that lies": payout("set_a", 100_001, "0123456789"),
	} {
		if _, err := w.rail.Disburse(t.Context(), d); !errors.Is(err, rail.ErrRejected) || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	// A refusal of long ago is given again, though there is money by now.
	w.paid(t, "more")
	if _, err := w.rail.Disburse(t.Context(), payout("set_a", 100_001, "0123456789")); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("refused before: %v", err)
	}
	w.disburse(t, payout("set_b", 100_001, "0123456789"))
}

// Every bound of what the rail's door takes of orders to send.
func TestDisbursementsAreJudged(t *testing.T) {
	w := openTown(t)
	const to = `"bankCode":"999","accountNumber":"0123456789"`
	for _, c := range []struct {
		name, method, path, body string
		want                     int
		code                     string
	}{
		{"no kind", "POST", "disbursements", `{"reference":"r","amount":1,` + to + `}`, 400, "invalid_kind"},
		{"odd reference", "POST", "disbursements", `{"reference":"a b","kind":"payout","amount":1,` + to + `}`, 400, "invalid_reference"},
		{"fraction", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1.5,` + to + `}`, 400, "malformed_json"},
		{"endless", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1000000000000001,` + to + `}`, 422, "invalid_amount"},
		{"payout of a credit", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"credit":"c",` + to + `}`, 400, "invalid_credit"},
		{"refund of none", "POST", "disbursements", `{"reference":"r","kind":"refund","amount":1}`, 400, "invalid_credit"},
		{"refund elsewhere", "POST", "disbursements", `{"reference":"r","kind":"refund","amount":1,"credit":"c",` + to + `}`, 400, "invalid_account"},
		{"payout nowhere", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1}`, 400, "invalid_account"},
		{"payout to no bank", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"bankCode":"000","accountNumber":"0123456789"}`, 400, "invalid_account"},
		{"nine digits", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"bankCode":"999","accountNumber":"012345678"}`, 400, "invalid_account"},
		{"long narration", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"narration":"` + strings.Repeat("x", 51) + `",` + to + `}`, 400, "invalid_narration"},
		{"narration in naira", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"narration":"₦",` + to + `}`, 400, "invalid_narration"},
		{"long name", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"accountName":"` + strings.Repeat("x", 101) + `",` + to + `}`, 400, "invalid_name"},
		{"unknown field", "POST", "disbursements", `{"reference":"r","kind":"payout","amount":1,"pin":"1",` + to + `}`, 400, "malformed_json"},
		{"odd question", "GET", "disbursements/a%20b", "", 400, "invalid_reference"},
		{"unknown", "GET", "disbursements/none", "", 200, `"found":false`},
		{"no span", "GET", "statement", "", 400, "invalid_span"},
		{"backwards", "GET", "statement?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "", 400, "invalid_span"},
		{"no time", "GET", "statement?from=2026-01-01&to=2026-01-02T00:00:00Z", "", 400, "invalid_span"},
		{"odd after", "GET", "statement?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&after=x", "", 400, "invalid_span"},
		{"half an after", "GET", "statement?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&after=1", "", 400, "invalid_span"},
		{"empty day", "GET", "statement?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z", "", 200, `"items":[]`},
	} {
		status, text := send(t, c.method, w.url+"/bank/v1/"+c.path, c.body, "Authorization", "Bearer "+secret)
		if status != c.want || !strings.Contains(text, c.code) {
			t.Errorf("%s: %d %s; want %d %s", c.name, status, text, c.want, c.code)
		}
		if status, _ := send(t, c.method, w.url+"/bank/v1/"+c.path, c.body); status != 401 {
			t.Errorf("%s without the secret: %d", c.name, status)
		}
	}
	for _, body := range []string{`{"refunds":"burn"}`, `{"payouts":""}`, `{"refunds":1}`} {
		if status, text := send(t, "PUT", w.url+"/bank/test/conditions", body); status != 400 {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status, text := send(t, "PUT", w.url+"/bank/test/conditions", `{"refunds":"bounce"}`); status != 200 || !strings.Contains(text, `"refunds":"bounce","payouts":"ok"`) {
		t.Errorf("part of it: %d %s", status, text)
	}
}

// The call log has what was asked about money out, and of a refund the session
// that was paid; also when the bank did nothing.
func TestCallsAboutMoneyOut(t *testing.T) {
	w := openTown(t)
	credit := w.paid(t, "ref").RailTransactionID
	set := func(c rail.Conditions) {
		t.Helper()
		if _, err := w.rail.SetConditions(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	w.disburse(t, refund("rf_a", 1, credit))
	_, _ = w.rail.Disburse(t.Context(), refund("rf_b", 500_001, credit))
	_, _ = w.rail.Disbursed(t.Context(), "rf_a")
	mine := payout("set_a", 1, "0123456789")
	mine.Project = "prj_x"
	w.disburse(t, mine)
	_, _ = w.rail.Disbursed(t.Context(), "set_a")
	_, _ = w.rail.Disbursed(t.Context(), "set_none")
	_, _ = w.rail.Statement(t.Context(), w.clock.Now().Add(-time.Hour), w.clock.Now())
	set(rail.Conditions{})
	_, _ = w.rail.Disburse(t.Context(), refund("rf_c", 1, credit))
	set(rail.Conditions{Up: true, TimeoutAfterCommit: true})
	_ = w.leaves(t, func(ctx context.Context) error {
		_, err := w.rail.Disburse(ctx, refund("rf_d", 1, credit))
		return err
	})
	calls, err := w.rail.Calls(t.Context(), 0, 100)
	must(t, err)
	var got strings.Builder
	for _, c := range calls[1:] {
		fmt.Fprintln(&got, c.Operation, c.Reference, c.Session, c.Project, c.Outcome)
	}
	want := `disburse rf_a wsp_sess_x  ok
disburse rf_b wsp_sess_x  refused
find_disbursement rf_a wsp_sess_x  ok
disburse set_a  prj_x ok
find_disbursement set_a  prj_x ok
find_disbursement set_none   ok
statement    ok
disburse rf_c wsp_sess_x  down
disburse rf_d wsp_sess_x  timeout
`
	if got.String() != want {
		t.Errorf("calls:\n%s\nwant:\n%s", got.String(), want)
	}
}

// Notices of money out are lost and doubled like any others; asking finds all.
func TestMoneyOutInBadWeather(t *testing.T) {
	w := openTown(t)
	credit := w.paid(t, "ref").RailTransactionID
	for _, c := range []rail.Conditions{{Up: true, NotifyLossPercent: 100}, {Up: true, DuplicatePercent: 100}} {
		if _, err := w.rail.SetConditions(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		d := refund("rf_"+strconv.Itoa(c.DuplicatePercent), 1, credit)
		w.disburse(t, d)
		w.clock.advance(time.Second)
		got, err := w.rail.Disbursed(t.Context(), d.Reference)
		if err != nil || got.Status != flow.DisbursementDone {
			t.Fatalf("Disbursed = %+v, %v", got, err)
		}
		for range 2 * c.DuplicatePercent / 100 {
			if n := w.hear(t); n.RailTransactionID != got.RailTransactionID {
				t.Errorf("notice %+v of %+v", n, got)
			}
		}
		w.settled(t)
		w.silent(t)
	}
}

// A statement comes in pages, and each movement is on one of them, though many
// have the same time.
func TestStatementPages(t *testing.T) {
	w := openTown(t)
	at := w.clock.Now().Truncate(time.Second)
	err := w.bank.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1234)
		INSERT INTO movements (id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason, collects)
		SELECT 'id' || i, 'credit', '', '0123456789', i, 'bank_transfer', %d - i / 900, '', '', '', '', '', '' FROM n`, at.UnixMilli()))
	must(t, err)
	got, err := w.rail.Statement(t.Context(), at.Add(-time.Second), at.Add(time.Second))
	if err != nil || len(got) != 1234 {
		t.Fatalf("Statement = %d, %v", len(got), err)
	}
	seen := map[string]bool{}
	for i, n := range got {
		if seen[n.RailTransactionID] || i > 0 && n.PaidAt.Before(got[i-1].PaidAt) {
			t.Fatalf("line %d is %+v after %+v", i, n, got[i-1])
		}
		seen[n.RailTransactionID] = true
	}
	calls, err := w.rail.Calls(t.Context(), 0, 100)
	if err != nil || len(calls) != 3 {
		t.Errorf("%d calls, %v; want three pages", len(calls), err)
	}
}

// What waits for other weather is bounded, and all of it goes when that comes.
func TestHeldIsBounded(t *testing.T) {
	w := openTown(t)
	w.paid(t, "ref")
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, Payouts: rail.FatePending, NotifyLossPercent: 100}); err != nil {
		t.Fatal(err)
	}
	for i := range sandbox.MaxHeld {
		w.disburse(t, payout("set_"+strconv.Itoa(i), 1, "0123456789"))
	}
	over := payout("set_over", 1, "0123456789")
	if _, err := w.rail.Disburse(t.Context(), over); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("one more = %v; want ErrUnavailable", err)
	}
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, NotifyLossPercent: 100}); err != nil {
		t.Fatal(err)
	}
	w.disburse(t, over)
	w.clock.advance(time.Second)
	lines, err := w.rail.Statement(t.Context(), w.clock.Now().Add(-time.Hour), w.clock.Now().Add(time.Hour))
	if err != nil || len(lines) != sandbox.MaxHeld+2 {
		t.Errorf("%d lines, %v; want the credit and %d payouts", len(lines), err, sandbox.MaxHeld+1)
	}
}

// Orders outlive the bank's process: what was sent is known, what was held waits.
func TestDisbursementsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank.db")
	w := town{door: openDoor(t), clock: &clock{}}
	first := startProcess(t, file)
	w.rail = newRail(t, first.url, w.clock.Now, 0)
	must(t, w.rail.Register(t.Context(), w.door.url))
	credit := w.paid(t, "ref").RailTransactionID
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FatePending}); err != nil {
		t.Fatal(err)
	}
	w.disburse(t, refund("rf", 1_000, credit))
	w.disburse(t, payout("set", 2_000, "0123456789"))
	first.kill(t)

	second := startProcess(t, file)
	w.rail = newRail(t, second.url, w.clock.Now, 0)
	if got := w.disburse(t, refund("rf", 1_000, credit)); got.Status != flow.DisbursementPending {
		t.Errorf("held: %+v", got)
	}
	// What was told and not yet struck off is told again.
	hear := func(reference string) {
		t.Helper()
		for n := w.hear(t); n.Kind != flow.PaidOut || n.Reference != reference; n = w.hear(t) {
			if n.Reference != "ref" && n.Reference != "set" {
				t.Fatalf("notice %+v; want %s sent", n, reference)
			}
		}
	}
	hear("set")
	if got := w.disburse(t, payout("set", 2_000, "0123456789")); got.Status != flow.DisbursementDone {
		t.Errorf("sent: %+v", got)
	}
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true}); err != nil {
		t.Fatal(err)
	}
	hear("rf")
}

// Whoever reads the clock twice reads two times: a notice that was due a moment before its
// money had landed told of money on its way, and nobody ever of its end.
func TestANoticeTellsOfMoneyThatHasLanded(t *testing.T) {
	w := openTown(t)
	w.paid(t, "ref")
	w.clock.step.Store(int64(40 * time.Millisecond))
	for n := range 5 {
		d := payout(fmt.Sprintf("set_%d", n), 1, "0123456789")
		w.disburse(t, d)
		if told := w.hear(t); told.Kind != flow.PaidOut || told.Reference != d.Reference {
			t.Errorf("of %s it is told: %+v", d.Reference, told)
		}
	}
}
