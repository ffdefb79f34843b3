package wanet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"go.mau.fi/libsignal/keys/prekey"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

const maxRetries = 5

// effect is what a stanza changes besides the Signal state; it runs under
// Network.mu as part of the same batch.
type effect func(t *batch) error

// kick makes the phone work off its queue. The caller holds Network.mu.
func (p *Phone) kick() {
	if !p.running && !p.gone && p.d.nextWaiting() != nil {
		p.running = p.a.n.start(p.drain)
	}
}

func (d *Device) nextWaiting() *item {
	for _, it := range d.queue {
		if it.at == waiting && !it.held {
			return it
		}
	}
	return nil
}

// drain handles what waits for the phone, in order, until nothing does.
func (p *Phone) drain(ctx context.Context) {
	n := p.a.n
	for {
		n.mu.Lock()
		it := p.d.nextWaiting()
		if it == nil || p.gone || ctx.Err() != nil {
			p.running = false
			n.mu.Unlock()
			return
		}
		it.at = onLine
		it.attempts++
		n.mu.Unlock()
		if err := p.take(ctx, it); err != nil {
			n.log.WarnContext(ctx, "whatsapp network: a phone could not take a stanza",
				slog.String("class", it.Class), slog.String("error", err.Error()))
			if errors.Is(err, ErrClosed) {
				n.mu.Lock()
				p.running = false
				n.mu.Unlock()
				return
			}
		}
	}
}

// take hands one item to the phone, or does to it what a fault demands.
func (p *Phone) take(ctx context.Context, it *item) error {
	n := p.a.n
	node, copies, err := n.befall(p.d, it, func(wait time.Duration, f func()) { time.AfterFunc(wait, f) })
	if err != nil {
		return err
	}
	for range copies {
		if err = p.handle(ctx, it, node); err != nil {
			return err
		}
	}
	return nil
}

// handle acts on a stanza: new Signal state, messages, receipts to send and the
// end of the item become durable in one step.
func (p *Phone) handle(ctx context.Context, it *item, node waBinary.Node) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &batch{}
	var then effect
	var err error
	switch it.Class {
	case "message":
		t, then, err = p.onMessage(ctx, node)
	case "receipt":
		then, err = p.onReceipt(ctx, t, node)
	case "call":
		then = p.onCall(node)
	}
	n := p.a.n
	if err != nil {
		n.log.InfoContext(ctx, "whatsapp network: a phone ignored a stanza",
			slog.String("class", it.Class), slog.String("error", err.Error()))
		t, then = &batch{}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return nil
	}
	if then != nil {
		if err = then(t); err != nil && !errors.Is(err, ErrQueueFull) {
			return err
		}
	}
	if err = p.refill(t); err != nil {
		return err
	}
	p.d.drop(t, it)
	return n.commit(t)
}

// sender finds who sent a stanza; its device is named by LID, as sessions are.
func (p *Phone) sender(node waBinary.Node) (*Account, types.JID) {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	from := jidOf(node, "from")
	a := n.resolve(from)
	if a == nil {
		return nil, from
	}
	return a, a.jid(types.HiddenUserServer, from.Device)
}

// onMessage reads a message. What can not be read is asked for again.
func (p *Phone) onMessage(ctx context.Context, node waBinary.Node) (*batch, effect, error) {
	t := &batch{}
	a, from := p.sender(node)
	if a == nil {
		return t, nil, ErrNoAccount
	}
	back := from
	if s := jidOf(node, "from"); s.Server == types.DefaultUserServer {
		back = s // receipts go back the way the message came
	}
	enc := node.GetChildByTag("enc")
	msg, err := p.vault(t).open(ctx, from, enc)
	switch {
	case errors.Is(err, errSeen) && p.has(a, str(node, "id")):
		return &batch{}, nil, nil
	case err != nil:
		// A used counter under an id that is not here is no repeat: clients that
		// encrypt two messages at once can use one counter for both.
		p.a.n.log.InfoContext(ctx, "whatsapp network: a phone asks for a message again", slog.String("error", err.Error()))
		fresh := &batch{}
		return fresh, p.askAgain(a, back, node, enc, p.knows(ctx, fresh, from)), nil
	}
	chat, fromMe := a, false
	if sent := msg.GetDeviceSentMessage(); sent != nil && a == p.a {
		msg, fromMe = sent.GetMessage(), true
		p.a.n.mu.Lock()
		jid, perr := types.ParseJID(sent.GetDestinationJID())
		chat = p.a.n.resolve(jid)
		p.a.n.mu.Unlock()
		if perr != nil || chat == nil {
			return t, nil, nil //nolint:nilerr // whom it was for is not known here: not shown
		}
	}
	return t, func(t *batch) error {
		delete(p.typing, a.phone)
		p.a.n.stats.Delivered++
		// Of its own account's messages a phone confirms those to itself alone;
		// life has it confirm all, which nobody here waits for.
		if err := p.record(t, chat, fromMe, str(node, "id"), msg); err != nil || fromMe && chat != p.a {
			return err
		}
		receipt := waBinary.Attrs{"id": str(node, "id")}
		if fromMe {
			receipt["type"] = "sender"
		}
		return p.a.n.forwardReceipt(t, p.d, a, back, waBinary.Node{Tag: "receipt", Attrs: receipt})
	}, nil
}

