package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// keyOfEach is a key of the shop for each kind that a call wants.
func (s *shop) keyOfEach() map[KeyKind]string {
	s.t.Helper()
	return map[KeyKind]string{KeyPublic: s.public, KeySecret: s.key, KeySession: s.key, KeyTest: s.key, KeyDashboard: s.tokenFor(s.project)}
}

// A parameter that no call knows is refused by its name, on every call of the
// document: a filter that is misspelt and passed over looks as if it had worked.
func TestNoCallPassesOverAParameterOfTheQuery(t *testing.T) {
	s := open(t)
	own := s.belongings()
	keys := s.keyOfEach()
	for _, r := range Routes() {
		if r.Dev || strings.HasSuffix(r.Path, "/notifications") {
			continue // the page's own, and a bank's
		}
		url := own.fill(r.Path) + "?"
		if r.Path == reconciliationPath {
			url += "date=2026-02-03&" // else what is missing is named first
		}
		for query, field := range map[string]string{
			"colour=red": "colour", "Limit=5": "Limit", "limit[]=5": "limit[]", "%61mount=5": "amount", "=1": "", "_=1767225600": "_", "a%00b=1": "a\ufffdb", "%ff=1": "\ufffd",
		} {
			got := s.ask(r.Method, url+query, keys[r.Key], sweepBody(r))
			s.want(got, http.StatusBadRequest, map[string]string{"error.code": "unknown_field", "error.fields.0.field": field, "error.fields.0.code": "unknown_field"})
		}
		for _, query := range []string{"a=%zz", "a;b"} {
			s.want(s.ask(r.Method, url+query, keys[r.Key], sweepBody(r)), http.StatusBadRequest, map[string]string{"error.fields.0.field": "query"})
		}
		if r.Method == http.MethodGet {
			if head := s.ask(http.MethodHead, url+"colour=red", keys[r.Key], ""); head.status != http.StatusBadRequest {
				t.Errorf("HEAD %s: %d", url, head.status)
			}
		}
	}
	if r := s.ask("GET", "/v1/charges?"+s.key+"=1", s.key, ""); r.status != http.StatusBadRequest || strings.Contains(r.body, s.key) {
		t.Errorf("a key in the place of a parameter: %s", r.body)
	}
	s.want(s.ask("GET", "/v1/charges?limit=1;status=PENDING", s.key, ""), http.StatusBadRequest, map[string]string{
		"error.message": "The query holds a semicolon: parameters are joined by &, and in a value it is written %3B.",
	})
	// Who has no key is not told what a call takes.
	s.want(s.ask("GET", "/v1/charges?colour=red", "", ""), http.StatusUnauthorized, nil)
}

// Who misspells a parameter is asked whether they meant the one that comes close, as who
// misspells a field is; where none does, they are told what there is.
func TestWhoMisspellsAParameterIsToldWhatThereIs(t *testing.T) {
	s := open(t)
	for url, says := range map[string]string{
		"/v1/charges?created_after=2026-01-01T00:00:00Z": "created_after is not a parameter of this call. Did you mean createdAfter?",
		"/v1/refunds?PaymentID=1":                        "PaymentID is not a parameter of this call. Did you mean paymentId?",
		"/v1/events?event=charge.success":                "event is not a parameter of this call. It takes: type, sessionId, limit, createdAfter, createdBefore, cursor.",
		"/v1/balance?currency=NGN":                       "currency is not a parameter of this call.",
	} {
		s.want(s.ask("GET", url, s.key, ""), http.StatusBadRequest, map[string]string{"error.code": "unknown_field", "error.fields.0.message": says})
	}
}

// Answers say amountMinor, and whoever sends that back is asked whether they meant amount.
func TestWhoSendsAnAmountAsAnswersCallItIsToldItsName(t *testing.T) {
	refused := read(t, `{"customerEmail":"a@b.co","amountMinor":500000}`)
	if refused == nil || len(refused.Fields) != 2 || refused.Fields[1].Message != "amountMinor is not a field of this request. Did you mean amount?" {
		t.Errorf("%+v", refused)
	}
}

// Two ways in which a body that looks right is none are called by their names: a telephone
// or account number without quotes, and the mark that some editors put in front of a file.
func TestABodyThatLooksRightIsToldWhatIsWrong(t *testing.T) {
	s := open(t)
	for body, says := range map[string]string{
		`{"amount":500000,"customerEmail":"a@b.co","customerPhone":08031234567}`: "a number begins with 0; digits with leading zeros are a string, in quotes (at byte 59).",
		"\ufeff" + good: "a byte order mark stands in front: save the file as UTF-8 without one (at byte 0).",
	} {
		if got := s.ask("POST", sessions, s.key, body); got.code() != "malformed_json" || !strings.HasSuffix(got.text("error.message"), ": "+says) {
			t.Errorf("%q: it is told %q", body, got.text("error.message"))
		}
	}
}

