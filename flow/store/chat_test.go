package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// chat keeps a chat.
func chat(t *testing.T, db *store.DB, c store.ChatRow) store.ChatRow {
	t.Helper()
	var kept store.ChatRow
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		var err error
		kept, err = tx.AddChat(ctx, c, noon)
		return err
	})
	return kept
}

func TestAPersonHasOneChatWithANumberAndMayChangePhones(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		first := store.ChatRow{ID: "chat_1", Number: "234800", Person: "lid-1", Phone: "2348012345678", Name: "Obi"}
		same(t, "a new chat", first, chat(t, db, first))
		moved := store.ChatRow{ID: "chat_2", Number: "234800", Person: "lid-1", Phone: "2348099999999", Name: "Obi A."}
		want := moved
		want.ID = "chat_1"
		same(t, "the chat of the same person", want, chat(t, db, moved))
		hidden := store.ChatRow{ID: "chat_3", Number: "234800", Person: "lid-1"}
		same(t, "the chat while the phone is hidden", want, chat(t, db, hidden))
		named := store.ChatRow{ID: "chat_5", Number: "234800", Person: "lid-1", Name: "Obi B."}
		want.Name = named.Name
		same(t, "the chat once they call themselves otherwise, their phone hidden still", want, chat(t, db, named))
		read, err := db.Chat(t.Context(), "chat_1")
		must(t, err)
		same(t, "the chat", want, read)
		other := store.ChatRow{ID: "chat_4", Number: "234801", Person: "lid-1"}
		same(t, "the chat with another number", other, chat(t, db, other))
		if _, found, err := db.ChatOf(t.Context(), "234800", "lid-2"); found || err != nil {
			t.Error("found a stranger's chat", err)
		}
		if _, err := db.Chat(t.Context(), "chat_9"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Error(err)
		}
	})
}

func TestAMessageIsHeardOnceAndTheLogKeepsItsOrder(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		kinds := []string{"heard", "decided", "news", "decided", "heard"}
		for i, kind := range kinds {
			for _, stream := range []string{"chat_1", "chat_2"} {
				update(t, db, func(ctx context.Context, tx *store.Tx) error {
					seq, err := tx.Append(ctx, store.Line{Stream: stream, At: noon, Kind: kind, Session: "wsp_sess_001", Message: fmt.Sprint("M", i)})
					if seq != int64(i+1) {
						t.Errorf("%s line %d got number %d", stream, i, seq)
					}
					return err
				})
			}
		}
		lines, err := db.Lines(t.Context(), "chat_1")
		if err != nil || len(lines) != len(kinds) {
			t.Fatal(lines, err)
		}
		for i, l := range lines {
			if l.Kind != kinds[i] || l.Seq != int64(i+1) || string(l.Data) != "{}" {
				t.Errorf("line %d: %+v", i, l)
			}
		}
		for _, c := range []struct {
			chat, message string
			want          bool
		}{{"chat_1", "M0", true}, {"chat_1", "M4", true}, {"chat_1", "M1", false}, {"chat_1", "M9", false}, {"chat_3", "M0", false}} {
			if heard, err := db.Heard(t.Context(), flow.ChatID(c.chat), c.message); err != nil || heard != c.want {
				t.Errorf("%s in %s was heard: %v %v", c.message, c.chat, heard, err)
			}
		}
		_ = refused(t, db, "a message that is heard twice", func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon, Kind: "heard", Message: "M0"})
			return err
		})
		about, err := db.SessionLines(t.Context(), "wsp_sess_001")
		if err != nil || len(about) != 2*len(kinds) {
			t.Errorf("%d lines about the session, %v", len(about), err)
		}
	})
}

func TestARefusedTurnLeavesNoGapInTheLog(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		line := store.Line{Stream: "chat_1", At: noon, Kind: "news", Data: json.RawMessage(`{}`)}
		_ = refused(t, db, "a refused turn", func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Append(ctx, line); err != nil {
				return err
			}
			return errNo
		})
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if seq, err := tx.Append(ctx, line); err != nil || seq != 1 {
				t.Error(seq, err)
			}
			return nil
		})
	})
}

func TestEveryChatThatOpenedASessionWatchesItOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1), session(2))
		a := chat(t, db, store.ChatRow{ID: "chat_1", Number: "1", Person: "a", Phone: "234801", Name: "A"})
		b := chat(t, db, store.ChatRow{ID: "chat_2", Number: "1", Person: "b"})
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, id := range []flow.ChatID{b.ID, a.ID, a.ID} {
				if err := tx.Watch(ctx, "wsp_sess_001", id); err != nil {
					return err
				}
			}
			return tx.SetDecided(ctx, b.ID, 12, flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: 7}, "floods the chat")
		})
		b.Decided, b.Desk, b.Flag = 12, flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: 7}, "floods the chat"
		list, err := db.Watchers(t.Context(), "wsp_sess_001")
		must(t, err)
		same(t, "the watchers", []store.ChatRow{a, b}, list)
		queue, err := db.Desk(t.Context(), 10)
		must(t, err)
		same(t, "the desk", []store.ChatRow{b}, queue)
		if none, err := db.Watchers(t.Context(), "wsp_sess_002"); err != nil || len(none) != 0 {
			t.Error(none, err)
		}
	})
}

