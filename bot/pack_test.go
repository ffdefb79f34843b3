package bot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"till/flow"
)

// pack is the language as it stands in the file.
func pack(t *testing.T) map[string]string {
	t.Helper()
	source, err := os.ReadFile("text/en.toml")
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]any{}
	if _, err := toml.Decode(string(source), &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for key, value := range raw {
		if text, ok := value.(string); ok {
			all[key] = strings.TrimSpace(text)
		}
	}
	return all
}

var (
	filled  = regexp.MustCompile(`\{(\w+)(?:\.\w+)?\}`)
	guarded = regexp.MustCompile(`\[(\w+)\?([^\]]*)\]`)
)

// said is what the rules say: the arguments they give with each key.
func said(t *testing.T) map[string]map[string]bool {
	t.Helper()
	r := rules{funcs: map[string]*ast.FuncDecl{}, keys: map[string]map[string]bool{}}
	files, err := filepath.Glob("../flow/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("the rules are not there", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				r.funcs[f.Name.Name] = f
			}
		}
	}
	for _, f := range r.funcs {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && name(call.Fun) == "say" && len(call.Args) == 2 {
				for _, key := range r.strings(f, call.Args[0]) {
					if r.keys[key] == nil {
						r.keys[key] = map[string]bool{}
					}
					maps.Copy(r.keys[key], r.args(f, call.Args[1]))
				}
			}
			return true
		})
	}
	return r.keys
}

// rules is the source of package flow, as far as it matters here.
type rules struct {
	funcs map[string]*ast.FuncDecl
	keys  map[string]map[string]bool
}

func name(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	default:
		return ""
	}
}

// strings are the texts that an expression can be: a literal, or what a
// variable of the function is set to.
func (r rules) strings(f *ast.FuncDecl, e ast.Expr) []string {
	if lit, ok := e.(*ast.BasicLit); ok {
		text, _ := strconv.Unquote(lit.Value)
		return []string{text}
	}
	var all []string
	ast.Inspect(f.Body, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range set.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name == name(e) {
				all = append(all, r.strings(f, set.Rhs[i])...)
			}
		}
		return true
	})
	return all
}

// args are the names of the arguments that an expression can hold.
func (r rules) args(f *ast.FuncDecl, e ast.Expr) map[string]bool {
	all := map[string]bool{}
	switch e := e.(type) {
	case *ast.CompositeLit:
		for _, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				maps.Copy(all, index(kv.Key))
			}
		}
	case *ast.CallExpr:
		for _, a := range e.Args { // merge(a, b)
			maps.Copy(all, r.args(f, a))
		}
		if called := r.funcs[name(e.Fun)]; called != nil && name(e.Fun) != "merge" {
			maps.Copy(all, r.set(called))
		}
	case *ast.Ident:
		if e.Name == "args" {
			maps.Copy(all, r.set(f))
		}
	}
	return all
}

// set are all names that a function puts into its arguments.
func (r rules) set(f *ast.FuncDecl) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range set.Lhs {
			if at, ok := left.(*ast.IndexExpr); ok && name(at.X) == "args" {
				maps.Copy(all, index(at.Index))
			}
			if id, ok := left.(*ast.Ident); ok && id.Name == "args" && i < len(set.Rhs) {
				maps.Copy(all, r.args(&ast.FuncDecl{Body: &ast.BlockStmt{}}, set.Rhs[i]))
			}
		}
		return true
	})
	return all
}

// index are the names that an index can be.
func index(e ast.Expr) map[string]bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return map[string]bool{text: true}
	case *ast.CallExpr: // string(o.Method)
		all := map[string]bool{}
		for _, m := range flow.Methods() {
			all[string(m)] = true
		}
		return all
	case *ast.BinaryExpr: // "bank" + strconv.Itoa(i+1)
		all := map[string]bool{}
		for i := range 9 {
			head, _ := strconv.Unquote(e.X.(*ast.BasicLit).Value)
			all[head+strconv.Itoa(i+1)] = true
		}
		return all
	default:
		return nil
	}
}

