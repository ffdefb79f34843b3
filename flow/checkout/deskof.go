package checkout

import (
	"cmp"
	"context"
	"errors"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// Waiting is a chat of the queue as those see it who answer for one project.
type Waiting struct {
	store.ChatRow

	Seq     int64        // of the state that this is
	Wrote   time.Time    // when the payer last wrote, zero for never
	Session flow.Session // in focus, or what a person is waited for about; zero for none, or for another project's
	Mine    bool         // they may claim it: that is a payment of theirs
}

// maxRead is how many lines of its log an agent sees of a chat.
const maxRead = 400

// maxDeskOf bounds how many chats are looked through for those that speak of a
// project's payments now: most of those that ever did, do.
const maxDeskOf = 10 * maxDesk

// DeskOf is the queue of a project: the chats whose payers speak of a payment of
// its now, and whether there are more of them. "" sees all of them.
func (s *Service) DeskOf(ctx context.Context, project flow.ProjectID) (list []Waiting, more bool, err error) {
	var rows []store.ChatRow
	most := maxDesk + 1
	if project == "" {
		rows, err = s.cfg.DB.Desk(ctx, most)
	} else {
		most = maxDeskOf
		rows, err = s.cfg.DB.DeskOf(ctx, project, most)
	}
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		w, err := s.waits(ctx, project, row)
		if err != nil {
			return nil, false, err
		}
		if !w.Mine || w.Desk.State == flow.DeskBot && w.Flag == "" { // nor where nobody of theirs was asked for
			continue
		}
		if len(list) == maxDesk {
			return list, true, nil
		}
		list = append(list, w)
	}
	return list, len(rows) == most, nil
}

// DeskChat is one chat as those see it who answer for a project; "" sees all.
// Errors: resource_not_found.
func (s *Service) DeskChat(ctx context.Context, project flow.ProjectID, id flow.ChatID) (Waiting, error) {
	row, err := s.chatOf(ctx, project, id)
	if err != nil {
		return Waiting{}, err
	}
	return s.waits(ctx, project, row)
}

// chatOf reads a chat of a project: one in which a session of its was opened.
func (s *Service) chatOf(ctx context.Context, project flow.ProjectID, id flow.ChatID) (store.ChatRow, error) {
	row, err := s.cfg.DB.Chat(ctx, id)
	if err != nil || project == "" {
		return row, err
	}
	theirs, err := s.cfg.DB.Observes(ctx, id, project)
	if err == nil && !theirs {
		err = flow.Refuse(flow.CodeNotFound, "There is no chat %q.", id)
	}
	if err != nil {
		return store.ChatRow{}, err
	}
	return row, nil
}

// waits reads what a chat is about now.
func (s *Service) waits(ctx context.Context, project flow.ProjectID, row store.ChatRow) (Waiting, error) {
	out := Waiting{ChatRow: row, Seq: row.Decided, Mine: project == ""}
	if err := errors.Join(s.called(ctx, &out.ChatRow), s.focused(ctx, project, &out)); err != nil {
		return out, err
	}
	if !out.Mine { // who answers another merchant's payer, and why, is nobody's business
		out.Desk, out.Flag = flow.Desk{}, ""
	}
	return out, nil
}

// focused reads which payment a chat speaks of, or a person is waited for about, where
// that is the project's.
func (s *Service) focused(ctx context.Context, project flow.ProjectID, out *Waiting) error {
	if out.Decided == 0 {
		return nil
	}
	chat, err := logged(ctx, s.cfg.DB.Reader, out.ChatRow)
	if chat.Wrote != 0 {
		out.Wrote = time.UnixMilli(chat.Wrote)
	}
	out.Desk.Owed, out.Desk.Over, out.Desk.Due = chat.Desk.Owed, chat.Desk.Over, chat.Desk.Due
	about := cmp.Or(chat.Desk.About, chat.Focus)
	if err != nil || about == "" {
		return err
	}
	session, err := s.cfg.DB.Session(ctx, about)
	if err != nil {
		return err
	}
	if project == "" || session.Project == project {
		out.Session, out.Mine = session, true
	}
	if out.Mine || !chat.NobodyCame() {
		return nil
	}
	if session, err = s.cfg.DB.Session(ctx, chat.Focus); err == nil && session.Project == project {
		out.Session, out.Mine, out.Desk, out.Flag = session, true, flow.Desk{}, "" // who was asked for is nobody's business
	}
	return err
}

// Read is the end of a conversation as an agent of a project reads it, without
// what was said of other projects' payments; "" sees all. Errors:
// resource_not_found.
func (s *Service) Read(ctx context.Context, project flow.ProjectID, id flow.ChatID) ([]replay.Step, error) {
	row, err := s.chatOf(ctx, project, id)
	if err != nil {
		return nil, err
	}
	_, rec, err := s.recorded(ctx, row, maxRead)
	if err != nil {
		return nil, err
	}
	own, err := s.ownIn(ctx, project, "", rec)
	if err != nil {
		return nil, err
	}
	return replay.Steps(rec, own)
}

// Stands says how far the log of a chat is: what is shown of it is the same until
// this is another number.
func (s *Service) Stands(ctx context.Context, id flow.ChatID) (int64, error) {
	return s.cfg.DB.LastSeq(ctx, string(id))
}

// ChatsOf are the chats in which a session was opened. Errors: resource_not_found,
// also for another project's session; "" sees all.
func (s *Service) ChatsOf(ctx context.Context, project flow.ProjectID, id flow.SessionID) (flow.Session, []store.ChatRow, error) {
	session, err := s.cfg.DB.Session(ctx, id)
	if err == nil && project != "" && session.Project != project {
		err = flow.Refuse(flow.CodeNotFound, "There is no session %q.", id)
	}
	if err != nil {
		return flow.Session{}, nil, err
	}
	rows, err := s.cfg.DB.Watchers(ctx, id)
	return session, rows, err
}
