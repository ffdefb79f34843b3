package checkout_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
)

// bensSession is one that was made for somebody else than Ada, whose merchant answers
// with what it was told.
func (w *world) bensSession() flow.Session {
	w.t.Helper()
	w.endpoint("https://shop.test/hook")
	w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
		return flow.Verdict{OK: true, Status: http.StatusOK, Body: []byte("taken: " + string(d.Body))}
	})
	n := newSession(flow.InChat)
	n.CustomerPhone, n.CustomerName, n.Description = "2348030000009", "Benedict Stays", "Rice for Allen"
	return w.opened(n)
}

// Whoever paid for somebody else's session, in a chat of their own, is forgotten with
// what their bank said of them and the names by which it is found. The other one keeps
// theirs, and every word that they wrote.
func TestWhoPaidForSomebodyElseIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s := w.bensSession()
		w.hear("ben", code(s))
		w.hear("ben", flow.Intent{Kind: flow.MeansNothing, Text: "my sister pays for the rice"})
		w.adaPays(s)
		w.until("the payment is here", func() bool { return len(w.payments(s.ID)) == 1 })
		bens := linesOf(t, w, s.ID, "ben")

		as, forgot := w.forgotten(w.find())
		if forgot.Sessions != 0 || forgot.Chats != 1 {
			t.Errorf("forgot %+v", forgot)
		}
		w.nowhere()
		for _, word := range append(flow.NameWords(adaName), "******4321") {
			found, err := w.db.Mentions(ctx, word)
			w.must(err)
			if len(found) > 0 {
				t.Errorf("%q still stands in %v", word, found)
			}
		}
		if paid := w.payments(s.ID)[0]; paid.Payer.Name != as || paid.Amount != s.Amount {
			t.Errorf("of the payment is left %+v", paid)
		}
		kept, err := w.db.Session(ctx, s.ID)
		w.must(err)
		if kept.CustomerName != "Benedict Stays" || kept.Description != "Rice for Allen" {
			t.Errorf("of the other's session is left %+v", kept)
		}
		if left := linesOf(t, w, s.ID, "ben"); !slices.Equal(left, bens) || !strings.Contains(strings.Join(left, ""), "my sister pays") {
			t.Errorf("of the other's words\n%v\nare left\n%v", bens, left)
		}
		for _, of := range recordings(t, w, s.ID) {
			report, err := replay.Verify(of, words)
			w.must(err)
			if report.Worst() != replay.Same {
				t.Errorf("decided again: %+v", report)
			}
		}
	})
}

func recordings(t *testing.T, w *world, id flow.SessionID) []replay.Recording {
	t.Helper()
	list, err := checkout.Recordings(t.Context(), w.db.Reader, id, "")
	w.must(err)
	if len(list) != 2 {
		t.Fatalf("%d conversations", len(list))
	}
	return list
}

// Who is told what is kept of them is not told who somebody else is that paid for the
// same session: neither whom it was made for, nor who else opened its link.
func TestNobodyIsToldWhoElsePaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s := w.bensSession()
		w.hear("ben", code(s)) // from another number of his
		w.adaPays(s)
		w.until("the payment is here", func() bool { return len(w.payments(s.ID)) == 1 })
		for phone, told := range map[flow.Phone]bool{"2348030000009": false, "2348031000010": false, adaPhone: true} {
			p, err := checkout.FindPayer(ctx, w.db.Reader, phone, "")
			w.must(err)
			record, err := p.Record(ctx, w.db.Reader, flow.Surroundings{})
			w.must(err)
			if len(record.Sessions)+len(record.Chats) == 0 {
				t.Fatalf("nothing is kept of %s", phone)
			}
			text := marshalled(t, record)
			for _, one := range []string{"ADAEZE O", "******4321"} {
				if strings.Contains(text, one) != told {
					t.Errorf("whether %s is told of %q: %v", phone, one, !told)
				}
			}
		}
	})
}

// linesOf are the turns of a person's talk about a session, as far as they say what
// was written and by whom.
func linesOf(t *testing.T, w *world, id flow.SessionID, person string) (list []string) {
	t.Helper()
	lines, err := w.db.SessionLines(t.Context(), id)
	w.must(err)
	chats, err := w.db.ChatsOfPerson(t.Context(), person)
	w.must(err)
	for _, l := range lines {
		if !slices.ContainsFunc(chats, func(c store.ChatRow) bool { return string(c.ID) == l.Stream }) {
			continue
		}
		var turn struct {
			Heard *flow.Intent `json:"heard"`
			Chat  *flow.Chat   `json:"chat"`
		}
		w.must(json.Unmarshal(l.Data, &turn))
		if turn.Heard != nil {
			list = append(list, turn.Heard.Text)
		}
		if turn.Chat != nil {
			list = append(list, turn.Chat.Person, turn.Chat.Name)
		}
	}
	return list
}

// Whoever calls themselves like the customer of a session whose link they opened, or
// like what is sold there, takes nothing of either with them: merchants find the session
// by its customer's name as before, and it stands in what they were told and in the
// customer's own chat.
func TestANamesakeTakesNobodyWithThem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s := w.bensSession()
		for _, one := range []checkout.Inbound{
			{Person: "ben", Phone: "2348030000009", Name: "Benedict Stays", Message: "M1"},
			{Person: adaPerson, Phone: adaPhone, Name: "Benedict Stays", Message: "M2"},
			{Number: "2349010000002", Person: adaPerson, Phone: adaPhone, Name: "Rice", Message: "M3"},
		} {
			one.Number, one.Intent = cmp.Or(one.Number, ourNumber), code(s)
			w.must(w.service.Hear(ctx, one))
			w.rest()
		}
		_, err := w.service.Cancel(ctx, s.ID, call("", "", nil))
		w.must(err)
		w.rest()
		chats := w.find().Chats
		named := func() int {
			events, err := w.db.Events(ctx, s.ID)
			w.must(err)
			lines, err := w.db.SessionLines(ctx, s.ID)
			w.must(err)
			n := 0
			count := func(text []byte) {
				n += strings.Count(string(text), "Benedict Stays") + strings.Count(string(text), "Rice for Allen")
			}
			for _, e := range events {
				count(e.Body)
			}
			for _, l := range lines {
				if !slices.ContainsFunc(chats, func(c store.ChatRow) bool { return string(c.ID) == l.Stream }) {
					count(l.Data)
				}
			}
			return n
		}
		before := named()

		_, err = w.forgets(w.find())
		w.must(err)
		found, _, err := w.db.Search(ctx, store.SearchFilter{Search: flow.ReadSearch("benedict stays", w.clock()), Project: project, Limit: 9})
		w.must(err)
		if len(found) != 1 || found[0].Session.ID != s.ID {
			t.Errorf("by its customer's name is found %+v", found)
		}
		if left := named(); before == 0 || left != before {
			t.Errorf("customer and goods stood in %d places, and stand in %d", before, left)
		}
	})
}
