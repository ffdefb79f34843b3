// Package apitest holds what the API says and is told against its OpenAPI
// document: the requests and answers of every test, and the webhooks.
//
// kin-openapi reads the document and judges its form. Values are judged by a
// JSON Schema 2020-12 validator over the document as it is: kin's own falls back
// to the older OpenAPI 3.0 rules without a word where it meets what it cannot
// compile, and compiles anew for every value.
//
// It must not know how the API is made or started: it is given the document and
// what went over the wire. Only tests import it.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/yaml3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract is an OpenAPI document that values can be held against.
type Contract struct {
	Doc *openapi3.T
	Raw map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by pointer
}

const home = "till:///openapi.json"

// Load reads a document and judges its form.
func Load(ctx context.Context, document []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	// Examples are judged by Example below, by the rules of 2020-12 alone.
	if err := doc.Validate(ctx, openapi3.DisableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("judge the OpenAPI document: %w", err)
	}
	text, err := asJSON(document)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	raw, err := decode(text)
	if err != nil {
		return nil, err
	}
	value, err := decode(text)
	if err != nil {
		return nil, err
	}
	shutAll(value)
	c := &Contract{Doc: doc, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.Raw, _ = raw.(map[string]any)
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(home, value); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return c, nil
}

// asJSON is a YAML text in JSON.
func asJSON(text []byte) ([]byte, error) {
	var plain any
	if err := yaml.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("this is not YAML: %w", err)
	}
	out, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("this YAML is no JSON: %w", err)
	}
	return out, nil
}

func decode(body []byte) (any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("this is not JSON: %w", err)
	}
	return v, nil
}

// Value holds a value against the schema at a JSON pointer of the document.
func (c *Contract) Value(pointer string, v any) error {
	c.mu.Lock()
	schema, there := c.schemas[pointer]
	if !there {
		var err error
		if schema, err = c.compiler.Compile(home + "#" + (&url.URL{Path: pointer}).EscapedPath()); err != nil {
			c.mu.Unlock()
			return fmt.Errorf("compile the schema at %s: %w", pointer, err)
		}
		c.schemas[pointer] = schema
	}
	c.mu.Unlock()
	return schema.Validate(v)
}

// JSON holds a JSON text against the schema at a pointer.
func (c *Contract) JSON(pointer string, body []byte) error {
	v, err := decode(body)
	if err != nil {
		return err
	}
	return c.Value(pointer, v)
}

// Pointer joins names to a JSON pointer.
func Pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// Find is the documented path that a request's path belongs to, "" for none.
// Names that stand in the document win over parameters.
func (c *Contract) Find(path string) string {
	best, params := "", 0
	given := strings.Split(path, "/")
	for _, template := range c.Doc.Paths.InMatchingOrder() {
		parts, n := strings.Split(template, "/"), 0
		if len(parts) != len(given) {
			continue
		}
		fits := true
		for i, part := range parts {
			if strings.HasPrefix(part, "{") {
				n++
				fits = fits && given[i] != ""
			} else {
				fits = fits && part == given[i]
			}
		}
		if fits && (best == "" || n < params) {
			best, params = template, n
		}
	}
	return best
}

// Exchange is one request and its answer.
type Exchange struct {
	Method string
	URL    *url.URL
	Asked  []byte // the body of the request
	Status int
	Header http.Header // of the answer
	Answer []byte
}

// anywhere are the refusals that any call can meet, which an operation need not
// list: its default response covers them.
func anywhere() []string {
	return []string{
		"malformed_request", "method_not_allowed", "route_not_found", "payload_too_large", "unsupported_media_type", "internal_error", "storage_unavailable",
	}
}

// Check says what of an exchange is not as the document has it.
func (c *Contract) Check(e Exchange) error {
	if e.Method == http.MethodHead {
		return nil // as GET, without its body
	}
	path := c.Find(e.URL.EscapedPath())
	item := c.Doc.Paths.Value(path)
	if path == "" || item == nil || item.GetOperation(e.Method) == nil {
		if e.Status < http.StatusBadRequest {
			return fmt.Errorf("%s %s is not in the document", e.Method, e.URL.Path)
		}
		return c.JSON("/components/schemas/Failure", e.Answer)
	}
	op := item.GetOperation(e.Method)
	if e.Status < http.StatusBadRequest {
		if err := c.request(path, item, op, e); err != nil {
			return fmt.Errorf("the document refuses a request that was done: %w", err)
		}
	}
	return c.answer(path, op, e)
}

