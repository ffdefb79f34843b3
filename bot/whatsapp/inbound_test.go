package whatsapp_test

import (
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/flow"
)

func jid(user, server string) types.JID { return types.NewJID(user, server) }

// event is a text from somebody.
func event(from types.MessageSource) *events.Message {
	return &events.Message{
		Info:    types.MessageInfo{MessageSource: from, ID: "3A01", PushName: "Ada", Timestamp: time.Unix(1_795_000_000, 0)},
		Message: &waE2E.Message{Conversation: new("hi")},
	}
}

// Only what a person writes to us alone gets in.
func TestTheDoor(t *testing.T) {
	d := paired(t)
	lid, group := jid("100200300400500", types.HiddenUserServer), jid("120363000000000001", types.GroupServer)
	for name, from := range map[string]types.MessageSource{
		"a group":             {Chat: group, Sender: lid, IsGroup: true},
		"a group in disguise": {Chat: group, Sender: lid},
		"status":              {Chat: types.StatusBroadcastJID, Sender: lid, IsGroup: true},
		"a status alone":      {Chat: types.StatusBroadcastJID, Sender: lid},
		"a broadcast list":    {Chat: jid("1234567890", types.BroadcastServer), Sender: lid},
		"a channel":           {Chat: jid("120363000000000002", types.NewsletterServer), Sender: jid("120363000000000002", types.NewsletterServer)},
		"a bot":               {Chat: jid("13135550002", types.DefaultUserServer), Sender: jid("13135550002", types.DefaultUserServer)},
		"a new bot":           {Chat: jid("867051314767696", types.BotServer), Sender: jid("867051314767696", types.BotServer)},
		"WhatsApp itself":     {Chat: types.PSAJID, Sender: types.PSAJID},
		"a note to ourselves": {Chat: jid(ourNumber, types.DefaultUserServer), Sender: jid(ourNumber, types.DefaultUserServer), IsFromMe: true},
		"nobody":              {Chat: lid},
		"no chat":             {Sender: lid},
	} {
		if m, ok, err := d.Inbound(t.Context(), event(from)); ok || err != nil {
			t.Errorf("%s gets in: %+v %v", name, m, err)
		}
	}
	own := event(types.MessageSource{Chat: lid, Sender: lid})
	own.Info.Category = "peer"
	if _, ok, _ := d.Inbound(t.Context(), own); ok {
		t.Error("a device of ours gets in")
	}
}

// One person is one LID, however the message is addressed.
func TestWhoItIs(t *testing.T) {
	d := paired(t)
	p, q := phone(t, d.net, ada, "Ada"), phone(t, d.net, bola, "Bola")
	say(t, p, "so that the number is known")
	got(t, d.messages)
	lid := jid(p.Account().LID(), types.HiddenUserServer)
	device := lid
	device.Device = 3
	pn := jid(ada, types.DefaultUserServer)
	pnDevice := pn
	pnDevice.Device = 3
	other := jid("555666777888999", types.HiddenUserServer)
	for name, c := range map[string]struct {
		from          types.MessageSource
		person, phone string
	}{
		"by LID, with the number":           {types.MessageSource{Chat: lid, Sender: lid, SenderAlt: pn}, lid.User, ada},
		"from a second device":              {types.MessageSource{Chat: lid, Sender: device, SenderAlt: pnDevice}, lid.User, ada},
		"by LID alone, the number is known": {types.MessageSource{Chat: lid, Sender: device}, lid.User, ada},
		"by LID alone, never seen":          {types.MessageSource{Chat: other, Sender: other}, other.User, ""},
		"by number, with the LID":           {types.MessageSource{Chat: pn, Sender: pnDevice, SenderAlt: device}, lid.User, ada},
		"by number alone, the LID is known": {types.MessageSource{Chat: pn, Sender: pn}, lid.User, ada},
		"by number alone, WhatsApp knows":   {types.MessageSource{Chat: jid(bola, types.DefaultUserServer), Sender: jid(bola, types.DefaultUserServer)}, q.Account().LID(), bola},
	} {
		m, ok, err := d.Inbound(t.Context(), event(c.from))
		if err != nil || !ok || m.Person != c.person || m.Phone != flow.Phone(c.phone) || m.Number != ourNumber {
			t.Errorf("%s: %+v %t %v", name, m, ok, err)
		}
	}
	stranger := jid("2349000000099", types.DefaultUserServer)
	if m, ok, err := d.Inbound(t.Context(), event(types.MessageSource{Chat: stranger, Sender: stranger})); ok || err != nil {
		t.Errorf("somebody without a LID: %+v %t %v", m, ok, err)
	}
}

