package api

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"till/api/apitest"
	"till/flow"
)

func TestEveryErrorHasAPageOfItsOwn(t *testing.T) {
	s := open(t)
	seen := map[string]string{}
	known := map[string]bool{}
	for _, code := range allCodes(t) {
		known[string(code)] = true
		r := s.ask("GET", "/docs/errors/"+string(code), "", "")
		if r.status != http.StatusOK || r.header.Get("Content-Type") != htmlKind {
			t.Errorf("%s: %d %s", code, r.status, r.header.Get("Content-Type"))
			continue
		}
		kind, _ := classOf(code)
		for _, want := range []string{"<h1><code>" + string(code) + "</code></h1>", "HTTP " + strconv.Itoa(kind.status), "<code>" + kind.kind + "</code>"} {
			if !strings.Contains(r.body, want) {
				t.Errorf("%s: its page does not say %s", code, want)
			}
		}
		strangeWords(t, string(code), r.body)
	}
	for _, p := range s.server.pages.errors {
		if !known[string(p.Code)] {
			t.Errorf("%s has a page and is no code", p.Code)
		}
		for part, text := range map[string]string{"means": p.Means, "why": p.Why, "fix": p.Fix, "example": p.Example} {
			if len(strings.Fields(text)) < 2 || part != "example" && len(text) < 25 {
				t.Errorf("%s says next to nothing under %s: %q", p.Code, part, text)
			}
			if other := seen[text]; other != "" {
				t.Errorf("%s and %s say the same: %q", p.Code, other, text)
			}
			seen[text] = string(p.Code)
		}
	}
}

// strangeWords holds a page against words that mean nothing to a merchant.
func strangeWords(t *testing.T, at, page string) {
	t.Helper()
	if found := regexp.MustCompile(`(?i)\b(goroutine|nil|SQL(ITE)?|stack trace|panic|mutex|TODO)\b`).FindString(page); found != "" {
		t.Errorf("%s says %q", at, found)
	}
}

func TestTheDocUrlOfAnErrorLeadsToItsPage(t *testing.T) {
	s := open(t)
	r := s.ask("POST", sessions, s.key, `{"amount":5000.0,"customerEmail":"a@b.co"}`)
	page := s.ask("GET", r.text("error.docUrl"), "", "")
	if page.status != http.StatusOK || !strings.Contains(page.body, "amount_must_be_integer") {
		t.Errorf("%s: %d", r.text("error.docUrl"), page.status)
	}
}

func TestAnUnknownErrorIsSaidToBeUnknown(t *testing.T) {
	s := open(t)
	for _, name := range []string{"made_up", "%3Cscript%3E", "amount_must_be_integer.html", "..%2f..%2fopenapi.yaml"} {
		r := s.ask("GET", "/docs/errors/"+name, "", "")
		if r.status != http.StatusNotFound && r.status != http.StatusBadRequest || strings.Contains(r.body, "<script>") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	r := s.ask("GET", "/docs/errors/made_up", "", "")
	if r.header.Get("Content-Type") != htmlKind || !strings.Contains(r.body, `href="/docs/errors"`) {
		t.Errorf("no page: %s %s", r.header.Get("Content-Type"), r.body)
	}
	list := s.ask("GET", "/docs/errors", "", "")
	for _, code := range allCodes(t) {
		if !strings.Contains(list.body, `href="/docs/errors/`+string(code)+`"`) {
			t.Errorf("%s is not in the list", code)
		}
	}
}

// No page of the documentation reaches out to anybody else, runs anything that
// stands in it, or leads to nowhere.
func TestThePagesOfTheDocumentationStandAlone(t *testing.T) {
	s := open(t)
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for _, page := range []string{"/docs", "/docs/errors", "/docs/errors/rail_timeout", "/docs/snippets"} {
		r := s.ask("GET", page, "", "")
		policy := r.header.Get("Content-Security-Policy")
		if r.status != http.StatusOK || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "script-src 'unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %q", page, r.status, policy)
		}
		if regexp.MustCompile(`<script>|<style|style=| on\w+=`).MatchString(r.body) {
			t.Errorf("%s holds what its policy forbids", page)
		}
		for _, m := range links.FindAllStringSubmatch(r.body, -1) {
			if !strings.HasPrefix(m[1], "/") || strings.HasPrefix(m[1], "//") {
				t.Errorf("%s leads to %s", page, m[1])
			} else if got := s.ask("GET", m[1], "", ""); got.status != http.StatusOK {
				t.Errorf("%s leads to %s: %d", page, m[1], got.status)
			}
		}
	}
}

