package flow_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// dry is a source of randomness that has run out.
type dry struct{}

func (dry) Read([]byte) (int, error) { return 0, errors.New("dry") }

func TestAnIDIsAPrefixAndALowerCaseULID(t *testing.T) {
	shape := regexp.MustCompile(`^wsp_sess_[0-7][0-9a-hjkmnp-tv-z]{25}$`)
	seen := map[string]bool{}
	ids := flow.IDs{Now: func() time.Time { return noon }, Rand: rand.Reader}
	for range 2000 {
		id, err := ids.New(flow.PrefixSession)
		if err != nil || !shape.MatchString(id) || seen[id] {
			t.Fatal(id, err)
		}
		seen[id] = true
	}
}

func TestAnIDIsTheULIDOfTheSpecification(t *testing.T) {
	// The example of github.com/ulid/spec: 01ARZ3NDEKTSV4RRFFQ69G5FAV.
	ids := flow.IDs{
		Now:  func() time.Time { return time.UnixMilli(1469922850259) },
		Rand: bytes.NewReader([]byte{0xd6, 0x76, 0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b}),
	}
	if id, err := ids.New(flow.PrefixEvent); err != nil || id != "evt_01arz3ndektsv4rrffq69g5fav" {
		t.Error(id, err)
	}
}

func TestIDsSortByTheirTime(t *testing.T) {
	at := noon
	ids := flow.IDs{Now: func() time.Time { return at }, Rand: rand.Reader}
	last := ""
	for i := range 500 {
		at = at.Add(time.Duration(1+i*i) * time.Millisecond)
		id, err := ids.New("x_")
		if err != nil || id <= last {
			t.Fatalf("%s after %s (%v)", id, last, err)
		}
		last = id
	}
}

func TestRisingIDsOfOneMillisecondStandInTheirOrder(t *testing.T) {
	at := noon
	ids := flow.Rising{IDs: flow.IDs{Now: func() time.Time { return at }, Rand: strings.NewReader(
		strings.Repeat("\xff", 10) + strings.Repeat("\x00", 10) + strings.Repeat("a", 9) + "\xff" + strings.Repeat("a", 10),
	)}}
	last := ""
	for i, then := range []time.Duration{0, 0, time.Millisecond, time.Millisecond} { // beyond the last of a millisecond too
		at = noon.Add(then)
		id, err := ids.New("x_")
		if err != nil || id <= last {
			t.Errorf("%d: %s after %s (%v)", i, id, last, err)
		}
		last = id
	}
	at = noon.Add(-time.Hour) // a clock that was set back is followed
	ids.Rand = rand.Reader
	if id, err := ids.New("x_"); err != nil || id >= last {
		t.Errorf("%s after %s (%v)", id, last, err)
	}
	ids.Rand = dry{}
	if id, err := ids.New("x_"); err == nil {
		t.Error(id)
	}
}

