package bot_test

import (
	"strings"
	"testing"

	"till/bot"
	"till/flow"
)

// A PIN, a one-time code or the like is known by its name, in the same message
// or the one before, and by what comes behind a card number.
func TestSecretsByName(t *testing.T) {
	for _, c := range []struct {
		texts []string
		last  flow.IntentKind
	}{
		{[]string{"my pin", "1234"}, flow.MeansSecret},
		{[]string{"the otp is", "482 913"}, flow.MeansSecret},
		{[]string{"here is my cvv", "it is 123"}, flow.MeansSecret},
		{[]string{"lambar sirri", "4321"}, flow.MeansSecret},
		{[]string{"nọ́mbà àṣírí mi", "5566"}, flow.MeansSecret},
		{[]string{"nọmba nzuzo", "5566"}, flow.MeansSecret},
		{[]string{"4111 1111 1111 1111", "123"}, flow.MeansSecret},
		{[]string{"4111 1111 1111 1111", "12/27"}, flow.MeansSecret},
		{[]string{"4111 1111 1111 1111", "12/27", "123"}, flow.MeansSecret},
		{[]string{"4111 1111", "wait", "1111 1111"}, flow.MeansSecret},
		{[]string{"1", "4111 1111", "1111 1111"}, flow.MeansSecret},
		{[]string{"1234 is my pin"}, flow.MeansSecret},
		{[]string{"my pin is one two three four"}, flow.MeansSecret},
		{[]string{"pin: 1 2 3 4"}, flow.MeansSecret},
		{[]string{"4111 1111", "a", "b", "c", "1111 1111"}, flow.MeansNothing}, // too far apart
		{[]string{"4111 1111 1111 1111", "1"}, flow.MeansMethod},
		{[]string{"4111 1111 1111 1111", "hello"}, flow.MeansMenu},
		{[]string{"do you need my pin?", "1"}, flow.MeansMethod},
		{[]string{"do you need my pin?", "no", "5000"}, flow.MeansNothing},
		{[]string{"0123456789", "08031234567"}, flow.MeansNothing},
		{[]string{"2348031234567", "123"}, flow.MeansNothing},
		{[]string{"5000", "1"}, flow.MeansMethod},
		{[]string{"1234"}, flow.MeansNothing},
	} {
		k := newTalker(t)
		got := k.says(c.texts...)
		if in := got[len(got)-1]; in.Kind != c.last {
			t.Errorf("%q ends in %+v, want %s", c.texts, in, c.last)
		}
	}
}

// However its name is written, and in words that a payer has for it, a secret is
// known and nothing of it is kept.
func TestSecretsByNameHoweverTheyAreWritten(t *testing.T) {
	const card = "4111 1111 1111 1111"
	for _, texts := range [][]string{
		{card, "cvv123"},
		{card, "three digit at the back na 789"},
		{card, "my password is adaobi77"},
		{card, "cvv one two three"},
		{card, "789 na im dey the back of the card"},
		{"OTP654321"},
		{"pin1234"},
		{"cvv123"},
		{"my CVV2:123 please"},
		{"1234pin"},
		{"my otp654321ok"},
		{"my pin na1234"},
		{"BVN22222222221"},
		{"nin 12345678901"},
		{"654321 is your OTP"},
		{"<#> 654321 is your OTP for GTBank"},
		{"adaobi_77 is my password"},
		{"pasword adaobi77"},
		{"my passwrod is adaobi77"},
		{"passord: adaobi"},
		{"passkey adaobi77"},
		{"my pasword", "adaobi770"},
		{"ＯＴＰ６５４３２１"},
		{"o.t.p is 654321"},
		{"O T P 654321"},
		{"o.t.p654321"},
		{"c-v-v 1 2 3"},
		{"P.I.N. 1234"},
		{"pin '1234'"},
		{"mypin 1234"},
		{"token 123456"},
		{"my token is 4821"},
		{"Token: 123 456"},
		{"token na 654321"},
		{"token654321"},
		{"654321 is my token"},
		{"my token is", "4821"},
		{"token code 123456"},
		{"token 123456 08031234567"},
		{"the otp came at 10:30, it is 654321"},
		{"pin 1234 12/10/2026"},
		{"my password is adaobi77"},
		{"my password is adaobi"},
		{"password: Adaobi"},
		{"PASSWORD=P@ssword"},
		{"password adaobi77"},
		{"my password for opay is adaobi77"},
		{"adaobi77 is my password"},
		{"adaobi is my password"},
		{"password na chidinma"},
		{"my passcode is adaobi_1"},
		{"my password", "adaobi770"},
		{"here is my password", "P@ssword1"},
		{"the digits at the back of the card is 789"},
		{"back of my card: 789"},
		{"the number behind the card is 789"},
		{"789 at the back of the card", "789"},
		{"number wey dey for back na 789"},
		{"abeg the digits wey dey back na seven eight nine"},
		{"paswod na adaobi"},
		{"lambobi uku na bayan kati 789"},
		{"kalmar sirri ita ce adaobi77"},
		{"kalmar wucewa ce adaobi"},
		{"nọ́mbà ẹ̀yìn káàdì 789"},
		{"ọ̀rọ̀ ìgbaniwọlé mi ni adaobi"},
		{"ọ̀rọ̀ aṣínà: adaobi77"},
		{"nọmba dị n'azụ kaadị bụ 789"},
		{"okwuntughe m bụ adaobi"},
		{"okwu ntughe: adaobi77"},
	} {
		k := newTalker(t)
		got := k.says(texts...)
		if in := got[len(got)-1]; in.Kind != flow.MeansSecret || in.Text != "a secret, not kept" && len(texts) == 1 {
			t.Errorf("%q ends in %+v", texts, in)
		}
		for _, in := range got {
			for _, secret := range []string{"123", "789", "1234", "654321", "adaobi", "Adaobi", "P@ss", "chidinma", "4821"} {
				if strings.Contains(in.Text, secret) {
					t.Errorf("of %q is kept %q", texts, in.Text)
				}
			}
		}
	}
}

