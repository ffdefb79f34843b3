package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
)

const (
	kept90  = 90 * 24 * time.Hour
	adaSaid = "please bring it to Allen Avenue, this is Adaeze"
	weSaid  = "Madam, Ngozi here: the lamp is with the rider"
)

// chatKept is all that is kept of what was said in a chat.
func (w *world) chatKept(chat flow.ChatID) (lines []store.Line, said []store.Said) {
	w.t.Helper()
	lines, err := w.db.Lines(w.t.Context(), string(chat))
	w.must(err)
	said, err = w.db.SaysOf(w.t.Context(), chat, 1000)
	w.must(err)
	return lines, said
}

// days lets days pass one by one, and what is due on each be done.
func (w *world) days(n int) {
	w.t.Helper()
	w.passes(n, 24*time.Hour)
}

// oldChats has Ada pay and speak with an agent, and Ben leave it at a greeting;
// then nothing happens for five days.
func (w *world) oldChats() flow.Session {
	w.t.Helper()
	w.endpoint("https://shop.test/hook")
	s := w.adaSession()
	w.adaPays(s)
	chat := w.chatOf(adaPerson)
	w.must(w.service.Claim(w.t.Context(), chat, "ngozi", 0))
	w.must(w.service.Reply(w.t.Context(), chat, "ngozi", weSaid, checkout.Call{}))
	w.rest()
	w.must(w.service.Release(w.t.Context(), chat, "ngozi"))
	w.rest()
	w.hear("ben", code(w.session(flow.InChat)))
	w.hear("ben", flow.Intent{Kind: flow.MeansNothing, Text: "what Ben wrote"})
	w.days(5)
	return s
}

// Until the time is over nothing of a chat is touched; then nothing of what was
// written is left in any row, while money, the session, and how each turn was
// decided stay. A chat that goes on is whole.
func TestTheWordsOfAnOldChatAreTakenAndNothingElse(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.end()
		w.keep = kept90
		w.start(true)
		s := w.oldChats()
		ada, ben := w.chatOf(adaPerson), w.chatOf("ben")
		lines, said := w.chatKept(ada)
		session, ledger := w.read(s.ID), w.ledgerOf(s.ID)
		w.days(83)
		if now, saysNow := w.chatKept(ada); !reflect.DeepEqual(now, lines) || !reflect.DeepEqual(saysNow, said) {
			t.Fatal("a chat was touched before its time")
		}
		w.hear("ben", flow.Intent{Kind: flow.MeansNothing, Text: "Ben again"})
		benLines, benSaid := w.chatKept(ben)
		w.days(4)
		w.wordless(s.ID, ada, lines)
		if now := w.read(s.ID); !reflect.DeepEqual(now, session) {
			t.Errorf("the session became %+v", now)
		}
		if now := w.ledgerOf(s.ID); len(now) == 0 || !reflect.DeepEqual(now, ledger) {
			t.Errorf("the ledger became %+v", now)
		}
		if now, saysNow := w.chatKept(ben); !reflect.DeepEqual(now[:len(benLines)], benLines) || !reflect.DeepEqual(saysNow[:len(benSaid)], benSaid) {
			t.Error("a chat that goes on was touched")
		}
		w.adaSays(flow.Intent{Kind: flow.MeansNothing, Text: "and she is heard again"})
		w.decidedAsBefore(s.ID)
		if _, again := w.chatKept(ada); again[len(again)-1].Text == "" {
			t.Error("what is said anew is taken at once")
		}
	})
}

func (w *world) ledgerOf(id flow.SessionID) []flow.Entry {
	w.t.Helper()
	list, err := w.db.Ledger(w.t.Context(), id)
	w.must(err)
	return list
}

// wordless fails where something that was written in a chat is still in a row.
func (w *world) wordless(session flow.SessionID, chat flow.ChatID, before []store.Line) {
	w.t.Helper()
	for _, text := range []string{adaSaid, weSaid} {
		found, err := w.db.Mentions(w.t.Context(), text)
		w.must(err)
		if len(found) > 0 {
			w.t.Errorf("%q still stands in %v", text, found)
		}
	}
	lines, said := w.chatKept(chat)
	for _, one := range said {
		if one.Text != "" {
			w.t.Errorf("a message still says %q", one.Text)
		}
	}
	if len(lines) != len(before) {
		w.t.Fatalf("%d lines became %d", len(before), len(lines))
	}
	texts := 0
	for _, l := range lines {
		var o replay.Outcome
		if l.Kind != replay.Decided {
			continue
		}
		w.must(json.Unmarshal(l.Data, &o))
		for _, one := range o.Texts {
			if texts++; !replay.Blotted(one.Text) {
				w.t.Errorf("line %d still says %q", l.Seq, one.Text)
			}
		}
	}
	if report := w.decidedAsBefore(session); texts == 0 || report.Gone <= texts {
		w.t.Errorf("of %d texts of ours and some of hers %d are said to be gone", texts, report.Gone)
	}
	story, err := checkout.Timeline(w.t.Context(), w.db.Reader, session)
	w.must(err)
	for _, want := range []string{"The payer wrote 47 characters, which are not kept any more", "Till wrote "} {
		if !slices.ContainsFunc(story, func(m checkout.Moment) bool { return strings.Contains(m.Told, want) }) {
			w.t.Errorf("the story does not say %q", want)
		}
	}
}

