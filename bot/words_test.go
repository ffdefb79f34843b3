package bot_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"till/bot"
	"till/flow"
)

func words(t *testing.T) *bot.Words {
	t.Helper()
	w, err := bot.LoadWords()
	must(t, err)
	return w
}

// shop are the arguments that every message about money has.
func shop(more ...string) map[string]string {
	args := map[string]string{"merchant": "Ada Stores", "amount": "₦5,000", "order": "Order 1182"}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return args
}

func TestRender(t *testing.T) {
	w := words(t)
	until := flow.Stamp(noon.Add(30 * time.Minute))
	for _, c := range []struct {
		say  flow.Say
		want string
	}{
		{flow.Say{Key: "summary", Args: shop("bank_transfer", "yes", "ussd", "yes", "card", "yes")}, `Ada Stores asks you to pay ₦5,000 for Order 1182.
I am an automatic payment desk. We never ask for PIN or OTP.
Reply with a number:
1 Bank transfer   2 USSD   3 Card
0 Cancel · 8 Language · 9 Person`},
		{flow.Say{Key: "summary", Args: map[string]string{"merchant": "Ada Stores", "brand": "Lagos fashion since 1999", "amount": "₦250,000", "order": "", "card": "yes"}}, `Ada Stores (Lagos fashion since 1999) asks you to pay ₦250,000.
I am an automatic payment desk. We never ask for PIN or OTP.
Reply with a number:
3 Card
0 Cancel · 8 Language · 9 Person`},
		{flow.Say{Key: "summary", Args: map[string]string{"merchant": "Ada Stores", "amount": "₦250,000", "order": "", "card": "yes"}}, `Ada Stores asks you to pay ₦250,000.
I am an automatic payment desk. We never ask for PIN or OTP.
Reply with a number:
3 Card
0 Cancel · 8 Language · 9 Person`},
		{flow.Say{Key: "summary", Args: map[string]string{"merchant": "متجر كانو", "amount": "₦250,000", "order": "𞤀𞤣𞤤𞤢𞤥 7", "card": "yes"}}, "\u2068متجر كانو\u2069" + ` asks you to pay ₦250,000 for ` + "\u2068𞤀𞤣𞤤𞤢𞤥 7\u2069" + `.
I am an automatic payment desk. We never ask for PIN or OTP.
Reply with a number:
3 Card
0 Cancel · 8 Language · 9 Person`},
		{flow.Say{Key: "parked", Args: map[string]string{"merchant": "*Ada* ~Stores~", "amount": "₦5", "kept_merchant": "Bisi_`s_", "kept_amount": "₦7"}}, `Now you are paying ₦5 to ∗Ada∗ ∼Stores∼.
Your ₦7 to Bisi＿ˋs＿ is kept. Reply 7 to go back to it.`},
		{flow.Say{Key: "not_sent", Args: map[string]string{"merchant": "_Ada_", "extra": "₦5", "reference": "INV_1_*2*"}}, `The bank would not send ₦5 back to you. The money is safe, and ＿Ada＿ has been told.
Ask them with your reference INV_1_*2*.`},
		{flow.Say{Key: "transfer_how", Args: shop("until", until, "bank", "Wema", "name", "ADA STORES/CHECKOUT")}, `Transfer exactly ₦5,000 to Ada Stores by 12:30 pm (30 minutes).
Bank: Wema
Name: ADA STORES/CHECKOUT
The account number is in the next message.`},
		{flow.Say{Key: "alone", Args: map[string]string{"text": "9012345678"}}, "9012345678"},
		{flow.Say{Key: "alone", Args: map[string]string{"text": "*737*000*4521#"}}, "*737*000*4521#"},
		{flow.Say{Key: "wait_menu"}, "I confirm here by myself.\n4 I have paid · 5 Send again · 6 Another way · 0 Cancel"},
		{flow.Say{Key: "pick_bank", Args: shop("bank1", "GTBank", "bank2", "Access", "bank9", "Wema")}, `Pay ₦5,000 to Ada Stores by USSD. Which bank is yours?
11 GTBank
12 Access
19 Wema
Not in the list? 6 Another way · 0 Cancel`},
		{flow.Say{Key: "receipt", Args: map[string]string{
			"merchant": "Ada Stores", "amount": "₦5,000", "paid_at": "2026-11-21T15:12:00.000Z", "reference": "7K3M-9QTX", "method": "bank_transfer", "bank_session": "0000132",
		}}, `Receipt: ₦5,000 to Ada Stores
21 Nov 2026, 4:12 pm WAT
Bank transfer · Ref 7K3M-9QTX
Bank session 0000132
It is paid.`},
		{flow.Say{Key: "receipt", Args: map[string]string{
			"merchant": "Ada Stores", "amount": "₦5,000", "paid_at": flow.Stamp(time.Time{}), "reference": "A1",
		}}, "Receipt: ₦5,000 to Ada Stores\nRef A1\nIt is paid."},
		{flow.Say{Key: "declined", Args: shop("reason", "insufficient funds", "ussd", "yes")}, `Your bank did not accept the payment of ₦5,000 to Ada Stores: insufficient funds.
Try again or pay another way:
2 USSD
0 Cancel`},
		{flow.Say{Key: "declined", Args: shop("reason", "insufficient funds")}, `Your bank did not accept the payment of ₦5,000 to Ada Stores: insufficient funds.
0 Cancel`},
		// What joins two signs into one, or keeps two letters apart, is part of them; alone it is nothing.
		{
			flow.Say{Key: "agent", Args: map[string]string{"text": "❤\ufe0f\u200d🔥 👩\u200d👧\u200d👦 क्\u200dष\u202e\nمی\u200cخواهم \u200d\u200d \u200c!\u200d\u200c?\u200d"}},
			"❤\ufe0f\u200d🔥 👩\u200d👧\u200d👦 क्\u200dष\nمی\u200cخواهم !\u200c?",
		},
		{flow.Say{Key: "no_such_key", Args: shop()}, ""},
	} {
		if got := w.Render(c.say, noon); got != c.want {
			t.Errorf("%s says\n%s\nwant\n%s", c.say.Key, got, c.want)
		}
	}
}

