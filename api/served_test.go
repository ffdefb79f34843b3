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
	logged := func(level string) (lines int) {
		for line := range strings.SplitSeq(s.log.String(), "\n") {
			if strings.Contains(line, `"status":503`) && strings.Contains(line, `"level":"`+level+`"`) {
				lines++
			}
		}
		return lines
	}
	s.bank.mu.Lock()
	s.bank.state.Up = false
	s.bank.mu.Unlock()
	pay()
	if counted[http.StatusServiceUnavailable] || logged("ERROR") != 1 {
		t.Errorf("with a bank that does not answer: counted %v\n%s", counted, s.log)
	}

	closed := s.parts
	closed.Rail = rail.Closed{}
	service, err := checkout.New(closed)
	must(t, err)
	s.server.cfg.Services[flow.Test] = service
	id = s.session("")
	pay()
	if !counted[http.StatusServiceUnavailable] || logged("INFO") != 1 {
		t.Errorf("without a bank: counted %v\n%s", counted, s.log)
	}

	clear(counted)
	closed.Number = nil // as in live, whose payers no number of ours hears
	service, err = checkout.New(closed)
	must(t, err)
	s.server.cfg.Services[flow.Test] = service
	s.want(s.ask("POST", sessions, s.key, `{"amount":500000,"customerEmail":"ada@example.com","mode":"chat"}`), http.StatusServiceUnavailable,
		map[string]string{"error.code": "whatsapp_unavailable"})
	if !counted[http.StatusServiceUnavailable] || logged("ERROR") != 1 {
		t.Errorf("a chat without numbers: counted %v\n%s", counted, s.log)
	}
}
