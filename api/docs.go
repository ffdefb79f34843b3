package api

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	yaml "github.com/oasdiff/yaml3"
	swagger "github.com/swaggest/swgui/v5/static"

	"till/flow"
)

// document is the description of this API for programs. It is written by hand;
// tests hold it against the routes, the codes, the events and every answer.
//
//go:embed openapi.yaml
var document []byte

//go:embed docs
var docFiles embed.FS

const (
	docsPath      = "/docs"
	docErrors     = docsPath + "/errors"
	htmlKind      = "text/html; charset=utf-8"
	pageOfDocs    = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	keptForAnHour = "public, max-age=3600"
	// Swagger UI calls this server ("try it out") and draws with data: images.
	pageOfReference = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// errorPage is what is said about one code.
type errorPage struct {
	Code      flow.Code `toml:"-"`
	Status    int       `toml:"-"`
	Type      string    `toml:"-"`
	Retryable bool      `toml:"-"`
	Means     string    `toml:"means"`
	Why       string    `toml:"why"`
	Fix       string    `toml:"fix"`
	Example   string    `toml:"example"`
}

// pages is the documentation, read once.
type pages struct {
	template *template.Template
	errors   []errorPage // by status, then code
	tasks    []task
	json     func() ([]byte, error) // the document, made when it is first asked for
}

// readPages reads what is embedded.
func readPages() (*pages, error) {
	p := &pages{json: sync.OnceValues(documentAsJSON)}
	var err error
	if p.template, err = template.ParseFS(docFiles, "docs/*.html"); err != nil {
		return nil, fmt.Errorf("read the documentation: %w", err)
	}
	raw := map[flow.Code]errorPage{}
	if _, err := toml.DecodeFS(docFiles, "docs/errors.toml", &raw); err != nil {
		return nil, fmt.Errorf("read the documentation of errors: %w", err)
	}
	for code, page := range raw {
		kind, known := classOf(code)
		if !known {
			return nil, fmt.Errorf("read the documentation of errors: there is no code %s", code)
		}
		page.Code, page.Status, page.Type, page.Retryable = code, kind.status, kind.kind, kind.retryable
		page.Example = strings.TrimSpace(page.Example)
		p.errors = append(p.errors, page)
	}
	slices.SortFunc(p.errors, func(a, b errorPage) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	if p.tasks, err = readSnippets(); err != nil {
		return nil, err
	}
	return p, nil
}

// Codes are all codes that a call can be refused with, sorted: those that the
// documentation explains.
func Codes() ([]flow.Code, error) {
	p, err := readPages()
	if err != nil {
		return nil, err
	}
	list := make([]flow.Code, 0, len(p.errors))
	for _, page := range p.errors {
		list = append(list, page.Code)
	}
	slices.Sort(list)
	return list, nil
}

// show answers with a page of the documentation.
func (s *Server) show(c *call, status int, name, policy string, data any) error {
	var body bytes.Buffer
	if err := s.pages.template.ExecuteTemplate(&body, name, data); err != nil {
		return fmt.Errorf("write the page %s: %w", name, err)
	}
	write(c.http.Context(), status, body.Bytes())
	h := &c.http.Context().Response.Header
	h.SetContentType(htmlKind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	return nil
}

// serveDocument is GET /openapi.yaml.
func (*Server) serveDocument(c *call) error {
	write(c.http.Context(), http.StatusOK, document)
	h := &c.http.Context().Response.Header
	h.SetContentType("application/yaml; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	return nil
}

// documentAsJSON is the document in JSON: programs that read YAML as if it were JSON do
// not know what it says once and means in many places.
func documentAsJSON() ([]byte, error) {
	var whole any
	if err := yaml.Unmarshal(document, &whole); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return json.Marshal(whole)
}

// serveDocumentAsJSON is GET /openapi.json.
func (s *Server) serveDocumentAsJSON(c *call) error {
	body, err := s.pages.json()
	if err != nil {
		return err
	}
	write(c.http.Context(), http.StatusOK, body)
	c.http.Context().Response.Header.Set("Cache-Control", "no-cache")
	return nil
}

// serveReference is GET /docs.
func (s *Server) serveReference(c *call) error {
	return s.show(c, http.StatusOK, "reference", pageOfReference, nil)
}

// serveErrors is GET /docs/errors.
func (s *Server) serveErrors(c *call) error {
	return s.show(c, http.StatusOK, "errors", pageOfDocs, s.pages.errors)
}

// serveError is GET /docs/errors/{code}: where docUrl leads.
func (s *Server) serveError(c *call) error {
	code := flow.Code(c.param("code"))
	i := slices.IndexFunc(s.pages.errors, func(p errorPage) bool { return p.Code == code })
	if i < 0 {
		return s.show(c, http.StatusNotFound, "nothing", pageOfDocs, nil)
	}
	return s.show(c, http.StatusOK, "error", pageOfDocs, s.pages.errors[i])
}

// serveSnippets is GET /docs/snippets.
func (s *Server) serveSnippets(c *call) error {
	return s.show(c, http.StatusOK, "snippets", pageOfDocs, s.pages.tasks)
}

// serveAsset is GET /docs/assets/{file}: our own styles and Swagger UI's files.
func (*Server) serveAsset(c *call) error {
	name := c.param("file")
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".png": "image/png"}
	kind, known := kinds[path.Ext(name)]
	if !known || path.Base(name) != name {
		return flow.Refuse(flow.CodeRouteNotFound, "There is nothing at this path.")
	}
	body, packed, err := asset(name)
	if err != nil {
		return flow.Refuse(flow.CodeRouteNotFound, "There is nothing at this path.")
	}
	h := &c.http.Context().Response.Header
	if packed && c.http.Request().Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
	} else if packed {
		if body, err = unpack(body); err != nil {
			return err
		}
	}
	write(c.http.Context(), http.StatusOK, body)
	h.SetContentType(kind)
	h.Set("Cache-Control", keptForAnHour)
	h.Add("Vary", "Accept-Encoding")
	return nil
}

// asset is a file of the pages; packed says whether it is gzipped.
func asset(name string) (body []byte, packed bool, err error) {
	switch name {
	case "docs.css", "docs.js":
		body, err = docFiles.ReadFile("docs/" + name)
	case "favicon.png":
		body, err = swagger.FS.ReadFile("favicon-32x32.png")
	default:
		packed = true
		body, err = swagger.FS.ReadFile(name + ".gz")
	}
	return body, packed, err
}

func unpack(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("unpack a file of the documentation: %w", err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack a file of the documentation: %w", err)
	}
	return out, nil
}
