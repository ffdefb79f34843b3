package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/replay"
)

var noon = time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)

// words are a language in which every message says its key and its arguments.
func words(s flow.Say, _ time.Time) string {
	if s.Key == "agent" {
		return s.Args["text"]
	}
	return fmt.Sprint(s.Key, " ", s.Args["amount"], s.Args["text"])
}

// taped plays turns of one chat and keeps them as a shell does.
func taped(t *testing.T, turns ...flow.Turn) replay.Recording {
	t.Helper()
	chat := flow.Chat{ID: "chat_1", Number: "2349010000001", Person: "77001122334455", Phone: "2348031234567", Name: "Bola"}
	rec := replay.Recording{Chat: chat.ID}
	add := func(l replay.Line, data any) int64 {
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		l.Seq, l.Data = int64(len(rec.Lines)+1), text
		rec.Lines = append(rec.Lines, l)
		return l.Seq
	}
	for i, turn := range turns {
		turn.Chat, turn.Now = chat, noon.Add(time.Duration(i)*time.Minute)
		kind := replay.Heard
		if turn.News != nil {
			kind = replay.News
		}
		cause := add(replay.Line{At: turn.Now, Kind: kind, Message: fmt.Sprint("IN", i)}, turn)
		out := replay.Outcome{Decision: flow.Decide(turn), Rules: flow.RulesVersion, Copy: "abc"}
		out.Chat.Seq = cause + 1
		chat = out.Chat
		for j, say := range out.Says {
			out.Texts = append(out.Texts, replay.Text{ID: fmt.Sprint("OUT", cause, "/", j), Text: words(say, turn.Now)})
		}
		add(replay.Line{At: turn.Now, Kind: replay.Decided, Cause: cause}, out)
		for _, text := range out.Texts {
			add(replay.Line{At: turn.Now, Kind: replay.Sent, Message: text.ID}, struct{}{})
		}
	}
	return rec
}

// session is the state of a payment as turns know it.
func session(attempts ...flow.Attempt) map[flow.SessionID]flow.Checkout {
	s := flow.Session{
		ID: "wsp_sess_1", Merchant: "Ada Stores", Mode: flow.InChat, Amount: 500_000, Status: flow.SessionPending, AllowedMethods: flow.Methods(),
		EntryCode: "7K3M9QTX", CreatedAt: noon, ExpiresAt: noon.Add(24 * time.Hour), CustomerEmail: "bola@example.com", CustomerPhone: "2348031234567",
	}
	return map[flow.SessionID]flow.Checkout{s.ID: flow.Look(s, attempts, nil, flow.Offers(s, attempts, flow.Methods(), noon))}
}

// talk is a conversation: code, transfer, the account number, "who is this".
func talk(t *testing.T) replay.Recording {
	t.Helper()
	a := flow.Attempt{
		ID: "wsp_att_1", Session: "wsp_sess_1", Method: flow.BankTransfer, Amount: 500_000, Status: flow.AttemptActive, Chat: "chat_1", CreatedAt: noon,
		ExpiresAt: noon.Add(30 * time.Minute), Instructions: &flow.Instructions{AccountNumber: "9012345678", BankName: "Wema", AccountName: "ADA"},
	}
	return taped(t,
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX", Text: "Pay 7K3M-9QTX, I am Bola"}, ByCode: "wsp_sess_1", Checkouts: session()},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"}, Checkouts: session()},
		flow.Turn{News: &flow.News{Kind: flow.NewsOpened, Attempt: "wsp_att_1"}, About: "wsp_sess_1", Checkouts: session(a)},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansWho, Text: "who is this"}, Checkouts: session(a)},
	)
}

