package rail

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestNUBANCheckDigit(t *testing.T) {
	for _, c := range []struct {
		institution, serial string
		want                int
	}{
		{"011", "000001457", 9},
		{"50547", "000021457", 9},
		{"035", "993000090", 2},
		{"058", "000000007", 0},    // the sum is a multiple of ten
		{"000011", "000001457", 9}, // padded already
		{"950547", "000021457", 9},
	} {
		got, err := NUBANCheckDigit(c.institution, c.serial)
		if err != nil || got != c.want {
			t.Errorf("NUBANCheckDigit(%s, %s) = %d, %v; want %d", c.institution, c.serial, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{"", "000001457"}, {"01", "000001457"}, {"0110", "000001457"}, {"011", ""}, {"011", "00000145"}, {"011", "00000145x"}, {"0 1", "000001457"}, {"011", "0000014577"}} {
		if _, err := NUBANCheckDigit(c[0], c[1]); !errors.Is(err, ErrNUBAN) {
			t.Errorf("NUBANCheckDigit(%q, %q) = %v; want ErrNUBAN", c[0], c[1], err)
		}
	}
}

func TestBanks(t *testing.T) {
	seen := map[string]bool{}
	digits := regexp.MustCompile(`^\d{3,6}$`)
	for _, b := range Banks() {
		if seen[b.Code] {
			t.Errorf("code %s twice", b.Code)
		}
		seen[b.Code] = true
		if !digits.MatchString(b.Code) || b.Name == "" || b.Short == "" {
			t.Errorf("incomplete: %+v", b)
		}
	}
	for _, gone := range []string{"030", "063", TestBankCode} { // inactive, inactive, test only
		if seen[gone] {
			t.Errorf("%s is listed", gone)
		}
	}
	for code, ussd := range map[string]bool{"058": true, "076": false, "101": false, "50211": false} {
		if b, ok := BankByCode(code); !ok || b.USSD != ussd {
			t.Errorf("BankByCode(%s) = %+v, %v; want USSD %v", code, b, ok, ussd)
		}
	}
	if b, ok := BankByCode(TestBankCode); !ok || b.Name != "Till Test Bank" {
		t.Errorf("test bank = %+v, %v", b, ok)
	}
	if _, ok := BankByCode("000"); ok {
		t.Error("000 is found")
	}
}

// A list handed out is the caller's own.
func TestBanksAreCopies(t *testing.T) {
	Banks()[0].Name = "changed"
	if Banks()[0].Name == "changed" {
		t.Error("a caller changed the directory")
	}
}

func TestUSSDMenu(t *testing.T) {
	var names []string
	for _, b := range USSDMenu() {
		if !b.USSD {
			t.Errorf("%s has no USSD", b.Name)
		}
		names = append(names, b.Short)
	}
	want := "GTBank Access Zenith UBA First Bank FCMB Fidelity Sterling Stanbic"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("menu = %s; want %s", got, want)
	}
}

func TestDialCodes(t *testing.T) {
	codes := DialCodes("12345678")
	if codes[0].USSDCode != "*737*000*12345678#" || codes[0].BankCode != "058" {
		t.Errorf("first = %+v", codes[0])
	}
	dial := regexp.MustCompile(`^\*\d+\*000\*12345678#$`)
	seen := map[string]bool{}
	for _, c := range codes {
		if !dial.MatchString(c.USSDCode) {
			t.Errorf("%s: %q", c.BankName, c.USSDCode)
		}
		if seen[c.BankCode] {
			t.Errorf("%s twice", c.BankCode)
		}
		seen[c.BankCode] = true
	}
	n := 0
	for _, b := range Banks() {
		if b.USSD {
			n++
		}
	}
	if len(codes) != n {
		t.Errorf("%d dial codes for %d banks", len(codes), n)
	}
}

func TestReadBanksRefuses(t *testing.T) {
	for _, text := range []string{"", "name,short\nx,y\n", "\"", "name,short,bank_code\nx\n"} {
		if _, err := readBanks(text); err == nil {
			t.Errorf("readBanks(%q) is taken", text)
		}
	}
}
