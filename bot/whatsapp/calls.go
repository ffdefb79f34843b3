package whatsapp

import (
	"context"
	"errors"
	"log/slog"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
)

// call rejects a call and hands it over as a message, so that the caller is
// told what else there is. A call is offered once: what is not kept of it is
// lost. Calls of groups are nobody's.
func (c *Client) call(ctx context.Context, wa *whatsmeow.Client, evt *events.CallOffer) {
	if !evt.GroupJID.IsEmpty() || !isPerson(evt.From) || isOurs(wa, evt.From.String()) || evt.CallID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.pace.receive)
	defer cancel()
	if err := wa.RejectCall(context.WithoutCancel(ctx), evt.From, evt.CallID); err != nil {
		c.log.WarnContext(ctx, "whatsapp call not rejected", slog.String("error", scrub(err.Error())))
	}
	person, phone, err := who(ctx, wa, evt.From, evt.CallCreatorAlt)
	if errors.Is(err, errNoLID) {
		return
	}
	if err == nil {
		err = c.cfg.Receive(ctx, bot.Message{Number: c.ours(), Person: person, Phone: phone, ID: evt.CallID, Kind: bot.KindCall, Wrote: evt.Timestamp, Fades: unsaid})
	}
	if err != nil {
		c.log.ErrorContext(ctx, "whatsapp call not kept", slog.String("phone", phone.String()), slog.String("error", scrub(err.Error())))
	}
}
