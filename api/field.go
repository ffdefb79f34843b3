package api

import (
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nyaruka/phonenumbers"

	"till/flow"
)

// The bounds of what a request may carry.
const (
	maxEmail       = 254
	maxEmailLocal  = 64
	maxLabel       = 63
	maxName        = 100
	maxDescription = 255
	maxReference   = 100
	maxURL         = 2048
	maxPairs       = 20
	maxPairName    = 40
	maxPairValue   = 500
	maxPhoneChars  = 32
	maxDate        = 40 // longer than one, so that a day with a time is told what a day looks like
	// maxExact is 2^53: above it a reader that keeps numbers as floats is wrong.
	maxExact = 1 << 53
)

// amount takes the field "amount", in kobo. It is judged as it was written: 5000.0 and
// 5e3 are refused although they are whole, because who writes them may be
// counting in naira.
func (f *form) amount(required bool, least, most flow.Kobo) flow.Kobo {
	const name = "amount"
	v, there := f.value.find(name)
	if there && v.kind == kindNull { // the general word for null would hide what is wrong
		f.known = append(f.known, name)
		f.fail(name, flow.CodeAmountNotInteger, "%s must be an integer number of kobo, not null. %s", name, readings(0, 0))
		return 0
	}
	if v, there = f.take(name, required); !there {
		return 0
	}
	n, plain := plainInteger(v)
	switch {
	case !plain:
		f.fail(name, flow.CodeAmountNotInteger,
			"%s must be an integer number of kobo: digits alone, without quotes, sign, point or exponent. %s", name, readings(guess(v)))
		return 0
	case n > maxExact:
		f.fail(name, flow.CodeAmountNotInteger, "%s is beyond 2^53 and cannot be carried exactly.", name)
		return 0
	case n < least:
		f.fail(name, flow.CodeAmountBelowMinimum, "%s must be at least %d (%s). %s", name, least, exact(least), reading(n))
		return 0
	case n > most:
		f.fail(name, flow.CodeAmountAboveMaximum, "%s must be at most %d (%s). %s", name, most, exact(most), reading(n))
		return 0
	}
	return n
}

// plainInteger reads a number that is written with digits alone.
func plainInteger(v value) (flow.Kobo, bool) {
	if v.kind != kindNumber || strings.ContainsAny(v.raw, "-.eE") {
		return 0, false
	}
	n, err := strconv.ParseInt(v.raw, 10, 64)
	if err != nil {
		return maxExact + 1, true // more digits than 64 bits hold
	}
	return flow.Kobo(n), true
}

// guess is what was probably meant by an amount that is not an integer: what is
// written, cut off at a whole kobo, read as kobo and read as naira. Zero is what
// cannot be read.
func guess(v value) (kobo, naira flow.Kobo) {
	rest := strings.NewReplacer(",", "", "_", "", " ", "").Replace(v.raw + v.text)
	rest = strings.TrimLeft(rest, "-+₦NG")
	whole, rest := leadingDigits(rest)
	var fraction string
	if after, there := strings.CutPrefix(rest, "."); there {
		fraction, rest = leadingDigits(after)
	}
	power := 0
	if rest != "" && strings.ContainsRune("eE", rune(rest[0])) {
		exponent, _ := leadingDigits(strings.TrimPrefix(rest[1:], "+"))
		n, err := strconv.Atoi(exponent)
		if err != nil || n > maxPower {
			return 0, 0
		}
		power = n
	}
	digits := whole + fraction
	return scaled(digits, power-len(fraction)), scaled(digits, power-len(fraction)+2)
}

// maxPower is the exponent beyond which no number fits into 64 bits.
const maxPower = 18

