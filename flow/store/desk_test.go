package store_test

import (
	"context"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestAProjectsDeskHasTheChatsThatWatchItsSessions(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		mine, other := session(1), session(2)
		other.Project = "wsp_prj_other"
		for i, person := range []string{"late", "early", "calm", "others", "flagged", "claimed"} {
			kept := chat(t, db, store.ChatRow{ID: flow.ChatID("chat_" + person), Number: "234800", Person: person})
			watched, desk, flag := mine, flow.Desk{State: flow.DeskWaiting, Since: int64(100 - i)}, ""
			switch person {
			case "flagged":
				desk, flag = flow.Desk{}, "is not understood"
			case "claimed":
				desk = flow.Desk{State: flow.DeskClaimed, By: "ngozi", Since: 1}
			case "others":
				watched = other
			case "calm":
				desk = flow.Desk{}
			}
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.AddSession(ctx, watched); err != nil {
					return err
				}
				if err := tx.Watch(ctx, watched.ID, kept.ID); err != nil {
					return err
				}
				return tx.SetDecided(ctx, kept.ID, 0, desk, flag)
			})
		}
		list, err := db.DeskOf(t.Context(), mine.Project, 10)
		want := "chat_early chat_late chat_claimed chat_flagged"
		if err != nil || chatIDs(list) != want {
			t.Errorf("the desk has %+v, %v", list, err)
		}
		if all, err := db.Desk(t.Context(), 10); err != nil || chatIDs(all) != "chat_others "+want {
			t.Errorf("the desk of all has %+v, %v", all, err)
		}
		if list, err := db.DeskOf(t.Context(), mine.Project, 1); err != nil || len(list) != 1 {
			t.Errorf("one chat of the desk: %+v, %v", list, err)
		}
		for _, c := range []struct {
			chat    flow.ChatID
			project flow.ProjectID
			want    bool
		}{{"chat_calm", mine.Project, true}, {"chat_calm", other.Project, false}, {"chat_others", other.Project, true}, {"chat_none", mine.Project, false}} {
			if got, err := db.Observes(t.Context(), c.chat, c.project); err != nil || got != c.want {
				t.Errorf("%s is about payments of %s: %v, %v", c.chat, c.project, got, err)
			}
		}
	})
}

// chatIDs are the chats of a list.
func chatIDs(list []store.ChatRow) string {
	var out []string
	for _, c := range list {
		out = append(out, string(c.ID))
	}
	return strings.Join(out, " ")
}

func TestTheEndOfAStream(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		for range 5 {
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon, Kind: "news"})
				return err
			})
		}
		end, err := db.StreamEnd(t.Context(), "chat_1", 2)
		if err != nil || len(end) != 2 || end[0].Seq != 4 || end[1].Seq != 5 {
			t.Errorf("the end is %+v, %v", end, err)
		}
		for stream, want := range map[string]int64{"chat_1": 5, "chat_2": 0} {
			if last, err := db.LastSeq(t.Context(), stream); err != nil || last != want {
				t.Errorf("the last line of %s is %d, %v", stream, last, err)
			}
		}
	})
}
