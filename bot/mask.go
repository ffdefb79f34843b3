package bot

import (
	"slices"
	"strings"

	"till/flow"
)

// What stands for a message that held a secret. The rest of the message is
// dropped with it: who types a card number often types its date and code too.
const (
	shownCard  = "card ending "
	shownOther = "a secret, not kept"
)

// secret finds a card number, or the name of a secret with digits after it, in
// a folded text, and returns what may be kept in place of the whole text.
func secret(folded string) (shown string, found bool) {
	if last, found := card(folded); found {
		return shownCard + last, true
	}
	if named(folded) {
		return shownOther, true
	}
	return "", false
}

// The digits that one card number can have, and how many signs may stand
// between two of them.
const (
	minCard = 15
	maxCard = 19
	maxGap  = 3
)

// separators may stand between the digits of one card number.
const separators = " -._/,*:;|+"

// card finds a card number: it begins where digits begin, and ends where they
// end or inside of a run that is too long to be anything else. So two account
// numbers next to each other are not taken for one card.
func card(folded string) (last string, found bool) {
	groups := digitGroups(folded)
	for i, first := range groups {
		for n := maxCard; n >= minCard; n-- {
			if len(first.digits) >= n && isCard(first.digits[:n]) {
				return first.digits[n-4 : n], true
			}
		}
		joined := []byte(first.digits)
		for _, next := range groups[i+1:] {
			if !next.joins || len(joined)+len(next.digits) > maxCard {
				break
			}
			joined = append(joined, next.digits...)
			if isCard(string(joined)) {
				return string(joined[len(joined)-4:]), true
			}
		}
	}
	return "", false
}

// group is a run of digits; joins says whether it can go on with the number
// that the run before belongs to.
type group struct {
	digits string
	joins  bool
}

func digitGroups(folded string) []group {
	var groups []group
	start, end := -1, 0
	take := func(to int) {
		if start < 0 {
			return
		}
		gap := folded[end:start]
		joins := len(groups) > 0 && len(gap) <= maxGap && strings.Trim(gap, separators) == ""
		groups = append(groups, group{digits: folded[start:to], joins: joins})
		start, end = -1, to
	}
	for i, r := range folded {
		switch digit := r >= '0' && r <= '9'; {
		case digit && start < 0:
			start = i
		case !digit:
			take(i)
		}
	}
	take(len(folded))
	return groups
}

// issuer is a range of card numbers by their first digits, and how long the
// cards of it are.
type issuer struct {
	from, to string
	lengths  []int
}

// issuers are the ranges that circulate here. Thirteen-digit Visa cards are
// left out: they died out, and phone numbers have thirteen digits too.
var issuers = []issuer{
	{"4", "4", []int{16, 18, 19}},               // Visa
	{"51", "55", []int{16}},                     // Mastercard
	{"2221", "2720", []int{16}},                 // Mastercard
	{"34", "34", []int{15}},                     // American Express
	{"37", "37", []int{15}},                     // American Express
	{"506", "506", []int{16, 17, 18, 19}},       // Verve
	{"507865", "507964", []int{16, 17, 18, 19}}, // Verve
	{"650", "650", []int{16, 17, 18, 19}},       // Verve
}

// isCard says whether digits are a card number of a known issuer.
func isCard(digits string) bool {
	known := slices.ContainsFunc(issuers, func(i issuer) bool {
		head := digits[:min(len(i.from), len(digits))]
		return head >= i.from && head <= i.to && slices.Contains(i.lengths, len(digits))
	})
	return known && flow.LuhnHolds(digits)
}

// secrets are the names of what nobody may be asked for.
var secrets = []string{"pin", "otp", "cvv", "cvc", "cvv2", "bvn", "password", "passcode"}

// maxSecretWords is how many words may stand between the name of a secret and
// its digits: "my pin for the card is 1234".
const maxSecretWords = 4

// named says whether digits follow the name of a secret.
func named(folded string) bool {
	words := split(folded)
	for i, w := range words {
		if !slices.Contains(secrets, w.text) {
			continue
		}
		for _, next := range words[i+1 : min(i+2+maxSecretWords, len(words))] {
			if len(next.text) >= 3 && strings.Trim(next.text, "0123456789") == "" {
				return true
			}
		}
	}
	return false
}
