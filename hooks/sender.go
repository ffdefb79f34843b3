package hooks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The bounds of one delivery. An endpoint that stays inside them costs a worker
// 15 s at most, however slow or large its answer.
const (
	sendTimeout    = 15 * time.Second // for everything
	connectTimeout = 5 * time.Second  // to resolve and connect; the same again for TLS
	drainTimeout   = 2 * time.Second  // for the body of an answer, once its header is here

	maxBody      = 256 << 10   // that is sent
	maxHeader    = 64 << 10    // of an answer
	maxAnswer    = 64 << 10    // of an answer's body that is read, so that its connection serves again
	headAnswer   = 4<<10 + 256 // of it that is returned: what is kept, and what shows whether a number is cut there
	idleConns    = 512         // in all
	idlePerHost  = 32          // as many as one endpoint is sent at a time
	idleTimeout  = 60 * time.Second
	tlsSessions  = 512 // resumed instead of negotiated anew: ten times cheaper
	maxDateField = 64  // of a Retry-After header
)

// userAgent names us to those who read their access logs.
const userAgent = "Till-Webhooks/1"

// Config is what a Sender is made of. Now is required, the rest has a default.
type Config struct {
	AllowLoopback bool             // for tests: this machine may be called, also by plain http
	Now           func() time.Time // reads durations and the dates endpoints answer with
	Resolver      *net.Resolver    // nil: the system's
	// Transport carries deliveries in place of the network; what it does with an
	// address is judged by nobody. Nil dials, and every address is judged.
	Transport http.RoundTripper
	RootCAs   *x509.CertPool // nil: the system's

	Timeout        time.Duration // 0: 15 s, for everything
	ConnectTimeout time.Duration // 0: 5 s, to connect, and the same again for TLS
	DrainTimeout   time.Duration // 0: 2 s, for the body of an answer
}

// Request is one delivery to make.
type Request struct {
	URL     string
	ID      string    // of the event: the same each time, so that receivers can tell a repeat
	Body    []byte    // the same each time, to the byte
	Secrets []string  // whsec_… or whsk_…, each signs
	At      time.Time // of this attempt

	Traceparent, Tracestate string // W3C Trace Context, "" for none
}

// Verdict is what became of one delivery. Only OK is a success.
type Verdict struct {
	OK         bool
	Status     int           // of the answer, 0 where there was none
	Err        string        // one of the Word constants, empty where OK
	Body       []byte        // of the answer, its beginning: a little more than the 4 KiB that are kept
	Duration   time.Duration // until the verdict
	RetryAfter time.Duration // that the endpoint asked for, at most a day
	Gone       bool          // the endpoint said 410: never again
	Ours       bool          // it failed through a fault of our own, and nothing was sent
	Unsent     bool          // the same, and it may be mended
	URL        string        // that was called
	Signature  string        // of the request, empty where none was made
}

// Sender delivers. It is safe for use by many at once; how many is up to them.
type Sender struct {
	allow     Allow
	now       func() time.Time
	timeout   time.Duration
	drain     time.Duration
	transport http.RoundTripper
}

// New returns a Sender. It panics without a clock: that is a fault of the
// wiring and nothing a user could have caused.
func New(c Config) *Sender {
	return newSender(c, guard(Allow{Loopback: c.AllowLoopback}))
}

// newSender returns a Sender whose every address passes check.
func newSender(c Config, check control) *Sender {
	if c.Now == nil {
		panic("hooks: a Sender needs a clock")
	}
	s := &Sender{
		allow: Allow{Loopback: c.AllowLoopback}, now: c.Now, timeout: cmp.Or(c.Timeout, sendTimeout), drain: cmp.Or(c.DrainTimeout, drainTimeout),
		transport: c.Transport,
	}
	if s.transport == nil {
		s.transport = network(c, check)
	}
	return s
}

// network is the transport that dials, every address of which passes check.
func network(c Config, check control) *wire {
	connect := cmp.Or(c.ConnectTimeout, connectTimeout)
	return &wire{
		dial:    dial(net.Dialer{Timeout: connect, Resolver: c.Resolver}, check),
		connect: connect,
		tls: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			NextProtos:         []string{"http/1.1"}, // its bounds are the ones tested here
			RootCAs:            c.RootCAs,
			ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		},
	}
}

