package main

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/redistest"
	"till/flow/store"
	"till/flow/store/storetest"
)

// way is a method as a payer chooses and pays it.
type way struct {
	name, digit string
	pay         func(t *testing.T, m *merchant, p talker, session string)
}

func ways() []way {
	return []way{{"bank transfer", "1", payByTransfer}, {"USSD", "2", payByUSSD}, {"card", "3", payByCard}}
}

// talker is a payer, whatever their phone is made of.
type talker interface {
	says(text string)
	hears(pattern string) []string
}

// A payer pays by each method, over the encrypted network, and everybody hears
// of it once: the payer by receipt, the merchant by webhook, support by replay.
func TestAPayerPaysByEachMethod(t *testing.T) {
	m, _, dir := devServer(t)
	s := newSink(m)
	for _, way := range ways() {
		t.Run(way.name, func(t *testing.T) {
			m := &merchant{t: t, base: m.base, key: m.key}
			s.t = t
			payThroughTheChat(t, m, newPayer(m), s, dir, way)
		})
	}
	if n := s.count("charge.success"); n != len(ways()) {
		t.Errorf("%d charge.success events for %d payments", n, len(ways()))
	}
}

// The same on PostgreSQL and a real Redis.
func TestAPayerPaysOnPostgreSQLAndRedis(t *testing.T) {
	redis := redistest.Start(t)
	url := storetest.EmptyPostgres(t, store.Checkout).URL
	m, _, _ := devServerWith(t, []string{"TILL_DATABASE_URL=" + url, "TILL_REDIS_URL=" + redis.URL})
	s := newSink(m)
	for _, way := range ways() {
		t.Run(way.name, func(t *testing.T) {
			m := &merchant{t: t, base: m.base, key: m.key}
			s.t = t
			payThroughTheChat(t, m, newPayer(m), s, "", way)
		})
	}
}

// payThroughTheChat goes the whole way of one payment by public doors.
func payThroughTheChat(t *testing.T, m *merchant, p talker, s *sink, dir string, way way) {
	t.Helper()
	session, text := m.openChat(500_000, "order-"+way.digit)
	if calls := m.bankCalls(session); len(calls) != 0 {
		t.Fatalf("creating a session called the bank: %v", calls)
	}
	p.says(text)
	p.hears(`Ada Stores(?s:.*)₦5,000(?s:.*)1 Bank transfer`)
	if calls := m.bankCalls(session); len(calls) != 0 {
		t.Fatalf("showing the menu called the bank: %v", calls)
	}
	p.says(way.digit)
	way.pay(t, m, p, session)
	p.hears(`(?i)receipt(?s:.*)₦5,000(?s:.*)order-` + way.digit)
	event := s.success()
	if event["reference"] != "order-"+way.digit {
		t.Errorf("the webhook's reference is %v", event["reference"])
	}
	data := m.call(http.MethodGet, "/v1/whatsapp/checkout/sessions/"+session, nil)
	if data["status"] != "PAID" || data["amountPaidMinor"] != "500000" {
		t.Errorf("the session is %v with %v paid", data["status"], data["amountPaidMinor"])
	}
	if dir == "" {
		return
	}
	m.until("the replay tells it all", func() bool {
		story := replayed(t, dir, session)
		for _, want := range []string{text, "charge.success", "answered 200", "bank", "receipt", "merchant_pending"} {
			if !strings.Contains(story, want) {
				return false
			}
		}
		return true
	})
}

func payByTransfer(t *testing.T, m *merchant, p talker, _ string) {
	t.Helper()
	account := p.hears(`^\d{10}$`)[0]
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
}

func payByUSSD(t *testing.T, m *merchant, p talker, session string) {
	t.Helper()
	p.hears(`(?m)^11 `)
	if calls := m.bankCalls(session); len(calls) != 0 {
		t.Fatalf("choosing USSD called the bank before a bank was chosen: %v", calls)
	}
	p.says("11")
	code := p.hears(`^\*\d+\*000\*(\d+)#$`)[1]
	m.call(http.MethodPost, "/v1/test/ussd/"+code+"/complete", object{"outcome": "success"})
}

// payByCard pays on the bank's own page, as a browser would.
func payByCard(t *testing.T, _ *merchant, p talker, _ string) {
	t.Helper()
	link := p.hears(`^http://127\.0\.0\.1:\d+/card/\S+$`)[0]
	page := get(t, link)
	form := regexp.MustCompile(`<form[^>]*action="([^"]*)"`).FindStringSubmatch(page)
	approve := regexp.MustCompile(`<button[^>]*name="([^"]*)" value="([^"]*)">Approve`).FindStringSubmatch(page)
	if form == nil || approve == nil {
		t.Fatalf("the card page has nothing to approve:\n%s", page)
	}
	base, err := url.Parse(link)
	must(t, err)
	action, err := base.Parse(form[1])
	must(t, err)
	resp, err := http.PostForm(action.String(), url.Values{approve[1]: {approve[2]}})
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("approving on the card page answered %s", resp.Status)
	}
}

func get(t *testing.T, link string) string {
	t.Helper()
	resp, err := http.Get(link)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %v", link, resp.Status, err)
	}
	return string(body)
}

// replayed is what till replay tells of a session.
func replayed(t *testing.T, dir, session string) string {
	t.Helper()
	bin := tilltest.Program(t)
	cmd := exec.Command(bin, "replay", session)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("till replay: %v\n%s", err, errs.String())
	}
	return out.String()
}