// decidedAsBefore decides a session's conversation again.
func (w *world) decidedAsBefore(id flow.SessionID) replay.Report {
	w.t.Helper()
	list, err := checkout.Recordings(w.t.Context(), w.db.Reader, id, "")
	w.must(err)
	if len(list) != 1 {
		w.t.Fatalf("%d conversations", len(list))
	}
	report, err := replay.Verify(list[0], words)
	w.must(err)
	if report.Turns < 4 || report.Worst() != replay.Same {
		w.t.Errorf("decided again: %+v", report)
	}
	return report
}

// Whoever has a test key moves the clock of test. That takes nobody's words: they
// are old when the machine's clock says so too.
func TestAMovedClockTakesNobodysWords(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.end()
	w.keep = kept90
	var machine atomic.Int64 // stands until the test moves it
	machine.Store(w.clock().UnixMilli())
	w.real = func() time.Time { return time.UnixMilli(machine.Load()) }
	w.start(true)
	s := w.oldChats()
	ada := w.chatOf(adaPerson)
	lines, said := w.chatKept(ada)
	w.days(100)
	if now, saysNow := w.chatKept(ada); !reflect.DeepEqual(now, lines) || !reflect.DeepEqual(saysNow, said) {
		t.Fatal("a clock that was moved took the words of a chat of today")
	}
	machine.Store(w.clock().UnixMilli())
	w.days(2)
	w.wordless(s.ID, ada, lines)
}

// Where words are kept for good, nobody takes them.
func TestWordsThatAreKeptForGoodAreKept(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.oldChats()
	chat := w.chatOf(adaPerson)
	lines, said := w.chatKept(chat)
	w.days(100)
	if now, saysNow := w.chatKept(chat); !reflect.DeepEqual(now, lines) || !reflect.DeepEqual(saysNow, said) {
		t.Error("a chat was touched")
	}
}

// A chat in which nothing was said for long is not over while a person should look
// at it, a message waits to be sent, or a session is open that was spoken of.
func TestAChatThatIsNotOverKeepsItsWords(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old, ctx := w.clock(), t.Context()
		open := w.session(flow.InChat)
		const agent = "chat_00000000000000000000000000"
		for name, hangs := range map[string]struct {
			begin, end func(tx *store.Tx, id flow.ChatID) error
		}{
			"flagged": {
				func(tx *store.Tx, id flow.ChatID) error { return tx.SetDecided(ctx, id, 0, flow.Desk{}, "odd") },
				func(tx *store.Tx, id flow.ChatID) error { return tx.SetDecided(ctx, id, 0, flow.Desk{}, "") },
			},
			"a person's": {
				func(tx *store.Tx, id flow.ChatID) error {
					return tx.SetDecided(ctx, id, 0, flow.Desk{State: flow.DeskClaimed, By: agent}, "")
				},
				func(tx *store.Tx, id flow.ChatID) error { return tx.SetDecided(ctx, id, 0, flow.Desk{}, "") },
			},
			"still to be written to": {
				func(tx *store.Tx, id flow.ChatID) error {
					return tx.AddSaid(ctx, store.Said{ID: "SAID1", Chat: id, Seq: 1, Key: "menu", Text: "our words"}, old)
				},
				func(tx *store.Tx, _ flow.ChatID) error { _, err := tx.MarkSaid(ctx, "SAID1", "sent"); return err },
			},
			"about to pay": {
				func(tx *store.Tx, id flow.ChatID) error { return tx.Watch(ctx, open.ID, id) },
				func(*store.Tx, flow.ChatID) error {
					_, err := w.service.Cancel(ctx, open.ID, call("", "", nil))
					return err
				},
			},
		} {
			id := flow.ChatID(fmt.Sprintf("chat_%026d", len(name)))
			w.must(w.db.Update(ctx, func(tx *store.Tx) error {
				if _, err := tx.AddChat(ctx, store.ChatRow{ID: id, Number: ourNumber, Person: name}, old); err != nil {
					return err
				}
				return errors.Join(w.oldLine(tx, id, name), hangs.begin(tx, id))
			}))
			wear := func() int {
				n, _, err := w.service.WearSome(ctx, old.Add(time.Second))
				w.must(err)
				return n
			}
			if n := wear(); n != 0 {
				t.Errorf("%s, and %d lines are taken", name, n)
			}
			if name == "about to pay" {
				w.must(hangs.end(nil, id))
			} else {
				w.must(w.db.Update(ctx, func(tx *store.Tx) error { return hangs.end(tx, id) }))
			}
			w.rest()
			if n := wear(); n == 0 {
				t.Errorf("%s no more, and nothing is taken", name)
			}
		}
		if found, err := w.db.Mentions(ctx, "our words"); err != nil || len(found) > 0 {
			t.Errorf("our words still stand in %v (%v)", found, err)
		}
	})
}

