package wanet

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// lowKeys is when a device is told to bring more one-time keys.
const lowKeys = 5

// Device is one device of an account, with the keys the server hands out for it
// and what waits to be delivered to it.
type Device struct {
	a  *Account
	id uint16

	// guarded by Network.mu
	keys    deviceKeys
	oneTime []oneTimeKey
	queue   []*item
	nextSeq uint64
	conn    *conn  // a linked client, when it is connected
	phone   *Phone // device 0, when this package runs it
	toldLow bool
}

type signedKey struct {
	ID        uint32 `json:"id"`
	Public    []byte `json:"public"`
	Signature []byte `json:"signature"`
}

type oneTimeKey struct {
	id     uint32
	public []byte
}

// deviceKeys is the durable part of a device.
type deviceKeys struct {
	Noise        []byte    `json:"noise,omitempty"`
	Identity     []byte    `json:"identity"`
	Registration uint32    `json:"registration"`
	Signed       signedKey `json:"signed"`
	Platform     string    `json:"platform,omitempty"`
}

func (d *Device) key(table string) string {
	return fmt.Sprintf("%s/%s/%03d", table, d.a.phone, d.id)
}

func (d *Device) save(t *batch) error { return t.putJSON(d.key("dev"), d.keys) }

// addOneTime adds one-time keys and remembers them. The caller holds n.mu.
func (d *Device) addOneTime(t *batch, keys []oneTimeKey) {
	have := make(map[uint32]bool, len(d.oneTime))
	for _, k := range d.oneTime {
		have[k.id] = true
	}
	for _, k := range keys {
		if !have[k.id] {
			d.oneTime = append(d.oneTime, k)
		}
		t.put(d.key("otk")+fmt.Sprintf("/%08d", k.id), k.public)
	}
	d.toldLow = false
}

// takeOneTime hands out a key that nobody will be given again.
func (d *Device) takeOneTime(t *batch) (oneTimeKey, bool) {
	if len(d.oneTime) == 0 {
		return oneTimeKey{}, false
	}
	k := d.oneTime[0]
	d.oneTime = d.oneTime[1:]
	t.del(d.key("otk") + fmt.Sprintf("/%08d", k.id))
	if len(d.oneTime) < lowKeys && !d.toldLow && d.phone == nil {
		d.toldLow = true
		d.a.n.tellLow(t, d)
	}
	return k, true
}

// tellLow queues the server's word that a device should bring more keys.
func (n *Network) tellLow(t *batch, d *Device) {
	_ = n.enqueue(t, d, waBinary.Node{
		Tag: "notification",
		Attrs: waBinary.Attrs{
			"id": n.newID(), "from": types.ServerJID, "type": "encrypt", "t": n.now().Unix(),
		},
		Content: []waBinary.Node{{Tag: "count", Attrs: waBinary.Attrs{"value": len(d.oneTime)}}},
	})
}

func (n *Network) loadDevices() error {
	for _, key := range n.j.scan("dev/") {
		a, id := n.ownerOf(key)
		if a == nil {
			continue
		}
		d := &Device{a: a, id: id}
		if err := json.Unmarshal(n.j.get(key), &d.keys); err != nil {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		a.devices[id] = d
	}
	for _, key := range n.j.scan("otk/") {
		if a, id := n.ownerOf(key); a != nil && a.devices[id] != nil {
			d := a.devices[id]
			d.oneTime = append(d.oneTime, oneTimeKey{id: uint32(lastNumber(key)), public: n.j.get(key)}) //nolint:gosec // ids have 24 bits
		}
	}
	for _, key := range n.j.scan("q/") {
		a, id := n.ownerOf(key)
		if a == nil || a.devices[id] == nil {
			continue
		}
		d := a.devices[id]
		it := &item{seq: lastNumber(key)}
		if err := it.load(n.j.get(key)); err != nil {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		d.queue = append(d.queue, it)
		d.nextSeq = it.seq + 1
	}
	return nil
}

// ownerOf reads account and device out of a key of the journal; nil if the account
// is gone.
func (n *Network) ownerOf(key string) (*Account, uint16) {
	parts := strings.Split(key, "/")
	if len(parts) < 3 {
		return nil, 0
	}
	id, err := strconv.ParseUint(parts[2], 10, 16)
	if err != nil {
		return nil, 0
	}
	return n.accounts[parts[1]], uint16(id)
}

func lastNumber(key string) uint64 {
	v, _ := strconv.ParseUint(key[strings.LastIndexByte(key, '/')+1:], 10, 64)
	return v
}

// ID is the device's number within its account.
func (d *Device) ID() uint16 { return d.id }

// Online says whether a linked client is logged in; a phone always is.
func (d *Device) Online() bool {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	return d.phone != nil || d.conn != nil && d.conn.active
}

// Pending counts stanzas the device has not acknowledged: all, or those of one
// class ("message", "receipt", "notification").
func (d *Device) Pending(class string) int {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	count := 0
	for _, it := range d.queue {
		if class == "" || it.Class == class {
			count++
		}
	}
	return count
}

// PreKeys counts the one-time keys the server can still hand out.
func (d *Device) PreKeys() int {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	return len(d.oneTime)
}

// CutPreKeys throws away one-time keys until n are left and tells the device.
func (d *Device) CutPreKeys(n int) error {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	var t batch
	for len(d.oneTime) > max(n, 0) {
		last := d.oneTime[len(d.oneTime)-1]
		d.oneTime = d.oneTime[:len(d.oneTime)-1]
		t.del(d.key("otk") + fmt.Sprintf("/%08d", last.id))
	}
	if d.phone == nil {
		d.a.n.tellLow(&t, d)
	}
	return d.a.n.commit(&t)
}

// Drop cuts the device's connection without a word.
func (d *Device) Drop() {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	if d.conn != nil {
		d.conn.close()
	}
}

// StreamError ends the device's connection with a code, as the server does
// before a restart (503).
func (d *Device) StreamError(code int) {
	d.finish(waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": strconv.Itoa(code)}})
}

// Replace ends the device's connection as if another one had taken its place.
func (d *Device) Replace() { d.finish(streamErrorConflict("", "replaced")) }

func (d *Device) finish(last waBinary.Node) {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	if d.conn != nil {
		d.conn.finish(last)
	}
}

// Logout unlinks the device, as the owner of the phone can.
func (d *Device) Logout() error {
	d.a.n.mu.Lock()
	defer d.a.n.mu.Unlock()
	return d.unlink(true)
}

// unlink forgets the device and its keys. The caller holds n.mu.
func (d *Device) unlink(tell bool) error {
	n := d.a.n
	if d.phone != nil {
		return fmt.Errorf("%w: a phone can not be unlinked from itself", ErrInput)
	}
	var t batch
	t.del(d.key("dev"))
	for _, table := range []string{"otk", "q"} {
		for _, key := range n.j.scan(d.key(table) + "/") {
			t.del(key)
		}
	}
	if err := n.commit(&t); err != nil {
		return fmt.Errorf("unlinking the device: %w", err)
	}
	delete(d.a.devices, d.id)
	d.queue = nil
	if d.conn != nil && tell {
		d.conn.finish(streamErrorConflict("401", "device_removed"))
	}
	d.conn = nil // what it still says is not a device's word any more
	return nil
}

func streamErrorConflict(code, kind string) waBinary.Node {
	return waBinary.Node{
		Tag:     "stream:error",
		Attrs:   waBinary.Attrs{"code": code},
		Content: []waBinary.Node{{Tag: "conflict", Attrs: waBinary.Attrs{"type": kind}}},
	}
}
