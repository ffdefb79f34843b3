package checkout_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/benchtest"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
	"till/rail/sandbox"
)

// bankSecret is that of newWorld's bank.
const bankSecret = "not a real secret, only long enough"

// post is what the bank said, as it came over the wire.
type post struct {
	header http.Header
	body   []byte
}

// lying is a world whose bank's notices are taken aside, to be told as no bank
// should: late, often, in another order, to others, changed.
type lying struct {
	*world

	mu      sync.Mutex
	taken   []post
	told    atomic.Int64 // true messages, however often
	lies    atomic.Int64 // forged ones
	want    map[flow.MatchStatus]int
	version func() int64 // changes when anything is written
}

// The bank's messages come ten times at once, in another order, a day later, before
// what they are about is kept, after its end, of another amount, for an account of
// nobody's and to another environment; and others send messages that look like them.
// Every movement of the bank has one outcome (I3), and of what is forged nothing is
// written. TILL_FAULT_NOTICES is how many messages there are at least.
func TestNoticesAsNoBankShouldTellThem(t *testing.T) {
	t.Parallel()
	n := benchtest.Often(t, "TILL_FAULT_NOTICES", 600)
	l := newLying(t)
	e := l.endpoint("https://shop.test", flow.ChargeSuccess)
	began := time.Now()
	var old []post
	for round := 0; int(l.told.Load()+l.lies.Load()) < n; round++ {
		old = append(old, l.round()...)
		if round%20 == 19 {
			t.Logf("%d true messages, %d forged in %s", l.told.Load(), l.lies.Load(), time.Since(began).Round(time.Second))
		}
	}
	l.late(old)
	l.rest()
	l.proven()
	for match, want := range l.want {
		if got := l.matched(match); got != want {
			t.Errorf("%d payments are %s, not %d", got, match, want)
		}
	}
	if paid := l.want[flow.Matched] + l.want[flow.Excess]; l.to(e.ID) != paid {
		t.Errorf("%d charge.success were posted for %d sessions that were paid", l.to(e.ID), paid)
	}
	t.Logf("%d true messages about %d movements: each has one outcome; %d forged: 0 taken, 0 writes; %s", l.told.Load(), l.movements(), l.lies.Load(), time.Since(began).Round(time.Millisecond))
}

func newLying(t *testing.T) *lying {
	t.Helper()
	l := &lying{world: newWorld(t, storetest.SQLite(t, store.Checkout)), want: map[flow.MatchStatus]int{}}
	l.start(true)
	aside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken = append(l.taken, post{r.Header.Clone(), body})
	}))
	t.Cleanup(aside.Close)
	l.must(l.bank.Register(t.Context(), aside.URL))
	db, err := sql.Open("sqlite", filepath.Join(l.store.Dir, l.store.Name+".db"))
	l.must(err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // the version is that which this connection sees
	l.version = func() (v int64) {
		l.must(db.QueryRowContext(t.Context(), "PRAGMA data_version").Scan(&v))
		return v
	}
	return l
}

// next waits for the bank's next message about an account, after so many.
func (l *lying) next(account string, after int) post {
	l.t.Helper()
	var found []post
	l.until("the bank tells of the transfer", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		found = slices.DeleteFunc(slices.Clone(l.taken), func(p post) bool { return !bytes.Contains(p.body, []byte(`"`+account+`"`)) })
		return len(found) > after
	})
	return found[after]
}

// money sends money to an account, which the bank tells of.
func (l *lying) money(account string, amount flow.Kobo, after int) post {
	l.t.Helper()
	t := rail.Transfer{AccountNumber: account, Amount: amount, ValueTime: l.clock()}
	_, err := l.bank.Transfer(l.t.Context(), t)
	l.must(err)
	return l.next(account, after)
}

// waiting is the account that a session waits for money to.
func (l *lying) waiting() string {
	l.t.Helper()
	s := l.session(flow.Headless)
	_, a, err := l.service.Instruct(l.t.Context(), project, s.ID, checkout.Ask{Method: flow.BankTransfer})
	l.must(err)
	return a.Instructions.AccountNumber
}

