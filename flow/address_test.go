package flow_test

import (
	"testing"

	"till/flow"
)

func TestReplaceAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ada@x.ng":                                   "-",
		"ada@x.ng, ada@x.ng.":                        "-, -.",
		"<ada@x.ng>":                                 "<->",
		"mail ada@x.ng. Thanks":                      "mail -. Thanks",
		`{"email":"ada@x.ng"}`:                       `{"email":"-"}`,
		`{"text":"my mail:\nada@x.ng\nthanks"}`:      `{"text":"my mail:\n-\nthanks"}`,
		`{"text":"\u003cada@x.ng\u003e"}`:            `{"text":"\u003c-\u003e"}`,
		`{"in":"{\\"text\\":\\"a\\\\tada@x.ng\\"}"}`: `{"in":"{\\"text\\":\\"a\\\\t-\\"}"}`,
		"Ada@X.NG, İADA@x.ng, ADA@x.ng":              "-, İADA@x.ng, -",
		"canada@x.ng":                                "canada@x.ng",
		"CanAda@x.ng":                                "CanAda@x.ng",
		"the.ada@x.ng":                               "the.ada@x.ng",
		"a+ada@x.ng":                                 "a+ada@x.ng",
		"ada@x.ngo":                                  "ada@x.ngo",
		"ada@x.ng.example":                           "ada@x.ng.example",
		"ada@x.ng-shop.ng":                           "ada@x.ng-shop.ng",
		"éada@x.ng":                                  "éada@x.ng",
		"":                                           "",
	} {
		if got, n := flow.ReplaceAddress(text, "ada@x.ng", "-"); got != want || (n > 0) != (text != want) {
			t.Errorf("%s: %s, %d times; not %s", text, got, n, want)
		}
	}
	if got, n := flow.ReplaceAddress("ada@x.ng", "", "-"); got != "ada@x.ng" || n != 0 {
		t.Errorf("nothing was replaced %d times: %s", n, got)
	}
}
