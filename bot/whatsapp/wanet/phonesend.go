package wanet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mau.fi/libsignal/keys/prekey"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

const maxText = 65_536

// Send sends a text to a number, as its owner would type it.
func (p *Phone) Send(ctx context.Context, to, text string) (Message, error) {
	if err := checkText(text); err != nil {
		return Message{}, err
	}
	return p.SendMessage(ctx, to, p.text(to, text))
}

// SendQuote sends a text that answers an earlier message of the chat.
func (p *Phone) SendQuote(ctx context.Context, to, text, quoted string) (Message, error) {
	if err := checkText(text); err != nil {
		return Message{}, err
	}
	n := p.a.n
	n.mu.Lock()
	a, err := n.find(to)
	var old *stored
	fromMe := false
	if err == nil {
		if old = p.byID[idKey(a.phone, quoted, false)]; old == nil {
			old, fromMe = p.byID[idKey(a.phone, quoted, true)], true
		}
	}
	n.mu.Unlock()
	if err != nil {
		return Message{}, err
	}
	if old == nil {
		return Message{}, fmt.Errorf("%w: there is no message %q to quote", ErrInput, quoted)
	}
	who := a
	if fromMe {
		who = p.a
	}
	var original waE2E.Message
	if err = proto.Unmarshal(old.Raw, &original); err != nil {
		return Message{}, fmt.Errorf("reading the quoted message: %w", err)
	}
	about := &waE2E.ContextInfo{
		StanzaID: new(quoted), Participant: new(who.jid(types.HiddenUserServer, 0).String()), QuotedMessage: &original,
	}
	if seconds := fades(p.text(to, text)); seconds > 0 {
		about.Expiration = &seconds
	}
	return p.SendMessage(ctx, to, &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: &text, ContextInfo: about}})
}

func checkText(text string) error {
	if text == "" || len(text) > maxText {
		return fmt.Errorf("%w: a text has 1 to %d bytes", ErrInput, maxText)
	}
	return nil
}

