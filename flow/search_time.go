package flow

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// readTime takes a day and an hour out of words, in Lagos time: "yesterday 4 pm",
// "21 Nov", "2026-11-21", or a stretch of time: "last week". from and until are zero
// where there is neither; the first stretch, or the first day and the first hour count.
func readTime(words []string, now time.Time) (others []string, from, until time.Time) {
	for i := 0; i+1 < len(words); i++ {
		if from, until, ok := readStretch(words[i], words[i+1], now); ok {
			return slices.Concat(words[:i], words[i+2:]), from, until
		}
	}
	var day time.Time
	minutes := -1
	for i := 0; i < len(words); {
		if day.IsZero() {
			if at, used := readDay(words[i:], now); used > 0 {
				day, i = at, i+used
				continue
			}
		}
		if minutes < 0 {
			if m, used := readHour(words[i:]); used > 0 {
				minutes, i = m, i+used
				continue
			}
		}
		others = append(others, words[i])
		i++
	}
	if !day.IsZero() || minutes >= 0 { // "on 21 Nov at 4 pm"
		others = slices.DeleteFunc(others, func(w string) bool { return slices.Contains([]string{"on", "at", "around", "by"}, strings.ToLower(w)) })
	}
	today := DayOf(now)
	switch {
	case minutes >= 0:
		if day.IsZero() {
			day = today
			if now.Before(day.Add(time.Duration(minutes) * time.Minute)) {
				day = day.AddDate(0, 0, -1)
			}
		}
		at := day.Add(time.Duration(minutes) * time.Minute)
		return others, at.Add(-aroundBefore), at.Add(aroundAfter)
	case !day.IsZero():
		return others, day, day.AddDate(0, 0, 1)
	}
	return others, time.Time{}, time.Time{}
}

// readStretch reads this or last week, which begins on a Monday, or month, the last
// hour, and a part of today.
func readStretch(which, of string, now time.Time) (from, until time.Time, ok bool) {
	today := DayOf(now).In(Lagos)
	monday := today.AddDate(0, 0, -int(today.Weekday()+6)%7)
	month := today.AddDate(0, 0, 1-today.Day())
	switch strings.ToLower(which + " " + strings.Trim(of, ",.")) {
	case "this week":
		return monday, monday.AddDate(0, 0, 7), true
	case "last week":
		return monday.AddDate(0, 0, -7), monday, true
	case "this month":
		return month, month.AddDate(0, 1, 0), true
	case "last month":
		return month.AddDate(0, -1, 0), month, true
	case "last hour":
		return now.Add(-time.Hour), now, true
	case "this morning":
		return today, today.Add(12 * time.Hour), true
	case "this afternoon":
		return today.Add(12 * time.Hour), today.Add(18 * time.Hour), true
	case "this evening":
		return today.Add(18 * time.Hour), today.AddDate(0, 0, 1), true
	}
	return from, until, false
}

// readDay reads a day at the beginning of words, and how many of them it is.
func readDay(words []string, now time.Time) (day time.Time, used int) {
	today := DayOf(now)
	first := strings.ToLower(strings.Trim(words[0], ",."))
	switch first {
	case "today":
		return today, 1
	case "yesterday":
		return today.AddDate(0, 0, -1), 1
	}
	if at, err := time.ParseInLocation(time.DateOnly, first, Lagos); err == nil {
		return at, 1
	}
	for _, form := range []string{"2/1/2006", "2/1/06"} {
		if at, err := time.ParseInLocation(form, first, Lagos); err == nil {
			return at, 1
		}
	}
	if at, err := time.ParseInLocation("2/1", first, Lagos); err == nil {
		return past(at.Month(), at.Day(), today), 1
	}
	for w := time.Sunday; w <= time.Saturday; w++ { // the last one there was
		if first == strings.ToLower(w.String()) {
			back := int(today.In(Lagos).Weekday()-w+7) % 7
			return today.AddDate(0, 0, -back), 1
		}
	}
	if len(words) < 2 {
		return time.Time{}, 0
	}
	return readMonth(words, today)
}

// readMonth reads 21 Nov, Nov 21st or 21 November 2026.
func readMonth(words []string, today time.Time) (day time.Time, used int) {
	second := strings.ToLower(strings.Trim(words[1], ",."))
	first := strings.ToLower(strings.Trim(words[0], ",."))
	month, n := monthOf(second), dayNumber(first)
	if month == 0 {
		month, n = monthOf(first), dayNumber(second)
	}
	if month == 0 || n == 0 {
		return time.Time{}, 0
	}
	if len(words) > 2 && len(words[2]) == 4 {
		if year, err := strconv.Atoi(words[2]); err == nil && year >= 2020 && year < 2100 {
			return time.Date(year, month, n, 0, 0, 0, 0, Lagos), 3
		}
	}
	return past(month, n, today), 2
}

// past is the last such day that is not in the future.
func past(month time.Month, day int, today time.Time) time.Time {
	at := time.Date(today.In(Lagos).Year(), month, day, 0, 0, 0, 0, Lagos)
	if at.After(today) {
		at = time.Date(today.In(Lagos).Year()-1, month, day, 0, 0, 0, 0, Lagos)
	}
	return at
}

// monthOf is the month of a name or of its first three letters, 0 for none.
func monthOf(word string) time.Month {
	for m := time.January; m <= time.December; m++ {
		name := strings.ToLower(m.String())
		if word == name || word == name[:3] || m == time.September && word == "sept" {
			return m
		}
	}
	return 0
}

// dayNumber is the day of a month, 0 for none: 21, 21st.
func dayNumber(word string) int {
	for _, end := range []string{"st", "nd", "rd", "th"} {
		word = strings.TrimSuffix(word, end)
	}
	n, err := strconv.Atoi(word)
	if err != nil || len(word) > 2 || n < 1 || n > 31 {
		return 0
	}
	return n
}

// readHour reads 4 pm, 4pm, 4:30 pm or 16:00 at the beginning of words: minutes
// since midnight, and how many words they are. A bare number is no time.
func readHour(words []string) (minutes, used int) {
	word, used := strings.ToLower(words[0]), 1
	half := ""
	for _, end := range []string{"am", "pm"} {
		if short, ok := strings.CutSuffix(word, end); ok {
			word, half = short, end
		}
	}
	if half == "" && len(words) > 1 {
		if next := strings.ToLower(strings.Trim(words[1], ".,")); next == "am" || next == "pm" {
			half, used = next, 2
		}
	}
	hour, minute, clock := strings.Cut(word, ":")
	if half == "" && !clock || clock && len(minute) != 2 || len(hour) > 2 {
		return 0, 0
	}
	h, err := strconv.Atoi(hour)
	m := 0
	if clock && err == nil {
		m, err = strconv.Atoi(minute)
	}
	if err != nil || h < 0 || m < 0 || m > 59 || h > 23 || half != "" && (h < 1 || h > 12) {
		return 0, 0
	}
	switch {
	case half == "pm" && h < 12:
		h += 12
	case half == "am" && h == 12:
		h = 0
	}
	return h*60 + m, used
}