func TestMessagesGoOutInTheOrderOfTurnsAndBubbles(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		chat(t, db, store.ChatRow{ID: "chat_1", Number: "1", Person: "a"})
		chat(t, db, store.ChatRow{ID: "chat_2", Number: "1", Person: "b"})
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, s := range []store.Said{
				{ID: "d", Chat: "chat_1", Seq: 10, Bubble: 0},
				{ID: "b", Chat: "chat_1", Seq: 2, Bubble: 1},
				{ID: "c", Chat: "chat_1", Seq: 9},
				{ID: "a", Chat: "chat_1", Seq: 2, Key: "k", Text: "*bold* ₦"},
				{ID: "x", Chat: "chat_2", Seq: 1},
			} {
				if err := tx.AddSaid(ctx, s, noon); err != nil {
					return err
				}
			}
			return nil
		})
		if s, found, err := db.Said(t.Context(), "a"); err != nil || !found || s.Text != "*bold* ₦" || s.State != "pending" {
			t.Errorf("%+v %v", s, err)
		}
		if _, found, err := db.Said(t.Context(), "of a person"); found || err != nil {
			t.Error("found what was never said", err)
		}
		if some, err := db.Owed(t.Context(), "chat_1", 2); err != nil || len(some) != 2 || some[1].ID != "b" {
			t.Errorf("two of them are %+v, %v", some, err)
		}
		if group, err := db.Group(t.Context(), "chat_1", 2); err != nil || len(group) != 2 || group[0].ID != "a" || group[1].ID != "b" {
			t.Errorf("a turn says %+v, %v", group, err)
		}
		got := ""
		for range 10 {
			owed, err := db.Owed(t.Context(), "chat_1", 10)
			must(t, err)
			if len(owed) == 0 {
				break
			}
			got += owed[0].ID
			mark(t, db, owed[0].ID, "sent", true)
		}
		if spoken, err := db.Spoken(t.Context(), "chat_2"); spoken || err != nil {
			t.Error("a chat that was never written to counts as spoken to", err)
		}
		if spoken, err := db.Spoken(t.Context(), "chat_1"); !spoken || err != nil {
			t.Error("a chat that was written to does not count as spoken to", err)
		}
		if got != "abcd" {
			t.Errorf("said %s", got)
		}
	})
}

// mark moves a message on and checks whether it moved.
func mark(t *testing.T, db *store.DB, id, state string, want bool) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		moved, err := tx.MarkSaid(ctx, id, state)
		if moved != want {
			t.Errorf("%s to %s moved: %v", id, state, moved)
		}
		return err
	})
}

func TestAMessageOnlyMovesForward(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		chat(t, db, store.ChatRow{ID: "chat_1", Number: "1", Person: "a"})
		states := []string{"failed", "sent", "delivered", "read"}
		for i, path := range [][]string{{"sent", "delivered", "read"}, {"delivered", "read"}, {"read"}, {"sent", "read"}, {"failed"}, {"failed", "sent", "delivered"}} {
			id := fmt.Sprint("m", i)
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.AddSaid(ctx, store.Said{ID: id, Chat: "chat_1", Seq: int64(i)}, noon)
			})
			for _, state := range path {
				mark(t, db, id, state, true)
				mark(t, db, id, state, false)
			}
			for _, state := range states {
				if state == path[len(path)-1] {
					break
				}
				mark(t, db, id, state, false)
			}
			if s, _, err := db.Said(t.Context(), id); err != nil || s.State != path[len(path)-1] {
				t.Errorf("%s stands at %s (%v)", id, s.State, err)
			}
		}
		mark(t, db, "of a person", "read", false)
		for want := range 3 {
			if s, _, err := db.Said(t.Context(), "m0"); err != nil || s.Refusals != want {
				t.Errorf("it was refused %d times and not %d (%v)", s.Refusals, want, err)
			}
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.RefuseSaid(ctx, "m0") })
		}
	})
}

func TestTheTimesOfTheStoreAreMilliseconds(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		s := session(1)
		s.CreatedAt = noon.Add(123*time.Microsecond + 4)
		keep(t, db, s)
		if read, err := db.Session(t.Context(), s.ID); err != nil || !read.CreatedAt.Equal(noon) || read.CreatedAt.Location() != time.UTC {
			t.Errorf("%v %v", read.CreatedAt, err)
		}
	})
}
