package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

const (
	verificationPath = "/v1/verification"
	identitiesPath   = verificationPath + "/identities"
)

// The bounds of what is verified.
const (
	accountDigits  = 10
	identityDigits = 11
	maxBankCode    = 10
	maxPurpose     = 200
	oldestBirth    = 1900
)

// bankRecord is an institution as merchants list it.
type bankRecord struct {
	Code         string  `json:"code"`
	Name         string  `json:"name"`
	ShortName    string  `json:"shortName"`
	Slug         string  `json:"slug"`
	NIPCode      *string `json:"nipCode"`
	SupportsUSSD bool    `json:"supportsUssd"`
	USSDBaseCode *string `json:"ussdBaseCode"`
}

// holderRecord is whose an account is. CheckDigitValid is null where the bank's
// code is none that the check digit is computed from.
type holderRecord struct {
	AccountNumber   string `json:"accountNumber"`
	AccountName     string `json:"accountName"`
	BankCode        string `json:"bankCode"`
	BankName        string `json:"bankName"`
	CheckDigitValid *bool  `json:"checkDigitValid"`
}

// listBanks is GET /v1/verification/banks: every institution there is, the test
// bank among them in test. The list is the same for everybody and rarely
// changes, so that a client may keep it and ask whether it still holds.
func (*Server) listBanks(c *call) error {
	q := c.query()
	supports := q.text("supports", maxBankCode)
	if supports != "" && supports != "ussd" {
		q.form.fail("supports", flow.CodeInvalidField, "supports must be: ussd.")
	}
	if err := q.done(); err != nil {
		return err
	}
	banks := rail.Banks()
	if c.key.Environment == flow.Test {
		banks = append(banks, rail.TestInstitution())
	}
	slices.SortStableFunc(banks, func(a, b flow.Bank) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	items := make([]bankRecord, 0, len(banks))
	for _, b := range banks {
		if supports == "" || b.USSD {
			items = append(items, recordBank(b))
		}
	}
	body, err := compose(page{Items: items})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`
	status := http.StatusOK
	if tagged(c.http.Get("If-None-Match"), tag) {
		status, body = http.StatusNotModified, nil
	}
	write(c.http.Context(), status, body)
	h := &c.http.Context().Response.Header
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache") // may be kept, and is asked about before it is used
	h.Add("Vary", "Authorization")              // test has one bank more
	return nil
}

func recordBank(b flow.Bank) bankRecord {
	return bankRecord{
		Code: b.Code, Name: b.Name, ShortName: b.Short, Slug: b.Slug, NIPCode: flow.OrNull(b.NIPCode), SupportsUSSD: b.USSD, USSDBaseCode: flow.OrNull(b.BaseDial),
	}
}

// tagged says whether an If-None-Match names an entity tag. The comparison is
// the weak one, as RFC 9110 §13.1.2 has it; none of our tags holds a comma.
func tagged(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// verifications are those of an environment.
func (s *Server) verifications(env flow.Environment) (*checkout.Verifications, error) {
	v, there := s.cfg.Verifications[env]
	if !there {
		return nil, flow.NotServed("No bank that verifies is connected to the " + string(env) + " environment.")
	}
	return v, nil
}

// resolveAccount is POST /v1/verification/accounts/resolve. It is a POST so that
// account numbers stand in no URL.
func (s *Server) resolveAccount(c *call) error {
	f := c.form(decodeRules{})
	account := f.account(c.key.Environment)
	if err := f.done(); err != nil {
		return err
	}
	bank, _ := rail.BankByCode(account.BankCode)
	v, err := s.verifications(c.key.Environment)
	if err != nil {
		return err
	}
	c.began = true
	name, err := v.ResolveAccount(c.ctx, account)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, holderRecord{
		AccountNumber: account.Number, AccountName: name, BankCode: bank.Code, BankName: bank.Name, CheckDigitValid: checkDigit(account),
	})
}

// account takes the number of a bank account and its bank's code.
func (f *form) account(env flow.Environment) rail.Account {
	a := rail.Account{Number: f.digits("accountNumber", accountDigits), BankCode: f.text("bankCode", text{required: true, most: maxBankCode})}
	bank, known := rail.BankByCode(a.BankCode)
	if a.BankCode != "" && (!known || bank.Code == rail.TestBankCode && env != flow.Test) {
		f.fail("bankCode", flow.CodeBankNotSupported, "No bank has the code %q. GET %s/banks lists them.", safeName(a.BankCode), verificationPath)
	}
	return a
}

// checkDigit says whether an account number has the check digit of CBN's rule:
// fifteen digits, the institution's six and the serial's nine, weighed 3, 7, 3.
// It is a hint alone: some wallets' numbers are telephone numbers.
func checkDigit(a rail.Account) *bool {
	serial, last := a.Number[:accountDigits-1], a.Number[accountDigits-1:]
	want, err := rail.NUBANCheckDigit(a.BankCode, serial)
	if err != nil {
		return nil
	}
	valid := strconv.Itoa(want) == last
	return &valid
}

// verifyIdentity is POST /v1/verification/identities.
func (s *Server) verifyIdentity(c *call) error {
	n, err := s.readVerification(c)
	if err != nil {
		return withoutNumbers(err)
	}
	v, err := s.verifications(c.key.Environment)
	if err != nil {
		return err
	}
	record := func(m checkout.Made) any { return v.Record(m.Verification) }
	return c.effect(http.StatusAccepted, record, identitiesPath, func(once checkout.Call) (checkout.Answer, error) {
		if strings.Contains(once.Key, n.Number.Reveal()) {
			return checkout.Answer{}, flow.Refuse(flow.CodeInvalidField, "Idempotency-Key must not hold the number: the key is kept, and a number never is.").At("Idempotency-Key")
		}
		return v.Begin(c.ctx, n, once)
	})
}

// readVerification reads who is to be looked up. The number comes out as a
// value that hides itself, and no refusal repeats it.
func (*Server) readVerification(c *call) (checkout.NewVerification, error) {
	f := c.form(decodeRules{})
	n := checkout.NewVerification{Key: c.key.ID}
	f.required("type")
	n.Type = flow.IdentityType(f.oneOf("type", flow.CodeInvalidField, string(flow.BVN), string(flow.NIN)))
	if number := f.digits("number", identityDigits); number != "" {
		n.Number, _ = flow.ReadIdentityNumber(number)
	}
	n.FirstName = f.text("firstName", text{required: true, most: maxName, said: true})
	n.LastName = f.text("lastName", text{required: true, most: maxName, said: true})
	n.DateOfBirth = f.birth("dateOfBirth", c.service.Now())
	n.Purpose = f.consent("consent")
	return n, f.done()
}

// required marks fields that may not be left out, before they are taken.
func (f *form) required(names ...string) { f.needed = append(f.needed, names...) }

// digits takes a string of so many digits. What was given is not repeated.
func (f *form) digits(name string, n int) string {
	v, there := f.take(name, true)
	if !there {
		return ""
	}
	if v.kind != kindString || len(v.text) != n || strings.Trim(v.text, "0123456789") != "" {
		f.fail(name, flow.CodeInvalidField, "%s must be a string of %d digits, with its leading zeros.", name, n)
		return ""
	}
	return v.text
}

// birth takes a date of birth.
func (f *form) birth(name string, now time.Time) string {
	v, there := f.take(name, false)
	if !there {
		return ""
	}
	at, err := time.Parse(time.DateOnly, v.text)
	if v.kind != kindString || err != nil || at.Year() < oldestBirth || at.After(now) {
		f.fail(name, flow.CodeInvalidField, "%s must be a day that is past, such as 1990-04-21.", name)
		return ""
	}
	return v.text
}

// consent takes what the person agreed to; without it nobody is looked up. The
// purpose is kept, so there is no room in it for a number.
func (f *form) consent(name string) string {
	v, there := f.take(name, true)
	if !there {
		return ""
	}
	if v.kind != kindObject {
		f.fail(name, flow.CodeInvalidField, "%s must be an object: {\"given\":true,\"purpose\":\"…\"}.", name)
		return ""
	}
	in := form{value: v}
	in.required("given")
	if !in.yes("given", false) && len(in.faults) == 0 {
		in.fail("given", flow.CodeInvalidField, "given must be true: nobody is looked up without their consent.")
	}
	purpose := in.text("purpose", text{required: true, most: maxPurpose, said: true})
	if digitsIn(purpose) >= identityDigits {
		in.fail("purpose", flow.CodeInvalidField, "purpose must not hold %d digits or more: it is kept, and a number never is.", identityDigits)
	}
	_ = in.done() // notes what is unknown; the faults are the whole request's
	for _, fault := range in.faults {
		f.fail(name+"."+fault.Field, fault.Code, "%s.%s", name, fault.Message)
	}
	return purpose
}

// digitsIn counts the digits of a text, of any script.
func digitsIn(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// longNumbers are what could be a BVN or a NIN.
var longNumbers = regexp.MustCompile(`[0-9]{11,}`)

// withoutNumbers hides what could be a number in a refusal: the name of an
// unknown field is repeated, and can be anything.
func withoutNumbers(err error) error {
	refused, ok := errors.AsType[*flow.Error](err)
	if !ok {
		return err
	}
	hidden := *refused
	hidden.Message = longNumbers.ReplaceAllString(hidden.Message, "[number]")
	hidden.Fields = slices.Clone(hidden.Fields)
	for i := range hidden.Fields {
		at := &hidden.Fields[i]
		at.Field, at.Message = longNumbers.ReplaceAllString(at.Field, "[number]"), longNumbers.ReplaceAllString(at.Message, "[number]")
	}
	return &hidden
}

// readIdentity is GET /v1/verification/identities/{id}.
func (s *Server) readIdentity(c *call) error {
	id, err := pathID[flow.VerificationID](c, flow.PrefixVerification, "verification")
	v, there := s.cfg.Verifications[c.key.Environment]
	if err == nil && !there {
		err = flow.Refuse(flow.CodeNotFound, "There is no such verification.")
	}
	if err != nil {
		return err
	}
	one, err := v.Verification(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, v.Record(one))
}
