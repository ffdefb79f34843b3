package wanet

import "go.mau.fi/whatsmeow/proto/waE2E"

// describe reads what a message shows in a chat. Kinds that are not text show
// their kind in brackets with their caption; shown is false for what a chat does
// not list, such as reactions and settings.
func describe(m *waE2E.Message) (text, quoted string, shown bool) {
	switch {
	case m == nil:
		return "", "", false
	case m.EditedMessage != nil:
		return describe(m.GetEditedMessage().GetMessage())
	case m.EphemeralMessage != nil:
		return describe(m.GetEphemeralMessage().GetMessage())
	case m.ViewOnceMessage != nil:
		return describe(m.GetViewOnceMessage().GetMessage())
	case m.DocumentWithCaptionMessage != nil:
		return describe(m.GetDocumentWithCaptionMessage().GetMessage())
	case m.Conversation != nil:
		return m.GetConversation(), "", true
	case m.ExtendedTextMessage != nil:
		ext := m.GetExtendedTextMessage()
		return ext.GetText(), ext.GetContextInfo().GetStanzaID(), true
	case m.ImageMessage != nil:
		return label("image", m.GetImageMessage().GetCaption()), "", true
	case m.VideoMessage != nil:
		return label("video", m.GetVideoMessage().GetCaption()), "", true
	case m.AudioMessage != nil:
		return label("audio", ""), "", true
	case m.DocumentMessage != nil:
		return label("document", m.GetDocumentMessage().GetFileName()), "", true
	case m.StickerMessage != nil:
		return label("sticker", ""), "", true
	case m.LocationMessage != nil:
		return label("location", m.GetLocationMessage().GetName()), "", true
	case m.ContactMessage != nil:
		return label("contact", m.GetContactMessage().GetDisplayName()), "", true
	case m.PollCreationMessage != nil:
		return label("poll", m.GetPollCreationMessage().GetName()), "", true
	case m.ReactionMessage != nil, m.ProtocolMessage != nil, m.SenderKeyDistributionMessage != nil, m.PollUpdateMessage != nil:
		return "", "", false
	default:
		return label("message", ""), "", true
	}
}

// fades is after how many seconds a text disappears, 0 for never.
func fades(m *waE2E.Message) uint32 {
	return m.GetExtendedTextMessage().GetContextInfo().GetExpiration()
}

func label(kind, caption string) string {
	if caption == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + "] " + caption
}

// kindOf is the type attribute a message's stanza has.
func kindOf(m *waE2E.Message) string {
	switch {
	case m.ReactionMessage != nil:
		return "reaction"
	case m.PollCreationMessage != nil, m.PollUpdateMessage != nil:
		return "poll"
	case m.ImageMessage != nil, m.VideoMessage != nil, m.AudioMessage != nil, m.DocumentMessage != nil,
		m.StickerMessage != nil, m.ContactMessage != nil:
		return "media"
	default:
		return "text"
	}
}
