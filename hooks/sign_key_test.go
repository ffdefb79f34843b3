package hooks_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	foreign "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"till/flow"
	"till/hooks"
)

// The first key pair of RFC 8032, section 7.1.
const (
	seedOfRFC   = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
	publicOfRFC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pair is a private key that a seed of 32 bytes decides.
func pair(t *testing.T, seed []byte) string {
	t.Helper()
	key, err := hooks.NewSecret(flow.SignatureV1A, bytes.NewReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A key pair is what RFC 8032 makes of its seed, and its public key verifies what it
// signs, of which no byte may be another.
func TestSignByAKeyPair(t *testing.T) {
	key := pair(t, unhex(t, seedOfRFC))
	public := unhex(t, publicOfRFC)
	if got, want := flow.PublicKeyOf(key), "whpk_"+base64.StdEncoding.EncodeToString(public); got != want {
		t.Fatalf("the public key is %s, want %s", got, want)
	}
	at := time.Unix(1767225600, 0)
	header, err := hooks.Sign([]string{key}, "evt_1", at, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(header, "v1a,")
	signature, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		t.Fatalf("%q, %v", header, err)
	}
	if signed := []byte(`evt_1.1767225600.{"a":1}`); !ed25519.Verify(public, signed, signature) {
		t.Error("the signature does not hold")
	} else {
		for i := range signed {
			signed[i] ^= 1
			if ed25519.Verify(public, signed, signature) {
				t.Errorf("it holds with byte %d changed", i)
			}
			signed[i] ^= 1
		}
	}
	if again, err := hooks.Sign([]string{key}, "evt_1", at, []byte(`{"a":1}`)); err != nil || again != header {
		t.Errorf("signed again it is %q, %v", again, err)
	}
}

// While an endpoint goes from a secret to a key pair, the library of Standard Webhooks
// still takes what it is sent by the secret.
func TestSignByASecretAndAKeyPair(t *testing.T) {
	older, now := secret(t, 1), time.Now()
	header := http.Header{}
	signature, err := hooks.Sign([]string{pair(t, bytes.Repeat([]byte{9}, 32)), older}, "evt_1", now, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	header.Set(foreign.HeaderWebhookID, "evt_1")
	header.Set(foreign.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(foreign.HeaderWebhookSignature, signature)
	if err := verifier(t, older).Verify([]byte("{}"), header); err != nil || !strings.HasPrefix(signature, "v1a,") {
		t.Errorf("%q: %v", signature, err)
	}
}

// A private key that is cut, or beside the public key of another, signs nothing: a
// signature made with the wrong public key gives the private one away.
func TestSignRefusesAKeyThatIsNotWhole(t *testing.T) {
	whole, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(pair(t, bytes.Repeat([]byte{1}, 32)), flow.PrivateKeyBegins))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(whole)
	other[len(other)-1] ^= 1
	for name, key := range map[string][]byte{"empty": nil, "the seed alone": whole[:32], "a byte less": whole[:63], "a byte more": append(bytes.Clone(whole), 0), "another's public key": other} {
		text := flow.PrivateKeyBegins + base64.StdEncoding.EncodeToString(key)
		header, err := hooks.Sign([]string{text}, "evt_1", time.Unix(1, 0), nil)
		if !errors.Is(err, hooks.ErrSecret) || header != "" || len(key) > 0 && strings.Contains(err.Error(), text[len(flow.PrivateKeyBegins):]) {
			t.Errorf("%s: %q, %v", name, header, err)
		}
	}
	if key, err := hooks.NewSecret("v2", bytes.NewReader(make([]byte, 32))); err == nil || key != "" {
		t.Errorf("a signature that there is none of: %q", key)
	}
}
