package flow

import "strconv"

// Count is how many there are of things that English adds an s to: "1 payer", "2 payers".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Counted is Count with what they do, of one and of any other number: "1 payer is".
func Counted(n int, thing, one, others string) string {
	if n == 1 {
		return Count(n, thing) + " " + one
	}
	return Count(n, thing) + " " + others
}
