package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"till/flow/store/lite"
)

// peopleColumns are the tables of a file of keys that name people, and the columns
// that do. What came and was not handed over yet rests in a table without names,
// sealed; it is handed over at the next start, or comes again.
func peopleColumns() map[string][]string {
	return map[string][]string{
		"whatsmeow_identity_keys": {"their_id"}, "whatsmeow_sessions": {"their_id"}, "whatsmeow_sender_keys": {"chat_id", "sender_id"},
		"whatsmeow_contacts": {"their_jid"}, "whatsmeow_chat_settings": {"chat_jid"}, "whatsmeow_message_secrets": {"chat_jid", "sender_jid"},
		"whatsmeow_privacy_tokens": {"their_jid"}, "whatsmeow_lid_map": {"lid", "pn"}, "whatsmeow_retry_buffer": {"chat_jid"},
	}
}

// People finds out under which ids a file of keys knows whoever has a telephone
// number or one of some ids, and how many rows it has of them. It changes nothing.
func People(ctx context.Context, file string, ids []string) (all []string, rows int, err error) {
	err = withKeys(file, func(db *lite.Conn, tables []string) error {
		all = slices.Clone(ids)
		if slices.Contains(tables, "whatsmeow_lid_map") {
			for _, id := range ids {
				if err := db.Each(`SELECT lid, pn FROM whatsmeow_lid_map WHERE lid = ? OR pn = ?`, []any{id, id}, func(scan lite.Scanner) error {
					var lid, pn string
					err := scan(&lid, &pn)
					all = append(all, lid, pn)
					return err
				}); err != nil {
					return err
				}
			}
		}
		slices.Sort(all)
		all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
		return eachOf(ctx, tables, all, func(table, where string, args []any) error {
			return db.Each(`SELECT COUNT(*) FROM `+table+where, args, func(scan lite.Scanner) error {
				n := 0
				err := scan(&n)
				rows += n
				return err
			})
		})
	})
	return all, rows, err
}

// Forget takes people out of a file of keys that nobody has open: every row that
// names one of them by an id, their telephone number or their LID. The file is
// written anew, so that nothing of them is left in it. Who writes again is somebody
// new.
func Forget(ctx context.Context, file string, ids []string) error {
	return withKeys(file, func(db *lite.Conn, tables []string) error {
		if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		err := eachOf(ctx, tables, ids, func(table, where string, args []any) error {
			_, err := db.Exec(`DELETE FROM `+table+where, args...)
			return err
		})
		if err != nil {
			_, undo := db.Exec("ROLLBACK")
			return errors.Join(err, undo)
		}
		if _, err := db.Exec("COMMIT"); err != nil {
			return err
		}
		if _, err := db.Exec("VACUUM"); err != nil {
			return err
		}
		return db.Each("PRAGMA wal_checkpoint(TRUNCATE)", nil, func(lite.Scanner) error { return nil })
	})
}

// withKeys opens a file of keys, and says which tables of the library it has.
func withKeys(file string, do func(db *lite.Conn, tables []string) error) (err error) {
	db, err := lite.Open("file:"+inURI.Replace(file)+"?mode=rw", keyPragmas()...)
	if err != nil {
		return fmt.Errorf("opening the keys: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var tables []string
	if err := db.Each(`SELECT name FROM sqlite_schema WHERE type = 'table'`, nil, func(scan lite.Scanner) error {
		var name string
		err := scan(&name)
		tables = append(tables, name)
		return err
	}); err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	if err := do(db, tables); err != nil {
		return fmt.Errorf("looking for people in the keys: %w", err)
	}
	return nil
}

// eachOf does something for each table and id that may be in it. An id stands by
// itself, before the server it is of, or before a device: 2348031234567,
// 2348031234567@s.whatsapp.net, 2348031234567:0, 1234_1:0.
func eachOf(ctx context.Context, tables, ids []string, do func(table, where string, args []any) error) error {
	for table, columns := range peopleColumns() {
		if !slices.Contains(tables, table) {
			continue
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return err
			}
			if id == "" || strings.Trim(id, "0123456789") != "" {
				continue // the library knows people by digits
			}
			var where []string
			var args []any
			for _, column := range columns {
				where = append(where, `(`+column+` = ? OR SUBSTR(`+column+`, 1, ?) = ? AND SUBSTR(`+column+`, ?, 1) NOT BETWEEN '0' AND '9')`)
				args = append(args, id, len(id), id, len(id)+1)
			}
			if err := do(table, " WHERE "+strings.Join(where, " OR "), args); err != nil {
				return err
			}
		}
	}
	return nil
}
