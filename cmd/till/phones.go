package main

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"till/api"
	"till/bot/whatsapp/wanet"
	"till/flow"
)

// phones are the pretend phones of the local network, whichever process it runs
// in. They write to the number that the bot has now.
type phones struct {
	network *wanet.Remote
	number  func() string // "" while the bot is away
	ours    func(number string) bool
	last    atomic.Pointer[string]
}

// bot is the bot's number: the one it had, while it is away. A payer writes to
// a bot that is away as to any other; the network keeps the message for it.
func (p *phones) bot() string {
	if number := p.number(); number != "" {
		p.last.Store(&number)
		return number
	}
	if last := p.last.Load(); last != nil {
		return *last
	}
	return ""
}

var _ api.Phones = (*phones)(nil)

// payers refuses the bot's own numbers: whoever plays one of those writes in the
// bot's name and can unlink it for everybody.
func (p *phones) payers(phone flow.Phone) error {
	if p.ours(string(phone)) {
		return missingPhone(wanet.ErrNoAccount)
	}
	return nil
}

// Create switches a phone on.
func (p *phones) Create(ctx context.Context, phone flow.Phone, pushName string) (api.Phone, error) {
	if err := p.payers(phone); err != nil {
		return api.Phone{}, err
	}
	made, err := p.network.AddPhone(ctx, string(phone), pushName)
	if err != nil {
		return api.Phone{}, missingPhone(err)
	}
	return toPhone(made), nil
}

// List is every phone but those of the bot's own numbers.
func (p *phones) List(ctx context.Context) ([]api.Phone, error) {
	list, err := p.network.Phones(ctx)
	if err != nil {
		return nil, missingPhone(err)
	}
	out := make([]api.Phone, 0, len(list))
	for _, one := range list {
		if !p.ours(one.Phone) {
			out = append(out, toPhone(one))
		}
	}
	return out, nil
}

// Send writes to the bot.
func (p *phones) Send(ctx context.Context, phone flow.Phone, text, quoted string) (api.Message, error) {
	if err := p.payers(phone); err != nil {
		return api.Message{}, err
	}
	number := p.bot()
	if number == "" {
		return api.Message{}, flow.Refuse(flow.CodeWhatsAppUnavailable, "The bot has no number on the network right now.")
	}
	m, err := p.network.SendQuote(ctx, string(phone), number, text, quoted)
	if err != nil {
		return api.Message{}, missingPhone(err)
	}
	return toMessage(m), nil
}

// Messages are a phone's messages after a cursor.
func (p *phones) Messages(ctx context.Context, phone flow.Phone, after string, wait time.Duration) ([]api.Message, string, error) {
	if err := p.payers(phone); err != nil {
		return nil, "", err
	}
	var seq int64
	if after != "" {
		var err error
		if seq, err = strconv.ParseInt(after, 10, 64); err != nil || seq < 0 {
			return nil, "", flow.Refuse(flow.CodeInvalidCursor, "The cursor %q is not one that was given out.", after)
		}
	}
	list, next, err := p.network.Messages(ctx, string(phone), seq, wait)
	if err != nil {
		return nil, "", missingPhone(err)
	}
	out := make([]api.Message, len(list))
	for i, m := range list {
		out[i] = toMessage(m)
	}
	return out, strconv.FormatInt(next, 10), nil
}

// Screen is what a phone shows of its chat with the bot.
func (p *phones) Screen(ctx context.Context, phone flow.Phone, seen int64, wait time.Duration) (api.Screen, error) {
	if err := p.payers(phone); err != nil {
		return api.Screen{}, err
	}
	s, err := p.network.Screen(ctx, string(phone), p.bot(), seen, wait)
	if err != nil {
		return api.Screen{}, missingPhone(err)
	}
	out := api.Screen{Version: s.Version, Typing: s.Typing, Messages: make([]api.Message, len(s.Messages))}
	for i, m := range s.Messages {
		out.Messages[i] = toMessage(m)
	}
	return out, nil
}

// MarkRead tells the bot that what it wrote was read.
func (p *phones) MarkRead(ctx context.Context, phone flow.Phone) error {
	if err := p.payers(phone); err != nil {
		return err
	}
	return missingPhone(p.network.MarkRead(ctx, string(phone), p.bot()))
}

// Delete takes a phone off the network.
func (p *phones) Delete(ctx context.Context, phone flow.Phone) error {
	if err := p.payers(phone); err != nil {
		return err
	}
	return missingPhone(p.network.RemovePhone(ctx, string(phone)))
}

func toPhone(p wanet.PhoneInfo) api.Phone {
	return api.Phone{Number: flow.Phone(strings.TrimPrefix(p.Phone, "+")), PushName: p.PushName}
}

func toMessage(m wanet.Message) api.Message {
	return api.Message{ID: m.ID, Text: m.Text, FromMe: m.FromMe, At: m.At, Status: m.Status, Quoted: m.Quoted}
}

// missingPhone gives the network's "not there" and "not this one" the codes that
// merchants know.
func missingPhone(err error) error {
	if errors.Is(err, wanet.ErrNoAccount) {
		return flow.Refuse(flow.CodeNotFound, "There is no such phone on the network.")
	}
	if errors.Is(err, wanet.ErrInput) {
		return flow.Refuse(flow.CodeInvalidField, "The WhatsApp network does not take this number or name. Try another one.")
	}
	if _, unanswered := errors.AsType[*url.Error](err); unanswered {
		return flow.Refuse(flow.CodeWhatsAppUnavailable, "The WhatsApp network does not answer right now.")
	}
	return err
}