// oldLine is a message that a payer wrote at the present time.
func (w *world) oldLine(tx *store.Tx, chat flow.ChatID, message string) error {
	data, err := json.Marshal(flow.Turn{Now: w.clock(), Heard: &flow.Intent{Kind: flow.MeansNothing, Text: "words, " + message}})
	if err != nil {
		return err
	}
	return tx.Write(w.t.Context(), store.Line{Stream: string(chat), At: w.clock(), Kind: replay.Heard, Message: message, Data: data})
}

// However many chats are old, and however long one is, each transaction takes a
// part, the next one goes on where it ended, and what is done is not done again.
func TestOldChatsAreTakenInSmallParts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		const long, short = 2*checkout.WornLines + 30, 2*checkout.WornChats + 10
		old := w.clock()
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
			for n := range short {
				chat := store.ChatRow{ID: flow.ChatID(fmt.Sprintf("chat_%026d", n)), Number: ourNumber, Person: fmt.Sprintf("person %d", n)}
				if _, err := tx.AddChat(t.Context(), chat, old); err != nil {
					return err
				}
				lines := 1
				if n == checkout.WornChats {
					lines = long
				}
				for i := range lines {
					if err := w.oldLine(tx, chat.ID, fmt.Sprintf("OLD%d.%d", n, i)); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		wear := func(before time.Time) (total, parts int) {
			for more := true; more; parts++ {
				var lines int
				var err error
				lines, more, err = w.service.WearSome(t.Context(), before)
				w.must(err)
				if total += lines; lines > checkout.WornLines || parts > 20 {
					t.Fatalf("part %d takes %d lines", parts, lines)
				}
			}
			return total, parts
		}
		if total, _ := wear(old); total != 0 {
			t.Errorf("%d lines are taken before their time", total)
		}
		if total, parts := wear(old.Add(time.Second)); total != long+short-1 || parts < 5 {
			t.Errorf("%d lines are taken in %d parts", total, parts)
		}
		if found, err := w.db.Mentions(t.Context(), "words, "); err != nil || len(found) > 0 {
			t.Errorf("words still stand in %v (%v)", found, err)
		}
		if total, _ := wear(old.Add(time.Second)); total != 0 {
			t.Errorf("%d lines are taken once more", total)
		}
	})
}

// answersOf is what an endpoint answered, by delivery and try, newest delivery first.
func (w *world) answersOf(e flow.Endpoint) (list []string) {
	w.t.Helper()
	sent, err := w.db.DeliveriesTo(w.t.Context(), e.ID, "", false, 1000, 5)
	w.must(err)
	for _, d := range sent {
		for _, one := range d.Tries {
			list = append(list, fmt.Sprintf("%s %d %d %q", d.State, one.N, one.Status, one.Body))
		}
	}
	return list
}

// What endpoints answered is kept for its time and then taken, however much it is; that
// they were told, and how often, stays, and what they answer anew is kept.
func TestOldAnswersOfEndpointsAreTakenAndThatTheyWereToldStays(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		const many = 1100
		w.end()
		w.answers = kept90
		w.open(true)
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.backlog(e, "0", many) // sorts before what comes later
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			return flow.Verdict{OK: true, Status: http.StatusOK, Body: []byte("thanks, says Ngozi")}
		})
		w.run()
		w.rest()
		kept, gone := `delivered 1 200 "thanks, says Ngozi"`, `delivered 1 200 ""`
		w.days(89)
		if got := w.answersOf(e); len(got) != 1000 || slices.ContainsFunc(got, func(s string) bool { return s != kept }) {
			t.Fatalf("before its time there are %d answers, the first %s", len(got), got[:min(1, len(got))])
		}
		w.session(flow.Headless)
		w.days(3)
		if got := w.answersOf(e); got[0] != kept || len(got) != 1000 || slices.ContainsFunc(got[1:], func(s string) bool { return s != gone }) {
			t.Errorf("afterwards there are %d answers, the first %v", len(got), got[:2])
		}
		found, err := w.db.Mentions(t.Context(), "Ngozi")
		w.must(err)
		if len(found) != 1 || found["delivery_attempts.body"] != 1 {
			t.Errorf("of all of it is left %v", found)
		}
	})
}
