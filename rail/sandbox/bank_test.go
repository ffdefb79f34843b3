package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/rail"
	"till/rail/sandbox"
)

func TestVirtualAccounts(t *testing.T) {
	w := openTown(t)
	seen := map[string]bool{}
	for i := range 50 {
		got := w.start(t, flow.BankTransfer, "ref-"+strconv.Itoa(i))
		if seen[got.AccountNumber] || len(got.AccountNumber) != 10 {
			t.Fatalf("account %q", got.AccountNumber)
		}
		seen[got.AccountNumber] = true
		check, err := rail.NUBANCheckDigit("999", got.AccountNumber[:9])
		if err != nil || strconv.Itoa(check) != got.AccountNumber[9:] {
			t.Errorf("account %s: check digit %d, %v", got.AccountNumber, check, err)
		}
		if got.BankName != "Till Test Bank" || got.BankCode != "999" || got.AccountName != "ADA STORES/CHECKOUT" {
			t.Errorf("instructions %+v", got)
		}
	}
}

func TestUSSDInstructions(t *testing.T) {
	w := openTown(t)
	got := w.start(t, flow.USSD, "ref")
	if !regexp.MustCompile(`^\d{8}$`).MatchString(got.PaymentCode) {
		t.Errorf("payment code %q", got.PaymentCode)
	}
	dial, ok := got.Dial("058")
	if !ok || dial.USSDCode != "*737*000*"+got.PaymentCode+"#" || len(got.Banks) != len(rail.DialCodes("1")) {
		t.Errorf("dial %+v, %v, of %d", dial, ok, len(got.Banks))
	}
}

func TestUSSDComplete(t *testing.T) {
	w := openTown(t)
	code := w.start(t, flow.USSD, "ref").PaymentCode
	if err := w.rail.CompleteUSSD(t.Context(), code, "perhaps"); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("outcome perhaps = %v", err)
	}
	if err := w.rail.CompleteUSSD(t.Context(), code, "success"); err != nil {
		t.Fatalf("CompleteUSSD = %v", err)
	}
	if n := w.hear(t); n.Kind != flow.Credit || n.Channel != flow.USSD || n.Amount != 500_000 || n.Reference != "ref" {
		t.Errorf("notice %+v", n)
	}
	for _, outcome := range []string{"success", "failed"} {
		if err := w.rail.CompleteUSSD(t.Context(), code, outcome); !errors.Is(err, rail.ErrRejected) || !strings.Contains(err.Error(), "already_completed") {
			t.Errorf("ended twice with %s = %v", outcome, err)
		}
	}
	if err := w.rail.CompleteUSSD(t.Context(), "00000000", "success"); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("unknown code = %v", err)
	}
}

func TestTransfer(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	made := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	if made.AmountMinor != "500000" || !regexp.MustCompile(`^999999\d{24}$`).MatchString(made.NIPSessionID) {
		t.Errorf("transfer %+v", made)
	}
	n := w.hear(t)
	if n.RailTransactionID != made.RailTransactionID || n.NIPSessionID != made.NIPSessionID || n.Reference != "ref" ||
		!n.PaidAt.Equal(made.ValueTime) || n.Payer.BankName != "Guaranty Trust Bank" || !strings.HasPrefix(n.Payer.AccountNumberMasked, "******") {
		t.Errorf("notice %+v of %+v", n, made)
	}
	nip := "000013251121042500123456789012"
	if got := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber, Amount: 1, NIPSessionID: nip}); got.NIPSessionID != nip || got.AmountMinor != "1" {
		t.Errorf("transfer %+v", got)
	}
}

// Who names no amount sends what is still due: after a part the rest, and after all
// of it the whole once more.
func TestTransferOfWhatIsDue(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	for _, step := range []struct {
		amount flow.Kobo
		want   string
	}{{amount: 200_000, want: "200000"}, {want: "300000"}, {want: "500000"}} {
		if got := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber, Amount: step.amount}); got.AmountMinor != step.want {
			t.Errorf("%+v comes to %s", step, got.AmountMinor)
		}
	}
	again := w.start(t, flow.BankTransfer, "again")
	w.transfer(t, rail.Transfer{AccountNumber: again.AccountNumber, Amount: 100_000, Returned: true})
	back := w.transfer(t, rail.Transfer{AccountNumber: again.AccountNumber, Amount: 100_000})
	if _, err := w.rail.Reverse(t.Context(), back.RailTransactionID); err != nil {
		t.Fatal(err)
	}
	if got := w.transfer(t, rail.Transfer{AccountNumber: again.AccountNumber}); got.AmountMinor != "500000" {
		t.Errorf("after what did not stay it comes to %s", got.AmountMinor)
	}
}

// Money that nobody asked for is still money: a notice without a reference.
func TestTransferToUnknownAccount(t *testing.T) {
	w := openTown(t)
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	if n := w.hear(t); n.Reference != "" || n.AccountNumber != "0123456789" || n.Amount != 7 {
		t.Errorf("notice %+v", n)
	}
	if _, err := w.rail.Transfer(t.Context(), rail.Transfer{AccountNumber: "0123456789"}); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("no amount, nothing asked = %v", err)
	}
}

