package bot

import (
	"slices"
	"strings"
)

// candidate is what could be an entry code in a message: eight characters of
// Crockford's alphabet, the way they were written.
type candidate struct {
	left, right string // four characters each
	dash, gap   bool   // a dash or a space between them
	after       bool   // the word "pay" or "code" stands before it
	whole       bool   // nothing else stands in the message
}

// place is where an entry code stands in a folded text, and how it was announced.
type place struct {
	from, to int
	after    bool // as one
	link     bool // and written as our links write it
}

// hidden is a folded text with a code that came by a link of ours made
// unreadable.
func (p place) hidden(folded string) string {
	if !p.link {
		return folded
	}
	return folded[:p.from] + "xxxx-xxxx" + folded[p.to:]
}

// entryCode finds an entry code in a folded text: the first one that is announced,
// or else the first. An ordinary word must never be taken for one, nor a part of what
// a seller calls an order: a wrong code costs the payer one of few tries.
func entryCode(folded, raw string) (code string, at place, found bool) {
	words := payWords(split(folded))
	after := false
	for i, w := range words {
		c := candidate{after: after}
		after = leads(w.text, after)
		if found && !c.after {
			continue
		}
		size := 1
		switch {
		case len(w.text) == 8:
			c.left, c.right = w.text[:4], w.text[4:]
		case len(w.text) == 4 && i+1 < len(words) && len(words[i+1].text) == 4:
			gap := words[i+1].gap
			c.left, c.right, size = w.text, words[i+1].text, 2
			c.dash = strings.Trim(gap, " -_") == "" && strings.Trim(gap, " ") != ""
			c.gap = strings.Trim(gap, " +") == ""
		default:
			continue
		}
		c.whole = size == len(words) || size == len(words)-1 && c.after
		if !c.crockford() || size == 2 && !c.dash && !c.gap || !c.after && inside(words, i, i+size) || !c.plausible(raw) {
			continue
		}
		last := words[i+size-1]
		code, found = codeChars.Replace(strings.ToUpper(c.left+c.right)), true
		if at = (place{w.at, last.at + len(last.text), c.after, c.linked()}); c.after {
			break
		}
	}
	return code, at, found
}

// inside says whether more of the same reference or amount stands right before the
// words of a code, or behind them: "JM-7K3M-9QTX", "2026 - NGN2,000".
func inside(words []word, from, to int) bool {
	const joins = "-_/"
	if from > 0 && strings.Trim(words[from].gap, joins) == "" {
		return true
	}
	if to == len(words) {
		return false
	}
	next := words[to]
	return strings.Trim(next.gap, joins) == "" || next.gap == "," && isDigits(next.text[:1])
}

// codeChars reads the letters that Crockford's alphabet leaves out as the
// digits they look like.
var codeChars = strings.NewReplacer("O", "0", "I", "1", "L", "1")

// payWords splits "pay7k3m" as if there were a space after pay.
func payWords(words []word) []word {
	out := make([]word, 0, len(words))
	for _, w := range words {
		rest, glued := strings.CutPrefix(w.text, "pay")
		if glued && (len(rest) == 4 || len(rest) == 8) && strings.ContainsAny(rest, digitChars) {
			out = append(out, word{text: "pay", gap: w.gap, at: w.at}, word{text: rest, gap: " ", at: w.at + len("pay")})
			continue
		}
		out = append(out, w)
	}
	return out
}

// leads says whether a word announces a code: "pay", "code", or one that may stand
// behind such a word.
func leads(word string, behind bool) bool {
	switch word {
	case "pay", "code":
		return true
	case "is", "the", "no", "number", "ref":
		return behind
	}
	return false
}

const (
	digitChars  = "0123456789"
	letterChars = "abcdefghijklmnopqrstvwxyz" // U is in no code
	looksDigit  = "ilo"
)

// crockford says whether all eight characters can stand in a code.
func (c candidate) crockford() bool {
	return len(c.left) == 4 && len(c.right) == 4 && strings.Trim(c.left+c.right, digitChars+letterChars) == ""
}

// linked says whether a code is written as our links write it: announced, with its
// dash, and in no letter that we give out none of. One of digits alone, of which there
// is one in ten thousand, can be half of a card.
func (c candidate) linked() bool {
	all := c.left + c.right
	return c.after && c.dash && strings.ContainsAny(all, letterChars) && !strings.ContainsAny(all, looksDigit+"u")
}

// plausible says whether this is meant as a code, by how it is written. The
// links that merchants give out carry the dashed form behind the word Pay,
// which always is; all other forms were typed by a person.
func (c candidate) plausible(raw string) bool {
	all := c.left + c.right
	digits := strings.ContainsAny(all, digitChars)
	letters := strings.ContainsAny(all, letterChars)
	for _, words := range []string{all, c.left + " " + c.right} { // "Pay TRANSFER"
		if _, menuWord := vocabulary().is[words]; menuWord {
			return false
		}
	}
	switch {
	case c.dash && digits && letters: // visa-1111 inside of a sentence is none
		return c.after || c.whole || mixed(c.left) || mixed(c.right)
	case c.dash && !letters: // 2025-2026 is no code, and 4111-1111 is half of a card
		return c.after
	case c.dash: // part-time is none either
		return c.after || !strings.ContainsAny(all, looksDigit) && (c.whole || shouted(raw, c))
	case !digits:
		return c.after && !strings.ContainsAny(all, looksDigit) && (!strings.ContainsAny(all, "aey") || shouted(raw, c))
	case !letters: // an amount, an account, half of a card
		return false
	case c.gap && !c.after && !c.whole:
		return mixed(c.left) && mixed(c.right)
	case c.gap:
		return (mixed(c.left) || mixed(c.right)) && !ordinary(c.left) && !ordinary(c.right)
	default:
		return (c.after || c.whole) && !amount(all)
	}
}

// shouted says whether the code is in upper case in a message that is not.
func shouted(raw string, c candidate) bool {
	left, right := strings.ToUpper(c.left), strings.ToUpper(c.right)
	i := strings.Index(raw, left)
	if i < 0 || !strings.Contains(raw[i:], right) {
		return false
	}
	rest := strings.Replace(strings.Replace(raw, left, "", 1), right, "", 1)
	return rest != strings.ToUpper(rest) || strings.Trim(rest, " -–—.!") == ""
}

// mixed says whether a half of a code has a letter and a digit, and is not a
// time or a place in a row: 10am, 22nd.
func mixed(half string) bool {
	if !strings.ContainsAny(half, digitChars) || !strings.ContainsAny(half, letterChars) {
		return false
	}
	tail := strings.TrimLeft(half, digitChars)
	return !slices.Contains([]string{"am", "pm", "st", "nd", "rd", "th", "k", "hr", "min", "gb", "mb"}, tail)
}

// ordinary says whether a half of a code is a word that people write next to
// numbers.
func ordinary(half string) bool {
	return slices.Contains([]string{
		"paid", "sent", "send", "done", "have", "card", "bank", "cash", "only", "from", "with", "this", "that", "them",
		"then", "they", "acct", "code", "each", "when", "will", "what", "were", "want", "need", "make", "made", "gave",
	}, half)
}

// amount says whether eight characters are an amount or a word with one: n5000000,
// paid5000, 5000nair.
func amount(all string) bool {
	word := strings.TrimRight(all, digitChars)
	if word == "n" || word == "ngn" || len(word) == 4 && ordinary(word) {
		return true
	}
	tail := strings.TrimLeft(all, digitChars)
	return slices.Contains([]string{"naira", "nair", "ngn", "cash", "only", "each", "bank", "card"}, tail)
}
