package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"

	"till/config"
)

// tomlFile reads settings from till.toml: one line each, named as the flags.
func tomlFile(r io.Reader) (kong.Resolver, error) {
	lines, faults, err := readSettings(r)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return resolve(lines), nil
}

// shutFile is why till.toml cannot be read, where there is one: kong passes over one that
// may not be, and waits for ever for whoever writes into a pipe. Of a folder that may not
// be searched nobody knows whether there is.
func shutFile() error {
	f, err := plainFile(settingsFile)
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, errNoFile) {
		return err
	}
	if _, there := os.Lstat(settingsFile); there != nil || !errors.Is(err, fs.ErrPermission) {
		return nil //nolint:nilerr // what else is wrong kong says
	}
	return err
}

// errNoFile is what is wrong with a folder, a pipe or a device in the place of a file.
var errNoFile = errors.New("it is no plain file")

// plainFile opens a file to be read. A pipe would be waited for, and a device read as far
// as it goes: errNoFile.
func plainFile(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	return os.Open(name)
}

// readPlain reads a plain file, of a long one so many bytes.
func readPlain(name string, most int64) ([]byte, error) {
	f, err := plainFile(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}

// shutFix shows what till.toml is, and whose.
func shutFix(err error) string {
	if errors.Is(err, errNoFile) {
		return "ls -ld " + settingsFile + "   (then put a file there, or move that away)"
	}
	return "ls -l " + settingsFile + "   (then run this as its owner, or let this user read it: chgrp and chmod g+r)"
}

// settingError is a line of till.toml that cannot be used.
type settingError struct {
	name  string
	meant string // the setting that was meant, "" where nobody knows
	value bool   // the name is right, and the value is none
}

// Error says what is wrong.
func (f settingError) Error() string {
	if f.value {
		return f.name + " is one value: a text in quotes, a number, true or false"
	}
	meant := ""
	if f.meant != "" {
		meant = fmt.Sprintf(": did you mean %q?", f.meant)
	}
	return fmt.Sprintf("there is no setting %q%s (see: till config)", f.name, meant)
}

// readSettings reads the lines of till.toml, and what is wrong with them, by
// name.
func readSettings(r io.Reader) (map[string]any, []settingError, error) {
	lines := map[string]any{}
	if _, err := toml.NewDecoder(r).Decode(&lines); err != nil {
		return nil, nil, err
	}
	known := map[string]bool{}
	for _, s := range settings() {
		known[s.name] = true
	}
	var faults []settingError
	for name, value := range lines {
		if !known[name] {
			faults = append(faults, settingError{name: name, meant: nearest(name)})
			delete(lines, name)
			continue
		}
		switch value.(type) {
		case string, bool, int64:
			lines[name] = fmt.Sprint(value) // whatever it is, it is read as a flag would be
		default:
			faults = append(faults, settingError{name: name, value: true})
			delete(lines, name)
		}
	}
	slices.SortFunc(faults, func(a, b settingError) int { return strings.Compare(a.name, b.name) })
	return lines, faults, nil
}

// resolve gives flags their values of the file. What is set in the environment stands:
// kong asks resolvers after it, and takes what they say.
func resolve(lines map[string]any) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, name := range flag.Envs {
			if _, set := os.LookupEnv(name); set {
				return nil, nil //nolint:nilnil // kong's way to say that there is none
			}
		}
		return lines[flag.Name], nil
	})
}

// setting is one line of the configuration table.
type setting struct{ name, env, standard, help string }

// settings lists every setting there is, from the tags of config.Settings.
func settings() []setting {
	t := reflect.TypeFor[config.Settings]()
	list := make([]setting, 0, t.NumField())
	for field := range t.Fields() {
		tag := field.Tag
		list = append(list, setting{name: tag.Get("name"), env: tag.Get("env"), standard: tag.Get("default"), help: tag.Get("help")})
	}
	return list
}

// configTable is the README's table of settings.
func configTable() string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | what for |\n|---|---|---|---|\n")
	for _, s := range settings() {
		standard := "–"
		if s.standard != "" {
			standard = "`" + s.standard + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", s.name, s.env, standard, s.help)
	}
	return b.String()
}

// configCmd shows the settings.
type configCmd struct {
	config.Settings

	Table bool `help:"Print the table of the README instead."`
	JSON  bool `name:"json" help:"Print JSON."`
}

func (configCmd) Help() string { return "Example:\n\n    TILL_LOG_LEVEL=info till config" }

// Run prints every setting, its value and where that comes from.
func (c *configCmd) Run(w *world) error {
	if c.Table {
		_, err := io.WriteString(w.out, configTable())
		return err
	}
	v := reflect.ValueOf(c.Settings)
	list := []settingLine{}
	for i, s := range settings() {
		origin := "default"
		given := false
		for _, p := range w.kong.Path {
			if p.Flag != nil && p.Flag.Name == s.name {
				given = true
			}
		}
		_, inEnv := os.LookupEnv(s.env)
		value := fmt.Sprint(v.Field(i).Interface())
		switch {
		case given && !p0(w.kong, s.name):
			origin = "flag"
		case inEnv:
			origin = s.env
		case value != s.standard:
			origin = "till.toml"
		}
		if list = append(list, settingLine{s.name, value, origin}); c.JSON {
			continue
		}
		if _, err := fmt.Fprintf(w.out, "%-20s %-40s %s\n", s.name, value, origin); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := printJSON(w, list); err != nil {
			return err
		}
	}
	_, bad := calendar(c.Settings)
	return errors.Join(c.Check(), bad)
}

// settingLine is a setting as it is shown.
type settingLine struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// p0 says whether a flag's place in the path came from a resolver and not from
// the command line.
func p0(k *kong.Context, name string) bool {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == name {
			return p.Resolved
		}
	}
	return false
}

// versionCmd shows the version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// release is what a build without a repository says that it is of, by
// -ldflags "-X main.release=…".
var release string

// version is what the program was built of: its release, or else the commit.
var version = cmp.Or(release, builtOf())

// builtOf is what Go noted of the repository, "dev" where it was built without one.
func builtOf() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

func (versionCmd) Help() string { return "Example:\n\n    till version" }

// Run prints the version.
func (c versionCmd) Run(w *world) error {
	return printDone(w, c.JSON, map[string]string{"version": version, "go": runtime.Version()}, "till %s\n", version)
}
