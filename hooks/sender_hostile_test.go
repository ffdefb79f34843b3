package hooks_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/hooks"
)

// Endpoints that hang, each at another point, cost what the settings say and no
// more, and are told apart from those that answered.
func TestSendToEndpointsThatHang(t *testing.T) {
	silent := "http://" + raw(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	drips := func(begin, more string) string { return "http://" + drip(t, begin, more) }
	const long = "Content-Length: 100000\r\n\r\n"
	for name, c := range map[string]struct {
		url   string
		whole bool // only the bound on everything ends it
		word  string
		body  string
	}{
		"after the request":    {silent, true, hooks.WordTimeout, ""},
		"in the TLS handshake": {strings.Replace(silent, "http:", "https:", 1), false, hooks.WordTimeout, ""},
		"in the header":        {drips("", "HTTP/1.1 200 OK\r\nX-Slow: "), true, hooks.WordTimeout, ""},
		"after 100 Continue":   {drips("HTTP/1.1 100 Continue\r\n\r\n", ""), true, hooks.WordTimeout, ""},
		"in the body of a 200": {drips("HTTP/1.1 200 OK\r\n"+long+"ok", ""), false, "", "ok"},
		"in the body of a 500": {drips("HTTP/1.1 500 No\r\n"+long+"no", ""), false, hooks.WordStatus, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			se := sender(t, func(cfg *hooks.Config) {
				if cfg.Timeout = time.Hour; c.whole {
					cfg.Timeout = 300 * time.Millisecond
				}
			})
			start := time.Now()
			v := se.Send(t.Context(), to(t, c.url))
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("held the worker for %s", took)
			}
			if v.OK != (c.word == "") || v.Err != c.word || !strings.HasPrefix(string(v.Body), c.body) {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

// drip is an endpoint that answers with a beginning and then, without end, a
// byte of more each 20 ms.
func drip(t *testing.T, begin, more string) string {
	t.Helper()
	return raw(t, func(c net.Conn) {
		drained(c)
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		_, err := io.WriteString(c, begin)
		for i := 0; err == nil; i++ {
			next := byte('x')
			if i < len(more) {
				next = more[i]
			}
			<-pace.C
			_, err = c.Write([]byte{next})
		}
	})
}

// A body without end is a success that is not listened to.
func TestSendToAnEndlessBody(t *testing.T) {
	var written atomic.Int64
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	s := sink(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	v := sender(t, nil).Send(t.Context(), to(t, s.URL))
	if !v.OK || len(v.Body) != 4096 || v.Duration > time.Second {
		t.Errorf("verdict %d, %d bytes, %s", v.Status, len(v.Body), v.Duration)
	}
	s.Close() // waits for the handler: it must have noticed
	if n := written.Load(); n > 32<<20 {
		t.Errorf("%d bytes were taken", n) // what the sockets hold is in there
	}
}

// Nothing is inflated: 16 MiB of zeros stay the 16 KiB they came as.
func TestSendToAGzipBomb(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 16 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	s := sink(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	})
	v := sender(t, nil).Send(t.Context(), to(t, s.URL))
	if !v.OK || !bytes.Equal(v.Body, bomb.Bytes()[:4096]) {
		t.Errorf("verdict %d, %d bytes", v.Status, len(v.Body))
	}
}

// Answers that are none.
func TestSendToBrokenEndpoints(t *testing.T) {
	answer := func(text string) string {
		return "http://" + raw(t, func(c net.Conn) {
			drained(c)
			io.WriteString(c, text)
		})
	}
	closed := raw(t, func(c net.Conn) { drained(c) })
	for name, c := range map[string]struct{ url, word string }{
		"1 MiB in one header":     {answer("HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n"), hooks.WordBadResponse},
		"1 MiB in many headers":   {answer("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 128<<10) + "\r\n"), hooks.WordBadResponse},
		"endless 103 Early Hints": {answer(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10_000)), hooks.WordBadResponse},
		"not HTTP":                {answer("220 mail.example.com ESMTP ready\r\n"), hooks.WordBadResponse},
		"Redis":                   {answer("-ERR unknown command\r\n"), hooks.WordBadResponse},
		"HTTP/9":                  {answer("HTTP/x.y 200 OK\r\n\r\n"), hooks.WordBadResponse},
		"two lengths":             {answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), hooks.WordBadResponse},
		"half a header":           {answer("HTTP/1.1 200 OK\r\nX-A: b\r\n"), hooks.WordReset},
		"closed without a word":   {"http://" + closed, hooks.WordReset},
		"closed in the handshake": {"https://" + raw(t, func(net.Conn) {}), hooks.WordTLS},
		"reset": {"http://" + raw(t, func(c net.Conn) {
			drained(c)
			c.(*net.TCPConn).SetLinger(0)
		}), hooks.WordReset},
		"nobody": {"http://" + nobody(t), hooks.WordRefused},
	} {
		t.Run(name, func(t *testing.T) {
			if v := sender(t, nil).Send(t.Context(), to(t, c.url)); v.OK || v.Err != c.word || v.Status != 0 {
				t.Errorf("verdict %+v, want %s", v, c.word)
			}
		})
	}
}

// nobody is an address at which nobody listens any more.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestSendOverTLS(t *testing.T) {
	s := secure(t, nil)
	plain := sink(t, noContent)
	old := secure(t, &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	theirs := secure(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	name, _ := names("127.0.0.1")
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())

	for what, c := range map[string]struct {
		url  string
		pool *x509.CertPool
		want string
	}{
		"a known authority":         {s.URL, pool, ""},
		"a name it is made out to":  {"https://hook.example.com:" + port, pool, ""},
		"another name":              {"https://hook.example.net:" + port, pool, hooks.WordTLS},
		"an unknown authority":      {s.URL, nil, hooks.WordTLS},
		"TLS 1.1":                   {old.URL, pool, hooks.WordTLS},
		"a certificate of ours":     {theirs.URL, pool, hooks.WordTLS},
		"no TLS where it should be": {strings.Replace(plain.URL, "http:", "https:", 1), pool, hooks.WordTLS},
		"TLS where there should be none": {
			strings.Replace(s.URL, "https:", "http:", 1), pool,
			hooks.WordStatus,
		}, // Go's server answers 400, others hang up
	} {
		t.Run(what, func(t *testing.T) {
			se := sender(t, func(cfg *hooks.Config) { cfg.RootCAs, cfg.Resolver = c.pool, name })
			if v := se.Send(t.Context(), to(t, c.url)); v.OK != (c.want == "") || v.Err != c.want {
				t.Errorf("verdict %+v, want %q", v, c.want)
			}
		})
	}
}

func noContent(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// secure is an endpoint behind TLS, by the authority of httptest.
func secure(t *testing.T, c *tls.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(noContent))
	s.TLS = c
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it would tell of every handshake that we refuse
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
