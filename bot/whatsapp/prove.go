package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// The times of the proofs that numbers hear.
const (
	signWithin = time.Minute
	signAgain  = 5 * time.Second // the next round after one in which somebody heard nothing
	signJitter = 5               // a fifth of the time between two rounds
)

// What is known of the phone of a number that is alone.
const (
	phoneUnknown = iota
	phoneAnswers
	phoneSilent
)

// signs lets numbers prove to each other that they hear, until ctx ends.
func (f *Fleet) signs(ctx context.Context) {
	wait := f.jittered(0)
	for round := uint64(1); ; round++ {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = f.jittered(round)
		if !f.Prove(ctx) {
			wait = min(wait, signAgain)
		}
	}
}

// jittered is the time to the next round: a little more or less than Every, and
// the same for the same process and round.
func (f *Fleet) jittered(round uint64) time.Duration {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(f.cfg.Leases.Holder()), round))
	part := f.cfg.Every / signJitter
	return f.cfg.Every - part/2 + time.Duration(binary.BigEndian.Uint64(sum[:8])%uint64(max(part, 1))) //nolint:gosec // of a part of a duration
}

// Prove has every number that is connected hear from another one, and says
// whether all did. One number alone writes to its own phone: that one's silence
// is no proof of anything but that it may be off.
func (f *Fleet) Prove(ctx context.Context) bool {
	asked := map[string]bool{"": true} // a number that is linked twice has no other in itself
	lines := slices.DeleteFunc(f.running(), func(c *Client) bool {
		number := c.Number()
		if asked[number] || c.Syncing() || f.cfg.Board.Killed(number) {
			return true
		}
		asked[number] = true
		return false
	})
	all, mu := true, sync.Mutex{}
	var round sync.WaitGroup
	for i, from := range lines {
		to := lines[(i+1)%len(lines)]
		round.Go(func() {
			if !f.prove(ctx, from, to) {
				mu.Lock()
				defer mu.Unlock()
				all = false
			}
		})
	}
	round.Wait()
	return all
}

func (f *Fleet) prove(ctx context.Context, from, to *Client) bool {
	raw := make([]byte, 9)
	if _, err := io.ReadFull(f.cfg.Rand, raw); err != nil {
		return true
	}
	heard, err := from.sign(ctx, to, "3EB0"+strings.ToUpper(fmt.Sprintf("%x", raw)), f.cfg.Within)
	switch {
	case err != nil: // it was not sent: that says nothing of who should have heard it
		from.log.LogAttrs(ctx, slog.LevelDebug, "whatsapp sign not sent", slog.String("error", scrub(err.Error())))
	case from == to && !heard:
		// That it never answered says least: there may be no such phone.
		switch f.alone.Swap(phoneSilent) {
		case phoneAnswers:
			from.log.LogAttrs(ctx, slog.LevelWarn, "whatsapp number has no proof that it hears any more: its phone does not answer")
		case phoneUnknown:
			from.log.LogAttrs(ctx, slog.LevelInfo, "whatsapp number has no proof that it hears: its phone does not answer")
		}
	default:
		if from == to {
			f.alone.Store(phoneAnswers)
		}
		to.hears(ctx, heard)
		return heard
	}
	return true
}
