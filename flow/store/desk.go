package store

import (
	"context"
	"fmt"
	"slices"

	"till/flow"
)

// DeskOf is the queue of the chats that a person has or should look at, of those
// that observe a session of a project; the one that waits longest first, at most
// limit of them.
func (r Reader) DeskOf(ctx context.Context, project flow.ProjectID, limit int) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE (desk <> '' OR flag <> '') AND EXISTS
 (SELECT 1 FROM watches w JOIN sessions s ON s.id = w.session WHERE w.chat = chats.id AND s.project = ?)`+deskFirst, string(project), limit)
}

// ClaimedBy are the chats that an agent has, by their ids, behind one of them.
func (r Reader) ClaimedBy(ctx context.Context, agent string, after flow.ChatID, limit int) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE (desk <> '' OR flag <> '') AND desk = ? AND desk_by = ? AND id > ? ORDER BY id LIMIT ?`,
		flow.DeskClaimed, agent, string(after), limit)
}

// Observes says whether a chat observes a session of a project.
func (r Reader) Observes(ctx context.Context, chat flow.ChatID, project flow.ProjectID) (bool, error) {
	var one int
	found, err := r.run.one(ctx, `SELECT 1 FROM watches w JOIN sessions s ON s.id = w.session WHERE w.chat = ? AND s.project = ? LIMIT 1`,
		[]any{string(chat), string(project)}, &one)
	if err != nil {
		return false, fmt.Errorf("look up whose payments chat %s is about: %w", chat, err)
	}
	return found, nil
}

// decidedAtOnce bounds how many decisions of one stream and millisecond are read.
const decidedAtOnce = 20

// DecidedAt are the decisions in a stream at a millisecond, in their order.
func (r Reader) DecidedAt(ctx context.Context, stream string, at int64) ([]Line, error) {
	return r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE stream = ? AND kind = 'decided' AND at = ? ORDER BY seq LIMIT ?`, stream, at, decidedAtOnce)
}

// StreamEnd reads the end of a stream: at most limit lines, oldest first.
func (r Reader) StreamEnd(ctx context.Context, stream string, limit int) ([]Line, error) {
	list, err := r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE stream = ? ORDER BY seq DESC LIMIT ?`, stream, limit)
	slices.Reverse(list)
	return list, err
}

// LastSeq is the number of a stream's last line, 0 where it has none.
func (r Reader) LastSeq(ctx context.Context, stream string) (int64, error) {
	var seq int64
	if _, err := r.run.one(ctx, `SELECT COALESCE(MAX(seq), 0) FROM log WHERE stream = ?`, []any{stream}, &seq); err != nil {
		return 0, fmt.Errorf("read the log: %w", err)
	}
	return seq, nil
}
