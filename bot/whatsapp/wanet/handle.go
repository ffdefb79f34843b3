package wanet

import (
	"context"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// handle acts on one stanza of a client.
func (n *Network) handle(ctx context.Context, c *conn, node waBinary.Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-ctx.Done():
		return ErrClosed
	case <-n.done:
		return ErrClosed
	default:
	}
	if node.Tag == "iq" {
		return n.handleIQ(c, node)
	}
	if c.dev == nil || c.dev.conn != c {
		return nil // not logged in, or replaced: nothing it says counts
	}
	switch node.Tag {
	case "message":
		return n.handleMessage(c, node)
	case "receipt":
		return n.handleReceipt(c, node)
	case "ack":
		return n.acked(c, str(node, "class"), str(node, "id"), jidOf(node, "to").String(), ackType(node))
	case "call":
		return n.handleCall(c, node)
	case "presence":
		return n.handlePresence(c, node)
	case "chatstate":
		return n.handleChatState(c, node)
	case "ib": // telemetry
		return nil
	default:
		return fmt.Errorf("%w: no stanza %q is known", errStanza, node.Tag)
	}
}

// ackType is the type an ack repeats; those of messages have none.
func ackType(node waBinary.Node) string {
	if str(node, "class") == "message" {
		return ""
	}
	return str(node, "type")
}

// ack answers a message of a client, after the delay that is set.
func (n *Network) ack(c *conn, node waBinary.Node, extra waBinary.Attrs) {
	attrs := waBinary.Attrs{
		"class": node.Tag, "id": str(node, "id"), "from": jidOf(node, "to"), "t": n.now().Unix(),
	}
	maps.Copy(attrs, extra)
	out := waBinary.Node{Tag: "ack", Attrs: attrs}
	wait := time.Duration(0)
	if node.Tag == "message" {
		wait = n.ackDelay
		if ms := n.faults.AckDelayMs; ms > 0 {
			wait = time.Duration(ms) * time.Millisecond
		}
	}
	c.later(wait, func() { c.send(out) })
}

// handleReceipt takes a client's receipt: it acknowledges a message, and goes on
// to the one who sent that.
func (n *Network) handleReceipt(c *conn, node waBinary.Node) error {
	to, kind := jidOf(node, "to"), str(node, "type")
	ids := receiptIDs(node)
	switch kind {
	case "", "inactive", "sender", "peer_msg", "hist_sync":
		for _, id := range ids {
			if err := n.acked(c, "message", id, to.String(), ""); err != nil {
				return err
			}
		}
	}
	var t batch
	if a := n.resolve(to); a != nil && kind != "sender" && kind != "peer_msg" && kind != "hist_sync" {
		if kind == "retry" {
			n.stats.Retries++
		}
		if err := n.forwardReceipt(&t, c.dev, a, to, node); err != nil {
			return err
		}
	}
	if err := n.commit(&t); err != nil {
		return err
	}
	n.ack(c, node, waBinary.Attrs{"type": kind})
	return nil
}

// forwardReceipt queues a receipt for the devices it is for: that of the message
// for delivery and retry, all of the account for the rest.
func (n *Network) forwardReceipt(t *batch, from *Device, a *Account, to types.JID, node waBinary.Node) error {
	attrs := waBinary.Attrs{
		"id": str(node, "id"), "from": from.a.jid(to.Server, from.id),
		"type": str(node, "type"), "t": n.now().Unix(),
	}
	if r := jidOf(node, "recipient"); !r.IsEmpty() {
		attrs["recipient"] = r
	}
	out := waBinary.Node{Tag: "receipt", Attrs: attrs, Content: node.Content}
	direct := str(node, "type") != "read" && str(node, "type") != "played"
	for _, d := range a.list() {
		if d == from || direct && d.id != to.Device {
			continue
		}
		if err := n.enqueue(t, d, out); err != nil {
			return err
		}
	}
	return nil
}

// receiptIDs lists the messages a receipt is about.
func receiptIDs(node waBinary.Node) []string {
	ids := []string{str(node, "id")}
	list := node.GetChildByTag("list")
	for _, it := range list.GetChildren() {
		if id := str(it, "id"); it.Tag == "item" && id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// handlePresence keeps who is available and tells who asked.
func (n *Network) handlePresence(c *conn, node waBinary.Node) error {
	switch str(node, "type") {
	case "subscribe":
		to := jidOf(node, "to")
		if a := n.resolve(to); a != nil {
			c.watches[a] = to.Server
			c.send(presenceOf(a, to.Server, n.now()))
		}
		return nil
	case "unavailable":
		c.available = false
	default:
		c.available = true
	}
	a := c.dev.a
	if name := str(node, "name"); name != "" && name != a.pushName && utf8.RuneCountInString(name) <= maxPushName {
		a.pushName = name
		var t batch
		if err := a.save(&t); err != nil {
			return err
		}
		if err := n.commit(&t); err != nil {
			return err
		}
	}
	n.spreadPresence(a)
	return nil
}

// spreadPresence tells everybody who watches an account how it is.
func (n *Network) spreadPresence(a *Account) {
	for c := range n.conns {
		if server, ok := c.watches[a]; ok && c.active {
			c.send(presenceOf(a, server, n.now()))
		}
	}
}

func presenceOf(a *Account, server string, now time.Time) waBinary.Node {
	attrs := waBinary.Attrs{"from": a.jid(server, 0)}
	for _, d := range a.devices {
		if d.phone != nil || d.conn != nil && d.conn.available {
			return waBinary.Node{Tag: "presence", Attrs: attrs}
		}
	}
	attrs["type"], attrs["last"] = "unavailable", now.Unix()
	return waBinary.Node{Tag: "presence", Attrs: attrs}
}

// handleChatState passes on that somebody is typing; nobody waits for it.
func (n *Network) handleChatState(c *conn, node waBinary.Node) error {
	to := jidOf(node, "to")
	a := n.resolve(to)
	if a == nil {
		return nil
	}
	n.spreadChatState(c.dev.a, a, to.Server, node.Content)
	return nil
}

func (n *Network) spreadChatState(from, to *Account, server string, state any) {
	children, _ := state.([]waBinary.Node)
	if len(children) != 1 {
		return
	}
	out := waBinary.Node{
		Tag: "chatstate", Attrs: waBinary.Attrs{"from": from.jid(server, 0)},
		Content: []waBinary.Node{{Tag: children[0].Tag}},
	}
	for _, d := range to.devices {
		if d.phone != nil {
			d.phone.sawTyping(from, children[0].Tag == "composing")
		} else if d.conn != nil && d.conn.active {
			d.conn.send(out)
		}
	}
}
