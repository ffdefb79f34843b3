package bot

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"till/flow"
)

//go:embed text/*.toml
var packs embed.FS

// The bounds of what is filled into a message. Texts that must arrive as they
// are (a link, a code) may be longer than what merchants write about
// themselves.
const (
	maxArg   = 100
	maxAlone = 2048
)

// writing is how values are written into messages, counted: texts of before another one
// are not held against it.
const writing = 4

var errNoEnglish = errors.New("the words lack English, which the others fall back to")

// Words is what is said for every key, in every language. It is safe for use
// from several goroutines.
type Words struct {
	version string
	packs   map[flow.Lang]*pack
}

// Version tells one set of words from another: it is another one as soon as a
// single letter of a single language is.
func (w *Words) Version() string { return w.version }

// LoadWords reads the words that are built into the program: one file a
// language, named after it.
func LoadWords() (*Words, error) { return loadWords(packs) }

func loadWords(files fs.FS) (*Words, error) {
	names, err := fs.Glob(files, "text/*.toml") // sorted, so the version is always the same
	if err != nil {
		return nil, fmt.Errorf("reading the words: %w", err)
	}
	w, all := &Words{packs: map[flow.Lang]*pack{}}, sha256.New()
	_, _ = fmt.Fprintln(all, writing) // a hash takes everything
	for _, name := range names {
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the words: %w", err)
		}
		p, err := parsePack(string(source))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		w.packs[flow.Lang(strings.TrimSuffix(path.Base(name), ".toml"))] = p
		sum := sha256.Sum256(source)
		_, _ = fmt.Fprintf(all, "%s %x\n", name, sum[:6])
	}
	if english := w.packs[flow.English]; english == nil || english.times == nil {
		return nil, errNoEnglish
	}
	w.version = hex.EncodeToString(all.Sum(nil)[:6])
	return w, nil
}

// Render writes what is to be said in the language of its reader, as it is at a
// moment: times are written relative to it. What a language has no words for is
// said in English, and what nobody has words for is empty.
func (w *Words) Render(s flow.Say, at time.Time) string {
	english := w.packs[flow.English]
	p := w.packs[s.Lang]
	if p == nil || p.templates[s.Key] == nil {
		p = english
	}
	f := filling{args: s.Args, at: at, labels: p.labels, times: p.times}
	if f.times == nil {
		f.times = english.times
	}
	var lines []string
	for _, parts := range p.templates[s.Key] {
		if text := strings.TrimRight(f.fill(parts), " "); text != "" {
			lines = append(lines, text)
		}
		if s.Brief && len(lines) > 0 {
			break
		}
	}
	return strings.Join(lines, "\n")
}

// filling is one message being written.
type filling struct {
	args   map[string]string
	at     time.Time
	labels map[string]string
	times  *times
}

func (f filling) fill(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.name == "":
			b.WriteString(p.text)
		case p.inner == nil:
			b.WriteString(f.value(p.name, p.format))
		case slices.ContainsFunc(strings.Split(p.name, "|"), f.given):
			b.WriteString(f.fill(p.inner))
		}
	}
	return b.String()
}

// given says whether there is something to show for a name: a time that was
// never set is written as the year 1.
func (f filling) given(name string) bool {
	value := f.args[name]
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return at.Year() > 1
	}
	return strings.TrimSpace(value) != ""
}

func (f filling) value(name, format string) string {
	value := f.args[name]
	switch format {
	case formatNone:
		if name == "text" {
			return line(value, maxAlone)
		}
		if slices.Contains(names, name) {
			value = unstyled.Replace(value)
		}
		return isolated(line(value, maxArg))
	case formatLabel:
		if label, known := f.labels[value]; known {
			return label
		}
		return line(value, maxArg)
	case formatLines:
		return strings.TrimSpace(eachLine(value))
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return line(value, maxArg)
	}
	switch format {
	case formatClock:
		return f.times.clock(at, f.at)
	case formatFull:
		return f.times.full(at)
	default:
		return f.times.left(at.Sub(f.at))
	}
}

// names are the values that somebody is called by, which nobody has to copy.
var names = []string{"merchant", "kept_merchant", "brand", "name"}

// unstyled writes the signs by which WhatsApp sets bold, slanted, crossed out and typed
// letters as signs that look like them: what stands between two of them in a name is shown
// as it is.
var unstyled = strings.NewReplacer("*", "∗", "_", "＿", "~", "∼", "`", "ˋ")

// isolated keeps a name that is read from right to left from turning round the message
// that it stands in: what is isolated says nothing about the direction of its line
// (Unicode Standard Annex 9, rule P2).
func isolated(s string) string {
	const begins, ends = "\u2068", "\u2069"
	if !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
	}) {
		return s
	}
	return begins + s + ends
}
