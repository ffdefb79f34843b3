package main

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"

	"till/api"
	"till/cmd/till/tilltest"
)

var update = flag.Bool("update", false, "write the README's table of settings anew")

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	must(t, err)
	return string(text)
}

// The table of settings in the README is the program's own.
func TestTheReadmeListsEverySetting(t *testing.T) {
	text := readme(t)
	const begin, end = "<!-- settings -->\n", "<!-- /settings -->"
	before, rest, ok := strings.Cut(text, begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the README has no place for the settings")
	}
	if have == configTable() {
		return
	}
	if *update {
		must(t, os.WriteFile(filepath.Join("..", "..", "README.md"), []byte(before+begin+configTable()+end+after), 0o600))
		return
	}
	t.Errorf("the README's settings are not the program's; go test ./cmd/till -run Readme -update writes them:\n%s", configTable())
}

// The README's first payment works as it stands there.
func TestTheReadmesFirstPaymentWorks(t *testing.T) {
	block := regexp.MustCompile("(?s)<!-- first payment -->\n```sh\n(.*?)```").FindStringSubmatch(readme(t))
	if block == nil {
		t.Fatal("the README has no first payment")
	}
	m, _, dir := devServer(t)
	cmd := exec.Command("sh", "-euc", block[1]+"\necho\necho \"session=$session\"")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	session := regexp.MustCompile(`session=(wsp_sess_\w+)`).FindStringSubmatch(string(out))
	if session == nil {
		t.Fatalf("no session was made:\n%s", out)
	}
	m.until("the session is paid", func() bool {
		return m.call(http.MethodGet, "/v1/whatsapp/checkout/sessions/"+session[1], nil)["status"] == "PAID"
	})
}

// Everything that the README leads to is there: files, and headings of itself. What
// is elsewhere is not asked for, and is at least an https address.
func TestTheReadmesLinksLead(t *testing.T) {
	text := readme(t)
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		headings[strings.ReplaceAll(name, " ", "-")] = true
	}
	n := 0
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		n++
		if strings.Contains(m[1], "://") {
			if at, err := url.Parse(m[1]); err != nil || at.Scheme != "https" || at.Host == "" {
				t.Errorf("the README leads to %s: %v", m[1], err)
			}
			continue
		}
		file, heading, anchored := strings.Cut(m[1], "#")
		if anchored && (file != "" || !headings[heading]) {
			t.Errorf("the README leads to %s, and has no such heading", m[1])
		}
		if file == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Errorf("the README leads to %s: %v", m[1], err)
		}
	}
	if n < 4 {
		t.Errorf("only %d links were found", n)
	}
}

