//go:build unix

package checkout_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hookDoors is how many addresses the receivers have: the product sends to one
// address only so much at once.
const hookDoors = 4

// hookPart is the environment's name for which part of the benchmark a process is.
const hookPart = "TILL_HOOKS_PART"

// BenchmarkHooksPart is another process of BenchmarkHooks.
func BenchmarkHooksPart(b *testing.B) {
	var err error
	switch os.Getenv(hookPart) {
	case "sink":
		err = receiveHooks(b.Context())
	case "till":
		err = settleUntilKilled(b)
	default:
		b.Skip("this is a part of BenchmarkHooks")
	}
	must(b, err)
}

// hookProcess starts this program once more, as a part. What it writes to its
// fourth file can be read.
func hookProcess(b *testing.B, part string) (cmd *exec.Cmd, in io.WriteCloser, out *os.File) {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	cmd = exec.CommandContext(context.WithoutCancel(b.Context()), self, "-test.run", "^$", "-test.bench", "^BenchmarkHooksPart$", "-test.benchtime", "1x")
	cmd.Env = append(os.Environ(), hookPart+"="+part)
	cmd.Stderr = os.Stderr
	if in, err = cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	must(b, err)
	defer theirs.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	must(b, cmd.Start())
	return cmd, in, out
}

// hookSink is the receivers' process.
type hookSink struct {
	Doors []string // http://127.0.0.1:…
	http  *http.Client
}

// hookCount is what the receivers have got since they were told to forget.
type hookCount struct {
	Different int // ids
	All       int // posts
}

// startSink starts the receivers.
func startSink(b *testing.B) *hookSink {
	b.Helper()
	cmd, in, out := hookProcess(b, "sink")
	s := &hookSink{http: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	b.Cleanup(func() {
		s.http.CloseIdleConnections()
		_ = in.Close() // which ends it
		_ = cmd.Wait()
		_ = out.Close()
	})
	must(b, json.NewDecoder(out).Decode(&s.Doors))
	return s
}

// hook is the address of a receiver, hang of one that never answers.
func (s *hookSink) hook(i int) string { return s.Doors[i%len(s.Doors)] + "/hook" }
func (s *hookSink) hang() string      { return s.Doors[0] + "/hang" }

// ask asks the receivers' process something about itself.
func (s *hookSink) ask(b *testing.B, path string, into any) {
	b.Helper()
	answer, err := s.http.Get(s.Doors[0] + path)
	must(b, err)
	must(b, errors.Join(json.NewDecoder(answer.Body).Decode(into), answer.Body.Close()))
}

func (s *hookSink) count(b *testing.B) (c hookCount) {
	b.Helper()
	s.ask(b, "/count", &c)
	return c
}

// ids are the ids that came, each with how often.
func (s *hookSink) ids(b *testing.B) (ids map[string]int) {
	b.Helper()
	s.ask(b, "/ids", &ids)
	return ids
}

func (s *hookSink) forget(b *testing.B) {
	b.Helper()
	s.ask(b, "/forget", new(hookCount))
}

// receiveHooks serves until its standard input ends.
func receiveHooks(ctx context.Context) error {
	var mu sync.Mutex
	ids := map[string]int{}
	all := 0
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		id := strings.Clone(r.Header.Get("Webhook-Id"))
		mu.Lock()
		defer mu.Unlock()
		ids[id]++
		all++
	})
	mux.HandleFunc("POST /hang", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answer(w, hookCount{len(ids), all})
	})
	mux.HandleFunc("GET /ids", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answer(w, ids)
	})
	mux.HandleFunc("GET /forget", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clear(ids)
		all = 0
		answer(w, hookCount{})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	var doors []string
	var wg sync.WaitGroup
	for range hookDoors {
		var lc net.ListenConfig
		ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		doors = append(doors, "http://"+ln.Addr().String())
		wg.Go(func() { _ = server.Serve(ln) })
	}
	out := os.NewFile(3, "out")
	defer out.Close()
	if err := json.NewEncoder(out).Encode(doors); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	err = errors.Join(err, server.Close())
	wg.Wait()
	return err
}

// bareHooks is the limit that no delivery can be faster than: a client of the
// standard library posts the same body, signed the same way, and keeps nothing.
type bareHooks struct {
	sink *hookSink
	body []byte
	http *http.Client
	made atomic.Int64
}

func newBareHooks(b *testing.B, sink *hookSink, body []byte) *bareHooks {
	b.Helper()
	h := &bareHooks{sink: sink, body: body, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}}}
	b.Cleanup(h.http.CloseIdleConnections)
	return h
}

// post makes one post.
func (h *bareHooks) post(ctx context.Context) error {
	n := h.made.Add(1)
	id, at := fmt.Sprintf("evt_bare%022d", n), strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(h.body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.sink.hook(int(n)), bytes.NewReader(h.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	answer, err := h.http.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the receiver said %s", answer.Status)
	}
	return err
}

// rate posts n times over so many connections.
func (h *bareHooks) rate(b *testing.B, conns, n int) (perSecond float64, took []time.Duration) {
	b.Helper()
	list := make([]time.Duration, n)
	spent := atOnce(b, conns, n, func(i int) error {
		began := time.Now()
		err := h.post(b.Context())
		list[i] = time.Since(began)
		return err
	})
	return float64(n) / spent.Seconds(), list
}

// atOnce does something n times, so many at once, and says how long that took.
func atOnce(b *testing.B, workers, n int, do func(i int) error) time.Duration {
	b.Helper()
	var next atomic.Int64
	var fault atomic.Value
	var wg sync.WaitGroup
	began := time.Now()
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					fault.Store(err)
					return
				}
			}
		})
	}
	wg.Wait()
	spent := time.Since(began)
	if err, ok := fault.Load().(error); ok {
		b.Fatal(err)
	}
	return spent
}
