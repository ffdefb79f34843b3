package flow

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
)

// Environment is one of the two worlds that share nothing.
type Environment string

// The environments.
const (
	Test Environment = "test"
	Live Environment = "live"
)

// KeyKind says what an API key may do.
type KeyKind string

// The kinds of key: a secret one acts for the project, a public one may be
// shown in a browser and reads what is public.
const (
	SecretKey KeyKind = "secret"
	PublicKey KeyKind = "public"
)

// Account is a person who signed up.
type Account struct {
	ID           string
	Email        string
	PasswordHash string // argon2id, encoded
	Business     string
	CreatedAt    time.Time
}

// Project is what keys, sessions and endpoints belong to.
type Project struct {
	ID        ProjectID
	Account   string
	Name      string // what payers see
	CreatedAt time.Time
}

// Key is an API key as it is kept: never the key itself.
type Key struct {
	ID          string
	Project     ProjectID
	Environment Environment
	Kind        KeyKind
	Hash        string // SHA-256, hex
	Hint        string // prefix and last four, for people
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	RevokedAt   time.Time
}

// keyChars is base62, the alphabet of keys and of their checksum.
const keyChars = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// checksumChars is how many characters of a key are its checksum.
const checksumChars = 6

// keyBytes is how much of a key is random.
const keyBytes = 32

// NewKeyText makes a key: sk_test_ and the like, 32 random bytes in base62, and
// six characters of checksum, by which a typo never reaches the store.
func NewKeyText(env Environment, kind KeyKind, rand io.Reader) (string, error) {
	raw := make([]byte, keyBytes)
	if _, err := io.ReadFull(rand, raw); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	prefix := "sk_"
	if kind == PublicKey {
		prefix = "pk_"
	}
	body := prefix + string(env) + "_" + base62(raw)
	return body + checksum(body), nil
}

// ReadKeyText says what a key claims to be; ok is false for what no key looks like.
func ReadKeyText(text string) (env Environment, kind KeyKind, ok bool) {
	if len(text) < 20 || len(text) > 100 {
		return "", "", false
	}
	body, sum := text[:len(text)-checksumChars], text[len(text)-checksumChars:]
	if subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(sum)) != 1 {
		return "", "", false
	}
	for _, e := range []Environment{Test, Live} {
		if strings.HasPrefix(body, "sk_"+string(e)+"_") {
			return e, SecretKey, true
		}
		if strings.HasPrefix(body, "pk_"+string(e)+"_") {
			return e, PublicKey, true
		}
	}
	return "", "", false
}

// HashKey is how a key is kept and looked up.
func HashKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// HintKey is how a key is shown after it was revealed once.
func HintKey(text string) string {
	if len(text) < 20 {
		return "…"
	}
	return text[:8] + "…" + text[len(text)-4:]
}

func checksum(body string) string {
	n := crc32.ChecksumIEEE([]byte(body))
	var out [checksumChars]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = keyChars[n%62]
		n /= 62
	}
	return string(out[:])
}

// base62 writes bytes as a number in base 62, at a fixed width for their size.
func base62(raw []byte) string {
	digits := make([]byte, 0, 44)
	num := append([]byte(nil), raw...)
	for range 43 { // 62^43 > 2^256
		rest := 0
		for i, b := range num {
			v := rest<<8 | int(b)
			num[i] = byte(v / 62) //nolint:gosec // v/62 < 256 because rest < 62
			rest = v % 62
		}
		digits = append(digits, keyChars[rest])
	}
	return string(digits)
}
