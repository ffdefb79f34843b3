package hooks_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"till/flow/await"
	"till/hooks"
)

// strange is an endpoint that does not behave, and what becomes of a delivery.
type strange struct {
	endpoint endpoint
	want     hooks.Verdict // Body is how the one that is kept begins
	slow     string        // which bound ends it: whole, connect or drain
	resolver *net.Resolver
	roots    *x509.CertPool
	atMost   int64 // 0: atMost
}

// failed and success are verdicts.
func failed(word string) hooks.Verdict { return hooks.Verdict{Err: word} }

func status(code int, word, body string) hooks.Verdict {
	return hooks.Verdict{OK: word == "", Status: code, Err: word, Gone: word == hooks.WordGone, Body: []byte(body)}
}

// atMost is what one answer may take: the 64 KiB of an answer's
// header, the 64 KiB of its body, and what the buffers on the way hold.
const atMost = 64<<10 + 64<<10 + 8*smallBuffer

// chunked is the same where each byte of a body comes in a chunk of its own, with
// as much around it as the transport suffers.
const chunked = 24*(64<<10) + 8*smallBuffer

// deliveries is how many go to each strange endpoint at once: 50, or as many as
// TILL_FAULT_SINKS says.
func deliveries(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TILL_FAULT_SINKS")
	if text == "" {
		return 50
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		t.Fatalf("TILL_FAULT_SINKS is %q: give a number from 1 to 1000", text)
	}
	return n
}

// outlast holds, of many deliveries at once to a strange endpoint, the verdict,
// what is kept, how long it took, how much was taken, that nobody else was
// called, and that nothing stays open or running.
func outlast(t *testing.T, c strange) {
	t.Helper()
	m := &meter{Listener: listen(t)}
	t.Cleanup(func() { m.Close() })
	at := netip.MustParseAddrPort(m.Addr().String())
	url := c.endpoint(t, m)
	cfg := settings()
	switch short := 300 * time.Millisecond; c.slow {
	case "whole":
		cfg.Timeout = short
		if c.want.OK { // on a loaded machine the header must be here by then
			cfg.Timeout = time.Second
		}
	case "connect":
		cfg.ConnectTimeout = short
	case "drain":
		cfg.DrainTimeout = short
	}
	cfg.Resolver, cfg.RootCAs = c.resolver, c.roots
	se := hooks.NewWatched(cfg, func(address string, verdict error, conn syscall.RawConn) error {
		if address != at.String() {
			t.Errorf("%s was to be dialled", address)
			return errNotDialled
		}
		if verdict != nil {
			return verdict
		}
		return listenSmall(conn)
	})
	verdicts := make(chan hooks.Verdict, deliveries(t))
	for range cap(verdicts) {
		go func() { verdicts <- se.Send(t.Context(), to(t, url)) }()
	}
	wrong := 0
	for range cap(verdicts) {
		if v := <-verdicts; !as(v, c.want) {
			if wrong++; wrong == 1 {
				t.Errorf("verdict %+v with %d bytes, want %+v", v, len(v.Body), c.want)
			}
		}
	}
	if wrong > 1 {
		t.Errorf("and %d more", wrong-1)
	}
	se.Close()
	await.Until(t, "no connection is open", func() bool { return m.open.Load() == 0 })
	if n := m.most.Load(); n > cmp.Or(c.atMost, atMost) {
		t.Errorf("%d bytes of one answer were taken", n)
	}
}

// as says whether a verdict is the one that is wanted, in time and in size.
func as(v, want hooks.Verdict) bool {
	return v.OK == want.OK && v.Status == want.Status && v.Err == want.Err && v.Gone == want.Gone &&
		v.RetryAfter == want.RetryAfter && len(v.Body) <= 4096+256 && bytes.HasPrefix(v.Body, want.Body) &&
		v.Duration < 40*time.Second // of a minute
}

func outlastAll(t *testing.T, all map[string]strange) {
	t.Helper()
	for name, c := range all {
		before := goleak.IgnoreCurrent()
		began := time.Now()
		t.Run(name, func(t *testing.T) { outlast(t, c) })
		if err := goleak.Find(before); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d deliveries at once, verdict %q in %s", name, deliveries(t), c.want.Err, time.Since(began).Round(time.Millisecond))
	}
}

