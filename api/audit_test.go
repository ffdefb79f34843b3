package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
)

// Whoever asks who redirected the payouts, who has a key, or where the webhooks
// went finds it in the audit log, also where no page of the console did it.
func TestWhatIsDoneToAnAccountOverRESTStandsInTheAuditLog(t *testing.T) {
	t.Parallel()
	s := openDesk(t)
	token := s.tokenFor(s.project)
	project := projectsPath + "/" + string(s.project.ID)
	made := s.ask("POST", keysOf(string(s.project.ID)), token, `{"environment":"test","kind":"secret"}`)
	s.want(made, http.StatusCreated, nil)
	key := made.text("data.id")
	next := s.ask("POST", keysOf(string(s.project.ID))+"/"+key+"/rotate", token, `{"expiresOldInHours":1}`)
	s.want(next, http.StatusCreated, nil)
	s.want(s.ask("DELETE", keysOf(string(s.project.ID))+"/"+key, token, ""), http.StatusOK, nil)
	s.want(s.ask("POST", projectsPath, token, `{"name":"Shop"}`), http.StatusCreated, nil)
	s.want(s.ask("PUT", project+"/settlement-account", token, `{"bankCode":"999","accountNumber":"0000000001"}`), http.StatusOK, nil)

	program := next.text("data.key")
	hook := s.ask("POST", endpointsPath, program, `{"url":"https://hooks.example.com/told-to-nobody"}`)
	s.want(hook, http.StatusCreated, nil)
	at := endpointsPath + "/" + hook.text("data.id")
	rotated := s.ask("POST", at+"/rotate-secret", program, "")
	s.want(rotated, http.StatusOK, nil)
	s.want(s.ask("PATCH", at, program, `{"url":"https://elsewhere.example.org/?q=told-to-nobody","status":"DISABLED"}`), http.StatusOK, nil)
	s.want(s.ask("DELETE", at, program, ""), http.StatusOK, nil)
	s.want(s.ask("DELETE", at, program, ""), http.StatusNotFound, nil)

	rows, err := s.accounts.Audit(t.Context(), store.AuditFilter{Account: s.project.Account, Limit: 100})
	must(t, err)
	owner, err := s.accounts.Account(t.Context(), s.project.Account)
	must(t, err)
	byKey := flow.HintKey(program) + " " + next.text("data.id")
	for _, want := range []struct{ action, actor, subject, tells string }{
		{"endpoint.delete", byKey, hook.text("data.id"), "elsewhere.example.org"},
		{"endpoint.change", byKey, hook.text("data.id"), "from hooks.example.com to elsewhere.example.org, disabled"},
		{"endpoint.rotate_secret", byKey, hook.text("data.id"), "hooks.example.com"},
		{"endpoint.add", byKey, string(s.project.ID), "hooks.example.com"},
		{"payee.set", owner.Email, string(s.project.ID), "account ending in 0001"},
		{"project.add", owner.Email, s.project.Account, "Shop"},
		{"key.revoke", owner.Email, key, ""},
		{"key.rotate", owner.Email, key, "1 more hours"},
		{"key.make", owner.Email, string(s.project.ID), "secret"},
	} {
		i := slices.IndexFunc(rows, func(a flow.Audited) bool { return a.Action == want.action })
		if i < 0 {
			t.Fatalf("nothing is kept of %s", want.action)
		}
		got := rows[i]
		if got.Actor != want.actor || got.Subject != want.subject || !strings.Contains(got.Reason, want.tells) {
			t.Errorf("kept of %s: %+v", want.action, got)
		}
		for _, secret := range []string{program, made.text("data.key"), hook.text("data.secret"), rotated.text("data.secret"), "told-to-nobody", "0000000001"} {
			if strings.Contains(got.Actor+got.Subject+got.Reason, secret) {
				t.Errorf("the audit log holds %q: %+v", secret, got)
			}
		}
		rows = slices.Delete(rows, i, i+1)
	}
	if len(rows) > 0 {
		t.Errorf("kept besides: %+v", rows)
	}
}

// What is refused after it was kept as done does not stand there as done alone.
func TestACallThatIsRefusedIsNotKeptAsDoneAlone(t *testing.T) {
	t.Parallel()
	s := openDesk(t)
	token := s.tokenFor(s.project)
	made := s.ask("POST", keysOf(string(s.project.ID)), token, `{"environment":"test","kind":"secret"}`)
	s.want(made, http.StatusCreated, nil)
	key := made.text("data.id")
	at := keysOf(string(s.project.ID)) + "/" + key
	s.want(s.ask("DELETE", at, token, ""), http.StatusOK, nil)
	s.want(s.ask("POST", at+"/rotate", token, `{"expiresOldInHours":1}`), http.StatusNotFound, nil)
	s.want(s.ask("PUT", projectsPath+"/"+string(s.project.ID)+"/settlement-account", token, `{"bankCode":"044","accountNumber":"0000000009"}`), http.StatusUnprocessableEntity, nil)
	rows, err := s.accounts.Audit(t.Context(), store.AuditFilter{Account: s.project.Account, Limit: 100})
	must(t, err)
	told := map[string]string{}
	for _, a := range rows {
		told[a.Action] = a.Actor + ": " + a.Reason
	}
	for _, act := range []string{"key.rotate", "payee.set"} {
		was, is := told[act], told[act+".refused"]
		who, _, _ := strings.Cut(was, ": ")
		if why, same := strings.CutPrefix(is, who+": "); was == "" || !same || why == "" {
			t.Errorf("kept of %s that is refused: %q and then %q", act, was, is)
		}
	}
}
