package wanet

import (
	"cmp"
	"crypto/ecdh"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mau.fi/whatsmeow/types"
)

const (
	minDigits   = 8
	maxDigits   = 15
	maxPushName = 100 // characters
	maxDeviceID = 99
)

// Account is one phone number on the network. Its LID is its lasting identity.
type Account struct {
	n        *Network
	phone    string
	lid      string
	identity *ecdh.PrivateKey // of its primary device; signs linked ones

	// guarded by Network.mu
	pushName   string
	nextDevice uint16
	devices    map[uint16]*Device
}

type accountRecord struct {
	Phone      string `json:"phone"`
	LID        string `json:"lid"`
	PushName   string `json:"pushName"`
	Identity   []byte `json:"identity"`
	NextDevice uint16 `json:"nextDevice"`
}

// AddAccount puts a number on the network, or finds it there; a push name that
// is not empty replaces the old one. The phone is written in digits, with the
// country's code and without a plus.
func (n *Network) AddAccount(phone, pushName string) (*Account, error) {
	phone, err := cleanPhone(phone)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(pushName) > maxPushName {
		return nil, fmt.Errorf("%w: a push name has at most %d characters", ErrInput, maxPushName)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var t batch
	a := n.accounts[phone]
	switch {
	case a == nil && len(n.accounts) >= maxAccounts:
		return nil, fmt.Errorf("%w: the network is full", ErrInput)
	case a == nil:
		if a, err = n.newAccount(phone, pushName); err != nil {
			return nil, err
		}
	case pushName == "" || pushName == a.pushName:
		return a, nil
	default:
		a.pushName = pushName
	}
	if err = a.save(&t); err != nil {
		return nil, err
	}
	if err = n.commit(&t); err != nil {
		return nil, fmt.Errorf("adding the account: %w", err)
	}
	n.accounts[phone], n.byLID[a.lid] = a, a
	return a, nil
}

func (n *Network) newAccount(phone, pushName string) (*Account, error) {
	key, err := newKey(n.rand)
	if err != nil {
		return nil, err
	}
	a := &Account{n: n, phone: phone, pushName: pushName, identity: key, nextDevice: 1, devices: map[uint16]*Device{}}
	for a.lid == "" || n.byLID[a.lid] != nil {
		// 15 digits that do not start with 0 and look like no phone number.
		a.lid = strconv.FormatUint(100_000_000_000_000+binary.BigEndian.Uint64(n.random(8))%800_000_000_000_000, 10)
	}
	return a, nil
}

func (a *Account) save(t *batch) error {
	return t.putJSON("acct/"+a.phone, accountRecord{
		Phone: a.phone, LID: a.lid, PushName: a.pushName, Identity: a.identity.Bytes(), NextDevice: a.nextDevice,
	})
}

// Account finds a number on the network.
func (n *Network) Account(phone string) (*Account, bool) {
	phone, err := cleanPhone(phone)
	if err != nil {
		return nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.accounts[phone]
	return a, ok
}

// Accounts lists the numbers of the network in order.
func (n *Network) Accounts() []*Account {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Values(n.accounts), func(a, b *Account) int { return cmp.Compare(a.phone, b.phone) })
}

// Phone is the number, in digits.
func (a *Account) Phone() string { return a.phone }

// LID is the user part of the account's hidden id.
func (a *Account) LID() string { return a.lid }

// PushName is the name others see.
func (a *Account) PushName() string {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	return a.pushName
}

// Device finds a device: 0 is the phone, the others are linked clients.
func (a *Account) Device(id uint16) (*Device, bool) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	d, ok := a.devices[id]
	return d, ok
}

// Devices lists the account's devices in order of their ids.
func (a *Account) Devices() []*Device {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	return a.list()
}

func (a *Account) list() []*Device {
	return slices.SortedFunc(maps.Values(a.devices), func(a, b *Device) int { return cmp.Compare(a.id, b.id) })
}

