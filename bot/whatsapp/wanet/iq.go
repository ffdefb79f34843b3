package wanet

import (
	"encoding/binary"
	"fmt"
	"slices"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

const (
	maxKeyUpload = 1000 // one-time keys in one request
	maxOneTime   = 4000 // kept for one device
	maxUsers     = 1000 // named in one request
)

// handleIQ answers a request. Every one gets an answer, since clients wait 75 s
// for it; answers of clients to our own requests are taken too.
func (n *Network) handleIQ(c *conn, node waBinary.Node) error {
	switch str(node, "type") {
	case "result", "error":
		return n.linkAnswer(c, node)
	}
	xmlns := str(node, "xmlns")
	if slices.Contains(n.faults.SilentIQ, xmlns) || n.silent != nil && n.silent(xmlns) {
		return nil
	}
	if xmlns == "md" {
		return n.handleMD(c, node)
	}
	if c.dev == nil || c.dev.conn != c {
		if xmlns == "w:p" {
			n.result(c, node)
		}
		return nil
	}
	switch xmlns {
	case "encrypt":
		return n.handleKeys(c, node)
	case "usync":
		return n.handleUsync(c, node)
	case "passive":
		n.result(c, node)
		if len(node.GetChildrenByTag("active")) == 1 {
			n.goOnline(c)
		}
	case "w:p", "urn:xmpp:ping", "status", "w:stats", "abt", "w":
		n.result(c, node)
	case "privacy":
		return n.handlePrivacy(c, node)
	case "blocklist":
		n.result(c, node, waBinary.Node{Tag: "list", Attrs: waBinary.Attrs{"dhash": "0"}})
	case "w:sync:app:state":
		n.refuse(c, node, 404, "item-not-found")
	default:
		n.refuse(c, node, 501, "feature-not-implemented")
	}
	return nil
}

func (n *Network) result(c *conn, asked waBinary.Node, children ...waBinary.Node) {
	out := waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{
		"from": types.ServerJID, "type": "result", "id": str(asked, "id"),
	}}
	if len(children) > 0 {
		out.Content = children
	}
	c.send(out)
}

func (n *Network) refuse(c *conn, asked waBinary.Node, code int, text string) {
	c.send(waBinary.Node{
		Tag:     "iq",
		Attrs:   waBinary.Attrs{"from": types.ServerJID, "type": "error", "id": str(asked, "id")},
		Content: []waBinary.Node{{Tag: "error", Attrs: waBinary.Attrs{"code": code, "text": text}}},
	})
}

// handleKeys serves the keys devices bring and those they need of others.
func (n *Network) handleKeys(c *conn, node waBinary.Node) error {
	for _, child := range node.GetChildren() {
		switch child.Tag {
		case "count":
			n.result(c, node, waBinary.Node{Tag: "count", Attrs: waBinary.Attrs{"value": len(c.dev.oneTime)}})
			return nil
		case "key":
			return n.giveKeys(c, node, child)
		case "list":
			return n.takeKeys(c, node)
		}
	}
	n.refuse(c, node, 400, "bad-request")
	return nil
}

// takeKeys stores the one-time keys and the signed key a device brings.
func (n *Network) takeKeys(c *conn, node waBinary.Node) error {
	list := node.GetChildByTag("list").Content
	nodes, _ := list.([]waBinary.Node)
	skey := node.GetChildByTag("skey")
	signed, ok := readKey(skey)
	if !ok || len(nodes) > maxKeyUpload || len(c.dev.oneTime)+len(nodes) > maxOneTime {
		n.refuse(c, node, 400, "bad-request")
		return nil
	}
	keys := make([]oneTimeKey, 0, len(nodes))
	for _, child := range nodes {
		k, fine := readKey(child)
		if !fine {
			n.refuse(c, node, 400, "bad-request")
			return nil
		}
		keys = append(keys, oneTimeKey{id: k.ID, public: k.Public})
	}
	var t batch
	c.dev.keys.Signed = signed
	c.dev.addOneTime(&t, keys)
	if err := c.dev.save(&t); err != nil {
		return err
	}
	if err := n.commit(&t); err != nil {
		return fmt.Errorf("storing keys: %w", err)
	}
	n.result(c, node)
	return nil
}

