package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
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
	if *pictures {
		if err := os.WriteFile(filepath.Join("..", "..", "README.md"), []byte(before+begin+configTable()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the README's settings are not the program's; go test ./cmd/till -run Readme -pictures writes them:\n%s", configTable())
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

// Every file that the README names is there.
func TestTheReadmesLinksLead(t *testing.T) {
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(readme(t), -1) {
		if strings.HasPrefix(m[1], "http") {
			continue
		}
		if _, err := os.Stat(filepath.Join("..", "..", m[1])); err != nil {
			t.Errorf("the README leads to %s: %v", m[1], err)
		}
	}
}
