package api

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
)

func TestAPersonIsLookedUp(t *testing.T) {
	d := openDesk(t)
	d.listens()
	for _, c := range []struct {
		body, event string
		want        map[string]string
	}{
		{person("22222222221", ""), "identity.verified", map[string]string{
			"status": "MATCHED", "matches.firstName": "EXACT", "matches.lastName": "EXACT", "matches.dateOfBirth": "", "reason": "",
			"type": "bvn", "numberMasked": "*********21", "purpose": "Account opening", "livemode": "false",
		}},
		{person("22222222222", `,"dateOfBirth":"1990-04-21"`), "identity.failed", map[string]string{
			"status": "PARTIAL", "matches.firstName": "EXACT", "matches.lastName": "PARTIAL", "matches.dateOfBirth": "EXACT",
		}},
		{person("22222222223", `,"dateOfBirth":"1990-04-21"`), "identity.failed", map[string]string{
			"status": "NOT_MATCHED", "matches.firstName": "NONE", "matches.lastName": "NONE", "matches.dateOfBirth": "NONE", "reason": "",
		}},
		{strings.Replace(person("22345678901", ""), "bvn", "nin", 1), "identity.failed", map[string]string{
			"status": "NOT_MATCHED", "type": "nin", "reason": "number_not_found",
		}},
	} {
		r := d.call("POST", identitiesURL, d.key, c.body)
		id := r.text("data.id")
		d.want(r, http.StatusAccepted, map[string]string{"data.status": "PENDING", "data.matches.firstName": "", "data.completedAt": ""})
		if !isID(id, "wsp_ver_") || r.header.Get("Location") != identitiesURL+"/"+id {
			t.Errorf("%s, %v", id, r.header)
		}
		done, event := d.settled(id), d.event(id)
		d.want(event, 0, map[string]string{"event": c.event, "sequence": "0", "reference": id, "livemode": "false", "apiVersion": "v1", "data.id": id})
		for name, v := range c.want {
			if got := done.text("data." + name); got != v {
				t.Errorf("%s: %s is %q, not %q", c.body, name, got, v)
			}
			if got := event.text("data." + name); got != v {
				t.Errorf("webhook of %s: %s is %q, not %q", c.body, name, got, v)
			}
		}
		if done.text("data.completedAt") == "" {
			t.Errorf("nothing says when it ended: %s", done.body)
		}
	}
	list, err := d.db.LookUps(t.Context(), d.project.ID, time.Time{}, 100)
	if err != nil || len(list) != 4 {
		t.Fatalf("audit %v, %v", list, err)
	}
	for _, l := range list {
		if !isID(l.Key, flow.PrefixKey) || l.Purpose != "Account opening" || l.Mask[:9] != "*********" || l.At.IsZero() || l.EndedAt.Before(l.At) {
			t.Errorf("audit %+v", l)
		}
	}
}

