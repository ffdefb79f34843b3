package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// The bounds of telling systemd how we are.
const (
	notifyPatience = 2 * time.Second
	notifyFirst    = 20 * time.Millisecond // until it is asked again whether we answer yet
	watchdogLeast  = 10 * time.Millisecond
	extendEvery    = time.Second
	extendBy       = 30 * time.Second
)

// extended asks systemd, where it started us, to wait for as long as something
// takes that a start cannot do without: a start that is ended in the middle of a
// long migration is begun again, for ever.
func (a *app) extended(ctx context.Context) (done func()) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		ticker := time.NewTicker(extendEvery)
		defer ticker.Stop()
		for {
			a.tell(ctx, socket, "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(extendBy.Microseconds(), 10))
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		stop()
		asking.Wait()
	}
}

// tell tells systemd a state.
func (a *app) tell(ctx context.Context, socket, state string) {
	if err := notify(socket, state); err != nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, "systemd was not told how we are", slog.String("state", state), slog.String("error", err.Error()))
	}
}

// supervised tells systemd, where it started us, when requests are answered, again
// and again that they still are, and when we begin to stop. What it is told is what
// a request of our own has found: a process that hangs says nothing, and is
// started anew.
func (a *app) supervised(ctx context.Context) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	every := time.Duration(0)
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		every = max(time.Duration(us)*time.Microsecond/2, watchdogLeast)
	}
	ticker := time.NewTicker(notifyFirst)
	defer ticker.Stop()
	for ready := false; ; {
		select {
		case <-ctx.Done():
			a.tell(ctx, socket, "STOPPING=1")
			return nil
		case <-ticker.C:
		}
		if !answers(ctx, "http://"+reached(a.listener.Addr().String())) {
			continue
		}
		if ready {
			a.tell(ctx, socket, "WATCHDOG=1")
			continue
		}
		ready = true
		a.tell(ctx, socket, "READY=1")
		if every == 0 {
			ticker.Stop()
		} else {
			ticker.Reset(every)
		}
	}
}

// notify writes one state to systemd's socket. A name that begins with @ is one
// without a file.
func notify(socket, state string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("reach %s: %w", socket, err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetWriteDeadline(time.Now().Add(notifyPatience)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}
