// Package phone holds the page that plays a payer's phone in development: plain
// files, served as they are. It must not know how they are served or what the
// calls they make do.
package phone

import (
	"embed"
	"path"
)

//go:embed static
var files embed.FS

// File is one file of the page and its media type; false for what is not there.
func File(name string) (body []byte, kind string, there bool) {
	kinds := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}
	kind, known := kinds[path.Ext(name)]
	if !known || path.Base(name) != name {
		return nil, "", false
	}
	body, err := files.ReadFile("static/" + name)
	return body, kind, err == nil
}
