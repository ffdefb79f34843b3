package bot_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"till/flow"
)

// tongue is what the copy of one language is held to.
type tongue struct {
	letters string    // the small letters of its alphabet
	marks   string    // the letters that carry marks of their own: Unicode has no one sign for both
	never   string    // how it says that a PIN is not asked for
	blame   []string  // words for something that went wrong, and for whose fault it is
	methods [2]string // what a bank transfer and a card are called
}

const latin = "abcdefghijklmnopqrstuvwxyz"

var tongues = map[flow.Lang]tongue{
	flow.English: {
		letters: latin, never: "never ask for", methods: [2]string{"Bank transfer", "Card"},
		blame: []string{"fail", "fails", "failed", "failure", "error", "errors", "invalid", "wrong", "incorrect", "mistake", "fault", "problem", "rejected", "denied"},
	},
	flow.Pidgin: {
		letters: latin, never: "no dey ask for", methods: [2]string{"Bank transfer", "Card"},
		blame: []string{"fail", "failed", "error", "wrong", "mistake", "fault", "wahala", "spoil", "problem", "scatter"},
	},
	flow.Hausa: {
		letters: "abɓcdɗefghijkƙlmnorstuwyƴz", never: "Ba ma taɓa neman", methods: [2]string{"Tura ta banki", "Kati"},
		blame: []string{"kuskure", "kuskuren", "laifi", "laifinku", "gaza", "matsala", "kasa", "ɓata"},
	},
	flow.Yoruba: {
		letters: "abdeẹfghijklmnoọprsṣtuwyàáèéìíòóùúǹńḿ", marks: "ẹọ", never: "kì í béèrè", methods: [2]string{"Fowó ránṣẹ́", "Káàdì"},
		blame: []string{"àṣìṣe", "kùnà", "ẹ̀bi", "ìṣòro", "àléébù", "burú"},
	},
	flow.Igbo: {
		letters: "abcdefghiịjklmnṅoọprstuụvwyz", never: "anaghị ajụ", methods: [2]string{"Nyefe ego", "Kaadị"},
		blame: []string{"njehie", "mmehie", "mmejọ", "dara", "ndahie", "hiere"},
	},
}

// borrowed are words that every language uses as they are: what a payer writes
// back, what a bank calls it, the languages.
var borrowed = []string{
	"MENU", "YES", "CANCEL", "STOP", "START", "RECEIPT", "Pay", "USSD", "PIN", "OTP", "Ref", "Bank", "session",
	"English", "Pidgin", "Hausa", "Yorùbá", "Igbo",
}

const (
	exampleCode = "7K3M-9QTX"
	punctuation = " \n.,:;?'()-·₦0123456789"
)

// Only letters of the language and plain punctuation stand in a message: no
// sign carries a meaning, nothing is bold, and every letter is written in the
// one way that Unicode composes it (NFC).
func TestPackIsSpelt(t *testing.T) {
	w := words(t)
	eachPack(t, func(t *testing.T, lang flow.Lang, texts map[string]string) {
		for key, text := range texts {
			spelt(t, lang, key, strings.ReplaceAll(literal(text), exampleCode, ""))
		}
		for month := time.January; month <= time.December; month++ { // and what a time is written with
			at := time.Date(2026, month, 21, 2*int(month)-1, 0, 0, 0, time.UTC)
			args := map[string]string{"until": flow.Stamp(at.Add(26*time.Hour + time.Minute)), "paid_at": flow.Stamp(at)}
			for _, key := range []string{"receipt", "reminder"} {
				spelt(t, lang, key, strings.ReplaceAll(w.Render(flow.Say{Key: key, Lang: lang, Args: args}, at), " WAT", ""))
			}
		}
	})
}

func spelt(t *testing.T, lang flow.Lang, key, text string) {
	t.Helper()
	tongue := tongues[lang]
	inside := func(r rune) bool { return unicode.IsLetter(r) || unicode.Is(unicode.M, r) }
	for _, r := range text {
		if !inside(r) && !strings.ContainsRune(punctuation, r) {
			t.Errorf("%s has the sign %q:\n%s", key, r, text)
		}
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !inside(r) }) {
		if slices.Contains(borrowed, word) {
			continue
		}
		letters := []rune(strings.ToLower(word))
		for i, r := range letters {
			switch marked := i > 0 && strings.ContainsRune(tongue.marks, letters[i-1]); {
			case r == '\u0300' && marked, r == '\u0301' && marked: // low and high, on letters with a dot
			case !strings.ContainsRune(tongue.letters, r):
				t.Errorf("%s has %q, which %s is not written with", key, word, lang)
			case lang == flow.Igbo && r == 'c' && (i+1 == len(letters) || letters[i+1] != 'h'):
				t.Errorf("%s has %q: c stands only in ch", key, word)
			}
		}
	}
}

// asking are the messages that ask for money.
var asking = []string{
	"summary", "method_unavailable", "method_down", "declined", "switch", "not_understood_choose", "not_understood_wait", "nothing_yet_choose",
	"lapsed", "pick_bank", "transfer_how", "ussd_how", "card_how", "part_paid", "bank_not_listed", "did_you_mean", "nudge", "reminder", "sent_back",
	"cancel_confirm", "parked", "not_understood_again", "no_rush", "terms",
}

