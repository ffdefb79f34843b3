package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/flow"
)

var errNoLID = errors.New("whatsapp: the sender has no LID")

// inbound is a message as the rest of the program knows it, and whether it is
// one at all: groups, broadcasts, channels, our own echoes and what chats do
// not show end here.
func (c *Client) inbound(ctx context.Context, wa *whatsmeow.Client, evt *events.Message) (bot.Message, bool, error) {
	info := evt.Info
	if info.IsGroup || info.Category == "peer" || !isPerson(info.Chat) || !isPerson(info.Sender) {
		return bot.Message{}, false, nil
	}
	said, wanted := c.unsealed(ctx, wa, evt)
	if !wanted || info.IsFromMe && !typed(wa, info, said) {
		return bot.Message{}, false, nil
	}
	from, alt, name := info.Sender, info.SenderAlt, info.PushName
	if info.IsFromMe { // it belongs to the chat of whom it was written to
		from, alt, name = info.Chat, info.RecipientAlt, ""
	}
	person, phone, err := who(ctx, wa, from, alt)
	if errors.Is(err, errNoLID) {
		c.log.ErrorContext(ctx, "whatsapp message of nobody dropped", slog.String("message", info.ID), slog.String("sender", shortened(from.User)))
		return bot.Message{}, false, nil
	}
	m := bot.Message{
		Number: c.ours(), Person: person, Phone: phone, Name: name, ID: info.ID, Kind: said.kind, Text: said.text, Own: info.IsFromMe,
		Edits: said.edits, Revokes: said.revokes, Wrote: info.Timestamp, Fades: said.fades,
	}
	if said.context != nil {
		m.Fades = seconds(said.context.GetExpiration())
		if isOurs(wa, said.context.GetParticipant()) {
			m.Quoted = said.context.GetStanzaID()
		}
	}
	return m, true, err
}

// unsealed is what a chat shows of a message. Newer phones encrypt an edit once
// more, for whoever has the message that it is of.
func (c *Client) unsealed(ctx context.Context, wa *whatsmeow.Client, evt *events.Message) (content, bool) {
	edit := evt.Message.GetSecretEncryptedMessage()
	if edit.GetSecretEncType() != waE2E.SecretEncryptedMessage_MESSAGE_EDIT {
		return read(evt.Message)
	}
	said, shown := content{}, false
	inside, err := wa.DecryptSecretEncryptedMessage(ctx, evt)
	if err == nil {
		said, shown = read(opened(inside))
	}
	if !shown {
		c.log.WarnContext(ctx, "whatsapp edit cannot be read", slog.String("message", evt.Info.ID))
		said = content{kind: bot.KindOther, fades: unsaid}
	}
	if said.edits == "" {
		said.edits = edit.GetTargetMessageKey().GetID()
	}
	return said, true
}

// ours is our number, in digits.
func (c *Client) ours() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.number
}

// typed says whether a message of our own number was written by a person on
// another device of it. The network does not send a device its own messages
// back; whatever does, is told by the device that it names.
func typed(wa *whatsmeow.Client, info types.MessageInfo, said content) bool {
	if wa.Store.ID == nil || info.Sender.Device == wa.Store.ID.Device || isOurs(wa, info.Chat.String()) {
		return false
	}
	return said.kind != bot.KindReaction && said.kind != bot.KindRevoke && said.kind != bot.KindTimer
}

// isOurs says whether an address is that of our own number.
func isOurs(wa *whatsmeow.Client, address string) bool {
	jid, err := types.ParseJID(address)
	if err != nil || jid.User == "" {
		return false
	}
	return jid.Server == types.HiddenUserServer && jid.User == wa.Store.LID.User ||
		jid.Server == types.DefaultUserServer && wa.Store.ID != nil && jid.User == wa.Store.ID.User
}

// isPerson says whether an address is that of a person: not a group, a list, a
// channel, a bot of WhatsApp's own or its announcements.
func isPerson(jid types.JID) bool {
	known := jid.Server == types.HiddenUserServer || jid.Server == types.DefaultUserServer
	return known && jid.User != "" && jid.User != types.PSAJID.User && !jid.IsBot()
}

// who somebody is: by their LID, which lasts, with the phone number it stands
// for as far as it is known. Everything else is decided after that, so that one
// person is never two. Of the two addresses either can be missing.
func who(ctx context.Context, wa *whatsmeow.Client, one, other types.JID) (string, flow.Phone, error) {
	lid, pn := one.ToNonAD(), other.ToNonAD()
	if lid.Server != types.HiddenUserServer {
		lid, pn = pn, lid
	}
	var err error
	if lid.Server != types.HiddenUserServer || lid.User == "" {
		if lid, err = lidOf(ctx, wa, pn); err != nil {
			return "", "", err
		}
	}
	if pn.Server != types.DefaultUserServer || pn.User == "" {
		if pn, err = wa.Store.LIDs.GetPNForLID(ctx, lid); err != nil {
			return "", "", fmt.Errorf("looking up a phone number: %w", err)
		}
	}
	return lid.User, flow.Phone(pn.User), nil
}

// lidOf looks the LID of a number up, and asks WhatsApp when it is not known.
func lidOf(ctx context.Context, wa *whatsmeow.Client, pn types.JID) (types.JID, error) {
	lid, err := wa.Store.LIDs.GetLIDForPN(ctx, pn)
	if err != nil {
		return lid, fmt.Errorf("looking up a LID: %w", err)
	}
	if lid.User != "" {
		return lid.ToNonAD(), nil
	}
	users, err := wa.GetUserInfo(ctx, []types.JID{pn})
	if err != nil {
		return lid, fmt.Errorf("asking for a LID: %w", err)
	}
	if lid = users[pn].LID; lid.User == "" {
		return lid, errNoLID
	}
	return lid.ToNonAD(), nil
}

// shortened is a number of a person as it may stand in a log.
func shortened(user string) string { return flow.Phone(user).String() }
