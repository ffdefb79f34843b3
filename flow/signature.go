package flow

import (
	"encoding/base64"
	"strings"
)

// Signature is how what is sent to an endpoint is signed, by its name in
// Standard Webhooks (https://www.standardwebhooks.com), which the signature's header
// begins with.
type Signature string

// The signatures. By a SignatureV1 the receiver holds a secret that would let it sign
// as well; of a SignatureV1A it knows a public key, which is no secret.
const (
	SignatureV1  Signature = "v1"  // HMAC-SHA256, by a secret: whsec_…
	SignatureV1A Signature = "v1a" // Ed25519, by a key that stays here: whsk_…
)

// Signatures are all of them, the usual first.
func Signatures() []Signature { return []Signature{SignatureV1, SignatureV1A} }

// How what signs begins, and what verifies a SignatureV1A. Base64 follows: of a
// whsk_ the private key as RFC 8032 and Go write it, the public one in its second half.
const (
	SecretBegins     = "whsec_"
	PrivateKeyBegins = "whsk_"
	PublicKeyBegins  = "whpk_"
)

// publicKeyBytes is how long a public key of Ed25519 is:
// https://www.rfc-editor.org/rfc/rfc8032#section-5.1
const publicKeyBytes = 32

// SignatureOf is what a secret of an endpoint signs with.
func SignatureOf(secret string) Signature {
	if strings.HasPrefix(secret, PrivateKeyBegins) {
		return SignatureV1A
	}
	return SignatureV1
}

// PublicKeyOf is what verifies the signatures of a secret, whpk_…; "" where only the
// secret itself does.
func PublicKeyOf(secret string) string {
	text, ok := strings.CutPrefix(secret, PrivateKeyBegins)
	if !ok {
		return ""
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != 2*publicKeyBytes {
		return ""
	}
	return PublicKeyBegins + base64.StdEncoding.EncodeToString(key[publicKeyBytes:])
}

// SecretHint is enough of what signs to tell it from another: the end of the secret,
// or of the public key.
func SecretHint(secret string) string {
	const shown = 4
	begins, text := SecretBegins, secret
	if SignatureOf(secret) == SignatureV1A {
		begins, text = PublicKeyBegins, PublicKeyOf(secret)
	}
	if len(text) < 4*shown {
		return begins + "…"
	}
	return begins + "…" + text[len(text)-shown:]
}
