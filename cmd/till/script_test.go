package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"till/flow/checkout"
	"till/flow/store"
)

// exits runs a program and fails unless it ends with a code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [args...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := err.(*exec.ExitError) //nolint:errorlint // it is returned as it is
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("it ended with %d, not %s", code, args[0])
	}
}

// keep puts the first match of an expression in stdout, or its first group, into
// a variable.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME regexp")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("nothing in stdout matches %s", args[1])
	}
	ts.Setenv(args[0], found[len(found)-1])
}

// sinkCmd starts a server for webhooks until the script ends, and puts its
// address into a variable. It answers with the status that stands in a file, and
// adds what came to another.
func sinkCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sink NAME statusfile file")
	}
	status, file := ts.MkAbs(args[1]), ts.MkAbs(args[2])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, _ := os.ReadFile(status)
		code, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintf(f, "%s %s %s\n", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Signature"), body)
			f.Close()
		}
		w.WriteHeader(code)
		io.WriteString(w, "the sink says "+strconv.Itoa(code))
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// sqlCmd runs a statement on an SQLite file, as somebody beside the program would.
func sqlCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql file statement")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?mode=rw")
	if err != nil {
		ts.Fatalf("%v", err)
	}
	_, err = db.Exec(args[1])
	if err := errors.Join(err, db.Close()); err != nil {
		ts.Fatalf("%v", err)
	}
}

// leaf is a command of the program, by its path below till.
type leaf struct {
	path  []string
	flags []string
	short map[string]string // of those flags that have one
	node  *kong.Node
}

// leaves are all commands that do something.
func leaves() []leaf {
	var all []leaf
	for _, node := range parser().Model.Leaves(false) {
		v := leaf{node: node, short: map[string]string{}}
		for at := node; at.Type != kong.ApplicationNode; at = at.Parent {
			v.path = slices.Insert(v.path, 0, at.Name)
		}
		for _, flag := range node.Flags {
			if flag.Hidden {
				continue
			}
			v.flags = append(v.flags, flag.Name)
			if flag.Short != 0 {
				v.short[flag.Name] = "-" + string(flag.Short)
			}
		}
		all = append(all, v)
	}
	return all
}

// unused are verbs and flags that no script can use, each with why.
var unused = map[string]string{
	"pair --phone": "asks the real WhatsApp for an eight-letter code",
	"pair --slot":  "links a number of the real WhatsApp",
}

// Every command and every flag is used in a script. A setting, and what says
// where a Till is, is the same in each command: once is enough.
func TestEveryVerbAndFlagIsUsedInAScript(t *testing.T) {
	lines := scriptLines(t)
	once := map[string]bool{"url": true, "env-file": true}
	for _, s := range settings() {
		once[s.name] = true
	}
	used := func(path []string, flag string) bool {
		return slices.ContainsFunc(lines, func(words []string) bool {
			if len(words) < len(path) || !slices.Equal(words[:len(path)], path) {
				return false
			}
			return flag == "" || slices.ContainsFunc(words, func(w string) bool { return w == flag || strings.HasPrefix(w, flag+"=") })
		})
	}
	known := map[string]bool{}
	for _, v := range leaves() {
		name := strings.Join(v.path, " ")
		if known[name] = true; unused[name] == "" && !used(v.path, "") {
			t.Errorf("no script uses till %s", name)
			continue
		}
		for _, flag := range v.flags {
			known[name+" --"+flag] = true
			path := v.path
			if once[flag] {
				path = nil
			}
			if unused[name+" --"+flag] == "" && !used(path, "--"+flag) && (v.short[flag] == "" || !used(path, v.short[flag])) {
				t.Errorf("no script uses till %s --%s", name, flag)
			}
		}
	}
	for name := range unused {
		if !known[name] {
			t.Errorf("there is no till %s any more that could not be used", name)
		}
	}
}

// tillCall is a call of the program in a script.
var tillCall = regexp.MustCompile(`"?\$TILL"? +(.*)`)