func TestAPersonIsNotLookedUpOnABadRequest(t *testing.T) {
	d := openDesk(t)
	const ok = "22222222221"
	for what, c := range map[string]struct{ body, field, code string }{
		"no consent":        {strings.Replace(person(ok, ""), `,"consent":{"given":true,"purpose":"Account opening"}`, "", 1), "consent", "missing_field"},
		"consent refused":   {strings.Replace(person(ok, ""), "true", "false", 1), "consent.given", "invalid_field"},
		"consent in words":  {strings.Replace(person(ok, ""), "true", `"yes"`, 1), "consent.given", "invalid_field"},
		"consent not said":  {strings.Replace(person(ok, ""), `"given":true,`, "", 1), "consent.given", "missing_field"},
		"consent null":      {strings.Replace(person(ok, ""), "true", "null", 1), "consent.given", "invalid_field"},
		"consent a word":    {strings.Replace(person(ok, ""), `{"given":true,"purpose":"Account opening"}`, "true", 1), "consent", "invalid_field"},
		"a blank purpose":   {strings.Replace(person(ok, ""), "Account opening", "  ", 1), "consent.purpose", "invalid_field"},
		"a blank name":      {strings.Replace(person(ok, ""), `"Ada"`, `" "`, 1), "firstName", "invalid_field"},
		"no purpose":        {strings.Replace(person(ok, ""), `,"purpose":"Account opening"`, "", 1), "consent.purpose", "missing_field"},
		"empty purpose":     {strings.Replace(person(ok, ""), "Account opening", "", 1), "consent.purpose", "invalid_field"},
		"number as purpose": {strings.Replace(person(ok, ""), "Account opening", "for 222 222 222 21", 1), "consent.purpose", "invalid_field"},
		"more consent":      {strings.Replace(person(ok, ""), `"given"`, `"id":"c1","given"`, 1), "consent.id", "unknown_field"},
		"no type":           {strings.Replace(person(ok, ""), `"type":"bvn",`, "", 1), "type", "missing_field"},
		"another type":      {strings.Replace(person(ok, ""), "bvn", "BVN", 1), "type", "invalid_field"},
		"ten digits":        {person("2222222222", ""), "number", "invalid_field"},
		"twelve digits":     {person("222222222211", ""), "number", "invalid_field"},
		"an integer":        {strings.Replace(person(ok, ""), `"`+ok+`"`, ok, 1), "number", "invalid_field"},
		"a letter":          {person("2222222222O", ""), "number", "invalid_field"},
		"no number":         {strings.Replace(person(ok, ""), `"number":"`+ok+`",`, "", 1), "number", "missing_field"},
		"no first name":     {strings.Replace(person(ok, ""), `"Ada"`, `""`, 1), "firstName", "invalid_field"},
		"no last name":      {strings.Replace(person(ok, ""), `"lastName":"Obi",`, "", 1), "lastName", "missing_field"},
		"a turned name":     {strings.Replace(person(ok, ""), "Obi", `Obi\u202e`, 1), "lastName", "invalid_field"},
		"an isolated name":  {strings.Replace(person(ok, ""), "Obi", `Obi\u2067`, 1), "lastName", "invalid_field"},
		"a name of lines":   {strings.Replace(person(ok, ""), "Obi", `Obi\u2029Ada`, 1), "lastName", "invalid_field"},
		"not a day":         {person(ok, `,"dateOfBirth":"1990-02-30"`), "dateOfBirth", "invalid_field"},
		"another order":     {person(ok, `,"dateOfBirth":"21-04-1990"`), "dateOfBirth", "invalid_field"},
		"not born yet":      {person(ok, `,"dateOfBirth":"2990-04-21"`), "dateOfBirth", "invalid_field"},
		"a number as name":  {person(ok, `,"22345678901":1`), "[number]", "unknown_field"},
	} {
		r := d.call("POST", identitiesURL, d.key, c.body)
		if r.status != http.StatusBadRequest || !strings.Contains(r.body, `{"field":"`+c.field+`","code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
		if regexp.MustCompile(`2[0-9]{9}`).MatchString(r.body) {
			t.Errorf("%s: the refusal repeats the number: %s", what, r.body)
		}
	}
	if r := d.call("POST", identitiesURL, d.key, person(ok, ""), "Idempotency-Key", "for-"+ok); r.code() != "invalid_field" || r.text("error.fields.0.field") != "Idempotency-Key" || strings.Contains(r.body, ok) {
		t.Errorf("the number as Idempotency-Key: %s", r.body)
	}
	if r := d.call("POST", identitiesURL, d.key, `{"number":"`+ok); r.code() != "malformed_json" || strings.Contains(r.body, ok) {
		t.Errorf("half a body: %s", r.body)
	}
	for _, c := range []struct{ method, url string }{{"POST", identitiesURL}, {"GET", identitiesURL + "/wsp_ver_01m7y6b2svb0wy2rg89w393p3j"}} {
		if r := d.call(c.method, c.url, d.public, ""); r.code() != "secret_key_required" {
			t.Errorf("%s with a public key: %s", c.method, r.body)
		}
	}
	calls, err := d.wire.Calls(t.Context(), 0, 100)
	if err != nil || len(calls) != 0 {
		t.Errorf("somebody was looked up: %+v %v", calls, err)
	}
}

func TestALookUpIsMadeOnceForAKey(t *testing.T) {
	d := openDesk(t)
	first := d.call("POST", identitiesURL, d.key, person("22222222221", ""), "Idempotency-Key", "kyc-1")
	id := first.text("data.id")
	d.settled(id)
	again := d.call("POST", identitiesURL, d.key, person("22222222221", ""), "Idempotency-Key", "kyc-1")
	if again.status != http.StatusAccepted || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("again: %d %s %v", again.status, again.body, again.header)
	}
	d.want(d.call("POST", identitiesURL, d.key, person("22222222222", ""), "Idempotency-Key", "kyc-1"), http.StatusUnprocessableEntity,
		map[string]string{"error.code": "idempotency_key_reused"})
	if calls, err := d.wire.Calls(t.Context(), 0, 100); err != nil || len(calls) != 1 || calls[0].Reference != id {
		t.Errorf("calls %+v %v", calls, err)
	}
	if list, err := d.db.LookUps(t.Context(), d.project.ID, time.Time{}, 100); err != nil || len(list) != 1 {
		t.Errorf("audit %+v %v", list, err)
	}
}

func TestAnothersVerificationDoesNotExist(t *testing.T) {
	d := openDesk(t)
	id := d.call("POST", identitiesURL, d.key, person("22222222221", "")).text("data.id")
	_, _, other := d.merchant("Bola Stores")
	for _, c := range []struct{ key, id string }{{other, id}, {d.key, "wsp_ver_01m7y6b2svb0wy2rg89w393p3j"}, {d.key, "22222222221"}, {d.key, "wsp_sess_01m7y6b2svb0wy2rg89w393p3j"}} {
		r := d.call("GET", identitiesURL+"/"+c.id, c.key, "")
		d.want(r, http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
		if strings.Contains(r.body, c.id) {
			t.Errorf("the refusal repeats what was asked: %s", r.body)
		}
	}
	d.stop() // nothing writes to the log any more
	if strings.Contains(d.log.String(), "22222222221") {
		t.Error("a number out of a path is in the log")
	}
	live := d.newKey(flow.Live, flow.SecretKey)
	d.keep("Live", key(live, "live", 0, 0))
	if r := d.call("GET", identitiesURL+"/"+id, live, ""); r.status == http.StatusOK {
		t.Errorf("a live key reads a test verification: %s", r.body)
	}
}

// A bank that is away, slow or that refuses leaves a FAILED verification with
// the reason, and the merchant is told.
func TestALookUpThatTheBankDoesNotAnswerHasFailed(t *testing.T) {
	for conditions, c := range map[string]struct {
		patience time.Duration
		reason   string
	}{
		`{"up":false}`: {0, "rail_unavailable"}, `{"timeoutAfterCommit":true}`: {500 * time.Millisecond, "rail_timeout"}, `{"latencyMs":30000}`: {500 * time.Millisecond, "rail_timeout"},
	} {
		d, reason := openHastyDesk(t, c.patience), c.reason
		d.listens()
		d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, conditions), http.StatusOK, nil)
		id := d.call("POST", identitiesURL, d.key, person("22222222221", "")).text("data.id")
		d.want(d.settled(id), http.StatusOK, map[string]string{"data.status": "FAILED", "data.reason": reason, "data.matches.firstName": ""})
		d.want(d.event(id), 0, map[string]string{"event": "identity.failed", "data.status": "FAILED", "data.reason": reason})
	}
}