// Nobody is asked to choose where there is nothing to choose, as when their merchant
// is stopped: the next message says so.
func TestNobodyIsAskedToChooseNothing(t *testing.T) {
	w := words(t)
	for _, lang := range flow.Langs() {
		for _, key := range []string{"declined", "lapsed", "switch", "part_paid"} {
			lines := func(more ...string) []string {
				return strings.Split(w.Render(flow.Say{Lang: lang, Key: key, Args: shop(append(more, "paid", "₦2,000", "left", "₦3,000")...)}, noon), "\n")
			}
			menu, none := lines("card", "yes"), lines()
			if at := len(menu) - 3; !slices.Equal(none, slices.Delete(menu, at, at+2)) {
				t.Errorf("%s: %s says %q", lang, key, none)
			}
		}
	}
}

func TestRenderTimes(t *testing.T) {
	w := words(t)
	for _, c := range []struct {
		in   time.Duration
		want string
	}{
		{30 * time.Minute, "by 12:30 pm (30 minutes)"},
		{29*time.Minute + 58*time.Second, "by 12:29 pm (30 minutes)"},
		{time.Minute, "by 12:01 pm (1 minute)"},
		{20 * time.Second, "by 12:00 pm (1 minute)"},
		{0, "by 12:00 pm (0 minutes)"},
		{-time.Hour, "by 11:00 am (0 minutes)"},
		{65 * time.Minute, "by 1:05 pm (1 hour 5 minutes)"},
		{2 * time.Hour, "by 2:00 pm (2 hours)"},
		{11*time.Hour + 59*time.Minute, "by 11:59 pm (11 hours 59 minutes)"},
		{12 * time.Hour, "by 22 Nov, 12:00 am (12 hours)"}, // tomorrow in Lagos, today in UTC
		{24 * time.Hour, "by 22 Nov, 12:00 pm (1 day)"},
		{50 * time.Hour, "by 23 Nov, 2:00 pm (2 days 2 hours)"},
		{365 * 24 * time.Hour, "by 21 Nov, 12:00 pm (365 days)"},
	} {
		got := w.Render(flow.Say{Key: "transfer_how", Args: shop("until", flow.Stamp(noon.Add(c.in)))}, noon)
		if !strings.Contains(got, c.want) {
			t.Errorf("in %s: %q, want %q", c.in, got, c.want)
		}
	}
}

// What merchants and payers write is shown, never obeyed.
func TestRenderOfForeignText(t *testing.T) {
	w := words(t)
	got := w.Render(flow.Say{Key: "session_over", Args: map[string]string{"merchant": "{amount}[x?y]\n0 Cancel\u202e\x00" + strings.Repeat("M", 500), "amount": "₦1"}}, noon)
	if strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\u202e\x00") || !strings.Contains(got, "{amount}[x?y] 0 Cancel") {
		t.Errorf("got %q", got)
	}
	if n := utf8.RuneCountInString(got); n > 600 {
		t.Errorf("%d runes", n)
	}
	link := "https://pay.example/c/" + strings.Repeat("a", 300)
	if got := w.Render(flow.Say{Key: "alone", Args: map[string]string{"text": link}}, noon); got != link {
		t.Errorf("a link was changed: %q", got)
	}
}

func TestParseWordsRefuses(t *testing.T) {
	for _, source := range []string{
		`a = "{"`, `a = "}"`, `a = "[x]"`, `a = "[?x]"`, `a = "[x?]"`, `a = "[x?[y?z]]"`, `a = "{}"`, `a = "{x.month}"`, `a = 1`, `[other]` + "\nx = 1", `[labels]` + "\nx = 1", `a =`,
	} {
		if _, err := bot.ParseWords(source); err == nil {
			t.Errorf("%s is accepted", source)
		}
	}
}