// readKey reads a key or skey node.
func readKey(node waBinary.Node) (signedKey, bool) {
	id := content(node.GetChildByTag("id"))
	value := content(node.GetChildByTag("value"))
	sig := content(node.GetChildByTag("signature"))
	if len(id) != 3 || len(value) != 32 || node.Tag == "skey" && len(sig) != 64 {
		return signedKey{}, false
	}
	return signedKey{ID: binary.BigEndian.Uint32(append([]byte{0}, id...)), Public: value, Signature: sig}, true
}

func keyNode(tag string, k signedKey) waBinary.Node {
	id := binary.BigEndian.AppendUint32(nil, k.ID)
	out := waBinary.Node{Tag: tag, Content: []waBinary.Node{
		{Tag: "id", Content: id[1:]}, {Tag: "value", Content: k.Public},
	}}
	if tag == "skey" {
		out.Content = append(out.GetChildren(), waBinary.Node{Tag: "signature", Content: k.Signature})
	}
	return out
}

// giveKeys hands out what is needed to start sessions with other devices.
func (n *Network) giveKeys(c *conn, node, asked waBinary.Node) error {
	users := asked.GetChildren()
	if len(users) > maxUsers {
		n.refuse(c, node, 400, "bad-request")
		return nil
	}
	var t batch
	list := waBinary.Node{Tag: "list"}
	answers := make([]waBinary.Node, 0, len(users))
	for _, user := range users {
		jid := jidOf(user, "jid")
		answer := waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": jid}}
		if d := n.device(jid); d == nil {
			answer.Content = []waBinary.Node{{Tag: "error", Attrs: waBinary.Attrs{"code": 404, "text": "item-not-found"}}}
		} else {
			answer.Content = d.bundle(&t)
		}
		answers = append(answers, answer)
	}
	if err := n.commit(&t); err != nil {
		return fmt.Errorf("handing out keys: %w", err)
	}
	list.Content = answers
	n.result(c, node, list)
	return nil
}

// bundle is what a device's keys look like to others; it uses up a one-time key.
func (d *Device) bundle(t *batch) []waBinary.Node {
	out := []waBinary.Node{
		{Tag: "registration", Content: binary.BigEndian.AppendUint32(nil, d.keys.Registration)},
		{Tag: "type", Content: []byte{5}},
		{Tag: "identity", Content: d.keys.Identity},
		keyNode("skey", d.keys.Signed),
	}
	if k, ok := d.takeOneTime(t); ok {
		out = append(out, keyNode("key", signedKey{ID: k.id, Public: k.public}))
	}
	return out
}

// device finds the device a JID names. The caller holds n.mu.
func (n *Network) device(jid types.JID) *Device {
	if a := n.resolve(jid); a != nil {
		return a.devices[jid.Device]
	}
	return nil
}

// handlePrivacy answers for settings, and passes trusted-contact tokens on.
func (n *Network) handlePrivacy(c *conn, node waBinary.Node) error {
	tokens, ok := node.GetOptionalChildByTag("tokens")
	if !ok {
		n.result(c, node, waBinary.Node{Tag: "privacy", Content: []waBinary.Node{
			{Tag: "category", Attrs: waBinary.Attrs{"name": "readreceipts", "value": "all"}},
			{Tag: "category", Attrs: waBinary.Attrs{"name": "last", "value": "all"}},
			{Tag: "category", Attrs: waBinary.Attrs{"name": "online", "value": "all"}},
		}})
		return nil
	}
	var t batch
	for _, token := range tokens.GetChildren() {
		a := n.resolve(jidOf(token, "jid"))
		if a == nil || a == c.dev.a {
			continue
		}
		out := waBinary.Node{
			Tag: "notification",
			Attrs: waBinary.Attrs{
				"id": n.newID(), "type": "privacy_token", "t": n.now().Unix(),
				"from": c.dev.a.jid(types.DefaultUserServer, 0), "sender_lid": c.dev.a.jid(types.HiddenUserServer, 0),
			},
			Content: []waBinary.Node{{Tag: "tokens", Content: []waBinary.Node{{
				Tag: "token",
				Attrs: waBinary.Attrs{
					"jid": a.jid(types.DefaultUserServer, 0), "t": str(token, "t"), "type": "trusted_contact",
				},
				Content: n.random(16),
			}}}},
		}
		for _, d := range a.list() {
			if d.phone != nil {
				continue // phones of this package do not need one
			}
			if err := n.enqueue(&t, d, out); err != nil {
				break // a full queue is that device's trouble, not the asker's
			}
		}
	}
	if err := n.commit(&t); err != nil {
		return err
	}
	n.result(c, node)
	return nil
}
