package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

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