// edited is a recording with the outcome of its n-th turn changed.
func edited(t *testing.T, r replay.Recording, n int, change func(*replay.Outcome)) replay.Recording {
	t.Helper()
	r.Lines = append([]replay.Line(nil), r.Lines...)
	for i := range r.Lines {
		if r.Lines[i].Kind != replay.Decided {
			continue
		}
		if n--; n > 0 {
			continue
		}
		var o replay.Outcome
		if err := json.Unmarshal(r.Lines[i].Data, &o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		r.Lines[i].Data = text
		return r
	}
	t.Fatal("there is no such turn")
	return r
}

func TestVerifySaysWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		name    string
		turn    int
		change  func(*replay.Outcome)
		verdict replay.Verdict
		was, is string
		all     int // differences found
	}{
		{"nothing", 1, func(*replay.Outcome) {}, replay.Same, "", "", 0},
		{"other words", 1, func(o *replay.Outcome) { o.Texts[0].Text = "Good day" }, replay.CopyOnly, "Good day", "summary ₦5,000", 1},
		{"an effect that is not there any more", 2, func(o *replay.Outcome) { o.Effects[0].Method = flow.Card }, replay.EffectChanged, `"method": "card"`, `"method": "bank_transfer"`, 1},
		{"a message that would not be said", 4, func(o *replay.Outcome) {
			o.Says = append(o.Says, flow.Say{Key: "welcome"})
			o.Texts = append(o.Texts, replay.Text{Text: "You are welcome."})
		}, replay.Missing, "welcome: You are welcome.", "nothing", 1},
		{"a message that was not said", 3, func(o *replay.Outcome) { o.Says, o.Texts = o.Says[:2], o.Texts[:2] }, replay.Extra, "nothing", "wait_menu: wait_menu ", 1},
		{"another state, after which nothing can be compared", 2, func(o *replay.Outcome) {
			o.Chat.Talks[0].State = flow.AwaitCard
			o.Says = nil
		}, replay.StateDiverged, `"state": "await_card",`, `"state": "opening",`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := replay.Verify(edited(t, talk(t), c.turn, c.change), words)
			if err != nil {
				t.Fatal(err)
			}
			if report.Worst() != c.verdict || len(report.Differences) != c.all {
				t.Fatalf("%s, %+v", report.Worst(), report.Differences)
			}
			if c.all > 0 && (strings.TrimSpace(report.Differences[0].Was) != c.was || report.Differences[0].Is != c.is) {
				t.Errorf("was %q, is %q", report.Differences[0].Was, report.Differences[0].Is)
			}
		})
	}
}

func TestAReplayNamesTheVersionsOfARecording(t *testing.T) {
	old := edited(t, talk(t), 1, func(o *replay.Outcome) { o.Rules, o.Copy = 1, "old" })
	report, err := replay.Verify(old, words)
	if err != nil || report.Turns != 4 || fmt.Sprint(report.Rules, report.Copies) != fmt.Sprint([]int{1, flow.RulesVersion}, []string{"old", "abc"}) {
		t.Fatalf("%+v, %v", report, err)
	}
}

func TestALogThatDoesNotHoldItsInputsCannotBeVerified(t *testing.T) {
	rec := talk(t)
	rec.Lines[0].Data = json.RawMessage(`{"kind":"code","code":"7K3M9QTX"}`)
	if _, err := replay.Verify(rec, words); err == nil || !strings.Contains(err.Error(), "read line 1") {
		t.Error(err)
	}
	rec = talk(t)
	rec.Lines = rec.Lines[1:]
	if _, err := replay.Verify(rec, words); err == nil || !strings.Contains(err.Error(), "its cause, line 1, is missing") {
		t.Error(err)
	}
}

func TestAt(t *testing.T) {
	rec := talk(t)
	for _, c := range []struct {
		line    int64
		state   flow.TalkState
		live    int
		screen  string
		pending int
	}{
		{2, flow.Choosing, 0, "", 1}, // decided, and not sent yet
		{3, flow.Choosing, 0, "summary ₦5,000[sent]", 0},
		{5, flow.Opening, 0, "1[written]", 0},
		{8, flow.AwaitTransfer, 1, "transfer_how ₦5,000[sent]", 2},
		{10, flow.AwaitTransfer, 1, "wait_menu [sent]", 0},
	} {
		m, err := replay.At(rec, c.line)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		if len(m.Screen) > 0 {
			last = m.Screen[len(m.Screen)-1].Text + "[" + m.Screen[len(m.Screen)-1].State + "]"
		}
		if c.screen == "" {
			last = ""
		}
		if m.Chat.Talks[0].State != c.state || len(m.Live) != c.live || last != c.screen || len(m.Pending) != c.pending || m.Why == "" {
			t.Errorf("line %d: %s, %d live, last on the screen %q, %d pending, %q", c.line, m.Chat.Talks[0].State, len(m.Live), last, len(m.Pending), m.Why)
		}
	}
	if _, err := replay.At(rec, 99); err == nil || !strings.Contains(err.Error(), "has lines 1 to") {
		t.Error(err)
	}
}

