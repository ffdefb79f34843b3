package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"till/api/console"
	"till/cmd/till/doctor"
	"till/config"
)

// doctorCmd looks for what is wrong.
type doctorCmd struct {
	config.Settings

	JSON bool `name:"json" help:"One JSON object instead of lines."`
}

func (doctorCmd) Help() string {
	return "Example:\n\n    till doctor\n    till doctor --json | jq '.findings[] | select(.state != \"ok\")'\n\n" +
		"It names each cause and the command that mends it, beside a server that runs or without one, and changes nothing. Give it the settings of that server, for it goes by them: its folder, variables and flags. " +
		"Exits with 0 where all is well, 1 where something should be looked at, 2 where something does not work."
}

// Run looks at everything.
func (c *doctorCmd) Run(w *world) error {
	redis.SetLogger(redisLog{logger(w.err, c.Settings)})
	cfg := doctor.Config{Settings: c.Settings, File: slices.Concat(fileFaults(), variableFaults(os.Environ()), holidayFaults(c.Settings))}
	tell := func(f doctor.Finding) { printFinding(w.out, f, coloured(w.out)) }
	if c.JSON {
		tell = nil
	}
	var found []doctor.Finding
	err := patiently(w, "still looking", func() error {
		found = doctor.Run(w.ctx, cfg, tell)
		return w.ctx.Err()
	})
	if err != nil {
		return err
	}
	worst := doctor.Worst(found)
	if c.JSON {
		err = printJSON(w, struct {
			State    doctor.State     `json:"state"`
			Findings []doctor.Finding `json:"findings"`
		}{worst, found})
	} else {
		err = sumUp(w.err, found)
	}
	if err != nil {
		return err
	}
	switch worst {
	case doctor.OK:
		return nil
	case doctor.Warn:
		return codeError(1)
	case doctor.Fail:
		return codeError(2)
	}
	return nil
}

// doctor is what the doctor finds beside this server, for its console.
func (a *app) doctor(ctx context.Context) []console.Diagnosis {
	var out []console.Diagnosis
	for _, f := range doctor.Run(ctx, doctor.Config{Settings: a.set, File: holidayFaults(a.set), Quick: true}, nil) {
		out = append(out, console.Diagnosis{Check: f.Check, State: string(f.State), What: f.What, Fix: f.Fix})
	}
	return out
}

// printFinding writes a line for a finding, and one for what mends it.
func printFinding(out io.Writer, f doctor.Finding, colour bool) {
	state := fmt.Sprintf("%-4s", f.State)
	if colour {
		state = map[doctor.State]string{doctor.OK: "\x1b[32m", doctor.Warn: "\x1b[33m", doctor.Fail: "\x1b[31m"}[f.State] + state + "\x1b[0m"
	}
	_, _ = fmt.Fprintf(out, "%s  %-10s  %s\n", state, f.Check, f.What)
	if f.Fix != "" {
		_, _ = fmt.Fprintf(out, "%-18sfix: %s\n", "", f.Fix)
	}
}

// sumUp says in one line how it stands.
func sumUp(out io.Writer, found []doctor.Finding) error {
	count := map[doctor.State]int{}
	for _, f := range found {
		count[f.State]++
	}
	text := fmt.Sprintf("%d well, %d to look at, %d that do not work", count[doctor.OK], count[doctor.Warn], count[doctor.Fail])
	if count[doctor.Warn]+count[doctor.Fail] == 0 {
		text = "All is well."
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// coloured says whether words may have colours: on a terminal, unless NO_COLOR
// is set (no-color.org).
func coloured(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// settingsFile is where settings are read from beside flags and variables.
const settingsFile = "till.toml"

// fileFaults is what is wrong in the file of settings.
func fileFaults() []doctor.Finding {
	if err := shutFile(); err != nil {
		return []doctor.Finding{{Check: "settings", State: doctor.Fail, What: settingsFile + " cannot be read: " + err.Error() + ".", Fix: shutFix(err)}}
	}
	f, err := os.Open(settingsFile)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	_, faults, err := readSettings(f)
	if err != nil {
		return []doctor.Finding{{Check: "settings", State: doctor.Fail, What: settingsFile + " cannot be read: " + err.Error(), Fix: "each line is a name and a value, as:  log-level = \"info\""}}
	}
	var out []doctor.Finding
	for _, fault := range faults {
		fix := "edit " + settingsFile + "   (till config lists the settings there are)"
		plain := strings.Trim(fault.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
		if plain {
			fix = "sed -i '/^" + fault.name + " *=/d' " + settingsFile + "   (till config lists the settings there are)"
		}
		if plain && fault.meant != "" {
			fix = "sed -i 's/^" + fault.name + "\\b/" + fault.meant + "/' " + settingsFile
		}
		out = append(out, doctor.Finding{Check: "settings", State: doctor.Fail, What: settingsFile + ": " + fault.Error(), Fix: fix})
	}
	return out
}

// variableFaults is what in the environment looks like a setting and is none: a
// letter too many in TILL_DATABASE_URL, and everything is kept elsewhere.
func variableFaults(environ []string) []doctor.Finding {
	known := map[string]bool{"TILL_URL": true, "TILL_SECRET_KEY": true, "TILL_PUBLIC_KEY": true} // what commands that call the API read
	for _, s := range settings() {
		known[s.env] = true
	}
	var out []doctor.Finding
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "TILL_") || known[name] || value == "" {
			continue
		}
		for _, s := range settings() {
			if s.env == "" || distance(name, s.env) > 2 {
				continue
			}
			out = append(out, doctor.Finding{
				Check: "settings", State: doctor.Fail, What: name + " is set, and no setting: did you mean " + s.env + "?",
				Fix: "export " + s.env + "=\"$" + name + "\"; unset " + name,
			})
			break
		}
	}
	return out
}

// misnamed refuses to start on settings that were misspelt: what was meant to be kept
// in PostgreSQL would begin anew in a folder, and nobody would see why.
func misnamed() error {
	var faults []error
	for _, f := range variableFaults(os.Environ()) {
		faults = append(faults, fmt.Errorf("%s (%s)", f.What, f.Fix))
	}
	return errors.Join(faults...)
}

// lenient reads till.toml for a command that is to say what is wrong in it.
func lenient(r io.Reader) (kong.Resolver, error) {
	lines, _, err := readSettings(r)
	if err != nil {
		lines = nil
	}
	return resolve(lines), nil
}

// nearest is the setting whose name is nearest to a wrong one, "" where none is
// near.
func nearest(name string) string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return nearestOf(strings.ReplaceAll(name, "_", "-"), names)
}

// nearestOf is the word that is nearest to one that is not there, "" where none
// is near.
func nearestOf[T ~string](wrong string, words []T) string {
	best, least := "", 1+len(wrong)/3
	for _, word := range words {
		if d := distance(strings.ToLower(wrong), string(word)); d <= least && (best == "" || d < least) {
			best, least = string(word), d
		}
	}
	return best
}

// distance is how many letters are to be changed, added or dropped to make one
// word of another (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