// request holds what was asked for against the operation.
func (c *Contract) request(path string, item *openapi3.PathItem, op *openapi3.Operation, e Exchange) error {
	params := append(slices.Clone(item.Parameters), op.Parameters...)
	for name := range e.URL.Query() {
		if params.GetByInAndName("query", name) == nil {
			return fmt.Errorf("the parameter %s is not in the document", name)
		}
	}
	if len(e.Asked) == 0 {
		if op.RequestBody != nil && op.RequestBody.Value.Required {
			return errors.New("a body is required")
		}
		return nil
	}
	if op.RequestBody == nil {
		return errors.New("there is a body, and none in the document")
	}
	return c.JSON(Pointer("paths", path, strings.ToLower(e.Method), "requestBody", "content", "application/json", "schema"), e.Asked)
}

// answer holds what was answered against the operation.
func (c *Contract) answer(path string, op *openapi3.Operation, e Exchange) error {
	status := fmt.Sprint(e.Status)
	ref := op.Responses.Value(status)
	if ref == nil {
		var failure struct{ Error struct{ Code string } }
		_ = json.Unmarshal(e.Answer, &failure)
		if e.Status < http.StatusBadRequest || !slices.Contains(anywhere(), failure.Error.Code) {
			return fmt.Errorf("%s %s answers %d (%s), which is not in the document", e.Method, path, e.Status, failure.Error.Code)
		}
		status, ref = "default", op.Responses.Value("default")
	}
	if ref == nil {
		return fmt.Errorf("%s %s has no default answer", e.Method, path)
	}
	if err := c.headers(ref.Value, e.Header); err != nil {
		return err
	}
	at := Pointer("paths", path, strings.ToLower(e.Method), "responses", status)
	if ref.Ref != "" {
		at = strings.TrimPrefix(ref.Ref, "#")
	}
	return c.body(at, ref.Value, e)
}

// body holds an answer's body against its media type.
func (c *Contract) body(at string, r *openapi3.Response, e Exchange) error {
	if len(r.Content) == 0 {
		if len(e.Answer) > 0 {
			return errors.New("there is a body, and none in the document")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(e.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("the answer's media type: %w", err)
	}
	if r.Content[kind] == nil && r.Content["*/*"] == nil {
		return fmt.Errorf("the answer is %s, which is not in the document", kind)
	}
	schema := at + Pointer("content", kind, "schema")
	switch kind {
	case "application/json":
		if err := c.JSON(schema, e.Answer); err != nil {
			return err
		}
		return told(r, e.Answer)
	case "application/yaml": // generated clients read it, and not as the text that it is
		text, err := asJSON(e.Answer)
		if err != nil {
			return err
		}
		return c.JSON(schema, text)
	}
	return nil
}

var inCode = regexp.MustCompile("`([a-z_]+)`")

// Codes are the codes of errors that an answer may have, as its description lists
// them; none where it lists none.
func Codes(r *openapi3.Response) []string {
	var out []string
	_, list, _ := strings.Cut(*r.Description, " Codes: ")
	for _, m := range inCode.FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	return out
}

// told says whether an answer's code is one of those that the document lists.
func told(r *openapi3.Response, answer []byte) error {
	codes := Codes(r)
	if len(codes) == 0 {
		return nil
	}
	var failure struct{ Error struct{ Code string } }
	if err := json.Unmarshal(answer, &failure); err != nil || !slices.Contains(codes, failure.Error.Code) {
		return fmt.Errorf("the code %q is none of %v", failure.Error.Code, codes)
	}
	return nil
}

// said are the headers that mean something to a client: those that are sent
// must be in the document.
func said() []string {
	return []string{
		"Location", "Retry-After", "Idempotent-Replayed", "RateLimit", "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "WWW-Authenticate", "ETag",
	}
}

// headers holds an answer's headers against the document.
func (c *Contract) headers(r *openapi3.Response, sent http.Header) error {
	for name, ref := range r.Headers {
		given := sent.Values(name)
		if len(given) == 0 {
			if ref.Value.Required {
				return fmt.Errorf("the header %s is missing", name)
			}
			continue
		}
		pointer := strings.TrimPrefix(ref.Ref, "#")
		if pointer == "" {
			return fmt.Errorf("the header %s has no place under components", name)
		}
		if err := c.Value(pointer+"/schema", given[0]); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	for _, name := range said() {
		documented := slices.ContainsFunc(headerNames(r), func(n string) bool { return strings.EqualFold(n, name) })
		if sent.Get(name) != "" && !documented {
			return fmt.Errorf("the header %s is sent and not in the document", name)
		}
	}
	return nil
}

func headerNames(r *openapi3.Response) []string {
	var out []string
	for name := range r.Headers {
		out = append(out, name)
	}
	return out
}

// Webhook holds the body of a delivery against the document.
func (c *Contract) Webhook(body []byte) error {
	var event struct{ Event string }
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	if c.Doc.Webhooks[event.Event] == nil {
		return fmt.Errorf("the event %s is not in the document", event.Event)
	}
	return c.JSON(Pointer("webhooks", event.Event, "post", "requestBody", "content", "application/json", "schema"), body)
}
