package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// What is away is said to anybody in a line that tells nothing of the inside,
// and to the log whole, once for each change.
func TestReadyzTellsWhatIsAwayAndTheLogOnlyOfChanges(t *testing.T) {
	s := open(t)
	inside := errors.New("dial tcp 10.1.2.3:6379\nand once more")
	store, redis := Check{Name: "store", OK: true, Needed: true}, Check{Name: "redis", OK: true}
	noStore := Check{Name: "store", Needed: true, Reason: "It does not answer.", Err: inside}
	noRedis := Check{Name: "redis", Reason: "It does not answer. Nothing is lost.", Err: inside}
	for i, c := range []struct {
		checks []Check
		status int
		want   map[string]string
		logged string // the one line, "" for none
	}{
		{[]Check{store, redis}, http.StatusOK, map[string]string{"data.ready": "true", "data.state": "ready", "data.checks.1.ok": "true"}, ""},
		{[]Check{store, noRedis}, http.StatusOK, map[string]string{"data.ready": "true", "data.state": "degraded", "data.checks.1.reason": noRedis.Reason}, `"WARN","msg":"a part is away"`},
		{[]Check{store, noRedis}, http.StatusOK, map[string]string{"data.state": "degraded"}, ""},
		{[]Check{noStore, noRedis}, http.StatusServiceUnavailable, map[string]string{"error.code": "not_ready", "error.details.store": noStore.Reason, "error.details.redis": noRedis.Reason}, `"ERROR","msg":"a part is away"`},
		{[]Check{noStore, noRedis}, http.StatusServiceUnavailable, map[string]string{"error.code": "not_ready", "error.retryable": "true"}, ""},
		{[]Check{store, noRedis}, http.StatusOK, map[string]string{"data.state": "degraded"}, `"WARN","msg":"a part is back"`},
	} {
		s.checks = c.checks
		before := len(s.log.String())
		r := s.ask("GET", "/readyz", "", "")
		s.want(r, c.status, c.want)
		if strings.Contains(r.body, "10.1.2.3") {
			t.Errorf("step %d tells of the inside: %s", i, r.body)
		}
		var lines []string
		for line := range strings.Lines(s.log.String()[before:]) {
			if !strings.Contains(line, `"level":"DEBUG"`) {
				lines = append(lines, line)
			}
		}
		told := len(lines) == 1 && strings.Contains(lines[0], c.logged) && strings.Contains(lines[0], "10.1.2.3") == strings.Contains(lines[0], "away")
		if c.logged == "" && len(lines) > 0 || c.logged != "" && !told {
			t.Errorf("step %d logs %q, want %q", i, lines, c.logged)
		}
	}
}
