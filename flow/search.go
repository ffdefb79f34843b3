package flow

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// SearchKind is one thing that what is searched for can mean.
type SearchKind string

// The kinds of meaning.
const (
	ByID        SearchKind = "id"             // of a session, or of something of one
	ByEntryCode SearchKind = "entry code"     // eight characters, without the dash
	ByPhone     SearchKind = "phone"          // E.164 digits
	ByAccount   SearchKind = "account number" // ten digits that money is paid to
	ByAmount    SearchKind = "amount"
	ByEmail     SearchKind = "e-mail address"
	ByName      SearchKind = "name"
	ByReference SearchKind = "reference" // the merchant's, ours or the bank's
)

// SearchKey is one meaning of what is searched for.
type SearchKey struct {
	Kind   SearchKind
	Value  string   // of a name: nothing
	Words  []string // of a name: the beginnings of its words, as NameWords writes them
	Amount Kobo     // what is found must be of this amount; 0 for any
}

// Search is what somebody looks for: sessions that one of Keys means, opened at
// or after From and before Until. Without Keys it is every session of that time.
type Search struct {
	Keys        []SearchKey
	From, Until time.Time     // zero for no bound
	Status      SessionStatus // "" for any
}

// The bounds of a search.
const (
	maxSearch      = 200 // bytes
	maxSearchWords = 8
	maxSearchNames = 4
	leastName      = 2 // characters of the beginning of a name
	// aroundBefore and aroundAfter are what "4 pm" is taken for: people remember
	// when they paid, which is after the session was opened.
	aroundBefore = 2 * time.Hour
	aroundAfter  = time.Hour
)

// ReadSearch reads what somebody typed into the box. Every reading that makes
// sense is a key; what no reading fits leads to none, and Keys are then empty
// only if nothing but a time and a status was typed. now says which day
// "yesterday" was.
func ReadSearch(text string, now time.Time) Search {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), maxSearch)], "")), " ")
	words := strings.Fields(text)
	words, from, until := readTime(words, now.In(Lagos))
	words, status := readStatus(words)
	s := Search{From: from, Until: until, Status: status}
	if len(words) == 0 {
		return s
	}
	rest := strings.Join(words, " ")
	if id, ok := readID(rest); ok {
		s.Keys = []SearchKey{{Kind: ByID, Value: id}}
		return s
	}
	s.Keys = readKeys(words, rest)
	return s
}

// readStatus takes the status of a session out of words: "paid yesterday".
func readStatus(words []string) (others []string, status SessionStatus) {
	for _, w := range words {
		is := SessionStatus(strings.ToUpper(w))
		if is == "CANCELED" {
			is = SessionCancelled
		}
		if status == "" && slices.Contains(SessionStatuses(), is) {
			status = is
			continue
		}
		others = append(others, w)
	}
	return others, status
}

// readID reads an id of ours, however it was typed: also one that was copied with
// what stood around it, as a dot, a page's address or a line of a webhook.
func readID(text string) (string, bool) {
	prefixes := []string{
		PrefixSession, PrefixReference, PrefixAttempt, PrefixPayment, PrefixCharge, PrefixRefund, PrefixEvent, PrefixChat,
	}
	for _, id := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !strings.ContainsRune(ofReferences, r) }) {
		id = strings.TrimRight(id, ".")
		if strings.HasPrefix(id, PrefixRefund) { // a bank knows it by a name that goes on
			id, _, _ = strings.Cut(id, referenceCut)
		}
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(id, p) && len(id) > len(p) }) {
			return id, true
		}
	}
	return "", false
}

// ofReferences are the characters of ids and of merchants' references, in lower case.
const ofReferences = "abcdefghijklmnopqrstuvwxyz0123456789._=-"

// nipDigits is how long a transfer's session id is: what the payer's bank prints on
// its receipt, and we on ours.
const nipDigits = 30

func readKeys(words []string, rest string) []SearchKey {
	var keys []SearchKey
	add := func(k SearchKey) { keys = append(keys, k) }
	if code, ok := readCode(rest); ok {
		add(SearchKey{Kind: ByEntryCode, Value: code})
	}
	if phone, ok := ReadPhone(rest); ok {
		add(SearchKey{Kind: ByPhone, Value: string(phone)})
	}
	digits := strings.NewReplacer(" ", "", "-", "", "+", "").Replace(rest)
	number := allDigits(digits)
	if number && len(digits) == 10 {
		add(SearchKey{Kind: ByAccount, Value: digits})
	}
	others, amount := readAmount(words)
	if number && len(words) > 1 { // 080 3123 4567 is no amount with something beside it
		others, amount = nil, 0
	}
	if strings.Contains(rest, "@") {
		for _, w := range words {
			if at := strings.IndexByte(w, '@'); at > 0 && at < len(w)-1 {
				add(SearchKey{Kind: ByEmail, Value: FoldEmail(w), Amount: amount})
			}
		}
		return keys
	}
	if amount > 0 && len(others) == 0 {
		add(SearchKey{Kind: ByAmount, Amount: amount})
	}
	if names := named(others); !number && len(names) > 0 && !slices.ContainsFunc(names, tooShort) {
		add(SearchKey{Kind: ByName, Words: names[:min(len(names), maxSearchNames)], Amount: amount})
		if whole, ok := numbered(names, words); ok && amount > 0 {
			add(SearchKey{Kind: ByName, Words: whole})
		}
	}
	if number && len(digits) == nipDigits {
		rest = digits
	}
	add(SearchKey{Kind: ByReference, Value: rest})
	return keys
}

