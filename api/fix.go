package api

import (
	"sync"

	"github.com/BurntSushi/toml"

	"till/flow"
)

// fixes are what the documentation says to do about each code.
var fixes = sync.OnceValue(func() map[flow.Code]errorPage {
	raw := map[flow.Code]errorPage{}
	if _, err := toml.DecodeFS(docFiles, "docs/errors.toml", &raw); err != nil {
		return nil // no server starts with such a file: readPages says so
	}
	return raw
})

// Fix is what to do about an error, in one or two sentences, as its page of the
// documentation says; "" for a code that has none.
func Fix(code flow.Code) string { return fixes()[code].Fix }
