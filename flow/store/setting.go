package store

import (
	"context"
	"fmt"
)

// Setting reads a named value; "" where there is none.
func (r Reader) Setting(ctx context.Context, name string) (string, error) {
	var value string
	if _, err := r.run.one(ctx, "SELECT value FROM settings WHERE name = ?", []any{name}, &value); err != nil {
		return "", fmt.Errorf("read the setting %s: %w", name, err)
	}
	return value, nil
}

// Secret reads a named value that is sealed; "" where there is none. Errors:
// ErrKey.
func (r Reader) Secret(ctx context.Context, name string) (string, error) {
	kept, err := r.Setting(ctx, name)
	if err != nil {
		return "", err
	}
	return r.run.keys.open(settingOf(name), kept)
}

// SetSetting keeps a named value unless there is one already.
func (t *Tx) SetSetting(ctx context.Context, name, value string) error {
	if _, err := t.run.exec(ctx, "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, value); err != nil {
		return fmt.Errorf("keep the setting %s: %w", name, err)
	}
	return nil
}

// SetSecret keeps a named value sealed, unless there is one already.
func (t *Tx) SetSecret(ctx context.Context, name, value string) error {
	sealed, err := t.seal(ctx, settingOf(name), value)
	if err != nil {
		return err
	}
	return t.SetSetting(ctx, name, sealed)
}
