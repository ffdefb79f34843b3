package flow_test

import (
	"testing"

	"till/flow"
)

// Card numbers are seen however people part their digits, and as a part of whatever else
// they write.
func TestCardsAreSeenHoweverTheyAreParted(t *testing.T) {
	t.Parallel()
	for _, card := range []string{
		"4111/1111/1111/1111", "4111_1111_1111_1111", "4111,1111,1111,1111", "4111 / 1111 / 1111 / 1111", "5061/0000/0000/0000/007", "5078_5078_5078_5078_12",
		"3782/822463/10005", "3622,720627,1667", "4/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1", "4,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "4_1_1_1_1_1_1_1_1_1_1_1_1_1_1_1",
		"4111/1111/1111/1111/12/29/123", "4111,1111,1111,1111,12/29,123", "card:5555_5555_5555_4444.", "7/4111,1111,1111,1111", "12,4111/1111/1111/1111", "٤١١١/١١١١/١١١١/١١١١",
		"4111\u200b/1111/1111/1111", "order 12, 1,500,000 by 4111/1111/1111/1111",
	} {
		if !flow.HoldsCard(card) {
			t.Errorf("not seen: %s", card)
		}
	}
}

// What merchants write all day is no card, though some of it would hold as one: its digits
// in a row have a valid check digit and begin as a card's do.
func TestWhatMerchantsWriteIsNoCard(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1,500,000", "₦1,500,000.00", "4,111,111,111,111,111", "411,111,111,111,111,1", "4,222,222,222,222", "1,500,000/2,500,000", "2,500_000",
		"26/11/2026", "2026/11/26", "2026/11/26, 2026/11/27, 2026/11/28", "26/11/2026,27/11/2026,28/11/2026", "4/1/2026,11/1/2026", "12/29", "09/30/2026_10/30",
		"08031234567,08091234567", "0803/123/4567", "+234,803,123,4567", "0803_1234_567", "234/803/123/4567",
		"4012345678/0123456789", "41111/11111/11111/1", "41,11,11,11,11,11,11,11", "411/111/111/111/111/1", "41111111,11111111", "411111_1111111111",
		"INV_2026_11_26_0001", "4111_2026_1126_0931", "4539_2028_0101_0004", "ORD_4111_1111_1111_1112", "order_1001_4111", "wsp_ref_01jd4111_1111_1111",
		"4111,1111,1111,1111,1111", "1000,4111,1111,1111,1111", "4111/1111/1111/1111/1111/1111", "4500, 5000, 5500, 6003", "4111, 1111, 1111, 1111",
		"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "4,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "5/5/5/5/5/5/5/5/5/5/5/5/5/5/5/4", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
		"4111/1111,1111/1111", "4111//1111//1111//1111", "4111/ 1111/ 1111/ 1111", "4111\n1111\n1111\n1111", "192.168.4.1/24", "10.0.0.0/8,172.16.0.0/12",
		"6.5244,3.3792", "1/2/3/4", "sizes 38/39/40/41/42", "1234/5678/9012/3456", "4111,1111,1111,111", "9999/9999/9999/9999", "/4111/", "", ",", "_/_,",
	} {
		if flow.HoldsCard(text) {
			t.Errorf("taken for a card: %s", text)
		}
	}
}

// A BVN or NIN is one however the letters of its name are parted. A number of eleven digits
// by itself is a telephone.
func TestANumberOfAPersonIsSeenByItsName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"BVN 22212345678", "B.V.N 22212345678", "b.v.n. 22212345678", "B V N: 22212345678", "B-V-N 222-1234-5678", "my N.I.N. is 22212345678", "n/i/n 22212345678", "22212345678 (B. V. N.)",
	} {
		if flow.Held("", text) != flow.HeldIdentity {
			t.Errorf("not seen: %s", text)
		}
	}
	if flow.Held("b.v.n", "22212345678") != flow.HeldIdentity {
		t.Error("its name alone is not seen")
	}
	for _, text := range []string{
		"08031234567", "call 08031234567", "Flat B, 12 V. Nwosu street, 08031234567", "v.b.n 08031234567", "B.V.N", "B.V.N 2221234567", "B.V.N.L 08031234567", "A.B.V.N 08031234567",
		"I.N.I.N 08031234567", "u.n. 08031234567", "bvnx 08031234567", "vitamins B, V and N 08031234567", "b 1 v 2 n 08031234567",
	} {
		if flow.Held("", text) == flow.HeldIdentity {
			t.Errorf("taken for a person's number: %s", text)
		}
	}
}

// Whatever is taken for a card has one in its digits, and is one in other words too.
func FuzzHoldsCard(f *testing.F) {
	for _, text := range []string{
		"4111/1111/1111/1111", "5061_0000_0000_0000_007", "3782,822463,10005", "4,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "4111 - 1111 - 1111 - 1111", "1,500,000", "2026/11/26",
		"4111_2026_1126_0931", "4111,1111,1111,1111,1111", "08031234567,08091234567", "٤١١١/١١١١/١١١١/١١١١", "4111 / 1111/1111 / 1111", "7/4111,1111,1111,1111", "\xff4111/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !flow.HoldsCard(text) {
			return
		}
		if !flow.HoldsCard("paid by " + text + " today") {
			t.Errorf("%q is a card by itself, and none among words", text)
		}
		var digits []byte
		for _, r := range flow.PlainDigits(text) {
			if r >= '0' && r <= '9' {
				digits = append(digits, byte(r))
			}
		}
		for from := range digits {
			for to := from + 13; to <= min(from+19, len(digits)); to++ {
				if flow.SchemeOf(digits[from:to]) != flow.NoScheme && flow.LuhnHolds(digits[from:to]) {
					return
				}
			}
		}
		t.Errorf("%q is taken for a card, and its digits %s hold none", text, digits)
	})
}
