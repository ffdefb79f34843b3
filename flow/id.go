package flow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// The ids of the things Till keeps: a typed prefix and a lower-case ULID.
type (
	// SessionID names a checkout session: wsp_sess_….
	SessionID string
	// AttemptID names one method's try at paying a session: wsp_att_….
	AttemptID string
	// PaymentID names money that a bank said it saw: wsp_pay_….
	PaymentID string
	// ChargeID names what a merchant charged: wsp_chg_….
	ChargeID string
	// ProjectID names a merchant's project: wsp_prj_….
	ProjectID string
	// EndpointID names a merchant's webhook endpoint: wsp_we_….
	EndpointID string
	// EventID names a fact that a merchant is told: evt_….
	EventID string
	// ChatID names the chat of one person with one of our numbers: chat_….
	ChatID string
)

// The prefixes of ids.
const (
	PrefixSession   = "wsp_sess_"
	PrefixReference = "wsp_ref_"
	PrefixAttempt   = "wsp_att_"
	PrefixPayment   = "wsp_pay_"
	PrefixCharge    = "wsp_chg_"
	PrefixAccount   = "wsp_acc_"
	PrefixProject   = "wsp_prj_"
	PrefixKey       = "wsp_key_"
	PrefixEndpoint  = "wsp_we_"
	PrefixEvent     = "evt_"
	PrefixDelivery  = "dlv_"
	PrefixRequest   = "req_"
	PrefixChat      = "chat_"
	PrefixPerson    = "wsp_usr_"
	PrefixAudit     = "aud_"
)

// crockford is the alphabet of ULIDs and entry codes: no I, L, O or U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// IDs makes ids from a clock and a source of randomness.
type IDs struct {
	Now  func() time.Time
	Rand io.Reader
}

// New returns a fresh id: the prefix and a ULID (48 bits of time in
// milliseconds, 80 random bits; github.com/ulid/spec) in lower case.
func (g IDs) New(prefix string) (string, error) {
	raw, err := g.draw()
	if err != nil {
		return "", err
	}
	return prefix + strings.ToLower(base32(raw)), nil
}

func (g IDs) draw() (raw [16]byte, err error) {
	binary.BigEndian.PutUint64(raw[:8], uint64(g.Now().UnixMilli())<<16)
	if _, err := io.ReadFull(g.Rand, raw[6:]); err != nil {
		return raw, fmt.Errorf("make an id: %w", err)
	}
	return raw, nil
}

// Rising makes ids of which each is behind the one before it also where both are of one
// millisecond: what they name is read in the order in which it was written.
type Rising struct {
	IDs

	mu   sync.Mutex
	last [16]byte
}

// New is that of IDs.
func (g *Rising) New(prefix string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	raw, err := g.draw()
	if err != nil {
		return "", err
	}
	if bytes.Equal(raw[:6], g.last[:6]) && bytes.Compare(raw[:], g.last[:]) <= 0 {
		raw = g.last
		for i := len(raw) - 1; i >= 0; i-- {
			if raw[i]++; raw[i] != 0 {
				break
			}
		}
	}
	g.last = raw
	return prefix + strings.ToLower(base32(raw)), nil
}

// FirstID is before every id with a prefix that was made at a time or later.
func FirstID(prefix string, at time.Time) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(max(at.UnixMilli(), 0))<<16)
	return prefix + strings.ToLower(base32(raw))
}

// base32 writes 128 bits as 26 Crockford characters, most significant first.
func base32(raw [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	var out [26]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// EntryCode returns eight fresh Crockford characters (40 random bits): what a
// payer sends to open a session in the chat. It is kept without its dash.
func (g IDs) EntryCode() (string, error) {
	var raw [8]byte
	if _, err := io.ReadFull(g.Rand, raw[:]); err != nil {
		return "", fmt.Errorf("make an entry code: %w", err)
	}
	for i := range raw {
		raw[i] = crockford[raw[i]&31]
	}
	return string(raw[:]), nil
}

// ShowCode writes an entry code the way people read it: XXXX-XXXX.
func ShowCode(code string) string {
	if len(code) != 8 {
		return code
	}
	return code[:4] + "-" + code[4:]
}

// Phone is a telephone number in E.164 digits without the plus. It hides its
// middle in logs.
type Phone string

// String is the number with its middle hidden: +234•••••1234.
func (p Phone) String() string {
	if len(p) < 8 {
		return "•••"
	}
	return "+" + string(p[:3]) + "•••••" + string(p[len(p)-4:])
}

// GoString hides the number in %#v too.
func (p Phone) GoString() string { return p.String() }
