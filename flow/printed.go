package flow

import (
	"regexp"
	"strings"
)

// parted says whether a text stands between two groups of a card number of which it is
// said that they are cut as on the card itself: 4111/1111/1111/1111. Amounts, days, lists
// and references have these signs in them much more often than cards do, so that groups
// of other lengths, which a blank or a dash may stand between, are none here.
func parted(gap string) bool {
	switch gap {
	case "/", "_", ",", " / ", " _ ":
		return true
	}
	return false
}

// holdsPrinted says whether a text of plain digits holds a card number with such signs in it.
func holdsPrinted(text string) bool {
	if !strings.ContainsAny(text, "/_,") {
		return false
	}
	for i := 0; i < len(text); {
		if !asciiDigit(text[i]) {
			i++
			continue
		}
		groups, last, end := evenGroups(text, i)
		if printedCard(groups) {
			return true
		}
		if i = end; len(groups) > 1 {
			i = last // what follows may be parted by another sign
		}
	}
	return false
}

// evenGroups are the groups of digits from a digit on that one and the same sign parts, where
// the last of them begins and where it ends.
func evenGroups(text string, from int) (groups []string, last, end int) {
	sign := ""
	for last = from; ; {
		end = last
		for end < len(text) && asciiDigit(text[end]) {
			end++
		}
		groups = append(groups, text[last:end])
		next := end
		for next < len(text) && next-end <= maxGap && !asciiDigit(text[next]) {
			next++
		}
		gap := text[end:next]
		if next == len(text) || !parted(gap) || sign != "" && gap != sign {
			return groups, last, end
		}
		sign, last = gap, next
	}
}

// printedCard says whether groups are those of a card: four of four digits and the rest of a
// long number, or as American Express and Diners Club cut theirs, or each digit by itself.
// More of the same in a row are a list of something else.
func printedCard(groups []string) bool {
	for row := groups; len(row) > 0; {
		length, n := len(row[0]), 1
		for n < len(row) && len(row[n]) == length {
			n++
		}
		behind := func(k int) int { // how many digits the group has that stands so far behind
			if k < len(row) {
				return len(row[k])
			}
			return 0
		}
		switch {
		case length == 4 && n == 4 && !dated(row[:4]):
			if cardOf(row[:4]) || (behind(4) == 2 || behind(4) == 3) && cardOf(row[:5]) {
				return true
			}
		case length == 4 && n == 1 && behind(1) == 6 && (behind(2) == 4 || behind(2) == 5):
			if cardOf(row[:3]) {
				return true
			}
		case length == 1 && n >= minCardDigits && n <= maxCardDigits:
			if cardOf(row[:n]) {
				return true
			}
		}
		row = row[n:]
	}
	return false
}

func cardOf(groups []string) bool {
	digits := strings.Join(groups, "")
	return SchemeOf(digits) != NoScheme && LuhnHolds(digits)
}

// day is one of this time as it stands in references: its year, then its month and day.
var day = regexp.MustCompile(`^20[23]\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$`)

// dated says whether a day stands among groups: then they are a merchant's own number. Of
// ten thousand cards hardly one has one in it.
func dated(groups []string) bool {
	for i := range groups[1:] {
		if day.MatchString(groups[i] + groups[i+1]) {
			return true
		}
	}
	return false
}
