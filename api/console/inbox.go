package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
)

// deskAgain is how often an inbox that stands open is read anew.
const deskAgain = 2 * time.Second

// inboxView is what the queue is given.
type inboxView struct {
	Waiting []checkout.Waiting
	More    bool // than are shown
	Now     time.Time
}

// named is how many payers are named of those that wait.
const named = 3

// Answers are the payers who wait for an answer.
func (i inboxView) Answers() (list []checkout.Waiting) {
	for _, w := range i.Waiting {
		if owed(w) && !wentOn(w) {
			list = append(list, w)
		}
	}
	return list
}

// Tell says who waits, to those too who do not see the list.
func (i inboxView) Tell() string {
	var names []string
	for _, w := range i.Answers() {
		names = append(names, cmp.Or(w.Name, "a payer"))
	}
	says := "Nobody waits for an answer."
	switch n := len(names); {
	case n == 1:
		says = "1 payer waits for an answer: " + names[0] + "."
	case n > named:
		says = fmt.Sprintf("%d payers wait for an answer: %s and others.", n, strings.Join(names[:named], ", "))
	case n > 0:
		says = fmt.Sprintf("%d payers wait for an answer: %s.", n, strings.Join(names, ", "))
	}
	look := 0
	for _, w := range i.Waiting {
		if w.Desk.State == flow.DeskBot || wentOn(w) {
			look++
		}
	}
	if look > 0 {
		says += fmt.Sprintf(" To be looked at: %d.", look)
	}
	return says
}

// wentOn says whether a person was waited for in vain, and the payer went on to another
// payment: nothing more is due to them by itself.
func wentOn(w checkout.Waiting) bool { return w.Desk.State == flow.DeskWaiting && w.Desk.Due == 0 }

// owed says whether the payer of a chat waits for a person to write.
func owed(w checkout.Waiting) bool {
	return w.Desk.State == flow.DeskWaiting || !w.Desk.Unanswered().IsZero()
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
func (*Console) inbox(v *visit) error {
	out, err := queueOf(v.ctx, v.service, v.project.ID)
	if err != nil {
		return err
	}
	return v.show("inbox", "Inbox", out)
}

// liveInbox is GET /inbox/live.
func (c *Console) liveInbox(v *visit) error {
	if err := v.ofHere(); err != nil {
		return err
	}
	service, project, opened := v.service, v.project.ID, c.cfg.Real()
	shared := c.queueAt(v.place())
	return v.live(func(ctx context.Context) ([]byte, error) {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		now := c.cfg.Real()
		if age := now.Sub(shared.read); age >= 0 && age < deskAgain && !shared.read.Before(opened) { // a clock may be set back
			return shared.last, nil
		}
		out, err := queueOf(ctx, service, project)
		if err != nil {
			return nil, err
		}
		part, err := v.part("inbox", "queue", out)
		if err == nil {
			shared.read, shared.last = now, part
		}
		return part, err
	})
}

// queuePart is what an inbox that stands open shows, as it was read last: all who look at one
// project see the same, and reading it costs much where many wait. Whoever opens one reads it
// anew all the same: what was read before would take from the page who stands on it already.
type queuePart struct {
	mu   sync.Mutex
	read time.Time
	last []byte
}

// queueAt is that of a place. What nobody looks at any more is forgotten: it holds who waited
// there, and there is one for each project that ever had an inbox open.
func (c *Console) queueAt(place string) *queuePart {
	now := c.cfg.Real()
	c.queues.Range(func(at, kept any) bool {
		if q := kept.(*queuePart); at != place && q.mu.TryLock() { //nolint:errcheck // nothing else is kept in it
			if !q.read.IsZero() && now.Sub(q.read).Abs() > streamLife {
				c.queues.Delete(at)
			}
			q.mu.Unlock()
		}
		return true
	})
	kept, _ := c.queues.LoadOrStore(place, &queuePart{})
	return kept.(*queuePart) //nolint:errcheck // as above
}

func queueOf(ctx context.Context, service *checkout.Service, project flow.ProjectID) (inboxView, error) {
	list, more, err := service.DeskOf(ctx, project)
	return inboxView{Waiting: list, More: more, Now: service.Now()}, err
}

// chatView is what the page of one chat is given.
type chatView struct {
	chatSaid

	Barred bool // the project whose payment is spoken of gets nothing new here
	Wrong  string
	Text   string // as it was typed, after a mistake
	Reason string
}

// chatSaid is the live part of the page: what was said, who answers, and how the payment
// stands that is spoken of.
type chatSaid struct {
	checkout.Waiting

	Steps []replay.Step
	Me    string // as the desk knows who looks
}

// Has says whether whoever looks has the chat.
func (c chatSaid) Has() bool { return c.Desk.State == flow.DeskClaimed && c.Desk.By == c.Me }

// Taken says whether somebody else has the chat.
func (c chatSaid) Taken() bool { return c.Desk.State == flow.DeskClaimed && c.Desk.By != c.Me }

// Owed says whether the payer waits for a person to write.
func (c chatSaid) Owed() bool { return owed(c.Waiting) }

// Tell says what the payer wrote last, to those too who do not see it.
func (c chatSaid) Tell() string {
	for _, step := range slices.Backward(c.Steps) {
		for _, b := range slices.Backward(step.Bubbles) {
			if b.FromPayer {
				return cmp.Or(c.Name, "The payer") + " wrote: " + b.Text
			}
		}
	}
	return ""
}

// said reads a chat as those see it who answer for a project.
func said(ctx context.Context, service *checkout.Service, project flow.ProjectID, id flow.ChatID, me string) (out chatSaid, err error) {
	out.Me = me
	if out.Waiting, err = service.DeskChat(ctx, project, id); err == nil {
		out.Steps, err = service.Read(ctx, project, id)
	}
	return out, err
}

// readChat is GET /inbox/{chat}.
func (c *Console) readChat(v *visit) error { return c.showChat(v, chatView{}) }

func (*Console) showChat(v *visit, data chatView) error {
	var err error
	if data.chatSaid, err = said(v.ctx, v.service, v.project.ID, flow.ChatID(v.http.Params("chat")), v.who.Email); err != nil {
		return err
	}
	v.looks("look.chat", v.project.ID, string(data.ID))
	data.Barred = v.barred(data.Session.Project)
	if data.Text != "" && !data.Has() { // there is no form any more that it would stand in
		v.undone = append(v.undone, data.Text)
	}
	return v.show("chat", "Chat with "+cmp.Or(data.Name, "a payer"), data)
}

// liveChat is GET /inbox/{chat}/live. It reads the conversation only when
// something was written to its log.
func (*Console) liveChat(v *visit) error {
	service, project, id, me := v.service, v.project.ID, flow.ChatID(v.http.Params("chat")), v.who.Email
	if err := v.ofHere(); err != nil {
		return err
	}
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
		chat, err := said(ctx, service, project, id, me)
		if err != nil {
			return nil, err
		}
		if last, err = v.part("chat", "said", chat); err == nil {
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
