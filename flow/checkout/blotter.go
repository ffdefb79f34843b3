package checkout

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"till/flow"
	"till/flow/replay"
)

// blotter puts a name that says nothing in the place of texts that say who
// somebody is. It replaces whole words alone: a part of another word, or of a
// longer number, is something else.
type blotter struct {
	ids   []string // numbers, addresses and ids, the longest first: nobody else's wherever they stand
	who   []string // these, and names
	words []string // these, and what else was written about somebody
	as    string
}

// about are the texts that are about a payer.
type about struct {
	names    []string // of each, any word says who they are
	who      []string // numbers, addresses and ids
	accounts []string // masked, that they paid from
	written  []string // about them and what they buy: a word of it says nothing by itself
}

// paid adds who payments came from.
func (a *about) paid(list []flow.Payment) {
	for _, p := range list {
		a.names, a.accounts = append(a.names, p.Payer.Name), append(a.accounts, p.Payer.AccountNumberMasked)
	}
}

// shortestBlot is how many characters a text has at least that is replaced: what
// is shorter says nothing by itself.
const shortestBlot = 3

// newBlotter makes a blotter of texts and of the words of names among them. A
// word of a name counts where it begins with a capital letter, as names do: else a
// payer called "card" would take the card out of what was decided.
func newBlotter(t about, as string) *blotter {
	b := &blotter{ids: longestFirst(t.who), as: as}
	b.who = longestFirst(slices.Concat(t.who, t.names, wordsOfNames(t.names)))
	b.words = longestFirst(slices.Concat(b.who, t.accounts, t.written))
	return b
}

// sparing is a blotter that leaves whatever stands in texts of somebody else's, but for
// what is nobody else's.
func (b *blotter) sparing(texts []string) *blotter {
	out := *b
	spare := func(w string) bool {
		return !slices.Contains(b.ids, w) && slices.ContainsFunc(texts, func(text string) bool { return replaceWord(text, w, "") != text })
	}
	out.who = slices.DeleteFunc(slices.Clone(b.who), spare)
	out.words = slices.DeleteFunc(slices.Clone(b.words), spare)
	return &out
}

// wordsOfNames are the words of names that say by themselves whose they are.
func wordsOfNames(names []string) (words []string) {
	for _, name := range names {
		list := strings.Fields(name)
		if Forgotten(name) || len(list) > maxNameWords {
			continue
		}
		for _, w := range list {
			if first, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(first) && utf8.RuneCountInString(w) >= shortestBlot {
				words = append(words, w)
			}
		}
	}
	return words
}

// longestFirst are the texts that can be told from the words of the program.
func longestFirst(texts []string) (words []string) {
	for _, t := range texts {
		if t = strings.TrimSpace(t); telling(t) && !strings.HasPrefix(t, prefixForgotten) {
			words = append(words, t)
		}
	}
	slices.SortFunc(words, func(x, y string) int {
		if len(x) != len(y) {
			return len(y) - len(x)
		}
		return strings.Compare(x, y)
	})
	return slices.Compact(words)
}

// maxNameWords is how many words a name has at most: what has more is a sentence.
const maxNameWords = 5

// telling says whether a text can be told from the words of the program.
func telling(t string) bool {
	if utf8.RuneCountInString(t) < shortestBlot {
		return false
	}
	return strings.ContainsAny(t, "@ /0123456789•") || strings.IndexFunc(t, unicode.IsUpper) >= 0 || strings.IndexFunc(t, func(r rune) bool { return r > unicode.MaxASCII }) >= 0
}

// text is a text with the name in the place of the words.
func (b *blotter) text(t string) string { return b.without(t, b.words) }

// person is a text with the name in the place of who somebody is, and of nothing
// else: for a merchant's reference and an account's name, by which money is found.
// Metadata often hold the one, as an order's number, or the merchant's own name.
func (b *blotter) person(t string) string { return b.without(t, b.who) }

func (b *blotter) without(t string, words []string) string {
	for _, w := range words {
		t = replaceWord(t, w, b.as)
	}
	return t
}

