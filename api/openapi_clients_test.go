package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Generators of clients read the document with less care than validators do. What
// they make nothing of, or what does not compile, is held here.

// A program has one handler for one URL, so that what comes there needs one type, and
// code has to tell the kinds apart. Under webhooks alone it would not be enough:
// oapi-codegen drops what no path leads to, and then misses it.
func TestOneTypeHoldsEveryWebhook(t *testing.T) {
	doc := contract(t).Doc
	heard := doc.Paths.Value(endpointsPath).Post.Callbacks["event"]
	if heard == nil {
		t.Fatal("no path leads to the webhooks")
	}
	event := heard.Value.Value("{$request.body#/url}").Post.RequestBody.Value.Content["application/json"].Schema
	kinds := event.Value.Discriminator.Mapping
	for kind, item := range doc.Webhooks {
		if got, want := kinds[kind].Ref, item.Post.RequestBody.Value.Content["application/json"].Schema.Ref; got != want {
			t.Errorf("%s is a %s, and one type says %q", kind, want, got)
		}
	}
	if len(kinds) != len(doc.Webhooks) {
		t.Errorf("there are %d webhooks; one type knows %d", len(doc.Webhooks), len(kinds))
	}
}

// What narrows a part of an error once more for each status is lost by generators, or
// hides the rest of it: message, fields and retryable were gone.
func TestOneTypeHoldsEveryError(t *testing.T) {
	for call, op := range operations(t) {
		for status, r := range op.Responses.Map() {
			said := r.Value.Content["application/json"]
			if strings.HasPrefix(status, "2") || said == nil {
				continue
			}
			if got := said.Schema.Ref; got != "#/components/schemas/Failure" {
				t.Errorf("%s answers %s with a %q", call, status, got)
			}
		}
	}
}

func TestEveryFixedValueOfTheDocumentHasAType(t *testing.T) {
	walk("", contract(t).Raw, func(at string, o map[string]any) {
		_, fixed := o["const"]
		_, list := o["enum"].([]any)
		if (fixed || list) && o["type"] == nil {
			t.Errorf("%s has no type: generated code takes anything there", at)
		}
	})
}

func TestEveryAlternativeOfTheDocumentHasAName(t *testing.T) {
	walk("", contract(t).Raw, func(at string, o map[string]any) {
		list, _ := o["oneOf"].([]any)
		for i, one := range list {
			if part, _ := one.(map[string]any); part["$ref"] == nil && part["type"] != "null" {
				t.Errorf("%s/oneOf/%d has none: generators call it by its number, or leave the call out", at, i)
			}
		}
	})
}

// Generated Python and zod fill defaults in and send them. So one must be what leaving
// the field out is, whatever else is sent.
func TestEveryDefaultOfTheDocumentCanBeSent(t *testing.T) {
	for call, op := range operations(t) {
		method, path, _ := strings.Cut(call, " ")
		for name, body := range bodies(t, op) {
			filled := withDefaults(t, op, body)
			if filled == body {
				continue
			}
			t.Run(op.OperationID+" "+name, func(t *testing.T) {
				e := &example{desk: openDesk(t), op: op, url: fill(t, path, op), body: filled}
				e.token = e.tokenFor(e.project)
				e.live()
				given := e.key
				if keyOf(op) == "dashboardToken" {
					given = e.token
				}
				if got := e.patiently(method, e.url, given, e.body); got.status != expected(t, op) {
					t.Errorf("%s with %s: %d %s", call, e.body, got.status, got.body)
				}
			})
		}
	}
	walk("", contract(t).Raw, func(at string, o map[string]any) {
		if text, _ := o["description"].(string); o["default"] != nil && strings.Contains(text, "project's settings") {
			t.Errorf("%s has a default, which would be sent in the place of the project's", at)
		}
	})
}

// withDefaults is a body with the defaults of all fields that it leaves out.
func withDefaults(t *testing.T, op *openapi3.Operation, body string) string {
	t.Helper()
	var set map[string]any
	if body == "" || json.Unmarshal([]byte(body), &set) != nil {
		return body
	}
	filled := false
	for _, fields := range alternatives(op.RequestBody.Value.Content["application/json"].Schema) {
		if slices.ContainsFunc(slices.Collect(maps.Keys(set)), func(name string) bool { return fields[name] == nil }) {
			continue // another kind of body
		}
		for name, field := range fields {
			if _, there := set[name]; !there && field.Value.Default != nil {
				set[name], filled = field.Value.Default, true
			}
		}
	}
	if !filled {
		return body
	}
	out, err := json.Marshal(set)
	must(t, err)
	return string(out)
}

// What several schemas are made of is copied into each, and an object without a name is
// then made several times: generated Python left both answers about events out.
func TestNoPartOfSeveralSchemasHoldsAnObjectWithoutAName(t *testing.T) {
	walk("", contract(t).Raw, func(at string, o map[string]any) {
		parts, _ := o["allOf"].([]any)
		for _, part := range parts {
			ref, _ := part.(map[string]any)["$ref"].(string)
			whole := contract(t).Doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
			if whole == nil {
				continue
			}
			for field, one := range whole.Value.Properties {
				if one.Ref == "" && len(one.Value.Properties) > 0 {
					t.Errorf("%s of %s has no name", field, ref)
				}
			}
		}
		if len(parts) == 1 && o["description"] == nil && o["default"] == nil {
			t.Errorf("%s says another's name again", at)
		}
	})
}

// What a field is or null, said by name, and a field that is nothing but null, were no
// type at all in what openapi-generator makes: its Go did not compile.
func TestWhatMayBeNullIsATypeOfItsOwn(t *testing.T) {
	for name, schema := range contract(t).Doc.Components.Schemas {
		if schema.Value.Type == nil && len(schema.Value.OneOf) == 2 && schema.Value.OneOf[1].Value.Type.Is("null") {
			t.Errorf("%s is an alternative of a name and null", name)
		}
	}
	walk("", contract(t).Raw, func(at string, o map[string]any) {
		if o["type"] == "null" && !strings.Contains(at, "/oneOf/") {
			t.Errorf("%s is never anything", at)
		}
	})
}

// A generator whose code makes a Charge with NewCharge has that name taken.
func TestNoSchemaIsCalledAsWhatMakesAnother(t *testing.T) {
	all := contract(t).Doc.Components.Schemas
	for name := range all {
		if made, found := strings.CutPrefix(name, "New"); found && all[made] != nil {
			t.Errorf("%s is a schema, and what makes a %s", name, made)
		}
	}
}

// Without a format a picture is a text to generated clients, which it cannot be read as.
func TestWhatIsNoTextIsBinaryInTheDocument(t *testing.T) {
	texts := []string{"application/json", "application/yaml", "text/html"}
	for call, op := range operations(t) {
		for status, r := range op.Responses.Map() {
			for kind, media := range r.Value.Content {
				if !slices.Contains(texts, kind) && media.Schema.Value.Format != "binary" {
					t.Errorf("%s answers %s with %s, and not as bytes", call, status, kind)
				}
			}
		}
	}
}

// redocly took a document that says nothing of who may call a webhook for one with 25 errors.
func TestTheDocumentSaysWhatGuardsAWebhook(t *testing.T) {
	doc := contract(t).Doc
	for name, item := range doc.Webhooks {
		if item.Post.Security == nil && doc.Security == nil {
			t.Errorf("%s is told neither with a key nor without", name)
		}
	}
}
