package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// The ways in which a bank does what it is asked and does not say so.
var breaks = []string{"hangs", "resets", "half a body"}

// hangs is how long a bank hangs: longer than anybody waits for it.
const hangs = 40 * time.Second

// line is the way from Till to the bank. It lets everything through, and of the
// first order of each reference no answer back.
type line struct {
	w    *world
	to   http.Handler
	mu   sync.Mutex
	on   bool
	n    map[string]int      // orders by what they are for, so that each is broken in each way
	said map[string][]string // by reference: what was asked, and how it ended
}

// newLine lays a line to a bank.
func newLine(tb testing.TB, bank string) (*line, string) {
	tb.Helper()
	to, err := url.Parse(bank)
	must(tb, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	l := &line{to: proxy, n: map[string]int{}, said: map[string][]string{}}
	server := httptest.NewServer(l)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return l, server.URL
}

// ServeHTTP lets a call through.
func (l *line) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	how := l.breaking(r, body)
	if how == "" {
		l.to.ServeHTTP(rw, r)
		return
	}
	answer := httptest.NewRecorder()
	l.to.ServeHTTP(answer, r.WithContext(r.Context())) // the bank has done it
	switch how {
	case "hangs":
		late := time.NewTimer(hangs)
		defer late.Stop()
		select {
		case <-late.C:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case "resets":
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			l.w.wrong("other", "the line: %v", err)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	default:
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		_ = http.NewResponseController(rw).Flush() // or nothing of it is sent at all
		panic(http.ErrAbortHandler)
	}
}

// breaking says in which way a call's answer is kept back, "" for none.
func (l *line) breaking(r *http.Request, body []byte) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var o struct{ Reference, Kind string }
	if !l.on || !strings.HasPrefix(r.URL.Path, "/bank/v1/") {
		return ""
	}
	if r.Method == http.MethodGet {
		for _, about := range []string{"/bank/v1/instruments/", "/bank/v1/disbursements/"} {
			if rest, ok := strings.CutPrefix(r.URL.Path, about); ok && !strings.Contains(rest, "/") {
				l.said[rest] = append(l.said[rest], "asked")
			}
		}
		return ""
	}
	if json.Unmarshal(body, &o) != nil || o.Reference == "" {
		return ""
	}
	before := len(l.said[o.Reference])
	l.said[o.Reference] = append(l.said[o.Reference], "ordered")
	if before > 0 {
		return ""
	}
	kind := r.URL.Path + o.Kind
	l.n[kind]++
	return breaks[l.n[kind]%len(breaks)]
}

// unsaid has the bank keep its answers back of so many orders.
func unsaid(w *world, l *line, orders, together int) (longest time.Duration, asked int) {
	w.tb.Helper()
	l.mu.Lock()
	l.on, l.w = true, w
	l.mu.Unlock()
	places := make(chan struct{}, together)
	var group sync.WaitGroup
	var mu sync.Mutex
	sales, s := make([]sale, orders), &shop{w: w}
	for n := range orders {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			one := &sales[n]
			*one = sale{reference: fmt.Sprint("unsaid-", n), amount: 500_000}
			r, err := w.surely(one.reference, sessionsPath, object{"amount": one.amount, "customerEmail": "bola@example.com", "reference": one.reference})
			if err != nil {
				w.wrong("lost", "%s: %v", one.reference, err)
				return
			}
			one.session = r.text("id")
			began := time.Now()
			if err := s.byAny(one, n); err != nil {
				w.wrong("lost", "%s: %v", one.reference, err)
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(began))
		})
	}
	group.Wait()
	for _, one := range sales {
		if !await.Within(tilltest.Patience, func() bool { return w.status(one.session) == "PAID" }) {
			w.wrong("lost", "%s was paid for and is %q", one.session, w.status(one.session))
		}
	}
	bank := w.books("bank")
	defer bank.Close()
	for session, n := range w.texts(bank, "SELECT session FROM instruments") {
		if n != 1 {
			w.wrong("doubled", "the bank made %d accounts, codes and pages for %s", n, session)
		}
	}
	return longest, l.asked(w, orders)
}

// byAny pays a session by each method in turn.
func (s *shop) byAny(one *sale, n int) error {
	path := sessionsPath + "/" + one.session
	switch n % 3 {
	case 0:
		return s.byCode(one, path)
	case 1:
		return s.byCard(one, path)
	}
	r, err := s.w.surely(one.reference+"-transfer", path+"/pay/bank-transfer", nil)
	if err != nil || r.status >= 300 {
		return fmt.Errorf("pay by transfer: %d %s %w", r.status, r.body, orGone(err))
	}
	return s.w.transfer(one, r.text("accountNumber"), one.amount)
}

