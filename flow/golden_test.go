package flow_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/flow"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with the file that holds what it must be, in a test whose
// name make golden goes by.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestGolden") {
		t.Errorf("make golden does not write %s anew: it runs what is called TestGolden…", name)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if string(want) != got {
		t.Errorf("%s is not what it was; read the difference, then run with -update:\n%s", name, difference(string(want), got))
	}
}

// difference is the lines that only one of two texts has, in order.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out strings.Builder
	for i := 0; i < max(len(a), len(b)) && out.Len() < 2000; i++ {
		was, is := "", ""
		if i < len(a) {
			was = a[i]
		}
		if i < len(b) {
			is = b[i]
		}
		if was != is {
			out.WriteString("- " + was + "\n+ " + is + "\n")
		}
	}
	return out.String()
}

// noon is when these tests happen.
var noon = time.Date(2026, 3, 2, 12, 0, 0, int(345*time.Millisecond), time.UTC)

// open is a session over ₦5,000 that can be paid for a day.
func open() flow.Session {
	return flow.Session{
		ID: "wsp_sess_1", Project: "wsp_prj_1", Merchant: "Ada Stores", Mode: flow.InChat, Amount: 500_000, Status: flow.SessionPending,
		AllowedMethods: flow.Methods(), CustomerEmail: "payer@example.com", Policy: flow.DefaultPolicy(), EntryCode: "7K3M9QTX",
		CreatedAt: noon, ExpiresAt: noon.Add(24 * time.Hour),
	}
}

// trying is a live attempt of a session, half an hour long, with its instructions.
func trying(id string, m flow.Method) flow.Attempt {
	a := flow.Attempt{
		ID: flow.AttemptID(id), Session: "wsp_sess_1", Method: m, Reference: "wsp_ref_" + id, Amount: 500_000, Status: flow.AttemptActive,
		CreatedAt: noon, ExpiresAt: noon.Add(30 * time.Minute),
	}
	switch m {
	case flow.BankTransfer:
		a.Instructions = &flow.Instructions{BankName: "Wema", BankCode: "035", AccountNumber: "9012345678", AccountName: "ADA STORES/CHECKOUT", ExpiresAt: a.ExpiresAt}
	case flow.USSD:
		a.Instructions = &flow.Instructions{PaymentCode: "123", Banks: []flow.DialCode{{BankCode: "058", BankName: "GTBank", USSDCode: "*737*123#"}}, ExpiresAt: a.ExpiresAt}
	case flow.Card:
		a.Instructions = &flow.Instructions{CheckoutURL: "https://rail.example/c/1", ExpiresAt: a.ExpiresAt}
	}
	return a
}

// credit is money that the bank confirmed.
func credit(id string, amount flow.Kobo, at time.Time) flow.Notice {
	return flow.Notice{
		Kind: flow.Credit, RailTransactionID: id, Amount: amount, Channel: flow.BankTransfer, PaidAt: at, NIPSessionID: "000013",
		Payer: flow.PaidBy{Name: "OBI ADE", BankName: "GTBank", AccountNumberMasked: "******1234"},
	}
}

func TestGoldenTablesOfMoves(t *testing.T) {
	for name, text := range flow.Matrices() {
		golden(t, name+".txt", text)
	}
}

func TestTheDiagramDrawsEveryTable(t *testing.T) {
	text := flow.Mermaid()
	for _, want := range []string{"%% session\nstateDiagram-v2", "%% attempt", "%% talk", "PENDING --> PAID: pay", "ACTIVE --> SUPERSEDED: supersede", "verifying --> paid: pay"} {
		if !strings.Contains(text, want) {
			t.Errorf("the diagram lacks %q", want)
		}
	}
}
