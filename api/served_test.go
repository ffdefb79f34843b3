package api

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// What nobody offers is refused as it is meant to be: it is counted apart from what
// fails, and no line of the log calls it an error.
func TestWhatIsNotOfferedIsNoErrorOfOurs(t *testing.T) {
	s := open(t)
	var mu sync.Mutex
	counted := map[int]bool{}
	s.server.cfg.Answering = func() func(string, string, int, flow.Environment, bool) {
		return func(_, _ string, code int, _ flow.Environment, notServed bool) {
			mu.Lock()
			defer mu.Unlock()
			counted[code] = notServed
		}
	}
	id := s.session("")
	pay := func() {
		t.Helper()
		s.want(s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, "{}"), http.StatusServiceUnavailable, map[string]string{"error.code": "rail_unavailable"})
	}
	logged := func(level string) bool {
		for line := range strings.SplitSeq(s.log.String(), "\n") {
			if strings.Contains(line, `"status":503`) && strings.Contains(line, `"level":"`+level+`"`) {
				return true
			}
		}
		return false
	}
	s.bank.mu.Lock()
	s.bank.state.Up = false
	s.bank.mu.Unlock()
	pay()
	if counted[http.StatusServiceUnavailable] || !logged("ERROR") {
		t.Errorf("with a bank that does not answer: counted %v\n%s", counted, s.log)
	}

	closed := s.parts
	closed.Rail = rail.Closed{}
	service, err := checkout.New(closed)
	must(t, err)
	s.server.cfg.Services[flow.Test] = service
	id = s.session("")
	pay()
	if !counted[http.StatusServiceUnavailable] || !logged("INFO") {
		t.Errorf("without a bank: counted %v\n%s", counted, s.log)
	}
}
