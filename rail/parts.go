package rail

import (
	"context"
	"errors"
	"time"

	"till/flow"
)

// The bounds of what is read in parts.
const (
	longestInParts = 48 * time.Hour // more is for whoever asks to part: it holds what a day holds many times over
	shortestPart   = time.Minute
)

// InParts reads a statement, in halves where it is too long for the provider
// (ErrTooMuch), and these in halves where they are too long still.
func InParts(ctx context.Context, read func(ctx context.Context, from, to time.Time) ([]flow.Notice, error), from, to time.Time) ([]flow.Notice, error) {
	list, err := read(ctx, from, to)
	half := to.Sub(from) / 2
	if !errors.Is(err, ErrTooMuch) || 2*half > longestInParts || half < shortestPart {
		return list, err
	}
	first, err := InParts(ctx, read, from, from.Add(half))
	if err != nil {
		return nil, err
	}
	second, err := InParts(ctx, read, from.Add(half), to)
	if err != nil {
		return nil, err
	}
	return append(first, second...), nil
}
