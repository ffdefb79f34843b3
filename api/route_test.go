package api

import (
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
