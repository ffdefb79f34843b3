package crash

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// sink is a merchant's webhook receiver. It verifies what comes with the public
// library, and keeps each id in the journal before it answers.
type sink struct {
	w    *world
	hook *standardwebhooks.Webhook

	mu        sync.Mutex
	times     int                        // requests that were taken
	bodies    map[string]string          // by webhook-id
	successes map[string]map[string]bool // ids of charge.success by session
}

// newSink starts a receiver and registers it.
func newSink(w *world) *sink {
	w.tb.Helper()
	s := &sink{w: w, bodies: map[string]string{}, successes: map[string]map[string]bool{}}
	ready := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		<-ready
		s.take(rw, r)
	}))
	w.tb.Cleanup(server.Close)
	r, err := w.surely("endpoint", "/v1/webhook-endpoints", object{"url": server.URL})
	if err != nil || r.status >= 300 {
		w.tb.Fatalf("register an endpoint: %v %+v", err, r)
	}
	if s.hook, err = standardwebhooks.NewWebhook(r.text("secret")); err != nil {
		w.tb.Fatal(err)
	}
	close(ready)
	return s
}

func (s *sink) take(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever sent it died
	}
	if err := s.hook.Verify(body, r.Header); err != nil {
		s.w.wrong("webhook", "one cannot be verified: %v", err)
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	var event struct {
		Event string
		Data  struct{ SessionID string }
	}
	if err := json.Unmarshal(body, &event); err != nil {
		s.w.wrong("webhook", "one cannot be read: %v", err)
	}
	id := r.Header.Get("webhook-id")
	if err := s.w.journal.keep(entry{Kind: "hook", ID: id, Event: event.Event, Session: event.Data.SessionID}); err != nil {
		rw.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	if was, again := s.bodies[id]; again && was != string(body) {
		s.w.wrong("webhook", "%s came with two bodies", id)
	}
	s.bodies[id] = string(body)
	if event.Event == "charge.success" {
		if s.successes[event.Data.SessionID] == nil {
			s.successes[event.Data.SessionID] = map[string]bool{}
		}
		s.successes[event.Data.SessionID][id] = true
	}
}

// told is how many different events were told of a session's success.
func (s *sink) told(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.successes[session])
}

// taken is how many requests came and how many different events those were.
func (s *sink) taken() (times, different int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times, len(s.bodies)
}
