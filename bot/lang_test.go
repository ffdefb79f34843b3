package bot_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"till/bot"
	"till/bot/bottest"
	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// inTime writes times as a language that is made up.
const inTime = `
[time]
months = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]
minute = ["M{n}", "MM{n}"]
hour = ["H{n}", "HH{n}"]
day = ["D{n}", "DD{n}"]
and = "+"
[time.of_day]
0 = "dark"
13 = "light"
`

func TestRenderInTheLanguageOfTheReader(t *testing.T) {
	w, err := bot.LoadWordsFrom(fstest.MapFS{
		"text/en.toml": file("a = 'English {m.label} {until.clock} {until.left}'\nb = 'only English {m.label}'\n[labels]\ncard = 'Card'\n" + inTime),
		"text/ha.toml": file("a = 'Hausa {m.label} {until.clock} {until.left}'\n[labels]\ncard = 'Kati'\n" + strings.ReplaceAll(inTime, "light", "rana")),
		"text/ig.toml": file("a = 'Igbo {until.left}'"), // and times as in English
	})
	must(t, err)
	args := map[string]string{"m": "card", "until": flow.Stamp(noon.Add(65 * time.Minute))} // 13:05 in Lagos
	for _, c := range []struct {
		key  string
		lang flow.Lang
		want string
	}{
		{"a", "", "English Card 1:05 light H1+MM5"},
		{"a", flow.English, "English Card 1:05 light H1+MM5"},
		{"a", flow.Hausa, "Hausa Kati 1:05 rana H1+MM5"},
		{"b", flow.Hausa, "only English Card"}, // all of it, and not half in each
		{"a", flow.Igbo, "Igbo H1+MM5"},
		{"a", flow.Yoruba, "English Card 1:05 light H1+MM5"},
		{"a", "xx", "English Card 1:05 light H1+MM5"},
		{"c", flow.Hausa, ""},
	} {
		if got := w.Render(flow.Say{Key: c.key, Lang: c.lang, Args: args}, noon); got != c.want {
			t.Errorf("%s in %q says %q, want %q", c.key, c.lang, got, c.want)
		}
	}
}

func TestRenderTimesInEveryLanguage(t *testing.T) {
	w, until := words(t), noon.Add(4*time.Hour+35*time.Minute)
	paid := time.Date(2026, 11, 21, 23, 12, 0, 0, time.UTC) // after midnight in Lagos
	for lang, want := range map[flow.Lang][3]string{
		flow.English: {"by 4:35 pm (4 hours 35 minutes)", "22 Nov 2026, 12:12 am WAT", "(1 day)"},
		flow.Pidgin:  {"before 4:35 pm (4 hours 35 minutes)", "22 Nov 2026, 12:12 am WAT", "(1 day)"},
		flow.Hausa:   {"kafin 4:35 na yamma (awa 4 da minti 35)", "22 Nuw 2026, 12:12 na dare WAT", "(kwana 1)"},
		flow.Yoruba:  {"ṣáájú 4:35 ìrọ̀lẹ́ (wákàtí 4 àti ìṣẹ́jú 35)", "22 Nòfẹ́ḿbà 2026, 12:12 òru WAT", "(ọjọ́ 1)"},
		flow.Igbo:    {"tupu 4:35 mgbede (awa 4 na nkeji 35)", "22 Nov 2026, 12:12 abalị WAT", "(ụbọchị 1)"},
	} {
		for i, got := range []string{
			w.Render(flow.Say{Key: "transfer_how", Lang: lang, Args: shop("until", flow.Stamp(until))}, noon),
			w.Render(flow.Say{Key: "receipt", Lang: lang, Args: shop("paid_at", flow.Stamp(paid))}, noon),
			w.Render(flow.Say{Key: "paid_twice", Lang: lang, Args: shop("by", flow.Stamp(noon.Add(24*time.Hour)))}, noon),
		} {
			if !strings.Contains(got, want[i]) {
				t.Errorf("%s says\n%s\nwithout %q", lang, got, want[i])
			}
		}
	}
}

func TestVersionIsOfEveryLanguage(t *testing.T) {
	load := func(hausa string) *bot.Words {
		w, err := bot.LoadWordsFrom(fstest.MapFS{"text/en.toml": file(inTime), "text/ha.toml": file(hausa)})
		must(t, err)
		return w
	}
	a, same, b := load("a = 'x'"), load("a = 'x'"), load("a = 'y'")
	if a.Version() != same.Version() || a.Version() == b.Version() || a.Version() == "" {
		t.Errorf("versions are %s, %s and %s", a.Version(), same.Version(), b.Version())
	}
}

