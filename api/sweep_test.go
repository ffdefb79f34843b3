package api

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"till/flow"
	"till/flow/store"
)

var update = flag.Bool("update", false, "write the golden tables anew")

// sweep is a desk with everybody round it who is not the owner of what is called.
type sweep struct {
	*desk

	live, stranger, strangers, suspended, revoked, expired string
	token, strangersToken, ended                           string
	table                                                  strings.Builder
}

func openSweep(t *testing.T) *sweep {
	t.Helper()
	w := &sweep{desk: openDesk(t)}
	w.live, _ = w.openEnvironment(flow.Live, w.wire)
	_, w.strangers, w.stranger = w.merchant("Bola Stores")
	w.revoked, w.expired, w.suspended = w.newKey(flow.Test, flow.SecretKey), w.newKey(flow.Test, flow.SecretKey), w.newKey(flow.Live, flow.SecretKey)
	w.keep("Gone Stores", key(w.revoked, flow.Test, 0, -1), key(w.expired, flow.Test, -1, 0))
	suspended := w.keep("Still Stores", key(w.suspended, flow.Live, 0, 0))
	err := w.accounts.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.MoveKYC(t.Context(), flow.KYCMove{Project: suspended.ID, From: flow.KYCNone, To: flow.KYCSuspended, At: w.now()})
		return err
	})
	must(t, err)
	w.token, w.ended = w.tokenFor(w.project), w.tokenFor(w.project)
	w.strangersToken, _ = w.shop.desk("Chidi Stores")
	w.want(w.ask("POST", "/v1/auth/logout", w.ended, ""), http.StatusOK, nil)
	return w
}

// others are those who may not make a call, beside those who own other things.
func (w *sweep) others(scheme string) []caller {
	none := []caller{{name: "no key"}, {name: "garbage", key: "sk_test_garbage"}, {name: "revoked", key: w.revoked}, {name: "expired", key: w.expired}}
	if scheme == "dashboardToken" {
		return append(none, caller{name: "logged out", key: w.ended}, caller{name: "secret key", key: w.key}, caller{name: "public key", key: w.public})
	}
	none = append(none, caller{name: "suspended", key: w.suspended}, caller{name: "dashboard", key: w.token})
	if strings.Contains(scheme, "clientSecret") {
		other := w.ask("GET", sessions+"/"+w.session(""), w.key, "").text("data.clientSecret")
		return append(none, caller{name: "public key", key: w.public}, caller{"other secret", w.public, other}, caller{"other's public", w.strangers, other})
	}
	if !strings.Contains(scheme, "publicKey") {
		none = append(none, caller{name: "public key", key: w.public}, caller{name: "other's public", key: w.strangers})
	}
	return none
}

// caller is who makes a call.
type caller struct{ name, key, secret string }

// ids finds what belongs to somebody in an answer.
var ids = regexp.MustCompile(`wsp_[a-z]+_[0-9a-z]{26}|"\+234[0-9]{10}"|"[0-9]{10}"`)

// call makes one call and writes a row of the table.
func (w *sweep) call(row caller, method, url, body string) reply {
	w.t.Helper()
	h := http.Header{}
	if row.secret != "" {
		h.Set("X-Client-Secret", row.secret)
	}
	got := w.ask(method, url, row.key, body, h)
	fmt.Fprintln(&w.table, strings.TrimRight(fmt.Sprintf("  %-22s %d %s", row.name, got.status, got.code()), " "))
	return got
}

// Every call of the document, made by everybody who is not the owner of what it
// names, and by the owner of what is not there: what each is answered stands in
// testdata/sweep.txt. Nobody gets a 2xx, and what is another's looks exactly like
// what was never there.
func TestGoldenSweepOfEveryRoute(t *testing.T) {
	w := openSweep(t)
	all := operations(t)
	for _, call := range slices.Sorted(maps.Keys(all)) {
		op := all[call]
		if scheme := keyOf(op); scheme != "" { // else it is of everybody
			w.sweep(call, op, scheme)
		}
	}
	w.deleted()
	golden(t, "sweep.txt", w.table.String())
}

