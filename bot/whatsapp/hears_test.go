package whatsapp_test

import (
	"errors"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/checkout"
)

// Everything that a phone can send comes over the wire as what it is, and of
// media nothing but the caption.
func TestHearsEveryKind(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	first := say(t, p, "Pay 7K3M-9QTX")
	got(t, d.messages)
	must(t, d.send(p, "3EB0MENU", "1 Bank transfer"))
	hears(t, p, 1)

	for _, c := range []struct {
		name string
		send func() (string, error)
		want bot.Message
	}{
		{"picture", sends(t, p, &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: new("my receipt")}}), bot.Message{Kind: bot.KindPicture, Text: "my receipt"}},
		{"picture that is shown once, of an older phone", sends(t, p, &waE2E.Message{ViewOnceMessage: &waE2E.FutureProofMessage{
			Message: &waE2E.Message{ImageMessage: &waE2E.ImageMessage{}},
		}}), bot.Message{Kind: bot.KindPicture}},
		{"picture that is shown once, and on no linked device", sends(t, p, &waE2E.Message{ViewOnceMessageV2: &waE2E.FutureProofMessage{
			Message: &waE2E.Message{ImageMessage: &waE2E.ImageMessage{}},
		}}), bot.Message{Kind: bot.KindOther, Fades: -1}},
		{"pack of stickers", sends(t, p, &waE2E.Message{StickerPackMessage: &waE2E.StickerPackMessage{}}), bot.Message{Kind: bot.KindSticker, Fades: -1}},
		{"document", sends(t, p, &waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{
			Message: &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{FileName: new("a.pdf"), Caption: new("proof")}},
		}}), bot.Message{Kind: bot.KindDocument, Text: "proof"}},
		{"voice note", sends(t, p, &waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: new(true)}}), bot.Message{Kind: bot.KindVoice}},
		{"video", sends(t, p, &waE2E.Message{VideoMessage: &waE2E.VideoMessage{}}), bot.Message{Kind: bot.KindVideo}},
		{"sticker", sends(t, p, &waE2E.Message{StickerMessage: &waE2E.StickerMessage{}}), bot.Message{Kind: bot.KindSticker}},
		{"place", sends(t, p, &waE2E.Message{LocationMessage: &waE2E.LocationMessage{Name: new("my house")}}), bot.Message{Kind: bot.KindPlace}},
		{"contact", sends(t, p, &waE2E.Message{ContactMessage: &waE2E.ContactMessage{DisplayName: new("Bola")}}), bot.Message{Kind: bot.KindContact}},
		{"poll", sends(t, p, &waE2E.Message{PollCreationMessage: &waE2E.PollCreationMessage{Name: new("how?")}}), bot.Message{Kind: bot.KindPoll, Fades: -1}},
		{"answer", func() (string, error) {
			m, err := p.SendQuote(t.Context(), ourNumber, "1", "3EB0MENU")
			return m.ID, err
		}, bot.Message{Text: "1", Quoted: "3EB0MENU"}},
		{"answer to themselves", func() (string, error) {
			m, err := p.SendQuote(t.Context(), ourNumber, "this one", first.ID)
			return m.ID, err
		}, bot.Message{Text: "this one"}},
		{"reaction", func() (string, error) {
			m, err := p.React(t.Context(), ourNumber, "3EB0MENU", "👍")
			return m.ID, err
		}, bot.Message{Kind: bot.KindReaction, Text: "👍", Fades: -1}},
		{"reaction taken away", func() (string, error) {
			m, err := p.React(t.Context(), ourNumber, "3EB0MENU", "")
			return m.ID, err
		}, bot.Message{Kind: bot.KindReaction, Fades: -1}},
		{"edit", func() (string, error) {
			m, err := p.Edit(t.Context(), ourNumber, first.ID, "Pay 7K3M-9QTY")
			return m.ID, err
		}, bot.Message{Text: "Pay 7K3M-9QTY", Edits: first.ID, Fades: -1}},
		{"revoke", func() (string, error) {
			m, err := p.Revoke(t.Context(), ourNumber, first.ID)
			return m.ID, err
		}, bot.Message{Kind: bot.KindRevoke, Revokes: first.ID, Fades: -1}},
	} {
		id, err := c.send()
		must(t, err)
		m := written(t, got(t, d.messages))
		c.want.Number, c.want.Person, c.want.Phone, c.want.Name, c.want.ID = ourNumber, p.Account().LID(), flow.Phone(ada), "Ada", id
		if m != c.want {
			t.Errorf("%s: got  %+v\nwant %+v", c.name, m, c.want)
		}
	}
	settle(t, d.net)
	if len(d.messages) > 0 {
		t.Errorf("heard %+v too", <-d.messages)
	}
}

// sends sends a message from a phone.
func sends(t *testing.T, p *wanet.Phone, m *waE2E.Message) func() (string, error) {
	t.Helper()
	return func() (string, error) {
		sent, err := p.SendMessage(t.Context(), ourNumber, m)
		return sent.ID, err
	}
}

