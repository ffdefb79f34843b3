package console_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"till/flow"
)

// ask calls the REST API with a key.
func (w *world) ask(method, path, key, body string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	must(w.t, err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return w.do(&http.Client{}, r)
}

// visitor is a browser: it keeps cookies, and follows no redirect by itself.
type visitor struct {
	w    *world
	http *http.Client
	csrf string // of its forms, once a page showed it
}

// reply is what was answered.
type reply struct {
	status int
	header http.Header
	body   string
}

// visitor is a browser that nobody has logged in with.
func (w *world) visitor() *visitor {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	return &visitor{w: w, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as is a browser in which somebody with a role is logged in: for Ada, or for
// another merchant. An operator belongs to none.
func (w *world) as(role flow.Role, of ...merchant) *visitor {
	w.t.Helper()
	in, err := w.accounts.EnterAs(w.t.Context(), append(of, w.ada)[0].email, role)
	must(w.t, err)
	return w.carrying(in.Text)
}

// cookie is the name of one of our cookies in this world.
func (w *world) cookie(name string) string {
	return name + "-" + w.base[strings.LastIndexByte(w.base, ':')+1:]
}

// carrying is a browser that has the cookie of a login.
func (w *world) carrying(text string) *visitor {
	w.t.Helper()
	v := w.visitor()
	at, _ := url.Parse(w.base)
	v.http.Jar.SetCookies(at, []*http.Cookie{{Name: w.cookie("till-visit"), Value: text, Path: "/"}})
	return v
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// unlawful is what a page holds that none may: what its policy forbids, and what a
// template leaves where something was missing; "" for nothing. It is not one regular
// expression: that took a sixth of what these tests take under the race detector.
func unlawful(page string) string {
	page = strings.ToLower(page)
	for _, bad := range []string{"<style", "zgotmplz", "<no value>", "&lt;no value&gt;", "javascript:"} {
		if strings.Contains(page, bad) {
			return bad
		}
	}
	for _, script := range strings.Split(page, "<script")[1:] {
		head, text, closed := strings.Cut(script, ">")
		if closed && (head == "" || head[0] == ' ') && text != "" && text[0] != '<' {
			return "<script" + head + ">" + text[:1]
		}
	}
	parts := strings.Split(page, `="`)
	for _, part := range parts[:len(parts)-1] {
		at := strings.LastIndexAny(part, " \t\r\n\f")
		if name := part[at+1:]; at >= 0 && (name == "style" || len(name) > 2 && strings.HasPrefix(name, "on") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "") {
			return name + `="`
		}
	}
	return ""
}

// What no page may hold is found where it stands.
func TestUnlawfulPages(t *testing.T) {
	for page, bad := range map[string]bool{
		`<p><script src="/a.js" defer></script></p>`: false, `<script>x()</script>`: true, `<SCRIPT type="module"> x</SCRIPT>`: true, `<scripts>x`: false,
		`<p Style="a">`: true, `<style>`: true, `<p data-style="a">`: false, "<p\nonclick=\"a\">": true, `<p on="a">`: false, `<p class="a" onX="b">`: true, `<p on-x="a">`: false,
		`<a href="javascript:x">`: true, `#ZgotmplZ`: true, `&lt;no value&gt;`: true, ``: false, `="`: false,
	} {
		if got := unlawful(page); (got != "") != bad {
			t.Errorf("%s: %q", page, got)
		}
	}
}

// get loads a page.
func (v *visitor) get(path string) reply {
	v.w.t.Helper()
	r, err := http.NewRequestWithContext(v.w.t.Context(), http.MethodGet, v.w.base+path, http.NoBody)
	must(v.w.t, err)
	got := v.w.do(v.http, r)
	if found := csrfField.FindStringSubmatch(got.body); found != nil {
		v.csrf = found[1]
	}
	return got
}

// post sends a form, with this visitor's token unless the fields name one.
func (v *visitor) post(path string, fields url.Values) reply {
	v.w.t.Helper()
	form := url.Values{}
	maps.Copy(form, fields)
	if !form.Has("csrf") {
		if v.csrf == "" {
			v.get("/")
		}
		if v.csrf == "" { // nobody is logged in
			v.get("/login")
		}
		form.Set("csrf", v.csrf)
	}
	r, err := http.NewRequestWithContext(v.w.t.Context(), http.MethodPost, v.w.base+path, strings.NewReader(form.Encode()))
	must(v.w.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if path == "/choose" { // what comes next is sent from another page
		v.csrf = ""
	}
	return v.w.do(v.http, r)
}

// do sends a request. What a page must never hold fails the test, and so does a
// fault of ours.
func (w *world) do(client *http.Client, r *http.Request) reply {
	w.t.Helper()
	answer, err := client.Do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	must(w.t, err)
	got := reply{answer.StatusCode, answer.Header, string(all)}
	if got.status == http.StatusInternalServerError {
		w.t.Fatalf("%s %s failed: %s\n%s", r.Method, r.URL.Path, got.body, w.log)
	}
	if strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		if bad := unlawful(got.body); bad != "" {
			w.t.Errorf("%s %s holds %q", r.Method, r.URL.Path, bad)
		}
	}
	return got
}

// wants fails the test unless a reply has a status and holds these texts.
func (w *world) wants(got reply, status int, texts ...string) {
	w.t.Helper()
	if got.status != status {
		w.t.Fatalf("status %d, not %d: %s", got.status, status, got.main())
	}
	for _, text := range texts {
		if !strings.Contains(got.body, text) {
			w.t.Fatalf("the page does not hold %q: %s", text, got.main())
		}
	}
}

// main is the part of a page that is its own, or the whole of what is no page.
func (r reply) main() string {
	_, from, found := strings.Cut(r.body, "<main")
	own, _, _ := strings.Cut(from, "</main>")
	if !found {
		return r.body
	}
	return own
}

// form makes fields out of names and values in turn.
func form(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out.Add(pairs[i], pairs[i+1])
	}
	return out
}
