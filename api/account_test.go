package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/benchtest"
)

func keysOf(p string) string { return projectsPath + "/" + p + "/keys" }

// newAPIKey makes a test key over the API.
func (s *shop) newAPIKey(token, project, kind string) (id, text string) {
	s.t.Helper()
	r := s.ask("POST", keysOf(project), token, `{"environment":"test","kind":"`+kind+`"}`)
	s.want(r, http.StatusCreated, map[string]string{"data.environment": "test", "data.kind": kind, "data.status": "active", "data.lastUsedAt": "", "data.expiresAt": ""})
	if r.header.Get("Cache-Control") != "no-store" {
		s.t.Error("an answer with a key may be kept by a cache")
	}
	return r.text("data.id"), r.text("data.key")
}

func TestProjectsAreMadeAndListed(t *testing.T) {
	s := open(t)
	token, first := s.desk("Ada Stores")
	other, _ := s.desk("Bola Stores")
	var made []string
	for _, name := range []string{"Shop", "Market"} {
		r := s.ask("POST", projectsPath, token, `{"name":"`+name+`"}`)
		s.want(r, http.StatusCreated, map[string]string{"data.name": name, "data.kycStatus": "NONE"})
		id := r.text("data.id")
		s.want(s.ask("GET", "/v1/project", r.text("data.keys.secretKey"), ""), http.StatusOK, map[string]string{"data.id": id})
		if public := r.text("data.keys.publicKey"); !strings.HasPrefix(public, "pk_test_") || r.text("data.keys.environment") != "test" {
			t.Errorf("its keys are %s", r.body)
		}
		if r.header.Get("Location") != projectsPath+"/"+id {
			t.Errorf("Location: %q", r.header.Get("Location"))
		}
		if got := s.ask("GET", r.header.Get("Location"), token, ""); got.text("data.name") != name {
			t.Errorf("read: %s", got.body)
		}
		made = append(made, id)
		s.pass(time.Millisecond) // ids are ordered by it
	}
	want := []string{made[1], made[0], string(first.ID)}
	var seen []string
	for cursor := ""; ; {
		r := s.ask("GET", projectsPath+"?limit=2&cursor="+cursor, token, "")
		s.want(r, http.StatusOK, nil)
		for _, part := range strings.Split(r.body, `"id":"`)[1:] {
			seen = append(seen, part[:strings.IndexByte(part, '"')])
		}
		if cursor = r.text("data.nextCursor"); cursor == "" {
			break
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("listed %v, want %v", seen, want)
	}
	if r := s.ask("GET", projectsPath, other, ""); strings.Contains(r.body, made[0]) {
		t.Errorf("another's projects: %s", r.body)
	}
	for body, code := range map[string]string{`{}`: "missing_field", `{"name":""}`: "invalid_field", `{"name":"a","kycStatus":"APPROVED"}`: "unknown_field", `{"name":5}`: "invalid_field"} {
		if r := s.ask("POST", projectsPath, token, body); r.status != http.StatusBadRequest || r.code() != code {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	for n := range flow.MaxProjects - 3 {
		s.want(s.ask("POST", projectsPath, token, fmt.Sprintf(`{"name":"n%d"}`, n)), http.StatusCreated, nil)
	}
	s.want(s.ask("POST", projectsPath, token, `{"name":"one more"}`), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
}

func TestKeysAreMadeShownOnceAndRevoked(t *testing.T) {
	s := open(t)
	token, p := s.desk("Ada Stores")
	id, secret := s.newAPIKey(token, string(p.ID), "secret")
	_, public := s.newAPIKey(token, string(p.ID), "public")
	if !strings.HasPrefix(secret, "sk_test_") || !strings.HasPrefix(public, "pk_test_") {
		t.Errorf("not keys: %q %q", secret, public)
	}
	s.want(s.ask("POST", sessions, secret, good), http.StatusCreated, nil)
	s.want(s.ask("POST", sessions, public, good), http.StatusForbidden, map[string]string{"error.code": "secret_key_required"})
	list := s.ask("GET", keysOf(string(p.ID)), token, "")
	s.want(list, http.StatusOK, map[string]string{"data.hasMore": "false"})
	if strings.Contains(list.body, secret) || strings.Contains(list.body, flow.HashKey(secret)) || strings.Contains(list.body, `"key":`) ||
		!strings.Contains(list.body, flow.HintKey(secret)) {
		t.Errorf("the list shows too much or too little: %s", list.body)
	}
	for body, code := range map[string]string{
		`{}`: "missing_field", `{"kind":"secret"}`: "missing_field", `{"environment":"test","kind":"root"}`: "invalid_field", `{"environment":"prod","kind":"secret"}`: "invalid_field",
	} {
		if r := s.ask("POST", keysOf(string(p.ID)), token, body); r.status != http.StatusBadRequest || r.code() != code {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	s.want(s.ask("GET", sessions, secret, ""), http.StatusOK, nil) // remembered by now
	s.want(s.ask("DELETE", keysOf(string(p.ID))+"/"+id, token, ""), http.StatusOK, map[string]string{"data.status": "revoked", "data.key": ""})
	s.want(s.ask("GET", sessions, secret, ""), http.StatusUnauthorized, map[string]string{"error.code": "revoked_api_key"})
	again := s.ask("DELETE", keysOf(string(p.ID))+"/"+id, token, "")
	s.want(again, http.StatusOK, map[string]string{"data.status": "revoked"})
	s.want(s.ask("POST", keysOf(string(p.ID))+"/"+id+"/rotate", token, ""), http.StatusNotFound, nil)
	for range flow.MaxKeys - 1 {
		s.newAPIKey(token, string(p.ID), "public")
	}
	s.want(s.ask("POST", keysOf(string(p.ID)), token, `{"environment":"test","kind":"public"}`), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
}

func TestARotatedKeyWorksOnForAWhile(t *testing.T) {
	s := open(t)
	token, p := s.desk("Ada Stores")
	id, old := s.newAPIKey(token, string(p.ID), "secret")
	rotate := func(id, body string) reply { return s.ask("POST", keysOf(string(p.ID))+"/"+id+"/rotate", token, body) }
	for _, body := range []string{`{"expiresOldInHours":-1}`, `{"expiresOldInHours":169}`, `{"expiresOldInHours":"24"}`, `{"expiresOldInHours":1.5}`, `{"expiresOldInHours":null}`} {
		s.want(rotate(id, body), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	}
	s.want(s.ask("GET", sessions, old, ""), http.StatusOK, nil)
	r := rotate(id, "")
	s.want(r, http.StatusCreated, map[string]string{"data.kind": "secret", "data.environment": "test", "data.replaces.id": id, "data.replaces.key": "", "data.replaces.status": "active"})
	if r.header.Get("Cache-Control") != "no-store" {
		t.Error("an answer with a key may be kept by a cache")
	}
	next := r.text("data.key")
	if at, err := time.Parse(time.RFC3339, r.text("data.replaces.expiresAt")); err != nil || at.Sub(s.now()).Round(time.Minute) != 24*time.Hour {
		t.Errorf("the old key expires at %q", r.text("data.replaces.expiresAt"))
	}
	s.pass(24*time.Hour - time.Minute)
	s.want(s.ask("GET", sessions, old, ""), http.StatusOK, nil)
	s.want(s.ask("GET", sessions, next, ""), http.StatusOK, nil)
	s.pass(time.Minute)
	s.want(s.ask("GET", sessions, old, ""), http.StatusUnauthorized, map[string]string{"error.code": "expired_api_key"})
	s.want(s.ask("GET", sessions, next, ""), http.StatusOK, nil)
	token = s.tokenFor(p) // the login ended with the day
	last := rotate(r.text("data.id"), `{"expiresOldInHours":0}`)
	s.want(last, http.StatusCreated, nil)
	s.want(s.ask("GET", sessions, next, ""), http.StatusUnauthorized, map[string]string{"error.code": "expired_api_key"})
	s.want(s.ask("GET", sessions, last.text("data.key"), ""), http.StatusOK, nil)
	s.want(rotate(r.text("data.id"), ""), http.StatusNotFound, nil)
}

// Keys are rotated and their users move over while everybody calls.
// TILL_FAULT_ROTATIONS is how often; without it, as often as two seconds let it, and
// forty times at most.
func TestRotationUnderLoadRefusesNobody(t *testing.T) {
	s := open(t)
	token, p := s.desk("Ada Stores")
	id, text := s.newAPIKey(token, string(p.ID), "secret")
	var current atomic.Value
	current.Store(text)
	stop := make(chan struct{})
	var calls, bad atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				key, _ := current.Load().(string)
				r := s.ask("GET", sessions+"?limit=1", key, "")
				calls.Add(1)
				if r.status != http.StatusOK && bad.Add(1) < 5 {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	var before []string
	rotations, times := 0, benchtest.Often(t, "TILL_FAULT_ROTATIONS", 40)
	for end := time.Now().Add(2 * time.Second); (times > 40 || time.Now().Before(end)) && rotations < times; rotations++ {
		r := s.ask("POST", keysOf(string(p.ID))+"/"+id+"/rotate", token, `{"expiresOldInHours":1}`)
		s.want(r, http.StatusCreated, nil)
		before = append(before, id)
		id = r.text("data.id")
		current.Store(r.text("data.key"))
		if past := len(before) - 40; past >= 0 { // a project has fifty keys at most; nobody uses that one any more
			s.want(s.ask("DELETE", keysOf(string(p.ID))+"/"+before[past], token, ""), http.StatusOK, nil)
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%d calls, %d rotations, %d refused", calls.Load(), rotations, bad.Load())

	// A revocation holds for every call that begins after it was answered.
	text, _ = current.Load().(string)
	var revoked atomic.Bool
	calls.Store(0)
	for range 16 {
		all.Go(func() {
			for range 60 {
				after := revoked.Load()
				r := s.ask("GET", sessions+"?limit=1", text, "")
				calls.Add(1)
				if after && r.code() != "revoked_api_key" || !after && r.status != http.StatusOK && r.code() != "revoked_api_key" {
					t.Errorf("revoked before: %v, yet %d %s", after, r.status, r.body)
					return
				}
			}
		})
	}
	await.Until(t, "some of them are in", func() bool { return calls.Load() >= 16 })
	s.want(s.ask("DELETE", keysOf(string(p.ID))+"/"+id, token, ""), http.StatusOK, nil)
	revoked.Store(true)
	all.Wait()
}

func TestTheLastUseOfAKeyIsWrittenDownLazily(t *testing.T) {
	s := open(t)
	s.runs(s.server.cfg.Accounts.Run)
	token, p := s.desk("Ada Stores")
	id, key := s.newAPIKey(token, string(p.ID), "secret")
	used := func() time.Time {
		k, err := s.accounts.Key(t.Context(), p.ID, id)
		must(t, err)
		return k.LastUsedAt
	}
	var first time.Time
	began := s.now()
	for first.IsZero() {
		s.want(s.ask("GET", sessions, key, ""), http.StatusOK, nil)
		if s.now().Sub(began) > 20*time.Second {
			t.Fatal("the use of a key is never written down")
		}
		first = used()
	}
	for range 30 {
		s.want(s.ask("GET", sessions, key, ""), http.StatusOK, nil)
	}
	s.pass(30 * time.Second)
	s.want(s.ask("GET", sessions, key, ""), http.StatusOK, nil)
	other, text := s.newAPIKey(token, string(p.ID), "secret")
	s.want(s.ask("GET", sessions, text, ""), http.StatusOK, nil)
	await.Until(t, "what was used then is written down", func() bool {
		k, err := s.accounts.Key(t.Context(), p.ID, other)
		return err == nil && !k.LastUsedAt.IsZero()
	})
	if at := used(); !at.Equal(first) {
		t.Errorf("written again within a minute: %v, then %v", first, at)
	}
	s.pass(31 * time.Second)
	s.want(s.ask("GET", sessions, key, ""), http.StatusOK, nil)
	await.Until(t, "a later use is written down", func() bool { return used().After(first) })
	if r := s.ask("GET", keysOf(string(p.ID)), token, ""); !strings.Contains(r.body, `"lastUsedAt":"`+flow.Stamp(used())+`"`) {
		t.Errorf("not shown: %s", r.body)
	}
}

func TestAnotherAccountsThingsDoNotExist(t *testing.T) {
	s := open(t)
	token, p := s.desk("Ada Stores")
	id, _ := s.newAPIKey(token, string(p.ID), "secret")
	other, mine := s.desk("Bola Stores")
	nobodys := "wsp_prj_01m7y6b2svb0wy2rg89w393p3j"
	for _, project := range []string{string(p.ID), nobodys, "1", "wsp_prj_", "%27", strings.ToUpper(string(p.ID))} {
		for _, c := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"GET", "/keys", ""},
			{"GET", "/kyc", ""},
			{"POST", "/kyc", "{}"},
			{"POST", "/keys", `{"environment":"test","kind":"secret"}`},
			{"POST", "/keys/" + id + "/rotate", ""},
			{"DELETE", "/keys/" + id, ""},
			{"POST", "/keys", "no JSON"},
		} {
			if r := s.ask(c.method, projectsPath+"/"+project+c.path, other, c.body); r.status != http.StatusNotFound || r.code() != "resource_not_found" {
				t.Errorf("%s %s%s: %d %s", c.method, project, c.path, r.status, r.body)
			}
		}
	}
	// Another's key, named under a project of one's own.
	for _, key := range []string{id, "wsp_key_01m7y6b2svb0wy2rg89w393p3j", "x"} {
		s.want(s.ask("DELETE", keysOf(string(mine.ID))+"/"+key, other, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
		s.want(s.ask("POST", keysOf(string(mine.ID))+"/"+key+"/rotate", other, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	}
	if k, err := s.accounts.Key(t.Context(), p.ID, id); err != nil || k.Status(s.now()) != flow.KeyActive || !k.ExpiresAt.IsZero() {
		t.Errorf("another touched the key: %+v %v", k, err)
	}
}

func TestLiveKeysFollowTheKYC(t *testing.T) {
	s := open(t)
	token, p := s.desk("Ada Stores")
	operator := s.second()
	kyc := projectsPath + "/" + string(p.ID) + "/kyc"
	live := func() reply {
		return s.ask("POST", keysOf(string(p.ID)), token, `{"environment":"live","kind":"secret"}`)
	}
	rule := func(r flow.Ruling) {
		t.Helper()
		if _, err := operator.RuleKYC(t.Context(), p.ID, r, "because"); err != nil {
			t.Fatal(err)
		}
	}
	s.want(s.ask("GET", kyc, token, ""), http.StatusOK, map[string]string{"data.status": "NONE", "data.reason": "", "data.details.legalName": ""})
	s.want(live(), http.StatusForbidden, map[string]string{"error.code": "kyc_required"})
	s.want(s.ask("POST", kyc, token, `{"legalName":"Ada Ltd","contactPhone":"08031234567","bvn":"1"}`), http.StatusBadRequest, map[string]string{"error.code": "unknown_field"})
	s.want(s.ask("POST", kyc, token, `{"legalName":"Ada Ltd","contactPhone":"08031234567"}`), http.StatusOK,
		map[string]string{"data.status": "SUBMITTED", "data.details.legalName": "Ada Ltd", "data.details.contactPhone": "+2348031234567"})
	s.want(s.ask("POST", kyc, token, ""), http.StatusConflict, map[string]string{"error.code": "kyc_not_submittable"})
	s.want(live(), http.StatusForbidden, map[string]string{"error.code": "kyc_required"})
	rule(flow.Reject)
	s.want(s.ask("GET", kyc, token, ""), http.StatusOK, map[string]string{"data.status": "REJECTED", "data.reason": "because"})
	s.want(live(), http.StatusForbidden, map[string]string{"error.code": "kyc_required"})
	s.want(s.ask("POST", kyc, token, ""), http.StatusOK, map[string]string{"data.status": "SUBMITTED"})
	rule(flow.Approve)
	s.want(s.ask("GET", projectsPath+"/"+string(p.ID), token, ""), http.StatusOK, map[string]string{"data.kycStatus": "APPROVED"})
	made := live()
	s.want(made, http.StatusCreated, map[string]string{"data.environment": "live"})
	secret := made.text("data.key")
	s.server.cfg.Services[flow.Live] = s.server.cfg.Services[flow.Test] // which of the two it is, is not the question
	s.want(s.ask("GET", sessions, secret, ""), http.StatusOK, nil)
	_, test := s.newAPIKey(token, string(p.ID), "secret")

	rule(flow.Suspend) // by another process: it holds once what is remembered is forgotten
	s.pass(time.Second)
	for _, c := range []struct{ method, path, body string }{{"GET", sessions, ""}, {"POST", sessions, good}, {"GET", "/v1/test/bank/calls", ""}, {"GET", "/v1/charges", ""}} {
		s.want(s.ask(c.method, c.path, secret, c.body), http.StatusForbidden, map[string]string{"error.code": "project_suspended"})
	}
	s.want(live(), http.StatusForbidden, map[string]string{"error.code": "project_suspended"})
	s.want(s.ask("POST", kyc, token, ""), http.StatusForbidden, map[string]string{"error.code": "project_suspended"})
	s.want(s.ask("POST", keysOf(string(p.ID))+"/"+made.text("data.id")+"/rotate", token, ""), http.StatusForbidden, map[string]string{"error.code": "project_suspended"})
	s.want(s.ask("GET", sessions, test, ""), http.StatusOK, nil)
	s.want(s.ask("DELETE", keysOf(string(p.ID))+"/"+made.text("data.id"), token, ""), http.StatusOK, nil)
	if _, err := operator.RuleKYC(t.Context(), p.ID, flow.Suspend, ""); err == nil {
		t.Error("suspended twice")
	}
}