// dial returns how connections are made: what a name leads to is judged between
// resolving and connecting.
func dial(d net.Dialer, check control) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to := d
		to.Control = checkOf(address, check)
		return to.DialContext(ctx, network, address)
	}
}

// Close lets go of idle connections.
func (s *Sender) Close() {
	if t, ok := s.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Send makes one delivery. It never fails otherwise than by its verdict, and it
// returns within the Sender's timeout.
func (s *Sender) Send(ctx context.Context, r Request) Verdict {
	start := s.now()
	v := s.send(ctx, r)
	v.URL = r.URL
	v.Duration = s.now().Sub(start)
	return v
}

func (s *Sender) send(caller context.Context, r Request) Verdict {
	// Judged again although it was when the endpoint was made: the setting may
	// have changed since.
	to, err := judged(r.URL, s.allow)
	if err != nil {
		return Verdict{Err: WordGuard}
	}
	if len(r.Body) > maxBody {
		return Verdict{Err: WordTooLarge, Ours: true}
	}
	ctx, cancel := context.WithTimeout(caller, s.timeout)
	defer cancel()
	req, err := request(ctx, to, r)
	if err != nil {
		return Verdict{Err: WordUnsendable, Ours: true, Unsent: true}
	}
	// The transport and not a client: a client would follow redirects and keep
	// cookies.
	signature := req.Header.Get("Webhook-Signature")
	resp, err := s.transport.RoundTrip(req) //nolint:bodyclose // answer closes it
	if err != nil {
		return Verdict{Err: word(caller, err), Signature: signature}
	}
	v := s.judge(resp)
	v.Signature = signature
	if resp.Body == http.NoBody {
		return v
	}
	// The header is the answer. What is left of it is only read for the log and
	// to use the connection again, and may not hold the worker.
	timer := time.AfterFunc(s.drain, cancel)
	defer timer.Stop()
	v.Body = answer(resp.Body)
	return v
}

// request is the signed POST.
func request(ctx context.Context, to *url.URL, r Request) (*http.Request, error) {
	signature, err := Sign(r.Secrets, r.ID, r.At, r.Body)
	if err != nil {
		return nil, err
	}
	req := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {userAgent},
			"Webhook-Id": {r.ID}, "Webhook-Timestamp": {timestamp(r.At)}, "Webhook-Signature": {signature},
		},
		Body: io.NopCloser(bytes.NewReader(r.Body)), ContentLength: int64(len(r.Body)),
	}
	if r.Traceparent != "" {
		req.Header.Set("Traceparent", r.Traceparent)
	}
	if r.Traceparent != "" && r.Tracestate != "" {
		req.Header.Set("Tracestate", r.Tracestate)
	}
	return req.WithContext(ctx), nil
}

// judge reads the verdict from an answer's header.
func (s *Sender) judge(resp *http.Response) Verdict {
	if resp.StatusCode < 100 { // no status of HTTP: https://www.rfc-editor.org/rfc/rfc9110#section-15
		return Verdict{Err: WordBadResponse}
	}
	v := Verdict{Status: resp.StatusCode}
	switch {
	case v.Status >= 200 && v.Status < 300:
		v.OK = true
		return v
	case v.Status >= 300 && v.Status < 400:
		v.Err = WordRedirect
	case v.Status == http.StatusGone:
		v.Err, v.Gone = WordGone, true
	default:
		v.Err = WordStatus
	}
	v.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), s.now())
	return v
}

// answer reads as much of a body as is worth it and returns its beginning. An
// error only means that there is less of it.
func answer(body io.ReadCloser) []byte {
	defer body.Close() //nolint:errcheck // nothing hangs on how a connection ends
	head := make([]byte, headAnswer)
	n, err := io.ReadFull(body, head)
	if err == nil {
		_, _ = io.CopyN(io.Discard, body, maxAnswer-headAnswer)
	}
	return head[:n]
}

// retryAfter reads a Retry-After header: seconds or a date, 0 for anything else.
func retryAfter(field string, now time.Time) time.Duration {
	field = strings.TrimSpace(field)
	if field == "" || len(field) > maxDateField {
		return 0
	}
	if strings.Trim(field, "0123456789") == "" {
		seconds, err := strconv.ParseInt(field, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
