package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"till/rail"
)

// The bounds of telling the bank of us: often at first, for it may just be starting.
const (
	registerSoon   = 500 * time.Millisecond
	registerSeldom = 10 * time.Second
	// registerSaid is how long the same fault is not said again.
	registerSaid = 10 * time.Minute
)

// noticeURL is where the bank tells of money: on this machine, where it is as well,
// and never the public address, which a proxy has. Each process has its own.
func (a *app) noticeURL() string { return "http://" + a.heardAt + "/v1/rails/sandbox/notifications" }

// registerBankOnce tells the bank where its notices go.
func (a *app) registerBankOnce(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := a.rail.Register(short, a.noticeURL())
	if ctx.Err() == nil {
		a.bankKnows.tried(ctx, a.log, err, time.Now())
	}
	return err == nil
}

// registerBank tells the bank again until it has heard. Notices that it could
// not deliver while we were away come at once then: the API serves by now.
func (a *app) registerBank(ctx context.Context) error {
	for wait := registerSoon; ctx.Err() == nil && !a.registerBankOnce(ctx); wait = min(2*wait, registerSeldom) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// acquaintance is whether the bank knows us. A fault is said once, and again when it is
// another or lasts for long.
type acquaintance struct {
	mu    sync.Mutex
	fault error // why it does not; nil while it does
	said  time.Time
}

// why is why the bank does not know us, nil while it does.
func (k *acquaintance) why() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault
}

// tried keeps what came of a try, and says it where it is news.
func (k *acquaintance) tried(ctx context.Context, log *slog.Logger, err error, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.fault
	k.fault = err
	switch {
	case err == nil && before == nil:
	case err == nil:
		log.LogAttrs(ctx, slog.LevelWarn, "the bank knows us now") // as loud as its not knowing us
	case before != nil && before.Error() == err.Error() && now.Sub(k.said) < registerSaid:
	default:
		k.said = now
		if errors.Is(err, rail.ErrRejected) {
			log.LogAttrs(ctx, slog.LevelWarn, "the bank refuses to register us: payers get no instructions, and nothing can be paid", slog.String("error", err.Error()))
			return
		}
		log.LogAttrs(ctx, slog.LevelWarn, "the bank does not answer yet", slog.String("error", err.Error()))
	}
}

// reachedHere says whether who listens on an address is reached on loopback.
func reachedHere(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && (tcp.IP.IsLoopback() || tcp.IP.IsUnspecified())
}

// listenForBank finds where the bank reaches us on this machine. Where the API
// listens on one address of the network alone, it listens on loopback too.
func (a *app) listenForBank(ctx context.Context) error {
	if reachedHere(a.listener.Addr()) {
		a.heardAt = reached(a.listener.Addr().String())
		return nil
	}
	var lc net.ListenConfig
	here, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a.listener, a.heardAt = join(a.listener, here), here.Addr().String()
	return nil
}

// joined is two listeners as one, at the address of the first.
type joined struct {
	net.Listener

	second net.Listener
	came   chan arrival
	closed chan struct{}
	once   sync.Once
}

// arrival is what a listener accepted.
type arrival struct {
	conn net.Conn
	err  error
}

func join(first, second net.Listener) *joined {
	j := &joined{Listener: first, second: second, came: make(chan arrival), closed: make(chan struct{})}
	for _, ln := range []net.Listener{first, second} {
		go func() {
			for {
				conn, err := ln.Accept()
				select {
				case j.came <- arrival{conn, err}:
				case <-j.closed:
					if err == nil {
						_ = conn.Close()
					}
					return
				}
			}
		}()
	}
	return j
}

// Accept waits for the next connection to either.
func (j *joined) Accept() (net.Conn, error) {
	select {
	case one := <-j.came:
		return one.conn, one.err
	case <-j.closed:
		return nil, net.ErrClosed
	}
}

// Close closes both.
func (j *joined) Close() error {
	j.once.Do(func() { close(j.closed) })
	return errors.Join(j.Listener.Close(), j.second.Close())
}
