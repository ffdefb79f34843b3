package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// payers keeps three payers: one was last seen at noon, one paid an hour later,
// one wrote two hours later. A fourth session names
// an e-mail address alone, where the others have one for all of them.
func payers(t *testing.T, db *store.DB) {
	t.Helper()
	old, paid, wrote, nobody := session(1), session(2), session(3), session(4)
	old.CustomerPhone, paid.CustomerPhone, wrote.CustomerPhone = "2348030000001", "2348030000002", "2348030000003"
	paid.Status, paid.AmountPaid, paid.PaidAt = flow.SessionPaid, paid.Amount, noon.Add(time.Hour)
	nobody.CreatedAt, nobody.CustomerEmail = noon.Add(3*time.Hour), "Nobody@example.com"
	keep(t, db, old, paid, wrote, nobody)
	chat(t, db, store.ChatRow{ID: "chat_1", Number: "234800", Person: "lid-3", Phone: wrote.CustomerPhone})
	chat(t, db, store.ChatRow{ID: "chat_2", Number: "234800", Person: "lid-4"}) // its number is hidden, and nothing was written
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Watch(ctx, old.ID, "chat_1"); err != nil {
			return err
		}
		for i := range 2 {
			if _, err := tx.Append(ctx, store.Line{Stream: "chat_1", At: noon.Add(time.Duration(i+1) * time.Hour), Kind: "heard", Message: fmt.Sprint("M", i)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestPayersWhoWereNotSeenForLongAreListed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		payers(t, db)
		all := []store.Seen{{Phone: "2348030000001", At: noon}, {Phone: "2348030000002", At: noon.Add(time.Hour)}, {Phone: "2348030000003", At: noon.Add(2 * time.Hour)}, {Email: "nobody@example.com", At: noon.Add(3 * time.Hour)}}
		for hours, want := range [][]store.Seen{nil, all[:1], all[:2], all[:3], all} { // and the others' address is not one of somebody without a number
			list, err := db.UnseenSince(t.Context(), noon.Add(time.Duration(hours)*time.Hour), 10)
			must(t, err)
			same(t, fmt.Sprintf("not seen since %d hours after noon", hours), want, list)
		}
		list, err := db.UnseenSince(t.Context(), noon.Add(24*time.Hour), 2)
		must(t, err)
		same(t, "the two seen longest ago", all[:2], list)
	})
}

func TestWhatWasTouchedInATimeIsListed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		payers(t, db)
		nobody := store.Touched{What: "session", ID: "wsp_sess_004", Project: "wsp_prj_1", Email: "nobody@example.com"}
		made := func(n int, phone flow.Phone) store.Touched {
			return store.Touched{What: "session", ID: fmt.Sprintf("wsp_sess_%03d", n), Project: "wsp_prj_1", Phone: phone}
		}
		talk := store.Touched{What: "chat", ID: "chat_1", Phone: "2348030000003"}
		for name, c := range map[string]struct {
			from, to time.Duration
			want     []store.Touched
		}{
			"before all of it":         {-time.Hour, 0, nil},
			"when they were made":      {0, time.Minute, []store.Touched{made(1, "2348030000001"), made(2, "2348030000002"), made(3, "2348030000003")}},
			"paid, and spoken of":      {time.Hour, time.Hour + time.Minute, []store.Touched{made(1, "2348030000001"), made(2, "2348030000002"), talk}},
			"spoken of":                {2 * time.Hour, 2*time.Hour + time.Millisecond, []store.Touched{made(1, "2348030000001"), talk}},
			"since the first of times": {-time.Duration(noon.UnixMilli()) * time.Millisecond, time.Minute, []store.Touched{made(1, "2348030000001"), made(2, "2348030000002"), made(3, "2348030000003")}},
			"made for nobody's name":   {3 * time.Hour, 4 * time.Hour, []store.Touched{nobody}},
		} {
			for _, atOnce := range []int{1, 2, 10} {
				var list []store.Touched
				must(t, db.TouchedBetween(t.Context(), noon.Add(c.from), noon.Add(c.to), atOnce, func(one store.Touched) error {
					list = append(list, one)
					return nil
				}))
				same(t, fmt.Sprintf("%s, %d at once", name, atOnce), c.want, list)
			}
		}
	})
}
