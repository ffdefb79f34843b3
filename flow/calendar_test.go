package flow_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

func TestMoneyIsPaidOutOnTheNextWorkingDay(t *testing.T) {
	t.Parallel()
	calendar, err := flow.NewCalendar("# declared on the day before\n2026-11-25,Mourning\n\n-2026-08-26\n2026-08-27,Id-ul-Maulud")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ paid, settles, why string }{
		{"2026-11-23T09:00:00Z", "2026-11-24", "Monday"},
		{"2026-11-19T22:59:59Z", "2026-11-20", "still Thursday in Lagos"},
		{"2026-11-19T23:00:00Z", "2026-11-23", "Friday in Lagos already: Saturday and Sunday are no working days"},
		{"2026-11-21T12:00:00Z", "2026-11-23", "Saturday"},
		{"2026-11-22T12:00:00Z", "2026-11-23", "Sunday"},
		{"2026-11-24T12:00:00Z", "2026-11-26", "the day after is closed by the operator"},
		{"2026-12-24T12:00:00Z", "2026-12-29", "Christmas, Boxing Day on a Saturday and the Monday instead"},
		{"2026-12-31T12:00:00Z", "2027-01-04", "New Year's Day is a Friday"},
		{"2026-04-02T12:00:00Z", "2026-04-07", "Easter"},
		{"2028-02-28T12:00:00Z", "2028-03-01", "a leap year's holiday"},
		{"2026-08-25T12:00:00Z", "2026-08-26", "a day that the operator opened"},
		{"2026-08-26T12:00:00Z", "2026-08-28", "and the one closed instead"},
		{"2045-06-16T12:00:00Z", "2045-06-19", "beyond the table weekends still count"},
	} {
		at, err := time.Parse(time.RFC3339, c.paid)
		if err != nil {
			t.Fatal(err)
		}
		if got := calendar.SettlesOn(at); string(got) != c.settles {
			t.Errorf("paid at %s it settles on %s, not %s (%s)", c.paid, got, c.settles, c.why)
		}
	}
	if calendar.Works("2030-12-25") {
		t.Error("the table ends before Christmas of 2030")
	}
}

func TestATableOfHolidaysMayComeFromASpreadsheet(t *testing.T) {
	t.Parallel()
	calendar, err := flow.NewCalendar("\ufeff2026-11-25,Election Day\r\n2026-11-26,\"Polls, counted\"\r\n")
	if err != nil || calendar.Works("2026-11-25") || calendar.Works("2026-11-26") || !calendar.Works("2026-11-27") {
		t.Errorf("%v: %v", calendar, err)
	}
}

func TestATableOfHolidaysThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"tomorrow", "2026-02-30,No day", "26-11-2026", "--2026-11-26", "\x00", "2026-11-26T00:00:00Z,A time"} {
		if _, err := flow.NewCalendar("2026-11-25,Good\n" + text); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEveryDaySettlesOnAWorkingDayAfterIt(t *testing.T) {
	t.Parallel()
	calendar, err := flow.NewCalendar("")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(1_700_000_000_000, 4_000_000_000_000).Draw(t, "at"))
		d := calendar.SettlesOn(at)
		if !calendar.Works(d) || d <= flow.DateOf(at) || d > flow.DateOf(at).Plus(10) {
			t.Fatalf("%s settles on %s", at.UTC(), d)
		}
		for before := flow.DateOf(at).Plus(1); before < d; before = before.Plus(1) {
			if calendar.Works(before) {
				t.Fatalf("%s settles on %s, and %s was a working day before", at.UTC(), d, before)
			}
		}
	})
}
