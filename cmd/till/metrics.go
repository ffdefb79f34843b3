package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"time"

	"till/api"
	"till/cmd/till/doctor"
	"till/cmd/till/meter"
	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// openMetrics listens where metrics are read. That another program has the place
// which nobody chose keeps no payment from being taken: it is said, and there are
// no metrics.
func (a *app) openMetrics(ctx context.Context) error {
	if !a.set.Metrics() {
		return nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", a.set.MetricsAddr)
	if err != nil && a.set.MetricsAddr == config.DefaultMetricsAddr {
		a.log.LogAttrs(ctx, slog.LevelWarn, "nobody can read metrics: another program listens there; choose another --metrics-addr, or off",
			slog.String("address", a.set.MetricsAddr), slog.String("error", err.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("metrics cannot be read on %s: %w (choose another --metrics-addr, or off)", a.set.MetricsAddr, err)
	}
	a.metrics = ln
	a.closing(func() error {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

// watch has the meter show what nobody tells it, and answers who reads it.
func (a *app) watch(ctx context.Context, server *api.Server, test, live *store.DB) {
	a.meter.Live(meter.LiveConfig{
		Deliveries: map[flow.Environment]func() checkout.Deliveries{flow.Test: a.test.Deliveries, flow.Live: a.live.Deliveries}, Numbers: a.board.Numbers,
		Stores: map[string]*store.DB{"accounts": a.settings, string(flow.Test): test, string(flow.Live): live}, Requests: server.AtWork, Now: time.Now,
	})
	now := time.Now
	began := now()
	c := meter.WatchConfig{
		Places: []meter.Place{{Env: flow.Test, Reader: test.Reader, Now: a.clock.Now}, {Env: flow.Live, Reader: live.Reader, Now: time.Now}},
		Parts:  a.parts, Now: time.Now, Ran: func() time.Duration { return now().Sub(began) }, Log: a.log,
		Disk:   func() (free, all uint64, err error) { return doctor.DiskSpace(a.set.DataDir) },
		Clocks: map[string]func(context.Context) (time.Time, bool, error){"postgres": a.settings.Clock},
	}
	if a.set.RedisURL != "" {
		c.Clocks["redis"] = func(ctx context.Context) (time.Time, bool, error) {
			said, err := a.redis.Time(ctx).Result()
			return said, err == nil, err
		}
	}
	if a.set.BankURL != "" { // else it is within this process
		c.Clocks["bank"] = a.bankClock.Now
	}
	if a.set.DatabaseURL == "" {
		c.Backup = func() time.Time { return doctor.LastBackup(a.set.DataDir) }
		for _, name := range []string{"accounts", "test", "live"} {
			c.Logs = append(c.Logs, under(a.set.DataDir, name+".db-wal"))
		}
	}
	w := a.meter.Watch(c)
	a.group.Go(func() error { return w.Run(ctx) })
	if a.metrics == nil {
		return
	}
	a.group.Go(func() error {
		err := a.meter.Serve(ctx, a.metrics, string(a.set.MetricsToken), log.New(stdLog{a.log}, "", 0))
		if err != nil && ctx.Err() == nil { // payments go on without it
			a.log.LogAttrs(ctx, slog.LevelError, "nobody can read metrics any more", slog.String("error", err.Error()))
		}
		return nil
	})
}

// parts are those that /readyz asks, by name.
func (a *app) parts(ctx context.Context) []meter.Part {
	var out []meter.Part
	for _, c := range a.ready(ctx) {
		out = append(out, meter.Part{Name: c.Name, OK: c.OK})
	}
	return out
}
