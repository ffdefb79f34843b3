package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// searched writes a search down in one line.
func searched(s flow.Search) string {
	lagos := time.FixedZone("", 3600)
	var parts []string
	for _, k := range s.Keys {
		text := string(k.Kind)
		if k.Value != "" {
			text += " " + k.Value
		}
		if len(k.Words) > 0 {
			text += " " + strings.Join(k.Words, "+")
		}
		if k.Amount > 0 {
			text += " " + k.Amount.Naira()
		}
		parts = append(parts, text)
	}
	out := strings.Join(parts, " | ")
	if !s.From.IsZero() {
		out += fmt.Sprintf(" [%s to %s]", s.From.In(lagos).Format("2006-01-02 15:04"), s.Until.In(lagos).Format("2006-01-02 15:04"))
	}
	if s.Status != "" {
		out += " only " + string(s.Status)
	}
	return strings.TrimSpace(out)
}

func TestWhatSupportersTypeIsUnderstood(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) // a Sunday, 10 o'clock in Lagos
	day := func(d string) string {
		at, err := time.Parse(time.DateOnly, d)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("[%s 00:00 to %s 00:00]", d, at.AddDate(0, 0, 1).Format(time.DateOnly))
	}
	for typed, want := range map[string]string{
		"":                                 "",
		"   ":                              "",
		"wsp_sess_01k9z3m5x8v2c7n4":        "id wsp_sess_01k9z3m5x8v2c7n4",
		" WSP_PAY_01K9Z3M5X8V2C7N4 ":       "id wsp_pay_01k9z3m5x8v2c7n4",
		"wsp_ref_01k9z3m5x8":               "id wsp_ref_01k9z3m5x8",
		"Session wsp_sess_01k9z3m5x8v2.":   "id wsp_sess_01k9z3m5x8v2",
		"https://till/sessions/wsp_sess_1": "id wsp_sess_1",
		`"paymentId": "wsp_pay_01k9z3m5",`: "id wsp_pay_01k9z3m5",
		"shop-evt_17":                      "name shop+evt+17 | reference shop-evt_17",
		"chat_01k9z3m5x8":                  "id chat_01k9z3m5x8",
		"evt_01k9z3m5x8":                   "id evt_01k9z3m5x8",
		"Ada B. Obi":                       "name ada+obi | reference Ada B. Obi",
		"D & K Foods 4500":                 "name foods ₦4,500 | name foods+4500 | reference D & K Foods 4500",
		"wsp_sess_":                        "name wsp+sess | reference wsp_sess_",
		"7K3M-9QTX":                        "entry code 7K3M9QTX | name 7k3m+9qtx | reference 7K3M-9QTX",
		"pay 7k3m-9qtx":                    "entry code 7K3M9QTX | name pay+7k3m+9qtx | reference pay 7k3m-9qtx",
		"7k3m9qtx":                         "entry code 7K3M9QTX | name 7k3m9qtx | reference 7k3m9qtx",
		"08031234567":                      "phone 2348031234567 | reference 08031234567",
		"+234 803 123 4567":                "phone 2348031234567 | reference +234 803 123 4567",
		"0803-123-4567":                    "phone 2348031234567 | reference 0803-123-4567",
		"2348031234567":                    "phone 2348031234567 | reference 2348031234567",
		"23408031234567":                   "phone 2348031234567 | reference 23408031234567",
		"+44 7911 123456":                  "phone 447911123456 | reference +44 7911 123456",
		"8031234567":                       "phone 2348031234567 | account number 8031234567 | reference 8031234567",
		"0123456789":                       "account number 0123456789 | reference 0123456789",
		"012 345 6789":                     "account number 0123456789 | reference 012 345 6789",
		"4500":                             "amount ₦4,500 | reference 4500",
		"₦4,500.00":                        "amount ₦4,500 | reference ₦4,500.00",
		"4500 naira":                       "amount ₦4,500 | reference 4500 naira",
		"N4500":                            "amount ₦4,500 | reference N4500",
		"#4,500":                           "amount ₦4,500 | reference #4,500",
		"# 4500":                           "amount ₦4,500 | reference # 4500",
		"NGN 4500":                         "amount ₦4,500 | reference NGN 4500",
		"NGN 4,500":                        "amount ₦4,500 | reference NGN 4,500",
		"4500.00NGN":                       "amount ₦4,500 | reference 4500.00NGN",
		"4,500₦":                           "amount ₦4,500 | reference 4,500₦",
		"ada 4500ngn":                      "name ada ₦4,500 | reference ada 4500ngn",
		"4kn":                              "name 4kn | reference 4kn",
		"4.5k":                             "amount ₦4,500 | reference 4.5k",
		"1500.50":                          "amount ₦1,500.50 | reference 1500.50",
		"0.50":                             "reference 0.50",
		"99999999999":                      "reference 99999999999",
		"Ada@Example.com":                  "e-mail address ada@example.com",
		"ada@example.com 4500":             "e-mail address ada@example.com ₦4,500",
		"Ada Obi":                          "name ada+obi | reference Ada Obi",
		"Adébọ́lá":                         "name adebola | reference Adébọ́lá",
		"ada 4500":                         "name ada ₦4,500 | reference ada 4500",
		"Shop 24 yesterday":                "name shop ₦24 | name shop+24 | reference Shop 24 " + day("2026-11-21"),
		"shop 2":                           "name shop ₦2 | reference shop 2",
		"order-1182":                       "name order+1182 | reference order-1182",
		"A":                                "reference A",
		"yesterday":                        day("2026-11-21"),
		"Today":                            day("2026-11-22"),
		"friday":                           day("2026-11-20"),
		"21 Nov":                           day("2026-11-21"),
		"Nov 21st":                         day("2026-11-21"),
		"21 November 2025":                 day("2025-11-21"),
		"25 dec":                           day("2025-12-25"), // the last one there was
		"2026-11-03":                       day("2026-11-03"),
		"3/11/2026":                        day("2026-11-03"),
		"3/11":                             day("2026-11-03"),
		"yesterday 4 pm":                   "[2026-11-21 14:00 to 2026-11-21 17:00]",
		"yesterday at 4:30pm":              "[2026-11-21 14:30 to 2026-11-21 17:30]",
		"21 nov 16:00":                     "[2026-11-21 14:00 to 2026-11-21 17:00]",
		"9am":                              "[2026-11-22 07:00 to 2026-11-22 10:00]",
		"4 pm":                             "[2026-11-21 14:00 to 2026-11-21 17:00]", // not yet today
		"12 am":                            "[2026-11-21 22:00 to 2026-11-22 01:00]",
		"4500 yesterday":                   "amount ₦4,500 | reference 4500 " + day("2026-11-21"),
		"ada 4500 yesterday 4pm":           "name ada ₦4,500 | reference ada 4500 [2026-11-21 14:00 to 2026-11-21 17:00]",
		"last week":                        "[2026-11-09 00:00 to 2026-11-16 00:00]", // on a Sunday
		"This week":                        "[2026-11-16 00:00 to 2026-11-23 00:00]",
		"this month":                       "[2026-11-01 00:00 to 2026-12-01 00:00]",
		"ada last month":                   "name ada | reference ada [2026-10-01 00:00 to 2026-11-01 00:00]",
		"last hour":                        "[2026-11-22 09:00 to 2026-11-22 10:00]",
		"this morning":                     "[2026-11-22 00:00 to 2026-11-22 12:00]",
		"4500 this afternoon":              "amount ₦4,500 | reference 4500 [2026-11-22 12:00 to 2026-11-22 18:00]",
		"this evening":                     "[2026-11-22 18:00 to 2026-11-23 00:00]",
		"paid":                             "only PAID",
		"Pending today":                    day("2026-11-22") + " only PENDING",
		"canceled ada":                     "name ada | reference ada only CANCELLED",
		"order paid-17":                    "name order+paid+17 | reference order paid-17",
		"25:00":                            "name 25+00 | reference 25:00",
		"May":                              "name may | reference May",
		"31 feb":                           day("2026-03-03"), // as calendars count on
		"<script>":                         "name script | reference <script>",
		strings.Repeat("\xff", 10) + "ada": "name ada | reference ada",
	} {
		got := searched(flow.ReadSearch(typed, now))
		if got != want {
			t.Logf("%q:\n got %q\nwant %q", typed, got, want)
			t.Fail()
		}
	}
}

func TestANameIsLookedForAsItIsTypedWithoutMarks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"Adé-Bọ́lá O'Neil": {"ade", "bola", "oneil"}, "ADA  ada Obi": {"ada", "obi"}, "Ɓala Ƙasim": {"bala", "kasim"}, "": nil,
		"a b c d e f g h i j": {"a", "b", "c", "d", "e", "f", "g", "h"},
	} {
		if got := flow.NameWords(name); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzReadSearch(f *testing.F) {
	for _, s := range []string{"4500 yesterday", "+234 803", "21 nov 2026 4:30 pm", "pay 7k3m-9qtx", "₦"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s := flow.ReadSearch(text, now)
		if len(s.Keys) > 8 || s.From.After(s.Until) {
			t.Errorf("%q: %+v", text, s)
		}
		for _, k := range s.Keys {
			if k.Value == "" && len(k.Words) == 0 && k.Amount == 0 {
				t.Errorf("%q means nothing: %+v", text, k)
			}
		}
	})
}
