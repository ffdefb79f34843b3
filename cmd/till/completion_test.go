package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// offers are lines that somebody types up to the key that completes them, and a
// word that is offered there.
var offers = []struct{ line, word string }{
	{"till num", "numbers"},
	{"till numbers dr", "drain"},
	{"till merchants kyc app", "approve"},
	{"till numbers list --js", "--json"},
	{"till people add x@example.com --role op", "operator"},
	{"till veri", "verify"},
}

// script is the program's script for a shell, in a file of a name.
func script(t *testing.T, shell, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"completion", shell}, &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	must(t, os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o600))
	return dir
}

func TestFishCompletes(t *testing.T) {
	fish := tilltest.Need(t, "fish", "fish")
	t.Chdir(t.TempDir())
	dir := script(t, "fish", "till.fish")
	for _, o := range offers {
		cmd := exec.CommandContext(t.Context(), fish, "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, filepath.Join(dir, "till.fish"), o.line)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), o.word+"\t") {
			t.Errorf("%s: %v\n%s", o.line, err, out)
		}
	}
}

// typed has a zsh of its own, in a terminal of its own, read the script as its
// users do, and writes down what is offered where somebody asks for the first
// time.
const typed = `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "source $1/rc"
until [[ $line == *all-is-read* ]]; do zpty -r z line || exit 1; done
zpty -n -w z "$2"$'\t'
until [[ $line == *all-is-done* ]]; do zpty -r z line || exit 1; done
cat $1/offered`

// typedRC is what that zsh begins with: it ends once it has completed a word.
const typedRC = `PROMPT=
fpath=($1 $fpath)
autoload -U compinit; compinit -D -u
bindkey '^I' complete-word
compadd() {
  local -a hits
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- $hits >>DIR/offered
  builtin compadd "$@"
}
ended() { print; print all-is-done; exit }
comppostfuncs=(ended)
echo all-is-read
`

func TestZshCompletesTheFirstTime(t *testing.T) {
	zsh := tilltest.Need(t, "zsh", "zsh")
	t.Chdir(t.TempDir())
	for _, o := range offers {
		dir := script(t, "zsh", "_till")
		rc := strings.ReplaceAll(strings.ReplaceAll(typedRC, "DIR", dir), "$1", dir)
		must(t, os.WriteFile(filepath.Join(dir, "rc"), []byte(rc), 0o600))
		cmd := exec.CommandContext(t.Context(), zsh, "-f", "-c", typed, "zsh", dir, o.line)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil || !slices.Contains(strings.Fields(string(out)), o.word) {
			t.Errorf("%s: %v\n%s", o.line, err, out)
		}
	}
}
