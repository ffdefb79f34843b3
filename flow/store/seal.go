package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"till/flow"
)

const (
	// sealAtOnce is how many values are sealed in one transaction.
	sealAtOnce = 200
	// wipeDue is the setting that remembers that what was in the clear may still
	// stand in parts of the file that are not used any more.
	wipeDue = "wipe_due"
	// sealsWith is the setting that remembers which key secrets were sealed with last.
	sealsWith = "sealing_key"
)

// column is where sealed values are: a table, what names its rows, and the values.
type column struct {
	table, id, value string
	place            func(id string) string
}

// sealedColumns are the columns of a schema that hold sealed values.
func sealedColumns(s Schema) []column {
	list := []column{{"settings", "name", "value", settingOf}}
	if s == Checkout {
		list = append(list, column{"endpoints", "id", "secrets", secretsOf})
	}
	return list
}

// keptValue is a value as it is kept.
type keptValue struct{ id, value string }

// sealAll seals what is in the clear, or sealed with an old key, a bounded number
// of values at a time. Each is only replaced where it is still as it was read, so
// that others may do the same at once, and a program that ends in the middle has
// merely less left to do.
func (d *DB) sealAll(ctx context.Context, c Config) error {
	if !c.Seal {
		return nil
	}
	if d.keys == nil {
		return errors.New("seal what is secret: no sealing key is given")
	}
	sealed, anew := 0, false
	for _, col := range sealedColumns(c.Schema) {
		for after, more := "", true; more; {
			list, err := d.unsealed(ctx, col, after)
			if err != nil {
				return fmt.Errorf("seal what is secret: %w", err)
			}
			if more = len(list) == sealAtOnce; len(list) > 0 {
				after = list[len(list)-1].id
			}
			if col.table == "settings" {
				list = slices.DeleteFunc(list, func(v keptValue) bool {
					_, sealed := sealedBy(v.value)
					return !sealed && !slices.Contains(c.Secrets, v.id)
				})
			}
			anew = anew || slices.ContainsFunc(list, func(v keptValue) bool { _, by := sealedBy(v.value); return by })
			if err := d.sealSome(ctx, col, list); err != nil {
				return fmt.Errorf("seal what is secret: %w", err)
			}
			sealed += len(list)
		}
	}
	if anew {
		d.log.LogAttrs(ctx, slog.LevelWarn, "secrets were sealed anew with another key: keep a copy of it elsewhere, for the one before opens nothing any more. A process that still runs with that one reads none of them, and sends no webhook: start it again with the new key",
			slog.String("key", d.keys.id), slog.Int("values", sealed))
	} else if sealed > 0 {
		d.log.LogAttrs(ctx, slog.LevelInfo, "secrets were sealed", slog.String("key", d.keys.id), slog.Int("values", sealed))
	}
	if err := d.sealsNow(ctx); err != nil {
		return fmt.Errorf("seal what is secret: %w", err)
	}
	return d.wipe(ctx)
}

// sealsNow remembers by its id which key seals from now on.
func (d *DB) sealsNow(ctx context.Context) error {
	run := runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect, keys: d.keys}
	_, err := run.exec(ctx, "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE settings.value <> excluded.value", sealsWith, d.keys.id)
	return err
}

// SealsStill looks whether this process can seal and open what is secret: another one that
// was started with another key meanwhile has sealed all of it anew. Errors: ErrKey where it
// opens nothing any more, ErrOldKey where it opens all and seals nothing.
func (d *DB) SealsStill(ctx context.Context) error {
	now, err := d.Setting(ctx, sealsWith)
	if err != nil || d.keys == nil || now == "" || now == d.keys.id {
		return err
	}
	if _, opens := d.keys.seals[now]; opens {
		return fmt.Errorf("%w: %s seals now, and this process has %s", ErrOldKey, now, d.keys.id)
	}
	return fmt.Errorf("%w: %s, and this process has %s", ErrKey, now, d.keys.id)
}

// seal hides a value that is kept at a place. A process that runs on with a key that
// was changed for another meanwhile seals nothing new: who starts with the new key
// alone could not open it. Errors: storage_unavailable.
func (t *Tx) seal(ctx context.Context, place, plain string) (string, error) {
	now, err := t.Setting(ctx, sealsWith)
	if err != nil {
		return "", err
	}
	if keys := t.run.keys; keys != nil && now != "" && now != keys.id {
		return "", &flow.Error{
			Code: flow.CodeStorage, Message: notNow,
			Err: fmt.Errorf("seal %s: the key was changed: secrets are sealed with %s now, and this process has %s. Start it again with the new TILL_SECRETS_KEY", place, now, keys.id),
		}
	}
	return t.run.keys.seal(place, plain)
}

