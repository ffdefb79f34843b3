package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// more probes, beside those of the guard's own test: by request line, chunk and
// version.
func moreProbes() map[string]string {
	const host, chunked = "Host: x\r\n", "Transfer-Encoding: chunked\r\n"
	line := func(line string) string { return line + "\r\n" + host + "\r\n" + smuggled }
	get := func(headers string) string { return "GET /livez HTTP/1.1\r\n" + headers + "\r\n" + smuggled }
	post := func(headers, body string) string {
		return "POST /v1/charges HTTP/1.1\r\n" + host + headers + "\r\n" + body + smuggled
	}
	out := map[string]string{
		"line feeds alone":            "GET /livez HTTP/1.1\nHost: x\n\n" + smuggled,
		"a line feed ends the header": "GET /livez HTTP/1.1\r\nHost: x\n\r\n" + smuggled,
		"a line feed ends them all":   "GET /livez HTTP/1.1\r\nHost: x\r\n\n" + smuggled,
		"two line feeds end them all": "GET /livez HTTP/1.1\r\nHost: x\n\n" + smuggled,
		"carriage returns alone":      "GET /livez HTTP/1.1\rHost: x\r\r" + smuggled,
		"the preface of HTTP/2":       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"two carriage returns":        get(host + "X-A: a\r\r\n"),
		"a third host":                get(host + "HOST: x\r\n"),
		"a list of hosts":             get("Host: x, y\r\n"),
		"NUL in the host":             get("Host: x\x00\r\n"),
		"a letter in a header's name": get(host + "X-\xc3\xa9: a\r\n"),
		"an empty length":             post("Content-Length:\r\n", ""),
		"a length beyond all":         post("Content-Length: 18446744073709551617\r\n", "{"),
		"a list of equal lengths":     post("Content-Length: 0,0\r\n", ""),
		"a length in other digits":    post("Content-Length: \xd9\xa2\r\n", ""),
		"chunks in HTTP/1.0":          "POST /v1/charges HTTP/1.0\r\n" + host + "Connection: keep-alive\r\n" + chunked + "\r\n0\r\n\r\n" + smuggled,
		"a length and an expectation": post("Content-Length: 2\r\n"+chunked, "2\r\n{}\r\n0\r\n\r\n"),
	}
	for _, encoding := range []string{`"chunked"`, "chunked,", "chunked, chunked", "identity", "", "chunked;a=b", "chunked\x00", "chunked chunked", ",chunked"} {
		out["the encoding "+encoding] = post("Transfer-Encoding: "+encoding+"\r\n", "0\r\n\r\n")
	}
	for _, version := range []string{"HTTP/0.9", "HTTP/1", "HTTP/1.10", "HTTP/01.1", "HTTP/1.1x", "HTTP/-1.1", "HTTP/1,1", "HTTP/3", "HTTPS/1.1", "HTTP/1.1 ", "HTTP/1.1\t"} {
		out["the version "+version] = line("GET /livez " + version)
	}
	for _, first := range []string{
		"GET  /livez HTTP/1.1", "GET /livez  HTTP/1.1", "GET\t/livez\tHTTP/1.1", " GET /livez HTTP/1.1", "GET /livez x HTTP/1.1", "/livez HTTP/1.1", "HTTP/1.1", "G(T /livez HTTP/1.1",
		"G\x00T /livez HTTP/1.1", "CONNECT x:443 HTTP/1.1", "GET http://y/livez HTTP/1.1", "GET //y/livez HTTP/1.1", "GET /livez#a HTTP/1.1", "GET /livez?#a HTTP/1.1", "GET /livez?a=\x01 HTTP/1.1",
		"GET /livez?a=b c HTTP/1.1", "GET /%25%36%31 HTTP/1.1", "GET /%252E%252E/livez HTTP/1.1", "GET /%c0%ae%c0%ae/livez HTTP/1.1", "GET /%u002flivez HTTP/1.1",
		"GET /livez/. HTTP/1.1", "GET /livez/.. HTTP/1.1", "GET /./livez HTTP/1.1", "GET /%2e/livez HTTP/1.1", "GET /%20 HTTP/1.1", "GET /livez% HTTP/1.1", "GET /livez%6 HTTP/1.1",
	} {
		out["the line "+first] = line(first)
	}
	for _, body := range []string{
		"2\n{}\n0\n\n", "+2\r\n{}\r\n0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n", " 2\r\n{}\r\n0\r\n\r\n", "2;a\n{}\r\n0\r\n\r\n", "00000000000000000002\r\n{}\r\n0\r\n\r\n",
		"10000000000000002\r\n{}\r\n0\r\n\r\n", "\r\n{}\r\n0\r\n\r\n", "2\r\n{}0\r\n\r\n", "2\r\n{}xx\r\n0\r\n\r\n", "2\r\n{}\n0\r\n\r\n", "g\r\n{}\r\n0\r\n\r\n",
		"2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n", "2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\n{}\r\n0\r\nHost: y\r\n\r\n",
		"2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n", "2\r\n{}\r\n0\r\nX A\r\n\r\n",
	} {
		out["the chunks "+body] = post(chunked, body)
	}
	return out
}

