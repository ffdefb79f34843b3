package sim

import (
	"context"
	"encoding/json"
	"strings"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store/lite"
)

// takeTalk follows where the talks of a chat stand.
func (e *ledgerBook) takeTalk(m move) error {
	var d struct {
		Chat struct {
			Talks []struct{ Session, State string }
			Desk  struct{ State string }
		}
		Texts []struct{ ID, Text string }
		Says  []struct {
			Key  string
			Args map[string]string
		}
	}
	if err := json.Unmarshal([]byte(m.raw), &d); err != nil {
		return err
	}
	for _, s := range d.Says {
		if s.Key == "receipt" {
			e.judgeReceipt(s.Args["reference"], s.Args["amount"])
		}
	}
	for _, t := range d.Texts {
		e.decided[t.ID] = t.Text
	}
	for _, t := range d.Chat.Talks {
		key := m.id + "/" + t.Session
		was := e.talks[key]
		if was != "" && was != t.State && !e.w.goals.edge("talk", was, t.State) {
			e.w.breaks("I6", "a talk of %s went from %s to %s, which no table knows", e.w.called(t.Session), was, t.State)
		}
		if was != t.State {
			e.w.saw("talk of %s: %s → %s", e.w.called(t.Session), was, t.State)
		}
		e.talks[key], e.standing[t.Session] = t.State, t.State
	}
	was, is := e.talks[m.id], d.Chat.Desk.State
	if was != is {
		if !e.w.goals.edge("desk", was, is) {
			e.w.breaks("I6", "a desk went from %q to %q, which no table knows", was, is)
		}
		e.w.saw("desk: %q → %q", was, is)
	}
	e.talks[m.id] = is
	return nil
}

// judgeHeardOfEnd judges that the chats of a session which was paid in this step stand
// where those stand whose payers were told so.
func (e *ledgerBook) judgeHeardOfEnd(session string) {
	waits := map[string]bool{"choosing": true, "ussd_bank": true, "opening": true, "await_transfer": true, "await_ussd": true, "await_card": true, "verifying": true, "part_paid": true}
	for _, key := range sorted(e.talks) {
		if strings.HasSuffix(key, "/"+session) && waits[e.talks[key]] {
			e.w.breaks("I12", "%s is paid, and a chat about it that nobody told stands at %s", e.w.called(session), e.talks[key])
		}
	}
}

// judgeReceipt judges that a receipt is of what was paid, and of no more than that where
// several paid. An amount is written as ₦1,234.50.
func (e *ledgerBook) judgeReceipt(reference, amount string) {
	w := e.w
	digits := strings.NewReplacer("₦", "", ",", "").Replace(amount)
	if !strings.Contains(digits, ".") {
		digits += ".00"
	}
	says := whole(strings.Replace(digits, ".", "", 1))
	for _, one := range w.sessions {
		s := e.sessions[one.id]
		if one.ref == reference && s != nil && (says > s.paid || says < s.paid && len(s.money) == 1) {
			w.breaks("I12", "the receipt of %s says %d kobo, and it is paid with %d", reference, says, s.paid)
		}
	}
}

// judgeTalks decides every conversation again.
func (w *world) judgeTalks() {
	var chats []string
	err := w.book.envs[0].conn.Each(`SELECT id FROM chats`, nil, func(scan lite.Scanner) error {
		var id string
		err := scan(&id)
		chats = append(chats, id)
		return err
	})
	if err != nil {
		w.breaks("sim", "list the chats: %v", err)
	}
	for _, id := range chats {
		list, err := checkout.Recordings(context.Background(), w.inst.test.Reader(), "", flow.ChatID(id)) // it belongs to no request
		if err != nil {
			w.breaks("I14", "read the chat %s: %v", id, err)
			return
		}
		for _, r := range list {
			report, err := replay.Verify(r, w.tpl.words.Render)
			if err != nil || report.Worst() != replay.Same {
				w.breaks("I14", "chat %s decided again differs: %v %+v", id, err, report.Differences)
			}
			w.goals.Turns += report.Turns
		}
	}
}