func (w *sweep) sweep(call string, op *openapi3.Operation, scheme string) {
	e, method, own := w.ready(call, op, w.token)
	fmt.Fprintf(&w.table, "%s\n", call)
	no := func(row caller, url string) reply {
		w.t.Helper()
		got := w.call(row, method, url, e.body)
		if got.status < http.StatusBadRequest || got.status >= http.StatusInternalServerError {
			w.t.Errorf("%s answers %s with %d %s", call, row.name, got.status, got.body)
		}
		return got
	}
	for _, row := range w.others(scheme) {
		no(row, e.url)
	}
	_, template, _ := strings.Cut(call, " ")
	params := parameters(w.t, call, op, "path")
	named := !slices.Contains(slices.Collect(maps.Values(bodies(w.t, op))), e.body) // a name in it is one of ours
	strangers := []caller{{name: "other project", key: w.stranger}, {name: "other environment", key: w.live}}
	if scheme == "dashboardToken" {
		strangers = []caller{{name: "other account", key: w.strangersToken}}
	}
	switch {
	case len(params) == 0 && !named && method == http.MethodGet:
		w.lists(e, strangers, own)
	case len(params) > 0 || named:
		for _, row := range strangers {
			got := no(row, e.url)
			if len(params) > 0 && !named {
				there := w.part(template, params[0].Name, e.url)
				nowhere := w.ask(method, detour(w.t, template, params[0].Name, op, e, unknown(there)), row.key, e.body)
				if a, b := unnumbered(got.body, there), unnumbered(nowhere.body, unknown(there)); a != b || got.status != nowhere.status {
					w.t.Errorf("%s: what is another's is not like what is not there:\n%s\n%s", call, a, b)
				}
			}
		}
	}
	for _, p := range params {
		there := w.part(template, p.Name, e.url)
		no(caller{name: "unknown " + p.Name, key: own}, detour(w.t, template, p.Name, op, e, unknown(there)))
		rows := map[string]bool{}
		for _, odd := range []string{"%27%3B--", "null", "0", "1'", "*", strings.ToUpper(there) + "x", there + there, strings.Repeat("a", 4_000), "[object]", "me"} {
			got := w.ask(method, detour(w.t, template, p.Name, op, e, odd), own, e.body)
			rows[fmt.Sprintf("%d %s", got.status, got.code())] = true
			if got.status < http.StatusBadRequest || got.status >= http.StatusInternalServerError {
				w.t.Errorf("%s of %.40s: %d %s", call, odd, got.status, got.body)
			}
		}
		fmt.Fprintf(&w.table, "  %-22s %s\n", "malformed "+p.Name, strings.Join(slices.Sorted(maps.Keys(rows)), ", "))
	}
}

// lists wants nothing of the owner's in what others are shown of theirs.
func (w *sweep) lists(e *example, others []caller, own string) {
	w.t.Helper()
	mine := ids.FindAllString(w.ask(http.MethodGet, e.url, own, "").body, -1)
	for _, row := range others {
		got := w.call(row, http.MethodGet, e.url, "")
		if e.op.OperationID == "readOwnProject" && row.name == "other environment" {
			continue // a project has both environments
		}
		for _, id := range mine {
			if strings.Contains(got.body, id) && e.op.OperationID != "listBanks" {
				w.t.Errorf("%s shows %s to the %s", e.url, id, row.name)
			}
		}
	}
}

// part is what stands in the place of a parameter.
func (*sweep) part(template, name, url string) string {
	live := strings.Split(url, "/")
	return live[slices.Index(strings.Split(template, "/"), "{"+name+"}")]
}

// unknown looks like what is there, and is nobody's.
func unknown(there string) string {
	if strings.HasPrefix(there, "+") { // phones are given out one after the other
		return there[:len(there)-3] + "999"
	}
	if strings.HasSuffix(there, "9") {
		return there[:len(there)-1] + "8"
	}
	return there[:len(there)-1] + "9"
}

// unnumbered is an answer without the number of its request and the name that was
// asked for.
func unnumbered(body, name string) string {
	return regexp.MustCompile(`req_[0-9a-z]{26}`).ReplaceAllString(strings.ReplaceAll(body, name, ""), "")
}

// deleted calls everything that can be deleted after it was, by its owner.
func (w *sweep) deleted() {
	w.t.Helper()
	all := operations(w.t)
	for _, gone := range slices.Sorted(maps.Keys(all)) {
		thing, ok := strings.CutPrefix(gone, http.MethodDelete+" ")
		if !ok {
			continue
		}
		for _, call := range slices.Sorted(maps.Keys(all)) {
			method, path, _ := strings.Cut(call, " ")
			below, under := strings.CutPrefix(path, thing)
			if !under || below != "" && below[0] != '/' {
				continue
			}
			url, key := w.disposable(thing)
			w.want(w.ask(http.MethodDelete, url, key, ""), http.StatusOK, nil)
			e, _, _ := w.ready(call, all[call], w.token)
			fmt.Fprintf(&w.table, "%s\n", call)
			if got := w.call(caller{name: "deleted", key: key}, method, url+below, e.body); got.status >= http.StatusInternalServerError || got.status < 300 && method != http.MethodDelete &&
				got.text("data.status") != string(flow.KeyRevoked) { // a key is ended and stays to be read
				w.t.Errorf("%s of what was deleted: %d %s", call, got.status, got.body)
			}
		}
	}
}