func TestFilesOfTheDocumentation(t *testing.T) {
	s := open(t)
	for name, kind := range map[string]string{
		"docs.css": "text/css", "docs.js": "text/javascript", "swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "favicon.png": "image/png",
	} {
		plain := s.ask("GET", "/docs/assets/"+name, "", "")
		packed := s.ask("GET", "/docs/assets/"+name, "", "", http.Header{"Accept-Encoding": {"gzip"}})
		if plain.status != http.StatusOK || !strings.HasPrefix(plain.header.Get("Content-Type"), kind) || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", name, plain.status, plain.header)
		}
		if strings.HasPrefix(name, "swagger") {
			if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body)*2 > len(plain.body) {
				t.Errorf("%s is not packed: %d of %d bytes", name, len(packed.body), len(plain.body))
			}
			got, err := unpack([]byte(packed.body))
			if err != nil || string(got) != plain.body {
				t.Errorf("%s packed is another file: %v", name, err)
			}
		}
	}
	for _, name := range []string{"docs.html", "errors.toml", "swagger-ui.map", "..%2fdocs.css", "none.css", "oauth2-redirect.html"} {
		if r := s.ask("GET", "/docs/assets/"+name, "", ""); r.status < http.StatusBadRequest {
			t.Errorf("%s is served", name)
		}
	}
}

func TestSnippetsAreShownInTheirOrder(t *testing.T) {
	s := open(t)
	r := s.ask("GET", "/docs/snippets", "", "")
	var order []string
	for _, m := range regexp.MustCompile(`<summary>(\w+)</summary>`).FindAllStringSubmatch(r.body, -1) {
		order = append(order, m[1])
	}
	if want := strings.Repeat("cURL Node PHP Python Go ", 5); strings.Join(order, " ")+" " != want {
		t.Errorf("the order is %v", order)
	}
	for _, task := range s.server.pages.tasks {
		for _, f := range task.Files {
			if !strings.Contains(r.body, html.EscapeString(f.Code)) && !strings.Contains(html.UnescapeString(r.body), f.Code) {
				t.Errorf("%s in %s is not shown as it is", task.Title, f.Language)
			}
		}
	}
}

// What we keep is told where merchants and operators read, in figures, and that is what is kept.
func TestWhatWeKeepIsTold(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	must(t, err)
	price := regexp.MustCompile(`we keep ([0-9])\.([0-9]) % to the nearest kobo, with ₦([0-9,]+) more from ₦([0-9,]+) up, and ₦([0-9,]+) at most`)
	for where, text := range map[string]string{"README.md": string(readme), "openapi.yaml": contract(t).Doc.Info.Description} {
		m := price.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s does not tell what we keep", where)
			continue
		}
		told := func(i int) flow.Kobo {
			n, err := strconv.ParseInt(strings.ReplaceAll(m[i], ",", ""), 10, 64)
			must(t, err)
			return flow.Kobo(n)
		}
		for _, paid := range []flow.Kobo{100, 133, 134, 100_000, 249_999, 250_000, 500_000, 12_666_667, flow.MaxAmount} {
			keep := (paid*(10*told(1)+told(2)) + 500) / 1000
			if paid >= 100*told(4) {
				keep += 100 * told(3)
			}
			if keep = min(keep, 100*told(5)); keep != flow.Fee(paid) {
				t.Errorf("%s: of %s we keep %s, and %s is told", where, paid.Naira(), flow.Fee(paid).Naira(), keep.Naira())
			}
		}
	}
}

