package crashpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// declared are the constants of points.go that are a Point, each with its value.
func declared(t *testing.T) map[string]Point {
	t.Helper()
	all := map[string]Point{}
	ast.Inspect(parsed(t, "points.go"), func(n ast.Node) bool {
		v, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if of, is := v.Type.(*ast.Ident); is && of.Name == "Point" && len(v.Values) == 1 {
			value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all[v.Names[0].Name] = Point(value)
		}
		return true
	})
	return all
}

func TestEachPointIsListedOnce(t *testing.T) {
	var have []Point
	for _, p := range declared(t) {
		have = append(have, p)
	}
	listed := Points()
	slices.Sort(have)
	slices.Sort(listed)
	if !slices.Equal(have, listed) || len(slices.Compact(slices.Clone(have))) != len(have) {
		t.Errorf("there are the points %v, and %v are listed", have, listed)
	}
	if len(have) < 14 {
		t.Errorf("only %d points", len(have))
	}
}

// Each point is at one place: where what is said of it is true.
func TestEachPointIsAtOnePlace(t *testing.T) {
	uses := map[string]int{}
	at := regexp.MustCompile(`(?m)^\t+crashpoint\.At\(crashpoint\.(\w+)\)$`)
	anywhere := regexp.MustCompile(`\bcrashpoint\.At\b`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found := at.FindAllSubmatch(text, -1)
		for _, m := range found {
			uses[string(m[1])]++
		}
		if n := len(anywhere.FindAll(text, -1)); n != len(found) {
			t.Errorf("%s: %d points, of which %d stand on a line of their own", path, n, len(found))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range declared(t) {
		if uses[name] != 1 {
			t.Errorf("%s is at %d places", name, uses[name])
		}
	}
}

func TestWithoutTheTagAPointIsNothing(t *testing.T) {
	for _, d := range parsed(t, "none.go").Decls {
		if f, is := d.(*ast.FuncDecl); !is || len(f.Body.List) > 0 {
			t.Error("none.go holds more than an empty function")
		}
	}
}
