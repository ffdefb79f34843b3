package wanet

import (
	"context"
	"errors"
	"fmt"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// React puts a sign on a message of the chat, or takes it away with "".
func (p *Phone) React(ctx context.Context, to, id, sign string) (Message, error) {
	key, err := p.keyOf(to, id)
	if err != nil {
		return Message{}, err
	}
	return p.SendMessage(ctx, to, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: key, Text: &sign, SenderTimestampMS: new(p.a.n.now().UnixMilli()),
	}})
}

// Edit puts another text in the place of an own message.
func (p *Phone) Edit(ctx context.Context, to, id, text string) (Message, error) {
	if err := checkText(text); err != nil {
		return Message{}, err
	}
	return p.change(ctx, to, id, &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), EditedMessage: &waE2E.Message{Conversation: &text}, TimestampMS: new(p.a.n.now().UnixMilli()),
	})
}

// Revoke takes an own message back.
func (p *Phone) Revoke(ctx context.Context, to, id string) (Message, error) {
	return p.change(ctx, to, id, &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_REVOKE.Enum()})
}

// change sends a change of an own message; edits are wrapped once more, as the
// app does.
func (p *Phone) change(ctx context.Context, to, id string, change *waE2E.ProtocolMessage) (Message, error) {
	key, err := p.keyOf(to, id)
	if err != nil {
		return Message{}, err
	}
	if !key.GetFromMe() {
		return Message{}, fmt.Errorf("%w: %q is not this phone's message", ErrInput, id)
	}
	change.Key = key
	msg := &waE2E.Message{ProtocolMessage: change}
	if change.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT {
		msg = &waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: msg}}
	}
	return p.SendMessage(ctx, to, msg)
}

// keyOf names a message of a chat.
func (p *Phone) keyOf(to, id string) (*waCommon.MessageKey, error) {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.find(to)
	if err != nil {
		return nil, err
	}
	mine := p.byID[idKey(a.phone, id, true)] != nil
	if !mine && p.byID[idKey(a.phone, id, false)] == nil {
		return nil, fmt.Errorf("%w: there is no message %q", ErrInput, id)
	}
	return &waCommon.MessageKey{RemoteJID: new(a.jid(types.HiddenUserServer, 0).String()), FromMe: &mine, ID: &id}, nil
}

// SetDisappearing has a chat forget its messages after a while, or keep them
// again with 0. The other side is told, and what Send sends from then on says
// so.
func (p *Phone) SetDisappearing(ctx context.Context, to string, after time.Duration) (Message, error) {
	n := p.a.n
	n.mu.Lock()
	a, err := n.find(to)
	if err == nil && p.gone {
		err = ErrNoAccount
	}
	seconds := uint32(max(after, 0) / time.Second) //nolint:gosec // no chat forgets after 136 years
	if err == nil {
		if p.rec.Fades == nil {
			p.rec.Fades = map[string]uint32{}
		}
		if p.rec.Fades[a.phone] = seconds; seconds == 0 {
			delete(p.rec.Fades, a.phone)
		}
		var t batch
		if err = t.putJSON(p.table("phone"), p.rec); err == nil {
			err = n.commit(&t)
		}
	}
	n.mu.Unlock()
	if err != nil {
		return Message{}, fmt.Errorf("setting the timer of a chat: %w", err)
	}
	return p.SendMessage(ctx, to, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(), EphemeralExpiration: &seconds, EphemeralSettingTimestamp: new(n.now().Unix()),
	}})
}

// text is a text as this phone sends it to a chat.
func (p *Phone) text(to, text string) *waE2E.Message {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, err := n.find(to); err == nil {
		if seconds := p.rec.Fades[a.phone]; seconds > 0 {
			return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: &text, ContextInfo: &waE2E.ContextInfo{Expiration: &seconds}}}
		}
	}
	return &waE2E.Message{Conversation: &text}
}

// maxCalls bounds the calls that a phone remembers.
const maxCalls = 100

// Call rings at all devices of a number, and returns the id of the call. With
// group it is a call of a group's, which rings the same.
func (p *Phone) Call(_ context.Context, to string, group bool) (string, error) {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.find(to)
	if err == nil && p.gone {
		err = ErrNoAccount
	}
	if err != nil {
		return "", fmt.Errorf("calling %s: %w", to, err)
	}
	id := fmt.Sprintf("%X", n.random(16))
	other := types.DefaultUserServer
	suffix := "pn"
	if p.rec.ByNumber {
		other, suffix = types.HiddenUserServer, "lid"
	}
	offer := waBinary.Node{Tag: "offer", Attrs: waBinary.Attrs{
		"call-id": id, "call-creator": p.a.jid(p.server(), 0), "caller_" + suffix: p.a.jid(other, 0),
	}}
	if group {
		offer.Attrs["group-jid"] = types.NewJID("120363000000000009", types.GroupServer)
	}
	if len(p.calls) >= maxCalls {
		clear(p.calls)
	}
	p.calls[id] = false
	var t batch
	out := waBinary.Node{
		Tag: "call", Attrs: waBinary.Attrs{"id": n.newID(), "from": p.a.jid(p.server(), 0), "t": n.now().Unix()}, Content: []waBinary.Node{offer},
	}
	for _, d := range a.list() {
		if err = n.enqueue(&t, d, out); err != nil && !errors.Is(err, ErrQueueFull) {
			return "", fmt.Errorf("calling %s: %w", to, err)
		}
	}
	return id, n.commit(&t)
}

// WaitRejected waits until a call of this phone was rejected.
func (p *Phone) WaitRejected(ctx context.Context, id string, wait time.Duration) (ok bool, err error) {
	err = p.until(ctx, wait, func() bool {
		ok = p.calls[id]
		return ok
	})
	return ok, err
}

// onCall notes that a call of this phone was rejected; a phone that is called
// rings, which nobody sees.
func (p *Phone) onCall(node waBinary.Node) effect {
	reject := node.GetChildByTag("reject")
	id := str(reject, "call-id")
	return func(*batch) error {
		if _, known := p.calls[id]; known {
			p.calls[id] = true
			close(p.changed)
			p.changed = make(chan struct{})
		}
		return nil
	}
}

// handleCall passes on what a linked client says about a call.
func (n *Network) handleCall(c *conn, node waBinary.Node) error {
	a := n.resolve(jidOf(node, "to"))
	if a == nil {
		n.ack(c, node, waBinary.Attrs{"error": nackNoAccount})
		return nil
	}
	var t batch
	out := waBinary.Node{Tag: "call", Attrs: waBinary.Attrs{
		"id": str(node, "id"), "from": c.dev.a.jid(jidOf(node, "to").Server, c.dev.id), "t": n.now().Unix(),
	}, Content: node.Content}
	for _, d := range a.list() {
		if err := n.enqueue(&t, d, out); err != nil && !errors.Is(err, ErrQueueFull) {
			return err
		}
	}
	if err := n.commit(&t); err != nil {
		return err
	}
	n.ack(c, node, nil)
	return nil
}

// PeerTyping says whether the other side of a chat was last seen typing.
func (p *Phone) PeerTyping(chat string) bool {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.find(chat)
	return err == nil && n.now().Before(p.typing[a.phone])
}

// sawTyping notes that somebody types, or stopped. The caller holds Network.mu.
func (p *Phone) sawTyping(from *Account, on bool) {
	defer p.stir()
	if !on {
		delete(p.typing, from.phone)
		return
	}
	p.typing[from.phone] = p.a.n.now().Add(typingLasts)
}