// What the page has a shell do gives the programs what they need: variables that are set
// and not exported are none of theirs.
func TestSnippetsHaveWhatTheyNeedByWhatTheirPageSays(t *testing.T) {
	s := open(t)
	m := regexp.MustCompile(`<code>([^<]*\.env\.till)</code>`).FindStringSubmatch(s.ask("GET", "/docs/snippets", "", "").body)
	if m == nil {
		t.Fatal("the page does not say how they are given their variables")
	}
	run := exec.CommandContext(t.Context(), "sh", "-c", html.UnescapeString(m[1])+`; sh -euc 'echo "$TILL_URL $TILL_SECRET_KEY"'`)
	run.Dir, run.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}
	must(t, os.WriteFile(filepath.Join(run.Dir, ".env.till"), []byte("TILL_URL=http://127.0.0.1:1\nTILL_SECRET_KEY=sk_test_1\n"), 0o600))
	if out, err := run.CombinedOutput(); err != nil || string(out) != "http://127.0.0.1:1 sk_test_1\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheDocumentIsServedAsItIs(t *testing.T) {
	s := open(t)
	r := s.ask("GET", "/openapi.yaml", "", "")
	if r.status != http.StatusOK || r.body != string(document) || !strings.HasPrefix(r.header.Get("Content-Type"), "application/yaml") {
		t.Errorf("%d %v", r.status, r.header)
	}
}

// In JSON it says the same, each thing where it holds.
func TestTheDocumentIsServedAsJSON(t *testing.T) {
	s := open(t)
	r := s.ask("GET", "/openapi.json", "", "")
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") || !json.Valid([]byte(r.body)) {
		t.Fatalf("%d %v", r.status, r.header)
	}
	same, err := apitest.Load(t.Context(), []byte(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(same.Raw, contract(t).Raw) {
		t.Error("it is another document than the YAML")
	}
}

// Generators of clients write a file for each tag, the calls first: one of the events
// with the same tag would take its place, and the client would lack those calls.
func TestNoTagIsThatOfCallsAndOfEvents(t *testing.T) {
	calls := map[string]string{}
	for _, op := range operations(t) {
		for _, tag := range op.Tags {
			calls[tag] = op.OperationID
		}
	}
	for event, item := range contract(t).Doc.Webhooks {
		for _, op := range item.Operations() {
			for _, tag := range op.Tags {
				if calls[tag] != "" {
					t.Errorf("%s has the tag %s of %s", event, tag, calls[tag])
				}
			}
		}
	}
}

// Swagger UI opens a call by its tag and operationId, and a webhook by "webhooks" and
// its operationId: a link by anything else opens nothing and says nothing.
func TestTheLinksOfTheDocumentOpenSomething(t *testing.T) {
	s := open(t)
	places := map[string]bool{}
	for _, op := range operations(t) {
		for _, tag := range op.Tags {
			places["#/"+url.PathEscape(tag)+"/"+op.OperationID] = true
		}
	}
	for _, item := range contract(t).Doc.Webhooks {
		for _, op := range item.Operations() {
			places["#/webhooks/"+op.OperationID] = true
		}
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(document), -1)
	if len(links) < 10 {
		t.Fatalf("only %d links were found", len(links))
	}
	for _, m := range links {
		page, anchor, _ := strings.Cut(m[1], "#")
		switch {
		case strings.HasPrefix(m[1], "https://"):
		case page == "":
			if !places[m[1]] {
				t.Errorf("%s opens nothing", m[1])
			}
		default:
			if r := s.ask("GET", page, "", ""); r.status != http.StatusOK || anchor != "" && !strings.Contains(r.body, `id="`+anchor+`"`) {
				t.Errorf("%s leads nowhere", m[1])
			}
		}
	}
}