// tells gives Till a true message, so often at once.
func (l *lying) tells(p post, times int) {
	l.t.Helper()
	var all sync.WaitGroup
	for range times {
		all.Go(func() {
			if err := l.service.Notice(l.t.Context(), p.header, p.body); err != nil {
				l.t.Errorf("a true message is refused: %v", err)
			}
			l.told.Add(1)
		})
	}
	all.Wait()
}

// round is one of each kind; it returns what was told.
func (l *lying) round() (told []post) {
	l.t.Helper()
	account := l.waiting()
	often := l.money(account, 500_000, 0)
	account = l.waiting()
	first, second := l.money(account, 200_000, 0), l.money(account, 300_000, 1)
	account = l.waiting()
	much := l.money(account, 700_000, 0)
	account = l.waiting()
	little := l.money(account, 100_000, 0)
	nobody := l.nobodys()
	l.rest()
	l.forge(often)
	l.forge(second)
	l.elsewhere(often)
	l.tells(often, 10)
	l.tells(second, 1) // before the first
	l.tells(first, 2)
	l.tells(much, 2)
	l.tells(little, 2)
	l.tells(nobody, 3)
	early := l.early()
	l.want[flow.Matched] += 3 // often, early, and the part that completes another
	l.want[flow.Excess]++
	l.want[flow.Partial] += 2
	l.want[flow.Unmatched]++
	return []post{often, first, second, much, little, nobody, early}
}

// nobodys is money to an account that the bank knows and Till does not.
func (l *lying) nobodys() post {
	l.t.Helper()
	ins, err := l.bank.Start(l.t.Context(), flow.Order{
		Reference: fmt.Sprintf("wsp_ref_nobody%d", l.told.Load()), Session: "wsp_sess_nobody", Method: flow.BankTransfer, Amount: 50_000,
		AccountName: "NOBODY", ExpiresAt: l.clock().Add(time.Hour),
	})
	l.must(err)
	return l.money(ins.AccountNumber, 50_000, 0)
}

// early is money whose message comes while the bank's answer with the account is
// still on its way.
func (l *lying) early() (p post) {
	l.t.Helper()
	l.rail.set(func(r *shakyRail) {
		r.onStart = func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			ins, err := call()
			if err == nil {
				p = l.money(ins.AccountNumber, 500_000, 0)
				l.tells(p, 1)
			}
			return ins, err
		}
	})
	defer l.rail.set(func(r *shakyRail) { r.onStart = nil })
	s := l.session(flow.Headless)
	if _, _, err := l.service.Instruct(l.t.Context(), project, s.ID, checkout.Ask{Method: flow.BankTransfer}); err != nil && flow.CodeOf(err) != flow.CodeSessionPaid {
		l.t.Errorf("instructions of a session that is paid by now: %v", err)
	}
	return p
}

// forge sends what looks like a message and is none, several at once.
func (l *lying) forge(p post) {
	l.t.Helper()
	before := l.version()
	var all sync.WaitGroup
	for name, f := range forgeries(l.t, p, l.clock()) {
		all.Go(func() {
			if err := l.service.Notice(l.t.Context(), f.header, f.body); !errors.Is(err, rail.ErrForged) {
				l.t.Errorf("%s: it is answered with %v", name, err)
			}
			l.lies.Add(1)
		})
	}
	all.Wait()
	if l.version() != before {
		l.t.Error("something was written for a forged message")
	}
}

