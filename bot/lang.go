package bot

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"till/flow"
)

// pack is one language: the file of it in text.
type pack struct {
	reviewed  bool // a native speaker has read it
	templates map[string]template
	labels    map[string]string
	times     *times // nil: as English writes them
}

// The names in a file that are no message.
const (
	nameReviewed = "reviewed"
	nameLabels   = "labels"
	nameTime     = "time"
)

func parsePack(source string) (*pack, error) {
	raw := map[string]toml.Primitive{}
	file, err := toml.Decode(source, &raw)
	if err != nil {
		return nil, fmt.Errorf("reading the words: %w", err)
	}
	p := &pack{templates: map[string]template{}}
	for key, value := range raw {
		if err := p.take(file, key, value); err != nil {
			return nil, fmt.Errorf("reading the words for %s: %w", key, err)
		}
	}
	if left := file.Undecoded(); len(left) > 0 {
		return nil, fmt.Errorf("reading the words: nothing reads %s", left[0])
	}
	return p, nil
}

// take reads one name of a file.
func (p *pack) take(file toml.MetaData, key string, value toml.Primitive) error {
	switch key {
	case nameReviewed:
		return file.PrimitiveDecode(value, &p.reviewed)
	case nameLabels:
		return file.PrimitiveDecode(value, &p.labels)
	case nameTime:
		p.times = &times{}
		if err := file.PrimitiveDecode(value, p.times); err != nil {
			return err
		}
		return p.times.check()
	default:
		var text string
		if err := file.PrimitiveDecode(value, &text); err != nil {
			return err
		}
		t, err := parseTemplate(strings.TrimSpace(text))
		p.templates[key] = t
		return err
	}
}

// times is how a language writes a time.
type times struct {
	Months []string          `toml:"months"`
	OfDay  map[string]string `toml:"of_day"` // from this hour on: 0 am, 12 pm
	Day    []string          `toml:"day"`    // one, and several: "{n} days"
	Hour   []string          `toml:"hour"`
	Minute []string          `toml:"minute"`
	And    string            `toml:"and"` // between hours and minutes

	part [24]string // OfDay, for every hour
}

var errTimes = errors.New("not all that it takes to write a time")

// check says whether everything is there, and works out the parts of a day.
func (t *times) check() error {
	if len(t.Months) != 12 || t.OfDay["0"] == "" || t.And == "" {
		return errTimes
	}
	for _, unit := range [][]string{t.Day, t.Hour, t.Minute} {
		if len(unit) != 2 || !strings.Contains(unit[0], "{n}") || !strings.Contains(unit[1], "{n}") {
			return fmt.Errorf("%w: one and several, each with {n}, not %q", errTimes, unit)
		}
	}
	seen := 0
	for hour := range t.part {
		if name, begins := t.OfDay[strconv.Itoa(hour)]; begins {
			t.part[hour] = name
			seen++
			continue
		}
		t.part[hour] = t.part[hour-1] // hour 0 begins one
	}
	if seen != len(t.OfDay) {
		return fmt.Errorf("%w: a part of the day begins at no hour", errTimes)
	}
	return nil
}

// clock is a time of day, with the date when that is not today.
func (t *times) clock(at, now time.Time) string {
	at, now = at.In(flow.Lagos), now.In(flow.Lagos)
	clock := at.Format("3:04") + " " + t.part[at.Hour()]
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return clock
	}
	return t.date(at) + ", " + clock
}

// full is a date and a time, for what is kept.
func (t *times) full(at time.Time) string {
	at = at.In(flow.Lagos)
	return fmt.Sprintf("%s %d, %s %s WAT", t.date(at), at.Year(), at.Format("3:04"), t.part[at.Hour()])
}

func (t *times) date(at time.Time) string {
	return strconv.Itoa(at.Day()) + " " + t.Months[at.Month()-1]
}

// left is how long there is still time, in the two largest units that say it.
// Started minutes count: the message takes a moment to arrive, and half an hour
// must not read as 29 minutes.
func (t *times) left(d time.Duration) string {
	minutes := int((max(d, 0) + time.Minute - time.Second) / time.Minute)
	days, hours, minutes := minutes/(24*60), minutes/60%24, minutes%60
	switch {
	case days > 0 && hours > 0:
		return units(days, t.Day) + t.And + units(hours, t.Hour)
	case days > 0:
		return units(days, t.Day)
	case hours > 0 && minutes > 0:
		return units(hours, t.Hour) + t.And + units(minutes, t.Minute)
	case hours > 0:
		return units(hours, t.Hour)
	default:
		return units(minutes, t.Minute)
	}
}

func units(n int, unit []string) string {
	form := unit[1]
	if n == 1 {
		form = unit[0]
	}
	return strings.ReplaceAll(form, "{n}", strconv.Itoa(n))
}

// count is a number of things in English, for what no payer reads.
func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}
