package whatsapp

import (
	"errors"
	"fmt"

	"till/flow/store/lite"
)

// ForgetRatchets prepares a file with a number's keys that is older than what was
// said with them, as out of a backup. Payers' phones have gone on since: a message
// under a key that was used after the backup is one that they believe to have, and
// they take it and show nothing. So no ratchet is kept. The first message to each
// payer makes a new one, and the first of theirs that cannot be read is asked for
// again, with new keys. The number stays linked.
func ForgetRatchets(file string) (err error) {
	db, err := lite.Open("file:"+inURI.Replace(file)+"?mode=rw", keyPragmas()...)
	if err != nil {
		return fmt.Errorf("opening the keys: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	known := 0
	if err := db.Each(`SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('whatsmeow_sessions', 'whatsmeow_sender_keys')`, nil,
		func(scan lite.Scanner) error { return scan(&known) }); err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	if known == 0 {
		return nil // nothing was ever linked
	}
	for _, table := range []string{"whatsmeow_sessions", "whatsmeow_sender_keys"} {
		if _, err := db.Exec("DELETE FROM " + table); err != nil {
			return fmt.Errorf("forgetting old keys: %w", err)
		}
	}
	return nil
}
