package bot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"till/bot"
	"till/flow"
)

// talker sends one message after the other to a bot, each under an id of its
// own.
type talker struct {
	*hearing
	t   *testing.T
	bot *bot.Bot
	n   int
}

func newTalker(t *testing.T) *talker {
	t.Helper()
	k := &talker{hearing: &hearing{}, t: t}
	k.bot = newBot(k.hearing)
	return k
}

func (k *talker) says(texts ...string) []flow.Intent {
	k.t.Helper()
	var out []flow.Intent
	for _, text := range texts {
		k.n++
		m := message()
		m.ID, m.Text = fmt.Sprintf("ID%c", 'A'+rune(k.n%26)), text
		out = append(out, k.receive(m))
	}
	return out
}

func (k *talker) receive(m bot.Message) flow.Intent {
	k.t.Helper()
	must(k.t, k.bot.Receive(k.t.Context(), m))
	return k.inbound[len(k.inbound)-1].Intent
}

// leak finds four digits of a card number, one behind the other, in what was
// kept of a person.
func (k *talker) leak(pan string) string {
	k.t.Helper()
	all := ""
	for _, in := range k.inbound {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // \u0026 is no digits of theirs
		must(k.t, enc.Encode([]any{in.Intent, in.Name, in.Quoted, in.Edits, in.Revokes, in.Came}))
		all += b.String()
	}
	for i := range len(pan) - 3 {
		if strings.Contains(all, pan[i:i+4]) {
			return pan[i:i+4] + " in " + all
		}
	}
	return ""
}

// pan makes a card number of a random issuer, with a right check digit. The
// ranges that a Nigerian phone number begins with are left out: behind thirteen
// digits that can be a phone nothing is taken for the rest of a card.
func pan(r *rand.Rand) string {
	heads := []struct {
		head    string
		lengths []int
	}{{"4", []int{16, 18, 19}}, {"51", []int{16}}, {"53", []int{16}}, {"2221", []int{16}}, {"2720", []int{16}}, {"34", []int{15}}, {"37", []int{15}}, {"5061", []int{16, 17, 18, 19}}, {"507865", []int{16, 19}}, {"6500", []int{16, 17, 18, 19}}}
	h := heads[r.IntN(len(heads))]
	length := h.lengths[r.IntN(len(h.lengths))]
	digits := h.head
	for len(digits) < length-1 {
		digits += string(rune('0' + r.IntN(10)))
	}
	return luhn(digits)
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// A card number that is typed in two or three messages is known by the last of
// them, wherever it is cut into more than an answer to a menu has and whatever stands
// between and around its digits, and nothing of it is kept.
func TestCardsInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	around := []string{"", "", "", "my card ", "it is ", "and ", "ok: ", "first part: "}
	for range times(1000) {
		card := pan(r)
		between := []string{"", "", " ", "-", ".", " - ", "\u00a0", "\n", "/", "\u200b"}
		cuts := []int{0, 3 + r.IntN(len(card)-5), len(card)}
		if r.IntN(2) == 0 {
			cuts = []int{0, 3 + r.IntN(len(card)/2-5), len(card)/2 + r.IntN(len(card)-len(card)/2-2), len(card)}
		}
		var texts []string
		for i := range len(cuts) - 1 {
			text := pick(r, around)
			for _, digit := range card[cuts[i]:cuts[i+1]] {
				text += string(digit) + pick(r, between)
			}
			texts = append(texts, text)
		}
		k := newTalker(t)
		found := false
		for _, in := range k.says(texts...) {
			found = found || in.Kind == flow.MeansSecret
		}
		if !found {
			t.Errorf("%q is not known for a card: %+v", texts, k.inbound)
		}
		if leaked := k.leak(card); leaked != "" {
			t.Errorf("%q leaves %s", texts, leaked)
		}
	}
}

// What a payer answers to a menu is never the end of a card by chance, or the beginning
// of one, whatever numbers they write before and after.
func TestAnswersAreNoPiecesOfACard(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		card := luhn(fmt.Sprintf("4%014d", r.Int64N(100_000_000_000_000)))
		end, begin := card[len(card)-1:], card[:1+r.IntN(2)]
		alone := func(text string) string { return short(bot.Understand(text, banks)) }
		for _, texts := range [][]string{{card[:len(card)-1], end}, {card[:8], card[8 : len(card)-1], end}, {begin, card[len(begin):]}} {
			for i, in := range newTalker(t).says(texts...) {
				if got, want := short(in), alone(texts[i]); got != want {
					t.Errorf("%q of %q means %s, want %s", texts[i], texts, got, want)
				}
			}
		}
	}
}

