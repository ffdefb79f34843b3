package crash

import (
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
	n    int
	said map[string][]string // by reference: what was asked, and how it ended
}

// newLine lays a line to a bank.
func newLine(tb testing.TB, bank string) (*line, string) {
	tb.Helper()
	to, err := url.Parse(bank)
	must(tb, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	l := &line{to: proxy, said: map[string][]string{}}
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
		panic(http.ErrAbortHandler)
	}
}

// breaking says in which way a call's answer is kept back, "" for none.
func (l *line) breaking(r *http.Request, body []byte) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var o struct{ Reference string }
	if !l.on || !strings.HasPrefix(r.URL.Path, "/bank/v1/") {
		return ""
	}
	if r.Method == http.MethodGet {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/bank/v1/instruments/"); ok && !strings.Contains(rest, "/") {
			l.said[rest] = append(l.said[rest], "asked")
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
	l.n++
	return breaks[l.n%len(breaks)]
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
	sales := make([]sale, orders)
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
			r, err = w.surely(one.reference+"-transfer", sessionsPath+"/"+one.session+"/pay/bank-transfer", nil)
			if err == nil && r.status == http.StatusOK {
				err = w.transfer(one, r.text("accountNumber"), one.amount)
			}
			if err != nil || r.status != http.StatusOK {
				w.wrong("lost", "%s: %d %s (%v)", one.reference, r.status, r.body, err)
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(began))
		})
	}
	group.Wait()
	for _, one := range sales {
		if !waits(tilltest.Patience, func() bool { return w.status(one.session) == "PAID" }) {
			w.wrong("lost", "%s was paid for and is %q", one.session, w.status(one.session))
		}
	}
	bank := w.books("bank")
	defer bank.Close()
	for session, n := range w.texts(bank, "SELECT session FROM instruments") {
		if n != 1 {
			w.wrong("doubled", "the bank made %d accounts for %s", n, session)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = false
	if len(l.said) != orders {
		w.wrong("doubled", "%d references were used for %d sessions", len(l.said), orders)
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
	return longest, asked
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
	w.verdict()
}

// BenchmarkFaultRail has the bank keep back a thousand answers.
func BenchmarkFaultRail(b *testing.B) {
	const orders = 1000
	w, l := onLine(b)
	longest, asked := unsaid(w, l, orders, 64)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "orders without an answer\tasked about first\treferences\taccounts for a session\tlost\tdoubled\tlongest, with retries\t")
	fmt.Fprintf(out, "%d (%s)\t%d\t%d\t1\t%d\t%d\t%s\t\n", orders, strings.Join(breaks, ", "), asked, len(l.said), w.count("lost"), w.count("doubled"), ms(longest))
	_ = out.Flush()
	w.verdict()
}
