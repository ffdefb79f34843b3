package api

import (
	"strings"
	"testing"
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
