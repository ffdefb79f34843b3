package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"till/cmd/till/tilltest"
	"till/flow"
)

// payer plays a person with a phone, over the test API.
type payer struct {
	m     *merchant
	phone string
	after string
	all   []object
}

func newPayer(m *merchant) *payer {
	m.t.Helper()
	data := m.call(http.MethodPost, "/v1/test/phones", object{"pushName": "Bola"})
	return &payer{m: m, phone: url.PathEscape(data["phone"].(string))}
}

// says writes to the bot.
func (p *payer) says(text string) {
	p.m.t.Helper()
	p.m.eventually(http.MethodPost, "/v1/test/phones/"+p.phone+"/messages", object{"text": text})
}

// hears waits for a message of the bot that matches, after those heard before.
func (p *payer) hears(pattern string) []string {
	p.m.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.Now().Add(tilltest.Patience)
	for {
		for len(p.all) > 0 {
			one := p.all[0]
			p.all = p.all[1:]
			if one["fromMe"] == true {
				continue
			}
			if match := re.FindStringSubmatch(one["text"].(string)); match != nil {
				return match
			}
		}
		if time.Now().After(deadline) {
			p.m.t.Fatalf("the payer never heard %q; the chat was:\n%s", pattern, p.transcript())
		}
		path := fmt.Sprintf("/v1/test/phones/%s/messages?wait=2&after=%s", p.phone, url.QueryEscape(p.after))
		data := p.m.eventually(http.MethodGet, path, nil)
		p.all = items(data)
		if next, ok := data["nextCursor"].(string); ok {
			p.after = next
		}
	}
}

// transcript is the whole chat.
func (p *payer) transcript() string {
	var b strings.Builder
	for _, one := range items(p.m.eventually(http.MethodGet, "/v1/test/phones/"+p.phone+"/messages", nil)) {
		who := "<"
		if one["fromMe"] == true {
			who = ">"
		}
		fmt.Fprintf(&b, "%s %v [%v]\n", who, one["text"], one["status"])
	}
	return b.String()
}

// heardTimes counts the messages of the bot that match.
func (p *payer) heardTimes(pattern string) int {
	re := regexp.MustCompile(pattern)
	n := 0
	for _, one := range items(p.m.eventually(http.MethodGet, "/v1/test/phones/"+p.phone+"/messages", nil)) {
		if one["fromMe"] != true && re.MatchString(one["text"].(string)) {
			n++
		}
	}
	return n
}

// sink is a merchant's webhook receiver that verifies with the public library.
type sink struct {
	t      *testing.T
	server *httptest.Server
	secret chan string
	mu     sync.Mutex
	events map[string]object // by webhook-id
	bad    error
	came   chan object
}

// newSink starts a receiver and registers it.
func newSink(m *merchant) *sink {
	m.t.Helper()
	s := &sink{t: m.t, secret: make(chan string, 1), events: map[string]object{}, came: make(chan object, 100)}
	var hook *standardwebhooks.Webhook
	var once sync.Once
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			var err error
			if hook, err = standardwebhooks.NewWebhook(<-s.secret); err != nil {
				s.fail(err)
			}
		})
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = hook.Verify(body, r.Header)
		}
		if err != nil {
			s.fail(err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var event object
		if err := json.Unmarshal(body, &event); err != nil {
			s.fail(err)
		}
		if err := webhookConforms(body); err != nil {
			s.fail(err)
		}
		s.mu.Lock()
		_, again := s.events[r.Header.Get("webhook-id")]
		s.events[r.Header.Get("webhook-id")] = event
		s.mu.Unlock()
		if !again {
			s.came <- event
		}
	}))
	m.t.Cleanup(s.server.Close)
	data := m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": s.server.URL + "/hook"})
	s.secret <- data["secret"].(string)
	return s
}

func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = errors.Join(s.bad, err)
}

// success waits for the next charge.success.
func (s *sink) success() object {
	s.t.Helper()
	deadline := time.After(tilltest.Patience)
	for {
		select {
		case e := <-s.came:
			if e["event"] == string(flow.ChargeSuccess) {
				return e
			}
		case <-deadline:
			s.t.Fatalf("no charge.success came (%v)", s.bad)
		}
	}
}

// count is how many different events of a kind came.
func (s *sink) count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if e["event"] == kind {
			n++
		}
	}
	if s.bad != nil {
		s.t.Errorf("a webhook could not be verified: %v", s.bad)
	}
	return n
}