// scriptLines are the words after till of every call in the scripts. What a shell
// file of a script passes on with "$@" counts for the call in it.
func scriptLines(t *testing.T) [][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var lines [][]string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		archive := txtar.Parse(text)
		passes := map[string]string{}
		all := []string{string(archive.Comment)}
		for _, f := range archive.Files {
			all = append(all, string(f.Data))
			for line := range strings.Lines(string(f.Data)) {
				if m := tillCall.FindStringSubmatch(line); m != nil && strings.Contains(line, `"$@"`) {
					passes[f.Name] = strings.TrimSpace(m[1])
				}
			}
		}
		for line := range strings.Lines(strings.Join(all, "\n")) {
			if m := tillCall.FindStringSubmatch(line); m != nil {
				lines = append(lines, strings.Fields(m[1]))
			}
			if before, after, ok := strings.Cut(line, ".sh "); ok {
				words := strings.Fields(before)
				if call := passes[words[len(words)-1]+".sh"]; call != "" {
					lines = append(lines, strings.Fields(call+" "+after))
				}
			}
		}
	}
	return lines
}

// No command uses a live key that nobody said is one, and none plays with real
// money. Nothing listens where they would call.
func TestALiveKeyIsRefusedUnlessItIsMeant(t *testing.T) {
	t.Setenv("TILL_SECRET_KEY", "sk_live_nobodys")
	t.Setenv("TILL_URL", "http://127.0.0.1:1")
	more := map[string][]string{"chaos rail": {"--off"}, "webhooks remove": {"--yes"}, "try": {"--wait=1ms"}}
	arguments := map[string]string{"amount": "500000", "event": "charge.success", "by": "1m"}
	n := 0
	for _, v := range leaves() {
		if !slices.Contains(v.flags, "env-file") || !slices.Contains(v.flags, "url") {
			continue
		}
		n++
		args := slices.Concat(v.path, more[strings.Join(v.path, " ")])
		for _, p := range v.node.Positional {
			value := arguments[p.Name]
			if value == "" {
				value = "x"
			}
			args = append(args, value)
		}
		var errs strings.Builder
		if code := run(context.Background(), args, io.Discard, &errs); code != exitRefused {
			t.Errorf("till %s ended with %d: %s", strings.Join(args, " "), code, errs.String())
		}
	}
	if n < 15 {
		t.Errorf("only %d commands call a Till", n)
	}
}

// Whatever works on the live environment of a data dir says so before it acts:
// where that is and whose money it is about, on stderr alone.
func TestWhatIsLiveIsNamedBeforeItIsTouched(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	call := func(args ...string) (code int, out, errs string) {
		var o, e strings.Builder
		code = run(t.Context(), append(args, "--data-dir", dir), &o, &e)
		return code, o.String(), e.String()
	}
	if code, _, errs := call("migrate"); code != exitOK {
		t.Fatalf("migrate: %s", errs)
	}
	project := shopIn(t, dir)
	arguments := map[string]string{"method": "card", "project": string(project.Project.ID)}
	more := map[string][]string{
		"desk claim": {"--as=ada", "--reason=asked for"}, "desk reply": {"--as=ada"}, "desk release": {"--as=ada"}, "keys create": {"--kind=secret"}, "keys revoke": {"--yes"},
	}
	t.Setenv("TILL_SECRET_KEY", project.SecretKey)
	n := 0
	for _, v := range leaves() {
		if !slices.Contains(v.flags, "live") || !slices.Contains(v.flags, "data-dir") {
			continue
		}
		n++
		args := slices.Concat(v.path, []string{"--live"}, more[strings.Join(v.path, " ")])
		for _, p := range v.node.Positional {
			value := arguments[p.Name]
			if value == "" {
				value = "x"
			}
			args = append(args, value)
		}
		_, out, errs := call(args...)
		if !strings.HasPrefix(errs, "till: live, ") || strings.Contains(out, "till: live") {
			t.Errorf("till %s says %q on stderr first, and %q", strings.Join(args, " "), errs, out)
		}
	}
	if n < 20 {
		t.Errorf("only %d commands work on a live environment", n)
	}
}

// shopIn makes an account with a project in a data dir.
func shopIn(t *testing.T, dir string) checkout.SignedUp {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{Schema: store.Accounts, Dir: dir, Name: "accounts"})
	must(t, err)
	made, err := checkout.NewAccounts(db, time.Now, rand.Reader).Demo(t.Context(), "ada@example.com", "Ada Stores", func(checkout.SignedUp) error { return nil })
	must(t, errors.Join(err, db.Close()))
	return made
}
