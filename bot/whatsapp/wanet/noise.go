package wanet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waCert"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"google.golang.org/protobuf/proto"
)

// Serial numbers of the certificate chain: root 0 signs 1, 1 signs 2.
const (
	rootSerial = 0
	midSerial  = 1
	leafSerial = 2
	// Dates are checked by the client against its clock, which may be a test's.
	certNotBefore = 1
	certNotAfter  = 7258118400 // the year 2200
)

// trust is what the server proves itself with: its static key and the chain
// that leads from it to the network's root.
type trust struct {
	root   [32]byte // public
	static *ecdh.PrivateKey
	chain  []byte
}

// newTrust makes a fresh server key and has it certified by the root.
func newTrust(rootPriv [32]byte, rnd io.Reader) (*trust, error) {
	root, err := ecdh.X25519().NewPrivateKey(rootPriv[:])
	if err != nil {
		return nil, fmt.Errorf("loading the root key: %w", err)
	}
	mid, err := newKey(rnd)
	if err != nil {
		return nil, err
	}
	static, err := newKey(rnd)
	if err != nil {
		return nil, err
	}
	midCert, err := certify(root, midSerial, rootSerial, mid.PublicKey().Bytes())
	if err != nil {
		return nil, err
	}
	leafCert, err := certify(mid, leafSerial, midSerial, static.PublicKey().Bytes())
	if err != nil {
		return nil, err
	}
	chain, err := proto.Marshal(&waCert.CertChain{Intermediate: midCert, Leaf: leafCert})
	if err != nil {
		return nil, fmt.Errorf("encoding the certificate chain: %w", err)
	}
	return &trust{root: [32]byte(root.PublicKey().Bytes()), static: static, chain: chain}, nil
}

func certify(by *ecdh.PrivateKey, serial, issuer uint32, key []byte) (*waCert.CertChain_NoiseCertificate, error) {
	details, err := proto.Marshal(&waCert.CertChain_NoiseCertificate_Details{
		Serial: &serial, IssuerSerial: &issuer, Key: key,
		NotBefore: new(uint64(certNotBefore)), NotAfter: new(uint64(certNotAfter)),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding certificate %d: %w", serial, err)
	}
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey([32]byte(by.Bytes())), details)
	return &waCert.CertChain_NoiseCertificate{Details: details, Signature: sig[:]}, nil
}

