package flow

import (
	"fmt"
	"strconv"
	"strings"

	"till/flow/planted"
)

// Kobo is an amount of Nigerian naira in its minor unit: 100 kobo are ₦1.
type Kobo int64

// Bounds of one payment, in kobo (₦1 to ₦25,000,000).
const (
	MinAmount Kobo = 100
	MaxAmount Kobo = 2_500_000_000
	// MaxUSSD is the most that a USSD payment may be: ₦100,000.
	MaxUSSD Kobo = 10_000_000
)

// Currency is the only currency there is.
const Currency = "NGN"

// Minor is the amount as a decimal string of kobo: "500000".
func (k Kobo) Minor() string { return strconv.FormatInt(int64(k), 10) }

// Major is the amount in naira, without kobo when it is whole: "5000", "1500.50".
func (k Kobo) Major() string {
	sign := ""
	if k < 0 {
		sign, k = "-", -k
	}
	if k%100 == 0 {
		return sign + strconv.FormatInt(int64(k/100), 10)
	}
	return fmt.Sprintf("%s%d.%02d", sign, k/100, k%100)
}

// Naira is the amount as a payer reads it: "₦5,000", "₦1,500.50".
func (k Kobo) Naira() string {
	whole, part, cut := strings.Cut(k.Major(), ".")
	sign := ""
	if rest, neg := strings.CutPrefix(whole, "-"); neg {
		sign, whole = "-", rest
	}
	var b strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if cut {
		b.WriteByte('.')
		b.WriteString(part)
	}
	return sign + "₦" + b.String()
}

// Whole says whether the amount has no kobo.
func (k Kobo) Whole() bool { return k%100 == 0 }

// The price list: 150 basis points, plus ₦100 from ₦2,500 up, at most ₦2,000.
const (
	feeBasisPoints Kobo = 150
	feeFlatFrom    Kobo = 250_000
	feeFlat        Kobo = 10_000
	feeCap         Kobo = 200_000
)

// Fee is what Till keeps of a payment of k, rounded half up to a kobo.
func Fee(k Kobo) Kobo {
	if k <= 0 {
		return 0
	}
	fee := (k*feeBasisPoints + 5_000) / 10_000
	if planted.OddKobo {
		fee = k * feeBasisPoints / 10_000
	}
	if k >= feeFlatFrom {
		fee += feeFlat
	}
	return min(fee, feeCap)
}
