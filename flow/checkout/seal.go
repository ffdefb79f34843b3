package checkout

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"till/flow/planted"
)

// An answer may show a secret that is kept nowhere: an API key, a dashboard
// token, a session's client secret. For a day it has to be given again byte for
// byte all the same. So it is kept sealed, with a key that is derived from what
// the caller sends each time and what is not kept: the Idempotency-Key, the
// request and, where the answer is a credential, the one it was asked for with.
// Of the Idempotency-Key and the request only hashes are kept. Who reads the
// database alone has to guess all of it; who sends it is who was answered.
const (
	sealSalt = 16
	sealKey  = 32
	sealName = "till answer of an idempotent call, in the scope "
)

// errSealed is an answer that what the caller sent does not open.
var errSealed = errors.New("the answer is sealed with something else")

// scope is whose keys the call's key is one of.
func (c Call) scope() string {
	if planted.AnybodysKey {
		return "anybody"
	}
	return cmp.Or(c.Scope, string(c.Project))
}

// name is the call's key as it is kept.
func (c Call) name() string {
	sum := sha256.Sum256([]byte("till idempotency key\n" + c.scope() + "\n" + c.Key))
	return hex.EncodeToString(sum[:])
}

// sealer is what seals one answer. Its salt is drawn for this answer, so that
// its key is never used twice and the nonce may be zero.
func (c Call) sealer(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, c.Secret, salt, sealName+c.scope(), sealKey)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal hides an answer.
func (c Call) seal(random io.Reader, plain []byte) ([]byte, error) {
	salt := make([]byte, sealSalt, sealSalt+len(plain)+sealSalt)
	if _, err := io.ReadFull(random, salt); err != nil {
		return nil, fmt.Errorf("seal an answer: %w", err)
	}
	sealer, err := c.sealer(salt)
	if err != nil {
		return nil, fmt.Errorf("seal an answer: %w", err)
	}
	return sealer.Seal(salt, make([]byte, sealer.NonceSize()), plain, nil), nil //nolint:gosec // see sealer
}

// unseal shows an answer to who asked for it. Errors: errSealed.
func (c Call) unseal(sealed []byte) ([]byte, error) {
	if len(sealed) < sealSalt {
		return nil, errSealed
	}
	sealer, err := c.sealer(sealed[:sealSalt])
	if err != nil {
		return nil, fmt.Errorf("open a sealed answer: %w", err)
	}
	plain, err := sealer.Open(nil, make([]byte, sealer.NonceSize()), sealed[sealSalt:], nil)
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}
