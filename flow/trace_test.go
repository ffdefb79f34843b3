package flow_test

import (
	"strings"
	"testing"

	"till/flow"
)

func TestATraceIsReadAsTheStandardHasIt(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	good := "00-" + id + "-" + span + "-01"
	for _, c := range []struct {
		name    string
		parents []string
		want    string // handed on; "" where it is none
	}{
		{"as it should be", []string{good}, good},
		{"not recorded", []string{"00-" + id + "-" + span + "-00"}, "00-" + id + "-" + span + "-00"},
		{"flags that nobody knows", []string{"00-" + id + "-" + span + "-ff"}, good},
		{"a later version", []string{"cc-" + id + "-" + span + "-01"}, good},
		{"a later version that says more", []string{"cc-" + id + "-" + span + "-01-what"}, good},
		{"a later version with something else behind", []string{"cc-" + id + "-" + span + "-01.what"}, ""},
		{"none", nil, ""},
		{"two", []string{good, good}, ""},
		{"more than there is", []string{good + "-01"}, ""},
		{"a version that cannot be", []string{"ff-" + id + "-" + span + "-01"}, ""},
		{"a version in capitals", []string{"AB-" + id + "-" + span + "-01"}, ""},
		{"an id of zeros", []string{"00-" + strings.Repeat("0", 32) + "-" + span + "-01"}, ""},
		{"a step of zeros", []string{"00-" + id + "-" + strings.Repeat("0", 16) + "-01"}, ""},
		{"in capitals", []string{strings.ToUpper(good)}, ""},
		{"too short", []string{good[:54]}, ""},
		{"other dashes", []string{strings.ReplaceAll(good, "-", "_")}, ""},
		{"signs that are no hex", []string{"00-" + id[:31] + "g-" + span + "-01"}, ""},
		{"a line break", []string{good[:50] + "\r\nX: y"}, ""},
		{"nothing in it", []string{""}, ""},
	} {
		got, ok := flow.ParseTrace(c.parents, nil)
		if got.Parent() != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q (%v), want %q", c.name, got.Parent(), ok, c.want)
		}
	}
	many := strings.TrimSuffix(strings.Repeat("a=1,", 33), ",")
	for states, want := range map[string]string{
		"congo=t61rcWkgMzE": "congo=t61rcWkgMzE", "a=1|b=2,c@d=3": "a=1,b=2,c@d=3", "a=1, b=2": "a=1, b=2", "a=1,,b=2": "a=1,,b=2",
		"": "", "a": "", "A=1": "", "a=": "", "a=1,a=2": "", "a=b=c": "", "_a=1": "", "a=\x01": "", many: "", "a=" + strings.Repeat("x", 257): "",
		"shop=4111-1111-1111-1111": "", "shop=BVN 22212345678": "",
	} {
		if got, _ := flow.ParseTrace([]string{good}, strings.Split(states, "|")); got.State != want {
			t.Errorf("tracestate %q is handed on as %q, want %q", states, got.State, want)
		}
	}
}

func TestATracesNextStepIsAnotherOfTheSame(t *testing.T) {
	first := flow.NewTrace("evt_1")
	next := first.Then("1")
	if next.Name() != first.Name() || next.Span == first.Span || next == first.Then("2") || first != flow.NewTrace("evt_1") || flow.NewTrace("evt_2").Name() == first.Name() {
		t.Errorf("%s and then %s", first.Parent(), next.Parent())
	}
	if got, ok := flow.ParseTrace([]string{next.Parent()}, nil); !ok || got != next {
		t.Errorf("%q is read as %+v", next.Parent(), got)
	}
	if at := flow.TraceOf(flow.WithTrace(t.Context(), next)); at != next || !flow.TraceOf(t.Context()).Zero() {
		t.Errorf("a context has %+v", at)
	}
}
