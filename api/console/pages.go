package console

import (
	"fmt"
	"html/template"
	"path"
	"time"
)

// pages are the templates of all pages, by name.
type pages map[string]*template.Template

// readPages reads the templates, for a clock.
func readPages(now func() time.Time) (pages, error) {
	layout, err := template.New("").Funcs(words()).Funcs(times(now)).ParseFS(files, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, fmt.Errorf("read the console's layout: %w", err)
	}
	entries, err := files.ReadDir("pages")
	if err != nil {
		return nil, fmt.Errorf("read the console's pages: %w", err)
	}
	out := pages{}
	for _, e := range entries {
		if e.Name() == "layout.html" || e.Name() == "parts.html" {
			continue
		}
		own, err := layout.Clone()
		if err == nil {
			own, err = own.ParseFS(files, "pages/"+e.Name())
		}
		if err != nil {
			return nil, fmt.Errorf("read the page %s: %w", e.Name(), err)
		}
		out[e.Name()[:len(e.Name())-len(path.Ext(e.Name()))]] = own
	}
	return out, nil
}

// at are the same pages for another clock. None of them may have been shown yet.
func (p pages) at(now func() time.Time) (pages, error) {
	out := pages{}
	for name, page := range p {
		own, err := page.Clone()
		if err != nil {
			return nil, fmt.Errorf("read the page %s: %w", name, err)
		}
		out[name] = own.Funcs(times(now))
	}
	return out, nil
}
