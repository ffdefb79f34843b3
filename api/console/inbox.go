package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
)

// inboxView is what the queue is given.
type inboxView struct {
	Waiting []checkout.Waiting
	More    bool // than are shown
	Now     time.Time
}

// Since is since when a chat waits or has somebody; for one that the bot has, when its
// payer last wrote.
func (inboxView) Since(w checkout.Waiting) time.Time {
	if w.Desk.Since == 0 {
		return w.Wrote
	}
	return time.UnixMilli(w.Desk.Since)
}

// Late says of a chat that somebody should have answered in it by now.
func (i inboxView) Late(w checkout.Waiting) bool {
	return w.Desk.State == flow.DeskWaiting && i.late(i.Since(w))
}

// LateAnswer says so of a chat that somebody has.
func (i inboxView) LateAnswer(w checkout.Waiting) bool { return i.late(w.Desk.Unanswered()) }

func (i inboxView) late(since time.Time) bool { return i.Now.Sub(since) >= flow.DeskPatience }

// inbox is GET /inbox: who waits for a person.
func (c *Console) inbox(v *visit) error {
	list, more, err := v.service.DeskOf(v.ctx, v.project.ID)
	if err != nil {
		return err
	}
	return v.show("inbox", "Inbox", inboxView{Waiting: list, More: more, Now: v.service.Now()})
}

// chatView is what the page of one chat is given.
type chatView struct {
	checkout.Waiting

	Said   chatSaid
	Barred bool   // the project whose payment is spoken of gets nothing new here
	Me     string // as the desk knows who looks
	Wrong  string
	Text   string // as it was typed, after a mistake
	Reason string
}

// Has says whether whoever looks has the chat.
func (c chatView) Has() bool { return c.Desk.State == flow.DeskClaimed && c.Desk.By == c.Me }

// Taken says whether somebody else has the chat.
func (c chatView) Taken() bool { return c.Desk.State == flow.DeskClaimed && c.Desk.By != c.Me }

// chatSaid is the live part of the page: what was said.
type chatSaid struct {
	Steps []replay.Step
	Desk  flow.Desk
	Flag  string
}

// readChat is GET /inbox/{chat}.
func (c *Console) readChat(v *visit) error { return c.showChat(v, chatView{}) }

func (*Console) showChat(v *visit, data chatView) error {
	var err error
	if data.Waiting, err = v.service.DeskChat(v.ctx, v.project.ID, flow.ChatID(v.http.Params("chat"))); err != nil {
		return err
	}
	if data.Said.Steps, err = v.service.Read(v.ctx, v.project.ID, data.ID); err != nil {
		return err
	}
	v.looks("look.chat", v.project.ID, string(data.ID))
	data.Barred = v.barred(data.Session.Project)
	data.Said.Desk, data.Said.Flag, data.Me = data.Desk, data.Flag, v.who.Email
	return v.show("chat", "Chat", data)
}

// liveChat is GET /inbox/{chat}/live. It reads the conversation only when
// something was written to its log.
func (*Console) liveChat(v *visit) error {
	service, project, id := v.service, v.project.ID, flow.ChatID(v.http.Params("chat"))
	if _, err := service.DeskChat(v.ctx, project, id); err != nil {
		return err
	}
	v.looks("look.chat", project, string(id)) // also of a page that stays open for hours
	var shown int64 = -1
	var last []byte
	return v.live(func(ctx context.Context) ([]byte, error) {
		at, err := service.Stands(ctx, id)
		if err != nil || at == shown {
			return last, err
		}
		chat, err := service.DeskChat(ctx, project, id)
		if err != nil {
			return nil, err
		}
		steps, err := service.Read(ctx, project, id)
		if err != nil {
			return nil, err
		}
		if last, err = v.part("chat", "said", chatSaid{Steps: steps, Desk: chat.Desk, Flag: chat.Flag}); err == nil {
			shown = at
		}
		return last, err
	})
}

