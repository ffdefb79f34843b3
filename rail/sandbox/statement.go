package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/rail"
)

// The bounds of a statement.
const (
	statementPage  = 500     // movements in an answer
	statementPages = 400     // pages that are asked for at once
	maxStatement   = 1 << 20 // bytes of an answer
)

// page is a page of a statement, oldest first.
type page struct {
	Items []movement `json:"items"`
	Next  string     `json:"next"` // ask again after this one; "": that was all
}

// span is what a statement is asked for: what comes after a movement, by its
// value time and number, and has a value time before to. Times are Unix ms.
type span struct {
	at, to int64
	seq    int64 // 0 comes before every movement
}

// statement is GET /bank/v1/statement: what was booked with a value time from
// from until before to.
func (b *Bank) statement(w http.ResponseWriter, r *http.Request) {
	var s span
	b.railCall("statement", func(_ http.ResponseWriter, r *http.Request) (order, error) {
		var ok bool
		if s, ok = readSpan(r.URL.Query()); !ok {
			return order{}, refuse(http.StatusBadRequest, "invalid_span", "from and to are times, from before to, and after is the next of an earlier answer")
		}
		return order{}, nil
	}, func(f books, _ order, _ *http.Request) (answered, error) {
		out, err := f.statement(s, b.now())
		return answered{status: http.StatusOK, body: out}, err
	})(w, r)
}

// readSpan reads what a statement is asked for; false for what is none.
func readSpan(q url.Values) (span, bool) {
	from, errFrom := time.Parse(time.RFC3339Nano, q.Get("from"))
	to, errTo := time.Parse(time.RFC3339Nano, q.Get("to"))
	s := span{at: ceil(from), to: ceil(to)}
	if errFrom != nil || errTo != nil || !from.Before(to) || s.at < 0 {
		return span{}, false
	}
	after := q.Get("after")
	if after == "" {
		return s, true
	}
	at, seq, _ := strings.Cut(after, "-")
	var errAt, errSeq error
	s.at, errAt = strconv.ParseInt(at, 10, 64)
	s.seq, errSeq = strconv.ParseInt(seq, 10, 64)
	return s, errAt == nil && errSeq == nil && s.at >= ceil(from) && s.seq > 0
}

// ceil is the first millisecond that is not before a time: the books keep no
// less, and a bound between two of them parts them there.
func ceil(at time.Time) int64 {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// statement is a page of what was booked and has landed. What was declined, sent
// back or not sent at all moved no money.
func (b books) statement(s span, now time.Time) (out page, err error) {
	out.Items, err = b.moves(now, `(m.value_time, m.seq) > (?, ?) AND m.value_time < ? AND coalesce(t.lands_at, 0) <= ? AND coalesce(t.returned, 0) = 0
		AND (m.kind IN ('credit', 'reversal', 'paid_out') OR m.kind = 'payout_failed' AND m.reverses IS NOT NULL)
		ORDER BY m.value_time, m.seq LIMIT ?`, s.at, s.seq, s.to, now.UnixMilli(), statementPage+1)
	if len(out.Items) > statementPage {
		out.Items = out.Items[:statementPage]
		last := out.Items[statementPage-1]
		out.Next = strconv.FormatInt(last.ValueTime.UnixMilli(), 10) + "-" + strconv.FormatInt(last.Seq, 10)
	}
	return out, wrap("read the statement", err)
}

// Statement lists what the bank booked with a value time from from until before
// to, oldest first. More than 200 000 movements are read in parts: of less than two
// minutes, or where more than two days are asked for, they are rail.ErrTooMuch.
func (r *Rail) Statement(ctx context.Context, from, to time.Time) ([]flow.Notice, error) {
	if !from.Before(to) {
		return nil, nil
	}
	return rail.InParts(ctx, r.stretch, from, to)
}

// stretch reads a statement page by page.
func (r *Rail) stretch(ctx context.Context, from, to time.Time) ([]flow.Notice, error) {
	q := url.Values{"from": {from.UTC().Format(time.RFC3339Nano)}, "to": {to.UTC().Format(time.RFC3339Nano)}}
	var out []flow.Notice
	for range r.pages {
		var got page
		if _, err := r.callFor(ctx, http.MethodGet, "/bank/v1/statement?"+q.Encode(), nil, &got, maxStatement); err != nil {
			return nil, wrap("read the statement", err)
		}
		for _, m := range got.Items {
			n, err := noticeOf(m)
			if err == nil && (n.PaidAt.Before(from) || !n.PaidAt.Before(to)) {
				err = errors.New("the answer is about another time")
			}
			if err != nil {
				return nil, fmt.Errorf("read the statement: %w: %w", rail.ErrUnknown, err)
			}
			out = append(out, n)
		}
		if got.Next == "" {
			return out, nil
		}
		if got.Next == q.Get("after") {
			return nil, fmt.Errorf("read the statement: %w: it does not end", rail.ErrUnknown)
		}
		q.Set("after", got.Next)
	}
	return nil, fmt.Errorf("read the statement: %w: %w", rail.ErrUnknown, rail.ErrTooMuch)
}
