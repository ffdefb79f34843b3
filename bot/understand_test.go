package bot_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"till/bot"
	"till/flow"
)

var banks = []flow.Bank{
	{Code: "058", Name: "Guaranty Trust Bank", Short: "GTBank"},
	{Code: "044", Name: "Access Bank", Short: "Access"},
	{Code: "057", Name: "Zenith Bank", Short: "Zenith"},
	{Code: "033", Name: "United Bank For Africa", Short: "UBA"},
	{Code: "011", Name: "First Bank of Nigeria", Short: "FirstBank"},
	{Code: "214", Name: "First City Monument Bank", Short: "FCMB"},
	{Code: "070", Name: "Fidelity Bank", Short: "Fidelity"},
	{Code: "032", Name: "Union Bank of Nigeria", Short: "Union"},
	{Code: "232", Name: "Sterling Bank", Short: "Sterling"},
}

// short writes an intent in a few characters.
func short(in flow.Intent) string {
	s := string(in.Kind)
	for _, more := range []string{string(in.Method), in.Bank, in.Code, string(in.Lang)} {
		if more != "" {
			s += " " + more
		}
	}
	return s
}

// One row a meaning: what payers write for it.
var phrases = map[string][]string{
	"method bank_transfer": {
		"1", "1.", "1)", "(1)", " 1 ", "#1", "*1*", "①", "1️⃣", "１", "❶", "➊", "¹", "١", "१", "𝟏", "one", "ONE", "One.", "option 1", "Option one",
		"reply 1", "no 1", "number 1", "1 please", "1 bank transfer", "1. Bank transfer", "transfer", "Transfer", "TRANSFER!", "tranfer", "bank",
		"bank transfer", "transfer please", "pls transfer abeg", "pay by transfer", "I want to pay by bank transfer", "pay transfer", "Pay TRANSFER", "1\n",
		"\u200e1", "ｔｒａｎｓｆｅｒ",
	},
	"method ussd": {"2", "2️⃣", "②", "two", "ussd", "USSD", "2 ussd", "use ussd", "via ussd please", "²"},
	"method card": {"3", "③", "three", "card", "Card", "atm card", "3 card", "with card", "pay with my card", "PAY WITH CARD", "debit card"},
	"paid": {
		"paid 5000 for fuel", "I sent it on Apr 23, 2026 - NGN2,000",
		"Txn: Debit. Amt: NGN5,000.00 to TILL/ADA STORES. Bal: NGN1,000.00. Contact customer care on 0700 300 0000",
		"Transaction Receipt NGN 5,000.00 Successful. For complaints call customer service on 07003000000",
		"4", "4️⃣", "four", "paid", "PAID", "i have paid", "I have paid!", "I've paid", "I’ve paid", "sent", "done", "i don pay", "4 i have paid",
		"paid 5000", "paid 2000 naira", "I sent 5k", "i sent you ₦5,000", "I paid 5000.00 already", "transferred n5000", "sent the 5,000 naira sir", "I have made the transfer", "payment done", "already paid", "I have trasferred", "trasferred sir", "Transaction succssful",
	},
	"again":         {"5", "five", "again", "resend", "send again", "5 send again"},
	"other":         {"6", "six", "other", "another way", "pay another way", "6 another way"},
	"back":          {"7", "seven", "back", "previous"},
	"language":      {"8", "eight", "language"},
	"human":         {"9", "nine", "agent", "9️⃣", "9 please", "customer care", "transaction successful but nothing came please contact customer care for me", "I did a transaction, let me talk to customer care"},
	"stop":          {"stop", "STOP", "Stop!", "UNSUBSCRIBE", "Stop please", "pls stop", "abeg stop o", "STOP NOW", "please stop sending me messages", "stop texting me", "ẹ jọ̀ọ́ ẹ dá dúró", "don Allah a daina", "biko kwụsị"},
	"resume":        {"start", "START.", "please start"},
	"cancel":        {"0", "⓪", "0️⃣", "zero", "0 .", "cancel it", "I want to cancel", "cancel please", "please cancel", "cancel?"},
	"confirm":       {"cancel", "CANCEL", "Cancel."},
	"menu":          {"hi", "Hi!", "hello", "menu", "help", "HELP", "good morning", "Hi sir", "?", "??", "have cash", "pay with cash", "pay 5000 cash"},
	"thanks":        {"ok", "👍", "🙏🙏", "👍🏿", "thanks", "OK sir"},
	"who":           {"who are you?", "wrong number"},
	"money":         {"You have been debited NGN5,000.00. Call our customer care on 07003000000 if you did not do this."},
	"language yo":   {"24", "Yoruba", "speak yoruba"},
	"language pcm":  {"22", "Pidgin", "broken", "Naija abeg", "abeg speak naija", "please speak broken", "I want broken english", "22 naija", "I want naija", "abeg naija"},
	"terms":         {"I will send 5k", "I have 5000", "pay n5000000"},
	"maybe card":    {"card?", "can I pay with card", "3?"},
	"bank 058":      {"11", "11.", "eleven", "⑪", "GTBank", "gtb", "gt bank", "Guaranty Trust Bank", "guaranty trust"},
	"bank 033":      {"14", "uba", "UBA", "United Bank for Africa"},
	"bank 011":      {"15", "first", "first bank", "firstbank", "First Bank of Nigeria", "first bank plc"},
	"bank 232":      {"19", "sterling", "Sterling bank"},
	"code 7K3M9QTX": {"Pay 7K3M-9QTX", "pay 7k3m 9qtx", "7K3M-9QTX", "7k3m9qtx", "PAY 7K3M9QTX", "Hello, I want to Pay 7K3M-9QTX please", "pay: 7k3m–9qtx", "pay7k3m-9qtx", "Pay%207K3M-9QTX", "Pay+7K3M-9QTX", "my code is 7k3m9qtx", "７Ｋ３Ｍ-９ＱＴＸ", "7K3M - 9QTX.", "“7K3M-9QTX”", "https://wa.me/2348012345678?text=Pay%207K3M-9QTX", "https://l.instagram.com/?u=https%3A%2F%2Fwa.me%2F2348012345678%3Ftext%3DPay%25207K3M-9QTX&e=AT0", "https%3A%2F%2Fwa.me%2F2348012345678%3Ftext%3DPay%25207K3M%252D9QTX", "wa.me/2348012345678?text=Hello%0APay%3A%207K3M%2D9QTX", "ref 7K3M-9QTX for the shoes", "7k3m 9qtx", "Pay\n7K3M-9QTX", "pay\u00a07K3M\u00a09QTX", "the order is 7k3m 9qtx thanks", "-7K3M-9QTX", "7K3M-9QTX,thanks", "order JM-AB12-CD34: Pay 7K3M-9QTX", "Ref JM-AB12-CD34, 55000, 14.05.2025 16:44. Pay 7K3M-9QTX"},
	"code 10AB00C1": {"Pay IOAB-OOCL", "pay 1oab oocl", "1oab-0oc1"},
	"code KDMQXWTZ": {"Pay KDMQ-XWTZ", "pay kdmqxwtz", "KDMQ-XWTZ", "Pay KDMQ XWTZ", "take this: KDMQ-XWTZ"},
	"code 20252026": {"Pay 2025-2026"},
	"secret":        {"4111 1111 1111 1111", "4111111111111111", "my card is 4111-1111-1111-1111 12/27 123", "５１０５ １０５１ ０５１０ ５１００", "٤١١١١١١١١١١١١١١١", "378282246310005", "5060 6666 6666 6666 666", "5078 5078 5078 5078 12", "4111.1111.1111.1111", "41111111111111111227123", "transfer 5105105105105100", "2223003122003222", "4111\n1111\n1111\n1111", "6500000000000002", "4️⃣111 1111 1111 1111", "my pin is 1234", "OTP: 482913", "pay 7K3M-9QTX 4111111111111111"},
	"unknown": {
		"it is broken", "its broken o", "na broken", "the broken", "it is all broken", "its just broken", "all broken", "am paying in naija", "", " ", "10", "20", "99", "-", "1 or 2", "1, 2", "12 bags", "I have 1 question", "is 1 ok?",
		"1000", "₦5,000", "5000", "5,000.00", "please do not stop", "stop payment", "pls stop the transfer", "my bus stop", "stop my pin", "cancel the 1 from yesterday", "not paid", "I have not trasferred", "when I have trasferred it", "trasferred?",
		"have you paid", "can I use my card tomorrow", "what is ussd", "my bank is closed", "paid 2", "sent 12", "paid 5000?", "not paid 5000", "sent5000",
		"paid5000", "pay 10000000", "paid 10am", "long-term", "part-time", "well-made thing", "abcd efgh",
		"pay abcd efgh", "2025-2026", "20252026", "4111-1111", "₦1", "₦ 5", "1%", "5 naira", "$2", "0801 2345", "08012345678", "+234 801 234 5678", "2348012345678", "0123456789",
		"acct 0123456789 058", "0123456789 9876543210", "4012345678 5012345678", "4111 1111 1111 1112", "order 4500", "001", "01", "1k", "1.5", "1st", "card ending 1111",
		"the first one", "sept-2026 bill", "visa-1111 is mine", "pin 7K3M", "Pay KDMQ", "7K3M-9QTU", "17K3M-9QTX", "7K3M-9QTX5", "JM-7K3M-9QTX", "order 2026/7K3M-9QTX", "7K3M-9QTX-1", "12500NGN", "sent 12500ngn now", "000001260424112858828788701400",
	},
}

