package api

import (
	"bytes"
	"net"
	"strings"

	"github.com/valyala/fasthttp"
)

// guard says why a request must not be answered, "" where it may be.
//
// A proxy in front of us may frame the bytes of a request differently from the
// server below us; what the two read differently is a second request smuggled
// in, or a header that only one of them saw. So everything that can be read in
// two ways is refused and its connection closed, although fasthttp would take
// most of it.
func guard(ctx *fasthttp.RequestCtx) string {
	version := string(ctx.Request.Header.Protocol())
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		return "the version of HTTP is neither 1.0 nor 1.1"
	}
	if c, ok := ctx.Conn().(*wire); ok && c.loose {
		return "a first line that ends in a line feed alone"
	}
	if why := guardPath(ctx.Request.Header.RequestURI()); why != "" {
		return why
	}
	why, chunked := guardHeaders(ctx.Request.Header.RawHeaders(), version)
	if chunked {
		dropTrailers(&ctx.Request.Header)
	}
	return why
}

// headersRead looks at the headers of a request before its body is asked for. HTTP/1.0
// knows no answer before the answer (RFC 9110, 10.1.1): who speaks it would take the one
// that says to go on for all, and the answer itself for that of its next request.
func headersRead(h *fasthttp.RequestHeader) (as fasthttp.RequestConfig) {
	if !h.IsHTTP11() {
		h.Del(fasthttp.HeaderExpect)
	}
	return as
}

// dropTrailers takes out what stood behind the chunks of a body. The server below us puts
// it with the headers, and many proxies leave it out: an Idempotency-Key there would hold
// on one way to us and not on the other.
func dropTrailers(h *fasthttp.RequestHeader) {
	raw := bytes.ToLower(append([]byte("\n"), h.RawHeaders()...))
	var late []string
	for name := range h.All() {
		if string(name) != fasthttp.HeaderContentLength && !bytes.Contains(raw, bytes.ToLower([]byte("\n"+string(name)+":"))) {
			late = append(late, string(name))
		}
	}
	for _, name := range late {
		h.Del(name)
	}
}

// once are the headers of which a second one could be the one that counts.
const (
	onceHost        = "host"
	onceLength      = "content-length"
	onceEncoding    = "transfer-encoding"
	onceKey         = "authorization"
	onceType        = "content-type"
	onceIdempotency = "idempotency-key"
	onceSecret      = "x-client-secret"
)

// guardHeaders judges the header lines as they came over the wire, of a request of a
// version of HTTP. chunked says whether they promise a body in chunks.
func guardHeaders(raw []byte, version string) (why string, chunked bool) {
	seen := map[string]bool{}
	for len(raw) > 0 {
		line, rest, found := bytes.Cut(raw, []byte("\r\n"))
		raw = rest
		if len(line) == 0 {
			if !found || len(rest) == 0 {
				break
			}
			return "an empty header line", false
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		switch {
		case line[0] == ' ' || line[0] == '\t':
			return "a folded header", false
		case !ok || len(name) == 0:
			return "a header without a name", false
		case bytes.ContainsFunc(name, func(r rune) bool { return !isToken(r) }):
			return "a header name with a space or a sign that names do not have", false
		case bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return "a header value with a control character", false
		}
		lower := strings.ToLower(string(name))
		switch lower {
		case onceHost, onceLength, onceEncoding, onceKey, onceType, onceIdempotency, onceSecret:
			if seen[lower] {
				return "a header that may stand once stands twice", false
			}
			seen[lower] = true
		}
		value = bytes.Trim(value, " \t")
		switch {
		case lower == onceHost && !isHost(string(value)):
			return "a Host that is not a host", false
		case lower == onceLength && (len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0):
			return "a Content-Length that is not a number", false
		case lower == onceEncoding && !strings.EqualFold(string(value), "chunked"):
			return "a Transfer-Encoding other than chunked", false
		}
	}
	switch {
	case !seen[onceHost]:
		return "no Host", false
	case seen[onceLength] && seen[onceEncoding]:
		return "Content-Length together with Transfer-Encoding", false
	case seen[onceEncoding] && version == "HTTP/1.0": // which knows no chunks: RFC 9112, 6.1
		return "a Transfer-Encoding in HTTP/1.0", false
	}
	return "", seen[onceEncoding]
}

// isToken says whether a character may stand in the name of a header (RFC 9110, 5.6.2).
func isToken(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x7f && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// isHost says whether a text is a host with perhaps a port.
func isHost(s string) bool {
	if s == "" || len(s) > 260 || strings.Trim(s, domainChars+"._:[]") != "" {
		return false
	}
	host := s
	if h, port, err := net.SplitHostPort(s); err == nil {
		if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return false
		}
		host = h
		if strings.HasPrefix(s, "[") {
			return net.ParseIP(h) != nil
		}
	} else if strings.HasPrefix(s, "[") {
		return strings.HasSuffix(s, "]") && net.ParseIP(s[1:len(s)-1]) != nil
	}
	return host != "" && !strings.ContainsAny(host, ":[]")
}

// guardPath judges the target of a request. Our paths are plain ASCII; an escape
// for a slash, a dot, a backslash or a percent sign only ever hides a path from
// one of two readers.
func guardPath(target []byte) string {
	if len(target) == 0 || target[0] != '/' {
		return "a target that is not a path"
	}
	if bytes.IndexByte(target, '#') >= 0 { // some end a query there
		return "a target with a fragment"
	}
	path, _, _ := bytes.Cut(target, []byte("?"))
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c <= ' ' || c >= 0x7f || c == '\\':
			return "a path with a character that paths do not have"
		case c == '%':
			if i+2 >= len(path) {
				return "a path with a broken escape"
			}
			hi, lo := unhex(path[i+1]), unhex(path[i+2])
			b := hi<<4 | lo
			if hi < 0 || lo < 0 {
				return "a path with a broken escape"
			}
			if b <= ' ' || b >= 0x7f || strings.ContainsRune(`/\.%`, rune(b)) {
				return "a path with an escape that hides what it means"
			}
			i += 2
		}
	}
	for part := range strings.SplitSeq(string(path[1:]), "/") {
		if part == "." || part == ".." {
			return "a path with dot segments"
		}
	}
	if bytes.Contains(path, []byte("//")) {
		return "a path with an empty segment"
	}
	return ""
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// isLoopback says whether a host name means this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}
