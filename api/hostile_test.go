package api

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"till/flow"
)

// golden holds a table against a file under testdata, which -update writes anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	had, has := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(had), len(has)) {
		a, b := "", ""
		if i < len(had) {
			a = had[i]
		}
		if i < len(has) {
			b = has[i]
		}
		if a != b {
			t.Errorf("%s:%d\nwant %s\ngot  %s", file, i+1, a, b)
		}
	}
}

// inUTF16 is a text in UTF-16 with its byte order mark.
func inUTF16(s string, order binary.AppendByteOrder) string {
	out := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// illegible are bodies that no call takes, whatever it does, made of one that
// would do.
func illegible(good string) map[string]string {
	inside := func(more string) string {
		if good == "{}" {
			return "{" + more + "}"
		}
		return good[:len(good)-1] + "," + more + "}"
	}
	out := map[string]string{
		"white space":           " \r\n\t",
		"a list":                "[]",
		"a list of it":          "[" + good + "]",
		"a string":              `"{}"`,
		"a number":              "1",
		"true":                  "true",
		"null":                  "null",
		"a word":                "undefined",
		"two of it":             good + good,
		"it and a line of it":   good + "\n" + good,
		"it and a word":         good + " x",
		"it and a comma":        good + ",",
		"it and NUL":            good + "\x00",
		"half of it":            good[:len(good)-1],
		"a brace too many":      good + "}",
		"a comma at the end":    inside(`"a":1,`),
		"a comma at the start":  "{," + good[1:],
		"a comment":             inside(`/* a */"a":1`),
		"a comment of a line":   "// a\n" + good,
		"a comment with a hash": "# a\n" + good,
		"single quotes":         inside(`'a':1`),
		"a name without quotes": inside(`a:1`),
		"a number for a name":   inside(`1:1`),
		"no colon":              inside(`"a" 1`),
		"no value":              inside(`"a":`),
		"an equals sign":        inside(`"a"=1`),
		"NaN":                   inside(`"a":NaN`),
		"Infinity":              inside(`"a":Infinity`),
		"minus Infinity":        inside(`"a":-Infinity`),
		"a leading zero":        inside(`"a":01`),
		"a leading plus":        inside(`"a":+1`),
		"a leading point":       inside(`"a":.5`),
		"a trailing point":      inside(`"a":5.`),
		"a minus alone":         inside(`"a":-`),
		"half an exponent":      inside(`"a":1e`),
		"hexadecimal":           inside(`"a":0x10`),
		"octal":                 inside(`"a":0o7`),
		"underscores":           inside(`"a":1_000`),
		"a big integer's n":     inside(`"a":1n`),
		"digits of another":     inside(`"a":٣`),
		"True":                  inside(`"a":True`),
		"nul":                   inside(`"a":nul`),
		"two equal names":       inside(`"a":1,"a":1`),
		"two, one escaped":      inside(`"a":1,"\u0061":1`),
		"two inside":            inside(`"a":{"b":1,"b":2}`),
		"two in a list":         inside(`"a":[{"b":1,"b":2}]`),
		"two empty names":       inside(`"":1,"":1`),
		"a mark in front":       "\ufeff" + good,
		"UTF-16, little":        inUTF16(good, binary.LittleEndian),
		"UTF-16, big":           inUTF16(good, binary.BigEndian),
		"a byte of Latin 1":     inside("\"a\":\"caf\xe9\""),
		"overlong":              inside("\"a\":\"\xc0\x80\""),
		"a control":             inside("\"a\":\"\x01\""),
		"a line in a string":    inside("\"a\":\"\n\""),
		"NUL in a string":       inside(`"a":"\u0000"`),
		"NUL in a name":         inside(`"a\u0000":1`),
		"half a pair":           inside(`"a":"\ud800"`),
		"an unknown escape":     inside(`"a":"\q"`),
		"a form feed":           "{\f" + good[1:],
		"a no-break space":      "{\u00a0" + good[1:],
		"17 levels of lists":    inside(`"a":` + strings.Repeat("[", 16) + strings.Repeat("]", 16)),
		"17 levels of objects":  inside(`"a":` + strings.Repeat(`{"a":`, 15) + "{}" + strings.Repeat("}", 15)),
		"60,000 levels":         strings.Repeat("[", 60_000),
		"60,000 open objects":   strings.Repeat(`{"a":`, 12_000),
		"a form":                "amount=500000&customerEmail=ada%40example.com",
		"XML":                   "<amount>500000</amount>",
	}
	if first, _, ok := strings.Cut(strings.TrimPrefix(good, `{"`), `"`); ok && good != "{}" {
		value := good[len(first)+4:]
		out["its own name twice"] = `{"` + first + `":1,` + good[1:]
		out["its own name twice, last"] = good[:len(good)-1] + `,"` + first + `":` + strings.TrimSuffix(value, "}") + "}"
		out["its own name, escaped"] = inside(`"` + escaped(first) + `":1`)
	}
	return out
}

// escaped is a name whose first letter is an escape.
func escaped(name string) string { return fmt.Sprintf(`\u%04x%s`, name[0], name[1:]) }

// What can be read in two ways is refused alike by every call that reads a body.
func TestHostileDocumentsAreRefusedByEveryCall(t *testing.T) {
	z := tease(t)
	for call, op := range operations(t) {
		if op.RequestBody == nil || op.OperationID == "hearBank" { // a bank's words are signed
			continue
		}
		e, method, key := z.ready(call, op, z.token)
		good := e.body
		if good == "" {
			good = "{}"
		}
		if op.OperationID == "signUp" { // the owner was signed up to log in
			good = strings.Replace(good, "owner@", "other@", 1)
		}
		t.Run(op.OperationID, func(t *testing.T) {
			s := z.as(t)
			refused := func(what string, r reply, status int, code flow.Code) {
				t.Helper()
				if r.status != status || r.code() != string(code) {
					t.Errorf("%s: want %d %s, got %d %.300s", what, status, code, r.status, r.body)
				}
			}
			for what, body := range illegible(good) {
				refused(what, z.send(t, method, e.url, key, body), http.StatusBadRequest, flow.CodeMalformedJSON)
			}
			for _, kind := range []string{
				"text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "application/xml", "application/jsonp",
				"application/vnd.api+json", "application/json; charset=utf-16", "application/json; charset=latin1", "application/json; charset=utf-8; charset=utf-16",
				"application/json; version=2", "application/json, text/plain", "application/json;;", "json", "*/*", "application/ json", "; charset=utf-8",
			} {
				refused(kind, z.send(t, method, e.url, key, good, http.Header{"Content-Type": {kind}}), http.StatusUnsupportedMediaType, flow.CodeMediaType)
			}
			refused("no type", s.ask(method, e.url, key, good, http.Header{"Content-Type": {""}}), http.StatusUnsupportedMediaType, flow.CodeMediaType)
			for _, coding := range []string{"gzip", "br", "deflate", "identity", "gzip, gzip"} {
				refused(coding, z.send(t, method, e.url, key, good, http.Header{"Content-Encoding": {coding}}), http.StatusUnsupportedMediaType, flow.CodeMediaType)
			}
			for _, name := range []string{"colour", "__proto__", "constructor", "toString", "", "a.b", "a[]", "status", "id", "projectId", "livemode"} {
				if op.RequestBody.Value.Content["application/json"].Schema.Value.Properties[name] != nil {
					continue // here it is a field
				}
				quoted := naughty{text: name}.quoted()
				body := "{" + quoted + ":1}"
				if good != "{}" {
					body = good[:len(good)-1] + "," + quoted + ":1}"
				}
				if got := z.send(t, method, e.url, key, body); got.code() != string(flow.CodeUnknownField) || !strings.Contains(got.body, `{"field":`+quoted+`,"code":"unknown_field"`) {
					t.Errorf("the field %q: %d %s", name, got.status, got.body)
				}
			}
			if op.RequestBody.Value.Required {
				refused("nothing", s.ask(method, e.url, key, ""), http.StatusBadRequest, flow.CodeMalformedJSON)
			}
			first, rest, ok := strings.Cut(strings.TrimPrefix(good, `{"`), `"`)
			if !ok || good == "{}" {
				return
			}
			got := z.send(t, method, e.url, key, `{"`+strings.ToUpper(first)+`":1,`+good[1:])
			refused("its own name in capitals", got, http.StatusBadRequest, flow.CodeUnknownField)
			if got := z.send(t, method, e.url, key, `{"`+escaped(first)+`"`+rest); got.status != expected(t, op) { // last: it is done
				t.Errorf("a name that is written with an escape: %d %s", got.status, got.body)
			}
		})
	}
}

// Who is told to leave a field out can: sent without it, the request lacks nothing.
func TestWhatIsToBeLeftOutIsNotRequired(t *testing.T) {
	z := tease(t)
	for call, op := range operations(t) {
		if op.RequestBody == nil || op.OperationID == "hearBank" {
			continue
		}
		e, method, _ := z.ready(call, op, z.token)
		var fields map[string]json.RawMessage
		if e.body != "" {
			must(t, json.Unmarshal([]byte(e.body), &fields))
		}
		for name := range fields {
			p := place{base: e.body, path: []string{name}}
			path, key := z.alone(t, e, &p)
			null := z.send(t, method, path, key, p.with(t, "null"))
			if !strings.Contains(null.body, name+" is null. Leave it out instead.") {
				continue
			}
			rest := maps.Clone(fields)
			delete(rest, name)
			without, err := json.Marshal(rest)
			must(t, err)
			if got := z.send(t, method, path, key, string(without)); strings.Contains(got.body, `{"field":"`+name+`","code":"missing_field"`) {
				t.Errorf("%s: without %s, as it was told to be sent, it is %s", call, name, got.body)
			}
		}
	}
}

// hostile are values that a field may mistake for another.
func hostile() []string {
	return []string{
		"null", "true", "false", "0", "-0", "-1", "1.0", "1.5", "1e0", "1E2", "1e400", "1e-400", "-1e400", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"-9223372036854775809", "1" + strings.Repeat("0", 400), `""`, `"5"`, `"true"`, `"null"`, "[]", "[[]]", "[null]", `["5"]`, "{}", `{"a":null}`, `{"a":"b"}`,
	}
}

// short is a value as the table shows it.
func short(v string) string {
	if len(v) > 40 {
		return v[:4] + "…"
	}
	return v
}

func shortened() []string {
	var out []string
	for _, v := range hostile() {
		out = append(out, short(v))
	}
	return out
}

// What every field of every body makes of every value stands in the table:
// refused by its name, or taken because its type is right.
func TestGoldenHostileValues(t *testing.T) {
	z := tease(t)
	all := operations(t)
	var table strings.Builder
	fmt.Fprintf(&table, "What each field is answered with where it is one of:\n  %s\n\n", strings.Join(shortened(), "  "))
	for _, call := range slices.Sorted(maps.Keys(all)) {
		op := all[call]
		if op.RequestBody == nil || op.OperationID == "hearBank" {
			continue
		}
		e, method, _ := z.ready(call, op, z.token)
		fmt.Fprintf(&table, "%s\n", call)
		for _, p := range e.places("") {
			if p.path[len(p.path)-1] == "*name" {
				continue // a name is a string
			}
			outcomes, order := map[string][]string{}, []string{}
			for _, v := range hostile() {
				p := p
				path, key := z.alone(t, e, &p)
				got := z.send(t, method, path, key, p.with(t, v))
				outcome := fmt.Sprint(got.status, " ", got.code())
				switch {
				case got.status >= http.StatusInternalServerError:
					t.Errorf("%s: %s is %s: %d %s", call, p, v, got.status, got.body)
				case got.status == http.StatusBadRequest && !named(got, p.field(v)):
					t.Errorf("%s: %s is %s, and it is not named: %s", call, p, v, got.body)
				}
				if outcomes[outcome] == nil {
					order = append(order, outcome)
				}
				outcomes[outcome] = append(outcomes[outcome], short(v))
			}
			for _, outcome := range order {
				if len(outcomes[outcome]) > len(hostile())/2 {
					outcomes[outcome] = []string{"all else"}
				}
				fmt.Fprintf(&table, "  %-28s %-28s %s\n", p, outcome, strings.Join(outcomes[outcome], "  "))
			}
		}
	}
	golden(t, "hostile.txt", table.String())
}
