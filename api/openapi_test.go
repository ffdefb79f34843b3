package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"till/api/apitest"
	"till/flow"
)

// theContract is the document, read once for all tests.
var theContract = sync.OnceValues(func() (*apitest.Contract, error) { return apitest.Load(context.Background(), document) })

func contract(t *testing.T) *apitest.Contract {
	t.Helper()
	c, err := theContract()
	must(t, err)
	return c
}

// conforms holds one exchange against the document. The calls of the phone page
// are its own business and stand in no document.
func conforms(t *testing.T, r *http.Request, asked string, got reply) {
	t.Helper()
	if strings.HasPrefix(r.URL.Path, "/phone") || strings.HasPrefix(r.URL.Path, "/wa.me/") || r.Method == http.MethodOptions {
		return
	}
	err := contract(t).Check(apitest.Exchange{
		Method: r.Method, URL: r.URL, Asked: []byte(asked), Status: got.status, Header: got.header, Answer: []byte(got.body),
	})
	if err != nil {
		t.Errorf("%s %s is not as the document has it: %v\nasked: %.2000s\nanswered: %d %.3000s", r.Method, r.URL.Path, err, asked, got.status, got.body)
	}
}

// delivered holds a webhook against the document.
func delivered(t *testing.T, body []byte) {
	t.Helper()
	if err := contract(t).Webhook(body); err != nil {
		t.Errorf("a webhook is not as the document has it: %v\n%s", err, body)
	}
}

// documented is a route's path as the document writes it.
func documented(path string) string {
	return regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}")
}

// operations are all calls of the document by method and path.
func operations(t *testing.T) map[string]*openapi3.Operation {
	t.Helper()
	out := map[string]*openapi3.Operation{}
	for path, item := range contract(t).Doc.Paths.Map() {
		for method, op := range item.Operations() {
			out[method+" "+path] = op
		}
	}
	return out
}

func TestTheDocumentHoldsEveryRouteAndNoOther(t *testing.T) {
	documentedOnes, names := operations(t), map[string]bool{}
	for _, r := range Routes() {
		if r.Dev {
			continue
		}
		call := r.Method + " " + documented(r.Path)
		op := documentedOnes[call]
		delete(documentedOnes, call)
		if op == nil {
			t.Errorf("%s is not in openapi.yaml", call)
			continue
		}
		if names[op.OperationID] || op.OperationID == "" || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
			t.Errorf("%s is not told whole, or shares its name: %q", call, op.OperationID)
		}
		names[op.OperationID] = true
		if got := keyOf(op); got != keySchemes(r.Key) {
			t.Errorf("%s asks for the key %s; openapi.yaml says %q", call, r.Key, got)
		}
		once := op.Parameters.GetByInAndName("header", "Idempotency-Key") != nil
		if want := r.takesKey(); once != want {
			t.Errorf("%s takes an Idempotency-Key: %v; openapi.yaml says %v", call, want, once)
		}
	}
	for call := range documentedOnes {
		t.Errorf("%s is in openapi.yaml and no route", call)
	}
}

// keySchemes says which security an operation has for a kind of key.
func keySchemes(k KeyKind) string {
	switch k {
	case KeyNone, KeyPhone:
		return ""
	case KeySecret:
		return "secretKey"
	case KeyPublic:
		return "secretKey|publicKey"
	case KeySession:
		return "secretKey|clientSecret+publicKey"
	case KeyTest:
		return "testKey"
	case KeyDashboard:
		return "dashboardToken"
	}
	return "?"
}

func keyOf(op *openapi3.Operation) string {
	if op.Security == nil {
		return "not said"
	}
	var ways []string
	for _, way := range *op.Security {
		ways = append(ways, strings.Join(slices.Sorted(maps.Keys(way)), "+"))
	}
	return strings.Join(ways, "|")
}

// allCodes are the codes of both packages.
func allCodes(t *testing.T) []flow.Code {
	t.Helper()
	source, err := os.ReadFile("error.go")
	must(t, err)
	out := codes(t)
	for _, m := range regexp.MustCompile(`\n\tcode\w+ +flow\.Code = "(\w+)"`).FindAllSubmatch(source, -1) {
		out = append(out, flow.Code(m[1]))
	}
	return out
}

// enum is the list of words at a place of the document.
func enum(t *testing.T, ref *openapi3.SchemaRef) []string {
	t.Helper()
	var out []string
	for _, v := range ref.Value.Enum {
		out = append(out, v.(string))
	}
	slices.Sort(out)
	return out
}

