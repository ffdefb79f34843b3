package flow_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"till/flow"
)

// anything is a random turn of a random chat.
func anything(t *rapid.T) flow.Turn {
	turn := standing(rapid.SampledFrom(flow.TalkStates()).Draw(t, "state"))
	talk := &turn.Chat.Talks[0]
	talk.Then = rapid.SampledFrom([]flow.Then{flow.ThenBack, flow.ThenChoose, flow.ThenOpen, flow.ThenCancel}).Draw(t, "then")
	talk.From = rapid.SampledFrom(flow.TalkStates()).Draw(t, "from")
	talk.Method = rapid.SampledFrom(flow.Methods()).Draw(t, "method")
	talk.Attempt = rapid.SampledFrom([]flow.AttemptID{"", "t", "u", "c", "x"}).Draw(t, "attempt")
	talk.ConfirmTo = rapid.SampledFrom([]int64{0, turn.Now.UnixMilli() - 1, turn.Now.UnixMilli() + 1}).Draw(t, "confirm")
	talk.Unknown = rapid.IntRange(0, 3).Draw(t, "unknown")
	if rapid.Bool().Draw(t, "no focus") {
		turn.Chat.Focus = ""
	}
	if rapid.IntRange(0, 9).Draw(t, "nothing known") == 0 {
		turn.Checkouts = nil
	}
	turn.Chat.BadCodes, turn.Chat.Strangers = rapid.IntRange(0, 5).Draw(t, "bad codes"), rapid.IntRange(0, 2).Draw(t, "strangers")
	if rapid.Bool().Draw(t, "heard") {
		return heard(turn, rapid.SampledFrom(intents()).Draw(t, "intent"))
	}
	return about(turn, rapid.SampledFrom(news(rapid.SampledFrom([]flow.AttemptID{"", "t", "u", "c", "x"}).Draw(t, "of"))).Draw(t, "news"))
}

func TestWhateverIsSaidOrHappensADecisionIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := anything(t)
		before, err := json.Marshal(turn)
		if err != nil {
			t.Fatal(err)
		}
		d := flow.Decide(turn)
		if again := flow.Decide(turn); !reflect.DeepEqual(d, again) {
			t.Fatalf("the same turn came to\n%+v\nand\n%+v", d, again)
		}
		opens := 0
		for i, e := range d.Effects {
			if e.Kind != flow.DoOpen {
				continue
			}
			opens++
			chosen := turn.Heard != nil && (turn.Heard.Kind == flow.MeansMethod || turn.Heard.Kind == flow.MeansBank) ||
				turn.News != nil && turn.News.Kind == flow.NewsNothing && turn.Chat.Talks[0].Then == flow.ThenOpen
			if !chosen || talkOf(d).State != flow.Opening || talkOf(d).Method != e.Method {
				t.Fatalf("effect %d opens %s: %+v", i, e.Method, d)
			}
		}
		if opens > 1 {
			t.Fatalf("opens %d times", opens)
		}
		after := talkOf(d)
		if turn.Heard != nil && after.State == flow.Paid && turn.Chat.Talks[0].State != flow.Paid {
			t.Fatalf("a payer's word paid: %+v", d)
		}
		reversed := turn.News != nil && turn.News.Kind == flow.NewsReversed
		if turn.Chat.Talks[0].State == flow.Paid && after.State != flow.Paid && !reversed {
			t.Fatalf("paid was left for %s", after.State)
		}
		if after.State == flow.Opening && turn.Chat.Talks[0].State != flow.Opening && opens == 0 {
			t.Fatalf("waits for instructions that nobody asked for: %+v", d)
		}
		if after.State == flow.Verifying && turn.Chat.Talks[0].State != flow.Verifying && (len(d.Effects) != 1 || d.Effects[0].Kind != flow.DoCheck) {
			t.Fatalf("waits for a bank that nobody asked: %+v", d)
		}
		for i := range d.Chat.Talks { // whoever gets a decision may write into it
			d.Chat.Talks[i].State = "scribble"
		}
		for _, s := range d.Says {
			for k := range s.Args {
				s.Args[k] = "scribble"
			}
		}
		if now, err := json.Marshal(turn); err != nil || string(now) != string(before) {
			t.Fatalf("the turn was changed (%v):\n%s\n%s", err, before, now)
		}
	})
}
