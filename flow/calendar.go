package flow

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// Lagos is the time that Nigeria keeps all the year round: UTC+1, no summer time.
var Lagos = time.FixedZone("WAT", 60*60)

// DayOf is when the day of a moment began in Lagos.
func DayOf(t time.Time) time.Time {
	y, m, d := t.In(Lagos).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, Lagos)
}

// Date is a day in Lagos, YYYY-MM-DD: earlier days compare smaller.
type Date string

// DateOf is the day that it is in Lagos at a time.
func DateOf(at time.Time) Date { return Date(at.In(Lagos).Format(time.DateOnly)) }

// ParseDate reads a day as YYYY-MM-DD. Error: it is none.
func ParseDate(text string) (Date, error) {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", fmt.Errorf("%q is not a day like 2026-11-21", text)
	}
	return Date(text), nil
}

// Start is when the day begins in Lagos, zero for what is no day.
func (d Date) Start() time.Time {
	at, err := time.ParseInLocation(time.DateOnly, string(d), Lagos)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// Plus is the day so many days later.
func (d Date) Plus(days int) Date { return DateOf(d.Start().AddDate(0, 0, days)) }

//go:embed holidays.csv
var holidays string

// Calendar knows on which days banks in Nigeria work.
type Calendar struct {
	closed map[Date]string
}

// maxHolidays bounds a table of holidays.
const maxHolidays = 10_000

// NewCalendar is the table of holidays that comes with the program, and changes
// to it, a day in each line: "2026-08-27,Id-ul-Maulud" closes it, "-2026-08-26"
// opens it again. Empty lines and those that begin with # say nothing, nor does the
// byte order mark that a spreadsheet begins with. Error: a line that is neither.
func NewCalendar(changes string) (Calendar, error) {
	c := Calendar{closed: map[Date]string{}}
	for i, line := range strings.Split(holidays+"\n"+strings.TrimPrefix(changes, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		day, name, _ := strings.Cut(line, ",")
		opens := strings.HasPrefix(day, "-")
		date, err := ParseDate(strings.TrimSpace(strings.TrimPrefix(day, "-")))
		if err != nil {
			return Calendar{}, fmt.Errorf("read the holidays, line %d: %w", i+1-strings.Count(holidays+"\n", "\n"), err)
		}
		if len(c.closed) >= maxHolidays {
			return Calendar{}, fmt.Errorf("read the holidays: more than %d", maxHolidays)
		}
		if opens {
			delete(c.closed, date)
			continue
		}
		c.closed[date] = cmp.Or(name, "holiday")
	}
	return c, nil
}

// Works says whether banks work on a day.
func (c Calendar) Works(d Date) bool {
	weekday := d.Start().In(Lagos).Weekday()
	_, closed := c.closed[d]
	return !closed && weekday != time.Saturday && weekday != time.Sunday
}

// SettlesOn is the day on which money of a moment is paid out to its merchant:
// the first working day after that moment's own day in Lagos (T+1).
func (c Calendar) SettlesOn(at time.Time) Date {
	d := DateOf(at).Plus(1)
	for range 60 { // no table closes two months; one that does settles late, not never
		if c.Works(d) {
			break
		}
		d = d.Plus(1)
	}
	return d
}

// DueBefore is the moment before which money must have come to be paid out on a
// day: the end of SettlesOn read backwards.
func (c Calendar) DueBefore(d Date) time.Time {
	cut := d
	for range 60 {
		if c.SettlesOn(cut.Plus(-1).Start()) <= d {
			break
		}
		cut = cut.Plus(-1)
	}
	return cut.Start()
}

// paydayBegins is how long after midnight in Lagos merchants are paid out.
const paydayBegins = 9 * time.Hour

// LastPayday is the last day on which merchants were to be paid out by now: from
// nine o'clock in Lagos on days on which banks work.
func (c Calendar) LastPayday(now time.Time) Date {
	d := DateOf(now)
	if now.Before(d.Start().Add(paydayBegins)) {
		d = d.Plus(-1)
	}
	for range 60 { // as SettlesOn
		if c.Works(d) {
			break
		}
		d = d.Plus(-1)
	}
	return d
}

// NextPayday is when merchants are paid out next, after now.
func (c Calendar) NextPayday(now time.Time) time.Time {
	d := DateOf(now)
	if at := d.Start().Add(paydayBegins); c.Works(d) && at.After(now) {
		return at
	}
	return c.SettlesOn(now).Start().Add(paydayBegins)
}
