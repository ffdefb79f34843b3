package rail

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"till/flow"
)

// The bank that exists only in test: the sandbox's virtual accounts are its.
const (
	TestBankCode = "999"
	TestBankName = "Till Test Bank"
	TestBankNIP  = "999999"
)

// ErrNUBAN is returned for what no account number can be made of.
var ErrNUBAN = errors.New("not a NUBAN institution and serial")

//go:embed banks.csv
var banksCSV string

// menu is the order in which a chat offers banks: by how many payers have one.
var menu = [...]string{"058", "044", "057", "033", "011", "214", "070", "232", "221"}

// institution is a row of the directory.
type institution struct {
	bank     flow.Bank
	merchant string // what its customers dial to pay a code, "" for none
}

// directory reads the embedded list once; nothing changes it afterwards.
var directory = sync.OnceValue(func() []institution {
	rows, err := readBanks(banksCSV)
	if err != nil {
		panic(err) // the list is part of the program: a bug, never input
	}
	return rows
})

// readBanks reads a list of institutions: the active ones that have a code.
func readBanks(text string) ([]institution, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the banks: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("read the banks: the list is empty")
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for _, name := range []string{"name", "short", "slug", "bank_code", "nip_code", "active", "ussd_short_code", "ussd_merchant_pay_template"} {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("read the banks: no column %q", name)
		}
	}
	var out []institution
	for _, row := range rows[1:] {
		if row[at["active"]] != "true" || row[at["bank_code"]] == "" {
			continue
		}
		merchant := row[at["ussd_merchant_pay_template"]]
		out = append(out, institution{
			bank: flow.Bank{
				Code: row[at["bank_code"]], Name: row[at["name"]], Short: row[at["short"]], Slug: row[at["slug"]], USSD: merchant != "",
				NIPCode: row[at["nip_code"]], BaseDial: row[at["ussd_short_code"]],
			},
			merchant: merchant,
		})
	}
	return out, nil
}

// Banks is every institution a payer can pay from, without the test bank. USSD
// is true only where the bank's customers can pay a merchant's code by USSD.
func Banks() []flow.Bank {
	rows := directory()
	out := make([]flow.Bank, len(rows))
	for i, row := range rows {
		out[i] = row.bank
	}
	return out
}

// TestInstitution is the bank that exists only in test.
func TestInstitution() flow.Bank {
	return flow.Bank{Code: TestBankCode, Name: TestBankName, Short: "Test Bank", Slug: "till-test-bank", NIPCode: TestBankNIP}
}

// BankByCode finds an institution by its bank code, the test bank included.
func BankByCode(code string) (flow.Bank, bool) {
	if code == TestBankCode {
		return TestInstitution(), true
	}
	row, ok := find(code)
	return row.bank, ok
}

// USSDMenu is the banks that a chat offers for USSD, the biggest first, at most
// nine so that one digit chooses.
func USSDMenu() []flow.Bank {
	out := make([]flow.Bank, 0, len(menu))
	for _, code := range menu {
		if row, ok := find(code); ok && row.bank.USSD {
			out = append(out, row.bank)
		}
	}
	return out
}

// DialCodes is what the customers of each USSD bank dial to pay a code, the
// banks of the chat's menu first. Only a pretend bank may make dial strings so;
// a live rail passes on what its provider answers.
func DialCodes(paymentCode string) []flow.DialCode {
	order := USSDMenu()
	for _, b := range Banks() {
		if b.USSD && !slices.Contains(menu[:], b.Code) {
			order = append(order, b)
		}
	}
	out := make([]flow.DialCode, 0, len(order))
	for _, b := range order {
		row, _ := find(b.Code)
		out = append(out, flow.DialCode{BankCode: b.Code, BankName: b.Name, USSDCode: strings.ReplaceAll(row.merchant, "{code}", paymentCode)})
	}
	return out
}

func find(code string) (institution, bool) {
	rows := directory()
	i := slices.IndexFunc(rows, func(r institution) bool { return r.bank.Code == code })
	if i < 0 {
		return institution{}, false
	}
	return rows[i], true
}

// nubanWeights are the weights of a NUBAN's fifteen digits, repeated.
var nubanWeights = [...]int{3, 7, 3}

// NUBANCheckDigit is the tenth digit of an account number: it follows the nine
// digits of serial at an institution, whose code has three digits (a deposit
// bank), five (other institutions) or six. A wrong check digit is a hint and
// never a reason to refuse: some wallets use phone numbers as account numbers.
// Error: ErrNUBAN.
func NUBANCheckDigit(institution, serial string) (int, error) {
	switch len(institution) {
	case 3:
		institution = "000" + institution
	case 5:
		institution = "9" + institution
	case 6:
	default:
		return 0, fmt.Errorf("%w: institution code of %d characters", ErrNUBAN, len(institution))
	}
	if len(serial) != 9 {
		return 0, fmt.Errorf("%w: serial of %d characters", ErrNUBAN, len(serial))
	}
	sum := 0
	for i, c := range []byte(institution + serial) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: %q is not a digit", ErrNUBAN, c)
		}
		sum += int(c-'0') * nubanWeights[i%len(nubanWeights)]
	}
	return (10 - sum%10) % 10, nil
}
