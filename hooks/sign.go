package hooks

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
)

const (
	secretBytes    = 32 // of a new secret
	minSecretBytes = 24 // the bounds that Standard Webhooks sets
	maxSecretBytes = 64
	maxSecrets     = 8   // that sign one delivery: those that rotation lets sign, and room
	maxIDLen       = 255 // of an event's id
)

// ErrSecret is what is wrong with a signing secret. It never quotes the secret.
var ErrSecret = errors.New("not a signing secret")

// NewSecret makes what signs by a kind of signature from a source of randomness.
func NewSecret(kind flow.Signature, rand io.Reader) (string, error) {
	key := make([]byte, secretBytes) // as many as the seed of a private key has
	if _, err := io.ReadFull(rand, key); err != nil {
		return "", fmt.Errorf("make a signing secret: %w", err)
	}
	switch kind {
	case flow.SignatureV1:
		return flow.SecretBegins + base64.StdEncoding.EncodeToString(key), nil
	case flow.SignatureV1A:
		return flow.PrivateKeyBegins + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(key)), nil
	}
	return "", fmt.Errorf("make a signing secret: there is no signature %q", kind)
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
	head := []byte(id + "." + timestamp(at) + ".")
	for i, secret := range secrets {
		one, err := sign(secret, head, body)
		if err != nil {
			return "", fmt.Errorf("sign %q: secret %d: %w", id, i, err)
		}
		signatures = append(signatures, one)
	}
	return strings.Join(signatures, " "), nil
}

// sign is the signature of one secret, of its scheme.
func sign(secret string, head, body []byte) (string, error) {
	if strings.HasPrefix(secret, flow.PrivateKeyBegins) {
		key, err := privateKey(secret)
		if err != nil {
			return "", err
		}
		return string(flow.SignatureV1A) + "," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, slices.Concat(head, body))), nil
	}
	key, err := secretKey(secret)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(head) // a hash never fails to be written to
	mac.Write(body)
	return string(flow.SignatureV1) + "," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
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

// behind is what stands behind the prefix of a secret.
func behind(prefix, secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, prefix)
	if !ok {
		return nil, fmt.Errorf("%w: it does not start with %s", ErrSecret, prefix)
	}
	key, err := strict.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which the decoder skips, and others do not
		return nil, fmt.Errorf("%w: what follows %s is not base64", ErrSecret, prefix)
	}
	return key, nil
}

// privateKey is the key inside a secret that begins with flow.PrivateKeyBegins.
func privateKey(secret string) (ed25519.PrivateKey, error) {
	key, err := behind(flow.PrivateKeyBegins, secret)
	if err != nil {
		return nil, err
	}
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrSecret, len(key), ed25519.PrivateKeySize)
	}
	if !bytes.Equal(key, ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])) { // a signature beside another public key betrays the private one
		return nil, fmt.Errorf("%w: its public key is of another", ErrSecret)
	}
	return key, nil
}

// secretKey is the key inside a secret that begins with flow.SecretBegins.
func secretKey(secret string) ([]byte, error) {
	key, err := behind(flow.SecretBegins, secret)
	if err != nil {
		return nil, err
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, fmt.Errorf("%w: %d bytes, want %d to %d", ErrSecret, len(key), minSecretBytes, maxSecretBytes)
	}
	return key, nil
}