func TestUnderstand(t *testing.T) {
	rows := 0
	for want, texts := range phrases {
		for _, text := range texts {
			rows++
			if got := short(bot.Understand(text, banks)); got != want {
				t.Errorf("%q means %q, want %q", text, got, want)
			}
		}
	}
	if rows < 80 {
		t.Errorf("only %d phrases", rows)
	}
}

// While a person has the chat only a language's name chooses it, and where a way to pay is
// chosen only a bank's name asks about one.
func TestUnderstandTellsANameFromADigit(t *testing.T) {
	for text, want := range map[string]bool{"Yoruba": true, "abeg speak hausa": true, "24 Yoruba": true, "24": false, "24 igbo": false, "twenty-four": false, "8": false, "language": false, "broken": false, "it is broken": false, "oyinbo": false, "Naija": false, "broken english": true, "pidgin": true, "I use GTBank": true, "GTB": true, "11": false, "11 GTBank": false} {
		if got := bot.Understand(text, banks); got.Named != want {
			t.Errorf("%q names a language or a bank: %v", text, got.Named)
		}
	}
}

// A method that nobody chose is the worst there is: of all the phrases that
// mean something else, none may be taken for one.
func TestUnderstandNeverTakesAnotherMeaningForAMethod(t *testing.T) {
	for want, texts := range phrases {
		if strings.HasPrefix(want, "method") || want == "secret" {
			continue
		}
		for _, text := range texts {
			for _, around := range []string{" ", "please ", "\u200b", "...", "\n\n"} {
				if in := bot.Understand(around+text+around, banks); in.Kind == flow.MeansMethod {
					t.Errorf("%q means %s", around+text+around, short(in))
				}
			}
		}
	}
}

