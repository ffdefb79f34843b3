// Supply says what the program is made of: it lists the modules in the binary with
// their licences, writes that as a bill of materials, and holds what gosec finds
// against what is explained. It uses the standard library alone, and reaches no
// other host by itself: modules are read where Go keeps them, or fetches them.
//
// Example:  go run .supply/supply.go sbom bin/till > till.cdx.json
package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

const usage = `Usage: go run .supply/supply.go COMMAND

  licences BINARY           print the modules in a binary, one a line: module, version, licence
  check BINARY FILE         fail unless FILE is that list, and each licence is one that is allowed
  sbom BINARY               print a bill of materials (CycloneDX 1.5, JSON)
  gosec REPORT FILE         fail unless each finding of gosec's JSON report is explained in FILE
  vulndb DIR                write the Go vulnerability database, as the module proxy has it, to DIR for govulncheck

Example:  go run .supply/supply.go licences bin/till > .supply/licences.txt
`

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "licences":
		list, err := modules(args[1])
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, listed(list))
		return err
	case len(args) == 3 && args[0] == "check":
		return check(args[1], args[2], out)
	case len(args) == 2 && args[0] == "sbom":
		return sbom(args[1], out)
	case len(args) == 3 && args[0] == "gosec":
		return explained(args[1], args[2], out)
	case len(args) == 2 && args[0] == "vulndb":
		return vulndb(args[1], out)
	}
	_, err := io.WriteString(out, usage)
	if len(args) != 1 || args[0] != "--help" {
		err = errors.Join(err, errors.New("see the usage above"))
	}
	return err
}

// module is one module in a binary.
type module struct{ Path, Version, Sum, Licence string }