// forgeries are made of a true message.
func forgeries(t *testing.T, p post, now time.Time) map[string]post {
	t.Helper()
	with := func(signature string, body []byte) post {
		h := p.header.Clone()
		h.Set(sandbox.SignatureHeader, signature)
		return post{h, body}
	}
	said := p.header.Get(sandbox.SignatureHeader)
	bare := p.header.Clone()
	bare.Del(sandbox.SignatureHeader)
	both := p.header.Clone()
	both.Add(sandbox.SignatureHeader, said)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(p.body)
	must(t, z.Close())
	wide := make([]byte, 0, 2*len(p.body))
	for _, c := range p.body {
		wide = append(wide, c, 0)
	}
	more := bytes.Replace(p.body, []byte("{"), []byte(`{"seq":9,`), 1)
	return map[string]post{
		"no signature":             {bare, p.body},
		"a signature cut short":    with(said[:len(said)-2], p.body),
		"another secret":           with(sandbox.Sign("another secret, as long as ours is", now, p.body), p.body),
		"an edited amount":         {p.header, bytes.Replace(p.body, []byte(`"amount":`), []byte(`"amount":9`), 1)},
		"an edited reference":      {p.header, bytes.Replace(p.body, []byte("wsp_"), []byte("wsq_"), 1)},
		"an old time":              with(sandbox.Sign(bankSecret, now.Add(-301*time.Second), p.body), p.body),
		"a time to come":           with(sandbox.Sign(bankSecret, now.Add(301*time.Second), p.body), p.body),
		"another hour, same sum":   with(strings.Replace(said, "t=", "t=1", 1), p.body),
		"told anew, same sum":      with(strings.Replace(sandbox.Sign(bankSecret, now.Add(-time.Hour), p.body), "t="+seconds(now.Add(-time.Hour)), "t="+seconds(now), 1), p.body),
		"upper case":               with(strings.ToUpper(said), p.body),
		"another encoding":         {p.header, wide},
		"a field more":             {p.header, append(slices.Clone(p.body[:len(p.body)-1]), `,"x":1}`...)},
		"a key twice":              {p.header, more},
		"gzip":                     {p.header, packed.Bytes()},
		"two signatures":           {both, p.body},
		"an empty body":            {p.header, nil},
		"more than a notice holds": {p.header, append(slices.Clone(p.body), bytes.Repeat([]byte(" "), 64<<10)...)},
	}
}

// seconds is a time as a signature has it.
func seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// elsewhere sends a true message to an environment that has no bank.
func (l *lying) elsewhere(p post) {
	l.t.Helper()
	db := storetest.Open(l.t, storetest.SQLite(l.t, store.Checkout))
	live, err := checkout.New(checkout.Config{
		DB: db, Rail: rail.Closed{}, Places: &checkout.MemoryPlaces{}, Words: words, Now: l.clock, Rand: l.rand, Alone: true, Send: l.send, Post: l.post,
	})
	l.must(err)
	if err := live.Notice(l.t.Context(), p.header, p.body); err == nil {
		l.t.Error("an environment without a bank takes a message of one")
	}
	l.lies.Add(1)
}

// late lets a day pass, tells everything once more, and pays sessions that are over.
func (l *lying) late(old []post) {
	l.t.Helper()
	account := l.waiting()
	l.rest()
	l.pass(25 * time.Hour)
	for range 3 { // what falls due together is done one after the other
		l.rest()
		l.sound() // at every moment
		l.pass(time.Minute)
	}
	l.rest()
	before := l.movements()
	for _, p := range old {
		if err := l.service.Notice(l.t.Context(), p.header, p.body); !errors.Is(err, rail.ErrForged) {
			l.t.Errorf("a day later the same bytes are answered with %v", err)
		}
		l.lies.Add(1)
		again := post{p.header.Clone(), p.body}
		again.header.Set(sandbox.SignatureHeader, sandbox.Sign(bankSecret, l.clock(), p.body))
		l.tells(again, 1)
	}
	l.rest()
	if got := l.movements(); got != before {
		l.t.Errorf("what was told a day later made %d payments of %d", got, before)
	}
	l.tells(l.money(account, 500_000, 0), 2)
	l.want[flow.Late]++
}

// movements is how many payments are kept, and matched how many with an outcome.
func (l *lying) movements() int { return l.payments("1 = 1") }

func (l *lying) matched(match flow.MatchStatus) int {
	return l.payments("match_status = '" + string(match) + "'")
}

func (l *lying) payments(where string) (n int) {
	l.t.Helper()
	db := l.aside()
	err := db.QueryRowContext(l.t.Context(), "SELECT COUNT(*) FROM payments WHERE "+where).Scan(&n)
	l.must(errors.Join(err, db.Close()))
	return n
}
