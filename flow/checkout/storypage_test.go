package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// pages reads a story page by page.
func (w *world) pages(id flow.SessionID, limit int) []checkout.Moment {
	w.t.Helper()
	var all []checkout.Moment
	var from checkout.StoryPlace
	for {
		page, next, err := checkout.StoryPage(w.t.Context(), w.db.Reader, id, from, limit)
		w.must(err)
		if len(page) > limit || len(page) == 0 {
			w.t.Fatalf("a page of %d has %d moments", limit, len(page))
		}
		all = append(all, page...)
		if next == (checkout.StoryPlace{}) {
			return all
		}
		if len(page) != limit {
			w.t.Fatalf("a page of %d that is not the last has %d moments", limit, len(page))
		}
		again, ok := checkout.ParseStoryPlace(next.String())
		if !ok || again.Moved != next.Moved || !again.At.Equal(next.At) {
			w.t.Fatalf("%v is read as %v, %v", next, again, ok)
		}
		from = again
	}
}

// told are moments as they are told over REST.
func told(story []checkout.Moment) []string {
	var out []string
	for _, m := range story {
		out = append(out, fmt.Sprint(flow.Stamp(m.At), m.Who, m.What, m.Why))
	}
	return out
}

// Whatever the size of its pages, a story is the same: that which is read at once.
func TestAStoryIsTheSameInPages(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.example/hook")
		session, _ := w.paying()
		w.hear("obi", code(session)) // watches too: each line about the money stands in two chats
		w.pay(session.ID, 200_000, false)
		w.until("a part is here", func() bool { return len(w.payments(session.ID)) == 1 })
		w.rest()
		w.pass(time.Minute)
		w.pay(session.ID, 300_000, false)
		w.until("the rest is here", func() bool { return len(w.payments(session.ID)) == 2 })
		w.rest()
		r := w.ordered(w.payments(session.ID)[1], 100_000)
		w.rest()
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
		whole, err := checkout.Timeline(t.Context(), w.db.Reader, session.ID)
		w.must(err)
		if len(whole) < 40 {
			t.Fatalf("there is little to tell: %d", len(whole))
		}
		for _, limit := range []int{1, 2, 3, 7, 20, 100, len(whole), len(whole) + 1, len(whole) - 1} {
			if got := told(w.pages(session.ID, limit)); !slices.Equal(got, told(whole)) {
				at := 0
				for at < min(len(got), len(whole)) && got[at] == told(whole)[at] {
					at++
				}
				t.Fatalf("in pages of %d it has %d moments, and at once %d; from %d on: %v, not %v", limit, len(got), len(whole), at, got[at:min(at+2, len(got))], told(whole)[at:min(at+2, len(whole))])
			}
		}
		if _, _, err := checkout.StoryPage(t.Context(), w.db.Reader, "wsp_sess_none", checkout.StoryPlace{}, 5); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("of no session: %v", err)
		}
	})
}

// A story that is longer than one that is told at once is told whole in pages,
// though much of it happened in the same moment.
func TestALongStoryIsToldWholeInPages(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.Headless)
		const lines = 2_600
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error { return wrote(t.Context(), tx, session, lines, w.clock()) }))
		whole, err := checkout.Timeline(t.Context(), w.db.Reader, session.ID)
		w.must(err)
		got := w.pages(session.ID, 100)
		if len(got) != lines+2 || len(whole) >= len(got) { // it was opened, and stands somewhere
			t.Errorf("%d moments in pages, %d at once", len(got), len(whole))
		}
		seen := map[string]bool{}
		for _, m := range got[1 : len(got)-1] {
			if seen[m.Why] {
				t.Errorf("told twice: %+v", m)
			}
			seen[m.Why] = true
		}
	})
}

// wrote keeps lines about a session, 250 in each millisecond.
func wrote(ctx context.Context, tx *store.Tx, session flow.Session, lines int, at time.Time) error {
	for i := range lines {
		line := store.Line{Stream: string(session.ID), At: at.Add(time.Duration(i/250) * time.Millisecond), Kind: "test.line", Session: session.ID, Data: fmt.Appendf(nil, `{"n":%d}`, i)}
		if _, err := tx.Append(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func TestAPlaceInAStoryIsOneThatWasGivenOut(t *testing.T) {
	for _, bad := range []string{"", "/", "1", "1/", "/1", "0/0", "-1/0", "1/-1", "1/1000001", "99999999999999999/0", "1/0/0", "x/0"} {
		if p, ok := checkout.ParseStoryPlace(bad); ok {
			t.Errorf("%q is %v", bad, p)
		}
	}
}
