package console_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/api"
	"till/flow"
)

// Who sends forms faster than people do is told to wait: each would leave a line in the
// audit log. Nobody else waits for it.
func TestFormsOfOnePersonAreBounded(t *testing.T) {
	var passed atomic.Int64
	began := time.Now()
	limit := api.PerSecond(10) // of which a person has a tenth: 2 at once
	limits, err := api.NewLimiter(api.LimiterConfig{
		Test: limit, Live: limit, Address: api.PerSecond(3), Now: func() time.Time { return began.Add(time.Duration(passed.Load())) },
	})
	must(t, err)
	w := open(t, func(c *api.Config) { c.Limits = limits })
	_, text := w.obi()
	owner, obi := w.as(flow.RoleOwner), w.carrying(text)
	session := w.opened(w.ada, "")
	owner.get("/team")
	again := form("email", "obi@example.com", "role", "support") // has a login already
	for range 2 {
		w.wants(owner.post("/team", again), http.StatusBadRequest, "Somebody logs in with this e-mail address already")
	}
	list := w.audits("obi@example.com")
	kept := len(list) // each, and that it was refused, in any order where both were in one millisecond
	if !slices.ContainsFunc(list, func(is flow.Audited) bool {
		return is.Action == "person.add.refused" && strings.HasPrefix(is.Reason, "Somebody logs in with this e-mail address already")
	}) {
		t.Errorf("it is kept: %+v", list)
	}
	got := owner.post("/team", again)
	w.wants(got, http.StatusTooManyRequests, "Nothing was done: too many forms came at once. Wait a second, and send it again.")
	if wait := got.header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After is %q", wait)
	}
	w.wants(owner.post("/sessions/"+session+"/note", form("note", "she paid at the till")), http.StatusTooManyRequests)
	if n := len(w.audits("obi@example.com")); kept != 4 || n != kept {
		t.Errorf("%d lines stand in the audit log, then %d", kept, n)
	}
	w.wants(owner.get("/team"), http.StatusOK) // who only looks does not wait
	obi.get("/sessions/" + session)
	w.wants(obi.post("/sessions/"+session+"/note", form("note", "called her")), http.StatusSeeOther)
	passed.Add(int64(time.Second))
	w.wants(owner.post("/sessions/"+session+"/note", form("note", "she paid at the till")), http.StatusSeeOther)

	// Nobody's forms count against where they come from.
	stranger := w.visitor()
	stranger.get("/login")
	for range 6 {
		w.wants(stranger.post("/enter", form("role", "nobody")), http.StatusForbidden)
	}
	w.wants(stranger.post("/enter", form("role", "owner")), http.StatusTooManyRequests, "Wait a second")
	w.wants(stranger.post("/enter", form("role", "owner", "csrf", "x")), http.StatusForbidden) // another site cannot use it up
}
