package wanet_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The package holds no code that could reach another machine: what it connects,
// others have connected for it.
func TestNoWayOut(t *testing.T) {
	files, err := os.ReadDir(".")
	must(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		must(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			sel, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := pkg.Name + "." + sel.Sel.Name
			for _, bad := range []string{
				"net.Dial", "net.Lookup", "net.Resolve", "net.DefaultResolver", "tls.Dial", "websocket.Dial",
				"http.Get", "http.Post", "http.Head", "http.DefaultClient", "http.DefaultTransport", "exec.", "syscall.Connect",
			} {
				if strings.HasPrefix(name, bad) {
					t.Errorf("%s uses %s", f.Name(), name)
				}
			}
			return true
		})
	}
}