// An account is paid to after its end as well: what late money comes to is not
// the bank's to judge.
func TestTransferAfterExpiry(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	w.clock.advance(48 * time.Hour)
	w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	if n := w.hear(t); !n.PaidAt.After(ins.ExpiresAt) {
		t.Errorf("paid at %s, expired %s", n.PaidAt, ins.ExpiresAt)
	}
}

func TestCopies(t *testing.T) {
	w := openTown(t)
	made := w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7, Copies: 5})
	for range 5 {
		if n := w.hear(t); n.RailTransactionID != made.RailTransactionID {
			t.Errorf("notice %+v", n)
		}
	}
	w.settled(t)
	w.silent(t)
}

func TestDropThenCheck(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	made := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber, Drop: true})
	w.settled(t)
	w.silent(t)
	got, err := w.rail.Check(t.Context(), "ref")
	if err != nil || len(got) != 1 || got[0].RailTransactionID != made.RailTransactionID {
		t.Errorf("Check = %+v, %v", got, err)
	}
}

// A delayed notice comes when the bank's clock says so; the money is there before.
func TestDelay(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber, DelayMs: 600_000})
	if got, err := w.rail.Check(t.Context(), "ref"); err != nil || len(got) != 1 {
		t.Fatalf("Check = %+v, %v", got, err)
	}
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 1})
	if n := w.hear(t); n.Reference != "" {
		t.Fatalf("the delayed notice came first: %+v", n)
	}
	w.silent(t)
	w.clock.advance(10 * time.Minute)
	if n := w.hear(t); n.Reference != "ref" {
		t.Errorf("notice %+v", n)
	}
}

// Anything but 2xx, a redirect included, is not an acknowledgement.
func TestRetryUntilAcknowledged(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond)
	w.door.answer(500, 302, 404, 503, 204)
	made := w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	for range 5 {
		if n := w.hear(t); n.RailTransactionID != made.RailTransactionID {
			t.Errorf("notice %+v", n)
		}
	}
	w.settled(t)
	w.silent(t)
}

func TestGivesUp(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Millisecond, time.Millisecond)
	w.door.answer(500, 500, 500)
	ins := w.start(t, flow.BankTransfer, "ref")
	w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	for range 3 {
		w.hear(t)
	}
	w.settled(t)
	w.silent(t)
	if n, err := w.bank.Owed("given_up"); err != nil || n != 1 {
		t.Errorf("given up: %d, %v", n, err)
	}
	if got, err := w.rail.Check(t.Context(), "ref"); err != nil || len(got) != 1 {
		t.Errorf("Check = %+v, %v", got, err)
	}
}

func TestLossAndDuplicates(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	set := func(c rail.Conditions) {
		if _, err := w.rail.SetConditions(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	set(rail.Conditions{Up: true, NotifyLossPercent: 100})
	w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	w.settled(t)
	w.silent(t)
	if got, err := w.rail.Check(t.Context(), "ref"); err != nil || len(got) != 1 {
		t.Errorf("Check = %+v, %v", got, err)
	}
	set(rail.Conditions{Up: true, DuplicatePercent: 100})
	made := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	for range 2 {
		if n := w.hear(t); n.RailTransactionID != made.RailTransactionID {
			t.Errorf("notice %+v", n)
		}
	}
	w.settled(t)
	w.silent(t)
}

func TestReversal(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	made := w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber})
	w.hear(t)
	back, err := w.rail.Reverse(t.Context(), made.RailTransactionID)
	if err != nil || back.RailTransactionID == made.RailTransactionID || back.AmountMinor != "500000" {
		t.Fatalf("Reverse = %+v, %v", back, err)
	}
	if n := w.hear(t); n.Kind != flow.Reversal || n.Reference != "ref" || n.NIPSessionID != made.NIPSessionID {
		t.Errorf("notice %+v", n)
	}
	for _, id := range []string{made.RailTransactionID, back.RailTransactionID, "ttb_none", ""} {
		if _, err := w.rail.Reverse(t.Context(), id); !errors.Is(err, rail.ErrRejected) {
			t.Errorf("Reverse(%q) = %v", id, err)
		}
	}
}

