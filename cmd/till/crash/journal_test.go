package crash

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// entry is one line of the journal.
type entry struct {
	Kind string `json:"kind"` // call, transfer, hook or said

	Key    string `json:"key,omitempty"`    // of a call: its Idempotency-Key
	Path   string `json:"path,omitempty"`   // of a call
	Body   string `json:"body,omitempty"`   // of a call, as it was sent
	Status int    `json:"status,omitempty"` // of a call's reply
	Reply  string `json:"reply,omitempty"`  // of a call, as it came

	ID      string `json:"id,omitempty"`      // of a transfer at the bank, a webhook or a message
	Session string `json:"session,omitempty"` // whom a transfer or a webhook is about
	Event   string `json:"event,omitempty"`   // of a webhook
	Amount  int64  `json:"amount,omitempty"`  // of a transfer, in kobo
}

// journal is what was acknowledged to the driver. What keep has returned from is
// on the disk.
type journal struct {
	mu   sync.Mutex
	file *os.File
	all  []entry
}

func newJournal(tb testing.TB, dir string) *journal {
	tb.Helper()
	file, err := os.Create(filepath.Join(dir, "acknowledged.jsonl"))
	must(tb, err)
	tb.Cleanup(func() { _ = file.Close() })
	return &journal{file: file}
}

// keep writes an entry through to the disk, and only then counts it.
func (j *journal) keep(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.all = append(j.all, e)
	return nil
}

// of are the entries of a kind.
func (j *journal) of(kind string) (list []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.all {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}
