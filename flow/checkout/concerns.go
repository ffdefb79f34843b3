package checkout

import (
	"context"
	"log/slog"

	"till/flow"
)

// concerns names what work is about, for its line of the log: its subject, and of that
// the session and the chat, by which somebody looks for it. What the store does not say
// now is left out.
func (s *Service) concerns(ctx context.Context, t flow.Task) []slog.Attr {
	var session flow.SessionID
	var chat flow.ChatID
	switch t.Kind { //nolint:exhaustive // the others are of no session
	case flow.TaskCheck, flow.TaskExpireSession:
		session = flow.SessionID(t.Subject)
	case flow.TaskSay, flow.TaskTimer:
		chat = flow.ChatID(t.Subject)
	case flow.TaskStart, flow.TaskSlow, flow.TaskExpireAttempt:
		if a, err := s.cfg.DB.Attempt(ctx, flow.AttemptID(t.Subject)); err == nil {
			session, chat = a.Session, a.Chat
		}
	case flow.TaskReturn:
		if p, err := s.cfg.DB.Payment(ctx, flow.PaymentID(t.Subject)); err == nil {
			session = p.Session
		}
	case flow.TaskRefund:
		if r, err := s.cfg.DB.Refund(ctx, flow.RefundID(t.Subject)); err == nil {
			session = r.Session
		}
	}
	attrs := []slog.Attr{slog.String("kind", string(t.Kind)), slog.String("subject", t.Subject)}
	if session != "" {
		attrs = append(attrs, slog.String("session", string(session)))
	}
	if chat != "" {
		attrs = append(attrs, slog.String("chat", string(chat)))
	}
	return attrs
}