func TestLoadWordsRefuses(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"nothing":              {},
		"no English":           {"text/ha.toml": file(inTime)},
		"English without time": {"text/en.toml": file("a = 'x'")},
		"a broken language":    {"text/en.toml": file(inTime), "text/ha.toml": file("a = '{'")},
		"eleven months":        {"text/en.toml": file(strings.Replace(inTime, `"1", `, "", 1))},
		"no midnight":          {"text/en.toml": file(strings.Replace(inTime, "\n0 = ", "\n1 = ", 1))},
		"an hour 24":           {"text/en.toml": file(inTime + "24 = 'late'")},
		"one form of a unit":   {"text/en.toml": file(strings.Replace(inTime, `, "MM{n}"`, "", 1))},
		"a unit without {n}":   {"text/en.toml": file(strings.Replace(inTime, `"HH{n}"`, `"HH"`, 1))},
		"hours run together":   {"text/en.toml": file(strings.Replace(inTime, `and = "+"`, "", 1))},
		"a name nobody reads":  {"text/en.toml": file(strings.Replace(inTime, "and", "x = ''\nand", 1))},
	} {
		if _, err := bot.LoadWordsFrom(files); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// The README says of each language whether a native speaker has read it.
func TestTheReadmeTellsWhatIsReviewed(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	w := words(t)
	var want []string
	for _, lang := range flow.Langs() {
		reviewed := "no"
		if w.Reviewed(lang) {
			reviewed = "yes"
		}
		want = append(want, fmt.Sprintf("`bot/text/%s.toml` %s", lang, reviewed))
	}
	var have []string
	for _, m := range regexp.MustCompile("(?m)^\\| [^|]+ \\| (`bot/text/\\w+\\.toml`) \\| (\\w+) \\|$").FindAllStringSubmatch(string(readme), -1) {
		have = append(have, m[1]+" "+m[2])
	}
	if !slices.Equal(have, want) {
		t.Errorf("the README lists %q, the files say %q", have, want)
	}
}

// An ordinary checkout, by digits alone and in whichever language, takes at most
// eight messages of ours.
func TestAnOrdinaryCheckoutTakesFewMessages(t *testing.T) {
	const most = 8
	for i, lang := range flow.Langs() {
		t.Run(string(lang), func(t *testing.T) {
			t.Parallel()
			places := &checkout.MemoryPlaces{}
			s := newStage(t, places, places.Forget)
			for n, way := range []struct {
				name    string
				answers []string
				pays    []string
			}{
				{"bank transfer", []string{"1"}, []string{"pay"}},
				{"USSD", []string{"2", "12"}, []string{"ussd", "success"}},
				{"card", []string{"3"}, []string{"card", "approved"}},
			} {
				s.World("session", "500000")
				messages := s.Turn(bottest.First, "Pay CODE")
				if n == 0 {
					s.Turn(bottest.First, strconv.Itoa(flow.FirstLang+i)) // the choice of a language is not of the checkout
				}
				for _, answer := range way.answers {
					messages = append(messages, s.Turn(bottest.First, answer)...)
				}
				messages = append(messages, s.World(way.pays...)...)
				receipt, _, _ := strings.Cut(pack(t, lang)["receipt"], "{")
				if len(messages) > most || !strings.HasPrefix(messages[len(messages)-1], receipt) {
					t.Errorf("%s takes %d messages:\n%s", way.name, len(messages), strings.Join(messages, "\n--\n"))
				}
			}
		})
	}
}

// Whoever types a menu's words instead of its digit is understood all the same.
func TestMenuWordsMeanWhatTheirDigitsMean(t *testing.T) {
	banks := rail.USSDMenu()
	option := regexp.MustCompile(`(\d) ([\pL\pM' ]+)`)
	eachPack(t, func(t *testing.T, _ flow.Lang, texts map[string]string) {
		seen := map[string]bool{}
		for _, key := range []string{"summary", "wait_menu", "not_understood_wait", "pick_bank"} {
			for _, m := range option.FindAllStringSubmatch(literal(texts[key]), -1) {
				label := strings.TrimSpace(m[2])
				digit, word := bot.Understand(m[1], banks), bot.Understand(label, banks)
				if word.Kind == flow.MeansConfirm { // which cancels where nothing is to be confirmed
					word.Kind = flow.MeansCancel
				}
				if digit.Text, word.Text = "", ""; digit != word {
					t.Errorf("%s means %+v, %q means %+v", m[1], digit, label, word)
				}
				seen[m[1]] = true
			}
		}
		if len(seen) < 9 {
			t.Errorf("only %v are in the menus", seen)
		}
	})
}
