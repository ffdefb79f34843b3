package hooks

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
)

// The words for why a delivery failed. They are stored and shown, so they do
// not change; none of them repeats what an endpoint sent.
const (
	WordStatus      = "status"       // an answer, but neither a success nor one of the next two
	WordRedirect    = "redirect"     // 3xx: never followed
	WordGone        = "gone"         // 410: the endpoint wants no more
	WordTimeout     = "timeout"      // no answer in time
	WordRefused     = "refused"      // nobody listens there
	WordUnreachable = "unreachable"  // no way to the address
	WordReset       = "reset"        // the connection ended before an answer
	WordDNS         = "dns"          // the name leads nowhere
	WordTLS         = "tls"          // no trust, or no TLS
	WordGuard       = "guard"        // the URL or its address is not public; nothing was sent
	WordBadResponse = "bad_response" // not HTTP, or a header past its bounds
	WordStopped     = "stopped"      // the caller gave up, the endpoint is not to blame
	WordUnsendable  = "unsendable"   // no secret: our fault, which may be mended; nothing was sent
	WordTooLarge    = "too_large"    // our fault for good; nothing was sent
)

// handshakeError is why there is no TLS with an endpoint.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

// answerError is what is wrong with an answer of which a byte came at least.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

// word is the word for what the transport returned.
func word(caller context.Context, err error) string {
	if errors.Is(caller.Err(), context.Canceled) {
		return WordStopped
	}
	if errors.Is(err, ErrAddress) {
		return WordGuard
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return WordDNS
	}
	if ne, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && ne.Timeout() {
		return WordTimeout
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return WordRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return WordUnreachable
	case isTLS(err):
		return WordTLS
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		if errors.Is(err, end) {
			return WordReset
		}
	}
	if isDial(err) { // whatever it was
		return WordUnreachable
	}
	if _, answered := errors.AsType[answerError](err); answered {
		return WordBadResponse
	}
	return WordReset
}

// isDial says whether an error is about connecting.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// isTLS says whether an error is about TLS, also where the handshake went well: in TLS
// 1.3 the other side may refuse us only afterwards.
func isTLS(err error) bool {
	if _, shaking := errors.AsType[handshakeError](err); shaking {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}
