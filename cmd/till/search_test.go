package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"till/flow"
)

// secrets are what must stand nowhere afterwards: card numbers, BVNs and NINs, and
// keys.
type secrets struct {
	cards, people, keys []string
}

// digits draws random digits.
func digits(n int) string {
	var b strings.Builder
	for range n {
		d, err := rand.Int(rand.Reader, big.NewInt(10))
		if err != nil {
			panic(err)
		}
		b.WriteString(d.String())
	}
	return b.String()
}

// drawn are numbers drawn anew for each run: cards of Visa, Mastercard and Verve
// with their check digit, and numbers as those of people are.
func drawn(cards, people int) secrets {
	var s secrets
	kinds := []struct {
		begins string
		length int
	}{{"4", 16}, {"5399", 16}, {"2223", 16}, {"506105", 16}, {"506105", 18}, {"506105", 19}, {"650002", 16}, {"650002", 19}}
	for i := range cards {
		k := kinds[i%len(kinds)]
		body := k.begins + digits(k.length-len(k.begins)-1)
		for check := range 10 {
			if whole := body + strconv.Itoa(check); flow.LuhnHolds(whole) {
				s.cards = append(s.cards, whole)
			}
		}
	}
	for i := range people {
		if begins := "22"; i%2 == 0 {
			s.people = append(s.people, begins+digits(9)) // a BVN
		} else {
			s.people = append(s.people, "7"+digits(10))
		}
	}
	return s
}

// renderings are the ways in which somebody may write a number.
func renderings(number string) []string {
	grouped := regexp.MustCompile(`\d{4}`).ReplaceAllString(number, "$0 ")
	wide := strings.Map(func(r rune) rune { return r - '0' + '０' }, number)
	return []string{
		number, strings.TrimSpace(grouped), strings.ReplaceAll(strings.TrimSpace(grouped), " ", "-"), strings.ReplaceAll(strings.TrimSpace(grouped), " ", "."), wide,
		"my card is " + number + " 12/29 123", strings.ReplaceAll(strings.TrimSpace(grouped), " ", "\u00a0"), number[:8] + "\u200b" + number[8:],
		strings.ReplaceAll(strings.TrimSpace(grouped), " ", "/"),
	}
}

// finder looks for many texts at once, in every form in which a file may hold them.
type finder struct {
	by     map[[findBy]byte][]form
	digits map[string]string // numbers, to be found whatever stands between their digits
}

// form is a text to be found, and what it is a form of.
type form struct{ text, of string }

// findBy is how many bytes a form is looked up by; each has as many.
const findBy = 11

func newFinder(s secrets) *finder {
	f := &finder{by: map[[findBy]byte][]form{}, digits: map[string]string{}}
	for _, number := range append(append([]string{}, s.cards...), s.people...) {
		f.digits[number] = number
		for _, r := range renderings(number)[:5] {
			f.forms(r, number)
		}
	}
	for _, key := range s.keys {
		f.forms(key, key)
	}
	return f
}

// forms adds a text as it is, in base64 wherever it may begin, in hex, with escapes
// of addresses and of JSON.
func (f *finder) forms(text, of string) {
	escaped := ""
	for _, r := range text {
		escaped += fmt.Sprintf(`\u%04x`, r)
	}
	list := []string{text, hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text))), url.QueryEscape(text), url.PathEscape(text), escaped}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		from, to := (before*8+5)/6, (before+len(text))*8/6
		list = append(list, encoded[from:to], strings.NewReplacer("+", "-", "/", "_").Replace(encoded[from:to]))
	}
	for _, one := range list {
		if len(one) >= findBy {
			k := [findBy]byte([]byte(one[:findBy]))
			f.by[k] = append(f.by[k], form{one, of})
		}
	}
}

// separators may stand between the digits of one number.
const separators = " -._/,\t\r\n"

// in names what of it stands in a text.
func (f *finder) in(text []byte) (found []string) {
	for i := 0; i+findBy <= len(text); i++ {
		for _, one := range f.by[[findBy]byte(text[i:i+findBy])] {
			if bytes.HasPrefix(text[i:], []byte(one.text)) {
				found = append(found, one.of+" as "+one.text)
			}
		}
	}
	run := []byte{}
	check := func() {
		for n := 11; n <= 19; n++ {
			for i := 0; i+n <= len(run); i++ {
				if _, is := f.digits[string(run[i:i+n])]; is {
					found = append(found, string(run[i:i+n])+" with something between")
				}
			}
		}
		run = run[:0]
	}
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			run = append(run, c)
		case strings.IndexByte(separators, c) >= 0:
		case len(run) > 0:
			check()
		}
	}
	check()
	return found
}

// packed looks into a file of a backup.
func (f *finder) packed(t *testing.T, name string) (found []string) {
	t.Helper()
	file, err := os.Open(name)
	must(t, err)
	defer func() { _ = file.Close() }()
	zip, err := gzip.NewReader(file)
	must(t, err)
	for in := tar.NewReader(zip); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		must(t, err)
		text, err := io.ReadAll(in)
		must(t, err)
		for _, one := range f.in(text) {
			found = append(found, head.Name+": "+one)
		}
	}
}

// files looks into every file of a folder, and says how many bytes that were.
func (f *finder) files(t *testing.T, dir string) (found []string, size int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if size += len(text); bytes.Contains(text, []byte(searchPassword)) {
			found = append(found, strings.TrimPrefix(path, dir)+": a password")
		}
		for _, one := range f.in(text) {
			found = append(found, strings.TrimPrefix(path, dir)+": "+one)
		}
		return err
	})
	must(t, err)
	return found, size
}

// What looks for secrets finds them in each form: else finding none says nothing.
func TestTheSearchFindsEachForm(t *testing.T) {
	s := drawn(8, 2)
	s.keys = []string{"sk_test_" + digits(30)}
	f := newFinder(s)
	for _, number := range s.cards {
		if !flow.HoldsCard(number) {
			t.Errorf("%s is no card", number)
		}
		for _, r := range renderings(number) {
			if !flow.HoldsCard(r) {
				t.Errorf("%q is not taken for a card", r)
			}
		}
		for _, text := range []string{
			number, "x" + number + "y", base64.StdEncoding.EncodeToString([]byte("{\"a\":\"" + number + "\"}")), base64.RawURLEncoding.EncodeToString([]byte("ab" + number)),
			hex.EncodeToString([]byte(number)), number[:4] + " " + number[4:8] + "-" + number[8:], url.QueryEscape(renderings(number)[1]), renderings(number)[4],
		} {
			if len(f.in([]byte("before "+text+" behind"))) == 0 {
				t.Errorf("not found: %q", text)
			}
		}
	}
	for _, key := range append(s.keys, s.people...) {
		if len(f.in([]byte("..."+key+"..."))) == 0 || len(f.in([]byte(base64.StdEncoding.EncodeToString([]byte("12"+key+"..."))))) == 0 {
			t.Errorf("not found: %s", key)
		}
	}
	if found := f.in([]byte("4111111111111111 and nothing of ours")); len(found) > 0 {
		t.Errorf("found where it is not: %v", found)
	}
}
