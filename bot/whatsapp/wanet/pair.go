package wanet

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mau.fi/libsignal/ecc"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

const (
	refCount = 6
	// How long a connection may show codes: the first for 60 s, then five for 20 s.
	linkWindow = 160 * time.Second
	linkWait   = 30 * time.Second // for the client's part once a phone has scanned
)

var (
	// ErrNoPairing says that nobody on the network shows this QR text or code.
	ErrNoPairing = errors.New("wanet: nobody waits to be linked with this")
	// ErrPairing says that a client did not complete a pairing.
	ErrPairing = errors.New("wanet: the pairing failed")
)

// Prefixes of what the two sides of a pairing sign.
var (
	signAccount = []byte{6, 0}
	signDevice  = []byte{6, 1}
)

// linking is the state of a connection that wants to become a device.
type linking struct {
	keys deviceKeys
	refs []string
	code *codeLink // pairing by an 8-letter code, once asked for
	last *offer    // made by a phone that scanned or typed
}

// offer is a phone's half of a pairing, waiting for the client's.
type offer struct {
	account  *Account
	device   uint16
	iq       string
	details  []byte
	answered chan error // has room for the one answer
}

// startLinking greets a client that has no account yet with refs for QR codes.
// The caller holds n.mu.
func (n *Network) startLinking(c *conn, d *waWa6.ClientPayload_DevicePairingRegistrationData) error {
	if len(d.GetERegid()) != 4 || len(d.GetEIdent()) != 32 || len(d.GetESkeyID()) != 3 ||
		len(d.GetESkeyVal()) != 32 || len(d.GetESkeySig()) != 64 {
		return fmt.Errorf("%w: the registration is incomplete", ErrPairing)
	}
	link := &linking{keys: deviceKeys{
		Noise: c.s.static[:], Identity: d.GetEIdent(), Registration: binary.BigEndian.Uint32(d.GetERegid()),
		Signed: signedKey{
			ID:     binary.BigEndian.Uint32(append([]byte{0}, d.GetESkeyID()...)),
			Public: d.GetESkeyVal(), Signature: d.GetESkeySig(),
		},
		Platform: c.s.payload.GetUserAgent().GetPlatform().String(),
	}}
	refs := make([]waBinary.Node, refCount)
	for i := range refs {
		ref := "2@" + base64.RawURLEncoding.EncodeToString(n.random(24))
		link.refs = append(link.refs, ref)
		n.refs[ref] = c
		refs[i] = waBinary.Node{Tag: "ref", Content: []byte(ref)}
	}
	c.link = link
	c.send(waBinary.Node{
		Tag:     "iq",
		Attrs:   waBinary.Attrs{"from": types.ServerJID, "type": "set", "id": n.newID(), "xmlns": "md"},
		Content: []waBinary.Node{{Tag: "pair-device", Content: refs}},
	})
	c.later(linkWindow, c.close)
	return nil
}

// unlinkRefs forgets what a connection offered. The caller holds n.mu.
func (n *Network) unlinkRefs(c *conn) {
	if c.link == nil {
		return
	}
	for _, ref := range c.link.refs {
		delete(n.refs, ref)
	}
	if c.link.last != nil {
		c.link.last.answer(fmt.Errorf("%w: the client hung up", ErrPairing))
	}
	if c.link.code != nil && c.link.code.typed != nil {
		c.link.code.typed.answer(fmt.Errorf("%w: the client hung up", ErrPairing))
	}
}

func (o *offer) answer(err error) {
	select {
	case o.answered <- err:
	default: // it was answered
	}
}

// ScanQR links the client that shows the QR text, as a phone of this account's
// owner would. It returns when the client has confirmed.
func (a *Account) ScanQR(text string) error { return a.scan(text, false) }

// ScanQRAsPhone links the client as the account's primary phone, device 0: for
// tests that want a stock client in a payer's place.
func (a *Account) ScanQRAsPhone(text string) error { return a.scan(text, true) }

func (a *Account) scan(text string, primary bool) error {
	parts := strings.Split(text[strings.IndexByte(text, '#')+1:], ",")
	if len(parts) < 4 {
		return fmt.Errorf("%w: this is not the text of a pairing QR code", ErrInput)
	}
	var keys [3][]byte
	for i := range keys {
		raw, err := base64.StdEncoding.DecodeString(parts[i+1])
		if err != nil || len(raw) != 32 {
			return fmt.Errorf("%w: a key in the QR text is damaged", ErrInput)
		}
		keys[i] = raw
	}
	n := a.n
	n.mu.Lock()
	c := n.refs[parts[0]]
	if c == nil || !hmac.Equal(keys[0], c.link.keys.Noise) || !hmac.Equal(keys[1], c.link.keys.Identity) {
		n.mu.Unlock()
		return ErrNoPairing
	}
	o, err := n.offerLink(c, a, keys[2], primary)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	return n.await(o)
}

func (n *Network) await(o *offer) error {
	timer := time.NewTimer(linkWait)
	defer timer.Stop()
	select {
	case err := <-o.answered:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: the client did not answer", ErrPairing)
	case <-n.done:
		return ErrClosed
	}
}