// leadingDigits cuts a text behind the digits that it begins with.
func leadingDigits(s string) (digits, rest string) {
	if i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// scaled is digits times a power of ten, without what comes behind the point;
// zero where that is no amount.
func scaled(digits string, power int) flow.Kobo {
	if power < 0 {
		digits, power = digits[:max(0, len(digits)+power)], 0
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", power), 10, 64)
	if err != nil || n > int64(flow.MaxAmount) {
		return 0
	}
	return flow.Kobo(n)
}

// reading says what an amount means in both units, because taking kobo for
// naira is the mistake that everyone makes once.
func reading(n flow.Kobo) string {
	if n > flow.MaxAmount {
		return readings(n, n/100)
	}
	return readings(n, n*100)
}

// readings says what an amount means and what else it may have been meant for;
// where neither is known, it shows it on amounts of its own, which nobody meant.
func readings(n, other flow.Kobo) string {
	meant := other.Minor() + " (" + exact(other) + ")?"
	switch {
	case n <= 0 && other <= 0:
		return "5000 = ₦50.00, and 500000 = ₦5,000.00."
	case n <= 0:
		return "Did you mean " + meant
	case other <= 0 || other > flow.MaxAmount:
		return n.Minor() + " = " + exact(n) + "."
	}
	return n.Minor() + " = " + exact(n) + "; did you mean " + meant
}

// exact is an amount in naira that always shows its kobo: ₦50.00.
func exact(n flow.Kobo) string {
	shown := n.Naira()
	if n.Whole() {
		shown += ".00"
	}
	return shown
}

// email takes one valid mailbox.
func (f *form) email(name string) string {
	v, there := f.take(name, true)
	if !there {
		return ""
	}
	if v.kind != kindString || !mailbox(v.text) {
		f.fail(name, flow.CodeInvalidEmail, "%s must be one e-mail address, such as ada@example.com.", name)
		return ""
	}
	return v.text
}

// mailbox says whether a text is one e-mail address and nothing else.
func mailbox(s string) bool {
	if len(s) > maxEmail || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || parsed.Name != "" {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	labels := strings.Split(s[at+1:], ".")
	if at > maxEmailLocal || len(labels) < 2 {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, domainChars) != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(last) >= 2 && strings.Trim(last, "0123456789") != ""
}

const domainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

// phone takes a telephone number in any form that Nigerians write.
func (f *form) phone(name string) flow.Phone {
	v, there := f.take(name, false)
	if !there {
		return ""
	}
	number, ok := flow.Phone(""), false
	if v.kind == kindString {
		number, ok = readPhone(v.text, phonenumbers.IsValidNumber)
	}
	if !ok {
		f.fail(name, flow.CodeInvalidPhone, "%s must be a phone number, such as 08031234567 or +2348031234567.", name)
	}
	return number
}

// readPhone normalises a number to E.164 digits: 080… is Nigerian.
func readPhone(s string, valid func(*phonenumbers.PhoneNumber) bool) (flow.Phone, bool) {
	if len(s) > maxPhoneChars || strings.Trim(s, "+0123456789 -().") != "" {
		return "", false
	}
	number, err := phonenumbers.Parse(s, "NG")
	if err != nil || !valid(number) {
		return "", false
	}
	full := phonenumbers.Format(number, phonenumbers.E164)
	return flow.Phone(strings.TrimPrefix(full, "+")), true
}

// metadata takes a merchant's own pairs.
func (f *form) metadata(name string) map[string]string {
	v, there := f.take(name, false)
	if !there {
		return nil
	}
	if v.kind != kindObject || len(v.members) > maxPairs {
		f.fail(name, flow.CodeInvalidField, "%s must be an object of at most %d pairs of strings.", name, maxPairs)
		return nil
	}
	out := make(map[string]string, len(v.members))
	for _, m := range v.members {
		at := name + "." + safeName(m.name)
		pairName, pairValue := text{most: maxPairName, said: true}, text{most: maxPairValue, multiline: true}
		switch {
		case pairName.judge(m.name) != "":
			f.fail(at, flow.CodeInvalidField, "The name of a pair %s.", pairName.judge(m.name))
		case m.value.kind != kindString:
			f.fail(at, flow.CodeInvalidField, "%s must be a string.", at)
		case m.value.text != "" && pairValue.judge(m.value.text) != "":
			f.fail(at, flow.CodeInvalidField, "%s %s.", at, pairValue.judge(m.value.text))
		default:
			out[m.name] = m.value.text
		}
	}
	return out
}

// reference takes a merchant's own reference.
func (f *form) reference(name string) string {
	s := f.text(name, text{most: maxReference})
	if s != "" && !isReference(s) {
		f.fail(name, flow.CodeInvalidField, "%s may hold A–Z, a–z, 0–9 and . _ = - alone, and more than dots.", name)
		return ""
	}
	return s
}

// isReference says whether a text can be a merchant's reference. Dots alone cannot:
// whoever asks by a reference writes it into a path, from which browsers and
// libraries drop . and .. (RFC 3986, 5.2.4).
func isReference(s string) bool {
	return strings.Trim(s, ".") != "" && len(s) <= maxReference && strings.Trim(s, domainChars+"._=") == ""
}

// callback takes a URL that a payer's browser may be sent to.
func (f *form) callback(name string, env flow.Environment) string {
	s := f.text(name, text{most: maxURL})
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		f.fail(name, flow.CodeInvalidField, "%s must be an absolute https URL.", name)
		return ""
	}
	if u.Scheme != "https" && (u.Scheme != "http" || env != flow.Test || !isLoopback(u.Hostname())) {
		f.fail(name, flow.CodeInvalidField, "%s must be https (in test, http to localhost too).", name)
		return ""
	}
	return s
}

// moment takes a time.
func (f *form) moment(name string) time.Time {
	s := f.text(name, text{most: 40})
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil || at.Year() < 2000 || at.Year() > 2200 {
		f.fail(name, flow.CodeInvalidField, "%s must be a time such as 2026-11-21T09:30:00Z.", name)
		return time.Time{}
	}
	return at.UTC()
}
