package console

import (
	"fmt"
	"html/template"
	"sync"
	"time"
)

// pages are the templates of all pages, for one clock. Each is put together when
// it is first shown: all of them for every clock are 10 MiB, and few are ever
// shown to anybody.
type pages struct {
	layout *template.Template // what they have in common; it is never shown itself, and so can be copied

	mu    sync.Mutex // guards all below
	ready map[string]*template.Template
}

// pagesAt reads what all pages have in common, for a clock.
func pagesAt(now func() time.Time) (*pages, error) {
	layout, err := template.New("").Funcs(words()).Funcs(times(now)).ParseFS(files, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, fmt.Errorf("read the console's layout: %w", err)
	}
	return &pages{layout: layout, ready: map[string]*template.Template{}}, nil
}

// page is one of them.
func (p *pages) page(name string) (*template.Template, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if page := p.ready[name]; page != nil {
		return page, nil
	}
	page, err := p.layout.Clone()
	if err == nil {
		page, err = page.ParseFS(files, "pages/"+name+".html")
	}
	if err != nil {
		return nil, fmt.Errorf("read the page %s: %w", name, err)
	}
	p.ready[name] = page
	return page, nil
}
