package wanet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

const (
	codeLetters = "123456789ABCDEFGHJKLMNPQRSTVWXYZ"
	codeLength  = 8
	codeRounds  = 2 << 16
	// A wrapped key: a salt, an IV, and 32 bytes encrypted under the code.
	wrapSalt, wrapIV, wrapSize = 32, 16, 80
)

// codeLink is a pairing by code: what the client asked for and what the phone
// that typed the code has sent.
type codeLink struct {
	phone   string
	ref     string
	wrapped []byte

	typed   *offer // by a phone; answered if its code turns out wrong
	account *Account
	shared  []byte // of the two ephemeral keys
}

// codeHello notes that a client shows a code for a number, and names the request.
// The caller holds n.mu, as for all of these.
func (n *Network) codeHello(c *conn, node, reg waBinary.Node) error {
	wrapped := content(reg.GetChildByTag("link_code_pairing_wrapped_companion_ephemeral_pub"))
	phone := jidOf(reg, "jid").User
	if len(wrapped) != wrapSize || phone == "" {
		n.refuse(c, node, 400, "bad-request")
		return nil
	}
	ref := "3@" + base64.RawURLEncoding.EncodeToString(n.random(24))
	c.link.code = &codeLink{phone: phone, ref: ref, wrapped: wrapped}
	n.result(c, node, waBinary.Node{
		Tag: "link_code_companion_reg", Attrs: waBinary.Attrs{"stage": "companion_hello"},
		Content: []waBinary.Node{{Tag: "link_code_pairing_ref", Content: []byte(ref)}},
	})
	return nil
}

// EnterCode links the client that shows the 8-letter code for this account's
// number, as typing it into the phone does. It returns when the client has
// confirmed, or when the code proves wrong.
func (a *Account) EnterCode(code string) error {
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	if len(code) != codeLength || strings.Trim(code, codeLetters) != "" {
		return fmt.Errorf("%w: a pairing code has %d letters or digits", ErrInput, codeLength)
	}
	n := a.n
	n.mu.Lock()
	c := n.codeShown(a)
	n.mu.Unlock()
	if c == nil {
		return ErrNoPairing
	}
	// Slow on purpose, so not under the lock.
	o, err := n.typeCode(c, a, code)
	if err != nil {
		return err
	}
	return n.await(o)
}

// codeShown finds a connection that shows a code for the account's number.
func (n *Network) codeShown(a *Account) *conn {
	for c := range n.conns {
		if c.link != nil && c.link.code != nil && c.link.code.phone == a.phone && c.link.last == nil {
			return c
		}
	}
	return nil
}

// codeCipher is the cipher under a code: a stream, so it fits any 32 bytes and a
// wrong code shows only later.
func codeCipher(code string, salt, iv, in []byte) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, code, salt, codeRounds, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the code's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("preparing the code's cipher: %w", err)
	}
	out := make([]byte, len(in))
	cipher.NewCTR(block, iv).XORKeyStream(out, in)
	return out, nil
}

// typeCode answers the client's wrapped key with the phone's own.
func (n *Network) typeCode(c *conn, a *Account, code string) (*offer, error) {
	n.mu.Lock()
	link := c.link.code
	n.mu.Unlock()
	w := link.wrapped
	companion, err := codeCipher(code, w[:wrapSalt], w[wrapSalt:wrapSalt+wrapIV], w[wrapSalt+wrapIV:])
	if err != nil {
		return nil, err
	}
	eph, err := newKey(n.rand)
	if err != nil {
		return nil, err
	}
	shared, err := agree(eph, companion)
	if err != nil {
		return nil, fmt.Errorf("%w: the code is wrong: %w", ErrPairing, err)
	}
	head := n.random(wrapSalt + wrapIV)
	sealed, err := codeCipher(code, head[:wrapSalt], head[wrapSalt:], eph.PublicKey().Bytes())
	if err != nil {
		return nil, err
	}
	o := &offer{account: a, answered: make(chan error, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.link.code != link || c.link.last != nil {
		return nil, ErrNoPairing
	}
	link.typed, link.account, link.shared = o, a, shared
	c.send(waBinary.Node{
		Tag: "notification",
		Attrs: waBinary.Attrs{
			"id": n.newID(), "from": types.ServerJID, "type": "link_code_companion_reg", "t": n.now().Unix(),
		},
		Content: []waBinary.Node{{
			Tag: "link_code_companion_reg", Attrs: waBinary.Attrs{"stage": "primary_hello"},
			Content: []waBinary.Node{
				{Tag: "link_code_pairing_ref", Content: []byte(link.ref)},
				{Tag: "link_code_pairing_wrapped_primary_ephemeral_pub", Content: join(head, sealed)},
				{Tag: "primary_identity_pub", Content: a.identity.PublicKey().Bytes()},
			},
		}},
	})
	return o, nil
}

// codeFinish opens the client's key bundle, which proves that both sides used
// the same code, and goes on as if a QR code had been scanned.
func (n *Network) codeFinish(c *conn, node, reg waBinary.Node) error {
	link := c.link.code
	if link == nil || link.typed == nil || string(content(reg.GetChildByTag("link_code_pairing_ref"))) != link.ref {
		n.refuse(c, node, 400, "bad-request")
		return nil
	}
	secret, err := link.open(c, content(reg.GetChildByTag("link_code_pairing_wrapped_key_bundle")))
	if err != nil {
		n.refuse(c, node, 400, "bad-request")
		link.typed.answer(err)
		return err
	}
	n.result(c, node)
	typed := link.typed
	o, err := n.offerLink(c, link.account, secret, false)
	if err != nil {
		typed.answer(err)
		return err
	}
	// Whoever typed the code waits for the same answer.
	o.answered = typed.answered
	return nil
}

// open decrypts the bundle and derives the secret the two sides now share.
func (l *codeLink) open(c *conn, bundle []byte) ([]byte, error) {
	const nonceSize = 12
	if len(bundle) < wrapSalt+nonceSize {
		return nil, fmt.Errorf("%w: the key bundle is short", ErrPairing)
	}
	salt, iv, sealed := bundle[:wrapSalt], bundle[wrapSalt:wrapSalt+nonceSize], bundle[wrapSalt+nonceSize:]
	key, err := hkdf.Key(sha256.New, l.shared, salt, "link_code_pairing_key_bundle_encryption_key", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the bundle's key: %w", err)
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, iv, sealed, nil)
	if err != nil || len(plain) != 96 {
		return nil, fmt.Errorf("%w: the code is wrong", ErrPairing)
	}
	identity, primary, random := plain[:32], plain[32:64], plain[64:]
	if !hmac.Equal(identity, c.link.keys.Identity) || !hmac.Equal(primary, l.account.identity.PublicKey().Bytes()) {
		return nil, fmt.Errorf("%w: the bundle is for other keys", ErrPairing)
	}
	ids, err := agree(l.account.identity, identity)
	if err != nil {
		return nil, err
	}
	secret, err := hkdf.Key(sha256.New, join(l.shared, ids, random), nil, "adv_secret", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the pairing's secret: %w", err)
	}
	return secret, nil
}