// Whatever stands between the digits and however they are written, nothing of a
// card number is kept, be it known for one or not. Letters stand between them
// only where the number is in one message: cut in pieces, with letters in each,
// one in some thousands looks like an entry code.
func TestNothingOfACardIsKept(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	signs := []string{"", "", "", " ", "-", "–", "x", " and ", "\u200b", "\u202e", "💳", "...", "\n\n", "\t", "|", "_", "~", "=", "a", "é", " then ", "%20", "\x00", "\xff", "&", "(", ")"}
	for range times(1500) {
		card := pan(r)
		forms := []func(d rune) string{
			func(d rune) string { return string(d) },
			func(d rune) string { return string(d) + "\ufe0f\u20e3" },
			func(d rune) string { return string('٠' + d - '0') },
			func(d rune) string { return string('０' + d - '0') },
			func(d rune) string { return string('𝟎' + d - '0') },
			func(d rune) string {
				return " " + []string{"zero", "one", "biyu", "meta", "four", "ise", "shida", "meje", "asato", "nine"}[d-'0'] + " "
			},
		}
		plain, cut := r.IntN(2) == 0, r.IntN(2) == 0
		var texts []string
		text := ""
		for i, digit := range card {
			form := forms[0]
			if !plain {
				form = forms[r.IntN(len(forms))]
			}
			sign := pick(r, signs)
			if cut && strings.Trim(sign, "abcdefghijklmnopqrstuvwxyzé ") == "" {
				sign = "-"
			}
			text += form(digit) + sign
			if cut && i < len(card)-1 && len(texts) < 2 && r.IntN(10) == 0 {
				texts, text = append(texts, text), ""
			}
		}
		texts = append(texts, text)
		k := newTalker(t)
		k.says(texts...)
		m := message()
		m.ID, m.Name, m.Text, m.Kind, m.Quoted, m.Edits = "IDX", "Ada "+text, text, bot.KindPicture, "3EB0A", "3EB0B"
		k.receive(m)
		m.ID, m.Kind = "IDY", bot.KindReaction
		k.receive(m)
		m.ID, m.Own = "IDZ", true
		k.receive(m)
		if leaked := k.leak(card); leaked != "" {
			t.Errorf("%q leaves %s", texts, leaked)
		}
	}
}

// Who only speaks of a secret, or uses its name for something else, is not warned,
// and what they write is kept as it is.
func TestNoSecretIsSeenWhereNoneIs(t *testing.T) {
	for _, text := range []string{
		"forgot my password", "forgot my password: please help", "password: transfer", "I forgot my password", "my password is wrong", "my password is not working", "what is my password", "the password is for my phone", "is a password needed?",
		"my password don spoil", "password is incorrect please", "what is the pin for?", "my pin is not here", "the password is in my other phone", "my password is with my brother",
		"this is not my password", "password is required", "reset password", "it is a secret", "kalmar sirri ta bata", "gini bu okwuntughe m", "kini oro igbaniwole mi",
		"pin me", "pin me at the shop", "token of appreciation", "a small token of 50 naira", "token", "my token has not come", "send the token for light", "tokens",
		"at the back of the shop", "I am at the back", "my shop is behind the bank", "cvv", "otp", "do you want the otp?", "spin", "opinion 12", "pinto", "password", "forgot my pasword", "my passport is at the bank", "passport number", "1 2 3", "order 12",
	} {
		in := newTalker(t).says(text)[0]
		if in.Kind == flow.MeansSecret || in.Text != text {
			t.Errorf("%q is %s and is kept as %q", text, in.Kind, in.Text)
		}
	}
	for _, text := range []string{
		"token of 150,000", "token of appreciation 5000", "token 150,000", "token ₦150000", "token 150000 naira", "token 5000", "I paid 5000 for token", "token 01234567890123456789",
		"pin me on 08031234567", "pineapple1234", "spin1234", "order1234", "ORD-1182", "acct 0123456789 gtb", "gtb2", "my token has not come 5000", "pin 7K3M-9QTX", "my password is 7K3M-9QTX",
		"the otp came at 10:30", "otp didn't come since 9:30 PM", "my pin no dey work since 02.08.2026", "I changed my PIN on 12/10/2026, 14:03:22", "password reset 2026-10-12",
		"token 1234 5678 9012 3456 7890", "my token is 1234-5678-9012-3456-7890", "forgot my password, order ORD1182", "I am number 123 at the back",
	} {
		if in := newTalker(t).says(text)[0]; in.Kind == flow.MeansSecret {
			t.Errorf("%q is taken for a secret", text)
		}
	}
	for _, texts := range [][]string{
		{"forgot my password", "ORD1182"}, {"my token has not come", "5000"}, {"token of appreciation", "5000"}, {"pin me", "5000"}, {"4111 1111 1111 1111", "adaobi77"},
	} {
		k := newTalker(t)
		if got := k.says(texts...); got[1].Kind == flow.MeansSecret {
			t.Errorf("%q ends in a secret", texts)
		}
	}
}

