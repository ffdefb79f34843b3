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

// The bounds of a password, in characters. The upper one keeps hashing cheap
// to refuse.
const (
	MinPassword = 10
	MaxPassword = 128
)

// Account is a person who signed up.
type Account struct {
	ID           string
	Email        string // as FoldEmail leaves it
	PasswordHash string // argon2id, encoded
	Business     string
	CreatedAt    time.Time
}

// Project is what keys, sessions and endpoints belong to.
type Project struct {
	ID        ProjectID
	Account   string
	Name      string // what payers see, where Settings say nothing else
	KYC       KYCStatus
	CreatedAt time.Time
	Settings  Settings
}

// FoldEmail is an address as accounts are known by it: in lower case. Providers
// that tell letters apart are not met; people who type one large letter are.
func FoldEmail(s string) string { return strings.ToLower(s) }

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
	LastUsedAt  time.Time // zero: never; late by up to KeyUseNoted
}

// The bounds of accounts and of keys.
const (
	// MaxProjects is how many projects an account may have.
	MaxProjects = 100
	// MaxKeys is how many keys of a project may work at the same time.
	MaxKeys = 50
	// MaxOverlap is how long a rotated key may go on working.
	MaxOverlap = 168 * time.Hour
	// KeyUseNoted is how often at most the use of one key is written down.
	KeyUseNoted = time.Minute
	// DashboardLife is how long a dashboard token works.
	DashboardLife = 12 * time.Hour
)

// KeyStatus says whether a key works.
type KeyStatus string

// The states of a key.
const (
	KeyActive  KeyStatus = "active"
	KeyExpired KeyStatus = "expired" // its successor's overlap is over
	KeyRevoked KeyStatus = "revoked"
)

// Status says whether the key works at a moment.
func (k Key) Status(now time.Time) KeyStatus {
	switch {
	case !k.RevokedAt.IsZero():
		return KeyRevoked
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return KeyExpired
	}
	return KeyActive
}

// Usable refuses a key that does not work any more. Errors: expired_api_key,
// revoked_api_key.
func (k Key) Usable(now time.Time) error {
	switch k.Status(now) {
	case KeyRevoked:
		return Refuse(CodeRevokedKey, "This API key was revoked at %s.", Stamp(k.RevokedAt))
	case KeyExpired:
		return Refuse(CodeExpiredKey, "This API key expired at %s.", Stamp(k.ExpiresAt))
	case KeyActive:
	}
	return nil
}

// Rotated is the key once a successor was made: it works for the overlap, never
// longer than it would have.
func (k Key) Rotated(overlap time.Duration, now time.Time) Key {
	end := now.Add(overlap)
	if k.ExpiresAt.IsZero() || end.Before(k.ExpiresAt) {
		k.ExpiresAt = end
	}
	return k
}

// Token is what a login gave to one browser, as it is kept: never the token itself.
type Token struct {
	Hash      string // SHA-256, hex
	Account   string
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt time.Time // when its owner logged out
}

// Usable refuses a token that does not work any more. Errors: expired_api_key,
// revoked_api_key.
func (t Token) Usable(now time.Time) error {
	switch {
	case !t.RevokedAt.IsZero():
		return Refuse(CodeRevokedKey, "This dashboard token was logged out at %s. Log in again.", Stamp(t.RevokedAt))
	case !now.Before(t.ExpiresAt):
		return Refuse(CodeExpiredKey, "This dashboard token expired at %s. Log in again.", Stamp(t.ExpiresAt))
	}
	return nil
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
	prefix := "sk_"
	if kind == PublicKey {
		prefix = "pk_"
	}
	return newSecret(prefix+string(env)+"_", rand)
}

// tokenPrefix is what a dashboard token begins with.
const tokenPrefix = "dash_"

// NewTokenText makes a dashboard token, as random and as checked as a key.
func NewTokenText(rand io.Reader) (string, error) { return newSecret(tokenPrefix, rand) }

// IsTokenText says whether a text could be a dashboard token.
func IsTokenText(text string) bool {
	return strings.HasPrefix(text, tokenPrefix) && checked(text)
}

func newSecret(prefix string, rand io.Reader) (string, error) {
	raw := make([]byte, keyBytes)
	if _, err := io.ReadFull(rand, raw); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	body := prefix + base62(raw)
	return body + checksum(body), nil
}

// checked says whether a text ends with its own checksum.
func checked(text string) bool {
	if len(text) < 20 || len(text) > 100 {
		return false
	}
	body, sum := text[:len(text)-checksumChars], text[len(text)-checksumChars:]
	return subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(sum)) == 1
}

// ReadKeyText says what a key claims to be; ok is false for what no key looks like.
func ReadKeyText(text string) (env Environment, kind KeyKind, ok bool) {
	if !checked(text) {
		return "", "", false
	}
	for _, e := range []Environment{Test, Live} {
		if strings.HasPrefix(text, "sk_"+string(e)+"_") {
			return e, SecretKey, true
		}
		if strings.HasPrefix(text, "pk_"+string(e)+"_") {
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
