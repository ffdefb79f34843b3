package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"till/flow/await"
)

// How a receiver of webhooks behaves while Till is killed.
type moment string

const (
	beforeIt moment = "before it is delivered" // no connection is answered
	duringIt moment = "while it is delivered"  // each request is held for ever
	afterIt  moment = "after it is delivered"  // each is taken, and Till is killed with the first
)

// receiver counts what came of each session, once it takes anything.
type receiver struct {
	mu     sync.Mutex
	takes  bool
	how    moment
	asked  chan struct{}              // there was a request
	events map[string]map[string]bool // ids of charge.success by session
	times  int                        // that one was taken
}

// taken is how many requests were taken by now: the last of them may still be answered.
func (r *receiver) taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	how := r.how
	if r.takes || how == afterIt {
		var event struct {
			Data struct{ SessionID string }
		}
		if json.Unmarshal(body, &event) == nil {
			ids := r.events[event.Data.SessionID]
			if ids == nil {
				ids = map[string]bool{}
				r.events[event.Data.SessionID] = ids
			}
			ids[req.Header.Get("Webhook-Id")] = true
			r.times++
		}
		how = afterIt
	}
	r.mu.Unlock()
	select {
	case r.asked <- struct{}{}:
	default:
	}
	switch how {
	case beforeIt:
		panic(http.ErrAbortHandler)
	case duringIt:
		<-req.Context().Done()
	case afterIt:
	}
}

// take makes the receiver an ordinary one.
func (r *receiver) take() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = true
}

// told is how many of the sessions were told of, and fails for one that was by
// two different events.
func (r *receiver) told(t *testing.T, sessions []string) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, id := range sessions {
		if len(r.events[id]) > 1 {
			t.Fatalf("session %s was told of by %d events", id, len(r.events[id]))
		}
		n += len(r.events[id])
	}
	return n
}

// Till is killed before, while and after it delivers, with many on their way.
// Each payment is still told of, by one event.
func TestNoWebhookIsLostToAKill(t *testing.T) {
	m, p, dir := devServer(t)
	const many = 15
	for i, how := range []moment{beforeIt, duringIt, afterIt} {
		r := &receiver{how: how, asked: make(chan struct{}, 1), events: map[string]map[string]bool{}}
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		endpoint := m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": server.URL, "events": []string{"charge.success"}})
		var sessions, accounts []string
		for n := range many {
			id := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{
				"amount": 500_000, "customerEmail": "bola@example.com", "mode": "headless", "reference": fmt.Sprintf("hook-%d-%d", i, n),
			})["id"].(string)
			sessions = append(sessions, id)
			accounts = append(accounts, m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+id+"/pay/bank-transfer", object{})["accountNumber"].(string))
		}
		for _, account := range accounts {
			m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
		}
		<-r.asked
		p.Kill()
		r.take()
		p = start(t, dir, nil, "dev", "--http-addr", strings.TrimPrefix(m.base, "http://"))
		p.Line(`/phone$`)
		await.Until(t, fmt.Sprintf("every payment is told of though Till was killed %s", how), func() bool { return r.told(t, sessions) == many })
		t.Logf("killed %s: %d payments, %d requests taken", how, many, r.taken())
		m.call(http.MethodPatch, "/v1/webhook-endpoints/"+endpoint["id"].(string), object{"status": "DISABLED"})
	}
}