// What looks odd and can be read in one way only is read so: the request behind
// it is answered for itself, and no more than that.
func TestOddRequestsAreReadInOneWay(t *testing.T) {
	addr := open(t).listen()
	post := func(headers, body string) string {
		return "POST /v1/charges HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body + goodbye
	}
	get := func(headers string) string { return "GET /livez HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + goodbye }
	const chunked = "Transfer-Encoding: chunked\r\n"
	for name, c := range map[string]struct {
		raw  string
		want []int
	}{
		"empty lines in front":            {"\r\n\r\n" + get(""), []int{200, 200}},
		"a length with zeros":             {post("Content-Length: 0000\r\n", ""), []int{401, 200}},
		"the encoding in capitals":        {post("tRANSFER-eNCODING: CHUNKED\r\n", "0\r\n\r\n"), []int{401, 200}},
		"a name with an underscore":       {post("Transfer_Encoding: chunked\r\nContent-Length: 0\r\n", ""), []int{401, 200}},
		"an extension of a chunk":         {post(chunked, "2;a=b\r\n{}\r\n0\r\n\r\n"), []int{401, 200}},
		"a trailer of no meaning":         {post(chunked, "2\r\n{}\r\n0\r\nX-A: b\r\n\r\n"), []int{401, 200}},
		"a body that a GET does not have": {"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: " + fmt.Sprint(len(smuggled)) + "\r\n\r\n" + smuggled + goodbye, []int{200, 200}},
		"an upgrade to HTTP/2":            {get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), []int{200, 200}},
		"headers that are to be dropped":  {get("Connection: Host, Authorization\r\n"), []int{200, 200}},
		"another method in a header":      {"POST" + strings.TrimPrefix(get("Content-Length: 0\r\nX-HTTP-Method-Override: GET\r\n"), "GET"), []int{405, 200}},
		"another path in a header":        {"GET /v1/charges" + strings.TrimPrefix(get("X-Original-URL: /livez\r\nX-Rewrite-URL: /livez\r\n"), "GET /livez"), []int{401, 200}},
		"a semicolon in the path":         {"GET /v1/..;" + strings.TrimPrefix(get(""), "GET "), []int{404, 200}},
		"an escaped letter":               {"GET /%6c" + strings.TrimPrefix(get(""), "GET /l"), []int{404, 200}},
		"a method in small letters":       {"get" + strings.TrimPrefix(get(""), "GET"), []int{405, 200}},
		"a body that is asked for":        {post("Expect: 100-continue\r\nContent-Length: 2\r\n", "{}"), []int{100, 401, 200}},
		"a body that 1.0 cannot ask for":  {"POST /v1/charges HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}" + goodbye, []int{401, 200}},
		"a trace":                         {"TRACE" + strings.TrimPrefix(get(""), "GET"), []int{405, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if statuses, _ := probe(t, addr, c.raw); fmt.Sprint(statuses) != fmt.Sprint(c.want) {
				t.Errorf("want %v, got %v", c.want, statuses)
			}
		})
	}
}

