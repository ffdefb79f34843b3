package wanet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// Where an item of a queue is. Only waiting ones are picked up.
type place int

const (
	waiting place = iota
	onLine        // handed to the connection or the phone, not acked
	parked        // a fault keeps it back
)

// item is a stanza that stays until its device has acknowledged it.
type item struct {
	seq uint64

	Class string `json:"class"` // message, receipt, notification
	ID    string `json:"id"`
	From  string `json:"from"`
	Type  string `json:"type,omitempty"`
	Raw   []byte `json:"raw"` // the stanza, in the wire's encoding

	// not kept: they belong to a connection or a fault
	at       place
	held     bool // until Release
	pass     bool // faults had their turn
	attempts int
	offline  int // its number among what waited before the login, from 1
}

func (it *item) load(raw []byte) error {
	if err := json.Unmarshal(raw, it); err != nil {
		return fmt.Errorf("decoding an undelivered stanza: %w", err)
	}
	return nil
}

func (it *item) key(d *Device) string { return d.key("q") + fmt.Sprintf("/%016d", it.seq) }

// newID makes an id for a stanza of the server's own.
func (n *Network) newID() string { return fmt.Sprintf("%X", n.random(8)) }

// enqueue puts a stanza at the end of a device's queue, as part of the batch.
// The caller holds n.mu and commits.
func (n *Network) enqueue(t *batch, d *Device, node waBinary.Node) error {
	if len(d.queue) >= maxQueue {
		return ErrQueueFull
	}
	raw, err := encodeNode(node)
	if err != nil {
		return err
	}
	it := &item{seq: d.nextSeq, Class: node.Tag, ID: str(node, "id"), From: jidOf(node, "from").String(), Raw: raw}
	if node.Tag != "message" {
		it.Type = str(node, "type")
	}
	if err = t.putJSON(it.key(d), it); err != nil {
		return err
	}
	d.nextSeq++
	d.queue = append(d.queue, it)
	t.touch(d)
	return nil
}

// drop takes an item off a queue, as part of the batch.
func (d *Device) drop(t *batch, it *item) {
	if i := slices.Index(d.queue, it); i >= 0 {
		d.queue = slices.Concat(d.queue[:i], d.queue[i+1:])
		t.del(it.key(d))
	}
}

// pump hands waiting items to whoever serves the device, in order, as many as
// fit on the line. The caller holds n.mu.
func (n *Network) pump(d *Device) {
	if d.phone != nil {
		d.phone.kick()
		return
	}
	c := d.conn
	if c == nil || !c.active {
		return
	}
	for _, it := range d.queue {
		if c.inflight >= n.ahead {
			return
		}
		if it.at != waiting || it.held {
			continue
		}
		it.at = onLine
		it.attempts++
		c.inflight++
		c.push(outgoing{item: it})
		if it.offline > 0 && it.offline == c.offlineLast {
			c.offlineLast = 0
			c.send(offlineEnd(it.offline))
		}
	}
}

// goOnline starts delivery to a device that has said it is ready: what waited is
// announced, numbered and closed with a mark. The caller holds n.mu.
func (n *Network) goOnline(c *conn) {
	d := c.dev
	if d == nil || d.conn != c || c.active {
		return
	}
	c.active = true
	counts := map[string]int{}
	total := 0
	for _, it := range d.queue {
		if it.held {
			continue
		}
		total++
		it.at, it.offline, it.pass = waiting, total, false
		counts[it.Class]++
	}
	c.send(waBinary.Node{Tag: "ib", Content: []waBinary.Node{{Tag: "offline_preview", Attrs: waBinary.Attrs{
		"count": total, "message": counts["message"], "receipt": counts["receipt"],
		"notification": counts["notification"], "appdata": 0,
	}}}})
	c.offlineLast = total
	if total == 0 {
		c.send(offlineEnd(0))
	}
	n.pump(d)
}

func offlineEnd(count int) waBinary.Node {
	return waBinary.Node{Tag: "ib", Content: []waBinary.Node{{Tag: "offline", Attrs: waBinary.Attrs{"count": count}}}}
}

// acked removes what a client acknowledged: the oldest item on its line with
// this class, id and sender. Repeats find nothing, which is fine.
func (n *Network) acked(c *conn, class, id, from, kind string) error {
	d := c.dev
	if d == nil {
		return nil
	}
	for _, it := range d.queue {
		if it.at != onLine || it.Class != class || it.ID != id || it.From != from || it.Type != kind {
			continue
		}
		var t batch
		d.drop(&t, it)
		t.touch(d)
		if d.conn == c && c.inflight > 0 {
			c.inflight--
		}
		if class == "message" {
			n.stats.Delivered++
		}
		return n.commit(&t)
	}
	return nil
}

// park keeps an item back; a held one until Release, another until the next
// login or until it is let go by its own timer. The caller does not hold n.mu.
func (n *Network) park(d *Device, it *item, hold bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if it.at != onLine {
		return
	}
	it.at, it.held = parked, hold
	if d.conn != nil && d.conn.inflight > 0 {
		d.conn.inflight--
	}
	n.stats.Dropped++
	n.pump(d)
}

// unpark lets an item go that a fault kept back.
func (n *Network) unpark(d *Device, it *item) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if it.at != parked {
		return
	}
	it.at, it.held, it.pass = waiting, false, true
	n.pump(d)
}

// Release lets everything go that faults dropped or held back.
func (n *Network) Release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.accounts {
		for _, d := range a.devices {
			for _, it := range d.queue {
				if it.at == parked || it.held {
					it.at, it.held, it.pass = waiting, false, true
				}
			}
			n.pump(d)
		}
	}
}

// str reads an attribute as text; absent ones and other kinds are "".
func str(node waBinary.Node, key string) string {
	switch v := node.Attrs[key].(type) {
	case string:
		return v
	case types.JID:
		return v.String()
	default:
		return ""
	}
}

// jidOf reads an attribute as an address; absent ones are empty.
func jidOf(node waBinary.Node, key string) types.JID {
	switch v := node.Attrs[key].(type) {
	case types.JID:
		return v
	case string:
		if !strings.Contains(v, "@") {
			return types.JID{}
		}
		jid, err := types.ParseJID(v)
		if err != nil {
			return types.JID{}
		}
		return jid
	default:
		return types.JID{}
	}
}

// content reads a node's content as bytes: the codec turns short texts that look
// like numbers or words of its dictionary into strings.
func content(node waBinary.Node) []byte {
	switch v := node.Content.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	default:
		return nil
	}
}

var errStanza = errors.New("wanet: not a stanza")
