package bot

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"till/flow"
)

//go:embed words/*.toml
var wordLists embed.FS

// meaning is what a phrase means.
type meaning struct {
	kind   flow.IntentKind
	method flow.Method
	lang   flow.Lang
	named  bool // lang, by a name that says nothing else
}

// lexicon is what payers write, in all languages at once: people mix them
// inside one sentence. All of it is folded the way messages are.
type lexicon struct {
	whole   map[string]meaning // the whole message, nothing around it but what is polite
	is      map[string]meaning // the whole message, but for lead and tail
	has     []cue              // anywhere in a sentence
	hint    []cue              // anywhere in one that means nothing else
	numbers map[string]int
	lead    map[string]bool
	tail    map[string]bool
	polite  map[string]bool
	ask     map[string]bool
	not     map[string]bool
	unsure  map[string]bool
	secrets map[string]bool   // names of what nobody may be asked for
	letters map[string]bool   // those of them whose secret can have letters
	perhaps map[string]bool   // such a name only where a code stands right beside it
	spared  map[string]bool   // what begins with such a name and is none
	usual   map[string]bool   // what is said of a password and is none
	alert   map[string]bool   // what a bank's message of a transfer says, which payers paste
	heads   map[string]bool   // first words of secrets, perhaps and spared
	short   map[string]string // what many write short, and what it is short for
	long    []string          // names of one word that are long enough to be known by a slip
	firm    []string          // words that a slip of the finger must not turn into a method
	slips   map[int][]slip    // what is known with a slip of the finger in it, by how many words it has
}

// slip is a phrase that is known with a slip of the finger in one of its words.
type slip struct {
	words []string
	meaning
}

// cue is a phrase that says what a sentence is about.
type cue struct {
	phrase string // with a space around each word, as the line of a sentence is
	kind   flow.IntentKind
}

// wordList is one file of words.
type wordList struct {
	Names   []string            `toml:"names"`
	Besides []string            `toml:"besides"`
	Lead    []string            `toml:"lead"`
	Tail    []string            `toml:"tail"`
	Polite  []string            `toml:"polite"`
	Ask     []string            `toml:"ask"`
	Not     []string            `toml:"not"`
	Unsure  []string            `toml:"unsure"`
	Secret  []string            `toml:"secret"`
	Letters []string            `toml:"letters"`
	Perhaps []string            `toml:"perhaps"`
	Spared  []string            `toml:"spared"`
	Usual   []string            `toml:"usual"`
	Alert   []string            `toml:"alert"`
	Numbers map[string][]string `toml:"numbers"`
	Short   map[string]string   `toml:"short"`
	Whole   map[string][]string `toml:"whole"`
	Is      map[string][]string `toml:"is"`
	Has     map[string][]string `toml:"has"`
	Hint    map[string][]string `toml:"hint"`
}

// The kinds of intent that words can have, by where they stand in a file.
var (
	wholeKinds = []flow.IntentKind{flow.MeansStop, flow.MeansResume}
	isKinds    = []flow.IntentKind{
		flow.MeansHuman, flow.MeansConfirm, flow.MeansCancel, flow.MeansMenu, flow.MeansLanguage, flow.MeansBack, flow.MeansReceipt, flow.MeansWho,
		flow.MeansMoney, flow.MeansYes, flow.MeansNo, flow.MeansPaid, flow.MeansAgain, flow.MeansOther, flow.MeansThanks, flow.MeansWait, flow.MeansTerms,
	}
	// hasKinds are in the order in which a sentence is read.
	hasKinds = []flow.IntentKind{flow.MeansHuman, flow.MeansMoney, flow.MeansWho, flow.MeansReceipt, flow.MeansPaid, flow.MeansTerms, flow.MeansAbuse}
	// hintKinds are the same, of a guess: none of them opens, ends or confirms anything.
	hintKinds = []flow.IntentKind{flow.MeansHuman, flow.MeansMoney, flow.MeansPaid, flow.MeansReceipt, flow.MeansOther, flow.MeansWho, flow.MeansTerms, flow.MeansWait, flow.MeansMenu}
)

// vocabulary is the lexicon that is built in. It never changes; a test reads every
// file of it, so that it cannot fail here.
var vocabulary = sync.OnceValue(func() *lexicon {
	l, err := loadLexicon()
	if err != nil {
		panic(err)
	}
	return l
})