// What stands behind the chunks of a body is no header: a proxy may have left it out.
func TestTrailersAreNotHeaders(t *testing.T) {
	s := open(t)
	addr := s.listen()
	for _, body := range []string{good, ""} {
		chunks := "0\r\n"
		if body != "" {
			chunks = fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(body), body)
		}
		seen := map[string]bool{}
		for range 2 {
			r := exchange(t, addr, "POST /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.key+"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+
				chunks+"Idempotency-Key: a\r\n\r\n")
			if r.header.Get("Idempotent-Replayed") != "" || seen[r.body] || body != "" && r.status != http.StatusCreated {
				t.Errorf("a trailer held as a header: %d %s", r.status, r.body)
			}
			seen[r.body] = true
		}
	}
}

// Every naughty string that a header can hold, in every header that means
// something, as the bytes that it is.
func TestNaughtyStringsInHeaders(t *testing.T) {
	s := open(t)
	addr := s.listen()
	for _, h := range []struct{ name, method, path, key, body string }{
		{"Authorization", "GET", "/v1/charges", "", ""},
		{"X-Client-Secret", "GET", sessions + "/" + s.session(""), s.public, ""},
		{"If-None-Match", "GET", "/v1/verification/banks", s.public, ""},
		{"Idempotency-Key", "POST", "/v1/charges", s.key, good},
		{"Idempotency-Key", "POST", "/v1/test/phones", s.key, "{}"},
		{"Content-Type", "POST", "/v1/charges", s.key, good},
		{"Content-Encoding", "POST", "/v1/charges", s.key, good},
		{"Origin", "GET", "/v1/verification/banks", s.public, ""},
		{"X-Forwarded-For", "POST", "/v1/auth/login", "", "{}"},
		{"X-Till-Phone", "GET", "/phone/api/phones", "", ""},
		{"Accept-Encoding", "GET", "/docs/assets/docs.css", "", ""},
		{"X-Request-Id", "GET", "/livez", "", ""},
	} {
		t.Run(h.name+" of "+h.path, func(t *testing.T) {
			t.Parallel()
			for _, n := range naughties() {
				if strings.ContainsAny(n.text, "\r\n") || n.text == "" && n.token != "" || len(n.text) > 8_000 {
					continue // another header, another request, or too long for any
				}
				raw := h.method + " " + h.path + " HTTP/1.1\r\nHost: x\r\n" + h.name + ": " + n.text + "\r\n"
				if h.key != "" {
					raw += "Authorization: Bearer " + h.key + "\r\n"
				}
				if h.body != "" && h.name != "Content-Type" {
					raw += "Content-Type: application/json\r\n"
				}
				raw += fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(h.body), h.body)
				got := exchange(t, addr, raw)
				if got.status == 0 || got.status >= http.StatusInternalServerError {
					t.Errorf("%s: %d %s", n.name, got.status, got.body)
				}
				r := httptest.NewRequest(h.method, h.path, nil)
				conforms(t, r, h.body, got)
				if id := got.header.Get("X-Request-Id"); n.text != "" && id == n.text {
					t.Errorf("%s: whoever calls chooses the request's id", n.name)
				}
			}
		})
	}
}

// exchange sends bytes and reads one answer.
func exchange(t *testing.T, addr, raw string) reply {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return reply{}
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(body)}
}