func TestAnEntryCodeIsEightCrockfordCharactersShownInTwoHalves(t *testing.T) {
	ids := flow.IDs{Now: func() time.Time { return noon }, Rand: rand.Reader}
	shape := regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{8}$`)
	used := map[rune]bool{}
	for range 1000 {
		code, err := ids.EntryCode()
		if err != nil || !shape.MatchString(code) || flow.ShowCode(code) != code[:4]+"-"+code[4:] {
			t.Fatal(code, err)
		}
		for _, c := range code {
			used[c] = true
		}
	}
	if len(used) != 32 {
		t.Errorf("only %d characters are in use", len(used))
	}
	if flow.ShowCode("short") != "short" {
		t.Error("what is no code was cut")
	}
}

func TestNothingIsMadeWithoutRandomness(t *testing.T) {
	ids := flow.IDs{Now: func() time.Time { return noon }, Rand: dry{}}
	if id, err := ids.New("x_"); err == nil {
		t.Error(id)
	}
	if code, err := ids.EntryCode(); err == nil {
		t.Error(code)
	}
	if key, err := flow.NewKeyText(flow.Live, flow.SecretKey, dry{}); err == nil {
		t.Error(key)
	}
}

func TestAPhoneHidesItselfHoweverItIsPrinted(t *testing.T) {
	p := flow.Phone("2348012345678")
	for _, text := range []string{fmt.Sprint(p), fmt.Sprintf("%v", p), fmt.Sprintf("%+v", p), fmt.Sprintf("%#v", p), fmt.Sprintf("%q", p), fmt.Sprintf("%v", struct{ P flow.Phone }{p})} {
		if strings.Contains(text, "80123") || strings.Contains(text, "2345") {
			t.Errorf("a phone shows itself: %s", text)
		}
	}
	if got := flow.Phone("1234567").String(); got != "•••" {
		t.Error(got)
	}
}

func TestAKeySaysWhatItIs(t *testing.T) {
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		for kind, prefix := range map[flow.KeyKind]string{flow.SecretKey: "sk_", flow.PublicKey: "pk_"} {
			text, err := flow.NewKeyText(env, kind, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if want := prefix + string(env) + "_"; !strings.HasPrefix(text, want) || len(text) != len(want)+43+6 {
				t.Errorf("%s is no %s key", text, want)
			}
			gotEnv, gotKind, ok := flow.ReadKeyText(text)
			if !ok || gotEnv != env || gotKind != kind {
				t.Errorf("%s was read as %s %s %v", text, gotEnv, gotKind, ok)
			}
			if hint := flow.HintKey(text); !strings.HasPrefix(hint, prefix) || strings.Contains(text, hint) || len(hint) > 16 {
				t.Errorf("hint %s", hint)
			}
			if hash := flow.HashKey(text); len(hash) != 64 || hash != flow.HashKey(text) {
				t.Errorf("hash %s", hash)
			}
		}
	}
}

func TestAKeyIsThatOfAnyOtherProgram(t *testing.T) {
	raw := make([]byte, 32)
	for i := range raw {
		raw[i] = byte(i)
	}
	// The bytes 0 to 31 in base 62, least digit first, and the CRC-32 of all of it.
	const want = "pk_test_flDIBkGwcRKRL9GXCgaFM3UNu2jQTCljt7CJTlUa3003sdYmj"
	if got, err := flow.NewKeyText(flow.Test, flow.PublicKey, bytes.NewReader(raw)); err != nil || got != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
}

func TestEveryTypoInAKeyIsCaught(t *testing.T) {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"
	text, err := flow.NewKeyText(flow.Test, flow.SecretKey, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for _, c := range alphabet {
			if wrong := text[:i] + string(c) + text[i+1:]; wrong != text {
				if _, _, ok := flow.ReadKeyText(wrong); ok {
					t.Fatalf("%s passes for %s", wrong, text)
				}
			}
		}
		if i > 0 && text[i] != text[i-1] {
			swapped := text[:i-1] + string(text[i]) + string(text[i-1]) + text[i+1:]
			if _, _, ok := flow.ReadKeyText(swapped); ok {
				t.Fatalf("%s passes for %s", swapped, text)
			}
		}
		if _, _, ok := flow.ReadKeyText(text[:i]); ok {
			t.Fatalf("%s passes", text[:i])
		}
	}
}

func FuzzReadKeyText(f *testing.F) {
	text, err := flow.NewKeyText(flow.Live, flow.PublicKey, rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "sk_test_", text, text + "x", strings.Repeat("é", 30), "\x00\xff", strings.Repeat("sk_live_", 10)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		env, kind, ok := flow.ReadKeyText(text)
		if !ok && (env != "" || kind != "") {
			t.Errorf("%q is no key, but %s %s", text, env, kind)
		}
		if ok && !strings.Contains(text, "k_"+string(env)+"_") {
			t.Errorf("%q was read as %s", text, env)
		}
		_ = flow.HintKey(text)
	})
}