// loadLexicon reads the words of all languages.
func loadLexicon() (*lexicon, error) {
	sources := map[flow.Lang]string{}
	for _, lang := range flow.Langs() {
		source, err := wordLists.ReadFile(path.Join("words", string(lang)+".toml"))
		if err != nil {
			return nil, fmt.Errorf("reading what payers write: %w", err)
		}
		sources[lang] = string(source)
	}
	return parseLexicon(sources)
}

func parseLexicon(sources map[flow.Lang]string) (*lexicon, error) {
	l := &lexicon{
		whole: map[string]meaning{}, is: map[string]meaning{}, numbers: map[string]int{}, lead: map[string]bool{}, tail: map[string]bool{}, polite: map[string]bool{},
		ask: map[string]bool{}, not: map[string]bool{}, unsure: map[string]bool{}, secrets: map[string]bool{}, letters: map[string]bool{},
		perhaps: map[string]bool{}, spared: map[string]bool{}, usual: map[string]bool{}, alert: map[string]bool{}, heads: map[string]bool{}, short: map[string]string{}, slips: map[int][]slip{},
	}
	for _, lang := range flow.Langs() {
		var list wordList
		meta, err := toml.Decode(sources[lang], &list)
		if err == nil && len(meta.Undecoded()) > 0 {
			err = fmt.Errorf("there is no list %s", meta.Undecoded()[0])
		}
		if err == nil {
			err = l.add(lang, list)
		}
		if err != nil {
			return nil, fmt.Errorf("reading what payers write in %q: %w", lang, err)
		}
	}
	inOrder(l.has, hasKinds)
	inOrder(l.hint, hintKinds)
	for phrase := range l.not {
		if l.lead[phrase] || l.tail[phrase] || l.ask[phrase] {
			return nil, fmt.Errorf("%q turns a sentence around and is passed over", phrase)
		}
	}
	for i, c := range l.hint {
		if c.kind == flow.MeansMenu && (sentence{lexicon: l, words: strings.Fields(c.phrase)}).any(l.not) {
			return nil, fmt.Errorf("%q turns a sentence around, and hints at nothing", strings.TrimSpace(c.phrase))
		}
		if slices.ContainsFunc(l.hint[:i], func(o cue) bool { return o.phrase == c.phrase }) {
			return nil, fmt.Errorf("%q is a hint twice", strings.TrimSpace(c.phrase))
		}
	}
	for _, list := range []map[string]bool{l.secrets, l.perhaps, l.spared} {
		for phrase := range list {
			first, _, _ := strings.Cut(phrase, " ")
			l.heads[first] = true
		}
	}
	for phrase := range l.letters {
		if len(phrase) >= minLongName && !strings.Contains(phrase, " ") {
			l.long = append(l.long, phrase)
		}
	}
	for phrase, m := range l.is {
		if m.kind == flow.MeansMethod || m.kind == flow.MeansPaid {
			words := strings.Fields(phrase)
			l.slips[len(words)] = append(l.slips[len(words)], slip{words: words, meaning: m})
		}
	}
	l.harden()
	return l, nil
}

func (l *lexicon) add(lang flow.Lang, list wordList) error {
	for _, group := range []struct {
		into map[string]bool
		from []string
	}{
		{l.lead, list.Lead},
		{l.tail, list.Tail},
		{l.polite, list.Polite},
		{l.ask, list.Ask},
		{l.not, list.Not},
		{l.unsure, list.Unsure},
		{l.secrets, list.Secret},
		{l.secrets, list.Letters},
		{l.letters, list.Letters},
		{l.perhaps, list.Perhaps},
		{l.spared, list.Spared},
		{l.usual, list.Usual},
		{l.alert, list.Alert},
	} {
		for _, phrase := range group.from {
			group.into[key(phrase)] = true
		}
	}
	for i, name := range slices.Concat(list.Names, list.Besides) {
		if err := l.means(l.is, name, meaning{kind: flow.MeansLanguage, lang: lang, named: i < len(list.Names)}); err != nil {
			return err
		}
	}
	for name, phrases := range list.Whole {
		if err := l.list(l.whole, wholeKinds, name, phrases); err != nil {
			return err
		}
	}
	for name, phrases := range list.Is {
		if err := l.list(l.is, isKinds, name, phrases); err != nil {
			return err
		}
	}
	if err := cues(&l.has, hasKinds, list.Has); err != nil {
		return err
	}
	if err := cues(&l.hint, hintKinds, list.Hint); err != nil {
		return err
	}
	for long, written := range list.Short {
		for w := range strings.FieldsSeq(written) {
			if _, twice := l.short[w]; twice || key(w) != w {
				return fmt.Errorf("%q is short for two things, or no word", w)
			}
			l.short[w] = key(long)
		}
	}
	return l.count(list.Numbers)
}