func TestTheDocumentHoldsEveryCodeUnderItsStatus(t *testing.T) {
	doc := contract(t).Doc
	byStatus, types := map[string][]string{}, map[string]bool{}
	var all []string
	for _, code := range allCodes(t) {
		kind, _ := classOf(code)
		status := strconv.Itoa(kind.status)
		byStatus[status] = append(byStatus[status], string(code))
		all, types[kind.kind] = append(all, string(code)), true
	}
	slices.Sort(all)
	if got := enum(t, doc.Components.Schemas["ErrorCode"]); !slices.Equal(got, all) {
		t.Errorf("ErrorCode is\n%v, the program has\n%v", got, all)
	}
	failure := doc.Components.Schemas["Failure"].Value.Properties["error"].Value
	if got, want := enum(t, failure.Properties["type"]), slices.Sorted(maps.Keys(types)); !slices.Equal(got, want) {
		t.Errorf("the types are %v, the program has %v", got, want)
	}
	for status, want := range byStatus {
		slices.Sort(want)
		r := doc.Components.Responses["Error"+status]
		if r == nil {
			t.Errorf("there is no Error%s for %v", status, want)
			continue
		}
		if got := slices.Sorted(slices.Values(apitest.Codes(r.Value))); !slices.Equal(got, want) {
			t.Errorf("Error%s holds\n%v, the program has\n%v", status, got, want)
		}
	}
	for name := range doc.Components.Responses {
		if status := strings.TrimPrefix(name, "Error"); status != "" && byStatus[status] == nil {
			t.Errorf("%s is for a status that no code has", name)
		}
	}
}

func TestTheDocumentHoldsEveryKindOfEvent(t *testing.T) {
	doc := contract(t).Doc
	var all []string
	for _, k := range flow.EventKinds() {
		all = append(all, string(k))
		if doc.Webhooks[string(k)] == nil {
			t.Errorf("%s is not under webhooks", k)
		}
	}
	slices.Sort(all)
	if got := enum(t, doc.Components.Schemas["EventKind"]); !slices.Equal(got, all) {
		t.Errorf("EventKind is %v, the program has %v", got, all)
	}
	for name := range doc.Webhooks {
		if !slices.Contains(all, name) {
			t.Errorf("%s is under webhooks and no kind of event", name)
		}
	}
}

// walk calls f for every value of a document, by its path of names.
func walk(at string, v any, f func(at string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(at, v)
		for name, one := range v {
			walk(at+"/"+name, one, f)
		}
	case []any:
		for i, one := range v {
			walk(at+"/"+strconv.Itoa(i), one, f)
		}
	}
}

// Fields may be added to answers inside /v1, and generated pydantic and ogen refuse what
// a closed schema does not name: clients would break, and webhooks not be taken.
func TestTheDocumentClosesWhatIsAskedAndNothingElse(t *testing.T) {
	asked := map[string]bool{}
	reach(contract(t).Raw, asked)
	example := regexp.MustCompile(`/(example|value)(/|$)`)
	walk("", contract(t).Raw, func(at string, o map[string]any) {
		if example.MatchString(at) || strings.HasPrefix(at, "/x-parts") || strings.HasSuffix(at, "/properties") || strings.HasSuffix(at, "/parameters") {
			return
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(at, "/components/schemas/"), "/")
		request := strings.HasPrefix(at, "/paths/") && strings.Contains(at, "/requestBody/") && !strings.Contains(at, "/callbacks/") || asked[name]
		closed := o["additionalProperties"] == false || o["unevaluatedProperties"] == false
		part := strings.HasSuffix(at, "Fields") || strings.Contains(at, "/allOf/") // closed by what it is a part of
		open := o["additionalProperties"] == nil && !closed
		if (o["type"] == "object" || o["properties"] != nil) && request && open && !part {
			t.Errorf("%s is open", at)
		}
		if closed && !request {
			t.Errorf("%s is closed", at)
		}
		others := strings.Contains(at, "/v1/rails/{rail}/notifications/") || strings.HasPrefix(at, "/paths//openapi.") // forms that are not ours
		if o["additionalProperties"] == true && !others {
			t.Errorf("%s lets everything in", at)
		}
		if s, ok := o["type"].(string); ok && s == "number" {
			t.Errorf("%s is a float", at)
		}
	})
}

// reach marks the schemas that requests are made of, by their names.
func reach(raw map[string]any, asked map[string]bool) {
	var follow func(at string, o map[string]any)
	follow = func(_ string, o map[string]any) {
		ref, _ := o["$ref"].(string)
		name, ok := strings.CutPrefix(ref, "#/components/schemas/")
		if !ok || asked[name] {
			return
		}
		asked[name] = true
		walk("", raw["components"].(map[string]any)["schemas"].(map[string]any)[name], follow)
	}
	walk("", raw["paths"], func(at string, o map[string]any) {
		if strings.HasSuffix(at, "/requestBody") && !strings.Contains(at, "/callbacks/") {
			walk(at, o, follow)
		}
	})
}

// fits judges the examples of a body, or of an answer.
func fits(t *testing.T, at string, content openapi3.Content) {
	t.Helper()
	media := content["application/json"]
	if media == nil {
		return
	}
	examples := map[string]any{}
	if media.Example != nil {
		examples["example"] = media.Example
	}
	for name, e := range media.Examples {
		examples["examples/"+name+"/value"] = e.Value.Value
	}
	if len(examples) == 0 {
		t.Errorf("%s has no example", at)
	}
	for name, v := range examples {
		if err := contract(t).Value(at+"/content/application~1json/schema", v); err != nil {
			t.Errorf("%s %s: %v", at, name, err)
		}
	}
}