// Who is slow is cut off when the bounds say so, however the bytes are spread:
// the clock is the bubble's own, so that minutes pass at once.
func TestSlowClientsAreCutOff(t *testing.T) {
	s := open(t)
	s.want(s.ask("GET", "/livez", "", ""), http.StatusOK, nil) // what fasthttp starts once must not belong to a bubble
	serve := s.server.app.Server().ServeConn
	const head = "GET /livez HTTP/1.1\r\nHost: x\r\n"
	post := "POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n"
	drip := func(first string) func(net.Conn) error {
		return func(c net.Conn) error {
			_, err := io.WriteString(c, first)
			for err == nil {
				time.Sleep(time.Second) // of the bubble: how slow the client is
				_, err = io.WriteString(c, "x")
			}
			return err
		}
	}
	say := func(words string) func(net.Conn) error {
		return func(c net.Conn) error { _, err := io.WriteString(c, words); return err }
	}
	for name, c := range map[string]struct {
		write  func(net.Conn) error
		deaf   bool // reads nothing of what it is answered
		within time.Duration
	}{
		"says nothing":                   {say(""), false, readTimeout},
		"half a line":                    {say("GET /li"), false, readTimeout},
		"half of the headers":            {say(head + "X-A: "), false, readTimeout},
		"headers, a byte a second":       {drip(head + "X-A: "), false, readTimeout},
		"a line, a byte a second":        {drip("GET /"), false, readTimeout},
		"no body":                        {say(post + "\r\n"), false, readTimeout},
		"half a body":                    {say(post + "\r\n" + strings.Repeat("x", 30_000)), false, readTimeout},
		"a body, a byte a second":        {drip(post + "\r\n"), false, readTimeout},
		"a chunk, a byte a second":       {drip(strings.Replace(post, "Content-Length: 60000", "Transfer-Encoding: chunked", 1) + "\r\nffff\r\n"), false, readTimeout},
		"a body that was asked for":      {drip(post + "Expect: 100-continue\r\n\r\n"), false, readTimeout},
		"silent after an answer":         {say(head + "\r\n"), false, idleTimeout},
		"half a request after an answer": {say(head + "\r\n" + head), false, readTimeout},
		"does not read":                  {say("GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"), true, writeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				ended := make(chan struct{})
				began := time.Now()
				go func() {
					defer close(ended)
					_ = serve(&wire{Conn: ours, first: true})
					_ = ours.Close()
				}()
				var client sync.WaitGroup
				client.Go(func() { _ = c.write(theirs) })
				var heard int64
				if !c.deaf {
					client.Go(func() { heard, _ = io.Copy(io.Discard, theirs) })
				}
				<-ended
				if took := time.Since(began); took > c.within+time.Second || took < c.within-time.Second {
					t.Errorf("held for %s, not %s", took, c.within)
				}
				_ = theirs.Close()
				client.Wait()
				if answered := heard > 0; !c.deaf && answered == (name == "says nothing") {
					t.Errorf("was answered: %v", answered)
				}
			})
		})
	}
}

// A connection that is kept is answered for as long as it is: also where the server below
// us writes by itself, to ask for a body or to refuse what it cannot read.
func TestWhatComesAfterAPauseIsAnswered(t *testing.T) {
	s := open(t)
	s.want(s.ask("GET", "/livez", "", ""), http.StatusOK, nil) // what fasthttp starts once must not belong to a bubble
	serve := s.server.app.Server().ServeConn
	const first = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
	const post = "POST /v1/charges HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		raw  string
		want []int
	}{
		"what cannot be read":    {"GET /livez HTTP/1.1\r\nHost: x y\r\n\r\n", []int{400}},
		"too large a body":       {post + "Content-Length: 65537\r\n\r\n", []int{413}},
		"a body that never ends": {post + "Content-Length: 3\r\n\r\n{}", []int{400}},
		"a body to be asked for": {post + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", []int{100, 401}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = serve(&wire{Conn: ours, first: true})
					_ = ours.Close()
				}()
				in := bufio.NewReader(theirs)
				var got []int
				for _, raw := range []string{first, c.raw} {
					var sent sync.WaitGroup
					sent.Go(func() { _, _ = io.WriteString(theirs, raw) })
					for want := 1; want > 0; want-- {
						answer, err := http.ReadResponse(in, nil)
						if err != nil {
							t.Errorf("no answer: %v", err)
							break
						}
						_, _ = io.Copy(io.Discard, answer.Body)
						_ = answer.Body.Close()
						if got = append(got, answer.StatusCode); answer.StatusCode == http.StatusContinue {
							want++
						}
					}
					time.Sleep(idleTimeout / 2) // of the bubble: the pause
					_ = theirs.SetDeadline(time.Now().Add(idleTimeout))
					sent.Wait()
				}
				_ = theirs.Close()
				<-ended
				if fmt.Sprint(got) != fmt.Sprint(append([]int{200}, c.want...)) {
					t.Errorf("want %v after the first answer, got %v", c.want, got)
				}
			})
		})
	}
}

