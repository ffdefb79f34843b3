//go:build unix

package api

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/benchtest"
)

// timingLine is the |t| of Welch's test from which on two kinds of calls are held to take
// different times: the usual line of tests for what leaks by time (TVLA, ISO/IEC 17825).
const timingLine = 4.5

// How many calls of each kind are made: a login hashes a password each time.
const (
	timingCalls  = 10_000
	timingLogins = 300
)

// BenchmarkFaultTiming asks whether the time of a refusal tells what its words do not: how
// much of a key is right, whether an id is another merchant's, whether an e-mail address has
// an account. Both kinds of a pair come over one connection, in an order that is drawn.
func BenchmarkFaultTiming(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	where := benchtest.Machine(b)
	asked := timed{b: b, to: loadServer(b, filepath.Join(b.TempDir(), "timing"), nil), ids: flow.IDs{Now: time.Now, Rand: rand.Reader}}
	asked.to = loadSessions(b, asked.to)
	asked.stranger = asked.signUp()
	var t benchtest.Table
	for _, p := range []struct {
		name       string
		n, status  int
		one, other func(i int) *http.Request
	}{
		{"a key that is nobody's, and one that begins as a key that holds", timingCalls, http.StatusUnauthorized, asked.wrongKey, asked.nearKey},
		{"the id of nobody's session, and of another merchant's", timingCalls, http.StatusNotFound, asked.nobodys, asked.anothers},
		{"the e-mail address of nobody, and of somebody, with a wrong password", timingLogins, http.StatusUnauthorized, asked.noLogin, asked.wrongLogin},
	} {
		value := math.Abs(welch(asked.pair(p.n, p.status, p.one, p.other)))
		t.Promise(p.name, fmt.Sprintf("t %.1f", value), fmt.Sprintf("below %.1f", timingLine), value < timingLine)
	}
	fmt.Printf("\n%s\n\n%s\n", where, t.Text())
	must(b, errors.Join(t.Broken(), t.Leave()))
}

// timed is who asks.
type timed struct {
	b        *testing.B
	to       loadAsk
	stranger string // another merchant's Authorization
	ids      flow.IDs
}

// pair makes both kinds of calls, n of each, and says how long each took, in microseconds.
// All are written before the first is sent: what that costs differs from kind to kind.
func (a *timed) pair(n, status int, kinds ...func(i int) *http.Request) (one, other []float64) {
	a.b.Helper()
	var took [2][]float64
	calls := make([]*http.Request, len(took)*n)
	for i := range calls {
		calls[i] = kinds[i%len(took)](i / len(took))
	}
	for _, turn := range mathrand.Perm(len(calls)) {
		kind, r := turn%len(took), calls[turn]
		began := time.Now()
		answer, err := http.DefaultClient.Do(r)
		must(a.b, err)
		text, err := io.ReadAll(answer.Body)
		spent := time.Since(began)
		if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != status {
			a.b.Fatalf("%s %s: %d %s %v", r.Method, r.URL.Path, answer.StatusCode, text, err)
		}
		took[kind] = append(took[kind], float64(spent.Nanoseconds())/1000)
	}
	return took[0], took[1]
}

// welch is t of two samples without what of both took longest, a tenth: that is other work
// of the machine, and would drown what there is to see.
func welch(one, other []float64) float64 {
	all := slices.Sorted(slices.Values(slices.Concat(one, other)))
	most := all[len(all)*9/10]
	var mean, spread [2]float64
	for i, list := range [][]float64{one, other} {
		list = slices.DeleteFunc(slices.Clone(list), func(v float64) bool { return v > most })
		n := float64(len(list))
		for _, v := range list {
			mean[i] += v / n
		}
		for _, v := range list {
			spread[i] += (v - mean[i]) * (v - mean[i]) / (n - 1) / n
		}
	}
	return (mean[0] - mean[1]) / math.Sqrt(spread[0]+spread[1])
}

func (a *timed) get(url, key string) *http.Request {
	a.b.Helper()
	r, err := http.NewRequestWithContext(a.b.Context(), http.MethodGet, url, http.NoBody)
	must(a.b, err)
	r.Header.Set("Authorization", key)
	return r
}

func (a *timed) key() string {
	a.b.Helper()
	text, err := flow.NewKeyText(flow.Test, flow.SecretKey, rand.Reader)
	must(a.b, err)
	return text
}

func (a *timed) wrongKey(int) *http.Request { return a.get(a.to.URL, "Bearer "+a.key()) }

// nearKey is the key that holds but for its last eight characters, with the checksum of
// that: without it, it would be refused unseen.
func (a *timed) nearKey(int) *http.Request {
	const sum, near = 6, 8
	drawn := a.key()
	body := strings.TrimPrefix(a.to.Key, "Bearer ")[:len(drawn)-sum-near] + drawn[len(drawn)-sum-near:len(drawn)-sum]
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	check := make([]byte, sum)
	for i, rest := sum-1, crc32.ChecksumIEEE([]byte(body)); i >= 0; i, rest = i-1, rest/uint32(len(digits)) {
		check[i] = digits[rest%uint32(len(digits))]
	}
	return a.get(a.to.URL, "Bearer "+body+string(check))
}

func (a *timed) nobodys(int) *http.Request {
	id, err := a.ids.New(flow.PrefixSession)
	must(a.b, err)
	return a.get(a.to.URL+"/"+id, a.stranger)
}

func (a *timed) anothers(i int) *http.Request {
	return a.get(a.to.URL+"/"+a.to.IDs[i%len(a.to.IDs)], a.stranger)
}

func (a *timed) noLogin(i int) *http.Request    { return a.logIn("nobody@example.com", 2*i) }
func (a *timed) wrongLogin(i int) *http.Request { return a.logIn("owner@example.com", 2*i+1) }

// logIn tries a wrong password from an address of its own: from one, that may not be tried
// so often.
func (a *timed) logIn(email string, from int) *http.Request {
	r := a.post("/v1/auth/login", `{"email":"`+email+`","password":"a wrong horse battery"}`)
	r.Header.Set("X-Forwarded-For", fmt.Sprintf("10.1.%d.%d", from/250, from%250))
	return r
}

func (a *timed) post(path, body string) *http.Request {
	a.b.Helper()
	r, err := http.NewRequestWithContext(a.b.Context(), http.MethodPost, strings.TrimSuffix(a.to.URL, sessionsPath)+path, strings.NewReader(body))
	must(a.b, err)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// signUp is another merchant.
func (a *timed) signUp() (authorization string) {
	a.b.Helper()
	answer, err := http.DefaultClient.Do(a.post("/v1/auth/signup", `{"email":"other@example.com","password":"correct horse battery","businessName":"Other Stores"}`))
	must(a.b, err)
	var made struct {
		Data struct{ Keys struct{ SecretKey string } }
	}
	err = errors.Join(json.NewDecoder(answer.Body).Decode(&made), answer.Body.Close())
	if err != nil || made.Data.Keys.SecretKey == "" {
		a.b.Fatalf("sign up: %d %v", answer.StatusCode, err)
	}
	return "Bearer " + made.Data.Keys.SecretKey
}