// Where a secret is spoken of, in a message or just before it, no number is kept
// that a CVV could be, whatever stands around it.
func TestNoCodeIsKeptBesideASecret(t *testing.T) {
	for _, texts := range [][]string{
		{"4111 1111 1111 1111", "it dey the other side o, na im be 789"},
		{"4111 1111 1111 1111", "ok", "you fit see am for there, e be like say na seven eight nine o"},
		{"do you need my cvv or is it that small paper wey my brother bring 789"},
		{"my pin", "it dey for paper wey I write down yesterday 789"},
	} {
		k := newTalker(t)
		got := k.says(texts...)
		if in := got[len(got)-1]; in.Kind == flow.MeansSecret || !strings.Contains(in.Text, "[3 digits]") {
			t.Errorf("of %q is kept %q", texts, in.Text)
		}
	}
	if in := newTalker(t).says("it dey the other side o, na im be 789")[0]; !strings.Contains(in.Text, "789") {
		t.Errorf("a number of three digits is kept as %q", in.Text)
	}
}

// The pieces are those of one person, of ten minutes, and of each message once.
func TestPiecesAreForgotten(t *testing.T) {
	k, now := newTalker(t), noon
	k.bot = bot.New(k.hear, k.tick, banks, func() time.Time { return now })
	send := func(person, id, text string) flow.IntentKind {
		m := message()
		m.Person, m.ID, m.Text = person, id, text
		return k.receive(m).Kind
	}
	send("1", "A", "4111 1111")
	if got := send("2", "B", "1111 1111"); got != flow.MeansNothing {
		t.Errorf("another person's piece completes it: %s", got)
	}
	now = now.Add(10 * time.Minute)
	if got := send("1", "C", "1111 1111"); got != flow.MeansNothing {
		t.Errorf("ten minutes later it is completed: %s", got)
	}
	send("3", "D", "4111 1111")
	for range 3 { // the same message again is the same
		if got := send("3", "E", "1111 1111"); got != flow.MeansSecret {
			t.Errorf("the second piece means %s", got)
		}
	}
	if got := send("3", "F", "1"); got != flow.MeansMethod {
		t.Errorf("an answer after a card means %s", got)
	}
}

// The pieces of so many people are remembered at most, and of those for ten minutes.
func TestThePiecesOfTheLastPeopleAloneAreKept(t *testing.T) {
	sweeps(t)
	k, now := newTalker(t), noon
	k.bot = bot.New(k.hear, k.tick, banks, func() time.Time { return now })
	const most = 10_000
	send := func(person, text string) {
		m := message()
		m.Person, m.Text = person, text
		k.receive(m)
	}
	for i := range most + 2_000 {
		send(fmt.Sprintf("P%d", i), "4111 1111")
	}
	if n := k.bot.People(); n != most {
		t.Errorf("%d people are remembered", n)
	}
	now = now.Add(10 * time.Minute)
	send("9", "hi")
	if n := k.bot.People(); n != 1 {
		t.Errorf("%d people are remembered after ten minutes", n)
	}
}

// What is kept of a text shows how long its numbers were, and no more.
func TestKeptText(t *testing.T) {
	for text, want := range map[string]string{
		"my account is 0123456789 gtb":        "my account is [10 digits] gtb",
		"1234":                                "[4 digits]",
		"123":                                 "123",
		"12 34":                               "[4 digits]",
		"I sent ₦5,000.00 at 4:35 pm":         "I sent ₦[6 digits] at [3 digits] pm",
		"at 4 pm I sent 50 naira":             "at 4 pm I sent 50 naira",
		"Pay 7K3M-9QTX":                       "Pay 7K3M-9QTX",
		"Pay 7K3M-9QTX from 0123456789":       "Pay 7K3M-9QTX from [10 digits]",
		"Pay%207K3M-9QTX":                     "Pay 7K3M-9QTX",
		"1️⃣2️⃣3️⃣4️⃣ ok":                     "[4 digits] ok",
		"one two three four":                  "[4 digits]",
		"one or two":                          "one or two",
		"a1b2c3d4e5f6g7":                      "a1b2c3d4e5f6g7",
		"a1b2c3d4e5f6g7h8":                    "a[1 digit]b[1 digit]c[1 digit]d[1 digit]e[1 digit]f[1 digit]g[1 digit]h[1 digit]",
		"call +234 803 123 4567 now":          "call +[13 digits] now",
		strings.Repeat("7", 2000) + " and 12": "[more than 99 digits] and [2 digits]",
	} {
		if in := bot.Understand(text, banks); in.Text != want {
			t.Errorf("%.40q is kept as %q, want %q", text, in.Text, want)
		}
	}
}

