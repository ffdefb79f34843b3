package apitest

// shutAll lets nothing into an answer or a webhook that the document does not name. In the
// document they are open, for clients that are older than a field; here none may come
// that is not in it.
func shutAll(document any) {
	all, _ := document.(map[string]any)
	components, _ := all["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for _, s := range schemas {
		shutInside(s)
	}
	shutBodies(document)
}

// shutBodies shuts each schema that a body, a parameter or a header has.
func shutBodies(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			if name == "schema" {
				shut(one)
			} else if name != "schemas" && name != "example" && name != "examples" {
				shutBodies(one)
			}
		}
	case []any:
		for _, one := range v {
			shutBodies(one)
		}
	}
}

// shut shuts a schema that stands in the place of a whole value.
func shut(schema any) {
	if s, ok := schema.(map[string]any); ok {
		shutInside(s)
		s["unevaluatedProperties"] = false
	}
}

// shutInside shuts the values below a schema, and not itself: it may be a part of another.
func shutInside(schema any) {
	s, _ := schema.(map[string]any)
	fields, _ := s["properties"].(map[string]any)
	for _, one := range fields {
		shut(one)
	}
	shut(s["items"])
	shut(s["additionalProperties"])
	for _, name := range []string{"allOf", "oneOf"} {
		parts, _ := s[name].([]any)
		for _, one := range parts {
			shutInside(one)
		}
	}
}
