package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow"
	"till/flow/await"
	"till/flow/store/storetest"
)

func TestMain(m *testing.M) {
	code := storetest.Around(m).Run()
	tilltest.Clean()
	os.Exit(code)
}

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// start runs a command of the program in a directory, quietly, without limits
// that many tests at once would meet.
func start(t *testing.T, dir string, env []string, args ...string) *tilltest.Process {
	t.Helper()
	return tilltest.Start(t, dir, append([]string{"TILL_LOG_LEVEL=warn", "TILL_RATE_LIMIT_TEST=100000", "TILL_METRICS_ADDR=off"}, env...), args...)
}

// merchant calls the API with a secret key.
type merchant struct {
	t    *testing.T
	base string
	key  string
}

// devServer starts till dev in a fresh directory and returns its merchant.
func devServer(t *testing.T) (*merchant, *tilltest.Process, string) {
	t.Helper()
	return devServerWith(t, nil)
}

// devServerWith is devServer with more settings.
func devServerWith(t *testing.T, env []string) (*merchant, *tilltest.Process, string) {
	t.Helper()
	dir := t.TempDir()
	addr := tilltest.FreePort(t)
	p := start(t, dir, env, "dev", "--http-addr", addr)
	p.Line(`^console     http`)
	key := p.Line(`^secret key  (sk_test_\w+)`)[1]
	p.Line(`/phone$|of that network`)
	m := &merchant{t: t, base: "http://" + addr, key: key}
	waitReady(m) // it greets before, where its number takes long
	return m, p, dir
}

// object is a JSON object.
type object = map[string]any

// try makes a call and returns the answer's status and body.
func (m *merchant) try(method, path string, body any) (int, object, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), tilltest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+m.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, nil, err
	}
	conforms(m.t, req, text, resp, answer)
	var out object
	if err := json.Unmarshal(answer, &out); err != nil {
		return resp.StatusCode, nil, err
	}
	return resp.StatusCode, out, nil
}

// call makes a call that must succeed and returns its data.
func (m *merchant) call(method, path string, body any) object {
	m.t.Helper()
	status, out, err := m.try(method, path, body)
	if err != nil || status >= 300 {
		m.t.Fatalf("%s %s: %d %v %v", method, path, status, out, err)
	}
	data, _ := out["data"].(object)
	return data
}

// eventually tries until it works; it is for a server that is being restarted.
func (m *merchant) eventually(method, path string, body any) object {
	m.t.Helper()
	var status int
	var out object
	var err error
	defer func() {
		if m.t.Failed() {
			m.t.Logf("%s %s: %d %v %v", method, path, status, out, err)
		}
	}()
	await.Until(m.t, method+" "+path+" works", func() bool {
		status, out, err = m.try(method, path, body)
		return err == nil && status < 300
	})
	data, _ := out["data"].(object)
	return data
}

// bankCalls are the calls the bank received for the merchant's sessions.
func (m *merchant) bankCalls(session string) []object {
	m.t.Helper()
	var list []object
	for _, one := range items(m.call(http.MethodGet, "/v1/test/bank/calls", nil)) {
		if one["sessionId"] == session {
			list = append(list, one)
		}
	}
	return list
}

func items(data object) []object {
	var list []object
	raw, _ := data["items"].([]any)
	for _, one := range raw {
		if o, ok := one.(object); ok {
			list = append(list, o)
		}
	}
	return list
}

// openChat creates a session in chat mode and returns its id and the text that
// its link writes. It asks again while no number is live, as any merchant does: a
// number that ran where a process was killed is called live for a moment, and is on
// its way when it is run anew.
func (m *merchant) openChat(amount int, reference string) (id, text string) {
	m.t.Helper()
	var data object
	m.until("a number takes new chats", func() bool {
		status, out, err := m.try(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{
			"amount": amount, "customerEmail": "bola@example.com", "mode": "chat", "reference": reference,
		})
		if refused, _ := out["error"].(object); refused["code"] == string(flow.CodeWhatsAppUnavailable) {
			return false
		}
		if err != nil || status != http.StatusCreated {
			m.t.Fatalf("a chat is not opened: %d %v %v", status, out, err)
		}
		data, _ = out["data"].(object)
		return true
	})
	link, err := url.Parse(data["checkoutUrl"].(string))
	must(m.t, err)
	return data["id"].(string), link.Query().Get("text")
}

// until waits for something to become so.
func (m *merchant) until(what string, so func() bool) {
	m.t.Helper()
	await.Until(m.t, what, so)
}