// unsealed reads values behind one that the current key did not seal.
func (d *DB) unsealed(ctx context.Context, col column, after string) ([]keptValue, error) {
	var list []keptValue
	ours := sealedMark + d.keys.id + ":"
	run := runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect, keys: d.keys}
	err := run.each(ctx, "SELECT "+col.id+", "+col.value+" FROM "+col.table+" WHERE "+col.id+" > ? AND SUBSTR("+col.value+", 1, ?) <> ? ORDER BY "+col.id+" LIMIT ?",
		[]any{after, len(ours), ours, sealAtOnce}, func(scan scanner) error {
			var v keptValue
			err := scan(&v.id, &v.value)
			list = append(list, v)
			return err
		})
	return list, err
}

// sealSome seals values in one transaction.
func (d *DB) sealSome(ctx context.Context, col column, list []keptValue) (err error) {
	if len(list) == 0 {
		return nil
	}
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	run := runner{statements: sqlStatements{sqlRunner: tx}, dialect: d.dialect, keys: d.keys}
	for _, v := range list {
		plain, err := d.keys.open(col.place(v.id), v.value)
		if err != nil {
			return err
		}
		sealed, err := d.keys.seal(col.place(v.id), plain)
		if err != nil {
			return err
		}
		if _, err := run.exec(ctx, "UPDATE "+col.table+" SET "+col.value+" = ? WHERE "+col.id+" = ? AND "+col.value+" = ?", sealed, v.id, v.value); err != nil {
			return err
		}
		if plain != v.value || d.dialect != sqliteDialect {
			continue
		}
		if _, err := run.exec(ctx, "INSERT INTO settings (name, value) VALUES (?, 'yes') ON CONFLICT (name) DO NOTHING", wipeDue); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// wipe writes an SQLite file anew in which something secret stood in the clear:
// what is not used of it any more goes with that. Where it cannot be done now, as
// without room on the disk, the next start tries again.
func (d *DB) wipe(ctx context.Context) error {
	run := runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect, keys: d.keys}
	due := ""
	if _, err := run.one(ctx, "SELECT value FROM settings WHERE name = ?", []any{wipeDue}, &due); err != nil || due == "" {
		return err
	}
	for _, stmt := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := d.write.ExecContext(ctx, stmt); err != nil {
			d.log.LogAttrs(ctx, slog.LevelWarn, "what was secret in the clear may still stand in unused parts of a file; the next start tries to wipe them again",
				slog.String("error", err.Error()))
			return nil
		}
	}
	_, err := run.exec(ctx, "DELETE FROM settings WHERE name = ?", wipeDue)
	return err
}

// Sealed says how the secrets of a database are kept.
type Sealed struct {
	Keys  []string // ids of the keys that sealed some of them
	Clear int      // how many are in the clear
	Count int      // how many are sealed
	Shut  []Shut   // those that the keys given do not open
}

// Shut is a value that no key opens: the place that it is kept at, and the id of the key
// that sealed it.
type Shut struct{ Place, Key string }

// SealedWith looks how the secrets of a database are kept, without changing any.
// One that nothing was made in has none. Errors: fs.ErrNotExist for a
// file that is not there.
func SealedWith(ctx context.Context, c Config) (Sealed, error) {
	var out Sealed
	err := Look(ctx, c, func(r Reader) (err error) {
		out, err = r.SealedWith(ctx, c)
		return err
	})
	return out, err
}

// SealedWith looks how the secrets are kept, and opens each where keys are given.
func (r Reader) SealedWith(ctx context.Context, c Config) (out Sealed, err error) {
	for _, col := range sealedColumns(c.Schema) {
		if there, err := r.hasTable(ctx, col.table); err != nil || !there {
			return out, err
		}
		err := r.run.each(ctx, "SELECT "+col.id+", "+col.value+" FROM "+col.table, nil, func(scan scanner) error {
			var v keptValue
			if err := scan(&v.id, &v.value); err != nil {
				return err
			}
			id, sealed := sealedBy(v.value)
			if !sealed {
				if col.table != "settings" || slices.Contains(c.Secrets, v.id) {
					out.Clear++
				}
				return nil
			}
			if out.Count++; !slices.Contains(out.Keys, id) {
				out.Keys = append(out.Keys, id)
			}
			if c.Keys == nil {
				return nil
			}
			if _, err := c.Keys.open(col.place(v.id), v.value); err != nil {
				out.Shut = append(out.Shut, Shut{Place: col.place(v.id), Key: id})
			}
			return nil
		})
		if err != nil {
			return out, fmt.Errorf("look how secrets are kept: %w", err)
		}
	}
	return out, nil
}

// hasTable says whether a table was made.
func (r Reader) hasTable(ctx context.Context, name string) (bool, error) {
	query := "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
	if r.run.dialect == postgresDialect {
		query = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = ?"
	}
	n := 0
	_, err := r.run.one(ctx, query, []any{name}, &n)
	return n > 0, err
}
