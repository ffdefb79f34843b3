package api

import (
	"net/http"
	"strings"
	"testing"
)

// A parameter that no call knows is refused by its name, on every call of the
// document: a filter that is misspelt and passed over looks as if it had worked.
func TestNoCallPassesOverAParameterOfTheQuery(t *testing.T) {
	s := open(t)
	own := s.belongings()
	token := s.tokenFor(s.project)
	keys := map[KeyKind]string{KeyPublic: s.public, KeySecret: s.key, KeySession: s.key, KeyTest: s.key, KeyDashboard: token}
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
	// Who has no key is not told what a call takes.
	s.want(s.ask("GET", "/v1/charges?colour=red", "", ""), http.StatusUnauthorized, nil)
}
