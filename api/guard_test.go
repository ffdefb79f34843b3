package api

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow/await"
)

// door is a port of this machine.
func (s *shop) door() net.Listener {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(s.t, err)
	return ln
}

// on serves at a door what the shop has by now for a server.
func (s *shop) on(ln net.Listener) func(context.Context) error {
	server := s.server
	return func(ctx context.Context) error { return server.Serve(ctx, ln) }
}

// listen serves a shop on a real port and returns its address.
func (s *shop) listen() string {
	s.t.Helper()
	ln := s.door()
	s.runs(s.on(ln))
	return ln.Addr().String()
}

// probe sends bytes as they are and returns every answer until the server closes. One
// that stays silent instead is waited for in vain; what is to be answered is ended by
// goodbye.
func probe(t *testing.T, addr, raw string) (statuses []int, closed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(await.Patience))
	for {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			timeout, ok := err.(net.Error) //nolint:errorlint // bare from the connection
			return statuses, !ok || !timeout.Timeout()
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
}

// smuggled is a second request that must never be answered.
const smuggled = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"

// goodbye is a last request, which is answered with 200 and ends the connection.
const goodbye = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// probes are requests that two readers could read differently.
func probes() map[string]string {
	get := func(path, headers string) string { return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n" }
	post := func(headers, body string) string {
		return "POST /v1/charges HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body
	}
	host := "Host: x\r\n"
	return map[string]string{
		"length and encoding":            post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled),
		"encoding and length":            post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+smuggled),
		"two lengths":                    post("Content-Length: 0\r\nContent-Length: 40\r\n", smuggled),
		"two equal lengths":              post("Content-Length: 0\r\nContent-Length: 0\r\n", smuggled),
		"a list of lengths":              post("Content-Length: 0, 40\r\n", smuggled),
		"a signed length":                post("Content-Length: +0\r\n", smuggled),
		"a negative length":              post("Content-Length: -1\r\n", smuggled),
		"a hexadecimal length":           post("Content-Length: 0x0\r\n", smuggled),
		"a length with a space inside":   post("Content-Length: 1 0\r\n", smuggled),
		"two encodings":                  post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+smuggled),
		"an unknown encoding":            post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+smuggled),
		"encodings in a list":            post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"+smuggled),
		"gzip and chunked":               post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"+smuggled),
		"space before the colon":         post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"+smuggled),
		"tab before the colon":           post("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n"+smuggled),
		"length, space before the colon": post("Content-Length : 4\r\n", smuggled),
		"encoding, vertical tab":         post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"+smuggled),
		"a folded encoding":              post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"+smuggled),
		"a folded header":                get("/livez", host+"X-A: 1\r\n 2\r\n") + smuggled,
		"a header folded by a tab":       get("/livez", host+"X-A: 1\r\n\t2\r\n") + smuggled,
		"a first header folded":          get("/livez", " X-A: 1\r\n"+host) + smuggled,
		"two hosts":                      get("/livez", "Host: x\r\nHost: y\r\n") + smuggled,
		"no host":                        get("/livez", "") + smuggled,
		"an empty host":                  get("/livez", "Host: \r\n") + smuggled,
		"a host with a path":             get("/livez", "Host: x/y\r\n") + smuggled,
		"a host with a user":             get("/livez", "Host: a@x\r\n") + smuggled,
		"a host with a space":            get("/livez", "Host: x y\r\n") + smuggled,
		"a host with a word for port":    get("/livez", "Host: x:http\r\n") + smuggled,
		"two keys":                       get("/livez", host+"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n") + smuggled,
		"two keys in two cases":          get("/livez", host+"Authorization: Bearer a\r\nauthorization: Bearer b\r\n") + smuggled,
		"two types":                      post("Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n", smuggled),
		"two idempotency keys":           post("Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n", smuggled),
		"two client secrets":             get("/livez", host+"X-Client-Secret: a\r\nX-Client-Secret: b\r\n") + smuggled,
		"NUL in a header":                get("/livez", host+"X-A: a\x00b\r\n") + smuggled,
		"a control in a header":          get("/livez", host+"X-A: a\x01b\r\n") + smuggled,
		"a bare CR in a header":          get("/livez", host+"X-A: a\rX-B: b\r\n") + smuggled,
		"a bare LF after the first line": "GET /livez HTTP/1.1\n" + host + "\r\n" + smuggled,
		"a bare LF before it":            "\n" + get("/livez", host) + smuggled,
		"a bare LF between headers":      get("/livez", host+"X-A: a\nX-B: b\r\n") + smuggled,
		"a header without a colon":       get("/livez", host+"X-A\r\n") + smuggled,
		"a header without a name":        get("/livez", host+": a\r\n") + smuggled,
		"a name in brackets":             get("/livez", host+"X[A]: a\r\n") + smuggled,
		"NUL in the path":                get("/livez\x00", host) + smuggled,
		"HTTP/9.9":                       "GET /livez HTTP/9.9\r\nHost: x\r\n\r\n" + smuggled,
		"HTTP/2.0":                       "GET /livez HTTP/2.0\r\nHost: x\r\n\r\n" + smuggled,
		"HTTP/1.2":                       "GET /livez HTTP/1.2\r\nHost: x\r\n\r\n" + smuggled,
		"http/1.1":                       "GET /livez http/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"no version":                     "GET /livez\r\nHost: x\r\n\r\n" + smuggled,
		"a double-encoded path":          get("/%256civez", host) + smuggled,
		"a double-encoded letter":        get("/%2561dmin", host) + smuggled,
		"encoded dot segments":           get("/v1/%2e%2e/livez", host) + smuggled,
		"half-encoded dot segments":      get("/v1/.%2e/livez", host) + smuggled,
		"dot segments":                   get("/v1/../livez", host) + smuggled,
		"an encoded slash":               get("/v1%2flivez", host) + smuggled,
		"a backslash":                    get("/v1\\..\\livez", host) + smuggled,
		"an encoded backslash":           get("/v1%5c..%5clivez", host) + smuggled,
		"an encoded NUL":                 get("/livez%00", host) + smuggled,
		"a broken escape":                get("/livez%zz", host) + smuggled,
		"an empty segment":               get("//livez", host) + smuggled,
		"an absolute target":             get("http://evil.example/livez", host) + smuggled,
		"a target that is a star":        "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"UTF-8 in the path":              get("/livez\u2028", host) + smuggled,
	}
}