func TestUnderstandKeepsNoSecret(t *testing.T) {
	for _, text := range phrases["secret"] {
		in := bot.Understand(text, banks)
		if in.Text != "a secret, not kept" && in.Text != "a card number, not kept" {
			t.Errorf("%q is kept as %q", text, in.Text)
		}
		if in.Code != "" || len(in.Text) > 25 {
			t.Errorf("of %q more is kept: %+v", text, in)
		}
	}
	if in := bot.Understand("call me. 4111 1111 1111 1111, 12/27", nil); in.Text != "a card number, not kept" {
		t.Errorf("kept %q", in.Text)
	}
}

func TestUnderstandBoundsWhatIsKept(t *testing.T) {
	in := bot.Understand("a\x00b\x1b[31mc\u202edef\tg\xff"+strings.Repeat("é", 5000), nil)
	if n := utf8.RuneCountInString(in.Text); n != 1000 {
		t.Errorf("%d runes are kept", n)
	}
	if strings.ContainsAny(in.Text, "\x00\x1b\u202e\t") || !utf8.ValidString(in.Text) {
		t.Errorf("kept %q", in.Text[:20])
	}
	if in := bot.Understand(strings.Repeat("x", 2<<20)+" 1", nil); len(in.Text) != 1000 || in.Kind != flow.MeansNothing {
		t.Errorf("a message of 2 MiB means %s with %d bytes", in.Kind, len(in.Text))
	}
	// A secret counts wherever it stands in what is looked at.
	if in := bot.Understand(strings.Repeat("x ", 10_000)+"4111111111111111", nil); in.Kind != flow.MeansSecret {
		t.Errorf("a card number far behind means %s", in.Kind)
	}
}

