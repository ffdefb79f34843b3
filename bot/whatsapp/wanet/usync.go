package wanet

import (
	"maps"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// handleUsync answers what a client wants to know about users: devices, LIDs,
// whether a number is on WhatsApp.
func (n *Network) handleUsync(c *conn, node waBinary.Node) error {
	asked, ok := node.GetOptionalChildByTag("usync")
	list := asked.GetChildByTag("list")
	if !ok || len(list.GetChildren()) > maxUsers {
		n.refuse(c, node, 400, "bad-request")
		return nil
	}
	wants := map[string]bool{}
	query := asked.GetChildByTag("query")
	for _, q := range query.GetChildren() {
		wants[q.Tag] = true
	}
	answers := make([]waBinary.Node, 0, len(list.GetChildren()))
	for _, user := range list.GetChildren() {
		if answer, known := n.describe(user, wants); known {
			answers = append(answers, answer)
		}
	}
	attrs := waBinary.Attrs{}
	maps.Copy(attrs, asked.Attrs)
	n.result(c, node, waBinary.Node{Tag: "usync", Attrs: attrs, Content: []waBinary.Node{
		{Tag: "result"}, {Tag: "list", Content: answers},
	}})
	return nil
}

// describe answers for one user. A number asked for as a contact is answered even
// if nobody has it; a JID that names nobody is left out.
func (n *Network) describe(user waBinary.Node, wants map[string]bool) (waBinary.Node, bool) {
	jid := jidOf(user, "jid")
	number := ""
	if jid.IsEmpty() {
		contact := user.GetChildByTag("contact")
		number = string(content(contact))
		phone, _, _ := strings.Cut(number, "@")
		jid = types.NewJID(strings.TrimPrefix(phone, "+"), types.DefaultUserServer)
	}
	a := n.resolve(jid)
	if number != "" {
		return contactAnswer(a, jid, number), true
	}
	if a == nil {
		return waBinary.Node{}, false
	}
	out := waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": jid}}
	var children []waBinary.Node
	if wants["devices"] {
		children = append(children, deviceList(a))
	}
	if wants["lid"] {
		children = append(children, waBinary.Node{Tag: "lid", Attrs: waBinary.Attrs{"val": a.jid(types.HiddenUserServer, 0)}})
	}
	if wants["status"] {
		children = append(children, waBinary.Node{Tag: "status", Content: []byte{}})
	}
	out.Content = children
	return out, true
}

func contactAnswer(a *Account, asked types.JID, number string) waBinary.Node {
	kind, attrs := "out", waBinary.Attrs{"pn_jid": asked}
	if a != nil {
		kind, attrs["jid"] = "in", a.jid(types.HiddenUserServer, 0)
	}
	return waBinary.Node{Tag: "user", Attrs: attrs, Content: []waBinary.Node{{
		Tag: "contact", Attrs: waBinary.Attrs{"type": kind}, Content: []byte(number),
	}}}
}

// deviceList names the devices that can receive. The primary phone of an account
// that only exists to own a linked client is not among them.
func deviceList(a *Account) waBinary.Node {
	all := a.list()
	children := make([]waBinary.Node, 0, len(all))
	for _, d := range all {
		attrs := waBinary.Attrs{"id": int(d.id)}
		if d.id > 0 {
			attrs["key-index"] = int(d.id)
		}
		children = append(children, waBinary.Node{Tag: "device", Attrs: attrs})
	}
	return waBinary.Node{Tag: "devices", Content: []waBinary.Node{{Tag: "device-list", Content: children}}}
}