// modules are those in a binary, in the order of their names, each with its licence.
func modules(binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w (make build first)", binary, err)
	}
	list := []module{{Path: "std", Version: info.GoVersion, Licence: "BSD-3-Clause"}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		licence, err := licenceOf(dep)
		if err != nil {
			return nil, err
		}
		list = append(list, module{Path: dep.Path, Version: dep.Version, Sum: dep.Sum, Licence: licence})
	}
	slices.SortFunc(list[1:], func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// listed is the list as it is kept. Of Go's own library it names the language alone:
// the same program is built with each of its releases.
func listed(list []module) string {
	var b strings.Builder
	for _, m := range list {
		if m.Path == "std" {
			m.Version = regexp.MustCompile(`^go\d+\.\d+`).FindString(m.Version)
		}
		fmt.Fprintf(&b, "%s %s %s\n", m.Path, m.Version, m.Licence)
	}
	return b.String()
}

// fetched is where a module is, after it was fetched if need be, and its version.
func fetched(path, version string) (dir, is string, err error) {
	asked := exec.Command("go", "mod", "download", "-json", path+"@"+version)
	asked.Stderr = os.Stderr
	answer, err := asked.Output()
	if err != nil {
		return "", "", fmt.Errorf("find %s: %w (go mod download)", path, err)
	}
	var at struct{ Dir, Version string }
	err = json.Unmarshal(answer, &at)
	return at.Dir, at.Version, err
}

// licenceOf reads the licence of a module in Go's own store.
func licenceOf(m *debug.Module) (string, error) {
	dir, _, err := fetched(m.Path, m.Version)
	if err != nil {
		return "", err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if !regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)`).MatchString(f.Name()) || f.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		if name := named(string(text)); name != "" {
			return name, nil
		}
	}
	return "unknown", nil
}

// named is which licence a text is, "" for one that is not known.
func named(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	head := strings.ToLower(text[:min(len(text), 200)]) // licences name each other further down
	begins := func(s string) bool { return strings.Contains(head, strings.ToLower(s)) }
	has := func(s string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(s)) }
	switch {
	case begins("GNU AFFERO GENERAL PUBLIC LICENSE"):
		return "AGPL-3.0"
	case begins("GNU LESSER GENERAL PUBLIC LICENSE"):
		return "LGPL-3.0"
	case begins("GNU GENERAL PUBLIC LICENSE"):
		return "GPL-3.0"
	case begins("Mozilla Public License"):
		return "MPL-2.0"
	case begins("Apache License"):
		return "Apache-2.0"
	case has("Redistribution and use in source and binary forms") && has("Neither the name"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission to use, copy, modify, and/or distribute") || has("Permission to use, copy, modify, and distribute this software for any purpose"):
		return "ISC"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("This is free and unencumbered software"):
		return "Unlicense"
	}
	return ""
}

// allowed are licences that ask for no more than to be named.
var allowed = []string{"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "Unlicense"}

// accepted are modules whose licence asks for more, each with what it asks for and
// why it is here all the same. Anything else of the kind fails.
var accepted = map[string]string{
	"go.mau.fi/whatsmeow MPL-2.0": "file by file: it is used unchanged, and its source is public",
	"go.mau.fi/util MPL-2.0":      "file by file: it is used unchanged, and its source is public",
	"go.mau.fi/libsignal GPL-3.0": "whoever is given the binary must be offered all of its source under the GPL; to run it as a service asks for nothing",
}

func check(binary, file string, out io.Writer) error {
	list, err := modules(binary)
	if err != nil {
		return err
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var faults []error
	if string(kept) != listed(list) {
		faults = append(faults, fmt.Errorf("%s is not what is in %s: make licences", file, binary))
	}
	for _, m := range list {
		name := m.Path + " " + m.Licence
		if why := accepted[name]; why != "" {
			if _, err := fmt.Fprintf(out, "%s: %s\n", name, why); err != nil {
				return err
			}
		} else if !slices.Contains(allowed, m.Licence) {
			faults = append(faults, fmt.Errorf("%s: what the licence asks for is not accepted here", name))
		}
	}
	if len(faults) == 0 {
		_, err = fmt.Fprintf(out, "%d modules, each with a licence that is allowed or accepted\n", len(list))
	}
	return errors.Join(append(faults, err)...)
}

func sbom(binary string, out io.Writer) error {
	list, err := modules(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version = s.Value
		}
	}
	type object = map[string]any
	components, refs := []object{}, []string{}
	for _, m := range list {
		if m.Path == "std" { // as the database of Go's vulnerabilities names it, and who looks there
			m.Path, m.Version = "stdlib", strings.TrimPrefix(m.Version, "go")
		}
		ref := "pkg:golang/" + m.Path + "@" + m.Version
		refs = append(refs, ref)
		components = append(components, object{
			"type": "library", "bom-ref": ref, "name": m.Path, "version": m.Version, "purl": ref,
			"licenses":   []object{{"license": licence(m.Licence)}},
			"properties": []object{{"name": "go:sum", "value": m.Sum}},
		})
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(object{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":     object{"component": object{"type": "application", "bom-ref": "till", "name": "till", "version": version}},
		"components":   components,
		"dependencies": []object{{"ref": "till", "dependsOn": refs}},
	})
}

// licence is a licence as CycloneDX names it: by SPDX's name of it.
func licence(name string) map[string]string {
	if name == "GPL-3.0" {
		return map[string]string{"id": "GPL-3.0-only"}
	}
	return map[string]string{"id": name}
}

// explained holds the findings of gosec against those that are explained: a line
// each, as `G304 cmd/till/backup.go 4 the operator names the file`. One that is not
// there fails, and so does a line that explains more than there is.
func explained(report, file string, out io.Writer) error {
	text, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	var found struct {
		Issues []struct {
			Rule    string `json:"rule_id"`
			File    string `json:"file"`
			Line    string `json:"line"`
			Details string `json:"details"`
		}
		Stats struct{ Files, Lines int }
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("read gosec's report: %w", err)
	}
	if found.Stats.Files == 0 {
		return errors.New("gosec looked at no file")
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	left := map[string]int{}
	kept, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(kept) {
		var rule, name string
		var n int
		if _, err := fmt.Sscanf(string(line), "%s %s %d", &rule, &name, &n); err != nil || len(strings.Fields(string(line))) < 6 {
			return fmt.Errorf("%s: %q is no rule, file, number and why", file, line)
		}
		left[rule+" "+name] += n
	}
	var faults []error
	for _, i := range found.Issues {
		name, err := filepath.Rel(here, i.File)
		if err != nil {
			return err
		}
		key := i.Rule + " " + filepath.ToSlash(name)
		if left[key]--; left[key] < 0 {
			faults = append(faults, fmt.Errorf("%s:%s: %s: %s: mend it, or explain it in %s", name, i.Line, i.Rule, i.Details, file))
		}
	}
	for key, n := range left {
		if n > 0 {
			faults = append(faults, fmt.Errorf("%s explains %d findings of %s that are not there", file, n, key))
		}
	}
	if len(faults) == 0 {
		_, err = fmt.Fprintf(out, "gosec: %d files, %d lines, %d findings, each explained\n", found.Stats.Files, found.Stats.Lines, len(found.Issues))
	}
	return errors.Join(append(faults, err)...)
}

// advisory is what the index of a vulnerability database says of an entry.
type advisory struct {
	ID       string   `json:"id"`
	Modified string   `json:"modified"`
	Aliases  []string `json:"aliases,omitempty"`
}

// vulndb writes the newest Go vulnerability database that the module proxy has, in
// the form of https://go.dev/doc/security/vuln/database: its entries, and the index
// by module that govulncheck looks into. Until which version a module is affected is
// left to the entries.
func vulndb(to string, out io.Writer) error {
	from, version, err := fetched("golang.org/x/vulndb", "latest")
	if err != nil {
		return err
	}
	entries, err := filepath.Glob(filepath.Join(from, "data", "osv", "*.json"))
	if err != nil || len(entries) == 0 {
		return errors.Join(fmt.Errorf("there are no entries in %s", from), err)
	}
	for _, dir := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(to, dir), 0o750); err != nil {
			return err
		}
	}
	all, byModule := []advisory{}, map[string][]advisory{}
	for _, name := range entries {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var entry struct {
			advisory
			Affected []struct{ Package struct{ Name string } }
		}
		if err := json.Unmarshal(text, &entry); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(to, "ID", entry.ID+".json"), text, 0o600); err != nil {
			return err
		}
		all = append(all, entry.advisory)
		seen := map[string]bool{}
		for _, a := range entry.Affected {
			if !seen[a.Package.Name] {
				byModule[a.Package.Name] = append(byModule[a.Package.Name], advisory{ID: entry.ID, Modified: entry.Modified})
			}
			seen[a.Package.Name] = true
		}
	}
	type affected struct {
		Path  string     `json:"path"`
		Vulns []advisory `json:"vulns"`
	}
	modules := []affected{}
	for path, list := range byModule {
		modules = append(modules, affected{path, list})
	}
	slices.SortFunc(modules, func(a, b affected) int { return cmp.Compare(a.Path, b.Path) })
	newest := slices.MaxFunc(all, func(a, b advisory) int { return cmp.Compare(a.Modified, b.Modified) }).Modified
	for name, is := range map[string]any{"db": map[string]string{"modified": newest}, "modules": modules, "vulns": all} {
		text, err := json.Marshal(is)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "index", name+".json"), text, 0o600); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%d entries about %d modules, of golang.org/x/vulndb %s\n", len(all), len(modules), version)
	return err
}