// Each kind of message means what the rules wait for, and is kept as what it
// was.
func TestReceiveKinds(t *testing.T) {
	for _, c := range []struct {
		m    bot.Message
		kind flow.IntentKind
		text string
		came string
	}{
		{bot.Message{Kind: bot.KindPicture}, flow.MeansMedia, "", "picture"},
		{bot.Message{Kind: bot.KindPicture, Text: "see my receipt"}, flow.MeansMedia, "see my receipt", "picture"},
		{bot.Message{Kind: bot.KindDocument, Text: "thanks"}, flow.MeansMedia, "thanks", "document"},
		{bot.Message{Kind: bot.KindPicture, Text: "I have paid"}, flow.MeansPaid, "I have paid", "picture"},
		{bot.Message{Kind: bot.KindVoice}, flow.MeansUnread, "", "voice note"},
		{bot.Message{Kind: bot.KindVideo, Text: "look"}, flow.MeansUnread, "look", "video"},
		{bot.Message{Kind: bot.KindSticker}, flow.MeansUnread, "", "sticker"},
		{bot.Message{Kind: bot.KindPlace}, flow.MeansUnread, "", "place"},
		{bot.Message{Kind: bot.KindContact}, flow.MeansUnread, "", "contact"},
		{bot.Message{Kind: bot.KindPoll}, flow.MeansUnread, "", "poll"},
		{bot.Message{Kind: bot.KindOther}, flow.MeansUnread, "", "something that is not text"},
		{bot.Message{Kind: bot.KindReaction, Text: "👍"}, flow.MeansNote, "(a reaction) 👍", ""},
		{bot.Message{Kind: bot.KindReaction, Text: "1"}, flow.MeansNote, "(a reaction) 1", ""},
		{bot.Message{Kind: bot.KindRevoke, Revokes: "3A01"}, flow.MeansNote, "(took back a message)", ""},
		{bot.Message{Kind: bot.KindTimer, Fades: time.Hour}, flow.MeansNote, "(changed how long messages stay)", ""},
		{bot.Message{Kind: bot.KindCall}, flow.MeansCall, "called", ""},
		{bot.Message{Own: true, Text: "1"}, flow.MeansTakeover, "1", ""},
		{bot.Message{Own: true, Text: "use account 0123456789"}, flow.MeansTakeover, "use account [10 digits]", ""},
		{bot.Message{Own: true, Text: "4111111111111111"}, flow.MeansTakeover, "a card number, not kept", ""},
		{bot.Message{Own: true, Kind: bot.KindVoice}, flow.MeansTakeover, "", "voice note"},
		{bot.Message{Text: "2", Edits: "3A00", Quoted: "3EB0"}, flow.MeansMethod, "2", ""},
	} {
		k, base := newTalker(t), message()
		m := c.m
		m.Number, m.Person, m.Phone, m.Name, m.ID = base.Number, base.Person, base.Phone, base.Name, base.ID
		in := k.receive(m)
		if in.Kind != c.kind || in.Text != c.text || in.By != bot.Reading {
			t.Errorf("%+v means %+v", c.m, in)
		}
		if in := k.inbound[0]; in.Edits != m.Edits || in.Revokes != m.Revokes || in.Quoted != m.Quoted || in.Fades != m.Fades || in.Came != c.came {
			t.Errorf("%+v came as %+v", c.m, in)
		}
	}
	k, m := newTalker(t), message()
	m.Quoted, m.Edits, m.Revokes = strings.Repeat("A", 129), "\xff", "\xfe"
	k.receive(m)
	if in := k.inbound[0]; in.Quoted != "" || in.Edits != "" || in.Revokes != "" {
		t.Errorf("impossible ids came as %+v", in)
	}
}

// A message that comes again after others does not have those forgotten: the network
// offers one that was not kept on a new line, and the next ones came meanwhile.
func TestAMessageThatComesAgainForgetsNoneBehindIt(t *testing.T) {
	for _, c := range []struct{ again, then, last string }{
		{"hello", "4111 1111 1111 1111", "123"},
		{"hello", "my password is", "emeka_99"},
		{"4111 1111", "my pin", "123"},
		{"hello", "4111 1111", "1111 1111"},
	} {
		k := newTalker(t)
		first, behind, last := message(), message(), message()
		first.ID, first.Text = "A", c.again
		behind.ID, behind.Text = "B", c.then
		last.ID, last.Text = "C", c.last
		for _, m := range []bot.Message{first, behind, first, first} {
			k.receive(m)
		}
		for range 2 {
			if in := k.receive(last); in.Kind != flow.MeansSecret {
				t.Errorf("%q, %q and the first again, then %q: %s, of which %q is kept", c.again, c.then, c.last, in.Kind, in.Text)
			}
		}
	}
}
