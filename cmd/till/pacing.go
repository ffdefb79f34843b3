package main

import (
	"context"
	"strconv"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// send is how the bot's messages leave: as fast as the network takes them, or at
// the pace of a person.
func (a *app) send() func(ctx context.Context, o checkout.Outgoing) error {
	if !a.set.Paced() {
		return func(ctx context.Context, o checkout.Outgoing) error { return a.fleet.Send(ctx, o) }
	}
	return bot.NewPacer(bot.PacerConfig{
		Sender: sender(func(ctx context.Context, o checkout.Outgoing) error { return a.fleet.Send(ctx, o) }),
		Pace:   bot.Pace{Sends: a.set.WhatsAppSends, NewChats: a.set.WhatsAppChats},
		Typing: func(ctx context.Context, number, person string) { a.fleet.Typing(ctx, number, person) },
		Since:  a.usedSince, Now: time.Now,
	}).Send
}

// sender sends by a function: the number is opened after what sends by it.
type sender func(ctx context.Context, o checkout.Outgoing) error

// Send sends a message.
func (s sender) Send(ctx context.Context, o checkout.Outgoing) error { return s(ctx, o) }

// usedSince is when a number of ours first sent something, which is now where it
// never did.
func (a *app) usedSince(ctx context.Context, number string) (time.Time, error) {
	name := "number_since_" + number
	kept, err := a.settings.Setting(ctx, name)
	if err == nil && kept == "" {
		kept = strconv.FormatInt(flow.Millis(time.Now()), 10)
		err = a.settings.Update(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, name, kept) })
	}
	if err != nil {
		return time.Time{}, err
	}
	at, err := strconv.ParseInt(kept, 10, 64)
	return flow.FromMillis(at), err
}