func TestUnderstandKnowsOnlyTheBanksOfTheMenu(t *testing.T) {
	for _, text := range []string{"19", "sterling"} {
		if in := bot.Understand(text, banks[:8]); in.Kind != flow.MeansNothing {
			t.Errorf("%q means %s without that bank", text, short(in))
		}
	}
	many := append(slices.Clone(banks), flow.Bank{Code: "035", Short: "Wema"})
	if in := bot.Understand("wema", many); in.Kind != flow.MeansNothing {
		t.Errorf("a bank behind the menu means %s", short(in))
	}
	twins := []flow.Bank{{Code: "001", Short: "Ada"}, {Code: "002", Name: "Ada Bank PLC"}}
	if in := bot.Understand("ada", twins); in.Kind != flow.MeansNothing {
		t.Errorf("a name of two banks means %s", short(in))
	}
}

// Every entry code that can be made is understood the way links carry it, and
// each of the other forms says the same code or none.
func TestUnderstandEveryForm(t *testing.T) {
	seed, typed, codes := uint64(1), 0, times(5000)
	for range codes {
		code := make([]byte, 8)
		for i := range code {
			seed = seed*6364136223846793005 + 1442695040888963407
			code[i] = crockford[seed>>59]
		}
		a, b := string(code[:4]), string(code[4:])
		for _, link := range []string{"Pay " + a + "-" + b, "pay " + strings.ToLower(a+"-"+b), "Pay " + a + " - " + b + " thanks"} {
			if in := bot.Understand(link, banks); in.Kind != flow.MeansCode || in.Code != a+b {
				t.Fatalf("%q means %s", link, short(in))
			}
		}
		for _, form := range []string{a + b, a + " " + b, a + "-" + b, strings.ToLower(a + b), "pay " + strings.ToLower(a+" "+b)} {
			switch in := bot.Understand(form, banks); {
			case in.Kind == flow.MeansCode && in.Code == a+b:
				typed++
			case in.Kind != flow.MeansNothing:
				t.Fatalf("%q means %s", form, short(in))
			}
		}
	}
	if all := 5 * codes; 10*typed < 9*all {
		t.Errorf("only %d of %d typed codes are found", typed, all)
	}
}

