package checkout

import (
	"context"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// Recordings are the logs of the chats that a session was spoken of in, or of
// the one chat that is named. Errors: resource_not_found.
func Recordings(ctx context.Context, r store.Reader, session flow.SessionID, chat flow.ChatID) ([]replay.Recording, error) {
	var rows []store.ChatRow
	if chat != "" {
		row, err := r.Chat(ctx, chat)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	} else {
		if _, err := r.Session(ctx, session); err != nil {
			return nil, err
		}
		var err error
		if rows, err = r.Watchers(ctx, session); err != nil {
			return nil, err
		}
	}
	list := make([]replay.Recording, 0, len(rows))
	for _, row := range rows {
		lines, err := r.Lines(ctx, string(row.ID))
		if err != nil {
			return nil, err
		}
		rec := replay.Recording{Chat: row.ID}
		for _, l := range lines {
			rec.Lines = append(rec.Lines, replay.Line{Seq: l.Seq, At: l.At, Kind: l.Kind, Cause: l.Cause, Session: l.Session, Message: l.Message, Data: l.Data})
		}
		list = append(list, rec)
	}
	return list, nil
}

// Tell tells a recording line by line.
func Tell(r replay.Recording) []Moment {
	var story []Moment
	for _, l := range r.Lines {
		story = append(story, tellLine(store.Line{
			Stream: string(r.Chat), Seq: l.Seq, At: l.At, Kind: l.Kind, Cause: l.Cause, Session: l.Session, Message: l.Message, Data: l.Data,
		})...)
	}
	return story
}