// In a chat that forgets, each message says for how long it stays, theirs and
// ours.
func TestDisappearing(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	_, err := p.SetDisappearing(t.Context(), ourNumber, 24*time.Hour)
	must(t, err)
	if m := got(t, d.messages); m.Kind != bot.KindTimer || m.Fades != 24*time.Hour {
		t.Errorf("the timer is %+v", m)
	}
	say(t, p, "1")
	m := got(t, d.messages)
	if m.Text != "1" || m.Fades != 24*time.Hour {
		t.Errorf("a message is %+v", m)
	}
	must(t, d.Send(t.Context(), checkout.Outgoing{Number: ourNumber, Person: m.Person, ID: "3EB0FADES", Text: "9012345678", Fades: m.Fades}))
	must(t, d.Send(t.Context(), checkout.Outgoing{Number: ourNumber, Person: m.Person, ID: "3EB0STAYS", Text: "still here"}))
	all := hears(t, p, 2)
	if all[0].Text != "9012345678" || all[0].Fades != 86_400 || all[1].Text != "still here" || all[1].Fades != 0 {
		t.Errorf("the phone shows %+v", all)
	}
	_, err = p.SetDisappearing(t.Context(), ourNumber, 0)
	must(t, err)
	got(t, d.messages)
	say(t, p, "2")
	if m := got(t, d.messages); m.Fades != 0 || m.Text != "2" {
		t.Errorf("a message is %+v", m)
	}
}

// A call is rejected at the caller's and comes as a message; one of a group's
// does not.
func TestCalls(t *testing.T) {
	for _, byNumber := range []bool{false, true} {
		d := paired(t)
		p := phone(t, d.net, ada, "Ada")
		say(t, p, "so that the number is known")
		got(t, d.messages)
		must(t, p.AddressByNumber(byNumber))
		_, err := p.Call(t.Context(), ourNumber, true)
		must(t, err)
		id, err := p.Call(t.Context(), ourNumber, false)
		must(t, err)
		m := written(t, got(t, d.messages))
		want := bot.Message{Number: ourNumber, Person: p.Account().LID(), Phone: flow.Phone(ada), ID: id, Kind: bot.KindCall, Fades: -1}
		if m != want {
			t.Errorf("got  %+v\nwant %+v", m, want)
		}
		ok, err := p.WaitRejected(t.Context(), id, within)
		if err != nil || !ok {
			t.Errorf("it was not rejected: %v", err)
		}
		settle(t, d.net)
		if len(d.messages) > 0 {
			t.Errorf("heard %+v too", <-d.messages)
		}
		d.halt()
	}
}

// What a person types on the phone of our own number belongs to the chat of the
// one it is written to; what we sent ourselves, or write to ourselves, does not
// come back.
func TestTypedOnOurPhone(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	say(t, p, "hello")
	person := got(t, d.messages).Person
	owner, _ := d.net.Account(ourNumber)
	ownPhone, err := owner.AddPhone()
	must(t, err)
	must(t, d.send(p, "3EB0BOT", "from the bot"))
	sent, err := ownPhone.Send(t.Context(), ada, "typed on the phone")
	must(t, err)
	all := hears(t, p, 2)
	m := written(t, got(t, d.messages))
	want := bot.Message{Number: ourNumber, Person: person, Phone: flow.Phone(ada), ID: sent.ID, Text: "typed on the phone", Own: true}
	if m != want {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	if len(all) != 2 || all[1].Text != "typed on the phone" {
		t.Errorf("the payer sees %+v", all)
	}
	_, err = ownPhone.React(t.Context(), ada, sent.ID, "👍")
	must(t, err)
	settle(t, d.net)
	say(t, p, "from a payer")
	if m := got(t, d.messages); m.Text != "from a payer" || m.Own {
		t.Errorf("got %+v", m)
	}
	// An echo of our own, should one ever come: it names our device.
	self := types.NewJID(ourNumber, types.DefaultUserServer)
	for device, want := range map[uint16]bool{d.device().ID(): false, 77: true} {
		self.Device = device
		_, ok, err := d.Inbound(t.Context(), event(types.MessageSource{Chat: jid(person, types.HiddenUserServer), Sender: self, IsFromMe: true}))
		if ok != want || err != nil {
			t.Errorf("from device %d: %t %v", device, ok, err)
		}
	}
}

// What fails while it is kept does not end the line.
func TestCallThatIsNotKept(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	d.onEach(func(m bot.Message) error {
		if m.Kind == bot.KindCall {
			return errors.New("the disk is full")
		}
		return nil
	})
	id, err := p.Call(t.Context(), ourNumber, false)
	must(t, err)
	if ok, err := p.WaitRejected(t.Context(), id, within); err != nil || !ok {
		t.Errorf("it was not rejected: %v", err)
	}
	for name, evt := range map[string]*events.CallOffer{
		"a group":   {BasicCallMeta: types.BasicCallMeta{From: jid(ada, types.DefaultUserServer), CallID: "A", GroupJID: jid("1", types.GroupServer)}},
		"no id":     {BasicCallMeta: types.BasicCallMeta{From: jid(ada, types.DefaultUserServer)}},
		"nobody":    {BasicCallMeta: types.BasicCallMeta{CallID: "A"}},
		"ourselves": {BasicCallMeta: types.BasicCallMeta{From: jid(ourNumber, types.DefaultUserServer), CallID: "A"}},
	} {
		if !d.Handle(t.Context(), evt) {
			t.Errorf("%s: not taken", name)
		}
	}
	say(t, p, "still there?")
	if m := got(t, d.messages); m.Text != "still there?" {
		t.Errorf("got %+v", m)
	}
	if d.State() != string(whatsapp.StateConnected) {
		t.Errorf("it is %s", d.State())
	}
}
