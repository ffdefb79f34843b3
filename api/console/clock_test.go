package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/api"
	"till/flow"
	"till/flow/store"
)

// liveKey is a secret key of the live environment.
func (w *world) liveKey(m merchant) string {
	w.t.Helper()
	w.admit(m)
	k, text := w.newKey(m.project.ID, flow.Live, flow.SecretKey)
	must(w.t, w.people.Update(w.t.Context(), func(tx *store.Tx) error { return tx.AddKey(w.t.Context(), k) }))
	return text
}

// A key that works is found however many were made and revoked since.
func TestAKeyThatWorksIsFoundBehindAnyNumberThatDoNot(t *testing.T) {
	w := open(t)
	w.liveKey(w.ada)
	must(t, w.people.Update(t.Context(), func(tx *store.Tx) error {
		for n := range 120 {
			for _, env := range []flow.Environment{flow.Test, flow.Live} {
				for _, kind := range []flow.KeyKind{flow.SecretKey, flow.PublicKey} {
					k, _ := w.newKey(w.ada.project.ID, env, kind)
					k.ID, k.RevokedAt = fmt.Sprintf("key_%s_%s_%03d", env, kind, n), w.now()
					if err := tx.AddKey(t.Context(), k); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}))
	v := w.as(flow.RoleOwner)
	w.wants(v.get("/go-live"), http.StatusOK, "There is a live secret key")
	got := v.get("/developers/snippets")
	if w.wants(got, http.StatusOK, w.ada.secret[len(w.ada.secret)-4:]); strings.Contains(got.body, "There is no test secret key that works") {
		t.Error("the key of the test environment is not found")
	}
}

// tomorrow lets time pass until noon of the next day in Lagos, and is that day: none ends
// while somebody looks.
func (w *world) tomorrow() flow.Date {
	day := flow.DateOf(w.now()).Plus(1)
	w.pass(day.Start().Add(12 * time.Hour).Sub(w.now()))
	return day
}

// ahead opens a world in which the clock of test was moved by two days, and it is noon.
func ahead(t *testing.T) *world {
	t.Helper()
	w := open(t, func(c *api.Config) { c.Now = c.Services[flow.Test].Now })
	w.moved.Store(int64(48 * time.Hour))
	w.tomorrow()
	return w
}

// Whoever moves the clock of test moves nothing of live: there the console finds
// what was opened today, shows it as today's, and the API tells until when the old
// secret of an endpoint signs.
func TestLiveFollowsNoMovedClock(t *testing.T) {
	w := ahead(t)
	key := w.liveKey(w.ada)
	opened := w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions", key, `{"amount":500000,"customerEmail":"ada@example.com"}`)
	w.wants(opened, http.StatusCreated)
	made := w.ask(http.MethodPost, "/v1/webhook-endpoints", key, `{"url":"https://example.com/hook"}`)
	w.wants(made, http.StatusCreated)
	at := "/v1/webhook-endpoints/" + made.value("id")
	w.wants(w.ask(http.MethodPost, at+"/rotate-secret", key, `{}`), http.StatusOK)
	if got := w.ask(http.MethodGet, at, key, ""); strings.Contains(got.body, `"previousSecretExpiresAt":null`) {
		t.Errorf("the old secret signs, and the API denies it: %s", got.body)
	}
	tomorrow := w.now().In(time.FixedZone("Lagos", 3600)).AddDate(0, 0, 1).Format(time.DateOnly)
	w.wants(w.ask(http.MethodGet, "/v1/reconciliation?date="+tomorrow, key, ""), http.StatusBadRequest, "has not begun")

	v := w.as(flow.RoleOwner)
	v.get("/")
	w.wants(v.post("/choose", form("env", "live", "project", string(w.ada.project.ID))), http.StatusSeeOther)
	w.wants(v.get("/sessions?q=today"), http.StatusOK, opened.value("id"))
	if file := v.get("/sessions.csv?q=today"); !strings.Contains(file.body, opened.value("id")) {
		t.Errorf("the file of what was opened today is %s", file.body)
	}
	w.today(v, true)
	w.wants(v.get("/developers/webhooks/"+made.value("id")), http.StatusOK, "An older secret")
}

// Test goes by its own clock: what was opened before it was moved is not today's.
func TestTestFollowsItsMovedClock(t *testing.T) {
	w := ahead(t)
	w.opened(w.ada, "")
	v := w.as(flow.RoleOwner)
	w.today(v, true)
	w.moved.Add(int64(48 * time.Hour))
	w.today(v, false)
}

// today fails unless the one time on the page of sessions is shown as a time of today, or
// of another day where is says false.
func (w *world) today(v *visitor, is bool) {
	w.t.Helper()
	got := v.get("/sessions")
	w.wants(got, http.StatusOK)
	shown := regexp.MustCompile(`<time [^>]*>([^<]*)</time>`).FindStringSubmatch(got.body)
	if shown == nil || is != regexp.MustCompile(`^\d\d:\d\d:\d\d$`).MatchString(shown[1]) {
		w.t.Errorf("the page shows a time as %v; it is of today: %t", shown, is)
	}
}
