package crash

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// waitMost is how long a call may wait for a store that another process holds,
// and slack what a busy machine may add to it.
const (
	waitMost = 5 * time.Second
	slack    = 1500 * time.Millisecond
)

// held is what it came to that another process held the store.
type held struct {
	hold     time.Duration
	calls    int
	kept     int // answered with 2xx while it was held or right after
	refused  int // with 503, storage_unavailable and Retry-After
	longest  time.Duration
	readyFor time.Duration // how long GET /readyz took to say that it is not
	noticed  int           // tries that a notice of the bank took
	again    time.Duration // until all works once it is let go
}

// busy has another process hold the write lock of Till's store while calls come
// in and the bank tells of money.
func busy(w *world, hold time.Duration, calls int) held {
	w.tb.Helper()
	out := held{hold: hold, calls: calls}
	prefix := fmt.Sprintf("busy-%s-", hold)
	one := sale{reference: prefix + "paid", amount: 500_000}
	account := w.sell(&one)
	bank := w.books("bank")
	defer bank.Close()
	lock := w.lock()
	began := time.Now()
	must(w.tb, w.transfer(&one, account, one.amount))
	var mu sync.Mutex
	var group sync.WaitGroup
	call := func(n int) {
		key := fmt.Sprint(prefix, n)
		r, err := w.call(http.MethodPost, sessionsPath, key, `{"amount":500000,"customerEmail":"bola@example.com","reference":"`+key+`"}`)
		mu.Lock()
		defer mu.Unlock()
		out.longest = max(out.longest, r.took)
		switch {
		case err != nil:
			w.wrong("other", "%s: %v", key, err)
		case r.status == http.StatusServiceUnavailable && r.code() == "storage_unavailable" && r.retry != "":
			out.refused++
		case r.status == http.StatusCreated:
			out.kept++
		default:
			w.wrong("other", "%s: %d %s", key, r.status, r.body)
		}
	}
	for n := range calls {
		group.Go(func() { call(n) })
		if n == calls/2 && hold > 2*time.Second {
			group.Go(func() {
				r, err := w.call(http.MethodGet, "/readyz", "", "")
				if err != nil || r.status != http.StatusServiceUnavailable {
					w.wrong("other", "readyz says %d %s (%v) of a store that does not take anything", r.status, r.body, err)
				}
				out.readyFor = r.took
			})
		}
		time.Sleep(hold * 8 / 10 / time.Duration(calls)) // calls come at a pace of their own
	}
	time.Sleep(time.Until(began.Add(hold)))
	out.noticed = int(w.number(bank, "SELECT COALESCE(MAX(tries), 0) FROM notices"))
	if told := w.number(bank, "SELECT COUNT(*) FROM notices WHERE state = 'owed'"); hold > 2*time.Second && told == 0 {
		w.wrong("lost", "a notice was taken while the store was held")
	}
	let := time.Now()
	lock()
	group.Wait()
	w.until("Till works again", w.ready)
	out.again = time.Since(let)
	for n := range calls { // whatever became of the first call, the second is answered for good
		key := fmt.Sprint(prefix, n)
		if r, err := w.surely(key, sessionsPath, object{"amount": 500_000, "customerEmail": "bola@example.com", "reference": key}); err != nil || r.status != http.StatusCreated {
			w.wrong("lost", "%s: %d %s (%v)", key, r.status, r.body, err)
		}
	}
	w.until("the payment is there", func() bool { return w.status(one.session) == "PAID" })
	if hold < waitMost-slack && out.kept != calls || hold > waitMost+slack && (out.refused == 0 || out.noticed == 0) {
		w.wrong("other", "of a store that was held for %s: %+v", hold, out)
	}
	if out.longest > waitMost+slack || out.readyFor > waitMost+slack {
		w.wrong("slow", "while the store was held for %s a call waited for %s, and readyz for %s", hold, out.longest, out.readyFor)
	}
	return out
}

const sessionsPath = "/v1/whatsapp/checkout/sessions"

// sell opens a session to be paid by transfer, and returns its account.
func (w *world) sell(one *sale) (account string) {
	w.tb.Helper()
	r, err := w.surely(one.reference, sessionsPath, object{"amount": one.amount, "customerEmail": "bola@example.com", "reference": one.reference})
	if err == nil {
		one.session = r.text("id")
		r, err = w.surely(one.reference+"-transfer", sessionsPath+"/"+one.session+"/pay/bank-transfer", nil)
	}
	if account = r.text("accountNumber"); err != nil || account == "" {
		w.tb.Fatalf("sell %s: %d %s (%v)", one.reference, r.status, r.body, err)
	}
	return account
}

// status is a session's, "" while it cannot be read.
func (w *world) status(session string) string {
	r, _ := w.call(http.MethodGet, sessionsPath+"/"+session, "", "")
	return r.text("status")
}

// lock takes the write lock of Till's store, as another process; what it returns
// lets it go.
func (w *world) lock() func() {
	w.tb.Helper()
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+w.file("test.db")+"?_pragma=busy_timeout(20000)")
	must(w.tb, err)
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	must(w.tb, err)
	return func() {
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			w.tb.Error(err)
		}
		if err := conn.Close(); err != nil {
			w.tb.Error(err)
		}
		if err := db.Close(); err != nil {
			w.tb.Error(err)
		}
	}
}

func TestAStoreThatAnotherProcessHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy(w, time.Second, 10)
	busy(w, 7*time.Second, 20) // longer than anybody waits
	w.verdict()
}

// BenchmarkFaultBusy holds the store for 1, 5 and 30 s with a hundred calls each.
func BenchmarkFaultBusy(b *testing.B) {
	w := newWorld(b)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "held\tcalls\tkept\t503\tlongest wait\treadyz\ttries of a notice\tagain after\tlost\t")
	for _, hold := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		r := busy(w, hold, 100)
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%s\t%s\t%d\t%s\t%d\t\n", r.hold, r.calls, r.kept, r.refused, ms(r.longest), ms(r.readyFor), r.noticed, ms(r.again), w.count("lost"))
	}
	_ = out.Flush()
	w.verdict()
}

// ms is a duration without what nobody reads.
func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
