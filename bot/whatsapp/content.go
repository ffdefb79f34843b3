package whatsapp

import (
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
)

// content is what a chat shows of a message, and what it refers to.
type content struct {
	kind    bot.Kind
	text    string             // the caption where there is media
	edits   string             // the id of the message that it takes the place of
	revokes string             // the id of the message that it takes back
	context *waE2E.ContextInfo // nil where it has none
	fades   time.Duration      // of what has no context
}

// unsaid is how long messages stay where one does not say.
const unsaid = -1

// read is what a chat shows of a message, false where it shows nothing:
// settings, keys, votes, an album, whose pictures come by themselves; and where it
// shows what only programs of businesses send. Something that is shown and has no
// text (a voice note, a place) is a message without one: whoever sent it waits for
// an answer.
func read(m *waE2E.Message) (content, bool) {
	if change := m.GetProtocolMessage(); change != nil {
		return changed(change)
	}
	switch {
	case m == nil:
		return content{}, false
	case m.Conversation != nil:
		return content{text: m.GetConversation()}, true
	case m.ExtendedTextMessage != nil:
		return content{text: m.GetExtendedTextMessage().GetText(), context: m.GetExtendedTextMessage().GetContextInfo()}, true
	case m.ButtonsResponseMessage != nil:
		return content{text: m.GetButtonsResponseMessage().GetSelectedDisplayText(), context: m.GetButtonsResponseMessage().GetContextInfo()}, true
	case m.ListResponseMessage != nil:
		return content{text: m.GetListResponseMessage().GetTitle(), context: m.GetListResponseMessage().GetContextInfo()}, true
	case m.TemplateButtonReplyMessage != nil:
		r := m.GetTemplateButtonReplyMessage()
		return content{text: r.GetSelectedDisplayText(), context: r.GetContextInfo()}, true
	case m.ReactionMessage != nil:
		return content{kind: bot.KindReaction, text: m.GetReactionMessage().GetText(), fades: unsaid}, true
	default:
		return media(m)
	}
}

// media is what is shown of a message that is not text. Of what came only the
// caption is taken: names of files, contacts and places can hold anything.
func media(m *waE2E.Message) (content, bool) {
	switch {
	case m.ImageMessage != nil:
		return content{kind: bot.KindPicture, text: m.GetImageMessage().GetCaption(), context: m.GetImageMessage().GetContextInfo()}, true
	case m.DocumentMessage != nil:
		return content{kind: bot.KindDocument, text: m.GetDocumentMessage().GetCaption(), context: m.GetDocumentMessage().GetContextInfo()}, true
	case m.VideoMessage != nil:
		return content{kind: bot.KindVideo, text: m.GetVideoMessage().GetCaption(), context: m.GetVideoMessage().GetContextInfo()}, true
	case m.PtvMessage != nil:
		return content{kind: bot.KindVideo, context: m.GetPtvMessage().GetContextInfo()}, true
	case m.AudioMessage != nil:
		return content{kind: bot.KindVoice, context: m.GetAudioMessage().GetContextInfo()}, true
	case m.StickerMessage != nil:
		return content{kind: bot.KindSticker, context: m.GetStickerMessage().GetContextInfo()}, true
	case m.LottieStickerMessage != nil, m.StickerPackMessage != nil:
		return content{kind: bot.KindSticker, fades: unsaid}, true
	case m.LocationMessage != nil:
		return content{kind: bot.KindPlace, context: m.GetLocationMessage().GetContextInfo()}, true
	case m.LiveLocationMessage != nil:
		return content{kind: bot.KindPlace, context: m.GetLiveLocationMessage().GetContextInfo()}, true
	case m.ContactMessage != nil:
		return content{kind: bot.KindContact, context: m.GetContactMessage().GetContextInfo()}, true
	case m.ContactsArrayMessage != nil:
		return content{kind: bot.KindContact, context: m.GetContactsArrayMessage().GetContextInfo()}, true
	case m.PollCreationMessage != nil, m.PollCreationMessageV2 != nil, m.PollCreationMessageV3 != nil, m.PollCreationMessageV4 != nil,
		m.PollCreationMessageV5 != nil, m.PollCreationMessageV6 != nil:
		return content{kind: bot.KindPoll, fades: unsaid}, true
	case m.EventMessage != nil, m.EventInviteMessage != nil, m.ScheduledCallCreationMessage != nil, m.GroupInviteMessage != nil,
		m.NewsletterAdminInviteMessage != nil, m.NewsletterFollowerInviteMessageV2 != nil, m.ProductMessage != nil, m.OrderMessage != nil,
		m.SendPaymentMessage != nil, m.RequestPaymentMessage != nil, m.PaymentInviteMessage != nil, m.InvoiceMessage != nil,
		m.MusicMessage != nil, m.RichResponseMessage != nil, m.BotForwardedMessage != nil, m.SpoilerMessage != nil,
		m.PlaceholderMessage != nil: // the phone alone shows what it is
		return content{kind: bot.KindOther, fades: unsaid}, true
	default:
		return content{}, false
	}
}

// changed is a message that changes another one, or the chat.
func changed(change *waE2E.ProtocolMessage) (content, bool) {
	kind, edited := change.GetType(), opened(change.GetEditedMessage())
	if kind == waE2E.ProtocolMessage_REVOKE {
		return content{kind: bot.KindRevoke, revokes: change.GetKey().GetID(), fades: unsaid}, true
	}
	if kind == waE2E.ProtocolMessage_EPHEMERAL_SETTING {
		return content{kind: bot.KindTimer, fades: seconds(change.GetEphemeralExpiration())}, true
	}
	if kind != waE2E.ProtocolMessage_MESSAGE_EDIT || edited.GetProtocolMessage() != nil {
		return content{}, false
	}
	c, shown := read(edited) // a new message, under an id of its own
	if !shown {
		return content{}, false
	}
	c.edits = change.GetKey().GetID()
	if c.context == nil { // the text of an edit comes without what is around it
		c.fades = unsaid
	}
	return c, true
}

// opened is a message without what is wrapped around it: a document with words
// under it has one, in a message of its own and in an edit.
func opened(m *waE2E.Message) *waE2E.Message {
	return (&events.Message{RawMessage: m}).UnwrapRaw().Message
}

// seconds is a time as WhatsApp writes it.
func seconds(n uint32) time.Duration { return time.Duration(n) * time.Second }

// written is a text as WhatsApp carries it. In a chat that forgets, a message
// says for how long it stays; phones show one that does not as one that will
// not be forgotten.
func written(text string, fades time.Duration) *waE2E.Message {
	if fades <= 0 {
		return &waE2E.Message{Conversation: &text}
	}
	expires := uint32(min(fades/time.Second, maxFades))
	return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
		Text: &text, ContextInfo: &waE2E.ContextInfo{Expiration: &expires},
	}}
}

// maxFades bounds the seconds that a message says it stays: no chat has more
// than 90 days.
const maxFades = 366 * 24 * 60 * 60