// Every page, call and file that the README names in its text is there.
func TestWhatTheReadmeNamesIsThere(t *testing.T) {
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(readme(t), "")
	calls, files := 0, 0
	for _, m := range regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/[^ `?]*)").FindAllStringSubmatch(text, -1) {
		calls++
		routed(t, m[1], m[2])
	}
	for _, m := range regexp.MustCompile("`([a-z.]+(?:/[a-z_.-]+)+|Makefile|\\.[a-z]+/[a-z-]+|\\.golangci\\.yml)`").FindAllStringSubmatch(text, -1) {
		name := m[1]
		if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "logs/") || strings.HasPrefix(name, "bin/") || name == "database/sql" { // made by running, or not ours
			continue
		}
		files++
		if _, err := os.Stat(filepath.Join("..", "..", name)); err != nil {
			t.Errorf("the README names %s: %v", name, err)
		}
	}
	if calls < 10 || files < 15 {
		t.Errorf("only %d calls and %d files were found", calls, files)
	}
}

// block is the code of the README behind a mark.
func block(t *testing.T, mark string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)<!-- " + mark + " -->\n```sh\n(.*?)```").FindStringSubmatch(readme(t))
	if found == nil {
		t.Fatalf("the README has no block %q", mark)
	}
	return found[1]
}

// onPath puts the program into a folder of its own as till, for the PATH.
func onPath(t *testing.T) string {
	t.Helper()
	bin := tilltest.Program(t)
	dir := t.TempDir()
	must(t, os.Symlink(bin, filepath.Join(dir, "till")))
	return "PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// The README's command line works as it stands there.
func TestTheReadmesCommandLineWorks(t *testing.T) {
	_, _, dir := devServer(t)
	cmd := exec.Command("sh", "-euc", block(t, "command line"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), onPath(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"charge.success verified after", "PAID  ₦5,000 paid", "charge.underpaid", "the bank is well", "Ada Stores"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// So does its till listen, for the port where a program of the reader's would be.
func TestTheReadmesListenWorks(t *testing.T) {
	m, _, dir := devServer(t)
	came := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- string(body)
	}))
	t.Cleanup(target.Close)
	line := strings.Replace(strings.TrimSpace(block(t, "listen")), "http://localhost:3000/hook", target.URL, 1)
	p := start(t, dir, nil, strings.Fields(line)[1:]...)
	p.Line(`Ready! .* whsec_`)
	account := m.call(http.MethodPost, "/v1/charges", object{"amount": 500_000, "customerEmail": "ada@example.com"})["virtualAccount"].(object)["accountNumber"]
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	p.Line(` 200 .* charge\.success +evt_`)
	if body := <-came; !strings.Contains(body, `"event":"charge.success"`) {
		t.Errorf("it brought %s", body)
	}
}

// Every call of till in the README's code is one that the program understands.
func TestTheReadmesCommandsAreUnderstood(t *testing.T) {
	fence := regexp.MustCompile("(?s)```sh\n(.*?)```")
	call := regexp.MustCompile(`(?:^|[ (])(?:bin/)?till ([a-z][^#)|&]*)`)
	n := 0
	for _, code := range fence.FindAllStringSubmatch(readme(t), -1) {
		for line := range strings.Lines(regexp.MustCompile(`<[^>]*>|'[^']*'|\$\w+|wsp_prj_\S*`).ReplaceAllString(code[1], "x")) {
			m := call.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			n++
			understood(t, m[1])
		}
	}
	if n < 20 {
		t.Errorf("only %d calls were found", n)
	}
}

// parser reads calls of the program. It is made once: that takes longer than to read them all.
var parser = sync.OnceValue(func() *kong.Kong { return kong.Must(&commands{}, kong.Name("till"), kong.Exit(func(int) {})) })

// understood fails the test where the program does not understand a call of it.
func understood(t *testing.T, args string) {
	t.Helper()
	if _, err := parser().Parse(strings.Fields(args)); err != nil {
		t.Errorf("till %s: %v", args, err)
	}
}

// routed fails the test where a call is none of the API's.
func routed(t *testing.T, method, path string) {
	t.Helper()
	plain := regexp.MustCompile(`:\w+|\{\w+\}`)
	if !slices.ContainsFunc(api.Routes(), func(r api.Route) bool {
		return r.Method == method && plain.ReplaceAllString(r.Path, "{}") == plain.ReplaceAllString(path, "{}")
	}) {
		t.Errorf("%s %s is no call", method, path)
	}
}

// Every command shows an example, and understands it as it is copied: what it comes to
// is a comment of the shell.
func TestEveryCommandHasAnExample(t *testing.T) {
	call, own := regexp.MustCompile(`\btill ([a-z][^&|>)#\n]*)`), regexp.MustCompile(`<[^>]*>|'[^']*'|\$\(date[^)]*\)`)
	for _, v := range leaves() {
		_, detail, _ := strings.Cut(v.node.Detail, "Example")
		n := 0
		for line := range strings.Lines(detail) {
			if !strings.HasPrefix(line, "  ") {
				continue
			}
			for _, m := range call.FindAllStringSubmatch(own.ReplaceAllString(line, "x"), -1) {
				n++
				understood(t, m[1])
			}
		}
		if n == 0 {
			t.Errorf("till %s --help has no example: %q", strings.Join(v.path, " "), v.node.Detail)
		}
	}
}
