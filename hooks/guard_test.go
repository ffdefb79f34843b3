package hooks_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"till/hooks"
)

// row is one line of a table in testdata: its class is open, loop or shut, its
// kind what a URL tries.
type row struct{ class, kind, value string }

// table reads testdata/name, whose lines have a kind or not.
func table(tb testing.TB, name string, kinds bool) []row {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		var r row
		r.class, r.value, _ = strings.Cut(line, " ")
		if kinds {
			r.kind, r.value, _ = strings.Cut(r.value, " ")
		}
		if strings.HasPrefix(r.value, `"`) {
			if r.value, err = strconv.Unquote(r.value); err != nil {
				tb.Fatalf("%s: %s: %v", name, line, err)
			}
		}
		if r.class != "open" && r.class != "loop" && r.class != "shut" {
			tb.Fatalf("%s: %s", name, line)
		}
		rows = append(rows, r)
	}
	return rows
}

// addresses and urls are the tables.
func addresses(tb testing.TB) []row { tb.Helper(); return table(tb, "addresses.txt", false) }

func urls(tb testing.TB) []row {
	tb.Helper()
	return append(table(tb, "endpoints.txt", true), table(tb, "urls.txt", true)...)
}

// expect says whether a class is let through.
func expect(class string, loopback bool) bool {
	return class == "open" || class == "loop" && loopback
}

func TestRefused(t *testing.T) {
	for _, r := range addresses(t) {
		a, err := netip.ParseAddr(r.value)
		if err != nil {
			t.Fatal(err)
		}
		for _, loopback := range []bool{false, true} {
			err := hooks.Refused(a, loopback)
			if want := expect(r.class, loopback); (err == nil) != want {
				t.Errorf("%s, loopback allowed %t: %v", a, loopback, err)
			}
			if err != nil && !errors.Is(err, hooks.ErrAddress) {
				t.Errorf("%s: %v is not ErrAddress", a, err)
			}
		}
	}
	if hooks.Refused(netip.Addr{}, true) == nil {
		t.Error("no address at all was let through")
	}
}

// A letter that cannot stand in a URL is named as it was typed.
func TestALetterThatIsRefusedIsNamed(t *testing.T) {
	if err := hooks.CheckURL("https://m\u00fcnchen.example/", hooks.Allow{}); err == nil || !strings.Contains(err.Error(), "'\u00fc'") {
		t.Error(err)
	}
}

// Who may have events sent to this machine is told that http passes for that: a local
// address is mostly typed without any scheme.
func TestHowAURLBeginsIsToldWithWhatIsAllowed(t *testing.T) {
	for allow, says := range map[hooks.Allow]string{
		{}:               "not one that events can be sent to: it must begin with https://",
		{Loopback: true}: "not one that events can be sent to: it must begin with https://, or http:// where it leads to this machine",
	} {
		for _, raw := range []string{"localhost:3000/hook", "http://shop.example/hook"} {
			if err := hooks.CheckURL(raw, allow); err == nil || err.Error() != says {
				t.Errorf("%s: %v", raw, err)
			}
		}
	}
}

// What the standard library calls anything but a public unicast address is
// refused: another judge, who knows less than we do but is not us.
func TestRefusedAgreesWithTheStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b [16]byte
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		a := netip.AddrFrom16(b)
		switch rng.IntN(3) {
		case 0:
			a = netip.AddrFrom4([4]byte(b[:4]))
		case 1:
			a = netip.AddrFrom16(netip.AddrFrom4([4]byte(b[:4])).As16())
		}
		plain := a.Unmap()
		inside := !plain.IsGlobalUnicast() || plain.IsPrivate()
		if err := hooks.Refused(a, false); inside && err == nil {
			t.Fatalf("%s was let through", a)
		}
		if err := hooks.Refused(a, true); inside && !plain.IsLoopback() && err == nil {
			t.Fatalf("%s was let through with loopback", a)
		}
	}
}

func TestCheckURL(t *testing.T) {
	rows := urls(t)
	// Each address again as the host of a URL.
	for _, r := range addresses(t) {
		host := r.value
		if strings.Contains(host, ":") {
			host = "[" + strings.ReplaceAll(host, "%", "%25") + "]"
		}
		rows = append(rows, row{r.class, r.kind, "https://" + host + "/hook"})
	}
	// Each closed IPv4 address in the spellings of inet_aton.
	for _, r := range addresses(t) {
		a, err := netip.ParseAddr(r.value)
		if err != nil || !a.Is4() || r.class == "open" {
			continue
		}
		for _, host := range spellings(a.As4()) {
			rows = append(rows, row{"shut", "", "https://" + host + "/"}, row{"shut", "", "http://" + host + "/"})
		}
	}
	for _, r := range rows {
		for _, loopback := range []bool{false, true} {
			err := hooks.CheckURL(r.value, hooks.Allow{Loopback: loopback})
			if want := expect(r.class, loopback); (err == nil) != want {
				t.Errorf("%q, loopback allowed %t: %v", r.value, loopback, err)
			}
			if err != nil && !errors.Is(err, hooks.ErrURL) {
				t.Errorf("%q: %v is not ErrURL", r.value, err)
			}
		}
	}
}

// spellings are other ways to write an IPv4 address that inet_aton knows.
func spellings(b [4]byte) []string {
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return []string{
		fmt.Sprintf("%d", n),
		fmt.Sprintf("0%o", n),
		fmt.Sprintf("0x%x", n),
		fmt.Sprintf("0X%08X", n),
		fmt.Sprintf("%d.%d", b[0], n&0xffffff),
		fmt.Sprintf("%d.%d.%d", b[0], b[1], n&0xffff),
		fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0x%x.0x%x.0x%x.0x%x", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%03d.%03d.%03d.%d.", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%d.%d.%d.%d.", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0x%x.%d.0%o.%d", b[0], b[1], b[2], b[3]),
	}
}

// The tables are as wide as they say: every way to write a closed address, each
// URL once.
func TestTablesAreWhole(t *testing.T) {
	kinds, classes, seen := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, r := range urls(t) {
		if seen[r.value] {
			t.Errorf("%q stands there twice", r.value)
		}
		seen[r.value] = true
		kinds[r.kind]++
		classes[r.class]++
	}
	if classes["shut"] < 300 || kinds["ordinary"] < 30 || kinds["leads"] < 20 || kinds["here"] < 15 {
		t.Errorf("%v, %v", classes, kinds)
	}
	for kind := range strings.FieldsSeq(`scheme nohost userinfo fragment backslash crlf space percent idn label
		overlong dot port bracket zone decimal octal hex short mixed digits unspecified inside4 mapped compat
		nat64 6to4 teredo ula linklocal special6 metadata inside`) {
		if kinds[kind] < 3 {
			t.Errorf("%d URLs of the kind %s", kinds[kind], kind)
		}
	}
}

func TestCheckURLBounds(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/"))
	if err := hooks.CheckURL(long, hooks.Allow{}); err != nil {
		t.Errorf("2048 characters: %v", err)
	}
	if hooks.CheckURL(long+"a", hooks.Allow{}) == nil {
		t.Error("2049 characters were let through")
	}
	label := strings.Repeat("a", 63) + "."
	if err := hooks.CheckURL("https://"+label+label+label+strings.Repeat("a", 61), hooks.Allow{}); err != nil {
		t.Errorf("a host of 253: %v", err)
	}
	if hooks.CheckURL("https://"+label+label+label+strings.Repeat("a", 62), hooks.Allow{}) == nil {
		t.Error("a host of 254 was let through")
	}
}
