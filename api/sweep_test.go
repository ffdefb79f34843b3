package api

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"till/flow"
)

var update = flag.Bool("update", false, "write the golden tables anew")

// Every route, called by everybody who is not the owner of what it names: what
// each is answered stands in testdata/sweep.txt. Nobody ever gets a 2xx.
func TestGoldenSweepOfEveryRoute(t *testing.T) {
	s := open(t)
	own := s.belongings()
	_, strangersPublic, stranger := s.merchant("Bola Stores")
	revoked := s.newKey(flow.Test, flow.SecretKey)
	s.keep("Gone Stores", flow.Key{Environment: flow.Test, Kind: flow.SecretKey, Hash: flow.HashKey(revoked), Hint: "sk_…", RevokedAt: s.now()})
	live := s.newKey(flow.Live, flow.SecretKey)
	s.keep("Live Stores", flow.Key{Environment: flow.Live, Kind: flow.SecretKey, Hash: flow.HashKey(live), Hint: "sk_…"})
	callers := []struct{ name, key string }{
		{"no key", ""}, {"garbage", "sk_test_garbage"}, {"revoked", revoked}, {"other project", stranger}, {"other public", strangersPublic}, {"own public", s.public}, {"live", live},
	}
	var table strings.Builder
	for _, r := range Routes() {
		if r.Dev || r.Key == KeyNone || r.Key == KeyPublic {
			continue // of everybody
		}
		fmt.Fprintf(&table, "%s %s\n", r.Method, r.Path)
		for _, c := range callers {
			if c.key == stranger && !strings.Contains(r.Path, ":") {
				continue // what a stranger may do with what is theirs
			}
			got := s.ask(r.Method, own.fill(r.Path), c.key, sweepBody(r))
			fmt.Fprintf(&table, "  %-14s %d %s\n", c.name, got.status, got.code())
			if got.status < http.StatusBadRequest {
				t.Errorf("%s %s answers %s with %d %s", r.Method, r.Path, c.name, got.status, got.body)
			}
		}
		if !strings.Contains(r.Path, ":") || r.Key == KeyDashboard {
			continue
		}
		for _, id := range []struct {
			name string
			fill func(string) string
		}{{"unknown id", own.unknown}, {"malformed id", own.malformed}} {
			got := s.ask(r.Method, id.fill(r.Path), s.key, sweepBody(r))
			fmt.Fprintf(&table, "  %-14s %d %s\n", id.name, got.status, got.code())
			if got.status < http.StatusBadRequest {
				t.Errorf("%s %s answers for an %s with %d %s", r.Method, r.Path, id.name, got.status, got.body)
			}
		}
	}
	const file = "testdata/sweep.txt"
	want, err := os.ReadFile(file)
	if *update {
		if err := os.WriteFile(file, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil || string(want) != table.String() {
		t.Errorf("%s (%v) came out as:\n%s", file, err, table.String())
	}
}

// belongings are the ids of one project's things, by the beginning of the path
// that names them.
type belongings map[string]string

// belongings makes one of everything.
func (s *shop) belongings() belongings {
	s.t.Helper()
	session := s.session("")
	charge := s.ask("POST", "/v1/charges", s.key, good)
	s.want(s.ask("POST", "/v1/test/phones", s.key, `{"phone":"+2348031234567"}`), http.StatusCreated, nil)
	return belongings{
		sessions: session, "/v1/charges/by-reference": charge.text("data.reference"), "/v1/charges": charge.text("data.id"),
		"/v1/test/cards":  s.ask("POST", sessions+"/"+session+"/pay/card", s.key, "").text("data.attemptId"),
		"/v1/test/ussd":   s.ask("POST", sessions+"/"+session+"/pay/ussd", s.key, "").text("data.paymentCode"),
		"/v1/test/phones": "+2348031234567", "/v1/projects": string(s.project.ID), "/v1/verification": "wsp_ver_01m7y6vm2af084rza2669023pf",
		"/docs/assets": "docs.css", "/docs/errors": "rate_limited",
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

// unknown looks like an id of the same kind, and is nobody's.
func (b belongings) unknown(path string) string {
	return b.with(path, func(own string) string {
		last := own[len(own)-1]
		if last == '0' {
			return own[:len(own)-1] + "1"
		}
		return own[:len(own)-1] + "0"
	})
}

func (b belongings) malformed(path string) string {
	return b.with(path, func(string) string { return "%27%3B--" })
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