// newKey draws a clamped X25519 key from rnd (ecdh's own generator may read
// more bytes than it uses, which would make a seeded run unrepeatable).
func newKey(rnd io.Reader) (*ecdh.PrivateKey, error) {
	var b [32]byte
	if _, err := io.ReadFull(rnd, b[:]); err != nil {
		return nil, fmt.Errorf("drawing a key: %w", err)
	}
	b[0] &= 248
	b[31] = b[31]&127 | 64
	key, err := ecdh.X25519().NewPrivateKey(b[:])
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

// handshake is the responder's side of Noise_XX_25519_AESGCM_SHA256.
type handshake struct {
	hash  [32]byte
	salt  []byte
	aead  cipher.AEAD
	count uint32
}

func newHandshake() (*handshake, error) {
	h := &handshake{salt: []byte(socket.NoiseStartPattern)}
	copy(h.hash[:], socket.NoiseStartPattern)
	var err error
	if h.aead, err = newAEAD(h.hash[:]); err != nil {
		return nil, err
	}
	h.mixHash(socket.WAConnHeader)
	return h, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("preparing a cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("preparing a cipher: %w", err)
	}
	return aead, nil
}

func nonce(n uint32) []byte {
	var iv [12]byte
	binary.BigEndian.PutUint32(iv[8:], n)
	return iv[:]
}

func (h *handshake) mixHash(b []byte) {
	h.hash = sha256.Sum256(append(h.hash[:], b...))
}

func (h *handshake) expand(secret []byte) (first, second []byte, err error) {
	out, err := hkdf.Key(sha256.New, secret, h.salt, "", 64)
	if err != nil {
		return nil, nil, fmt.Errorf("deriving keys: %w", err)
	}
	return out[:32], out[32:], nil
}

func (h *handshake) mixKey(priv *ecdh.PrivateKey, pub []byte) error {
	secret, err := agree(priv, pub)
	if err != nil {
		return err
	}
	salt, next, err := h.expand(secret)
	if err != nil {
		return err
	}
	h.salt, h.count = salt, 0
	h.aead, err = newAEAD(next)
	return err
}

func (h *handshake) seal(plain []byte) []byte {
	out := h.aead.Seal(nil, nonce(h.count), plain, h.hash[:])
	h.count++
	h.mixHash(out)
	return out
}

func (h *handshake) open(sealed []byte) ([]byte, error) {
	plain, err := h.aead.Open(nil, nonce(h.count), sealed, h.hash[:])
	if err != nil {
		return nil, fmt.Errorf("opening a handshake part: %w", err)
	}
	h.count++
	h.mixHash(sealed)
	return plain, nil
}

// hello answers the client's first message with ours.
func (h *handshake) hello(t *trust, eph *ecdh.PrivateKey, frame []byte) ([]byte, error) {
	var msg waWa6.HandshakeMessage
	if err := proto.Unmarshal(frame, &msg); err != nil {
		return nil, fmt.Errorf("decoding the client's hello: %w", err)
	}
	clientEph := msg.GetClientHello().GetEphemeral()
	if len(clientEph) != 32 {
		return nil, errors.New("the client's hello has no ephemeral key")
	}
	h.mixHash(clientEph)
	h.mixHash(eph.PublicKey().Bytes())
	if err := h.mixKey(eph, clientEph); err != nil {
		return nil, err
	}
	static := h.seal(t.static.PublicKey().Bytes())
	if err := h.mixKey(t.static, clientEph); err != nil {
		return nil, err
	}
	reply, err := proto.Marshal(&waWa6.HandshakeMessage{ServerHello: &waWa6.HandshakeMessage_ServerHello{
		Ephemeral: eph.PublicKey().Bytes(), Static: static, Payload: h.seal(t.chain),
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding our hello: %w", err)
	}
	return reply, nil
}

// finish reads the client's static key and payload and yields the final ciphers.
func (h *handshake) finish(eph *ecdh.PrivateKey, frame []byte) (*tunnel, error) {
	var msg waWa6.HandshakeMessage
	if err := proto.Unmarshal(frame, &msg); err != nil {
		return nil, fmt.Errorf("decoding the client's finish: %w", err)
	}
	static, err := h.open(msg.GetClientFinish().GetStatic())
	if err != nil {
		return nil, err
	}
	if err = h.mixKey(eph, static); err != nil {
		return nil, err
	}
	raw, err := h.open(msg.GetClientFinish().GetPayload())
	if err != nil {
		return nil, err
	}
	s := &tunnel{static: [32]byte(static)}
	if err = proto.Unmarshal(raw, &s.payload); err != nil {
		return nil, fmt.Errorf("decoding the client's payload: %w", err)
	}
	in, out, err := h.expand(nil)
	if err != nil {
		return nil, err
	}
	if s.in, err = newAEAD(in); err != nil {
		return nil, err
	}
	s.out, err = newAEAD(out)
	return s, err
}

// tunnel holds the two directions' ciphers after the handshake. Each direction
// belongs to one goroutine.
type tunnel struct {
	static  [32]byte // the client's Noise key
	payload waWa6.ClientPayload
	in, out cipher.AEAD
	inN     uint32
	outN    uint32
}

func (s *tunnel) decrypt(frame []byte) ([]byte, error) {
	plain, err := s.in.Open(nil, nonce(s.inN), frame, nil)
	if err != nil {
		return nil, fmt.Errorf("opening a frame: %w", err)
	}
	s.inN++
	return plain, nil
}

func (s *tunnel) encrypt(plain []byte) []byte {
	out := s.out.Seal(nil, nonce(s.outN), plain, nil)
	s.outN++
	return out
}