// offerLink signs the client's identity for the account and sends it what it
// needs. secret proves to the client that its own code was read. The caller
// holds n.mu.
func (n *Network) offerLink(c *conn, a *Account, secret []byte, primary bool) (*offer, error) {
	if c.link.last != nil {
		return nil, fmt.Errorf("%w: another phone was quicker", ErrPairing)
	}
	id := a.nextDevice
	switch {
	case primary:
		id = 0
	case id > maxDeviceID:
		return nil, fmt.Errorf("%w: the account has had too many devices", ErrPairing)
	default:
		a.nextDevice++ // never given again, even if this pairing fails
	}
	if a.devices[id] != nil {
		return nil, fmt.Errorf("%w: the account has that device already", ErrPairing)
	}
	details, err := proto.Marshal(&waAdv.ADVDeviceIdentity{
		RawID: new(binary.BigEndian.Uint32(n.random(4))), Timestamp: new(uint64(n.now().Unix())), //nolint:gosec // after 1970
		KeyIndex: new(uint32(id)), AccountType: waAdv.ADVEncryptionType_E2EE.Enum(),
		DeviceType: waAdv.ADVEncryptionType_E2EE.Enum(),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the device's identity: %w", err)
	}
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey([32]byte(a.identity.Bytes())), join(signAccount, details, c.link.keys.Identity))
	signed, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentity{
		Details: details, AccountSignatureKey: a.identity.PublicKey().Bytes(), AccountSignature: sig[:],
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the signed identity: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(signed)
	sealed, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentityHMAC{Details: signed, HMAC: mac.Sum(nil)})
	if err != nil {
		return nil, fmt.Errorf("encoding the sealed identity: %w", err)
	}
	var t batch
	if err = a.save(&t); err == nil {
		err = n.commit(&t)
	}
	if err != nil {
		return nil, fmt.Errorf("saving the account: %w", err)
	}
	o := &offer{account: a, device: id, iq: n.newID(), details: details, answered: make(chan error, 1)}
	c.link.last = o
	c.send(waBinary.Node{
		Tag: "iq",
		Attrs: waBinary.Attrs{
			"from": types.ServerJID, "type": "set", "id": o.iq, "xmlns": "md", "t": n.now().Unix(),
		},
		Content: []waBinary.Node{{Tag: "pair-success", Content: []waBinary.Node{
			{Tag: "device-identity", Content: sealed},
			{Tag: "device", Attrs: waBinary.Attrs{
				"jid": a.jid(types.DefaultUserServer, id), "lid": a.jid(types.HiddenUserServer, id),
			}},
			{Tag: "platform", Attrs: waBinary.Attrs{"name": "android"}},
		}}},
	})
	return o, nil
}

// linkAnswer takes a client's answer to a request of ours: only the one that
// completes a pairing matters. The caller holds n.mu.
func (n *Network) linkAnswer(c *conn, node waBinary.Node) error {
	if c.link == nil || c.link.last == nil || str(node, "id") != c.link.last.iq {
		return nil
	}
	o := c.link.last
	if str(node, "type") == "error" {
		o.answer(fmt.Errorf("%w: the client refused", ErrPairing))
		return nil
	}
	if err := n.completeLink(c, o, node); err != nil {
		o.answer(err)
		return err
	}
	o.answer(nil)
	return nil
}

func (n *Network) completeLink(c *conn, o *offer, node waBinary.Node) error {
	var signed waAdv.ADVSignedDeviceIdentity
	sign := node.GetChildByTag("pair-device-sign")
	raw := content(sign.GetChildByTag("device-identity"))
	if err := proto.Unmarshal(raw, &signed); err != nil || len(signed.GetDeviceSignature()) != 64 {
		return fmt.Errorf("%w: the client's signature is missing", ErrPairing)
	}
	a := o.account
	message := join(signDevice, o.details, c.link.keys.Identity, a.identity.PublicKey().Bytes())
	if !ecc.VerifySignature(ecc.NewDjbECPublicKey([32]byte(c.link.keys.Identity)), message, [64]byte(signed.GetDeviceSignature())) {
		return fmt.Errorf("%w: the client's signature is wrong", ErrPairing)
	}
	if n.accounts[a.phone] != a || a.devices[o.device] != nil {
		return fmt.Errorf("%w: the account changed meanwhile", ErrPairing)
	}
	d := &Device{a: a, id: o.device, keys: c.link.keys}
	var t batch
	if err := d.save(&t); err != nil {
		return err
	}
	if err := n.commit(&t); err != nil {
		return fmt.Errorf("saving the device: %w", err)
	}
	a.devices[o.device] = d
	// The client hangs up by itself and logs in. If the server did it, the
	// client might never read this and stay away for good.
	c.finish(waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": "515"}})
	return nil
}

// handleMD serves requests about linked devices. The caller holds n.mu.
func (n *Network) handleMD(c *conn, node waBinary.Node) error {
	if reg, ok := node.GetOptionalChildByTag("link_code_companion_reg"); ok && c.link != nil {
		switch str(reg, "stage") {
		case "companion_hello":
			return n.codeHello(c, node, reg)
		case "companion_finish":
			return n.codeFinish(c, node, reg)
		}
	}
	if _, ok := node.GetOptionalChildByTag("remove-companion-device"); ok && c.dev != nil {
		if err := c.dev.unlink(false); err != nil {
			n.refuse(c, node, 400, "bad-request")
			return err
		}
		// No word that the device was removed: the client does that by itself.
		c.finish(waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{
			"from": types.ServerJID, "type": "result", "id": str(node, "id"),
		}})
		return nil
	}
	n.refuse(c, node, 400, "bad-request")
	return nil
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// agree is an X25519 exchange between a key of ours and a public one.
func agree(priv *ecdh.PrivateKey, pub []byte) ([]byte, error) {
	key, err := ecdh.X25519().NewPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("reading a public key: %w", err)
	}
	secret, err := priv.ECDH(key)
	if err != nil {
		return nil, fmt.Errorf("agreeing on a secret: %w", err)
	}
	return secret, nil
}
