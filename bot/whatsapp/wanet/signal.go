package wanet

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.mau.fi/libsignal/ecc"
	groupRecord "go.mau.fi/libsignal/groups/state/record"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/serialize"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/libsignal/state/store"
)

// errNoGroups is for the parts of a Signal store that one-to-one chats never use.
var errNoGroups = errors.New("wanet: phones keep no such record")

// vault is a phone's Signal store for the length of one operation: it reads what
// is durable, and what it writes becomes durable with the batch, or not at all.
type vault struct {
	p    *Phone
	t    *batch
	code *serialize.Serializer
}

var _ store.SignalProtocol = (*vault)(nil)

func (p *Phone) vault(t *batch) *vault {
	return &vault{p: p, t: t, code: serialize.NewProtoBufSerializer()}
}

func (v *vault) key(table, rest string) string { return table + "/" + v.p.a.phone + "/" + rest }

func (v *vault) get(key string) []byte {
	if val, ok := v.t.ops[key]; ok {
		return val
	}
	return v.p.a.n.j.get(key)
}

// GetIdentityKeyPair is the account's own identity.
func (v *vault) GetIdentityKeyPair() *identity.KeyPair {
	priv := v.p.a.identity
	return identity.NewKeyPair(
		identity.NewKey(ecc.NewDjbECPublicKey([32]byte(priv.PublicKey().Bytes()))),
		ecc.NewDjbECPrivateKey([32]byte(priv.Bytes())),
	)
}

// GetLocalRegistrationID is the phone's registration.
func (v *vault) GetLocalRegistrationID() uint32 { return v.p.d.keys.Registration }

// SaveIdentity remembers a peer's identity.
func (v *vault) SaveIdentity(_ context.Context, addr *protocol.SignalAddress, key *identity.Key) error {
	pub := key.PublicKey().PublicKey()
	v.t.put(v.key("idk", addr.String()), pub[:])
	return nil
}

// IsTrustedIdentity trusts on first use.
func (v *vault) IsTrustedIdentity(_ context.Context, addr *protocol.SignalAddress, key *identity.Key) (bool, error) {
	kept := v.get(v.key("idk", addr.String()))
	pub := key.PublicKey().PublicKey()
	return kept == nil || string(kept) == string(pub[:]), nil
}

// forget drops a peer's identity and session: it has a new phone.
func (v *vault) forget(addr *protocol.SignalAddress) {
	v.t.del(v.key("idk", addr.String()))
	v.t.del(v.key("ses", addr.String()))
}

// LoadPreKey finds a one-time key of ours.
func (v *vault) LoadPreKey(_ context.Context, id uint32) (*record.PreKey, error) {
	pair, err := v.pair(v.get(v.key("pk", strconv.FormatUint(uint64(id), 10))))
	if err != nil || pair == nil {
		return nil, err
	}
	return record.NewPreKey(id, pair, v.code.PreKeyRecord), nil
}

func (v *vault) pair(raw []byte) (*ecc.ECKeyPair, error) {
	if raw == nil {
		return nil, nil // libsignal's way to say that there is none
	}
	if len(raw) != 64 {
		return nil, fmt.Errorf("a kept key has %d bytes", len(raw))
	}
	return ecc.NewECKeyPair(ecc.NewDjbECPublicKey([32]byte(raw[:32])), ecc.NewDjbECPrivateKey([32]byte(raw[32:]))), nil
}

// StorePreKey is not used: keys are made by the phone itself.
func (v *vault) StorePreKey(context.Context, uint32, *record.PreKey) error { return errNoGroups }

// ContainsPreKey says whether a one-time key of ours is still unused.
func (v *vault) ContainsPreKey(_ context.Context, id uint32) (bool, error) {
	return v.get(v.key("pk", strconv.FormatUint(uint64(id), 10))) != nil, nil
}

// RemovePreKey drops a one-time key that was used.
func (v *vault) RemovePreKey(_ context.Context, id uint32) error {
	v.t.del(v.key("pk", strconv.FormatUint(uint64(id), 10)))
	return nil
}

// LoadSession reads the session with a peer's device; a new one if there is none.
func (v *vault) LoadSession(_ context.Context, addr *protocol.SignalAddress) (*record.Session, error) {
	raw := v.get(v.key("ses", addr.String()))
	if raw == nil {
		return record.NewSession(v.code.Session, v.code.State), nil
	}
	ses, err := record.NewSessionFromBytes(raw, v.code.Session, v.code.State)
	if err != nil {
		return nil, fmt.Errorf("reading the session with %s: %w", addr.String(), err)
	}
	return ses, nil
}

// GetSubDeviceSessions is not used.
func (v *vault) GetSubDeviceSessions(context.Context, string) ([]uint32, error) {
	return nil, errNoGroups
}

// StoreSession keeps a session's new state.
func (v *vault) StoreSession(_ context.Context, addr *protocol.SignalAddress, ses *record.Session) error {
	v.t.put(v.key("ses", addr.String()), ses.Serialize())
	return nil
}

// ContainsSession says whether there is a session with a peer's device.
func (v *vault) ContainsSession(_ context.Context, addr *protocol.SignalAddress) (bool, error) {
	return v.get(v.key("ses", addr.String())) != nil, nil
}

// DeleteSession drops a session.
func (v *vault) DeleteSession(_ context.Context, addr *protocol.SignalAddress) error {
	v.t.del(v.key("ses", addr.String()))
	return nil
}

// DeleteAllSessions is not used.
func (v *vault) DeleteAllSessions(context.Context) error { return errNoGroups }

// LoadSignedPreKey finds our signed key.
func (v *vault) LoadSignedPreKey(_ context.Context, id uint32) (*record.SignedPreKey, error) {
	if id != v.p.d.keys.Signed.ID {
		return nil, nil // libsignal's way to say that there is none
	}
	pair, err := v.pair(v.p.rec.Signed)
	if err != nil {
		return nil, err
	}
	return record.NewSignedPreKey(id, 0, pair, [64]byte(v.p.d.keys.Signed.Signature), v.code.SignedPreKeyRecord), nil
}

// LoadSignedPreKeys is not used.
func (v *vault) LoadSignedPreKeys(context.Context) ([]*record.SignedPreKey, error) {
	return nil, errNoGroups
}

// StoreSignedPreKey is not used.
func (v *vault) StoreSignedPreKey(context.Context, uint32, *record.SignedPreKey) error {
	return errNoGroups
}

// ContainsSignedPreKey says whether it is our signed key.
func (v *vault) ContainsSignedPreKey(_ context.Context, id uint32) (bool, error) {
	return id == v.p.d.keys.Signed.ID, nil
}

// RemoveSignedPreKey is not used.
func (v *vault) RemoveSignedPreKey(context.Context, uint32) error { return errNoGroups }

// StoreSenderKey is not used.
func (v *vault) StoreSenderKey(context.Context, *protocol.SenderKeyName, *groupRecord.SenderKey) error {
	return errNoGroups
}

// LoadSenderKey is not used.
func (v *vault) LoadSenderKey(context.Context, *protocol.SenderKeyName) (*groupRecord.SenderKey, error) {
	return nil, errNoGroups
}