// Who speaks of a secret and of money tells how much money it was, and is answered
// about that.
func TestMoneyBesideTheNameOfASecretIsNone(t *testing.T) {
	for text, want := range map[string]flow.IntentKind{
		"I entered the OTP and ₦5,000 was debited":    flow.MeansMoney,
		"I put my pin and N5,000 was debited":         flow.MeansMoney,
		"after the OTP NGN 5,000.00 was debited":      flow.MeansMoney,
		"OTP came and 5000 naira was debited":         flow.MeansMoney,
		"I was debited ₦5,000, the OTP came":          flow.MeansMoney,
		"my pin is 1234 and ₦5,000 was debited":       flow.MeansSecret,
		"₦5,000 was debited, my pin is 1234":          flow.MeansSecret,
		"otp 123456 naira 5000 was debited":           flow.MeansSecret,
		"my otp is 123456 naira":                      flow.MeansSecret,
		"they debited ngn5000 after the otp, is 4821": flow.MeansSecret,
	} {
		if in := bot.Understand(text, nil); in.Kind != want || want == flow.MeansSecret && strings.ContainsAny(in.Text, "123456789") {
			t.Errorf("%q is %+v, want %s", text, in, want)
		}
	}
}

// Sellers and banks write "never share your PIN" above their phone number. Whoever
// sends that on with their link is not told that they sent a PIN, and can pay.
func TestPhonesBesideTheNameOfASecretAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"Pay: https://wa.me/2349012345678?text=Pay%207K3M-9QTX\nNever share your PIN or OTP with anyone. %s": "code 7K3M9QTX",
		"Do not disclose your OTP. %s\nPay 7K3M-9QTX":                                                        "code 7K3M9QTX",
		"%s. PIN and OTP are yours alone":                                                                    "unknown",
		"your pin? call %s":                                                                                  "unknown",
		"pin %s 1234":                                                                                        "secret",
		"pin 1234 %s":                                                                                        "secret",
		"my pin is 0126. %s":                                                                                 "secret",
		"%s 1234 is my pin":                                                                                  "secret",
		"1234 is my pin, %s":                                                                                 "secret",
	} {
		for _, number := range []string{
			"08031234567", "+2348031234567", "234 803 123 4567", "0803 123 4567", "0803-123-4567", "234(0)8031234567", "0201-2712005", "07004826666328", "0123456789", "000013261121140312345678901234",
		} {
			text := strings.Replace(text, "%s", number, 1)
			if in := bot.Understand(text, nil); short(in) != want {
				t.Errorf("%q means %s, want %s", text, short(in), want)
			}
		}
	}
	for _, text := range []string{"bvn 22212345678", "BVN 222 1234 5678", "my pin is 0413. 51,000.00", "otp 0413 ₦51,000.00", "otp 48 29 13"} {
		if in := bot.Understand(text, nil); in.Kind != flow.MeansSecret {
			t.Errorf("%q means %s", text, short(in))
		}
	}
}
