package sandbox

import (
	_ "embed"
	"fmt"

	"till/flow/store/lite"
)

//go:embed schema.sql
var schema string

//go:embed upgrade.sql
var upgrade string

// moveOver takes the movements of older books over.
const moveOver = `INSERT INTO movements (seq, id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip,
	reason, reverses, collects) SELECT seq, id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason,
	reverses, '' FROM movements_before; DROP TABLE movements_before`

// prepare makes the tables that are missing, and brings older books to what they
// are now, in one transaction.
func prepare(conn *lite.Conn) error {
	old, err := older(conn)
	if err != nil {
		return fmt.Errorf("prepare the books: %w", err)
	}
	script := []string{"BEGIN IMMEDIATE", schema, "COMMIT"}
	if old {
		// Renaming must leave alone what other tables say of this one, and these are
		// not heeded within a transaction.
		script = []string{
			"PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON", "BEGIN IMMEDIATE", upgrade, schema, moveOver, "COMMIT",
			"PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON",
		}
	}
	for _, part := range script {
		if err := conn.Script(part); err != nil { // what was begun ends with the connection
			return fmt.Errorf("prepare the books: %w", err)
		}
	}
	return nil
}

// older says whether the books are of a bank that sent nothing out.
func older(conn *lite.Conn) (bool, error) {
	var columns, known int
	_, err := books{conn}.one(`SELECT count(*), count(CASE name WHEN 'collects' THEN 1 END) FROM pragma_table_info('movements')`, nil, &columns, &known)
	return columns > 0 && known == 0, err
}