// cues adds phrases that say what a sentence is about.
func cues(into *[]cue, kinds []flow.IntentKind, lists map[string][]string) error {
	for name, phrases := range lists {
		kind := flow.IntentKind(name)
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("nothing in a sentence means %q", name)
		}
		for _, phrase := range phrases {
			*into = append(*into, cue{phrase: " " + key(phrase) + " ", kind: kind})
		}
	}
	return nil
}

// inOrder sorts cues by the order in which a sentence is read.
func inOrder(list []cue, kinds []flow.IntentKind) {
	slices.SortStableFunc(list, func(a, b cue) int { return slices.Index(kinds, a.kind) - slices.Index(kinds, b.kind) })
}

// count adds the names of numbers.
func (l *lexicon) count(lists map[string][]string) error {
	for digits, names := range lists {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return fmt.Errorf("%q is no number: %w", digits, err)
		}
		for _, name := range names {
			k := key(name)
			if old, known := l.numbers[k]; known && old != n || k == "" {
				return fmt.Errorf("%q is %d and %d", name, old, n)
			}
			l.numbers[k] = n
		}
	}
	return nil
}

// list adds phrases of one meaning.
func (l *lexicon) list(into map[string]meaning, kinds []flow.IntentKind, name string, phrases []string) error {
	m := meaning{kind: flow.IntentKind(name)}
	if method := flow.Method(name); slices.Contains(flow.Methods(), method) {
		m = meaning{kind: flow.MeansMethod, method: method}
	} else if !slices.Contains(kinds, m.kind) {
		return fmt.Errorf("no message means %q", name)
	}
	for _, phrase := range phrases {
		if err := l.means(into, phrase, m); err != nil {
			return err
		}
	}
	return nil
}

// means adds a phrase. No phrase may mean two things, in whichever languages:
// what is ambiguous is left out of the lists.
func (l *lexicon) means(into map[string]meaning, phrase string, m meaning) error {
	k := key(phrase)
	if k == "" {
		return fmt.Errorf("%q has no letters", phrase)
	}
	for _, known := range []map[string]meaning{l.whole, l.is} {
		if old, found := known[k]; found && old != m {
			return fmt.Errorf("%q means %v and %v", phrase, old, m)
		}
	}
	into[k] = m
	return nil
}

// minLongName is how many letters the name of a secret must have to be known with a slip
// in it: "pasword", but not "pun".
const minLongName = 8

// firmKinds are the kinds of intent whose words are firm.
var firmKinds = []flow.IntentKind{flow.MeansCancel, flow.MeansConfirm, flow.MeansOther, flow.MeansNo, flow.MeansBack}

// harden collects the words that are near enough to matter when a word is only
// nearly that of a method: what cancels, stops, switches, denies or is paid.
func (l *lexicon) harden() {
	seen := map[string]bool{}
	take := func(phrase string) {
		for w := range strings.FieldsSeq(phrase) {
			if len(w) >= minFuzzy-1 && !seen[w] {
				seen[w] = true
				l.firm = append(l.firm, w)
			}
		}
	}
	for phrase := range l.whole {
		take(phrase)
	}
	for phrase, m := range l.is {
		if slices.Contains(firmKinds, m.kind) {
			take(phrase)
		}
	}
	for phrase := range l.not {
		take(phrase)
	}
	slices.Sort(l.firm)
	// Words of a method's own name ("cancel transfer", "ibufe ego") say nothing.
	l.firm = slices.DeleteFunc(l.firm, func(w string) bool { m, found := l.is[w]; return found && m.kind == flow.MeansMethod })
}

// key is a text as it is compared with the lists: its words, folded, one space
// between them.
func key(text string) string { return strings.Join(plainWords(fold(text)), " ") }

// plainWords are the words of a folded text without apostrophes, which some
// write in them and most do not.
func plainWords(folded string) []string {
	var out []string
	for _, w := range split(folded) {
		if text := strings.ReplaceAll(w.text, "'", ""); text != "" {
			out = append(out, text)
		}
	}
	return out
}
