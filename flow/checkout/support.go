package checkout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// The bounds of what supporters do.
const (
	maxNote  = 2000 // characters
	maxNotes = 100  // about one session
	// sayAgainAtMost is how often a payer is sent their instructions again because
	// a supporter wants it.
	sayAgainAtMost = time.Minute
)

// prefixNote is the prefix of the ids of notes.
const prefixNote = "note_"

// Note keeps what a supporter writes down about a session of the call's project.
// Errors: resource_not_found, missing_field, invalid_field, card_data_not_accepted,
// idempotency_key_reused.
func (s *Service) Note(ctx context.Context, id flow.SessionID, author, text string, c Call) error {
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	switch n := len([]rune(text)); {
	case flow.Says(text) == 0:
		return flow.Refuse(flow.CodeMissingField, "Write something into the note.")
	case n > maxNote:
		return flow.Refuse(flow.CodeInvalidField, "A note has at most %d characters, not %d.", maxNote, n)
	}
	if err := flow.MayKeep("The note", "", text); err != nil {
		return err
	}
	name, err := s.ids.New(prefixNote)
	if err != nil {
		return err
	}
	return s.plain(ctx, c, "keep a note", func(w *saving) error {
		if _, err := w.owned(c.Project, id); err != nil {
			return err
		}
		before, err := w.tx.Notes(ctx, id, maxNotes)
		if err != nil {
			return err
		}
		if len(before) == maxNotes {
			return flow.Refuse(flow.CodeInvalidField, "There are %d notes about this session already.", maxNotes)
		}
		return w.tx.AddNote(ctx, store.Note{ID: name, Session: id, Author: author, Text: text, At: w.now})
	})
}

// Notes are the notes about a session of a project, oldest first.
func (s *Service) Notes(ctx context.Context, project flow.ProjectID, id flow.SessionID) ([]store.Note, error) {
	if _, err := owned(ctx, s.cfg.DB.Reader, project, id); err != nil {
		return nil, err
	}
	return s.cfg.DB.Notes(ctx, id, maxNotes)
}

// SayAgain sends every chat of a session once more what its payer has to do, and
// says how many chats there are. Errors: resource_not_found, rate_limited where
// that was done less than a minute ago, invalid_field where its payer was forgotten.
func (s *Service) SayAgain(ctx context.Context, project flow.ProjectID, id flow.SessionID, by string) (chats int, err error) {
	err = s.update(ctx, func(w *saving) error {
		if _, err := w.owned(project, id); err != nil {
			return err
		}
		last, err := w.tx.LastAgain(ctx, id)
		if err != nil {
			return err
		}
		if since := w.now.Sub(last); since.Abs() < sayAgainAtMost { // before it where the clock was set back
			refusal := flow.Refuse(flow.CodeRateLimited, "The instructions were sent again %d seconds ago. Wait a minute.", int(max(since, 0).Seconds()))
			refusal.RetryAfter = sayAgainAtMost - since
			return refusal
		}
		rows, err := w.tx.Watchers(ctx, id)
		if err != nil {
			return err
		}
		chats = 0 // it may be done once more
		for _, row := range rows {
			if Forgotten(row.Person) {
				continue
			}
			if err := w.tellChat(row.ID, id, flow.News{Kind: flow.NewsAgain, By: by}); err != nil {
				return err
			}
			chats++
		}
		if chats == 0 && len(rows) > 0 {
			return toNobody()
		}
		return nil
	})
	return chats, wrap("send instructions again", err)
}

// toNobody refuses to write to a payer who was forgotten: it would stand as not sent.
func toNobody() error {
	return flow.Refuse(flow.CodeInvalidField, "The payer was forgotten, and nothing can be sent to them.")
}

// Seen is all that is told of a session at one moment: how it stands, what a payer can be
// told of each payment that did not fit, and what is due, the next first.
type Seen struct {
	View

	Answers map[flow.PaymentID]string // in the language of its chat: words to copy
	Timers  []Timer
}

// Seen reads that, and at the same moment what more reads, if it is not nil. Read one after the other, money
// could be in one place of a page and not in the other.
func (s *Service) Seen(ctx context.Context, project flow.ProjectID, id flow.SessionID, more func(store.Reader) error) (out Seen, err error) {
	err = s.cfg.DB.View(ctx, func(r store.Reader) error {
		session, err := owned(ctx, r, project, id)
		if err != nil {
			return err
		}
		if out.View, err = s.view(ctx, r, session); err != nil {
			return err
		}
		if out.Answers, err = s.explain(ctx, r, out.View); err != nil {
			return err
		}
		if out.Timers, err = timers(ctx, r, session); err != nil || more == nil {
			return err
		}
		return more(r)
	})
	return out, err
}

// explain says what a payer can be told of each payment that did not fit.
func (s *Service) explain(ctx context.Context, r store.Reader, v View) (map[flow.PaymentID]string, error) {
	if len(v.Payments) == 0 {
		return nil, nil
	}
	rows, err := r.Watchers(ctx, v.Session.ID)
	if err != nil {
		return nil, err
	}
	now, out := s.cfg.Now(), map[flow.PaymentID]string{}
	co := flow.Look(v.Session, v.Attempts, v.Payments, v.Offers)
	for _, p := range v.Payments {
		lang, err := languageOf(ctx, r, rows, v.Attempts, p)
		if err != nil {
			return nil, err
		}
		if say, ok := flow.Answer(co, p, len(rows) > 0, lang, now); ok {
			out[p.ID] = s.cfg.Words(say, now)
		}
	}
	return out, nil
}