func TestPackNamesMerchantAndAmount(t *testing.T) {
	eachPack(t, func(t *testing.T, lang flow.Lang, texts map[string]string) {
		for key, text := range texts {
			menu := "[bank_transfer?1 " + tongues[lang].methods[0] + "   ][ussd?2 USSD   ][card?3 " + tongues[lang].methods[1] + "]\n0 "
			offers := strings.Contains(text, "[bank_transfer?")
			if (offers || strings.Contains(text, "{until.")) && !slices.Contains(asking, key) {
				t.Errorf("%s asks for money and is not known to", key)
			}
			// These two offer one method; all others have the same menu.
			if offers && key != "bank_not_listed" && key != "did_you_mean" && !strings.Contains(text, menu) {
				t.Errorf("%s has a menu of its own:\n%s", key, text)
			}
			if slices.Contains(asking, key) && (!strings.Contains(text, "{merchant}") || !strings.Contains(text, "{amount}") && !strings.Contains(text, "{left}")) {
				t.Errorf("%s asks for money without saying for whom and how much:\n%s", key, text)
			}
		}
	})
}

// A method has one name, in the menu and on the receipt.
func TestPackNamesMethodsOnce(t *testing.T) {
	w := words(t)
	for _, lang := range flow.Langs() {
		t.Run(string(lang), func(t *testing.T) {
			for method, want := range map[flow.Method]string{flow.BankTransfer: tongues[lang].methods[0], flow.USSD: "USSD", flow.Card: tongues[lang].methods[1]} {
				got := w.Render(flow.Say{Key: "receipt", Lang: lang, Args: shop("method", string(method), "reference", "A1")}, noon)
				if !strings.Contains(got, "\n"+want+" · Ref A1\n") {
					t.Errorf("%s is written\n%s", method, got)
				}
			}
		})
	}
}

// A deadline is told as it is on the clock, and as how long that is from now.
func TestPackTellsDeadlinesTwice(t *testing.T) {
	eachPack(t, func(t *testing.T, _ flow.Lang, texts map[string]string) {
		for key, text := range texts {
			for _, at := range []string{"until", "by"} {
				clock := strings.Contains(text, "{"+at+".clock}") || strings.Contains(text, "{"+at+".full}")
				if clock != strings.Contains(text, "{"+at+".left}") {
					t.Errorf("%s tells %s in one way only:\n%s", key, at, text)
				}
			}
		}
	})
}

var (
	// address is something that a phone makes a link of.
	address = regexp.MustCompile(`(?i)\pL\.\pL|https?:|www|@`)
	// copied are the arguments that hold what a payer must copy.
	copied = []string{"text", "account", "accountNumber", "code", "link", "url"}
)

// What must be copied stands alone in its message, and nothing else is a link.
func TestPackKeepsApartWhatIsCopied(t *testing.T) {
	eachPack(t, func(t *testing.T, _ flow.Lang, texts map[string]string) {
		for key, text := range texts {
			if alone := key == "alone" || key == "agent"; alone != (text == "{text}" || text == "{text.lines}") {
				t.Errorf("%s is %q", key, text)
			} else if alone {
				continue
			}
			for _, m := range filled.FindAllStringSubmatch(text, -1) {
				if slices.Contains(copied, m[1]) {
					t.Errorf("%s shows %s among other words", key, m[1])
				}
			}
			if m := address.FindString(literal(text)); m != "" {
				t.Errorf("%s has the link %q", key, m)
			}
		}
	})
}

// Nobody is asked for a secret, and nobody is blamed for anything.
func TestPackNeverAsksForSecretsNorBlames(t *testing.T) {
	speaks := []string{"secret_typed", "summary", "who"} // of a PIN: to whoever typed one, at first, to whoever doubts us
	eachPack(t, func(t *testing.T, lang flow.Lang, texts map[string]string) {
		tongue := tongues[lang]
		for key, text := range texts {
			secret := regexp.MustCompile(`\b(PIN|OTP)\b`).MatchString(text)
			switch known := slices.Contains(speaks, key); {
			case secret != known:
				t.Errorf("%s speaks of secrets, or should:\n%s", key, text)
			case known && key != "secret_typed" && !regexp.MustCompile(tongue.never+`\P{P}*PIN\P{P}*OTP`).MatchString(text):
				t.Errorf("%s does not say that secrets are never asked for:\n%s", key, text)
			}
			lower := strings.ToLower(text)
			for _, never := range []string{"cvv", "cvc", "bvn", "password"} {
				if strings.Contains(lower, never) {
					t.Errorf("%s speaks of %s", key, never)
				}
			}
			for word := range strings.FieldsFuncSeq(lower, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) }) {
				if slices.Contains(tongue.blame, word) {
					t.Errorf("%s says %q", key, word)
				}
			}
		}
	})
}

// Who is to ask with a reference is given it: some of these words are copied, and stand alone.
func TestPackGivesTheReferenceThatItSpeaksOf(t *testing.T) {
	english := pack(t, flow.English)
	eachPack(t, func(t *testing.T, _ flow.Lang, texts map[string]string) {
		speaks := 0
		for key, text := range english {
			if !strings.Contains(text, "your reference") {
				continue
			}
			if speaks++; !strings.Contains(texts[key], "{reference}") {
				t.Errorf("%s speaks of a reference and gives none:\n%s", key, texts[key])
			}
		}
		if speaks == 0 {
			t.Error("no text speaks of a reference")
		}
	})
}