func TestRequestsThatCanBeReadInTwoWaysAreRefusedAndClosed(t *testing.T) {
	addr := open(t).listen()
	all := probes()
	maps.Copy(all, moreProbes())
	if len(all) < 142 {
		t.Errorf("only %d probes", len(all))
	}
	for name, raw := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statuses, closed := probe(t, addr, raw)
			if len(statuses) != 1 || statuses[0] != http.StatusBadRequest || !closed {
				t.Errorf("want one 400 and a closed connection, got %v, closed %v", statuses, closed)
			}
		})
	}
}

func TestPlainRequestsPass(t *testing.T) {
	addr := open(t).listen()
	chunked := "POST /v1/charges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	for name, c := range map[string]struct {
		raw  string
		want []int
	}{
		"one after the other":   {smuggled + goodbye, []int{200, 200}},
		"chunked, then another": {chunked + goodbye, []int{401, 200}},
		"HTTP/1.0 with a host":  {"GET /livez HTTP/1.0\r\nHost: x\r\n\r\n", []int{200}},
		"an IPv6 host":          {"GET /livez HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n" + goodbye, []int{200, 200}},
		"a plus in the path":    {"GET /v1/test/phones/%2B2348031234567/messages HTTP/1.1\r\nHost: x\r\n\r\n" + goodbye, []int{401, 200}},
		"spaces round a value":  {"GET /livez HTTP/1.1\r\nHost:   x  \r\nX-A:\t1 \r\n\r\n" + goodbye, []int{200, 200}},
		"a method of nobody's":  {"BREW /livez HTTP/1.1\r\nHost: x\r\n\r\n" + goodbye, []int{405, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statuses, _ := probe(t, addr, c.raw)
			if len(statuses) != len(c.want) {
				t.Fatalf("want %v, got %v", c.want, statuses)
			}
			for i := range statuses {
				if statuses[i] != c.want[i] {
					t.Fatalf("want %v, got %v", c.want, statuses)
				}
			}
		})
	}
}

func TestBodiesAndHeadersHaveABound(t *testing.T) {
	s := open(t)
	addr := s.listen()
	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"a body by length": {"POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n", http.StatusRequestEntityTooLarge},
		"a body in chunks": {"POST /v1/charges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n" + strings.Repeat("a", 0x10001) + "\r\n", http.StatusRequestEntityTooLarge},
		"headers":          {"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 20_000) + "\r\n\r\n", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			statuses, closed := probe(t, addr, c.raw)
			if c.status == http.StatusRequestEntityTooLarge {
				await.Until(t, "a line is in the log", func() bool { return strings.Contains(s.log.String(), `"code":"payload_too_large"`) })
			}
			if len(statuses) != 1 || statuses[0] != c.status || !closed {
				t.Errorf("want %d and a closed connection, got %v, closed %v", c.status, statuses, closed)
			}
		})
	}
}

// A browser opens connections that it may never use: the end of the server does
// not wait for them.
func TestAConnectionThatNobodyUsedHoldsNoEndUp(t *testing.T) {
	s := open(t)
	ln := s.door()
	stop, ended := begins(s.on(ln))
	conns := make([]net.Conn, 3)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", ln.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conns[i].Close() }()
	}
	last := conns[2] // its answer says that the server has the others too
	_, _ = io.WriteString(last, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(last), nil)
	must(t, err)
	_ = answer.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Told to stop before it has begun to serve, as in the middle of its start, the server
// ends as well.
func TestAServerThatIsStoppedBeforeItServesEnds(t *testing.T) {
	over, stop := context.WithCancel(t.Context())
	stop()
	for range 5 { // whether it has begun by then is chance
		s := open(t)
		if err := s.on(s.door())(over); err != nil {
			t.Fatalf("it ended with %v", err)
		}
	}
}

func TestAWaitingCallEndsWhenTheServerDoes(t *testing.T) {
	s := open(t)
	s.phones.waits = make(chan struct{}, 1)
	if r := s.ask("POST", "/v1/test/phones", s.key, `{"phone":"08031234567"}`); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	ln := s.door()
	stop, ended := begins(s.on(ln))
	conn, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET /v1/test/phones/2348031234567/messages?wait=30 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.key+"\r\n\r\n")
	<-s.phones.waits
	began := time.Now()
	stop()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("the call was cut off: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the call was answered with %d", answer.StatusCode)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("shutting down took %s", took)
	}
}

func TestNobodyHoldsAConnectionForEver(t *testing.T) {
	server := open(t).server.app.Server()
	if server.ReadTimeout <= 0 || server.WriteTimeout <= 0 || server.IdleTimeout <= 0 || server.Concurrency <= 0 || server.MaxRequestBodySize != bodyLimit {
		t.Error("a bound is missing")
	}
}