// claimChat is POST /inbox/{chat}/claim. Whoever is shut out while it is done has
// nothing of it: what they had was given back before, and nobody else could.
func (c *Console) claimChat(v *visit) error {
	reason := v.reason()
	return c.atDesk(v, "chat.claim", chatView{Reason: reason}, func(chat checkout.Waiting) error {
		if err := v.service.ClaimAbout(v.ctx, chat.ID, chat.Session.ID, v.who.Email, chat.Seq); err != nil {
			return err
		}
		_, err := c.cfg.Accounts.Visit(v.ctx, v.text)
		if err == nil {
			return nil
		}
		if back := v.service.Release(v.ctx, chat.ID, v.who.Email); back != nil {
			return errors.Join(err, back)
		}
		if stranger(err) {
			return errLogin
		}
		return err
	}, "The chat is yours: the bot is silent in it, but for news of money.")
}

// replyChat is POST /inbox/{chat}/reply.
func (c *Console) replyChat(v *visit) error {
	text := v.field("text")
	return c.atDesk(v, "chat.reply", chatView{Text: text}, func(chat checkout.Waiting) error {
		return v.service.Reply(v.ctx, chat.ID, v.who.Email, text, v.plainly(v.project.ID))
	}, "")
}

// releaseChat is POST /inbox/{chat}/release.
func (c *Console) releaseChat(v *visit) error {
	return c.atDesk(v, "chat.release", chatView{}, func(chat checkout.Waiting) error {
		return v.service.Release(v.ctx, chat.ID, v.who.Email)
	}, "The bot has the chat again.")
}

// atDesk does something in a chat that speaks of a payment of the visitor's
// project. What the desk refuses is told beside the form, as it was filled in.
func (c *Console) atDesk(v *visit, action string, form chatView, do func(checkout.Waiting) error, done string) error {
	chat, err := v.service.DeskChat(v.ctx, v.project.ID, flow.ChatID(v.http.Params("chat")))
	if err != nil {
		return err
	}
	if !chat.Mine {
		return flow.Refuse(codeNotAllowed, "The payer speaks of somebody else's payment now. Only who they speak of answers them.")
	}
	if err = v.audit(action, string(chat.ID), form.Reason, action == "chat.claim"); err == nil {
		err = do(chat)
	}
	code := flow.CodeOf(err)
	switch {
	case err == nil:
		return v.to("/inbox/"+string(chat.ID), done)
	case errors.Is(err, flow.ErrDesk):
		says := deskSays(chat, v.who.Email)
		form.Wrong = "Not done: " + says
		v.refusesFor(http.StatusConflict, flow.Refuse(codeChanged, "%s", says))
	case code == flow.CodeInvalidField || code == flow.CodeMissingField:
		form.Wrong = plainWords(err)
		v.http.Status(v.refused(err))
	default:
		return err
	}
	return c.showChat(v, form)
}

// shutOut ends whatever somebody has open, and gives the bot back their chats.
func (c *Console) shutOut(ctx context.Context, p flow.Person) error {
	return c.cfg.Accounts.ShutOut(ctx, p, func() error {
		for _, service := range c.cfg.Services {
			if err := service.GiveBack(ctx, p.Email); err != nil {
				return err
			}
		}
		return nil
	})
}

// deskSays says for people why the desk refuses.
func deskSays(chat checkout.Waiting, me string) string {
	switch {
	case chat.Desk.State == flow.DeskClaimed && chat.Desk.By != me:
		return chat.Desk.By + " has this chat."
	case chat.Desk.State != flow.DeskClaimed:
		return "claim the chat first; if you did, something happened in it meanwhile: read it, and try again."
	}
	return "something happened in the chat meanwhile: read it, and try again."
}

// plainWords is what a refusal says to people.
func plainWords(err error) string {
	if own, ok := errors.AsType[*flow.Error](err); ok {
		return own.Message
	}
	return err.Error()
}