// json is text for the texts in JSON. Numbers and the names of members are the
// program's, and so is what it reads again: a merchant who keeps {"total": "700000",
// "currency": "NGN"} about somebody has not written these about them everywhere.
func (b *blotter) json(t string) string {
	var out strings.Builder
	member := ""
	for {
		at := strings.IndexByte(t, '"')
		if at < 0 {
			out.WriteString(t)
			return out.String()
		}
		end := at + 1
		for ; end < len(t) && t[end] != '"'; end++ {
			if t[end] == '\\' {
				end++
			}
		}
		end = min(end+1, len(t))
		quoted, value := t[at:end], ""
		out.WriteString(t[:at])
		t = t[end:]
		if err := json.Unmarshal([]byte(quoted), &value); err != nil {
			out.WriteString(quoted) // no JSON is like that
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(t, " \n"), ":") {
			member = strings.ToLower(value)
			out.WriteString(quoted)
			continue
		}
		if left := b.value(member, value); left != value {
			if text, err := json.Marshal(left); err == nil {
				quoted = string(text)
			}
		}
		out.WriteString(quoted)
	}
}

// value is what a member of an object has in the place of a text.
func (b *blotter) value(member, t string) string {
	switch member {
	case "reference", "merchantreference", "accountname":
		return b.person(t)
	case "merchant", "bankname", "railtransactionid", "reverses": // by the last two money is found and told apart
		return t
	case "name", "customername", "accountnumbermasked", "customeremail", "customerphone", "text", "description", "order", "reason", "resolvedwhy":
		return b.text(t)
	}
	if coded(t) {
		return b.without(t, b.ids)
	}
	return b.text(t)
}

// coded says whether a text is one that the program reads: a time, an amount, a
// state, a bank's code or an id. What people write has small letters, or blanks.
func coded(t string) bool {
	return !strings.ContainsFunc(t, func(r rune) bool { return unicode.IsLower(r) || unicode.IsSpace(r) }) || theProgramsID.MatchString(t)
}

// theProgramsID is how ids are written.
var theProgramsID = regexp.MustCompile(`^[a-z]+(_[a-z]+)*_[0-9a-z]{26}$`)

// outcome is json for what was decided in a chat. Who somebody is came into a message
// by what was filled into it: in its text that alone is replaced, for a replay
// writes the rest of the sentence again, whatever words of it are also a customer's.
func (b *blotter) outcome(data []byte) ([]byte, error) {
	var was, left replay.Outcome
	if err := json.Unmarshal(data, &was); err != nil {
		return nil, fmt.Errorf("read a decision: %w", err)
	}
	if err := json.Unmarshal([]byte(b.json(string(data))), &left); err != nil {
		return nil, fmt.Errorf("read a decision: %w", err)
	}
	for i := range was.Texts {
		if i < len(was.Says) && i < len(left.Says) {
			left.Texts[i].Text = said(was.Texts[i].Text, was.Says[i].Args, left.Says[i].Args)
		}
	}
	return json.Marshal(left)
}

// said is the text of a message after what was filled into it was changed. Where that
// may as well be the sentence's own words, or stands there otherwise than it was given,
// as what was too long does, nothing of the text is kept.
func said(text string, was, left map[string]string) string {
	changed := slices.DeleteFunc(slices.Collect(maps.Keys(was)), func(name string) bool { return was[name] == left[name] })
	slices.SortFunc(changed, func(x, y string) int { return len(was[y]) - len(was[x]) })
	for _, name := range changed {
		if strings.ContainsAny(was[name], "0123456789") || len(strings.Fields(was[name])) >= sentenceWords {
			text = strings.ReplaceAll(text, was[name], left[name])
		}
	}
	for _, name := range changed {
		for w := range strings.FieldsSeq(was[name]) {
			if utf8.RuneCountInString(w) >= shortestBlot && !strings.Contains(left[name], w) && strings.Contains(text, w) {
				return replay.Blank(text)
			}
		}
	}
	return text
}

// sentenceWords is how many words something has at least that no sentence of ours has
// by chance.
const sentenceWords = 3

// replaceWord replaces a text where it is no part of a longer word or number.
func replaceWord(t, word, by string) string {
	if word == "" || !strings.Contains(t, word) {
		return t
	}
	var out strings.Builder
	for rest, before := t, rune(0); ; {
		i := strings.Index(rest, word)
		if i < 0 {
			out.WriteString(rest)
			return out.String()
		}
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(rest[:i])
		}
		after, _ := utf8.DecodeRuneInString(rest[i+len(word):])
		first, _ := utf8.DecodeRuneInString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		out.WriteString(rest[:i])
		if partOfWord(before) && partOfWord(first) || partOfWord(after) && partOfWord(last) {
			out.WriteString(word)
		} else {
			out.WriteString(by)
		}
		rest, before = rest[i+len(word):], last
	}
}

func partOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