// What is at work when the process is told to end fails with a reason, and
// nothing is taken on any more.
func TestAShutdownEndsALookUp(t *testing.T) {
	d := openDesk(t)
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{"latencyMs":300}`), http.StatusOK, nil)
	id := d.call("POST", identitiesURL, d.key, person("22222222221", "")).text("data.id")
	d.stop() // waits for what takes no longer than its grace
	d.want(d.call("GET", identitiesURL+"/"+id, d.key, ""), http.StatusOK, map[string]string{"data.status": "MATCHED"})
	d.want(d.call("POST", identitiesURL, d.key, person("22222222221", "")), http.StatusServiceUnavailable, map[string]string{"error.code": "storage_unavailable"})
}

// Nobody reads a look-up after the time that it says, also where it was not forgotten yet.
func TestALookUpIsReadUntilItExpires(t *testing.T) {
	d := openDesk(t)
	id := d.call("POST", identitiesURL, d.key, person("22222222221", "")).text("data.id")
	d.settled(id)
	d.stop() // nothing is forgotten any more
	for _, c := range []struct {
		move   string
		status int
	}{{`{"advanceSeconds":7775940}`, http.StatusOK}, {`{"advanceSeconds":61}`, http.StatusNotFound}} { // 90 days but for a minute, and that
		d.want(d.call("POST", "/v1/test/clock", d.key, c.move), http.StatusOK, nil)
		d.want(d.call("GET", identitiesURL+"/"+id, d.key, ""), c.status, nil)
	}
}

// What a process left behind when it died fails at the next start, once.
func TestWhatACrashLeftFailsAtTheNextStart(t *testing.T) {
	d := openDesk(t)
	d.listens()
	d.stop()
	now := d.now()
	left := flow.Verification{
		ID: "wsp_ver_01m7y6b2svb0wy2rg89w393p3j", Project: d.project.ID, Key: "wsp_key_1", Type: flow.BVN, Fingerprint: strings.Repeat("0", 64),
		Mask: "*********21", Purpose: "Account opening", Status: flow.VerificationPending, CreatedAt: now, DueAt: now.Add(flow.VerificationLasts),
	}
	must(t, d.db.Update(t.Context(), func(tx *store.Tx) error { return tx.AddVerification(t.Context(), left) }))
	for range 2 {
		d.runs(d.verify.Run)
		d.want(d.settled(string(left.ID)), http.StatusOK, map[string]string{"data.status": "FAILED", "data.reason": "interrupted"})
	}
	d.want(d.event(string(left.ID)), 0, map[string]string{"event": "identity.failed"})
	if list, err := d.db.LookUps(t.Context(), d.project.ID, time.Time{}, 100); err != nil || len(list) != 1 || list[0].Reason != "interrupted" {
		t.Errorf("audit %+v %v", list, err)
	}
}

// Where other processes share the database, a look-up of one that died fails
// when its time is over; until then it may be at work.
func TestAnOverdueLookUpFails(t *testing.T) {
	d := openDesk(t)
	d.settled(d.call("POST", identitiesURL, d.key, person("22222222221", "")).text("data.id")) // what a start ends is ended
	now := d.now()
	left := flow.Verification{
		ID: "wsp_ver_01m7y6b2svb0wy2rg89w393p3j", Project: d.project.ID, Key: "wsp_key_1", Type: flow.BVN, Fingerprint: strings.Repeat("0", 64),
		Mask: "*********21", Purpose: "Account opening", Status: flow.VerificationPending, CreatedAt: now, DueAt: now.Add(flow.VerificationLasts),
	}
	add := func(v flow.Verification) {
		t.Helper()
		must(t, d.db.Update(t.Context(), func(tx *store.Tx) error { return tx.AddVerification(t.Context(), v) }))
	}
	add(left)
	for _, id := range []flow.VerificationID{"wsp_ver_01m7y6b2svb0wy2rg89w393p3k", "wsp_ver_01m7y6b2svb0wy2rg89w393p3m"} {
		swept := left
		swept.ID, swept.DueAt = id, now
		add(swept) // is taken by one sweep, and the second by a later one: that one saw what is left, too
		d.want(d.settled(string(id)), http.StatusOK, map[string]string{"data.status": "FAILED", "data.reason": "interrupted"})
	}
	d.want(d.call("GET", identitiesURL+"/"+string(left.ID), d.key, ""), http.StatusOK, map[string]string{"data.status": "PENDING"})
	d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":61}`), http.StatusOK, nil)
	d.want(d.settled(string(left.ID)), http.StatusOK, map[string]string{"data.status": "FAILED", "data.reason": "interrupted"})
	d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":7862400}`), http.StatusOK, nil) // 91 days
	await.Until(t, "it is forgotten", func() bool {
		return d.call("GET", identitiesURL+"/"+string(left.ID), d.key, "").status == http.StatusNotFound
	})
}

// Neither a server without look-ups nor a bank that offers none takes one on,
// and nobody's look-up does not exist there either.
func TestAnEnvironmentWithoutAVerifierSaysSo(t *testing.T) {
	s, d := open(t), openDesk(t) // the bank on paper verifies nothing
	without, _ := d.openEnvironment(flow.Live, d.bank)
	for url, body := range map[string]string{resolveURL: `{"accountNumber":"0000000001","bankCode":"058"}`, identitiesURL: person("22222222221", "")} {
		for _, r := range []reply{s.ask("POST", url, s.key, body), d.call("POST", url, without, body)} {
			s.want(r, http.StatusServiceUnavailable, map[string]string{"error.code": "rail_unavailable", "error.type": "rail"})
		}
	}
	for _, id := range []string{"wsp_ver_01m7y6vm2af084rza2669023pf", "1"} {
		for _, r := range []reply{s.ask("GET", identitiesURL+"/"+id, s.key, ""), d.call("GET", identitiesURL+"/"+id, without, "")} {
			s.want(r, http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
		}
	}
}