// Endpoints that hang, each at another point, cost what the settings say and no
// more, and are told apart from those that answered.
func TestSendToSlowEndpoints(t *testing.T) {
	const long = "Content-Length: 100000\r\n\r\n"
	silent := func(c *metered) { _, _ = io.Copy(io.Discard, c) }
	timeout := failed(hooks.WordTimeout)
	outlastAll(t, map[string]strange{
		"silent after the request":  {endpoint: speaks("http", silent), slow: "whole", want: timeout},
		"silent in the handshake":   {endpoint: speaks("https", silent), slow: "connect", want: timeout},
		"dripping handshake":        {endpoint: hello, slow: "connect", want: timeout},
		"dripping status line":      {endpoint: drips("", "HTTP/1.1 200 OK"), slow: "whole", want: timeout},
		"dripping header":           {endpoint: drips("HTTP/1.1 200 OK\r\nX-Slow: ", ""), slow: "whole", want: timeout},
		"dripping headers":          {endpoint: drips("HTTP/1.1 200 OK\r\n", strings.Repeat("a:b\r\n", 1000)), slow: "whole", want: timeout},
		"dripping 103 Early Hints":  {endpoint: drips("", strings.Repeat("HTTP/1.1 103 E\r\n\r\n", 1000)), slow: "whole", want: timeout},
		"100 Continue, then drips":  {endpoint: drips("HTTP/1.1 100 Continue\r\n\r\n", ""), slow: "whole", want: timeout},
		"dripping body of a 200":    {endpoint: drips("HTTP/1.1 200 OK\r\n"+long+"ok", ""), slow: "drain", want: status(200, "", "ok")},
		"dripping body of a 500":    {endpoint: drips("HTTP/1.1 500 No\r\n"+long+"no", ""), slow: "drain", want: status(500, hooks.WordStatus, "no")},
		"dripping body, whole time": {endpoint: drips("HTTP/1.1 200 OK\r\n"+long+"ok", ""), slow: "whole", want: status(200, "", "ok")},
		"dripping chunks":           {endpoint: drips("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\nx\r\n", 1000)), slow: "drain", want: status(200, "", "")},
		"silent body of a 200":      {endpoint: speaks("http", func(c *metered) { drained(c); _, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n" + long)); silent(c) }), slow: "drain", want: status(200, "", "")},
	})
}

// A name server that never answers holds a worker no longer than an endpoint.
func TestSendWhileNameServersHang(t *testing.T) {
	outlast(t, strange{endpoint: named, slow: "connect", resolver: mute(t), want: failed(hooks.WordDNS)})
}

// Answers without end, or far too large, are read up to the bounds.
func TestSendToEndlessEndpoints(t *testing.T) {
	bad, sixtyFour := failed(hooks.WordBadResponse), strings.Repeat("a", 64<<10-4)
	const ok = "HTTP/1.1 200 OK\r\n"
	x := strings.Repeat("x", 4096)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	mebibytes := 64
	if testing.Short() { // to pack them takes the race detector half a minute
		mebibytes = 8
	}
	for range mebibytes {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	_ = z.Close()
	packed := func(encoding string) endpoint {
		return handles(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(bomb.Bytes())
		})
	}
	outlastAll(t, map[string]strange{
		"a body of 100 GB":          {endpoint: never(ok+"Content-Length: 100000000000\r\n\r\n", "x"), want: status(200, "", x)},
		"a body without end":        {endpoint: never(ok+"\r\n", "x"), want: status(200, "", x)},
		"a 500 without end":         {endpoint: never("HTTP/1.1 500 No\r\n\r\n", "x"), want: status(500, hooks.WordStatus, x)},
		"chunks without end":        {endpoint: never(ok+"Transfer-Encoding: chunked\r\n\r\n", "1000\r\n"+x+"\r\n"), want: status(200, "", x)},
		"tiny chunks without end":   {endpoint: never(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), want: status(200, "", "xxxx"), atMost: chunked},
		"chunks that are all frame": {endpoint: never(ok+"Transfer-Encoding: chunked\r\n\r\n", "1;aaaaaaaaaaaa\r\nx\r\n"), want: status(200, "", "xxxx"), atMost: chunked},
		"a chunk size without end":  {endpoint: never(ok+"Transfer-Encoding: chunked\r\n\r\n", "0"), want: status(200, "", "")},
		"chunk extension, no end":   {endpoint: never(ok+"Transfer-Encoding: chunked\r\n\r\n1;", "a"), want: status(200, "", "")},
		"a trailer without end":     {endpoint: never(ok+"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "A: b\r\n"), want: status(200, "", "ok")},
		"1 MiB in one header":       {endpoint: says(ok + "X-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n"), want: bad},
		"1 MiB in many headers":     {endpoint: says(ok + strings.Repeat("X-A: b\r\n", 128<<10) + "\r\n"), want: bad},
		"4096 headers of 64 kB":     {endpoint: never(ok, "X-A: "+sixtyFour+"\r\n"), want: bad},
		"headers without end":       {endpoint: never(ok, "X-A: b\r\n"), want: bad},
		"a header name without end": {endpoint: never(ok, "a"), want: bad},
		"a folded header, no end":   {endpoint: never(ok+"X-A: b\r\n", " c\r\n"), want: bad},
		"a status without end":      {endpoint: never("HTTP/1.1 200 ", "OK "), want: bad},
		"a line without end":        {endpoint: never("", "HTTP/1.1"), want: bad},
		"100 Continue without end":  {endpoint: never("", "HTTP/1.1 100 Continue\r\n\r\n"), want: bad},
		"102 Processing, no end":    {endpoint: never("", "HTTP/1.1 102 Processing\r\n\r\n"), want: bad},
		"103 Early Hints, no end":   {endpoint: never("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), want: bad},
		"another protocol, no end":  {endpoint: never("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "x"), want: status(101, hooks.WordStatus, x)},
		"a handshake without end":   {endpoint: speaks("https", func(c *metered) { flood(c, "\x16\x03\x03\x40\x00\x0b\xff\xff\xff", "\x00") }), want: failed(hooks.WordTLS)},
		"gzip bomb":                 {endpoint: packed("gzip"), want: status(200, "", string(bomb.Bytes()[:4096]))},
		"bomb said to be deflate":   {endpoint: packed("deflate"), want: status(200, "", string(bomb.Bytes()[:4096]))},
		"bomb said to be br, gzip":  {endpoint: packed("br, gzip"), want: status(200, "", string(bomb.Bytes()[:4096]))},
	})
}

// Answers that are none, that are cut off, or that mean no.
func TestSendToBrokenEndpoints(t *testing.T) {
	bad, reset := failed(hooks.WordBadResponse), failed(hooks.WordReset)
	const ok = "HTTP/1.1 200 OK\r\n"
	later := status(429, hooks.WordStatus, "")
	later.RetryAfter = time.Hour
	broken := map[string]strange{
		"204":                       {endpoint: handles(noContent), want: status(204, "", "")},
		"410":                       {endpoint: says("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone"), want: status(410, hooks.WordGone, "gone")},
		"429":                       {endpoint: says("HTTP/1.1 429 Slow\r\nRetry-After: 3600\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"), want: later},
		"500":                       {endpoint: says("HTTP/1.1 500 No\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n"), want: status(500, hooks.WordStatus, "")},
		"not HTTP":                  {endpoint: says("220 mail.example.com ESMTP ready\r\n"), want: bad},
		"Redis":                     {endpoint: says("-ERR unknown command\r\n"), want: bad},
		"HTTP/0.9":                  {endpoint: says("<html>ok</html>\r\n"), want: bad},
		"HTTP/x":                    {endpoint: says("HTTP/x.y 200 OK\r\n\r\n"), want: bad},
		"a status of letters":       {endpoint: says("HTTP/1.1 abc OK\r\n\r\n"), want: bad},
		"a status of no class":      {endpoint: says("HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n"), want: bad},
		"a status below none":       {endpoint: says("HTTP/1.1 -200 OK\r\n\r\n"), want: bad},
		"binary junk":               {endpoint: says(strings.Repeat("\x00\xff\r\n", 100)), want: bad},
		"two lengths":               {endpoint: says(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), want: bad},
		"a length below none":       {endpoint: says(ok + "Content-Length: -1\r\n\r\nab"), want: bad},
		"a length of letters":       {endpoint: says(ok + "Content-Length: +2\r\n\r\nab"), want: bad},
		"a length past counting":    {endpoint: says(ok + "Content-Length: 99999999999999999999\r\n\r\nab"), want: bad},
		"an unknown encoding":       {endpoint: says(ok + "Transfer-Encoding: identity, x\r\n\r\nab"), want: bad},
		"chunks of garbage":         {endpoint: says(ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\nnope"), want: status(200, "", "ok")},
		"a chunk past counting":     {endpoint: says(ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nab"), want: status(200, "", "")},
		"a body that ends early":    {endpoint: says(ok + "Content-Length: 100\r\n\r\nab"), want: status(200, "", "ab")},
		"half a header":             {endpoint: says(ok + "X-A: b\r\n"), want: reset},
		"closed without a word":     {endpoint: says(""), want: reset},
		"closed when it was opened": {endpoint: speaks("http", func(*metered) {}), want: reset},
		"reset when it was opened":  {endpoint: speaks("http", func(c *metered) { _ = c.SetLinger(0) }), want: reset},
		"reset after the request":   {endpoint: resets(""), want: reset},
		"reset in the header":       {endpoint: resets(ok + "X-A: "), want: reset},
		"reset in the body":         {endpoint: resets(ok + "Content-Length: 9000\r\n\r\nok"), want: status(200, "", "")},
		"nobody":                    {endpoint: nobody, want: failed(hooks.WordRefused)},
		"no such name":              {endpoint: named, resolver: answers(dnsmessage.RCodeNameError), want: failed(hooks.WordDNS)},
		"a name server that fails":  {endpoint: named, resolver: answers(dnsmessage.RCodeServerFailure), want: failed(hooks.WordDNS)},
		"a name server that denies": {endpoint: named, resolver: answers(dnsmessage.RCodeRefused), want: failed(hooks.WordDNS)},
		"a name without addresses":  {endpoint: named, resolver: leads(), want: failed(hooks.WordDNS)},
		"a name in a circle":        {endpoint: named, resolver: chain(3), want: failed(hooks.WordDNS)},
	}
	other := sentinel(t)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"http://" + other.String() + "/", "//" + other.String(), "http://169.254.169.254/latest/meta-data/", "/again"} {
			broken[fmt.Sprintf("%d to %s", code, location)] = strange{
				endpoint: says(fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", code, location)),
				want:     status(code, hooks.WordRedirect, ""),
			}
		}
	}
	outlastAll(t, broken)
}

// TLS is verified: by whom it is signed, for whom, for when, and how it is spoken.
func TestSendVerifiesTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	with := func(a authority, from, to time.Duration, version uint16, ask tls.ClientAuthType) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{a.issue(t, from, to)}, MinVersion: tls.VersionTLS10, MaxVersion: version, ClientAuth: ask}
	}
	good := func() *tls.Config { return with(ours, -time.Hour, time.Hour, tls.VersionTLS13, 0) }
	no := failed(hooks.WordTLS)
	here := leads("127.0.0.1")
	all := map[string]strange{
		"a known authority":        {endpoint: secure("127.0.0.1", good()), want: status(204, "", "")},
		"a name it is made out to": {endpoint: secure("hook.example.com", good()), want: status(204, "", "")},
		"TLS 1.2":                  {endpoint: secure("127.0.0.1", with(ours, -time.Hour, time.Hour, tls.VersionTLS12, 0)), want: status(204, "", "")},
		"another name":             {endpoint: secure("hook.example.net", good()), want: no},
		"an unknown authority":     {endpoint: secure("127.0.0.1", with(others, -time.Hour, time.Hour, tls.VersionTLS13, 0)), want: no},
		"expired":                  {endpoint: secure("127.0.0.1", with(ours, -2*time.Hour, -time.Hour, tls.VersionTLS13, 0)), want: no},
		"not yet good":             {endpoint: secure("127.0.0.1", with(ours, time.Hour, 2*time.Hour, tls.VersionTLS13, 0)), want: no},
		"TLS 1.1":                  {endpoint: secure("127.0.0.1", with(ours, -time.Hour, time.Hour, tls.VersionTLS11, 0)), want: no},
		"a certificate of ours":    {endpoint: secure("127.0.0.1", with(ours, -time.Hour, time.Hour, tls.VersionTLS13, tls.RequireAnyClientCert)), want: no},
		"hangs up when greeted":    {endpoint: speaks("https", func(c *metered) { _, _ = c.Read(make([]byte, 4096)) }), want: no},
		"plain HTTP on its port": {endpoint: func(t *testing.T, m *meter) string {
			t.Helper()
			return strings.Replace(handles(noContent)(t, m), "http:", "https:", 1)
		}, want: no},
		"TLS on a port of plain HTTP": {endpoint: func(t *testing.T, m *meter) string {
			t.Helper()
			return strings.Replace(secure("127.0.0.1", good())(t, m), "https:", "http:", 1)
		}, want: status(400, hooks.WordStatus, "")}, // by Go's server; others hang up
	}
	for name, c := range all {
		c.roots, c.resolver = ours.pool(), here
		all[name] = c
	}
	outlastAll(t, all)
}

// hello is an endpoint that begins a good handshake and then drips.
func hello(t *testing.T, m *meter) string {
	t.Helper()
	return "https" + strings.TrimPrefix(speaks("http", func(c *metered) {
		drip(c, "\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", "")
	})(t, m), "http")
}

// named is an endpoint that has only a name.
func named(*testing.T, *meter) string { return "https://hook.example.com/" }

// nobody is an endpoint at which nobody listens any more.
func nobody(_ *testing.T, m *meter) string {
	m.Close()
	return "http://" + m.Addr().String()
}

// answers is a name server that says no to every question.
func answers(code dnsmessage.RCode) *net.Resolver {
	return resolver(func(dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) { return nil, code })
}