// named are the words of a name that it is looked up by. An initial is none of them:
// Ada B. Obi is found by the rest.
func named(words []string) []string {
	return slices.DeleteFunc(NameWords(strings.Join(words, " ")), func(n string) bool { return tooShort(n) && !allDigits(n) })
}

func tooShort(name string) bool { return len([]rune(name)) < leastName }

// numbered are the words of a name that a number belongs to, as in Shop 24. The
// number is shorter than the name's longest word, which the name is looked up by:
// one that is longer is an amount.
func numbered(names, words []string) ([]string, bool) {
	longest := 0
	for _, n := range names {
		longest = max(longest, len(n))
	}
	i := slices.IndexFunc(words, allDigits)
	if i < 0 || len(words[i]) < leastName || len(words[i]) >= longest {
		return nil, false
	}
	whole := named(words)
	return whole, len(whole) <= maxSearchNames
}

// readCode reads an entry code, as payers are shown it: XXXX-XXXX, with "Pay"
// before it or not. Letters and digits that look alike are taken for each other.
func readCode(text string) (string, bool) {
	text = strings.ToUpper(text)
	text = strings.TrimSpace(strings.TrimPrefix(text, "PAY "))
	if len(text) == 9 && (text[4] == '-' || text[4] == ' ') {
		text = text[:4] + text[5:]
	}
	text = strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(text)
	return text, len(text) == 8 && strings.Trim(text, crockford) == ""
}

// ReadPhone reads a telephone number in any form that Nigerians write.
func ReadPhone(text string) (Phone, bool) {
	digits := strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "").Replace(strings.TrimPrefix(text, "+"))
	if !allDigits(digits) {
		return "", false
	}
	switch digits = strings.TrimPrefix(digits, "00"); {
	case strings.HasPrefix(digits, "2340") && len(digits) == 14:
		return Phone("234" + digits[4:]), true
	case strings.HasPrefix(digits, "234") && len(digits) == 13:
		return Phone(digits), true
	case strings.HasPrefix(digits, "0") && len(digits) == 11:
		return Phone("234" + digits[1:]), true
	case len(digits) == 10 && strings.ContainsAny(digits[:1], "789"):
		return Phone("234" + digits), true
	case strings.HasPrefix(text, "+") && len(digits) >= 8 && len(digits) <= 15:
		return Phone(digits), true
	}
	return "", false
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// readAmount takes the first amount out of words: 4500, 4,500.00, ₦4500, N4500, 4500NGN,
// 4.5k, "4500 naira", and #4500, as whose keyboard has no ₦ writes it. It is 0 where
// there is none that a session can be of.
func readAmount(words []string) (others []string, amount Kobo) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if isNaira(word) && i+1 < len(words) && naira(words[i+1]) > 0 { // NGN 4500
			word = words[i+1]
			i++
		}
		found := naira(word)
		if amount != 0 || found == 0 {
			others = append(others, word)
			continue
		}
		amount = found
		if i+1 < len(words) && isNaira(words[i+1]) {
			i++
		}
	}
	return others, amount
}

func isNaira(word string) bool {
	return slices.Contains([]string{"naira", "ngn", "n", "₦", "#"}, strings.ToLower(word))
}

// naira reads an amount of naira, 0 where a text is none that a session can be
// of.
func naira(word string) Kobo {
	word = strings.ToLower(word)
	for _, sign := range []string{"₦", "#", "ngn", "n"} {
		word = strings.TrimPrefix(word, sign)
	}
	for _, sign := range []string{"naira", "ngn", "₦", "/-"} {
		word = strings.TrimSuffix(word, sign)
	}
	thousands := int64(1)
	if short, ok := strings.CutSuffix(word, "k"); ok {
		word, thousands = short, 1000
	}
	whole, part, _ := strings.Cut(strings.ReplaceAll(word, ",", ""), ".")
	if !allDigits(whole) || len(whole) > 9 || len(part) > 2 || part != "" && !allDigits(part) || strings.HasPrefix(whole, "0") {
		return 0
	}
	n, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if k := Kobo(n * thousands); err == nil && k >= MinAmount && k <= MaxAmount {
		return k
	}
	return 0
}

// unmarked is how letters of Nigerian names are looked for when the keyboard has
// no marks.
var unmarked = strings.NewReplacer(
	"á", "a", "à", "a", "â", "a", "ā", "a", "ä", "a", "é", "e", "è", "e", "ê", "e", "ẹ", "e", "ë", "e", "í", "i", "ì", "i", "î", "i", "ị", "i",
	"ï", "i", "ó", "o", "ò", "o", "ô", "o", "ọ", "o", "ö", "o", "ú", "u", "ù", "u", "û", "u", "ụ", "u", "ü", "u", "ṣ", "s", "ń", "n", "ǹ", "n",
	"ñ", "n", "ṅ", "n", "ɓ", "b", "ɗ", "d", "ƙ", "k", "ƴ", "y", "ç", "c", "’", "", "'", "", "ʼ", "")

// NameWords are the words of a name in lower case, without marks and each once:
// "Adé-Bọ́lá O'Neil" is ade, bola and oneil. There are at most eight.
func NameWords(name string) []string {
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) { // a mark that stands behind its letter
			return -1
		}
		return r
	}, unmarked.Replace(strings.ToLower(name)))
	var words []string
	for _, w := range strings.FieldsFunc(plain, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains(words, w) && len(words) < maxSearchWords {
			words = append(words, w)
		}
	}
	return words
}
