package bot_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"till/bot"
	"till/flow"
)

// luhn adds the check digit to a number.
func luhn(head string) string {
	sum := 0
	for i := range len(head) {
		d := int(head[len(head)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return head + fmt.Sprint((10-sum%10)%10)
}

// grouped writes digits in groups of four with something between them.
func grouped(digits, between string) string {
	var groups []string
	for ; len(digits) > 4; digits = digits[4:] {
		groups = append(groups, digits[:4])
	}
	return strings.Join(append(groups, digits), between)
}

// Cards of every issuer and length are caught however they are written, and
// nothing of them is kept.
func TestCardsAreCaught(t *testing.T) {
	for head, lengths := range map[string][]int{
		"4": {16, 18, 19}, "51": {16}, "55": {16}, "2221": {16}, "2720": {16}, "34": {15}, "37": {15},
		"506": {16, 18, 19}, "5061": {16, 19}, "507865": {19}, "507964": {16}, "650": {16, 18, 19}, "650002": {19},
	} {
		for _, length := range lengths {
			pan := luhn((head + "0918273645546372819")[:length-1])
			for _, between := range []string{"", " ", "-", ".", "\u00a0", " - ", "\u2013", "\u200b", "/", "\n", "  ", "_"} {
				for _, around := range []string{"%s", "my card: %s 09/27 123", "5000 %s thanks", "transfer\n%s"} {
					text := fmt.Sprintf(around, grouped(pan, between))
					in := bot.Understand(text, banks)
					if in.Kind != flow.MeansSecret || in.Text != "a card number, not kept" {
						t.Errorf("%q means %s and is kept as %q", text, short(in), in.Text)
					}
				}
			}
		}
	}
}

// Other scripts' digits are the same digits.
func TestCardsInOtherDigits(t *testing.T) {
	for _, zero := range []rune{'٠', '۰', '०', '０', '𝟎', '𝟢', '𝟬', '𝟶', '၀', '᠐', '߀'} {
		text := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return zero + r - '0'
			}
			return r
		}, "card 4111 1111 1111 1111 and 0")
		if in := bot.Understand(text, nil); in.Text != "a card number, not kept" {
			t.Errorf("%q is kept as %q", text, in.Text)
		}
	}
}

// What a chat about money is full of is not a card: account numbers, phones,
// amounts, dates and references.
func TestNumbersThatAreNoCards(t *testing.T) {
	sweeps(t)
	caught := 0
	for i := range 20_000 {
		nuban := fmt.Sprintf("%010d", (uint64(i)*6364136223846793005+1442695040888963407)>>3%10_000_000_000)
		phone := "0801" + nuban[3:]
		for _, text := range []string{nuban, "acct " + nuban + " gtb", phone, "+234" + phone[1:], "234 " + phone[1:4] + " " + phone[4:7] + " " + phone[7:]} {
			if in := bot.Understand(text, banks); in.Kind == flow.MeansSecret {
				t.Fatalf("%q is taken for a secret", text)
			}
		}
		// Two numbers next to each other can look like one card; not often.
		if bot.Understand(nuban+" "+phone, nil).Kind == flow.MeansSecret {
			caught++
		}
	}
	if caught > 0 {
		t.Errorf("%d of 20000 pairs of an account number and a phone are taken for a card", caught)
	}
	for _, text := range []string{
		"4111 1111 1111 1112", "6011000990139424", "3566002020360505", "4111-1111", "4111 then 1111 then 1111 then 1111",
		"21 Nov 2026 16:12", "000001260424112858828788701400", "TRX 2611211530459876", "₦4,500.00 by 4:35 pm", "1234567812345678",
	} {
		if in := bot.Understand(text, nil); in.Kind == flow.MeansSecret {
			t.Errorf("%q is taken for a secret", text)
		}
	}
}

func TestNamedSecretsAreCaught(t *testing.T) {
	for text, want := range map[string]bool{
		"pin 1234": true, "My PIN is 1234": true, "otp:482913": true, "the cvv of my card is 123": true, "BVN 22222222221": true, "ｐｉｎ １２３４": true,
		"pin": false, "do you need my pin?": false, "pineapple 1234": false, "spin 1234": false, "pin 7K3M-9QTX": false, "the pin is with my brother who lives at 1234": false,
	} {
		in := bot.Understand(text, nil)
		if got := in.Kind == flow.MeansSecret; got != want || want && in.Text != "a secret, not kept" {
			t.Errorf("%q means %s and is kept as %q", text, in.Kind, in.Text)
		}
	}
}

// Payers paste the receipts and alerts of their banks. Their times, amounts and
// numbers of transfers are no cards, though one in ten of them has the check digit of
// one by chance, and a card in the same message is still known for one.
func TestReceiptsAreNoCards(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		return b.String()
	}
	many := times(2000)
	taken := 0
	for range many {
		day := fmt.Sprintf("%02d/%02d/2026", 1+r.IntN(28), 1+r.IntN(12))
		clock := fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60))
		stamp := fmt.Sprintf("2%d%02d%02d%02d%02d", 3+r.IntN(4), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60))
		amount := fmt.Sprintf("4%d,%s.%s", r.IntN(10), digits(3), digits(2))
		phone := "+234 803 " + digits(3) + " " + digits(4)
		for _, text := range []string{
			"Transaction No. " + stamp + digits(14), "Ref " + stamp + digits(6), "₦" + amount + " " + day + " " + clock + "\n" + digits(10),
			"paid N" + amount + " 0803" + digits(7) + " " + day + " " + clock, "[" + clock + ", " + day + "] " + phone + ": paid " + amount, "₦4" + digits(4) + " 0803" + digits(7),
		} {
			if in := bot.Understand(text, banks); in.Kind == flow.MeansSecret {
				taken++
				t.Logf("%q is taken for a secret", text)
			}
			card := pan(r)
			for _, more := range []string{text + "\n" + card, text + "\nmy card " + grouped(card, " ") + " 12/27", card + "1227" + digits(3) + " " + text, card + digits(3) + "\n" + text} {
				if in := bot.Understand(more, banks); in.Text != "a card number, not kept" {
					t.Errorf("%q means %s and is kept as %q", more, short(in), in.Text)
				}
			}
		}
	}
	if taken > many/1000 {
		t.Errorf("%d of %d receipts are taken for a secret", taken, 6*many)
	}
}
