package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// SecretPrefix marks a signing secret; what follows is base64.
const SecretPrefix = "whsec_"

const (
	secretBytes    = 32 // of a new secret
	minSecretBytes = 24 // the bounds that Standard Webhooks sets
	maxSecretBytes = 64
	maxSecrets     = 8   // that sign one delivery: those that rotation lets sign, and room
	maxIDLen       = 255 // of an event's id
)

// ErrSecret is what is wrong with a signing secret. It never quotes the secret.
var ErrSecret = errors.New("not a signing secret")

// NewSecret makes a signing secret from a source of randomness.
func NewSecret(rand io.Reader) (string, error) {
	key := make([]byte, secretBytes)
	if _, err := io.ReadFull(rand, key); err != nil {
		return "", fmt.Errorf("make a signing secret: %w", err)
	}
	return SecretPrefix + base64.StdEncoding.EncodeToString(key), nil
}

// Sign returns the webhook-signature header: one signature for each secret, in
// their order, so that a receiver who knows any of them can verify the body.
func Sign(secrets []string, id string, at time.Time, body []byte) (header string, err error) {
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return "", fmt.Errorf("sign %q: %d secrets, want 1 to %d", id, len(secrets), maxSecrets)
	}
	if err := checkID(id); err != nil {
		return "", err
	}
	if at.Unix() <= 0 {
		return "", fmt.Errorf("sign %q: %s is before the epoch", id, at)
	}
	signatures := make([]string, 0, len(secrets))
	for i, secret := range secrets {
		key, err := secretKey(secret)
		if err != nil {
			return "", fmt.Errorf("sign %q: secret %d: %w", id, i, err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp(at) + ".")) // a hash never fails to be written to
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " "), nil
}

// timestamp is the webhook-timestamp header, which is also signed.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// checkID refuses an id that could be mistaken: a dot would let two different
// pairs of id and timestamp have one signature, a line break would end the
// header it is sent in.
func checkID(id string) error {
	if id == "" || len(id) > maxIDLen {
		return fmt.Errorf("an event id has 1 to %d characters, not %d", maxIDLen, len(id))
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '.' {
			return fmt.Errorf("event id %q holds %q", id, c)
		}
	}
	return nil
}

// strict refuses base64 that another text would stand for as well.
var strict = base64.StdEncoding.Strict()

// secretKey is the key inside a secret.
func secretKey(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, SecretPrefix)
	if !ok {
		return nil, fmt.Errorf("%w: it does not start with %s", ErrSecret, SecretPrefix)
	}
	key, err := strict.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which the decoder skips, and others do not
		return nil, fmt.Errorf("%w: what follows %s is not base64", ErrSecret, SecretPrefix)
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, fmt.Errorf("%w: %d bytes, want %d to %d", ErrSecret, len(key), minSecretBytes, maxSecretBytes)
	}
	return key, nil
}