// The bank was never asked before the first order: its log has every call.
func TestCalls(t *testing.T) {
	w := openTown(t)
	if got, err := w.rail.Calls(t.Context(), 0, 100); err != nil || len(got) != 0 {
		t.Fatalf("Calls = %+v, %v", got, err)
	}
	w.start(t, flow.BankTransfer, "a")
	w.start(t, flow.USSD, "b")
	w.start(t, flow.Card, "c")
	again := w.order(flow.Card, "d")
	again.Again = true
	if _, err := w.rail.Start(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	over := w.order(flow.USSD, "e")
	over.Amount = 12_345
	_, _ = w.rail.Start(t.Context(), over)
	_, _ = w.rail.Check(t.Context(), "a")
	_, _ = w.rail.SetConditions(t.Context(), rail.Conditions{})
	_, _ = w.rail.Check(t.Context(), "a")
	_, _ = w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, TimeoutAfterCommit: true})
	_ = w.leaves(t, func(ctx context.Context) error {
		_, err := w.rail.Start(ctx, w.order(flow.Card, "f"))
		return err
	})
	var got []string
	calls, err := w.rail.Calls(t.Context(), 0, 100)
	must(t, err)
	for _, c := range calls {
		got = append(got, fmt.Sprintln(c.Operation, c.Reference, c.Session, c.Outcome))
	}
	want := `create_virtual_account a wsp_sess_x ok
create_ussd b wsp_sess_x ok
create_card_page c wsp_sess_x ok
find d  ok
create_card_page d wsp_sess_x ok
create_ussd e wsp_sess_x refused
check a wsp_sess_x ok
check a wsp_sess_x down
create_card_page f wsp_sess_x timeout
`
	if strings.Join(got, "") != want {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, ""), want)
	}
	if rest, err := w.rail.Calls(t.Context(), calls[6].Seq, 1); err != nil || len(rest) != 1 || rest[0] != calls[7] {
		t.Errorf("Calls after = %+v, %v", rest, err)
	}
}

// A check with many movements comes in pages.
func TestCheckPages(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.BankTransfer, "ref")
	for i := range 95 {
		w.transfer(t, rail.Transfer{AccountNumber: ins.AccountNumber, Amount: flow.Kobo(i + 1), Drop: true})
	}
	got, err := w.rail.Check(t.Context(), "ref")
	if err != nil || len(got) != 95 {
		t.Fatalf("Check = %d, %v", len(got), err)
	}
	for i, n := range got {
		if n.Amount != flow.Kobo(i+1) {
			t.Fatalf("movement %d is of %d", i, n.Amount)
		}
	}
}

// What nobody hears is bounded.
func TestOwedIsBounded(t *testing.T) {
	w := openTown(t)
	err := w.bank.Exec(fmt.Sprintf(`PRAGMA foreign_keys = 0; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO notices (movement, state, due) SELECT 0, 'owed', 9999999999999 FROM n`, sandbox.MaxOwed))
	must(t, err)
	if _, err := w.rail.Transfer(t.Context(), rail.Transfer{AccountNumber: "0123456789", Amount: 7}); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Transfer = %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := sandbox.Open(sandbox.Config{}); err == nil {
		t.Error("opened without a clock")
	}
	if _, err := sandbox.Open(sandbox.Config{Now: time.Now, File: filepath.Join(t.TempDir(), "none", "bank.db")}); err == nil {
		t.Error("opened a file in no directory")
	}
}

func TestServeRefusesOtherListeners(t *testing.T) {
	b, err := sandbox.Open(sandbox.Config{Now: time.Now})
	must(t, err)
	defer func() { _ = b.Close() }()
	for _, at := range [][2]string{{"tcp", "0.0.0.0:0"}, {"unix", filepath.Join(t.TempDir(), "s")}} {
		ln, err := net.Listen(at[0], at[1])
		must(t, err)
		if err := b.Serve(t.Context(), ln); !errors.Is(err, sandbox.ErrNotLoopback) {
			t.Errorf("Serve on %s = %v", at[1], err)
		}
		if _, err := ln.Accept(); err == nil {
			t.Error("the listener is still open")
		}
	}
}

func TestRunOnce(t *testing.T) {
	w := openTown(t)
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	w.hear(t) // it runs
	if err := w.bank.Run(t.Context()); !errors.Is(err, sandbox.ErrRunning) {
		t.Errorf("Run = %v", err)
	}
}

// Nothing is sent before someone registers, and then all of it.
func TestRegisterWakes(t *testing.T) {
	b, err := sandbox.Open(sandbox.Config{Now: time.Now})
	must(t, err)
	w := town{bank: b, url: serve(t, b), door: openDoor(t), clock: &clock{}}
	w.rail = newRail(t, w.url, w.clock.Now, 0)
	if _, err := w.rail.Start(t.Context(), w.order(flow.Card, "ref")); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Start before Register = %v", err)
	}
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	must(t, w.rail.Register(context.WithoutCancel(t.Context()), w.door.url))
	if n := w.hear(t); n.Amount != 7 {
		t.Errorf("notice %+v", n)
	}
}

// A Till that comes back is told at once, whatever the schedule said.
func TestRegisterAgainHurries(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Hour)
	w.door.answer(http.StatusBadGateway)
	w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7})
	w.hear(t)
	// What came of the try is kept after the answer was given.
	await.Until(t, "the try is kept", func() bool {
		tried, err := w.bank.Tried()
		must(t, err)
		return tried == 1
	})
	must(t, w.rail.Register(t.Context(), w.door.url))
	if n := w.hear(t); n.Amount != 7 {
		t.Errorf("notice %+v", n)
	}
}
