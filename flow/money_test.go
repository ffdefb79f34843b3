package flow_test

import (
	"testing"

	"pgregory.net/rapid"

	"till/flow"
)

func TestTheFeeIsThatOfThePriceList(t *testing.T) {
	for amount, want := range map[flow.Kobo]flow.Kobo{
		-1: 0, 0: 0, 1: 0, 33: 0, 34: 1, 100: 2, 100_000: 1_500, 249_999: 3_750, 250_000: 13_750, 500_000: 17_500, 12_666_666: 200_000,
		12_666_667: 200_000, flow.MaxAmount: 200_000,
	} {
		if got := flow.Fee(amount); got != want {
			t.Errorf("the fee of %d is %d, want %d", amount, got, want)
		}
	}
}

func TestTheFeeNeverFallsAndNeverTakesItAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := flow.Kobo(rapid.Int64Range(int64(flow.MinAmount), int64(flow.MaxAmount)).Draw(t, "amount"))
		fee := flow.Fee(a)
		if fee < 0 || fee >= a || fee > 200_000 || flow.Fee(a+1) < fee {
			t.Fatalf("the fee of %d is %d, of one kobo more %d", a, fee, flow.Fee(a+1))
		}
	})
}

func TestAnAmountIsWrittenInItsThreeWays(t *testing.T) {
	for _, c := range []struct {
		amount              flow.Kobo
		minor, major, naira string
		whole               bool
	}{
		{0, "0", "0", "₦0", true},
		{1, "1", "0.01", "₦0.01", false},
		{99, "99", "0.99", "₦0.99", false},
		{100, "100", "1", "₦1", true},
		{150_050, "150050", "1500.50", "₦1,500.50", false},
		{150_005, "150005", "1500.05", "₦1,500.05", false},
		{99_999, "99999", "999.99", "₦999.99", false},
		{100_000, "100000", "1000", "₦1,000", true},
		{500_000, "500000", "5000", "₦5,000", true},
		{flow.MaxAmount, "2500000000", "25000000", "₦25,000,000", true},
		{-150_050, "-150050", "-1500.50", "-₦1,500.50", false},
		{-50, "-50", "-0.50", "-₦0.50", false},
	} {
		if c.amount.Minor() != c.minor || c.amount.Major() != c.major || c.amount.Naira() != c.naira || c.amount.Whole() != c.whole {
			t.Errorf("%d kobo: %s, %s, %s, %v", c.amount, c.amount.Minor(), c.amount.Major(), c.amount.Naira(), c.amount.Whole())
		}
	}
}

func TestAnAmountThatWasWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := flow.Kobo(rapid.Int64().Draw(t, "kobo"))
		if back, err := flow.ParseMinor(k.Minor()); err != nil || back != k {
			t.Fatalf("%s was read as %d (%v)", k.Minor(), back, err)
		}
	})
	for _, text := range []string{"", "1.5", "1e3", "x", "9223372036854775808"} {
		if k, err := flow.ParseMinor(text); err == nil {
			t.Errorf("%q was read as %d", text, k)
		}
	}
}
