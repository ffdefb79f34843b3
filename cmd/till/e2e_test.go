package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"till/flow"
	"till/flow/await"
	"till/flow/store/storetest"
)

// patience is how long anything in these tests may take on a busy machine.
const patience = 30 * time.Second

// program is the binary under test: TILL_BIN, or built once for this run.
var program = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // one build for all tests
	if bin := os.Getenv("TILL_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	dir, err := os.MkdirTemp("", "till-e2e-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "till")
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := storetest.Around(m).Run()
	if bin, err := program(); err == nil && os.Getenv("TILL_BIN") == "" {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// process is one running till.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	dead  chan struct{}
	mu    sync.Mutex
	seen  bytes.Buffer
}

// start runs a command of the program in a directory of its own.
func start(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(bin, args...), lines: make(chan string, 1000), dead: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(append(os.Environ(), "TILL_LOG_LEVEL=warn", "TILL_RATE_LIMIT_TEST=100000", "TILL_METRICS_ADDR=off"), env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = &locked{p: p}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			_, _ = (&locked{p: p}).Write(append(scan.Bytes(), '\n'))
			select {
			case p.lines <- scan.Text():
			default:
			}
		}
		_ = p.cmd.Wait()
		close(p.dead)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("till %s said:\n%s", strings.Join(args, " "), p.said())
		}
	})
	return p
}

type locked struct{ p *process }

// Write keeps what a process says.
func (l *locked) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.seen.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.dead
}

// line waits for a line of stdout that matches.
func (p *process) line(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		select {
		case l := <-p.lines:
			if m := re.FindStringSubmatch(l); m != nil {
				return m
			}
		case <-p.dead:
			p.t.Fatalf("the process ended before it said %q:\n%s", pattern, p.said())
		case <-deadline:
			p.t.Fatalf("the process never said %q:\n%s", pattern, p.said())
		}
	}
}

// freePort is an address of this machine that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// merchant calls the API with a secret key.
type merchant struct {
	t    *testing.T
	base string
	key  string
}

// devServer starts till dev in a fresh directory and returns its merchant.
func devServer(t *testing.T) (*merchant, *process, string) {
	t.Helper()
	return devServerWith(t, nil)
}

// devServerWith is devServer with more settings.
func devServerWith(t *testing.T, env []string) (*merchant, *process, string) {
	t.Helper()
	dir := t.TempDir()
	addr := freePort(t)
	p := start(t, dir, env, "dev", "--http-addr", addr)
	key := p.line(`^secret key  (sk_test_\w+)`)[1]
	p.line(`/phone$|of that network`)
	return &merchant{t: t, base: "http://" + addr, key: key}, p, dir
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
	deadline := time.Now().Add(patience)
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
	deadline := time.After(patience)
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

// openChat creates a session in chat mode and returns its id and the text that
// its link writes.
func (m *merchant) openChat(amount int, reference string) (id, text string) {
	m.t.Helper()
	data := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{
		"amount": amount, "customerEmail": "bola@example.com", "mode": "chat", "reference": reference,
	})
	link, err := url.Parse(data["checkoutUrl"].(string))
	if err != nil {
		m.t.Fatal(err)
	}
	return data["id"].(string), link.Query().Get("text")
}

// until waits for something to become so.
func (m *merchant) until(what string, so func() bool) {
	m.t.Helper()
	await.Until(m.t, what, so)
}