// A filter whose value is empty, as a variable that nobody set makes one, is as good as
// a misspelt one too: a shop that asked for the charge of no order was told of another's.
func TestAFilterThatIsLeftEmptyIsRefused(t *testing.T) {
	s := open(t)
	own := s.belongings()
	keys := s.keyOfEach()
	ops, asked := operations(t), 0
	for _, r := range Routes() {
		op := ops[r.Method+" "+documented(r.Path)]
		if r.Dev || op == nil {
			continue
		}
		for _, p := range op.Parameters {
			if p.Value.In != "query" {
				continue
			}
			got := s.ask(r.Method, own.fill(r.Path)+"?"+p.Value.Name+"=", keys[r.Key], "")
			switch p.Value.Name {
			case "cursor", "after": // so a first page is asked for
				if got.text("error.fields.0.field") == p.Value.Name {
					t.Errorf("%s: %s", r.Path, got.body)
				}
			case "date":
				s.want(got, http.StatusBadRequest, map[string]string{"error.code": "missing_field"})
			default:
				asked++
				s.want(got, http.StatusBadRequest, map[string]string{"error.code": "invalid_field", "error.fields.0.field": p.Value.Name})
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d filters were tried", asked)
	}
}

// Whatever no list gave out is refused in one way, however it is wrong.
func TestWhatIsNoCursorIsRefusedInOneWay(t *testing.T) {
	s := open(t)
	own := s.belongings()
	keys := s.keyOfEach()
	ops, asked := operations(t), 0
	for _, r := range Routes() {
		op := ops[r.Method+" "+documented(r.Path)]
		if r.Dev || op == nil || op.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		asked++
		query := "?"
		if r.Path == reconciliationPath {
			query = "?date=2026-02-03&"
		}
		for _, bad := range []string{"x", "%20", "%0a", strings.Repeat("a", 129), strings.Repeat("a", 201), "MQ&cursor=MQ"} {
			got := s.ask(r.Method, own.fill(r.Path)+query+"cursor="+bad, keys[r.Key], "")
			s.want(got, http.StatusBadRequest, map[string]string{"error.code": "invalid_cursor", "error.fields.0.field": "cursor", "error.fields.0.code": "invalid_cursor"})
		}
		// With what else is wrong, all of it at once.
		got := s.ask(r.Method, own.fill(r.Path)+query+"limit=0&cursor=x", keys[r.Key], "")
		for _, field := range []string{"limit", "cursor"} {
			if !strings.Contains(got.body, `"field":"`+field+`"`) {
				t.Errorf("%s: %s is not named: %s", r.Path, field, got.body)
			}
		}
	}
	if asked < 8 {
		t.Errorf("only %d lists were tried", asked)
	}
}

// A cursor is one of the list that gave it out: in another it would leave out whatever
// stands before a place that is none of its own.
func TestACursorIsOfItsOwnList(t *testing.T) {
	s := open(t)
	own := s.belongings()
	keys := s.keyOfEach()
	for range 2 {
		s.want(s.ask("POST", chargesPath, s.key, `{"amount":500000,"customerEmail":"ada@example.com"}`), http.StatusCreated, nil)
	}
	const id = "01j00000000000000000000000"
	cursors := map[string]string{
		projectsPath: *cursorOf(flow.PrefixProject + id), projectsPath + "/:id/keys": *cursorOf(flow.PrefixKey + id), endpointsPath: *cursorOf(flow.PrefixEndpoint + id),
		eventsPath: *cursorOf("1767225600000." + flow.PrefixEvent + id), eventsPath + "/:id/deliveries": *cursorOf(flow.PrefixDelivery + id),
		"/v1/test/bank/calls": *cursorOf("7"), paymentsPath: *cursorOf(flow.PrefixPayment + id), refundsPath: *cursorOf(flow.PrefixRefund + id),
		reconciliationPath: *cursorOf("1767225600000.0123456789abcdef"), settlementsPath: *cursorOf(flow.PrefixSettlement + id),
		settlementsPath + "/:id/transactions": *cursorOf("1767225600000/payment/" + flow.PrefixPayment + id), chargesPath + "/:id/timeline": *cursorOf("1767225600000/1"),
	}
	for _, list := range []string{sessionsPath, chargesPath} {
		r := s.ask("GET", list+"?limit=1", s.key, "")
		cursors[list] = r.text("data.nextCursor")
		s.want(s.ask("GET", list+"?limit=1&cursor="+cursors[list], s.key, ""), http.StatusOK, nil)
	}
	ops := operations(t)
	for _, r := range Routes() {
		op := ops[r.Method+" "+documented(r.Path)]
		if r.Dev || op == nil || op.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		query := "?"
		if r.Path == reconciliationPath {
			query = "?date=2026-02-03&"
		}
		if cursors[r.Path] == "" {
			t.Errorf("no cursor of %s is tried", r.Path)
		}
		for list, cursor := range cursors {
			got := s.ask(r.Method, own.fill(r.Path)+query+"cursor="+cursor, keys[r.Key], "")
			if refused := got.text("error.code") == "invalid_cursor"; refused != (list != r.Path) {
				t.Errorf("%s takes a cursor of %s: %s", r.Path, list, got.body)
			}
		}
	}
}

// Times that were swapped are named: nothing was made between them, and an empty list
// would look like an answer.
func TestTimesThatAreSwappedAreRefused(t *testing.T) {
	s := open(t)
	lists := []string{sessionsPath, chargesPath, eventsPath, paymentsPath, refundsPath, settlementsPath}
	for path, op := range operations(t) {
		if op.Parameters.GetByInAndName("query", "createdBefore") != nil && !slices.Contains(lists, strings.TrimPrefix(path, "GET ")) {
			t.Errorf("%s is not tried", path)
		}
	}
	for _, list := range lists {
		r := s.ask("GET", list+"?createdAfter=2026-02-01T00:00:00Z&createdBefore=2026-01-31T23:59:59.999Z", s.key, "")
		s.want(r, http.StatusBadRequest, map[string]string{
			"error.code": "invalid_field", "error.fields.0.field": "createdBefore", "error.fields.0.message": "createdBefore must not be before createdAfter.",
		})
		for _, query := range []string{"?createdAfter=2026-02-01T00:00:00Z&createdBefore=2026-02-01T01:00:00%2B01:00", "?createdBefore=2026-01-31T23:59:59Z", "?createdAfter=2026-01-31T23:59:59Z"} {
			s.want(s.ask("GET", list+query, s.key, ""), http.StatusOK, nil)
		}
	}
}

// A plus that is not escaped is a space to whoever reads a query: an address with one
// was looked for as another, and nothing was found.
func TestAPlusInAQueryIsNotTakenForASpace(t *testing.T) {
	s := open(t)
	s.want(s.ask("POST", sessionsPath, s.key, `{"amount":500000,"customerEmail":"ada+shop@example.com"}`), http.StatusCreated, nil)
	for _, list := range []string{sessionsPath, chargesPath} {
		r := s.ask("GET", list+"?customerEmail=ada+shop@example.com&createdAfter=2026-01-01T00:00:00+01:00", s.key, "")
		s.want(r, http.StatusBadRequest, map[string]string{
			"error.code": "invalid_email", "error.fields.0.field": "customerEmail", "error.fields.0.code": "invalid_email", "error.fields.1.field": "createdAfter",
		})
		for _, fault := range []string{"error.fields.0.message", "error.fields.1.message"} {
			if !strings.Contains(r.text(fault), "%2B") {
				t.Errorf("%s: nobody learns from it how a plus is written: %s", list, r.text(fault))
			}
		}
	}
	r := s.ask("GET", sessionsPath+"?customerEmail=ada%2Bshop@example.com&createdAfter=2026-01-01T00:00:00%2B01:00", s.key, "")
	s.want(r, http.StatusOK, map[string]string{"data.items.0.customerEmail": "ada+shop@example.com"})
}

// Filters in the body of a read, as curl sends them without -G, are as good as a
// misspelt one: nobody reads them.
func TestAReadPassesOverNoBody(t *testing.T) {
	s := open(t)
	own := s.belongings()
	keys := s.keyOfEach()
	for _, r := range Routes() {
		if key := keys[r.Key]; key != "" && (r.Method == http.MethodGet || r.Method == http.MethodDelete) {
			s.want(s.ask(r.Method, own.fill(r.Path), key, `{"status":"PAID"}`), http.StatusBadRequest, map[string]string{"error.code": "unknown_field", "error.fields.0.field": "body"})
		}
	}
	empty := httptest.NewRequest(http.MethodGet, chargesPath, strings.NewReader("{}")) // the document knows of none at all
	empty.Header.Set("Authorization", "Bearer "+s.key)
	r, err := s.server.Test(empty, 30*time.Second)
	must(t, err)
	if err := r.Body.Close(); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("an object with nothing in it: %d, %v", r.StatusCode, err)
	}
	s.want(s.ask("GET", chargesPath, "", `{"status":"PAID"}`), http.StatusUnauthorized, nil)
}
