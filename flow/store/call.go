package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// KeptCall is an idempotent call as it is kept. The store never sees what the
// caller sent or was answered: the key and the request are hashes, and the
// answer is sealed.
type KeptCall struct {
	Hash   string // of the request
	Made   string // id of what was made, or its path
	Status int    // 0 while it runs
	Body   []byte // sealed
	At     time.Time
}

// Call reads an idempotent call by whose it is and the hash of its key; found is
// false for a new key.
func (r Reader) Call(ctx context.Context, scope, key string) (c KeptCall, found bool, err error) {
	var at int64
	found, err = r.run.one(ctx, `SELECT hash, made, status, body, created_at FROM calls WHERE scope = ? AND key = ?`,
		[]any{scope, key}, &c.Hash, &c.Made, &c.Status, &c.Body, &at)
	if err != nil {
		return KeptCall{}, false, fmt.Errorf("look an idempotency key up: %w", err)
	}
	c.At = flow.FromMillis(at)
	return c, found, nil
}

// SaveCall keeps an idempotent call and, once it is known, its answer.
func (t *Tx) SaveCall(ctx context.Context, scope, key string, c KeptCall) error {
	err := t.run.put(ctx, `INSERT INTO calls (scope, key, hash, made, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (scope, key) DO UPDATE SET hash = excluded.hash, made = excluded.made, status = excluded.status, body = excluded.body, created_at = excluded.created_at`,
		scope, key, c.Hash, c.Made, c.Status, notNil(c.Body), flow.Millis(c.At))
	if err != nil {
		return fmt.Errorf("keep an idempotency key: %w", err)
	}
	return nil
}

// ForgetCall drops an idempotent call that runs and will have no answer.
func (t *Tx) ForgetCall(ctx context.Context, scope, key string) error {
	if err := t.run.put(ctx, `DELETE FROM calls WHERE scope = ? AND key = ? AND status = 0`, scope, key); err != nil {
		return fmt.Errorf("forget an idempotency key: %w", err)
	}
	return nil
}

// OldestCall is when the oldest idempotent call was kept, false where there is
// none.
func (r Reader) OldestCall(ctx context.Context) (time.Time, bool, error) {
	return r.earliest(ctx, `SELECT COALESCE(MIN(created_at), 0) FROM calls`)
}

// ForgetCalls drops idempotent calls that were kept before a time, the oldest
// first and so many at most, and says how many there were.
func (t *Tx) ForgetCalls(ctx context.Context, before time.Time, most int) (int64, error) {
	n, err := t.run.exec(ctx, `DELETE FROM calls WHERE (scope, key) IN
 (SELECT scope, key FROM calls WHERE created_at < ? ORDER BY created_at LIMIT ?)`, flow.Millis(before), most)
	if err != nil {
		return 0, fmt.Errorf("forget old idempotency keys: %w", err)
	}
	return n, nil
}