// languageOf is the language that whoever paid chose, "" for none; of money that came in
// no chat it is that of the first who opened the session.
func languageOf(ctx context.Context, r store.Reader, rows []store.ChatRow, attempts []flow.Attempt, p flow.Payment) (flow.Lang, error) {
	i := slices.IndexFunc(rows, func(row store.ChatRow) bool {
		return slices.ContainsFunc(attempts, func(a flow.Attempt) bool { return a.ID == p.Attempt && a.Chat == row.ID })
	})
	if i = max(i, 0); len(rows) == 0 || rows[i].Decided == 0 {
		return "", nil
	}
	chat, err := logged(ctx, r, rows[i])
	return chat.Lang, err
}

// Timer is something that happens by itself, unless something else happens
// before.
type Timer struct {
	At    time.Time
	What  string
	Tries int // that failed
}

// timers are what is due of a session, the next first.
func timers(ctx context.Context, r store.Reader, session flow.Session) ([]Timer, error) {
	id := session.ID
	subjects := []string{string(id)}
	type work struct {
		kind    flow.TaskKind
		subject string
	}
	idle := map[work]bool{} // what is owed still, and does nothing any more
	attempts, err := r.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		subjects = append(subjects, string(a.ID))
		asked := a.Instructions != nil || a.Status != flow.AttemptActive
		idle[work{flow.TaskStart, string(a.ID)}], idle[work{flow.TaskSlow, string(a.ID)}] = asked, asked
		idle[work{flow.TaskExpireAttempt, string(a.ID)}] = a.Status != flow.AttemptActive && a.Status != flow.AttemptSuperseded
	}
	payments, err := r.Payments(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, p := range payments {
		subjects = append(subjects, string(p.ID))
		idle[work{flow.TaskReturn, string(p.ID)}] = p.Resolution != flow.Unresolved || p.Unapplied == 0
	}
	refunds, err := r.Refunds(ctx, store.RefundFilter{Project: session.Project, Session: id, Limit: maxNotes})
	if err != nil {
		return nil, err
	}
	for _, b := range refunds {
		subjects = append(subjects, string(b.ID))
		if b.Status == flow.RefundFailed { // is sent again then
			idle[work{flow.TaskReturn, string(b.Payment)}] = false
		}
	}
	rows, err := r.Watchers(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []Timer
	for _, row := range rows {
		subjects = append(subjects, string(row.ID))
		if row.Decided == 0 {
			continue
		}
		chat, err := logged(ctx, r, row)
		if err != nil {
			return nil, err
		}
		for deed, at := range chat.Ahead(id) {
			list = append(list, Timer{At: at, What: deeds[deed]})
		}
	}
	tasks, err := r.TasksOf(ctx, subjects)
	if err != nil {
		return nil, err
	}
	if session.Open() {
		list = append(list, Timer{At: session.ExpiresAt, What: "the session expires"})
	}
	for _, t := range tasks {
		if what := dueWork[t.Kind]; what != "" && !idle[work{t.Kind, t.Subject}] && (t.Kind != flow.TaskExpireSession || !session.Open()) {
			list = append(list, Timer{At: t.Due, What: what, Tries: t.Attempts})
		}
	}
	slices.SortStableFunc(list, func(a, b Timer) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.What, b.What)) })
	return list, nil
}

// deeds says for people what a chat does by itself.
var deeds = map[flow.Deed]string{
	flow.DeedNudge: "the payer is asked whether they still want to pay", flow.DeedRemind: "the payer is reminded that the instructions run out",
	flow.DeedPoll: "the bank is asked again, as the payer said that it is paid", flow.DeedClose: "the chat lets this payment rest, where the payer does not write",
	flow.DeedNobody: "the payer hears that no person has come yet", flow.DeedReturn: "the bot answers in the chat again, where no person writes",
}

// dueWork says for people what each kind of work does, but for what a chat does.
var dueWork = map[flow.TaskKind]string{
	flow.TaskStart: "the bank is asked for instructions", flow.TaskCheck: "the bank is asked what came", flow.TaskSay: "messages go out",
	flow.TaskSlow: `the payer hears "one moment"`, flow.TaskExpireAttempt: "the instructions run out",
	flow.TaskExpireSession: "the session is closed", flow.TaskReturn: "money that nobody decided about goes back", flow.TaskRefund: "the bank is told of a refund, or asked about it",
}

// Exported is the recording of one chat of a session without who the payer is and
// without what they wrote, as a file of lines of JSON; chat "" is the only one.
// Errors: resource_not_found, invalid_field where there are several.
func (s *Service) Exported(ctx context.Context, project flow.ProjectID, id flow.SessionID, chat flow.ChatID) (replay.Recording, error) {
	if _, err := owned(ctx, s.cfg.DB.Reader, project, id); err != nil {
		return replay.Recording{}, err
	}
	list, err := Recordings(ctx, s.cfg.DB.Reader, id, "")
	if err != nil {
		return replay.Recording{}, err
	}
	if chat != "" {
		list = slices.DeleteFunc(list, func(r replay.Recording) bool { return r.Chat != chat })
	}
	switch len(list) {
	case 0:
		return replay.Recording{}, flow.Refuse(flow.CodeNotFound, "Nobody has opened this session in a chat: there is no conversation to export.")
	case 1:
		own, err := s.ownIn(ctx, project, "", list[0])
		if err != nil {
			return replay.Recording{}, err
		}
		part, err := replay.Part(list[0], own)
		if err != nil {
			return replay.Recording{}, fmt.Errorf("export a chat: %w", err)
		}
		return replay.Redact(part)
	}
	return replay.Recording{}, flow.Refuse(flow.CodeInvalidField, "This session was opened in %d chats: export one of them.", len(list))
}
