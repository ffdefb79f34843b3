package wanet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/libsignal/util/optional"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// errDecrypt says that a ciphertext can not be read: the sender is asked again.
var errDecrypt = errors.New("wanet: not decryptable")

// errSeen says that a ciphertext was read before.
var errSeen = errors.New("wanet: read before")

// seal encrypts a message for one device, on the session there is or a new one
// from the bundle.
func (v *vault) seal(ctx context.Context, to types.JID, bundle *prekey.Bundle, msg *waE2E.Message) (node waBinary.Node, err error) {
	// libsignal panics on some records; to us that is one message not sent.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("encrypting for %s: %v", to, r)
		}
	}()
	plain, err := proto.Marshal(msg)
	if err != nil {
		return node, fmt.Errorf("encoding a message: %w", err)
	}
	addr := to.SignalAddress()
	b := session.NewBuilderFromSignal(v, addr, v.code)
	if bundle != nil {
		err = b.ProcessBundle(ctx, bundle)
		if errors.Is(err, signalerror.ErrUntrustedIdentity) {
			v.forget(addr)
			err = b.ProcessBundle(ctx, bundle)
		}
		if err != nil {
			return node, fmt.Errorf("starting a session with %s: %w", to, err)
		}
	}
	// 1 to 15 bytes of padding, each of them the length.
	pad := int(v.p.a.n.random(1)[0])%15 + 1
	plain = append(plain, bytes.Repeat([]byte{byte(pad)}, pad)...) //nolint:gosec // below 16
	sealed, err := session.NewCipher(b, addr).Encrypt(ctx, plain)
	if err != nil {
		return node, fmt.Errorf("encrypting for %s: %w", to, err)
	}
	kind := "msg"
	if sealed.Type() == protocol.PREKEY_TYPE {
		kind = "pkmsg"
	}
	return waBinary.Node{
		Tag: "enc", Attrs: waBinary.Attrs{"v": "2", "type": kind}, Content: sealed.Serialize(),
	}, nil
}

// open decrypts what a device sent.
func (v *vault) open(ctx context.Context, from types.JID, enc waBinary.Node) (msg *waE2E.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errDecrypt, r)
		}
	}()
	addr := from.SignalAddress()
	cipher := session.NewCipher(session.NewBuilderFromSignal(v, addr, v.code), addr)
	plain, err := v.decrypt(ctx, cipher, addr, enc)
	if errors.Is(err, signalerror.ErrOldCounter) {
		return nil, errSeen
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDecrypt, err)
	}
	if len(plain) == 0 || int(plain[len(plain)-1]) > len(plain) {
		return nil, fmt.Errorf("%w: the padding is wrong", errDecrypt)
	}
	msg = &waE2E.Message{}
	if err = proto.Unmarshal(plain[:len(plain)-int(plain[len(plain)-1])], msg); err != nil {
		return nil, fmt.Errorf("%w: %w", errDecrypt, err)
	}
	return msg, nil
}

func (v *vault) decrypt(ctx context.Context, cipher *session.Cipher, addr *protocol.SignalAddress, enc waBinary.Node) ([]byte, error) {
	if str(enc, "type") != "pkmsg" {
		msg, err := protocol.NewSignalMessageFromBytes(content(enc), v.code.SignalMessage)
		if err != nil {
			return nil, fmt.Errorf("parsing: %w", err)
		}
		return cipher.Decrypt(ctx, msg) // wrapped by open
	}
	msg, err := protocol.NewPreKeySignalMessageFromBytes(content(enc), v.code.PreKeySignalMessage, v.code.SignalMessage)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	plain, err := cipher.DecryptMessage(ctx, msg)
	if errors.Is(err, signalerror.ErrUntrustedIdentity) {
		v.forget(addr)
		plain, err = cipher.DecryptMessage(ctx, msg)
	}
	return plain, err // wrapped by open
}

// readBundle reads a device's keys as the server or a retry receipt carries them.
func readBundle(device uint16, registration []byte, nodes waBinary.Node) (*prekey.Bundle, error) {
	id := content(nodes.GetChildByTag("identity"))
	signed, ok := readKey(nodes.GetChildByTag("skey"))
	if !ok || len(id) != 32 || len(registration) != 4 {
		return nil, fmt.Errorf("%w: the keys of device %d are incomplete", errStanza, device)
	}
	var (
		oneID  = optional.NewEmptyUint32()
		onePub ecc.ECPublicKeyable
	)
	if one, has := readKey(nodes.GetChildByTag("key")); has {
		oneID, onePub = optional.NewOptionalUint32(one.ID), ecc.NewDjbECPublicKey([32]byte(one.Public))
	}
	return prekey.NewBundle(
		binary.BigEndian.Uint32(registration), uint32(device), oneID, signed.ID,
		onePub, ecc.NewDjbECPublicKey([32]byte(signed.Public)), [64]byte(signed.Signature),
		identity.NewKey(ecc.NewDjbECPublicKey([32]byte(id))),
	), nil
}
