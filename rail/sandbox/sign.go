package sandbox

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"till/rail"
)

// SignatureHeader carries the signature of a notice: t=<unix seconds>,v1=<hex>,
// the HMAC-SHA512 of "<unix seconds>.<body>" under the client secret.
const SignatureHeader = "X-Bank-Signature"

// tolerance is how far a notice's time may be from ours, either way.
const tolerance = 5 * time.Minute

// Sign is the value of SignatureHeader for a body.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac(secret, t, body))
}

func mac(secret, t string, body []byte) []byte {
	m := hmac.New(sha512.New, []byte(secret))
	m.Write([]byte(t))
	m.Write([]byte{'.'})
	m.Write(body)
	return m.Sum(nil)
}

// verify returns rail.ErrForged unless the body was signed with the secret just
// now. There is one way to write a signature: anything else is refused before
// it is computed.
func verify(secret string, h http.Header, body []byte, now time.Time) error {
	if secret == "" {
		return fmt.Errorf("%w: there is no secret to check it by", rail.ErrForged)
	}
	values := h.Values(SignatureHeader)
	if len(values) != 1 {
		return fmt.Errorf("%w: %d signatures", rail.ErrForged, len(values))
	}
	t, sum, ok := strings.Cut(values[0], ",")
	t, okTime := strings.CutPrefix(t, "t=")
	sum, okSum := strings.CutPrefix(sum, "v1=")
	if !ok || !okTime || !okSum {
		return fmt.Errorf("%w: the signature has another form", rail.ErrForged)
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != t {
		return fmt.Errorf("%w: the signature's time is not a time", rail.ErrForged)
	}
	// Compared as text, so that upper-case hex is another signature. The time
	// is judged after it, so that an answer tells nothing without the secret.
	want := hex.EncodeToString(mac(secret, t, body))
	if !hmac.Equal([]byte(want), []byte(sum)) {
		return fmt.Errorf("%w: the signature does not match", rail.ErrForged)
	}
	if age := now.Unix() - seconds; age > int64(tolerance/time.Second) || -age > int64(tolerance/time.Second) {
		return fmt.Errorf("%w: signed %d s from now", rail.ErrForged, age)
	}
	return nil
}