// asked ends it that answers are kept back, and returns how many of so many orders
// were asked about before anything else.
func (l *line) asked(w *world, orders int) (asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = false
	if len(l.said) != orders {
		w.wrong("doubled", "%d references were used for %d orders", len(l.said), orders)
	}
	for reference, said := range l.said {
		for n, one := range said {
			if one == "ordered" && n > 0 && said[n-1] != "asked" {
				w.wrong("doubled", "%s was ordered again without a question: %v", reference, said)
			}
		}
		if len(said) > 1 && said[1] == "asked" {
			asked++
		}
	}
	if asked != orders {
		w.wrong("other", "of %d orders without an answer %d were asked about next", orders, asked)
	}
	return asked
}

// unsaidOut has the bank keep its answers back of refunds of so many sales, and of a
// settlement of another one, and tell of none of them by itself either.
func unsaidOut(w *world, l *line, refunds int) (asked int) {
	w.tb.Helper()
	s := &shop{w: w}
	sales := make([]sale, refunds+1)
	for n := range sales {
		sales[n] = sale{reference: fmt.Sprint("unsaid-out-", n), amount: 500_000}
		must(w.tb, w.transfer(&sales[n], w.sell(&sales[n]), sales[n].amount))
	}
	for _, one := range sales {
		w.until(one.reference+" is paid", func() bool { return w.status(one.session) == "PAID" })
	}
	w.weather(object{"up": true, "notifyLossPercent": 100})
	defer w.weather(object{"up": true})
	l.mu.Lock()
	l.on, l.w, l.said = true, w, map[string][]string{}
	l.mu.Unlock()
	each(sales[1:], func(one sale) {
		if err := s.refund(&one); err != nil {
			w.wrong("lost", "%s: %v", one.reference, err)
		}
	})
	must(w.tb, s.payOut(context.Background(), time.Now().AddDate(0, 0, firstPayday).Format(time.DateOnly)))
	kept, bank := w.books("test"), w.books("bank")
	defer kept.Close()
	defer bank.Close()
	if !await.Within(drained, func() bool {
		return w.number(kept, "SELECT COUNT(*) FROM refunds WHERE status = 'PROCESSED'") == int64(refunds) && w.number(kept, "SELECT COUNT(*) FROM settlements WHERE status = 'SUCCEEDED'") == 1
	}) {
		w.wrong("stuck", "refunds are %v, and settlements %v", w.texts(kept, "SELECT status FROM refunds"), w.texts(kept, "SELECT status FROM settlements"))
	}
	a := &audit{w: w, shop: s}
	a.money(kept, bank)
	a.prove()
	return l.asked(w, refunds+1)
}

// onLine is a world whose bank is at the end of a line.
func onLine(tb testing.TB) (*world, *line) {
	tb.Helper()
	var l *line
	w := newWorldWith(tb, func(bank string) string {
		var at string
		l, at = newLine(tb, bank)
		return at
	})
	return w, l
}

func TestWhatTheBankDidAndDidNotSay(t *testing.T) {
	t.Parallel()
	w, l := onLine(t)
	unsaid(w, l, 12, 12)
	unsaidOut(w, l, 3)
	w.verdict()
}

// BenchmarkFaultRail has the bank keep back a thousand answers.
func BenchmarkFaultRail(b *testing.B) {
	const orders, refunds = 1000, 99
	w, l := onLine(b)
	longest, asked := unsaid(w, l, orders, 64)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "orders without an answer\tasked about first\treferences\taccounts, codes and pages for a session\tlost\tdoubled\tlongest, with retries\t")
	fmt.Fprintf(out, "%d (%s)\t%d\t%d\t1\t%d\t%d\t%s\t\n", orders, strings.Join(breaks, ", "), asked, len(l.said), w.count("lost"), w.count("doubled"), ms(longest))
	_ = out.Flush()
	asked = unsaidOut(w, l, refunds)
	fmt.Printf("%d refunds and a payout without an answer: %d asked about first, %d lost, %d sent twice\n", refunds, asked, w.count("lost")+w.count("stuck"), w.count("doubled"))
	w.verdict()
}
