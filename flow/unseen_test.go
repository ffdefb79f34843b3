package flow_test

import (
	"testing"

	"till/flow"
)

func TestATextOnOneLineHoldsNothingUnseen(t *testing.T) {
	for text, want := range map[string]string{
		"as it is":                         "as it is",
		" two\r\nlines\tand a tab ":        "two lines and a tab",
		"turned \u202eround\u2066\u200f":   "turned round",
		"hid\u200bden \ufeff\x00\x1b[31m":  "hidden [31m",
		"broken \u2028 here\u0085":         "broken here",
		"no text \xff\xfe":                 "no text",
		"ọjọ́ àbọ̀, Ẹni 👩\u200d👧 ₦5":       "ọjọ́ àbọ̀, Ẹni 👩\u200d👧 ₦5",
		"\u200b\u200b\u202e\u2066\r\n \t ": "",
	} {
		if got := flow.OneLine(text); got != want {
			t.Errorf("%q is %q on one line, not %q", text, got, want)
		}
	}
	for text, want := range map[string]int{"": 0, "a  b": 2, "why": 3, "\u200b\u200d\u202e ": 0, "ọ́": 1} {
		if got := flow.Says(text); got != want {
			t.Errorf("%q says %d characters, not %d", text, got, want)
		}
	}
}
