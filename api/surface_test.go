package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// place is one thing of a request's body, by the path of names to it, and a body
// of the document in which it can stand. A step "*" is an item of a list,
// "*name" and "*value" are a pair of an object whose names are free.
type place struct {
	path   []string
	schema *openapi3.Schema
	base   string
}

// field is how a refusal names the place, where what stands in it is given.
func (p place) field(given string) string {
	var out []string
	for _, step := range p.path {
		switch step {
		case "*": // a list is judged whole
		case "*name":
			out = append(out, safeName(given))
		case "*value":
			out = append(out, "pair")
		default:
			out = append(out, step)
		}
	}
	return strings.Join(out, ".")
}

func (p place) String() string { return strings.Join(p.path, ".") }

// marker stands in a body where a token of JSON is to be put, quotes included.
const marker = "@@a token@@"

// with is the body with a token of JSON in the place.
func (p place) with(t *testing.T, token string) string {
	t.Helper()
	var body any
	must(t, json.Unmarshal([]byte(p.base), &body))
	text, err := json.Marshal(plant(body, p.path))
	must(t, err)
	return strings.Replace(string(text), `"`+marker+`"`, token, 1)
}

// plant puts the marker at a path.
func plant(v any, path []string) any {
	if len(path) == 0 {
		return marker
	}
	switch path[0] {
	case "*":
		return []any{plant(nil, path[1:])}
	case "*name":
		return map[string]any{marker: "a"}
	case "*value":
		return map[string]any{"pair": marker}
	}
	set, ok := v.(map[string]any)
	if !ok {
		set = map[string]any{}
	}
	set[path[0]] = plant(set[path[0]], path[1:])
	return set
}

// places are all things of a request's body, nested ones too.
func places(t *testing.T, op *openapi3.Operation) []place {
	t.Helper()
	if op.RequestBody == nil {
		return nil
	}
	all := bodies(t, op)
	var out []place
	for _, fields := range alternatives(op.RequestBody.Value.Content["application/json"].Schema) {
		base := smallest(all, fields)
		if base == "" && len(fields) > 0 {
			t.Fatalf("%s: no example of the document has only the fields %v", op.OperationID, slices.Sorted(maps.Keys(fields)))
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			for _, p := range within([]string{name}, fields[name]) {
				p.base = base
				out = append(out, p)
			}
		}
	}
	return out
}

// smallest is the shortest of some bodies that has none but these fields.
func smallest(all map[string]string, fields map[string]*openapi3.SchemaRef) string {
	best := ""
	for _, body := range all {
		var set map[string]any
		if json.Unmarshal([]byte(body), &set) != nil {
			continue
		}
		fits := len(set) > 0 || len(fields) == 0 || len(all) <= 2
		for name := range set {
			fits = fits && fields[name] != nil
		}
		if fits && (best == "" || len(body) < len(best)) {
			best = body
		}
	}
	return best
}

// alternatives are the sets of fields that an object may have.
func alternatives(ref *openapi3.SchemaRef) []map[string]*openapi3.SchemaRef {
	s := ref.Value
	var out []map[string]*openapi3.SchemaRef
	for _, one := range s.OneOf {
		out = append(out, alternatives(one)...)
	}
	if len(out) == 0 {
		out = []map[string]*openapi3.SchemaRef{{}}
	}
	parts := []openapi3.Schemas{s.Properties}
	for _, one := range s.AllOf {
		for _, set := range alternatives(one) {
			parts = append(parts, set)
		}
	}
	for _, set := range out {
		for _, part := range parts {
			for name, field := range part {
				if set[name] == nil { // a second one only narrows the first
					set[name] = field
				}
			}
		}
	}
	return out
}

// within are a value and everything below it.
func within(path []string, ref *openapi3.SchemaRef) []place {
	s := ref.Value
	out := []place{{path: path, schema: s}}
	below := func(step string, ref *openapi3.SchemaRef) {
		out = append(out, within(append(slices.Clone(path), step), ref)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below(name, s.Properties[name])
	}
	if s.Items != nil {
		below("*", s.Items)
	}
	if free := s.AdditionalProperties.Schema; free != nil {
		below("*value", free)
		out = append(out, place{path: append(slices.Clone(path), "*name"), schema: openapi3.NewStringSchema()})
	}
	for _, one := range s.AllOf { // what a value is made of stands in the same place
		for _, p := range within(path, one) {
			if len(p.path) > len(path) {
				out = append(out, p)
			}
		}
	}
	return out
}

// is says whether a schema lets a type in.
func is(s *openapi3.Schema, kind string) bool {
	if s.Type != nil {
		return s.Type.Includes(kind)
	}
	for _, one := range s.AllOf {
		if is(one.Value, kind) {
			return true
		}
	}
	of := append(slices.Clone(s.Enum), s.Const)
	return slices.ContainsFunc(of, func(v any) bool {
		switch v.(type) {
		case string:
			return kind == "string"
		case bool:
			return kind == "boolean"
		}
		return false
	})
}

// parameters are those of an operation in one place: path, query or header.
func parameters(t *testing.T, call string, op *openapi3.Operation, in string) []*openapi3.Parameter {
	t.Helper()
	_, path, _ := strings.Cut(call, " ")
	var out []*openapi3.Parameter
	for _, p := range append(slices.Clone(contract(t).Doc.Paths.Value(path).Parameters), op.Parameters...) {
		if p.Value.In == in {
			out = append(out, p.Value)
		}
	}
	return out
}

// ready is an example of the document with everything in it that it names, and
// the key that it asks for. token is of the desk's own account.
func (d *desk) ready(call string, op *openapi3.Operation, token string) (e *example, method, key string) {
	d.t.Helper()
	method, path, _ := strings.Cut(call, " ")
	e = &example{desk: d, op: op, url: fill(d.t, path, op), token: token}
	if all := bodies(d.t, op); len(all) > 0 {
		e.body = all[slices.Sorted(maps.Keys(all))[0]]
		for _, body := range all {
			if body != "" && len(body) < len(e.body) {
				e.body = body
			}
		}
	}
	e.live()
	return e, method, e.keyFor(op)
}

// keyFor is the key that an operation asks for.
func (e *example) keyFor(op *openapi3.Operation) string {
	switch keyOf(op) {
	case "":
		return ""
	case "dashboardToken":
		return e.token
	}
	return e.key
}

// places are the things of an example's body that may be of a type, in bodies
// whose names are those of things that are there.
func (e *example) places(kind string) []place {
	e.t.Helper()
	lively := map[string]string{}
	var out []place
	for _, p := range places(e.t, e.op) {
		if kind != "" && !is(p.schema, kind) {
			continue
		}
		if lively[p.base] == "" {
			one := &example{desk: e.desk, op: e.op, url: e.url, body: p.base, token: e.token}
			one.live()
			lively[p.base] = one.body
		}
		p.base = lively[p.base]
		out = append(out, p)
	}
	return out
}

// detour is an operation's path with a text in the place of one parameter.
func detour(t *testing.T, template, name string, op *openapi3.Operation, e *example, text string) string {
	t.Helper()
	parts, live := strings.Split(template, "/"), strings.Split(e.url, "/")
	if len(parts) != len(live) {
		t.Fatalf("%s: %s is not %s", op.OperationID, e.url, template)
	}
	for i, part := range parts {
		if part == "{"+name+"}" {
			live[i] = text
		}
	}
	return strings.Join(live, "/")
}
