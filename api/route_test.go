package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestEveryRouteStandsOnceAndAsksForTheRightKey(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Routes() {
		name := r.Method + " " + r.Path
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
		if r.do == nil {
			t.Errorf("%s does nothing", name)
		}
		switch {
		case strings.HasPrefix(r.Path, "/v1/test/") && r.Key != KeyTest:
			t.Errorf("%s pretends, but asks for %s", name, r.Key)
		case strings.HasPrefix(r.Path, "/phone/api/") && (r.Key != KeyPhone || !r.Dev):
			t.Errorf("%s is the page's own call, but asks for %s", name, r.Key)
		case r.Key == KeyPhone && !r.Dev, strings.HasPrefix(r.Path, "/phone") && !r.Dev:
			t.Errorf("%s is mounted outside development", name)
		case strings.HasPrefix(r.Path, "/v1/projects") != (r.Key == KeyDashboard) && r.Path != "/v1/auth/logout":
			t.Errorf("%s is about an account, but asks for %s", name, r.Key)
		case r.Key == KeyNone && strings.HasPrefix(r.Path, "/v1/") && r.Path != "/v1/auth/signup" && r.Path != "/v1/auth/login" && r.Path != "/v1/rails/:rail/notifications":
			t.Errorf("%s asks for no key", name)
		}
	}
}

// Whoever asks with a method that a path does not have, or that nobody has, is told
// those that it has.
func TestAMethodThatIsNotThereIsToldThoseThatAre(t *testing.T) {
	s := open(t)
	for path, want := range map[string]string{
		sessions: "GET, HEAD, POST", "/livez": "GET, HEAD", "/v1/refunds/wsp_rfd_1": "GET, HEAD", "/v1/verification/banks": "GET, HEAD, OPTIONS",
	} {
		for _, method := range []string{"DELETE", "TRACE", "QUERY", "get"} {
			r := s.ask(method, path, s.key, "")
			if allow := strings.Join(r.header.Values("Allow"), ", "); r.status != http.StatusMethodNotAllowed || allow != want {
				t.Errorf("%s %s: %d, Allow %q instead of %q", method, path, r.status, allow, want)
			}
			if said := r.text("error.message"); !strings.HasSuffix(said, "It answers to: "+want+".") {
				t.Errorf("%s %s: %q", method, path, said)
			}
		}
	}
	if r := s.ask("QUERY", "/v1/nothing", s.key, ""); r.status != http.StatusNotFound || r.header.Get("Allow") != "" {
		t.Errorf("a method of nobody's, at a path of nobody's: %d, Allow %q", r.status, r.header.Get("Allow"))
	}
}