// Who is refused before all was sent may send the rest: a connection that is broken under
// a proxy's hands is no answer to it, and it makes a 502 of the refusal.
func TestWhoIsRefusedMaySendTheRest(t *testing.T) {
	addr := open(t).listen()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
	must(t, err)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	must(t, err)
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if _, err := in.ReadByte(); answer.StatusCode != http.StatusRequestEntityTooLarge || err != io.EOF {
		t.Fatalf("%d, then %v", answer.StatusCode, err)
	}
	for sent := 0; sent < 1_000_000; sent += 50_000 {
		if _, err := io.WriteString(conn, strings.Repeat("x", 50_000)); err != nil {
			t.Fatalf("cut off after %d bytes: %v", sent, err)
		}
	}
}

// FuzzGuard holds our reading of a request against net/http's: what is let
// through, both read as the same request and end at the same byte.
func FuzzGuard(f *testing.F) {
	for _, all := range []map[string]string{probes(), moreProbes()} {
		for _, raw := range all {
			f.Add([]byte(raw))
		}
	}
	f.Add([]byte(smuggled + smuggled))
	f.Add([]byte("POST /v1/charges HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX-A: b\r\n\r\n" + smuggled))
	f.Add([]byte("POST /v1/charges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nIdempotency-Key: b\r\n\r\n" + smuggled))
	f.Add([]byte("POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" + smuggled))
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = bytes.TrimLeft(raw, "\r\n") // empty lines in front may be passed over (RFC 9112, 2.2); net/http does not
		var ctx fasthttp.RequestCtx
		in := bufio.NewReaderSize(bytes.NewReader(raw), headerLimit)
		if err := ctx.Request.ReadLimitBody(in, bodyLimit); err != nil || guard(&ctx) != "" {
			return
		}
		rest, err := io.ReadAll(in)
		must(t, err)
		other := bufio.NewReader(bytes.NewReader(raw))
		theirs, err := http.ReadRequest(other)
		if err != nil {
			t.Fatalf("let through, and net/http cannot read it: %v\n%q", err, raw)
		}
		body, err := io.ReadAll(theirs.Body)
		if err != nil {
			t.Fatalf("let through, and net/http cannot read its body: %v\n%q", err, raw)
		}
		after, err := io.ReadAll(other)
		must(t, err)
		h := &ctx.Request.Header
		if string(h.Method()) != theirs.Method || string(h.RequestURI()) != theirs.RequestURI || string(h.Host()) != theirs.Host ||
			string(h.Peek("Authorization")) != theirs.Header.Get("Authorization") {
			t.Fatalf("read differently: %q, %q, %q\n%q", theirs.Method, theirs.RequestURI, theirs.Host, raw)
		}
		for _, name := range []string{"Idempotency-Key", "X-Client-Secret", "X-Till-Phone", "X-Forwarded-For", "Sec-Fetch-Site", "Content-Type", "Content-Encoding", "Traceparent"} {
			if string(h.Peek(name)) != theirs.Header.Get(name) {
				t.Fatalf("%s is read differently: %q and %q\n%q", name, h.Peek(name), theirs.Header.Get(name), raw)
			}
		}
		if !bytes.Equal(ctx.Request.Body(), body) || !bytes.Equal(rest, after) {
			t.Fatalf("framed differently: %q and %q, then %q and %q\n%q", ctx.Request.Body(), body, rest, after, raw)
		}
	})
}