// disposable makes something that can be deleted.
func (w *sweep) disposable(thing string) (url, key string) {
	w.t.Helper()
	switch thing {
	case "/v1/projects/{id}/keys/{kid}":
		id, _ := w.newAPIKey(w.token, string(w.project.ID), "secret")
		return keysOf(string(w.project.ID)) + "/" + id, w.token
	case "/v1/test/phones/{phone}":
		return "/v1/test/phones/" + w.ask("POST", "/v1/test/phones", w.key, `{}`).text("data.phone"), w.key
	case endpointsPath + "/{id}":
		return endpointsPath + "/" + w.hook(), w.key
	}
	w.t.Fatalf("%s can be deleted, and this test does not know how it is made", thing)
	return "", ""
}

// belongings are the ids of one project's things, by the beginning of the path
// that names them.
type belongings map[string]string

// belongings makes one of everything.
func (s *shop) belongings() belongings {
	s.t.Helper()
	session := s.session("")
	charge := s.ask("POST", "/v1/charges", s.key, good)
	hook := s.hook()
	event := s.ask("POST", endpointsPath+"/"+hook+"/ping", s.key, "").text("data.eventId")
	s.want(s.ask("POST", "/v1/test/phones", s.key, `{"phone":"+2348031234567"}`), http.StatusCreated, nil)
	return belongings{
		sessions: session, "/v1/charges/by-reference": charge.text("data.reference"), "/v1/charges": charge.text("data.id"),
		"/v1/test/cards":  s.ask("POST", sessions+"/"+session+"/pay/card", s.key, "").text("data.attemptId"),
		"/v1/test/ussd":   s.ask("POST", sessions+"/"+session+"/pay/ussd", s.key, "").text("data.paymentCode"),
		"/v1/test/phones": "+2348031234567", "/v1/projects": string(s.project.ID), refundsPath: "wsp_rfd_01m7y6vm2af084rza2669023pf",
		paymentsPath:    "wsp_pay_01m7y6vm2af084rza2669023pf",
		settlementsPath: "wsp_stl_01m7y6vm2af084rza2669023pf", "/v1/verification": "wsp_ver_01m7y6vm2af084rza2669023pf",
		endpointsPath: hook, eventsPath: event, "/docs/assets": "docs.css", "/docs/errors": "rate_limited",
	}
}

// with is a path with an id in place of its parameters, made out of our own.
func (b belongings) with(path string, id func(own string) string) string {
	best := ""
	for prefix := range b {
		if strings.HasPrefix(path, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ":") {
			parts[i] = id(b[best])
		}
	}
	return strings.Join(parts, "/")
}

func (b belongings) fill(path string) string {
	return b.with(path, func(own string) string { return own })
}

// sweepBody is a body that a route would take.
func sweepBody(r Route) string {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		return ""
	case strings.HasSuffix(r.Path, "/cards/:id/complete"):
		return `{"outcome":"approved"}`
	case strings.HasSuffix(r.Path, "/complete"):
		return `{"outcome":"success"}`
	case strings.HasSuffix(r.Path, "/messages"):
		return `{"text":"hi"}`
	default:
		return `{}`
	}
}

// Pretend phones and account numbers of one project are not another's to use.
func TestPhonesAndAccountsOfAnotherProjectDoNotExist(t *testing.T) {
	s := open(t)
	own := s.belongings()
	account := s.ask("POST", sessions+"/"+own[sessions]+"/pay/bank-transfer", s.key, "").text("data.accountNumber")
	_, _, stranger := s.merchant("Bola Stores")
	s.want(s.ask("GET", "/v1/test/phones", stranger, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	mine := s.ask("GET", "/v1/test/phones", s.key, "")
	s.want(mine, http.StatusOK, map[string]string{"data.items.0.phone": "+2348031234567"})
	if at := mine.text("data.items.0.createdAt"); at < "2020" {
		t.Errorf("the phone was made at %s", at)
	}
	for _, r := range []reply{
		s.ask("POST", "/v1/test/phones", stranger, `{"phone":"+2348031234567"}`),
		s.ask("POST", "/v1/test/bank/transfers", stranger, `{"accountNumber":"`+account+`"}`),
	} {
		s.want(r, http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	}
	s.want(s.ask("GET", sessions+"/"+own[sessions], s.key, ""), http.StatusOK, map[string]string{"data.status": "PENDING"})
	s.want(s.ask("DELETE", "/v1/test/phones/+2348031234567", s.key, ""), http.StatusOK, nil)
	s.want(s.ask("POST", "/v1/test/phones", stranger, `{"phone":"+2348031234567"}`), http.StatusCreated, nil)
}
