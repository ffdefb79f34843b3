package bot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"till/flow"
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
		must(t, err)
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