// A code can have the name of a secret in it, or of a digit: "PWD4-7295". Who
// opens a link with such a one is not told that they sent a password.
func TestUnderstandCodesThatLookLikeSecrets(t *testing.T) {
	tried := 0
	for _, word := range bot.Loaded() {
		if len(word) > 8 || strings.Trim(strings.ToUpper(word), crockford) != "" {
			continue
		}
		for at := range 8 - len(word) + 1 {
			for _, rest := range []string{"47295163", "9W7K2M4T", "A1234567", "BCDFGHJK"} {
				code := rest[:at] + strings.ToUpper(word) + rest[at+len(word):]
				for _, around := range []string{"Pay %s", "Pay %s for my order 1234", "good evening, pay %s pls"} {
					tried++
					text := fmt.Sprintf(around, flow.ShowCode(code))
					if in := bot.Understand(text, banks); in.Kind != flow.MeansCode || in.Code != code {
						t.Errorf("%q means %s", text, short(in))
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d codes were tried", tried)
	}
	for _, text := range []string{"Pay ZKS5-Z485 2349076502477", "Pay 7K3M-9485 2348031234564"} {
		if in := bot.Understand(text, banks); in.Kind != flow.MeansCode {
			t.Errorf("%q means %s", text, short(in))
		}
	}
	for _, text := range []string{
		"Pay ABCD-4411 4111 1111 1111 1111", "PWD4-7295", "my password is PWD4-BVMH", "pay PWD4-BVMH my pin is 1234", "cvv 471 pay CVV4-7295", "Pay OTP4-7295", "Pay 4111-1111 1111-1111",
	} {
		if in := bot.Understand(text, banks); in.Kind != flow.MeansSecret {
			t.Errorf("%q means %s", text, short(in))
		}
	}
}

// crockford are the signs that entry codes are made of.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func FuzzUnderstand(f *testing.F) {
	for _, texts := range phrases {
		for _, text := range texts {
			f.Add(text)
		}
	}
	f.Add(strings.Repeat("1️⃣", 600))
	f.Add("\xff\xfe\x00")
	f.Fuzz(func(t *testing.T, text string) {
		in := bot.Understand(text, banks)
		if !utf8.ValidString(in.Text) || utf8.RuneCountInString(in.Text) > 1000 {
			t.Fatalf("%q is kept as %q", text, in.Text)
		}
		if left := counted.ReplaceAllString(bot.Folded(in.Text), "x"); in.Kind != flow.MeansCode && longNumber.MatchString(left) {
			t.Fatalf("%q is kept as %q", text, in.Text)
		}
		if again := bot.Understand(text, banks); again != in {
			t.Fatalf("%q means %v and %v", text, in, again)
		}
		if in.Kind == flow.MeansCode && (len(in.Code) != 8 || strings.Trim(in.Code, crockford) != "") {
			t.Fatalf("%q has the code %q", text, in.Code)
		}
		if (in.Kind == flow.MeansMethod || in.Kind == flow.MeansMaybe) != (in.Method != "") || (in.Kind == flow.MeansBank) != (in.Bank != "") {
			t.Fatalf("%q means %+v", text, in)
		}
		if in.Kind == flow.MeansMethod && !bot.Names(text, in.Method) {
			t.Fatalf("%q picks %s and does not name it", text, in.Method)
		}
	})
}

var (
	counted    = regexp.MustCompile(`\[(more than )?\d+ digits?\]`)
	longNumber = regexp.MustCompile(`\d([^\pL\d]*\d){3}`)
)

func BenchmarkUnderstand(b *testing.B) {
	for name, text := range map[string]string{
		"digit": "1", "phrase": "abeg i wan pay with transfer", "sentence": "good evening please how long does it take before the seller gets it",
		"slip": "i want to pay with transver", "code": "Hello, I want to Pay 7K3M-9QTX please",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bot.Understand(text, banks)
			}
		})
	}
}

// However long a message is, who writes behind its sender does not wait for it: the
// messages of one number of ours are read one after the other. Of each word it says how
// many times as long the longest message takes as one of a quarter of it: 4 where it is
// read once, 16 where each word has all before it read again. More than 8 fails.
func BenchmarkFaultLong(b *testing.B) {
	const longest = 1 << 16
	for _, word := range []string{"no ", "the ", "code is ", "pay no ", "4 ", "my pin ", "7K3M-9QTX ", "%25", "naira "} {
		b.Run(strings.TrimSpace(word), func(b *testing.B) {
			const parts = 4
			read := func(times, size int) time.Duration {
				text := strings.Repeat(word, size/len(word))
				began := time.Now()
				for range times {
					bot.Understand(text, banks)
				}
				return time.Since(began)
			}
			// The best of some, for what else the machine does only adds; by turns, and the
			// quarter as often as makes it as much to read, so that both are met alike.
			whole, quarter := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				for range 10 {
					whole, quarter = min(whole, read(1, longest)), min(quarter, read(parts, longest/parts)/parts)
				}
			}
			times := float64(whole) / float64(quarter)
			b.ReportMetric(times, "quarters")
			if times > 8 {
				b.Errorf("64 KiB are read in %v, a quarter of it in %v", whole, quarter)
			}
		})
	}
}