// record puts a message that was read into the chats, once.
func (p *Phone) record(t *batch, chat *Account, fromMe bool, id string, msg *waE2E.Message) error {
	if edited := msg.GetEditedMessage().GetMessage(); edited != nil {
		msg = edited
	}
	if change := msg.GetProtocolMessage(); change != nil {
		old := p.byID[idKey(chat.phone, change.GetKey().GetID(), fromMe)]
		if old == nil {
			return nil
		}
		kind := change.GetType()
		if kind != waE2E.ProtocolMessage_MESSAGE_EDIT && kind != waE2E.ProtocolMessage_REVOKE {
			return nil
		}
		old.Text = ""
		if kind == waE2E.ProtocolMessage_MESSAGE_EDIT {
			old.Text, _, _ = describe(change.GetEditedMessage())
		}
		return p.keep(t, old)
	}
	text, quoted, shown := describe(msg)
	if !shown || p.byID[idKey(chat.phone, id, fromMe)] != nil {
		return nil // nothing to see, or the same message sent a second time
	}
	raw, err := proto.Marshal(msg)
	if err != nil {
		return fmt.Errorf("keeping a message: %w", err)
	}
	status := StatusReceived
	if fromMe {
		status = StatusSent
	}
	return p.remember(t, &stored{Raw: raw, Message: Message{
		ID: id, Chat: chat.phone, Text: text, Quoted: quoted, Fades: fades(msg), FromMe: fromMe, At: p.a.n.now(), Status: status,
	}})
}

// has says whether a message of a chat was read before.
func (p *Phone) has(chat *Account, id string) bool {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.byID[idKey(chat.phone, id, false)] != nil
}

// knows says whether there is a session with a device.
func (p *Phone) knows(ctx context.Context, t *batch, from types.JID) bool {
	has, err := p.vault(t).ContainsSession(ctx, from.SignalAddress())
	return err == nil && has
}

// askAgain sends a retry receipt; from the second on it brings new keys, and at
// once when there is no session that the sender could use.
func (p *Phone) askAgain(a *Account, from types.JID, node, enc waBinary.Node, known bool) effect {
	count, _ := strconv.Atoi(str(enc, "count"))
	count++
	if count > maxRetries {
		return nil
	}
	return func(t *batch) error {
		p.a.n.stats.Retries++
		out := waBinary.Node{
			Tag: "receipt", Attrs: waBinary.Attrs{"id": str(node, "id"), "type": "retry"},
			Content: []waBinary.Node{
				{Tag: "retry", Attrs: waBinary.Attrs{"count": count, "id": str(node, "id"), "t": str(node, "t"), "v": 1}},
				{Tag: "registration", Content: binary.BigEndian.AppendUint32(nil, p.d.keys.Registration)},
			},
		}
		if r := jidOf(node, "recipient"); !r.IsEmpty() {
			out.Attrs["recipient"] = r
		}
		if count > 1 || !known {
			keys := p.d.bundle(t)[1:] // without the registration
			out.Content = append(out.GetChildren(), waBinary.Node{Tag: "keys", Content: keys})
		}
		return p.a.n.forwardReceipt(t, p.d, a, from, out)
	}
}

// onReceipt moves the ticks of own messages, and answers who could not read one.
func (p *Phone) onReceipt(ctx context.Context, t *batch, node waBinary.Node) (effect, error) {
	a, from := p.sender(node)
	if a == nil {
		return nil, ErrNoAccount
	}
	status := ""
	switch str(node, "type") {
	case "retry":
		return p.sendAgain(ctx, t, a, from, node)
	case "":
		status = StatusDelivered
	case "read", "played":
		status = StatusRead
	default: // "inactive" reaches the sender too, but phones do not show it
		return nil, nil // nothing to do
	}
	return func(t *batch) error {
		for _, id := range receiptIDs(node) {
			s := p.byID[idKey(a.phone, id, true)]
			if s == nil || rank(status) <= rank(s.Status) {
				continue
			}
			s.Status = status
			if err := p.keep(t, s); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func rank(status string) int {
	switch status {
	case StatusDelivered:
		return 1
	case StatusRead:
		return 2
	default:
		return 0
	}
}

// sendAgain encrypts an own message anew for the one device that asked.
func (p *Phone) sendAgain(ctx context.Context, t *batch, a *Account, from types.JID, node waBinary.Node) (effect, error) {
	retry := node.GetChildByTag("retry")
	count, _ := strconv.Atoi(str(retry, "count"))
	n := p.a.n
	n.mu.Lock()
	d, chat := n.device(from), a
	if a == p.a {
		chat = n.resolve(jidOf(node, "recipient"))
	}
	var s *stored
	if chat != nil {
		s = p.byID[idKey(chat.phone, str(node, "id"), true)]
	}
	n.mu.Unlock()
	if d == nil || s == nil || count < 1 || count > maxRetries {
		return nil, fmt.Errorf("%w: a retry for a message or device that is not there", errStanza)
	}
	var msg waE2E.Message
	if err := proto.Unmarshal(s.Raw, &msg); err != nil {
		return nil, fmt.Errorf("reading the message to send again: %w", err)
	}
	v := p.vault(t)
	var bundle *prekey.Bundle
	var err error
	if keys, ok := node.GetOptionalChildByTag("keys"); ok {
		bundle, err = readBundle(from.Device, content(node.GetChildByTag("registration")), keys)
	} else if count > 1 {
		bundle, err = n.fetch(d)
	}
	if err != nil {
		return nil, err
	}
	var enc waBinary.Node
	if bundle != nil {
		enc, err = v.seal(ctx, from, bundle, p.wrap(d, chat, &msg))
	} else {
		enc, err = p.sealFor(ctx, v, d, chat, &msg)
	}
	if err != nil {
		return nil, err
	}
	return p.again(d, chat, s, enc, count), nil
}

// again queues a copy that was asked for a second time.
func (p *Phone) again(d *Device, chat *Account, s *stored, enc waBinary.Node, count int) effect {
	enc.Attrs["count"] = count
	return func(t *batch) error {
		return p.a.n.enqueue(t, d, p.envelope(chat, s).copyFor(p.a.n, d, enc))
	}
}