func TestEveryExampleOfTheDocumentFitsItsSchema(t *testing.T) {
	doc := contract(t).Doc
	for name, r := range doc.Components.Responses {
		fits(t, apitest.Pointer("components", "responses", name), r.Value.Content)
	}
	check := func(section, path string, item *openapi3.PathItem) {
		for method, op := range item.Operations() {
			at := apitest.Pointer(section, path, strings.ToLower(method))
			if op.RequestBody != nil {
				fits(t, at+"/requestBody", op.RequestBody.Value.Content)
			}
			for status, r := range op.Responses.Map() {
				if r.Ref == "" {
					fits(t, at+"/responses/"+status, r.Value.Content)
				}
			}
			for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
				if p.Value.In == "path" && p.Value.Example == nil {
					t.Errorf("%s: the parameter %s has no example", at, p.Value.Name)
				}
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		check("paths", path, item)
	}
	for name, item := range doc.Webhooks {
		check("webhooks", name, item)
	}
}

// Whoever writes a client by the document learns from it which names metadata may have.
func TestTheDocumentBoundsTheNamesOfMetadata(t *testing.T) {
	s := open(t)
	for length, taken := range map[int]bool{0: false, 1: true, maxPairName: true, maxPairName + 1: false} {
		pairs := map[string]any{strings.Repeat("é", length): "77"}
		body := `{"amount":500000,"customerEmail":"ada@example.com","metadata":{"` + strings.Repeat("é", length) + `":"77"}}`
		if status := s.ask("POST", sessionsPath, s.key, body).status; (status == http.StatusCreated) != taken {
			t.Errorf("a name of %d characters: %d", length, status)
		}
		if err := contract(t).Value(apitest.Pointer("components", "schemas", "Metadata"), pairs); (err == nil) != taken {
			t.Errorf("a name of %d characters, by the document: %v", length, err)
		}
	}
}

// The check has teeth: what the document does not say is noticed.
func TestTheCheckNoticesWhatIsNotInTheDocument(t *testing.T) {
	id := http.Header{"X-Request-Id": {"req_01k9z3m5x8v2c7n4b6t1q0w9ex"}, "Content-Type": {"application/json; charset=utf-8"}}
	for name, e := range map[string]apitest.Exchange{
		"a field too many":    {Status: 200, Header: id, Answer: []byte(`{"status":true,"data":{"alive":true,"since":1}}`)},
		"a status":            {Status: 202, Header: id, Answer: []byte(`{"status":true,"data":{"alive":true}}`)},
		"a missing header":    {Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Answer: []byte(`{"status":true,"data":{"alive":true}}`)},
		"another media type":  {Status: 200, Header: http.Header{"X-Request-Id": id["X-Request-Id"], "Content-Type": {"text/plain"}}, Answer: []byte(`{"status":true,"data":{"alive":true}}`)},
		"an unknown header":   {Status: 200, Header: http.Header{"X-Request-Id": id["X-Request-Id"], "Content-Type": id["Content-Type"], "Location": {"/v1/x"}}, Answer: []byte(`{"status":true,"data":{"alive":true}}`)},
		"an error of another": {Status: 409, Header: id, Answer: []byte(`{"status":false,"error":{"type":"conflict","code":"session_paid","message":"m","fields":[],"details":{},"retryable":false,"requestId":"req_01k9z3m5x8v2c7n4b6t1q0w9ex","docUrl":"/docs/errors/session_paid"}}`)},
		"another's code":      {Status: 400, Header: id, Answer: []byte(`{"status":false,"error":{"type":"conflict","code":"session_paid","message":"m","fields":[],"details":{},"retryable":false,"requestId":"req_01k9z3m5x8v2c7n4b6t1q0w9ex","docUrl":"/docs/errors/session_paid"}}`)},
	} {
		e.Method, e.URL = http.MethodGet, httptest.NewRequest(http.MethodGet, "/livez", nil).URL
		if contract(t).Check(e) == nil {
			t.Errorf("%s passes", name)
		}
	}
	paid, err := json.Marshal(contract(t).Doc.Webhooks["charge.success"].Post.RequestBody.Value.Content["application/json"].Example)
	must(t, err)
	if err := contract(t).Webhook(paid); err != nil {
		t.Error(err)
	}
	for _, place := range []string{`{`, `"data":{`, `"payer":{`, `"payment":{`} {
		if contract(t).Webhook(bytes.Replace(paid, []byte(place), []byte(place+`"more":1,`), 1)) == nil {
			t.Errorf("a field too many behind %s passes", place)
		}
	}
	if contract(t).Webhook([]byte(`{"event":"charge.success"}`)) == nil || contract(t).Webhook([]byte(`{"event":"charge.won"}`)) == nil {
		t.Error("a webhook that is none passes")
	}
}