func TestAFileIsTheRecordingAndNothingElse(t *testing.T) {
	rec := talk(t)
	var out bytes.Buffer
	if err := replay.Export(&out, rec, false); err != nil {
		t.Fatal(err)
	}
	whole := out.String()
	got, redacted, err := replay.Import(strings.NewReader(whole))
	if err != nil || redacted || len(got.Lines) != len(rec.Lines) {
		t.Fatal(len(got.Lines), redacted, err)
	}
	if report, err := replay.Verify(got, words); err != nil || report.Worst() != replay.Same {
		t.Fatal(report, err)
	}
	var again bytes.Buffer
	if err := replay.Export(&again, got, false); err != nil || again.String() != whole {
		t.Error("the same recording came out as other bytes", err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	join := func(lines ...string) string { return strings.Join(lines, "") }
	for name, text := range map[string]string{
		"nothing":         "",
		"no header":       join(lines[1:]...),
		"cut":             join(lines[:len(lines)-1]...),
		"a line less":     join(append(append([]string{}, lines[:3]...), lines[4:]...)...),
		"a line twice":    join(append(append([]string{}, lines[:4]...), lines[3:]...)...),
		"two swapped":     join(append(append([]string{}, lines[:2]...), append([]string{lines[3], lines[2]}, lines[4:]...)...)...),
		"another amount":  strings.Replace(whole, "₦5,000", "₦6,000", 1),
		"another chat":    strings.Replace(whole, "chat_1", "chat_2", 1),
		"more at the end": whole + lines[2],
		"no JSON":         lines[0] + "hello\n",
		"a line goes on":  join(append([]string{lines[0], strings.TrimSuffix(lines[1], "\n") + ` {"anything":"else"}` + "\n"}, lines[2:]...)...),
		"a name twice":    join(append([]string{lines[0], `{"seq":7,` + lines[1][1:]}, lines[2:]...)...),
	} {
		if _, _, err := replay.Import(strings.NewReader(text)); !errors.Is(err, replay.ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsRedactedSaysNothingOfThePayerAndIsDecidedTheSameWay(t *testing.T) {
	rec, err := replay.Redact(talk(t))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := replay.Export(&out, rec, true); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"Bola", "bola@", "2348031234567", "77001122334455", "who is this"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	if report, err := replay.Verify(rec, words); err != nil || report.Worst() != replay.Same {
		t.Errorf("%+v, %v", report, err)
	}
	if lines, err := replay.Conversation(rec, ""); err != nil || lines[0].Text != "[24 characters]" || len(lines) != 8 {
		t.Errorf("%+v, %v", lines, err)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(`{"format":"till/conversation/1","chat":"chat_1","redacted":true}` + "\n" + `{"lines":0,"head":""}`)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		rec, _, err := replay.Import(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, replay.ErrFile) {
				t.Error(err)
			}
			return
		}
		_, _ = replay.Verify(rec, words) // whatever is in it
	})
}

func TestWhatAnAgentWroteAndWhomTheNetworkDidNotReachIsRedactedToo(t *testing.T) {
	rec := taped(t,
		flow.Turn{News: &flow.News{Kind: flow.NewsClaimed, By: "ngozi"}},
		flow.Turn{News: &flow.News{Kind: flow.NewsReply, By: "ngozi", Reason: "Good day Bola, is 2348031234567 yours?"}},
	)
	last := rec.Lines[len(rec.Lines)-1]
	last.Seq++
	last.Kind, last.Data = replay.Failed, json.RawMessage(`{"reason":"no such device: 77001122334455@lid"}`)
	rec.Lines = append(rec.Lines, last)
	rec, err := replay.Redact(rec)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := replay.Export(&out, rec, true); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"Bola", "2348031234567", "77001122334455", "Good day"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	if report, err := replay.Verify(rec, words); err != nil || report.Worst() != replay.Same || report.Texts != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestWhatWasSwitchedAwayFromIsNotShownAsLive(t *testing.T) {
	a := flow.Attempt{
		ID: "wsp_att_1", Session: "wsp_sess_1", Method: flow.BankTransfer, Amount: 500_000, Status: flow.AttemptActive, Chat: "chat_1", CreatedAt: noon,
		ExpiresAt: noon.Add(30 * time.Minute), Instructions: &flow.Instructions{AccountNumber: "9012345678"},
	}
	rec := taped(t,
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}, ByCode: "wsp_sess_1", Checkouts: session()},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer}, Checkouts: session()},
		flow.Turn{News: &flow.News{Kind: flow.NewsOpened, Attempt: a.ID}, About: "wsp_sess_1", Checkouts: session(a)},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansOther}, Checkouts: session(a)},
		flow.Turn{News: &flow.News{Kind: flow.NewsNothing}, About: "wsp_sess_1", Checkouts: session(a)},
	)
	var live []int
	for _, l := range rec.Lines {
		if l.Kind != replay.Decided {
			continue
		}
		m, err := replay.At(rec, l.Seq)
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, len(m.Live))
	}
	if fmt.Sprint(live) != "[0 0 1 1 0]" {
		t.Errorf("live after each turn: %v", live)
	}
}

