package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Trace says which chain of work something belongs to, in the words of W3C Trace
// Context (https://www.w3.org/TR/trace-context/): the trace that it is part of, the
// step before, and whether somebody records it. The zero Trace is none.
type Trace struct {
	ID      [16]byte
	Span    [8]byte
	Sampled bool
	State   string // of other programs, handed on as it came
}

// Zero says that there is no trace.
func (t Trace) Zero() bool { return t.ID == [16]byte{} }

// NewTrace begins a trace that is named by what it is about, which nothing else is:
// whatever is done about it again is found under the same name.
func NewTrace(about string) Trace {
	sum := sha256.Sum256([]byte(about))
	t := Trace{}
	copy(t.ID[:], sum[:])
	copy(t.Span[:], sum[len(t.ID):])
	return t
}

// Then is the next step of a trace, named by what it is.
func (t Trace) Then(step string) Trace {
	sum := sha256.Sum256(append(append(t.ID[:], t.Span[:]...), step...))
	copy(t.Span[:], sum[:])
	return t
}

// Name is the id of the trace as logs have it.
func (t Trace) Name() string { return hex.EncodeToString(t.ID[:]) }

// Parent is the traceparent header that hands the trace on, "" for none.
func (t Trace) Parent() string {
	if t.Zero() {
		return ""
	}
	flags := "00"
	if t.Sampled {
		flags = "01"
	}
	return "00-" + t.Name() + "-" + hex.EncodeToString(t.Span[:]) + "-" + flags
}

// The bounds of what is read of headers.
const (
	parentLength = 55
	maxState     = 512
	maxMembers   = 32
	maxMember    = 256
)

// ParseTrace reads a trace from the values of the traceparent and tracestate
// headers. As the standard has it, a traceparent that is not one is as good as
// none, and a tracestate that is not one is left out, as is one that holds what is
// kept nowhere: it comes out again in the headers of webhooks.
func ParseTrace(parents, states []string) (Trace, bool) {
	if len(parents) != 1 {
		return Trace{}, false
	}
	p := parents[0]
	if len(p) < parentLength || p[2] != '-' || p[35] != '-' || p[52] != '-' || !isHex(p[:2]) || p[:2] == "ff" {
		return Trace{}, false
	}
	// Later versions may say more, behind a dash.
	if p[:2] == "00" && len(p) != parentLength || len(p) > parentLength && p[parentLength] != '-' {
		return Trace{}, false
	}
	id, span, flags := p[3:35], p[36:52], p[53:parentLength]
	if !isHex(id) || !isHex(span) || !isHex(flags) || strings.Trim(span, "0") == "" {
		return Trace{}, false
	}
	var t Trace
	var bits [1]byte
	_, _ = hex.Decode(t.ID[:], []byte(id)) // its signs and its length were looked at
	_, _ = hex.Decode(t.Span[:], []byte(span))
	_, _ = hex.Decode(bits[:], []byte(flags))
	t.Sampled = bits[0]&1 == 1
	if state := strings.Join(states, ","); isState(state) {
		t.State = state
	}
	return t, !t.Zero()
}

// isHex says whether a text is of hex digits, none of them in capitals.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// isState says whether a text is a tracestate that may be handed on.
func isState(s string) bool {
	if s == "" || len(s) > maxState || Held("", s) != "" {
		return false
	}
	seen := map[string]bool{}
	members := strings.Split(s, ",")
	for _, m := range members {
		if m = strings.Trim(m, " \t"); m == "" {
			continue
		}
		key, value, ok := strings.Cut(m, "=")
		if !ok || seen[key] || !isStateKey(key) || value == "" || len(value) > maxMember ||
			strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }) {
			return false
		}
		seen[key] = true
	}
	return len(members) <= maxMembers && len(seen) > 0
}

func isStateKey(key string) bool {
	const letters, signs = "abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz0123456789_-*/@"
	return key != "" && len(key) <= maxMember && strings.Trim(key, signs) == "" && strings.Contains(letters, key[:1]) && strings.Count(key, "@") <= 1
}

// traceKey is the key of a trace in a context.
type traceKey struct{}

// WithTrace is a context whose work belongs to a trace.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf is the trace that work under a context belongs to; zero for none.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
