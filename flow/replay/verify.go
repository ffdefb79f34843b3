package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// Verdict is how a turn that was decided again compares with what happened.
type Verdict string

// The verdicts, the mildest first.
const (
	Same          Verdict = "same"
	CopyOnly      Verdict = "copy-only"      // the same messages in other words
	EffectChanged Verdict = "effect-changed" // other things would be done
	Missing       Verdict = "missing"        // a message that was sent would not be
	Extra         Verdict = "extra"          // a message would be sent that was not
	StateDiverged Verdict = "state-diverged" // the chat would stand elsewhere: nothing after it can be compared
)

// Words writes a message as a payer reads it.
type Words func(s flow.Say, at time.Time) string

// Difference is a turn that comes out otherwise than it did.
type Difference struct {
	Seq     int64 // of the decision
	At      time.Time
	Cause   string // what led to it
	Verdict Verdict
	Was, Is string // the first thing that differs, recorded and replayed
}

// Report is what came of a replay.
type Report struct {
	Chat        flow.ChatID
	Turns       int
	Texts       int
	Gone        int // texts of the payer and to them that are not kept any more: the rest is compared
	Differences []Difference
	Rules       []int    // versions of the rules that the recording was made under
	Copies      []string // versions of the words, likewise
}

// Worst is the gravest verdict of a report.
func (r Report) Worst() Verdict {
	worst := Same
	order := []Verdict{Same, CopyOnly, EffectChanged, Missing, Extra, StateDiverged}
	rank := func(v Verdict) int {
		for i, o := range order {
			if o == v {
				return i
			}
		}
		return len(order)
	}
	for _, d := range r.Differences {
		if rank(d.Verdict) > rank(worst) {
			worst = d.Verdict
		}
	}
	return worst
}

// ErrPart says that a recording cannot be decided again.
var ErrPart = errors.New("it is one merchant's part of a chat in which others' payments are spoken of too, and cannot be decided again: verify the session beside its data")

// Verify decides every turn of a recording again, each on the state that the
// replay itself came to, and stops where that state is not the recorded one.
// An error means that the recording cannot be read, or is but a part, not that it
// differs.
func Verify(r Recording, words Words) (Report, error) {
	report := Report{Chat: r.Chat}
	if r.Part {
		return report, ErrPart
	}
	turns, err := r.turns()
	if err != nil {
		return report, err
	}
	var chat flow.Chat
	for _, t := range turns {
		report.Turns++
		report.Texts += len(t.out.Texts)
		report.Gone += t.gone()
		report.Rules = appendNew(report.Rules, t.out.Rules)
		report.Copies = appendNew(report.Copies, t.out.Copy)
		t.in.Chat = known(chat, t.out.Chat)
		d := flow.Decide(t.in)
		d.Chat.Seq = t.out.Chat.Seq
		chat = d.Chat
		verdict, was, is := compare(t, d, words)
		if verdict == Same {
			continue
		}
		report.Differences = append(report.Differences, Difference{
			Seq: t.decided.Seq, At: t.decided.At, Cause: cause(t), Verdict: verdict, Was: was, Is: is,
		})
		if verdict == StateDiverged {
			return report, nil
		}
	}
	return report, nil
}

// known is a chat with what is known of its person from elsewhere than the
// turns: nothing is decided by it.
func known(chat, from flow.Chat) flow.Chat {
	chat.ID, chat.Number, chat.Person, chat.Phone, chat.Name = from.ID, from.Number, from.Person, from.Phone, from.Name
	return chat
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// cause is what led to a turn, in a word.
func cause(t turn) string {
	if t.in.News != nil {
		return "news: " + string(t.in.News.Kind)
	}
	return "heard: " + string(t.in.Heard.Kind)
}

// compare finds the gravest difference of a turn.
func compare(t turn, d flow.Decision, words Words) (verdict Verdict, was, is string) {
	if was, is, differ := unlike(t.out.Chat, d.Chat); differ {
		return StateDiverged, was, is
	}
	for i := range max(len(t.out.Says), len(d.Says)) {
		switch {
		case i >= len(d.Says):
			return Missing, t.out.Says[i].Key + ": " + text(t, i), "nothing"
		case i >= len(t.out.Says):
			return Extra, "nothing", d.Says[i].Key + ": " + words(d.Says[i], t.in.Now)
		case t.out.Says[i].Key != d.Says[i].Key:
			return Missing, t.out.Says[i].Key + ": " + text(t, i), d.Says[i].Key + ": " + words(d.Says[i], t.in.Now)
		}
	}
	if was, is, differ := unlike(t.out.Effects, d.Effects); differ {
		return EffectChanged, was, is
	}
	for i, s := range d.Says {
		if was, is := text(t, i), words(s, t.in.Now); was != is && !Blotted(was) {
			return CopyOnly, was, is
		}
	}
	return Same, "", ""
}

// gone counts the texts of a turn that are not kept any more.
func (t turn) gone() (n int) {
	if t.in.Heard != nil && Blotted(t.in.Heard.Text) {
		n++
	}
	for _, one := range t.out.Texts {
		if Blotted(one.Text) {
			n++
		}
	}
	return n
}

// text is a message as it was sent.
func text(t turn, i int) string {
	if i >= len(t.out.Texts) {
		return "(its text was not kept)"
	}
	return t.out.Texts[i].Text
}

// unlike compares two values by their JSON, and shows the first line in which
// they differ.
func unlike(a, b any) (was, is string, differ bool) {
	x, errX := json.MarshalIndent(a, "", " ")
	y, errY := json.MarshalIndent(b, "", " ")
	if errX != nil || errY != nil {
		return fmt.Sprint(errX), fmt.Sprint(errY), true
	}
	if bytes.Equal(x, y) {
		return "", "", false
	}
	xs, ys := strings.Split(string(x), "\n"), strings.Split(string(y), "\n")
	for i := range max(len(xs), len(ys)) {
		at := func(list []string) string {
			if i < len(list) {
				return strings.TrimSpace(list[i])
			}
			return "nothing"
		}
		if at(xs) != at(ys) {
			return at(xs), at(ys), true
		}
	}
	return "", "", false
}
