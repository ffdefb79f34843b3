package flow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The bounds of a project's settings, in characters and digits.
const (
	maxDisplayName = 60
	maxBrand       = 40
	maxBrandDigits = 4 // a year, and no account or phone number
)

// Settings are what a merchant sets for all sessions of a project that do not say
// otherwise. They hold for sessions that are opened afterwards. Zero fields are as
// Till has them.
type Settings struct {
	DisplayName    string `json:"displayName,omitempty"` // what payers see; "" is the project's name
	Brand          string `json:"brand,omitempty"`       // a few words behind the name, once in each chat
	Lang           Lang   `json:"lang,omitempty"`        // of a chat whose payer has chosen none
	Underpayment   string `json:"underpayment,omitempty"`
	Overpayment    string `json:"overpayment,omitempty"`
	LatePayment    string `json:"latePayment,omitempty"`
	SessionMinutes int64  `json:"sessionMinutes,omitempty"`
}

// ErrSettings says that settings were changed since who changes them looked.
var ErrSettings = errors.New("the settings were changed meanwhile")

// revisionBytes are few enough that their hex is shorter than any card's number: forms
// that hold one are refused.
const revisionBytes = (minCardDigits - 1) / 2

// Revision names what is set, in hex: settings that are the same have the same.
func (s Settings) Revision() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", s))
	return hex.EncodeToString(sum[:revisionBytes])
}

// The choices of the policies, the first as Till has it.
var (
	Underpayments = []string{"hold", "accept", "refund"}
	Overpayments  = []string{"accept", "refund_excess"}
	LatePayments  = []string{"review", "accept", "refund"}
)

// The bounds of how long a session lasts, in minutes, and how long it does where
// nobody says.
const (
	MinSessionMinutes = 5
	MaxSessionMinutes = 10_080
	SessionMinutes    = 1_440
)

// address is what leads somewhere else, or could be taken for it.
var address = regexp.MustCompile(`[/@\\]|\.\pL|(?i:www)`)

// Check finds what is wrong with settings, in sentences.
func (s Settings) Check() []string {
	var wrong []string
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len([]rune(s.DisplayName)) > maxDisplayName || !oneLine(s.DisplayName) {
		fail("The name that payers see is one line of at most %d characters.", maxDisplayName)
	}
	switch {
	case len([]rune(s.Brand)) > maxBrand || !oneLine(s.Brand):
		fail("The words behind the name are one line of at most %d characters.", maxBrand)
	case address.MatchString(s.Brand) || digits(s.Brand) > maxBrandDigits:
		fail("The words behind the name hold no link, no address and at most %d digits: payers must not take them for where to pay.", maxBrandDigits)
	case strings.ContainsAny(s.Brand, "*_~`{}[]()"):
		fail("The words behind the name hold letters, digits, commas and dashes alone.")
	}
	if s.Lang != "" && !slices.Contains(Langs(), s.Lang) {
		fail("There is no language %q.", s.Lang)
	}
	for _, p := range []struct {
		name, is string
		of       []string
	}{{"too little money", s.Underpayment, Underpayments}, {"too much money", s.Overpayment, Overpayments}, {"late money", s.LatePayment, LatePayments}} {
		if p.is != "" && !slices.Contains(p.of, p.is) {
			fail("Of %s choose one of: %s.", p.name, strings.Join(p.of, ", "))
		}
	}
	if m := s.SessionMinutes; m != 0 && (m < MinSessionMinutes || m > MaxSessionMinutes) {
		fail("A session lasts %d to %d minutes.", MinSessionMinutes, MaxSessionMinutes)
	}
	return wrong
}

func oneLine(s string) bool {
	return s == strings.TrimSpace(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func digits(s string) (n int) {
	for _, r := range s {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// Policy is what happens in the sessions of a project that do not say otherwise.
func (s Settings) Policy() Policy {
	p := DefaultPolicy()
	for _, set := range []struct {
		to *string
		is string
	}{{&p.Underpayment, s.Underpayment}, {&p.Overpayment, s.Overpayment}, {&p.LatePayment, s.LatePayment}} {
		if set.is != "" {
			*set.to = set.is
		}
	}
	p.Lang, p.Brand = s.Lang, s.Brand
	return p
}

// Minutes is how long a session of a project lasts that does not say.
func (s Settings) Minutes() int64 {
	return cmp.Or(s.SessionMinutes, SessionMinutes)
}

// Shown is the name of a project that payers see.
func (p Project) Shown() string {
	if p.Settings.DisplayName != "" {
		return p.Settings.DisplayName
	}
	return p.Name
}
