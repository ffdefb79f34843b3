package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// The list of licences is of the modules that are in the program, each in its
// version: a new one is looked at before it is used. make licences writes it anew.
func TestTheListOfLicencesIsOfWhatIsInTheProgram(t *testing.T) {
	bin := tilltest.Program(t)
	info, err := buildinfo.ReadFile(bin)
	must(t, err)
	text, err := os.ReadFile("../../.supply/licences.txt")
	must(t, err)
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

// Scanners look Go's own library up as the database of Go's vulnerabilities names it, and by a
// version without the word before it: under another name none of its faults is found.
func TestTheBillOfMaterialsNamesGosLibraryAsScannersLookItUp(t *testing.T) {
	bin := tilltest.Program(t)
	info, err := buildinfo.ReadFile(bin)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "run", ".supply/supply.go", "sbom", bin)
	cmd.Dir = filepath.Join("..", "..")
	text, err := cmd.Output()
	must(t, err)
	var bill struct {
		Components   []struct{ Name, Version, Purl string }
		Dependencies []struct{ DependsOn []string }
	}
	must(t, json.Unmarshal(text, &bill))
	version := strings.TrimPrefix(info.GoVersion, "go")
	if first := bill.Components[0]; first.Name != "stdlib" || first.Version != version || first.Purl != "pkg:golang/stdlib@"+version {
		t.Errorf("Go's library is %+v", first)
	}
	if len(bill.Components) != len(info.Deps)+1 || !slices.Contains(bill.Dependencies[0].DependsOn, "pkg:golang/stdlib@"+version) {
		t.Errorf("%d components for %d modules, on which depends %v", len(bill.Components), len(info.Deps), bill.Dependencies)
	}
}

// What the Makefile runs by its name is there, for Go is content where it has nothing to
// run; and so is each target that the README or a workflow names.
func TestWhatTheMakefileRunsIsThere(t *testing.T) {
	top := filepath.Join("..", "..")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(top, name))
		must(t, err)
		return string(text)
	}
	targets, list := map[string]bool{}, []string{"-n", "-C", top}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(read("Makefile"), -1) {
		targets[m[1]], list = true, append(list, m[1])
	}
	says := read("README.md") + read(".ci/run") + read(".github/workflows/nightly.yml")
	for _, m := range regexp.MustCompile("(?m)`make ([a-z-]+)|^make ([a-z-]+)(?: +#|$)|^ {10}- ([a-z][a-z -]*)").FindAllStringSubmatch(says, -1) {
		for target := range strings.FieldsSeq(m[1] + m[2] + m[3]) {
			if !targets[target] {
				t.Errorf("there is no make %s", target)
			}
		}
	}
	told, err := exec.Command("make", list...).CombinedOutput()
	if err != nil {
		t.Fatalf("make -n: %v\n%s", err, told)
	}
	n, folder := 0, regexp.MustCompile(` \./[a-z/]+`)
	for _, call := range regexp.MustCompile(` test .*-(?:run|bench) '?\^?([A-Z(][\w(|]*).*`).FindAllStringSubmatch(string(told), -1) {
		before, either, _ := strings.Cut(call[1], "(")
		for _, at := range folder.FindAllString(call[0], -1) {
			files, err := filepath.Glob(filepath.Join(top, at[1:], "*_test.go"))
			must(t, err)
			var tests strings.Builder
			for _, file := range files {
				tests.WriteString(read(strings.TrimPrefix(file, top)))
			}
			for name := range strings.SplitSeq(either, "|") {
				if n++; !regexp.MustCompile(`(?m)^func \w*` + before + name).MatchString(tests.String()) {
					t.Errorf("%s has no %s", at[1:], before+name)
				}
			}
		}
	}
	if n < 25 {
		t.Errorf("only %d names were found", n)
	}
}
