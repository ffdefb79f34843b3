package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"till/flow"
	"till/flow/benchtest"
)

// Whoever guesses keys, from one address or from a hundred, is told 401 as often as an
// address may ask and 429 beyond; a key that holds is served all the while at those
// very addresses. TILL_FAULT_KEYS is how many keys are guessed each time.
func TestGuessingKeysKeepsNobodyOut(t *testing.T) {
	n := benchtest.Often(t, "TILL_FAULT_KEYS", 3000)
	for _, addresses := range []int{1, 100} {
		s, d := limited(t)
		s.server.cfg.Proxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		from := func(i int) http.Header {
			return http.Header{"X-Forwarded-For": {fmt.Sprintf("203.0.113.%d", i%addresses)}}
		}
		const seconds = 4
		each := n / seconds
		told := map[int]int{}
		for second := range seconds {
			for i := range each {
				guess := s.newKey(flow.Test, flow.SecretKey) // one that could be, and is nobody's
				if i%2 == 1 {
					guess = s.key[:len(s.key)-8] + guess[len(guess)-8:] // nearly one that is
				}
				r := s.ask("GET", "/v1/balance", guess, "", from(i))
				told[r.status]++
				if r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") == "" {
					t.Fatal("a 429 does not say when to come back")
				}
			}
			s.want(s.ask("GET", "/v1/balance", s.key, "", from(second)), http.StatusOK, nil)
			d.turn(time.Second)
		}
		// Ten at once and five a second, of what each address guessed.
		most := 0
		for address := range addresses {
			had := 10
			for range seconds {
				offered := (each + addresses - 1 - address) / addresses
				most += min(had, offered)
				had = min(10, had-min(had, offered)+5)
			}
		}
		if told[http.StatusUnauthorized] != most || told[http.StatusUnauthorized]+told[http.StatusTooManyRequests] != each*seconds {
			t.Errorf("from %d addresses: %v, of which %d may be 401", addresses, told, most)
		}
		t.Logf("%d keys guessed from %d addresses: %d times 401, %d times 429, the key that holds served each time",
			each*seconds, addresses, told[http.StatusUnauthorized], told[http.StatusTooManyRequests])
	}
}