func TestWhatItSays(t *testing.T) {
	d := paired(t)
	lid := jid("100200300400500", types.HiddenUserServer)
	change := func(kind waE2E.ProtocolMessage_Type, to *waE2E.Message) *waE2E.Message {
		return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type: &kind, Key: &waCommon.MessageKey{ID: new("3A00")}, EditedMessage: to, EphemeralExpiration: new(uint32(86_400)),
		}}
	}
	quoting := &waE2E.ContextInfo{StanzaID: new("3EB01"), Participant: new(ourNumber + "@s.whatsapp.net"), Expiration: new(uint32(604_800))}
	for name, c := range map[string]struct {
		m     *waE2E.Message
		want  bot.Message
		shown bool
	}{
		"text":          {&waE2E.Message{Conversation: new("1")}, bot.Message{Text: "1"}, true},
		"a longer text": {&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("2")}}, bot.Message{Text: "2"}, true},
		"an answer": {
			&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("2"), ContextInfo: quoting}},
			bot.Message{Text: "2", Quoted: "3EB01", Fades: 7 * 24 * time.Hour},
			true,
		},
		"an answer to themselves": {&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
			Text: new("2"), ContextInfo: &waE2E.ContextInfo{StanzaID: new("3A00"), Participant: new("100200300400500@lid")},
		}}, bot.Message{Text: "2"}, true},
		"a picture":              {&waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: new("paid")}}, bot.Message{Kind: bot.KindPicture, Text: "paid"}, true},
		"a video":                {&waE2E.Message{VideoMessage: &waE2E.VideoMessage{ContextInfo: quoting}}, bot.Message{Kind: bot.KindVideo, Quoted: "3EB01", Fades: 7 * 24 * time.Hour}, true},
		"a document":             {&waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{Caption: new("receipt"), FileName: new("4111111111111111.pdf")}}, bot.Message{Kind: bot.KindDocument, Text: "receipt"}, true},
		"a button":               {&waE2E.Message{ButtonsResponseMessage: &waE2E.ButtonsResponseMessage{Response: &waE2E.ButtonsResponseMessage_SelectedDisplayText{SelectedDisplayText: "Card"}}}, bot.Message{Text: "Card"}, true},
		"a list":                 {&waE2E.Message{ListResponseMessage: &waE2E.ListResponseMessage{Title: new("USSD")}}, bot.Message{Text: "USSD"}, true},
		"a template":             {&waE2E.Message{TemplateButtonReplyMessage: &waE2E.TemplateButtonReplyMessage{SelectedDisplayText: new("3")}}, bot.Message{Text: "3"}, true},
		"a voice note":           {&waE2E.Message{AudioMessage: &waE2E.AudioMessage{}}, bot.Message{Kind: bot.KindVoice}, true},
		"a sticker":              {&waE2E.Message{StickerMessage: &waE2E.StickerMessage{}}, bot.Message{Kind: bot.KindSticker}, true},
		"a place":                {&waE2E.Message{LocationMessage: &waE2E.LocationMessage{Name: new("my pin 1234")}}, bot.Message{Kind: bot.KindPlace}, true},
		"a contact":              {&waE2E.Message{ContactMessage: &waE2E.ContactMessage{DisplayName: new("4111 1111 1111 1111"), Vcard: new("4111111111111111")}}, bot.Message{Kind: bot.KindContact}, true},
		"a poll":                 {&waE2E.Message{PollCreationMessage: &waE2E.PollCreationMessage{Name: new("1")}}, bot.Message{Kind: bot.KindPoll, Fades: -1}, true},
		"a poll of newer phones": {&waE2E.Message{PollCreationMessageV5: &waE2E.PollCreationMessage{Name: new("1")}}, bot.Message{Kind: bot.KindPoll, Fades: -1}, true},
		"a quiz":                 {&waE2E.Message{PollCreationMessageV6: &waE2E.PollCreationMessage{Name: new("1")}}, bot.Message{Kind: bot.KindPoll, Fades: -1}, true},
		"a poll that is wrapped": {&waE2E.Message{PollCreationMessageV4: &waE2E.FutureProofMessage{Message: &waE2E.Message{PollCreationMessage: &waE2E.PollCreationMessage{}}}}, bot.Message{Kind: bot.KindPoll, Fades: -1}, true},
		"an invitation":          {&waE2E.Message{EventInviteMessage: &waE2E.EventInviteMessage{}}, bot.Message{Kind: bot.KindOther, Fades: -1}, true},
		"a channel":              {&waE2E.Message{NewsletterFollowerInviteMessageV2: &waE2E.NewsletterFollowerInviteMessage{}}, bot.Message{Kind: bot.KindOther, Fades: -1}, true},
		"a planned call":         {&waE2E.Message{ScheduledCallCreationMessage: &waE2E.ScheduledCallCreationMessage{}}, bot.Message{Kind: bot.KindOther, Fades: -1}, true},
		"money of another kind":  {&waE2E.Message{SendPaymentMessage: &waE2E.SendPaymentMessage{}}, bot.Message{Kind: bot.KindOther, Fades: -1}, true},
		"a request for it":       {&waE2E.Message{RequestPaymentMessage: &waE2E.RequestPaymentMessage{}}, bot.Message{Kind: bot.KindOther, Fades: -1}, true},
		"an edit":                {change(waE2E.ProtocolMessage_MESSAGE_EDIT, &waE2E.Message{Conversation: new("2")}), bot.Message{Text: "2", Edits: "3A00", Fades: -1}, true},
		"an edit of what stands under a document": {change(waE2E.ProtocolMessage_MESSAGE_EDIT, &waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{
			Message: &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{Caption: new("Pay 7K3M-9QTX")}},
		}}), bot.Message{Kind: bot.KindDocument, Text: "Pay 7K3M-9QTX", Edits: "3A00", Fades: -1}, true},
		"a new edit that cannot be read": {&waE2E.Message{SecretEncryptedMessage: &waE2E.SecretEncryptedMessage{
			SecretEncType: waE2E.SecretEncryptedMessage_MESSAGE_EDIT.Enum(), TargetMessageKey: &waCommon.MessageKey{ID: new("3A00")},
		}}, bot.Message{Kind: bot.KindOther, Edits: "3A00", Fades: -1}, true},
		"a revoke":             {change(waE2E.ProtocolMessage_REVOKE, nil), bot.Message{Kind: bot.KindRevoke, Revokes: "3A00", Fades: -1}, true},
		"the timer":            {change(waE2E.ProtocolMessage_EPHEMERAL_SETTING, nil), bot.Message{Kind: bot.KindTimer, Fades: 24 * time.Hour}, true},
		"a reaction":           {&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Text: new("👍")}}, bot.Message{Kind: bot.KindReaction, Text: "👍", Fades: -1}, true},
		"an edit into nothing": {change(waE2E.ProtocolMessage_MESSAGE_EDIT, nil), bot.Message{}, false},
		"an edit of an edit":   {change(waE2E.ProtocolMessage_MESSAGE_EDIT, change(waE2E.ProtocolMessage_REVOKE, nil)), bot.Message{}, false},
		"an album":             {&waE2E.Message{AlbumMessage: &waE2E.AlbumMessage{ExpectedImageCount: new(uint32(2))}}, bot.Message{}, false},
		"a vote":               {&waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{}}, bot.Message{}, false},
		"a group key":          {&waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{}}, bot.Message{}, false},
		"keys":                 {change(waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE, nil), bot.Message{}, false},
		"nothing":              {nil, bot.Message{}, false},
		"emptiness":            {&waE2E.Message{}, bot.Message{}, false},
	} {
		evt := event(types.MessageSource{Chat: lid, Sender: lid})
		evt.Message = c.m
		m, ok, err := d.Inbound(t.Context(), evt)
		if c.shown {
			c.want.Number, c.want.Person, c.want.Name, c.want.ID, c.want.Wrote = ourNumber, lid.User, "Ada", "3A01", evt.Info.Timestamp
		}
		if err != nil || ok != c.shown || m != c.want {
			t.Errorf("%s: %+v %t %v\nwant %+v", name, m, ok, err, c.want)
		}
	}
}
