package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/bot/whatsapp/wanet"
	"till/flow"
)

// While the bot is away its phone is only switched off: payers write to it, and
// the network keeps what they wrote.
func TestPayersWriteToABotThatIsAway(t *testing.T) {
	network, err := wanet.Open(t.Context(), wanet.Config{File: filepath.Join(t.TempDir(), "network.db"), Now: time.Now})
	must(t, err)
	t.Cleanup(func() { _ = network.Close() })
	if _, err := network.AddAccount(botNumber, botName); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = network.Serve(t.Context(), ln) }()
	connected := ""
	p := &phones{network: wanet.NewRemote("http://"+ln.Addr().String(), loopbackClient()), number: func() string { return connected }, ours: func(n string) bool { return n == botNumber }}
	payer, err := p.Create(t.Context(), "", "Ada")
	must(t, err)

	if _, err := p.Send(t.Context(), payer.Number, "hello", ""); flow.CodeOf(err) != flow.CodeWhatsAppUnavailable {
		t.Errorf("a bot that never had a number: %v", err)
	}
	connected = botNumber
	if _, err := p.Send(t.Context(), payer.Number, "hello", ""); err != nil {
		t.Errorf("a bot that is there: %v", err)
	}
	said, err := p.Screen(t.Context(), payer.Number, 0, 0)
	if err != nil || len(said.Messages) != 1 || said.Messages[0].Text != "hello" || said.Typing {
		t.Errorf("the phone shows %+v, %v", said, err)
	}
	if _, err := p.Send(t.Context(), payer.Number, "about that", said.Messages[0].ID); err != nil {
		t.Errorf("an answer to a message: %v", err)
	}
	now, err := p.Screen(t.Context(), payer.Number, said.Version, time.Minute)
	if err != nil || now.Version == said.Version || len(now.Messages) != 2 || now.Messages[1].Quoted != said.Messages[0].ID {
		t.Errorf("the phone shows %+v, %v", now, err)
	}
	if err := p.MarkRead(t.Context(), payer.Number); err != nil {
		t.Errorf("reading: %v", err)
	}
	connected = ""
	if _, err := p.Send(t.Context(), payer.Number, "are you there?", ""); err != nil {
		t.Errorf("a bot that is away: %v", err)
	}
	if all, err := p.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("the payers' phones are %v, %v; the bot's is none of them", all, err)
	}
	p.network = wanet.NewRemote("http://127.0.0.1:1", loopbackClient())
	if _, err := p.Send(t.Context(), payer.Number, "hello?", ""); flow.CodeOf(err) != flow.CodeWhatsAppUnavailable {
		t.Errorf("a network that is away: %v", err)
	}
}

// A network that nobody answers for yet may be one of ours; one that answers in
// another way is not.
func TestANetworkThatIsNotUpYet(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	remote := wanet.NewRemote("http://"+ln.Addr().String(), loopbackClient())
	go func() {
		if c, err := ln.Accept(); err == nil {
			_, _ = c.Write([]byte("not HTTP\r\n\r\n"))
			_ = c.Close()
		}
	}()
	if _, err := remote.Info(t.Context()); err == nil || unreached(err) {
		t.Errorf("one that speaks another language: %v", err)
	}
	must(t, ln.Close())
	if _, err := remote.Info(t.Context()); err == nil || !unreached(err) {
		t.Errorf("nobody there: %v", err)
	}
}

// A name counts by its characters, as the document has it, and what the network takes
// for no phone is not our fault.
func TestAPhoneIsNamedInAnyLanguageAndANumberThatIsNoneIsRefused(t *testing.T) {
	m, _, _ := devServer(t)
	name := strings.Repeat("Ọ", 100)
	if status, out, err := m.try(http.MethodPost, "/v1/test/phones", object{"pushName": name}); err != nil || status != http.StatusCreated || out["data"].(object)["pushName"] != name {
		t.Errorf("a name of 100 characters: %d %v %v", status, out, err)
	}
	if status, out, err := m.try(http.MethodPost, "/v1/test/phones", object{"phone": "+13135550002"}); err != nil || status != http.StatusBadRequest {
		t.Errorf("the number of a bot of WhatsApp's own: %d %v %v", status, out, err)
	}
}

// The bot's phone is nobody's to play: whoever adds one of its numbers as a phone of
// their own would write in its name, and could take it from all payers.
func TestNobodyPlaysTheBotsOwnPhone(t *testing.T) {
	m, _, _ := devServer(t)
	m.eventually(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500_000, "customerEmail": "ada@example.com", "mode": "chat"}) // the bot has its number
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, "/v1/test/phones", object{"phone": botNumber}},
		{http.MethodPost, "/v1/test/phones/" + botNumber + "/messages", object{"text": "hello"}},
		{http.MethodGet, "/v1/test/phones/" + botNumber + "/messages", nil},
		{http.MethodDelete, "/v1/test/phones/" + botNumber, nil},
	} {
		if status, out, err := m.try(call.method, call.path, call.body); err != nil || status != http.StatusNotFound {
			t.Errorf("%s %s: %d %v %v", call.method, call.path, status, out, err)
		}
	}
}
