package main

import (
	"debug/buildinfo"
	"os"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// The list of licences is of the modules that are in the program, each in its
// version: a new one is looked at before it is used. make licences writes it anew.
func TestTheListOfLicencesIsOfWhatIsInTheProgram(t *testing.T) {
	bin := tilltest.Program(t)
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../.supply/licences.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] == "unknown" || strings.HasPrefix(words[2], "AGPL") {
			t.Fatalf("%q is no module, version and licence that is known", line)
		}
		listed[words[0]+" "+words[1]] = true
	}
	for _, m := range info.Deps {
		if !listed[m.Path+" "+m.Version] {
			t.Errorf("%s %s is in the program and not in the list: make licences", m.Path, m.Version)
		}
	}
	if len(listed) != len(info.Deps)+1 { // and Go's own
		t.Errorf("%d modules are listed, and %d are in the program: make licences", len(listed), len(info.Deps)+1)
	}
}
