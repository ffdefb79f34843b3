package bot

import (
	"slices"
	"strings"

	"till/flow"
)

// bank finds the one bank that a message names.
func (s sentence) bank() (string, bool) {
	if len(s.words) > maxAnswer {
		return "", false
	}
	starts, asked := s.starts(s.words)
	for _, from := range starts {
		for _, to := range s.ends(s.words) {
			if from >= to || asked[from] {
				continue
			}
			if code, found := byName(strings.Join(s.words[from:to], " "), s.banks); found {
				return code, true
			}
		}
	}
	return "", false
}

// byName finds the one bank that a phrase names.
func byName(phrase string, banks []flow.Bank) (string, bool) {
	asked, found := bankKey(phrase), ""
	if asked == "" {
		return "", false
	}
	for _, b := range banks[:min(len(banks), lastBank-firstBank+1)] {
		if asked != bankKey(b.Short) && asked != bankKey(b.Name) && asked != b.Code {
			continue
		}
		if found != "" {
			return "", false // two banks of one name: ask again
		}
		found = b.Code
	}
	return found, found != ""
}

// bankKey is what is left of a bank's name without what every bank is called.
func bankKey(name string) string {
	var b strings.Builder
	for _, w := range split(fold(name)) {
		if !slices.Contains([]string{"bank", "banks", "plc", "of", "nigeria", "the", "limited", "ltd"}, w.text) {
			b.WriteString(w.text)
		}
	}
	short := strings.TrimSuffix(b.String(), "bank")
	if short == "gtb" || short == "guarantytrust" { // what GTBank is called
		return "gt"
	}
	return short
}
