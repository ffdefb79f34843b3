package flow

// LuhnHolds says whether the check digit at the end of a card number is right,
// by ISO/IEC 7812-1, annex B. What it is given must be digits.
func LuhnHolds[D ~string | ~[]byte](digits D) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
