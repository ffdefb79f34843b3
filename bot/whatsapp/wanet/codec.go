package wanet

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/binary/token"
)

const (
	maxFrame = 1 << 20 // bytes of a stanza, packed and unpacked
	maxDepth = 64
)

// encodeNode renders a stanza for the wire. The codec panics on values it does
// not know, which a stanza forwarded for a client may carry; that is an error here.
func encodeNode(node waBinary.Node) (raw []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: encoding: %v", errStanza, r)
		}
	}()
	raw, err = waBinary.Marshal(node)
	if err != nil {
		return nil, fmt.Errorf("encoding a stanza: %w", err)
	}
	return raw, nil
}

// decodeNode reads a stanza: a flag byte and the binary form, perhaps zipped.
func decodeNode(raw []byte) (node waBinary.Node, err error) {
	if len(raw) < 2 || len(raw) > maxFrame {
		return node, fmt.Errorf("%w: %d bytes", errStanza, len(raw))
	}
	flag, body := raw[0], raw[1:]
	if flag&2 != 0 {
		if body, err = inflate(body); err != nil {
			return node, err
		}
	}
	// The codec allocates what a list claims to hold, before reading it, and
	// recurses as deep as it is told; so the claims are checked first.
	check := shape{data: body}
	if !check.node(0) || len(check.data) != 0 {
		return node, fmt.Errorf("%w: the lengths do not fit", errStanza)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: decoding: %v", errStanza, r)
		}
	}()
	out, err := waBinary.Unmarshal(body)
	if err != nil {
		return node, fmt.Errorf("%w: %w", errStanza, err)
	}
	return *out, nil
}

func inflate(body []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: unzipping: %w", errStanza, err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxFrame+1))
	if err != nil {
		return nil, fmt.Errorf("%w: unzipping: %w", errStanza, err)
	}
	if len(out) > maxFrame {
		return nil, fmt.Errorf("%w: too large unzipped", errStanza)
	}
	return out, nil
}

// shape walks the binary form without building anything.
type shape struct{ data []byte }

func (s *shape) skip(n int) bool {
	if n < 0 || n > len(s.data) {
		return false
	}
	s.data = s.data[n:]
	return true
}

// number reads a big-endian number of n bytes.
func (s *shape) number(n int) (int, bool) {
	if len(s.data) < n {
		return 0, false
	}
	v := 0
	for _, b := range s.data[:n] {
		v = v<<8 | int(b)
	}
	s.data = s.data[n:]
	return v, true
}

// list reads how many entries follow; each takes a byte at least.
func (s *shape) list(tag int) (int, bool) {
	size, ok := 0, true
	switch tag {
	case token.ListEmpty:
	case token.List8:
		size, ok = s.number(1)
	case token.List16:
		size, ok = s.number(2)
	default:
		ok = false
	}
	return size, ok && size <= len(s.data)
}

func (s *shape) node(depth int) bool {
	tag, ok := s.number(1)
	if !ok || depth > maxDepth {
		return false
	}
	size, ok := s.list(tag)
	if !ok || size == 0 {
		return false
	}
	for range size {
		if !s.value(depth + 1) {
			return false
		}
	}
	return true
}

func (s *shape) value(depth int) bool {
	tag, ok := s.number(1)
	if !ok || depth > maxDepth {
		return false
	}
	switch tag {
	case token.List8, token.List16:
		size, fits := s.list(tag)
		for i := 0; fits && i < size; i++ {
			fits = s.node(depth + 1)
		}
		return fits
	case token.Binary8:
		n, fits := s.number(1)
		return fits && s.skip(n)
	case token.Binary20:
		n, fits := s.number(3)
		return fits && s.skip(n&0xFFFFF)
	case token.Binary32:
		n, fits := s.number(4)
		return fits && s.skip(n)
	case token.Dictionary0, token.Dictionary1, token.Dictionary2, token.Dictionary3:
		return s.skip(1)
	case token.Nibble8, token.Hex8:
		n, fits := s.number(1)
		return fits && s.skip(n&127)
	case token.JIDPair:
		user := s.value(depth + 1)
		return user && s.value(depth+1)
	case token.ADJID:
		return s.skip(2) && s.value(depth+1)
	case token.FBJID:
		return s.value(depth+1) && s.skip(2) && s.value(depth+1)
	case token.InteropJID:
		return s.value(depth+1) && s.skip(4) && s.value(depth+1)
	default:
		return true
	}
}
