package planted

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// named are the constants and variables of a file of this package that have one of
// two values: false, or what plant says. pure is whether it holds nothing else.
func named(t *testing.T, file string) (names []string, pure bool) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	pure = true
	for _, d := range tree.Decls {
		list, is := d.(*ast.GenDecl)
		if !is || list.Tok != token.CONST && list.Tok != token.VAR {
			pure = false
			continue
		}
		for _, s := range list.Specs {
			v, is := s.(*ast.ValueSpec)
			if !is || len(v.Values) != 1 {
				pure = false
				continue
			}
			switch value := v.Values[0].(type) {
			case *ast.Ident:
				pure = pure && value.Name == "false" && list.Tok == token.CONST
				if value.Name == "false" {
					names = append(names, v.Names[0].Name)
				}
			case *ast.CallExpr:
				pure = false
				if f, is := value.Fun.(*ast.Ident); is && f.Name == "plant" {
					names = append(names, v.Names[0].Name)
				}
			default:
				pure = false
			}
		}
	}
	slices.Sort(names)
	return names, pure
}

func TestWithoutTheTagEverythingIsFalse(t *testing.T) {
	none, pure := named(t, "none.go")
	if !pure {
		t.Error("none.go holds more than constants that are false")
	}
	bugs, _ := named(t, "bugs.go")
	if !slices.Equal(none, bugs) {
		t.Errorf("none.go names %v, and the bugs are %v", none, bugs)
	}
	if len(bugs) < 14 {
		t.Errorf("only %d bugs", len(bugs))
	}
}

// Each bug is at one place: the one where it would be made.
func TestEachBugIsPlantedOnce(t *testing.T) {
	bugs, _ := named(t, "bugs.go")
	uses := map[string]int{}
	use := regexp.MustCompile(`\bplanted\.([A-Z]\w*)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range use.FindAllSubmatch(text, -1) {
			uses[string(m[1])]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs {
		if uses[b] != 1 {
			t.Errorf("%s is planted at %d places", b, uses[b])
		}
	}
}