// The rules and the words agree: every key that is said exists and the other
// way round, and no message shows what it was not given.
func TestPackFitsTheRules(t *testing.T) {
	texts, keys := pack(t), said(t)
	if len(keys) < 30 {
		t.Fatalf("only %d keys are found in the rules: %v", len(keys), slices.Sorted(maps.Keys(keys)))
	}
	for key, args := range keys {
		text, ok := texts[key]
		if !ok {
			t.Errorf("the rules say %s, there are no words for it", key)
		}
		for _, m := range append(filled.FindAllStringSubmatch(text, -1), guarded.FindAllStringSubmatch(text, -1)...) {
			if !args[m[1]] {
				t.Errorf("%s shows %s; the rules give it %v", key, m[1], slices.Sorted(maps.Keys(args)))
			}
		}
	}
	for key := range texts {
		if keys[key] == nil {
			t.Errorf("there are words for %s, which the rules never say", key)
		}
	}
}

// asking are the messages that ask for money.
var asking = []string{
	"summary", "method_unavailable", "method_down", "declined", "switch", "not_understood_choose", "not_understood_wait", "nothing_yet_choose",
	"lapsed", "pick_bank", "transfer_how", "ussd_how", "card_how", "part_paid",
}

func TestPackCopy(t *testing.T) {
	texts := pack(t)
	everything := strings.Builder{}
	for key, text := range texts {
		everything.WriteString(text + "\n")
		limit := 5
		if key == "pick_bank" {
			limit = 11
		}
		if n := strings.Count(text, "\n") + 1; n > limit {
			t.Errorf("%s has %d lines", key, n)
		}
		if n := utf8.RuneCountInString(text); n > 600 {
			t.Errorf("%s has %d characters", key, n)
		}
		lower := strings.ToLower(text)
		for _, never := range []string{"fail", "error", "invalid", "send your pin", "enter your", "cvv", "http", "!", "*", "_ ", "wrong"} {
			if strings.Contains(lower, never) {
				t.Errorf("%s says %q", key, never)
			}
		}
		for _, r := range text {
			if r > 0x2000 && r != '₦' && r != '·' {
				t.Errorf("%s has the sign %q", key, r)
			}
		}
		if slices.Contains(asking, key) {
			for _, must := range []string{"{merchant}"} {
				if !strings.Contains(text, must) {
					t.Errorf("%s asks for money without %s", key, must)
				}
			}
			if !strings.Contains(text, "{amount}") && !strings.Contains(text, "{left}") {
				t.Errorf("%s asks for money without an amount", key)
			}
		}
		// A menu of methods always shows the digits that work everywhere.
		partial := key == "bank_not_listed" || key == "did_you_mean" // they offer one method
		if strings.Contains(text, "[bank_transfer?") && !partial && !strings.Contains(text, "[bank_transfer?1 Bank transfer   ][ussd?2 USSD   ][card?3 Card]\n0 Cancel") {
			t.Errorf("%s has a menu of its own", key)
		}
	}
	// In the summary, to whoever doubts us, and to whoever typed one.
	if n := strings.Count(everything.String(), "PIN"); n != 3 {
		t.Errorf("PIN is spoken of %d times", n)
	}
}

// With the longest of everything a message still fits on a screen.
func TestPackRendersWithinBounds(t *testing.T) {
	w := words(t)
	for key, args := range said(t) {
		full := map[string]string{}
		for arg := range args {
			full[arg] = strings.Repeat("W", 60)
		}
		for _, arg := range []string{"amount", "paid", "left", "extra"} {
			full[arg] = flow.MaxAmount.Naira()
		}
		for _, arg := range []string{"until", "paid_at"} {
			full[arg] = "2026-11-25T15:12:00.000Z"
		}
		got := w.Render(flow.Say{Key: key, Args: full}, noon)
		if got == "" || utf8.RuneCountInString(got) > 900 || strings.ContainsAny(got, "{}[]?") && !strings.Contains(pack(t)[key], "? ") && strings.ContainsAny(got, "{}[]") {
			t.Errorf("%s says %d characters:\n%s", key, utf8.RuneCountInString(got), got)
		}
		empty := w.Render(flow.Say{Key: key}, noon)
		if strings.Contains(empty, "\n\n") || strings.ContainsAny(empty, "{}[]") {
			t.Errorf("%s without arguments says:\n%s", key, empty)
		}
	}
}
