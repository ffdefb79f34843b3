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
	if info.IsFromMe || info.IsGroup || info.Category == "peer" || !isPerson(info.Chat) || !isPerson(info.Sender) {
		return bot.Message{}, false, nil
	}
	text, media, wanted := content(evt.Message)
	if !wanted {
		return bot.Message{}, false, nil
	}
	person, phone, err := who(ctx, wa, info.MessageSource)
	if errors.Is(err, errNoLID) {
		c.log.ErrorContext(ctx, "whatsapp message of nobody dropped", slog.String("message", info.ID), slog.String("sender", shortened(info.Sender.User)))
		return bot.Message{}, false, nil
	}
	at := info.Timestamp
	if at.IsZero() {
		at = c.cfg.Now()
	}
	c.mu.Lock()
	number := c.link.number
	c.mu.Unlock()
	return bot.Message{
		Number: number, Person: person, Phone: phone, Name: info.PushName, ID: info.ID, Text: text, Media: media, At: at,
	}, true, err
}

// isPerson says whether an address is that of a person: not a group, a list, a
// channel, a bot of WhatsApp's own or its announcements.
func isPerson(jid types.JID) bool {
	known := jid.Server == types.HiddenUserServer || jid.Server == types.DefaultUserServer
	return known && jid.User != "" && jid.User != types.PSAJID.User && !jid.IsBot()
}

// who is the sender: by their LID, which lasts, with the phone number it stands
// for as far as it is known. Everything else is decided after that, so that one
// person is never two.
func who(ctx context.Context, wa *whatsmeow.Client, from types.MessageSource) (string, flow.Phone, error) {
	lid, pn := from.Sender.ToNonAD(), from.SenderAlt.ToNonAD()
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

// content is what a chat shows of a message: its text, and whether a picture or
// a document came. Reactions, settings and the like are not shown. Something
// that is shown and has no text (a voice note, a place) is a message without
// one: whoever sent it waits for an answer.
func content(m *waE2E.Message) (text string, media, shown bool) {
	if edit := m.GetProtocolMessage(); edit.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT && edit.GetEditedMessage() != nil {
		m = edit.GetEditedMessage() // a new message, under an id of its own
	}
	switch {
	case m == nil:
		return "", false, false
	case m.Conversation != nil:
		return m.GetConversation(), false, true
	case m.ExtendedTextMessage != nil:
		return m.GetExtendedTextMessage().GetText(), false, true
	case m.ImageMessage != nil:
		return m.GetImageMessage().GetCaption(), true, true
	case m.VideoMessage != nil:
		return m.GetVideoMessage().GetCaption(), true, true
	case m.DocumentMessage != nil:
		return m.GetDocumentMessage().GetCaption(), true, true
	case m.ButtonsResponseMessage != nil:
		return m.GetButtonsResponseMessage().GetSelectedDisplayText(), false, true
	case m.ListResponseMessage != nil:
		return m.GetListResponseMessage().GetTitle(), false, true
	case m.TemplateButtonReplyMessage != nil:
		return m.GetTemplateButtonReplyMessage().GetSelectedDisplayText(), false, true
	case m.AudioMessage != nil, m.StickerMessage != nil, m.LottieStickerMessage != nil, m.LocationMessage != nil, m.LiveLocationMessage != nil,
		m.ContactMessage != nil, m.ContactsArrayMessage != nil, m.PtvMessage != nil, m.PollCreationMessage != nil,
		m.PollCreationMessageV2 != nil, m.PollCreationMessageV3 != nil:
		return "", false, true
	default:
		return "", false, false
	}
}

// shortened is a number of a person as it may stand in a log.
func shortened(user string) string { return flow.Phone(user).String() }
