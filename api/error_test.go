package api

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"till/flow"
)

// codes reads every Code that package flow declares out of its source, so that
// a new one cannot be forgotten here.
func codes(t *testing.T) []flow.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../flow/error.go", nil, 0)
	must(t, err)
	var out []flow.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) == 0 || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(lit.Value)
			must(t, err)
			out = append(out, flow.Code(text))
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("only %d codes were found", len(out))
	}
	return out
}

func TestEveryCodeHasItsRow(t *testing.T) {
	for _, code := range codes(t) {
		c, listed := classOf(code)
		if !listed {
			t.Errorf("%s has no row in error.go", code)
		}
		if c.status < 400 || c.kind == "" {
			t.Errorf("%s: %+v", code, c)
		}
	}
	if _, listed := classOf("made_up"); listed {
		t.Error("an unknown code has a row")
	}
}

func TestTheTableIsTheContracts(t *testing.T) {
	for code, want := range map[flow.Code]class{
		flow.CodeMalformedJSON: {400, "invalid_request", false}, flow.CodeMissingKey: {401, "authentication", false}, flow.CodeTestOnly: {403, "permission", false},
		flow.CodeNotFound: {404, "not_found", false}, flow.CodeHTTPMethod: {405, "not_found", false}, flow.CodeDuplicateReference: {409, "conflict", false},
		flow.CodeIdempotencyRunning: {409, "conflict", true}, flow.CodeTooLarge: {413, "invalid_request", false}, flow.CodeMediaType: {415, "invalid_request", false},
		flow.CodeIdempotencyReused: {422, "idempotency", false}, flow.CodeRateLimited: {429, "rate_limit", true}, flow.CodeInternal: {500, "api", true},
		flow.CodeRailRejected: {502, "rail", false}, flow.CodeRailTimeout: {503, "rail", true}, flow.CodeStorage: {503, "api", true},
		flow.CodeWhatsAppUnavailable: {503, "api", true},
	} {
		if got, _ := classOf(code); got != want {
			t.Errorf("%s: want %+v, got %+v", code, want, got)
		}
	}
}

func TestUnknownErrorsKeepTheirWordsInside(t *testing.T) {
	for _, err := range []error{
		errors.New("SELECT secret FROM keys: disk I/O error"),
		flow.Refuse(flow.CodeInternal, "row 7 of table keys"),
		flow.Refuse("made_up", "row 7 of table keys"),
	} {
		got := refusal(err)
		if got.Code != flow.CodeInternal || strings.Contains(got.Message, "keys") {
			t.Errorf("%v became %v", err, got.Message)
		}
		if !errors.Is(got, err) && got.Err == nil {
			t.Errorf("the cause of %v is lost to the log", err)
		}
	}
}