func TestAMerchantReadsOfTheirOwnPaymentAlone(t *testing.T) {
	rec := talk(t)
	for i := range rec.Lines {
		rec.Lines[i].Session = "wsp_sess_1"
		if rec.Lines[i].Seq > 10 { // "who is this" is about another merchant's
			rec.Lines[i].Session = "wsp_sess_2"
		}
	}
	for session, want := range map[flow.SessionID]int{"": 8, "wsp_sess_1": 6, "wsp_sess_2": 2, "wsp_sess_3": 0} {
		if lines, err := replay.Conversation(rec, session); err != nil || len(lines) != want {
			t.Errorf("of %q %d messages are shown, not %d (%v)", session, len(lines), want, err)
		}
	}
}

// What a message said before it was edited is not shown to whoever reads of another
// payment than it was about.
func TestAnEditDoesNotTellOfAnotherPayment(t *testing.T) {
	rec := taped(t,
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansNothing, Text: "for Bola Foods"}},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansNote, Text: "for Ada Stores"}, Edits: "IN0", Of: 1},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansNote, Text: "(took back a message)"}, Revokes: "IN0", Of: 1},
	)
	for i := range rec.Lines {
		rec.Lines[i].Session = "wsp_sess_2"
		if rec.Lines[i].Seq > 3 {
			rec.Lines[i].Session = "wsp_sess_1"
		}
	}
	all, err := replay.Conversation(rec, "")
	if err != nil || all[2].Text != "(edited) for Ada Stores (was “for Bola Foods”)" || all[3].Text != "(took back a message: “for Bola Foods”)" {
		t.Errorf("%+v, %v", all, err)
	}
	own, err := replay.Conversation(rec, "wsp_sess_1")
	if err != nil || own[0].Text != "(edited) for Ada Stores" || own[1].Text != "(took back a message)" {
		t.Errorf("%+v, %v", own, err)
	}
	steps, err := replay.Steps(rec, func(id flow.SessionID) bool { return id == "wsp_sess_1" })
	if err != nil || steps[0].Bubbles[0].Text != "(edited) for Ada Stores" || steps[1].Bubbles[0].Text != "(took back a message)" {
		t.Errorf("%+v, %v", steps, err)
	}
}
