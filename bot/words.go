package bot

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"till/flow"
)

//go:embed text/en.toml
var packs embed.FS

// The bounds of what is filled into a message. Texts that must arrive as they
// are (a link, a code) may be longer than what merchants write about
// themselves.
const (
	maxArg   = 100
	maxAlone = 2048
)

// Words is a language: what is said for every key. It is safe for use from
// several goroutines.
type Words struct {
	version   string
	templates map[string]template
	labels    map[string]string
}

// Version tells one set of words from another: it is another one as soon as a
// single letter is.
func (w *Words) Version() string { return w.version }

// LoadWords reads the words that are built into the program.
func LoadWords() (*Words, error) {
	source, err := packs.ReadFile("text/en.toml")
	if err != nil {
		return nil, fmt.Errorf("reading the words: %w", err)
	}
	return parseWords(string(source))
}

func parseWords(source string) (*Words, error) {
	raw := map[string]any{}
	if _, err := toml.Decode(source, &raw); err != nil {
		return nil, fmt.Errorf("reading the words: %w", err)
	}
	sum := sha256.Sum256([]byte(source))
	w := &Words{version: hex.EncodeToString(sum[:6]), templates: map[string]template{}, labels: map[string]string{}}
	for key, value := range raw {
		switch value := value.(type) {
		case string:
			t, err := parseTemplate(strings.TrimSpace(value))
			if err != nil {
				return nil, fmt.Errorf("reading the words for %s: %w", key, err)
			}
			w.templates[key] = t
		case map[string]any:
			for name, label := range value {
				text, ok := label.(string)
				if key != "labels" || !ok {
					return nil, fmt.Errorf("reading the words: %s.%s is no text", key, name)
				}
				w.labels[name] = text
			}
		default:
			return nil, fmt.Errorf("reading the words: %s is no text", key)
		}
	}
	return w, nil
}

// Render writes what is to be said, as it is at a moment: times are written
// relative to it. For a key that the language does not have it is empty.
func (w *Words) Render(s flow.Say, at time.Time) string {
	f := filling{args: s.Args, at: at, labels: w.labels}
	var lines []string
	for _, parts := range w.templates[s.Key] {
		if text := strings.TrimRight(f.fill(parts), " "); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// filling is one message being written.
type filling struct {
	args   map[string]string
	at     time.Time
	labels map[string]string
}

func (f filling) fill(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.name == "":
			b.WriteString(p.text)
		case p.inner == nil:
			b.WriteString(f.value(p.name, p.format))
		case f.given(p.name):
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
		return line(value, maxArg)
	case formatLabel:
		if label, known := f.labels[value]; known {
			return label
		}
		return line(value, maxArg)
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return line(value, maxArg)
	}
	switch format {
	case formatClock:
		return clock(at, f.at)
	case formatFull:
		return at.In(lagos).Format("2 Jan 2006, 3:04 pm") + " WAT"
	default:
		return left(at.Sub(f.at))
	}
}

// lagos is West Africa Time, which has no summer time.
var lagos = time.FixedZone("WAT", 60*60)

// clock is a time of day, with the date when that is not today.
func clock(t, now time.Time) string {
	t, now = t.In(lagos), now.In(lagos)
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("3:04 pm")
	}
	return t.Format("2 Jan, 3:04 pm")
}

// left is how long there is still time, in the two largest units that say it.
// Started minutes count: the message takes a moment to arrive, and half an hour
// must not read as 29 minutes.
func left(d time.Duration) string {
	minutes := int((max(d, 0) + time.Minute - time.Second) / time.Minute)
	days, hours, minutes := minutes/(24*60), minutes/60%24, minutes%60
	switch {
	case days > 0 && hours > 0:
		return count(days, "day") + " " + count(hours, "hour")
	case days > 0:
		return count(days, "day")
	case hours > 0 && minutes > 0:
		return count(hours, "hour") + " " + count(minutes, "minute")
	case hours > 0:
		return count(hours, "hour")
	default:
		return count(minutes, "minute")
	}
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
