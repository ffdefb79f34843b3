package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// ClaimPhone keeps that a pretend phone is a project's, and returns whose it is:
// the first to claim it.
func (t *Tx) ClaimPhone(ctx context.Context, phone flow.Phone, project flow.ProjectID, now time.Time) (flow.ProjectID, error) {
	err := t.run.put(ctx, `INSERT INTO phones (phone, project, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		string(phone), project, flow.Millis(now))
	if err != nil {
		return "", fmt.Errorf("claim a phone: %w", err)
	}
	owner, _, err := t.PhoneOwner(ctx, phone)
	return owner, err
}

// ReleasePhone forgets whose a pretend phone was.
func (t *Tx) ReleasePhone(ctx context.Context, phone flow.Phone) error {
	if err := t.run.put(ctx, `DELETE FROM phones WHERE phone = ?`, string(phone)); err != nil {
		return fmt.Errorf("release a phone: %w", err)
	}
	return nil
}

// PhoneOwner is whose a pretend phone is and since when; "" where nobody
// claimed it.
func (r Reader) PhoneOwner(ctx context.Context, phone flow.Phone) (flow.ProjectID, time.Time, error) {
	var owner flow.ProjectID
	var since int64
	if _, err := r.run.one(ctx, `SELECT project, created_at FROM phones WHERE phone = ?`, []any{string(phone)}, &owner, &since); err != nil {
		return "", time.Time{}, fmt.Errorf("read whose a phone is: %w", err)
	}
	return owner, flow.FromMillis(since), nil
}
