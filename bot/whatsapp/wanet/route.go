package wanet

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// Codes the server refuses messages with.
const (
	nackNoAccount = 404
	nackMalformed = 400
	nackFull      = 503
)

// envelope is what every copy of a message has in common.
type envelope struct {
	id     string
	from   *Device
	to     *Account
	server string // the addressing the sender used
	attrs  waBinary.Attrs
	extra  []waBinary.Node
}

// handleMessage takes a message of a linked client: each device it is encrypted
// for gets its copy, and then the sender an ack.
func (n *Network) handleMessage(c *conn, node waBinary.Node) error {
	to := jidOf(node, "to")
	env := envelope{id: str(node, "id"), from: c.dev, to: n.resolve(to), server: to.Server, attrs: node.Attrs}
	if code := n.refusal(env); code != 0 {
		n.stats.Nacked++
		n.ack(c, node, waBinary.Attrs{"error": code})
		return nil
	}
	var t batch
	extra := waBinary.Attrs{}
	copies, single := split(node, to)
	env.extra = extras(node)
	full, reached := false, false
	for _, cp := range copies {
		d := n.device(cp.to)
		if d == nil || d == c.dev {
			continue // unlinked meanwhile; the hash tells the sender
		}
		err := n.enqueue(&t, d, env.copyFor(n, d, cp.enc))
		if err != nil && !errors.Is(err, ErrQueueFull) {
			return err
		}
		full = full || err != nil
		reached = reached || err == nil && d.a == env.to
	}
	if !single && env.to != c.dev.a {
		extra["phash"] = deviceHash(env.to, c.dev.a, to.Server)
	}
	if full && !reached {
		extra["error"] = nackFull
	}
	n.stats.Sent++
	if err := n.commit(&t); err != nil {
		return err
	}
	n.ack(c, node, extra)
	return nil
}

// refusal is the code a message is refused with, or 0.
func (n *Network) refusal(env envelope) int {
	switch {
	case env.id == "":
		return nackMalformed
	case n.faults.Nack != 0:
		return n.faults.Nack
	case env.to == nil:
		return nackNoAccount
	case n.nack != nil:
		return n.nack(Sent{From: env.from.a.phone, To: env.to.phone})
	}
	return 0
}

// copyTo is one device's copy of a message.
type copyTo struct {
	to  types.JID
	enc waBinary.Node
}

// split finds the copies of a message. A retry and a message to one's own phone
// carry a single one, for the device they are addressed to.
func split(node waBinary.Node, to types.JID) (copies []copyTo, single bool) {
	if enc, ok := node.GetOptionalChildByTag("enc"); ok {
		return []copyTo{{to: to, enc: enc}}, true
	}
	participants := node.GetChildByTag("participants")
	for _, child := range participants.GetChildren() {
		if enc, ok := child.GetOptionalChildByTag("enc"); ok && child.Tag == "to" {
			copies = append(copies, copyTo{to: jidOf(child, "jid"), enc: enc})
		}
	}
	return copies, false
}

// extras are the parts of a message that all its receivers get.
func extras(node waBinary.Node) []waBinary.Node {
	var out []waBinary.Node
	for _, child := range node.GetChildren() {
		switch child.Tag {
		case "participants", "enc", "tctoken", "cstoken", "reporting":
		default:
			out = append(out, child)
		}
	}
	return out
}

// copyFor is the stanza one device gets. Others see the sender's device, own
// devices are told whom it was for.
func (env envelope) copyFor(n *Network, d *Device, enc waBinary.Node) waBinary.Node {
	sender := env.from.a
	attrs := waBinary.Attrs{
		"id": env.id, "from": sender.jid(env.server, env.from.id), "t": n.now().Unix(),
		"type": "text", "notify": sender.pushName,
	}
	for _, key := range []string{"type", "edit", "category"} {
		if v, ok := env.attrs[key].(string); ok && v != "" {
			attrs[key] = v
		}
	}
	other := types.DefaultUserServer
	suffix := "pn"
	if env.server != types.HiddenUserServer {
		other, suffix = types.HiddenUserServer, "lid"
	}
	if d.a == sender {
		attrs["recipient"] = env.to.jid(env.server, 0)
		attrs["peer_recipient_"+suffix] = env.to.jid(other, 0)
	} else {
		attrs["sender_"+suffix] = sender.jid(other, 0)
	}
	return waBinary.Node{Tag: "message", Attrs: attrs, Content: append([]waBinary.Node{enc}, env.extra...)}
}

// deviceHash is the server's view of all devices two accounts have; a sender
// whose view differs asks anew.
func deviceHash(a, b *Account, server string) string {
	var all []string
	for _, acct := range []*Account{a, b} {
		for _, d := range acct.list() {
			all = append(all, acct.jid(server, d.id).ADString())
		}
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "")))
	return "2:" + base64.RawStdEncoding.EncodeToString(sum[:6])
}