// SendMessage sends any message, under an id of its own.
func (p *Phone) SendMessage(ctx context.Context, to string, msg *waE2E.Message) (Message, error) {
	id := "3A" + fmt.Sprintf("%X", p.a.n.random(15))
	raw, err := proto.Marshal(msg)
	if err != nil {
		return Message{}, fmt.Errorf("encoding the message: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, targets, err := p.reach(to)
	if err != nil {
		return Message{}, fmt.Errorf("sending to %s: %w", to, err)
	}
	text, quoted, _ := describe(msg)
	s := &stored{Raw: raw, Kind: kindOf(msg), Message: Message{
		ID: id, Chat: a.phone, Text: text, Quoted: quoted, Fades: fades(msg), FromMe: true, At: p.a.n.now(), Status: StatusSent,
	}}
	if err = p.post(ctx, a, targets, s, msg, func(t *batch) error { return p.remember(t, s) }); err != nil {
		return Message{}, fmt.Errorf("sending to %s: %w", to, err)
	}
	return s.Message, nil
}

// Repeat sends an own message of a chat once more under its id, as a phone does
// that was not told whether it arrived.
func (p *Phone) Repeat(ctx context.Context, to, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, targets, err := p.reach(to)
	if err != nil {
		return fmt.Errorf("repeating a message to %s: %w", to, err)
	}
	p.a.n.mu.Lock()
	s := p.byID[idKey(a.phone, id, true)]
	p.a.n.mu.Unlock()
	if s == nil {
		return fmt.Errorf("repeating a message to %s: %w: there is no own message %q", to, ErrInput, id)
	}
	var msg waE2E.Message
	if err = proto.Unmarshal(s.Raw, &msg); err != nil {
		return fmt.Errorf("reading the message to repeat: %w", err)
	}
	if err = p.post(ctx, a, targets, s, &msg, func(*batch) error { return nil }); err != nil {
		return fmt.Errorf("repeating a message to %s: %w", to, err)
	}
	return nil
}

// reach is who a number is, and the devices that an own message to it goes to. The caller
// holds p.mu.
func (p *Phone) reach(to string) (*Account, []*Device, error) {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.find(to)
	if err != nil {
		return nil, nil, err
	}
	targets, err := p.targets(a)
	return a, targets, err
}

// post encrypts a message for devices and queues it for them; keep becomes
// durable with that. The caller holds p.mu.
func (p *Phone) post(ctx context.Context, a *Account, targets []*Device, s *stored, msg *waE2E.Message, keep effect) error {
	var t batch
	v := p.vault(&t)
	encs := make([]waBinary.Node, len(targets))
	var err error
	for i, d := range targets {
		if d.phone == nil && msg.GetViewOnceMessageV2() != nil { // linked devices are only told that it came
			encs[i] = waBinary.Node{Tag: "unavailable", Attrs: waBinary.Attrs{"type": string(events.UnavailableTypeViewOnce)}}
			continue
		}
		if encs[i], err = p.sealFor(ctx, v, d, a, msg); err != nil {
			return err
		}
	}
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return ErrNoAccount
	}
	for i, d := range targets {
		if err = n.enqueue(&t, d, p.envelope(a, s).copyFor(n, d, encs[i])); err != nil {
			return err
		}
	}
	if err = keep(&t); err != nil {
		return err
	}
	n.stats.Sent++
	return n.commit(&t)
}

// envelope is what the copies of a message have in common. The caller holds
// Network.mu.
func (p *Phone) envelope(to *Account, s *stored) envelope {
	return envelope{
		id: s.ID, from: p.d, to: to, server: p.server(), attrs: waBinary.Attrs{"type": s.Kind},
	}
}

// targets are the devices a message to an account is encrypted for: all of that
// account's, and the sender's own linked ones. The caller holds Network.mu.
func (p *Phone) targets(a *Account) ([]*Device, error) {
	if p.gone {
		return nil, ErrNoAccount
	}
	all := a.list()
	if a != p.a {
		all = append(all, p.a.list()...)
	}
	out := all[:0]
	full, reached := false, false
	for _, d := range all {
		switch {
		case d == p.d:
		case len(d.queue) >= maxQueue:
			full = true // a client that was given up for good must not stop the others
		default:
			reached = reached || d.a == a
			out = append(out, d)
		}
	}
	if full && !reached {
		return nil, ErrQueueFull
	}
	return out, nil
}

// sealFor encrypts a message for a device; own devices get it wrapped with whom
// it was for. The caller holds p.mu.
func (p *Phone) sealFor(ctx context.Context, v *vault, d *Device, to *Account, msg *waE2E.Message) (waBinary.Node, error) {
	msg = p.wrap(d, to, msg)
	jid := d.a.jid(types.HiddenUserServer, d.id)
	var bundle *prekey.Bundle
	has, err := v.ContainsSession(ctx, jid.SignalAddress())
	if err == nil && !has {
		bundle, err = p.a.n.fetch(d)
	}
	if err != nil {
		return waBinary.Node{}, err
	}
	return v.seal(ctx, jid, bundle, msg)
}

// wrap tells an own device whom a message was for; others get it as it is.
func (p *Phone) wrap(d *Device, to *Account, msg *waE2E.Message) *waE2E.Message {
	if d.a != p.a {
		return msg
	}
	return &waE2E.Message{DeviceSentMessage: &waE2E.DeviceSentMessage{
		DestinationJID: new(to.jid(types.HiddenUserServer, 0).String()), Message: msg,
	}}
}

// fetch gets a device's keys from the server.
func (n *Network) fetch(d *Device) (*prekey.Bundle, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var t batch
	nodes := waBinary.Node{Tag: "user", Content: d.bundle(&t)}
	if d.phone != nil {
		if err := d.phone.refill(&t); err != nil {
			return nil, err
		}
	}
	if err := n.commit(&t); err != nil {
		return nil, fmt.Errorf("fetching keys: %w", err)
	}
	return readBundle(d.id, content(nodes.GetChildByTag("registration")), nodes)
}

// MarkRead tells the sender that messages of a chat were read: all that are
// unread, or those named.
func (p *Phone) MarkRead(_ context.Context, chat string, ids ...string) error {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.find(chat)
	if p.gone {
		err = ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("marking %s as read: %w", chat, err)
	}
	var t batch
	var read []string
	for _, s := range p.msgs {
		if s.Chat != a.phone || s.FromMe || s.Status == StatusRead || len(ids) > 0 && !slices.Contains(ids, s.ID) {
			continue
		}
		s.Status = StatusRead
		read = append(read, s.ID)
		if err = p.keep(&t, s); err != nil {
			return err
		}
	}
	if len(read) == 0 {
		return nil
	}
	node := waBinary.Node{Tag: "receipt", Attrs: waBinary.Attrs{"id": read[0], "type": "read"}}
	if len(read) > 1 {
		items := make([]waBinary.Node, 0, len(read)-1)
		for _, id := range read[1:] {
			items = append(items, waBinary.Node{Tag: "item", Attrs: waBinary.Attrs{"id": id}})
		}
		node.Content = []waBinary.Node{{Tag: "list", Content: items}}
	}
	err = n.forwardReceipt(&t, p.d, a, a.jid(p.server(), 0), node)
	if err != nil && !errors.Is(err, ErrQueueFull) {
		return err
	}
	return n.commit(&t)
}

// Typing shows or ends "typing…" at the other side of a chat.
func (p *Phone) Typing(_ context.Context, to string, on bool) error {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.find(to)
	if p.gone {
		err = ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("typing to %s: %w", to, err)
	}
	state := "paused"
	if on {
		state = "composing"
	}
	n.spreadChatState(p.a, a, p.server(), []waBinary.Node{{Tag: state}})
	return nil
}
