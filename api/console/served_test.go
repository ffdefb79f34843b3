package console_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"till/api"
	"till/flow"
	"till/rail"
)

// What nobody offers is no error of ours on a page either: no alert is raised for who
// looks around where no bank is connected, and the log says what they were refused.
func TestAPageThatIsRefusedWhatNobodyOffersIsNoErrorOfOurs(t *testing.T) {
	var mu sync.Mutex
	counted := map[string]bool{} // by route, of those that were answered with a 503
	w := open(t, func(cfg *api.Config) {
		cfg.Answering = func() func(string, string, int, flow.Environment, bool) {
			return func(route, _ string, code int, _ flow.Environment, notServed bool) {
				mu.Lock()
				defer mu.Unlock()
				if code == http.StatusServiceUnavailable {
					counted[route] = notServed
				}
			}
		}
	})
	v := w.as(flow.RoleOwner)
	w.wants(v.post("/choose", form("project", string(w.ada.project.ID), "env", "live")), http.StatusSeeOther)
	w.wants(v.get("/go-live"), http.StatusOK)
	w.wants(v.post("/go-live/account", form("bank", "058", "number", "0000000001")), http.StatusServiceUnavailable, "No bank that verifies")
	mu.Lock()
	defer mu.Unlock()
	if !counted["/go-live/account"] {
		t.Errorf("counted as %v", counted)
	}
	for line := range strings.SplitSeq(w.log.String(), "\n") {
		if strings.Contains(line, `"route":"/go-live/account"`) && (!strings.Contains(line, `"level":"INFO"`) || !strings.Contains(line, `"code":"rail_unavailable"`)) {
			t.Errorf("the log says: %s", line)
		}
	}
}

// A bank that is down is not ours to mend, and what was typed is still there to be sent
// again.
func TestAPayeeCannotBeSetWhileTheBankIsDown(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	_, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: false})
	must(t, err)
	payee := form("bank", "058", "number", "0123456789")
	w.wants(v.post("/go-live/account", payee), http.StatusServiceUnavailable, `role="alert"`, "The bank cannot be asked right now", `value="0123456789"`)
	noted := false
	for line := range strings.SplitSeq(w.log.String(), "\n") {
		if strings.Contains(line, `"route":"/go-live/account"`) {
			noted = strings.Contains(line, `"code":"rail_unavailable"`) && strings.Contains(line, rail.ErrUnavailable.Error())
		}
	}
	if !noted {
		t.Errorf("the log does not say that the bank was down: %s", w.log.String())
	}
}
