package main

import (
	"fmt"

	"till/cmd/till/doctor"
	"till/config"
	"till/flow"
)

// maxHolidays bounds the file of holidays, in bytes.
const maxHolidays = 1 << 20

// calendar is on which days banks work: the program's table, and the operator's
// changes to it. Error: a file that cannot be read, or a line of it that is none.
func calendar(set config.Settings) (flow.Calendar, error) {
	text, err := changes(set.Holidays)
	var c flow.Calendar
	if err == nil {
		c, err = flow.NewCalendar(text)
	}
	if err != nil {
		return flow.Calendar{}, usageError{fmt.Errorf("--holidays %q cannot be used: %w (give a file with a day in each line, as 2026-08-27,Id-ul-Maulud)", set.Holidays, err)}
	}
	return c, nil
}

// holidayFaults is what is wrong with the operator's file: no start succeeds with it.
func holidayFaults(set config.Settings) []doctor.Finding {
	if _, err := calendar(set); err != nil {
		return []doctor.Finding{{Check: "settings", State: doctor.Fail, What: err.Error(), Fix: "till config   (it shows where each value comes from)"}}
	}
	return nil
}

// changes reads the operator's file, "" for none.
func changes(file string) (text string, err error) {
	if file == "" {
		return "", nil
	}
	raw, err := readPlain(file, maxHolidays+1)
	if err == nil && len(raw) > maxHolidays {
		err = fmt.Errorf("it has more than %d bytes", maxHolidays)
	}
	return string(raw), err
}
