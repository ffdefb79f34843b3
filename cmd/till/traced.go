package main

import (
	"context"
	"log/slog"

	"till/flow"
)

// traced adds to each line of the log the trace that it belongs to.
type traced struct{ slog.Handler }

// Handle implements slog.Handler.
func (t traced) Handle(ctx context.Context, line slog.Record) error {
	if trace := flow.TraceOf(ctx); !trace.Zero() {
		line.AddAttrs(slog.String("trace_id", trace.Name()))
	}
	return t.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }
