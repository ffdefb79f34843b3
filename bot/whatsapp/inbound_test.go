package whatsapp_test

import (
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

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
		"our own echo":        {Chat: lid, Sender: jid(ourNumber, types.DefaultUserServer), IsFromMe: true},
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
	for name, c := range map[string]struct {
		m     *waE2E.Message
		text  string
		media bool
		shown bool
	}{
		"text":          {&waE2E.Message{Conversation: new("1")}, "1", false, true},
		"a longer text": {&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("2")}}, "2", false, true},
		"a picture":     {&waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: new("paid")}}, "paid", true, true},
		"a video":       {&waE2E.Message{VideoMessage: &waE2E.VideoMessage{}}, "", true, true},
		"a document":    {&waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{Caption: new("receipt")}}, "receipt", true, true},
		"a button":      {&waE2E.Message{ButtonsResponseMessage: &waE2E.ButtonsResponseMessage{Response: &waE2E.ButtonsResponseMessage_SelectedDisplayText{SelectedDisplayText: "Card"}}}, "Card", false, true},
		"a list":        {&waE2E.Message{ListResponseMessage: &waE2E.ListResponseMessage{Title: new("USSD")}}, "USSD", false, true},
		"a template":    {&waE2E.Message{TemplateButtonReplyMessage: &waE2E.TemplateButtonReplyMessage{SelectedDisplayText: new("3")}}, "3", false, true},
		"a voice note":  {&waE2E.Message{AudioMessage: &waE2E.AudioMessage{}}, "", false, true},
		"a sticker":     {&waE2E.Message{StickerMessage: &waE2E.StickerMessage{}}, "", false, true},
		"a place":       {&waE2E.Message{LocationMessage: &waE2E.LocationMessage{}}, "", false, true},
		"an edit": {&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), EditedMessage: &waE2E.Message{Conversation: new("2")},
		}}, "2", false, true},
		"a revoke":    {&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: &waCommon.MessageKey{}}}, "", false, false},
		"a reaction":  {&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Text: new("👍")}}, "", false, false},
		"a vote":      {&waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{}}, "", false, false},
		"a group key": {&waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{}}, "", false, false},
		"nothing":     {nil, "", false, false},
		"emptiness":   {&waE2E.Message{}, "", false, false},
	} {
		evt := event(types.MessageSource{Chat: lid, Sender: lid})
		evt.Message = c.m
		m, ok, err := d.Inbound(t.Context(), evt)
		if err != nil || ok != c.shown || m.Text != c.text || m.Media != c.media {
			t.Errorf("%s: %+v %t %v", name, m, ok, err)
		}
	}

	// The same over the wire, with a picture in a disappearing chat.
	p := phone(t, d.net, ada, "Ada")
	sent, err := p.SendMessage(t.Context(), ourNumber, &waE2E.Message{EphemeralMessage: &waE2E.FutureProofMessage{
		Message: &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: new("my receipt")}},
	}}, "")
	must(t, err)
	if m := got(t, d.messages); m.ID != sent.ID || m.Text != "my receipt" || !m.Media {
		t.Errorf("got %+v", m)
	}
	_, err = p.SendMessage(t.Context(), ourNumber, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Text: new("👍")}}, "")
	must(t, err)
	say(t, p, "last")
	if m := got(t, d.messages); m.Text != "last" {
		t.Errorf("got %+v", m)
	}
}
