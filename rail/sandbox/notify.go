package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The bounds of sending notices.
const (
	senders       = 8 // notices under way at once
	notifyTimeout = 10 * time.Second
	dialTimeout   = 3 * time.Second
	maxAnswer     = 4 << 10         // of an answer is read; the rest is not wanted
	look          = time.Second     // how long Run sleeps at most while something is owed
	trouble       = 2 * time.Second // how long it sleeps when its file fails
)

// schedule is how long the bank waits after each failed try; after the last it
// gives up, and only asking finds the money.
var schedule = [...]time.Duration{
	200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
}

var errNotifyAddress = errors.New("notices go to loopback addresses only")

// newNotifier is a client that goes nowhere but where it is told on loopback:
// no proxy, no redirects. A carrier, where there is one, goes in place of it.
func newNotifier(carrier http.RoundTripper) *http.Client {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if carrier != nil {
		return &http.Client{Timeout: notifyTimeout, CheckRedirect: noRedirect, Transport: carrier}
	}
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		Control: func(_, address string, _ syscall.RawConn) error { return notifyAddress(address) },
	}
	return &http.Client{
		Timeout: notifyTimeout, CheckRedirect: noRedirect,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxConnsPerHost: senders, MaxIdleConnsPerHost: senders,
			IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: maxHeader,
		},
	}
}

// Run sends the notices that are owed until ctx ends, each at least once, until
// it is answered with 2xx or the schedule is over. Error: ErrRunning.
func (b *Bank) Run(ctx context.Context) error {
	if !b.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer b.running.Store(false)
	var under sync.WaitGroup
	defer under.Wait()
	busy := map[int64]bool{} // notices under way
	done := make(chan int64, senders)
	for {
		wait, err := b.sendDue(busy, func(c registered, n notice) {
			under.Go(func() {
				b.send(ctx, c, n)
				done <- n.id // never blocks: no more are under way than it holds
			})
		})
		if err != nil && ctx.Err() == nil {
			b.log.LogAttrs(ctx, slog.LevelError, "the pretend bank cannot read what it owes", slog.String("error", err.Error()))
			wait = trouble
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case id := <-done:
			delete(busy, id)
		case <-b.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// sendDue starts what is due, as far as there are senders, and says how long
// nothing else will be.
func (b *Bank) sendDue(busy map[int64]bool, start func(registered, notice)) (time.Duration, error) {
	var to registered
	var owed []notice
	var at []time.Time
	var now time.Time // one for both: what is due is what it is by then, even when the clock is moved meanwhile
	err := b.file.view(func(f books) (err error) {
		if to, err = f.client(); err != nil || to.NotifyURL == "" {
			return err // owed, but nobody to tell yet: registering wakes us
		}
		now = b.now()
		owed, at, err = f.due(2*senders, now)
		return err
	})
	if err != nil {
		return trouble, err
	}
	wait := time.Hour // nothing is owed: only a nudge can change that
	for i, n := range owed {
		if busy[n.id] {
			continue
		}
		if left := at[i].Sub(now); left > 0 {
			// The bank's clock may be set by hand, so it is looked at often.
			wait = min(wait, left, b.cfg.Look)
			break
		}
		if len(busy) == senders {
			break // one that ends wakes us
		}
		busy[n.id] = true
		start(to, n)
	}
	return wait, nil
}

// send tries once to tell Till and keeps what came of it.
func (b *Bank) send(ctx context.Context, to registered, n notice) {
	after, failure := b.tell(ctx, to, n)
	if failure != nil && ctx.Err() != nil {
		return // the bank stops; the try does not count
	}
	err := b.file.update(func(f books) error {
		if failure == nil {
			return errors.Join(f.told(n.id), f.follow(to, after))
		}
		if n.tries >= len(b.schedule) {
			return f.putOff(n.id, n.tries+1, b.now(), "given_up")
		}
		wait := b.schedule[n.tries]
		if now, err := f.client(); err != nil {
			return err
		} else if !to.knows(now) {
			wait = 0
		}
		return f.putOff(n.id, n.tries+1, b.now().Add(wait), "owed")
	})
	level := slog.LevelDebug
	text := "told"
	if failure != nil {
		level, text = slog.LevelWarn, failure.Error()
	}
	b.log.LogAttrs(ctx, level, "the pretend bank sent a notice", slog.String("transaction", n.move.ID),
		slog.String("reference", n.move.Reference), slog.Int("tries", n.tries+1), slog.String("outcome", text))
	if err != nil {
		b.log.LogAttrs(ctx, slog.LevelError, "the pretend bank cannot keep what came of a notice", slog.String("error", err.Error()))
	}
}

// tell tries the addresses of a client until one takes a notice, and says how they
// are to be tried next: that one first, and those no more where nobody listens,
// for whoever starts there registers. The error is that of the first.
func (b *Bank) tell(ctx context.Context, to registered, n notice) (after registered, failure error) {
	var passed []string
	for i, at := range to.addresses() {
		err := b.post(ctx, client{at, to.Secret}, n)
		if err == nil {
			after.client = client{at, to.Secret}
			after.Others = append(passed, to.addresses()[i+1:]...)
			return after, nil
		}
		if failure == nil {
			failure = err
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			passed = append(passed, at)
		}
	}
	return to, failure
}

// post is one signed call; nil when it was answered with 2xx.
func (b *Bank) post(ctx context.Context, to client, n notice) error {
	body, err := json.Marshal(n.move)
	if err != nil {
		return fmt.Errorf("write a notice: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.NotifyURL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("write a notice: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	// Signed anew at each try, so that a late one is not taken for a replay.
	req.Header.Set(SignatureHeader, Sign(to.Secret, b.cfg.Now(), body))
	res, err := b.notifier.Do(req)
	if err != nil {
		return fmt.Errorf("send a notice: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // so that the connection serves again
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return errors.New("send a notice: answered with " + strconv.Itoa(res.StatusCode))
	}
	return nil
}

// notifyAddress refuses to dial anything but loopback, whatever a name resolved to.
func notifyAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("dial %s: %w", address, errNotifyAddress)
	}
	return nil
}
