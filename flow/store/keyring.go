package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Some of what is kept must be known again as it was: what webhooks are signed
// with, what is mixed into client secrets. Whoever sees a database, a page or a
// copy of it must not. So it is kept sealed with a key that is kept elsewhere,
// and with the place that it is kept at, so that a value cannot be moved to
// another row. The name of the key stands in front, so that a key can be changed
// for another while values of both are there.
const (
	sealedMark = "sealed1:"
	keyIDChars = 12
	// maxOpened is how many opened values are remembered: work that sends many
	// webhooks to few endpoints opens each secret once.
	maxOpened = 4096
)

// SealingKey is a key that seals. It prints as its id.
type SealingKey [32]byte

// ParseSealingKey reads a key as it is written: in hex.
func ParseSealingKey(text string) (SealingKey, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != len(SealingKey{}) {
		return SealingKey{}, errors.New("a sealing key is 32 bytes in hex (64 characters)")
	}
	return SealingKey(raw), nil
}

// ID names a key and tells nothing of it.
func (k SealingKey) ID() string {
	sum := sha256.Sum256(append([]byte("till id of a sealing key\n"), k[:]...))
	return hex.EncodeToString(sum[:])[:keyIDChars]
}

// String is the key's id.
func (k SealingKey) String() string { return "key " + k.ID() }

// GoString is the key's id.
func (k SealingKey) GoString() string { return k.String() }

// LogValue is the key's id.
func (k SealingKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText is the key's id.
func (k SealingKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Keyring seals with one key, and opens what that one or an older one sealed.
type Keyring struct {
	random io.Reader
	id     string
	seals  map[string]cipher.AEAD

	mu     sync.Mutex
	opened map[string]string
}

// NewKeyring makes a keyring. Its random bytes must be nobody else's.
func NewKeyring(random io.Reader, current SealingKey, old ...SealingKey) (*Keyring, error) {
	k := &Keyring{random: random, id: current.ID(), seals: map[string]cipher.AEAD{}, opened: map[string]string{}}
	for _, key := range append([]SealingKey{current}, old...) {
		own, err := hkdf.Key(sha256.New, key[:], nil, "till sealed value 1", len(key))
		if err != nil {
			return nil, fmt.Errorf("make a keyring: %w", err)
		}
		block, err := aes.NewCipher(own)
		if err != nil {
			return nil, fmt.Errorf("make a keyring: %w", err)
		}
		if k.seals[key.ID()], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("make a keyring: %w", err)
		}
	}
	return k, nil
}

// ErrKey says that a value is sealed with a key that is not there, or that it is
// not what was sealed at its place.
var ErrKey = errors.New("sealed with another key")

// ErrOldKey says that another key than the one that seals here seals by now.
var ErrOldKey = errors.New("the sealing key was changed")

// seal hides a value that is kept at a place.
func (k *Keyring) seal(place, plain string) (string, error) {
	if k == nil {
		return "", fmt.Errorf("seal %s: no sealing key is given", place)
	}
	seal := k.seals[k.id]
	nonce := make([]byte, seal.NonceSize(), seal.NonceSize()+len(plain)+seal.Overhead())
	if _, err := io.ReadFull(k.random, nonce); err != nil {
		return "", fmt.Errorf("seal %s: %w", place, err)
	}
	box := seal.Seal(nonce, nonce, []byte(plain), []byte(place))
	return sealedMark + k.id + ":" + base64.RawStdEncoding.EncodeToString(box), nil
}

// open shows a value that is kept at a place. One that was never sealed is as it
// is. Errors: ErrKey.
func (k *Keyring) open(place, kept string) (string, error) {
	id, sealed := sealedBy(kept)
	if !sealed {
		return kept, nil
	}
	if k == nil {
		return "", fmt.Errorf("open %s: %w: %s", place, ErrKey, id)
	}
	name := place + "\n" + kept
	k.mu.Lock()
	plain, known := k.opened[name]
	k.mu.Unlock()
	if known {
		return plain, nil
	}
	with, there := k.seals[id]
	box, err := base64.RawStdEncoding.DecodeString(kept[len(sealedMark)+keyIDChars+1:])
	if !there || err != nil || len(box) < with.NonceSize() {
		return "", fmt.Errorf("open %s: %w: %s", place, ErrKey, id)
	}
	text, err := with.Open(nil, box[:with.NonceSize()], box[with.NonceSize():], []byte(place))
	if err != nil {
		return "", fmt.Errorf("open %s: %w: %s", place, ErrKey, id)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.opened) >= maxOpened {
		clear(k.opened)
	}
	k.opened[name] = string(text)
	return string(text), nil
}

// sealedBy is the id of the key that sealed a value; false for one in the clear.
func sealedBy(kept string) (id string, sealed bool) {
	rest, sealed := strings.CutPrefix(kept, sealedMark)
	if !sealed || len(rest) <= keyIDChars || rest[keyIDChars] != ':' {
		return "", false
	}
	return rest[:keyIDChars], true
}

// The places of what is sealed.
func secretsOf(endpoint string) string { return "the secrets of endpoint " + endpoint }
func settingOf(name string) string     { return "the setting " + name }