// Who asks until when they can pay, how much, or whom, is shown where things stand:
// the details say all three. A person who is waited for still comes.
func TestUnderstandQuestionsAboutWhatIsAsked(t *testing.T) {
	for _, text := range []string{
		"When will it expire?", "how much time is left", "how long do I have", "please how many minutes remain", "what time does it close", "is the account number still valid?",
		"how much should I pay", "Who am I paying?", "what is the account name?", "abeg how much i go pay", "which time e go expire", "wetin be the account name",
	} {
		if in := bot.Understand(text, banks); in.Kind != flow.MeansMenu {
			t.Errorf("%q means %s", text, short(in))
		}
	}
	for _, text := range []string{"how long does it take", "my account name is Ada Obi", "the card expired"} {
		if in := bot.Understand(text, banks); in.Kind == flow.MeansMenu {
			t.Errorf("%q means %s", text, short(in))
		}
	}
}

// A short sentence that says nothing exactly is guessed at, so far as a guess can do
// no harm: nothing is opened, ended or confirmed by one, and what turns a sentence
// around is heard.
func TestAGuessDoesNoHarm(t *testing.T) {
	for text, want := range map[string]flow.IntentKind{
		"my app keeps saying the transfer failed": flow.MeansOther, "why is it not confirming since morning": flow.MeansPaid, "did anybody see my payment": flow.MeansPaid,
		"abeg how I go do this thing": flow.MeansMenu, "the name on the account surprises me": flow.MeansWho, "my bank reversed it": flow.MeansMoney,
		"connect me to your boss": flow.MeansHuman,
		"confirm":                 flow.MeansPaid, "kindly confirm it": flow.MeansPaid, // which the question whether to cancel asks for, too
		"I do not want to make payment": flow.MeansNothing, "don't cancel": flow.MeansWait, "when I have paid will you tell me": flow.MeansNothing,
		"the failed " + strings.Repeat("word ", 20): flow.MeansOther, "the failed " + strings.Repeat("word ", 60): flow.MeansNothing,
		"the failed discount " + strings.Repeat("word ", 20): flow.MeansNothing, "I sent it how much " + strings.Repeat("word ", 20): flow.MeansPaid,
		"transferred how much " + strings.Repeat("word ", 20): flow.MeansNothing, "how much " + strings.Repeat("word ", 20): flow.MeansMenu,
		"refunded how much " + strings.Repeat("word ", 20): flow.MeansMoney,
	} {
		if in := bot.Understand(text, banks); in.Kind != want || in.Method != "" || in.Bank != "" || in.Guess != (want != flow.MeansNothing) {
			t.Errorf("%q means %s, not %s", text, short(in), want)
		}
	}
}

// What says that it is paid is not answered with how to pay, and what asks for two of
// something opens nothing.
func TestUnderstandWhoHasPaidBesideWhatElseIsAskedFor(t *testing.T) {
	for text, want := range map[string]string{
		"I have paid the invoice": "paid", "I have paid for my invoice since morning": "paid", "I want to pay the invoice": "menu", "can you send the invoice": "receipt",
		"how do I pay the invoice": "menu", "I need an invoice for this": "receipt",
		"I have made part payment": "paid", "I made a part payment yesterday": "paid", "can I make a part payment": "terms", "I have not made part payment": "terms",
		"I transferred from another account": "paid", "I transferred it from my opay": "paid", "i transferred with kuda": "paid", "our accountant transferred it yesterday": "paid", "the accountant will pay": "terms",
		"I have pay": "paid", "i have pay half": "paid", "I have transfer": "paid", "my brother pay am already": "paid", "can my brother pay": "terms", "I pay for my order": "menu",
		"Can I get 2": "unknown", "can i have one": "unknown", "could you send me two please": "unknown", "give me 2": "maybe ussd", "can I get the account number": "maybe bank_transfer",
		"I pressed it by mistake": "unknown", "I mistakenly deleted it": "unknown", "sorry i sent it by mistake": "money", "i mistakenly send 50k": "money",
		"transaction declined but I was not debited": "other", "my account has not been debited": "other", "I was debited": "money", "can I get my change": "money", "change": "other",
		"let me call my wife first": "wait", "please call my brother": "human", "which remark": "terms",
	} {
		if got := short(bot.Understand(text, banks)); got != want {
			t.Errorf("%q means %q, want %q", text, got, want)
		}
	}
}