// jid addresses a device of the account by number or LID, as server says.
func (a *Account) jid(server string, device uint16) types.JID {
	j := types.JID{User: a.phone, Device: device, Server: types.DefaultUserServer}
	if server == types.HiddenUserServer {
		j.User, j.Server = a.lid, types.HiddenUserServer
	}
	return j
}

// resolve finds the account a JID names. The caller holds n.mu.
func (n *Network) resolve(jid types.JID) *Account {
	switch jid.Server {
	case types.HiddenUserServer:
		return n.byLID[jid.User]
	case types.DefaultUserServer, types.LegacyUserServer:
		return n.accounts[jid.User]
	default:
		return nil
	}
}

// find reads an address as people write it: digits, +digits, or a JID. The
// caller holds n.mu.
func (n *Network) find(to string) (*Account, error) {
	if strings.Contains(to, "@") {
		jid, err := types.ParseJID(to)
		if err != nil {
			return nil, fmt.Errorf("%w: address: %w", ErrInput, err)
		}
		if a := n.resolve(jid); a != nil {
			return a, nil
		}
		return nil, ErrNoAccount
	}
	phone, err := cleanPhone(to)
	if err != nil {
		return nil, err
	}
	if a := n.accounts[phone]; a != nil {
		return a, nil
	}
	return nil, ErrNoAccount
}

// cleanPhone drops what people put between digits and checks the rest.
func cleanPhone(s string) (string, error) {
	digits := strings.NewReplacer("+", "", " ", "", "-", "", "(", "", ")", "").Replace(s)
	if len(digits) < minDigits || len(digits) > maxDigits || digits[0] == '0' {
		return "", fmt.Errorf("%w: a phone has %d to %d digits and starts with its country's code", ErrInput, minDigits, maxDigits)
	}
	if strings.Trim(digits, "0123456789") != "" {
		return "", fmt.Errorf("%w: a phone is written in digits", ErrInput)
	}
	if (types.JID{User: digits, Server: types.DefaultUserServer}).IsBot() {
		return "", fmt.Errorf("%w: clients take this number for a bot of WhatsApp's own", ErrInput)
	}
	return digits, nil
}

// remove takes an account off the network with all it owns. The caller holds n.mu.
func (n *Network) remove(a *Account) error {
	var t batch
	for _, d := range a.devices {
		if d.conn != nil {
			d.conn.finish(streamErrorConflict("401", "device_removed"))
			d.conn = nil
		}
		if d.phone != nil {
			d.phone.retire()
		}
	}
	for _, table := range []string{"acct/", "phone/"} {
		t.del(table + a.phone)
	}
	for _, table := range []string{"dev/", "otk/", "q/", "pk/", "ses/", "idk/", "msg/"} {
		for _, key := range n.j.scan(table + a.phone + "/") {
			t.del(key)
		}
	}
	if err := n.commit(&t); err != nil {
		return fmt.Errorf("removing the account: %w", err)
	}
	delete(n.accounts, a.phone)
	delete(n.byLID, a.lid)
	a.devices = map[uint16]*Device{}
	return nil
}

// load rebuilds the network from its journal.
func (n *Network) load() error {
	for _, key := range n.j.scan("acct/") {
		var r accountRecord
		if err := json.Unmarshal(n.j.get(key), &r); err != nil {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		id, err := ecdh.X25519().NewPrivateKey(r.Identity)
		if err != nil {
			return fmt.Errorf("reading the identity in %s: %w", key, err)
		}
		a := &Account{
			n: n, phone: r.Phone, lid: r.LID, pushName: r.PushName, identity: id,
			nextDevice: r.NextDevice, devices: map[uint16]*Device{},
		}
		n.accounts[a.phone], n.byLID[a.lid] = a, a
	}
	if err := n.loadDevices(); err != nil {
		return err
	}
	return n.loadPhones()
}
