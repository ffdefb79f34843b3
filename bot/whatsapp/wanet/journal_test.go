package wanet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func openTest(t *testing.T, path string) *journal {
	t.Helper()
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func write(t *testing.T, j *journal, kv ...string) {
	t.Helper()
	var b batch
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] == "" {
			b.del(kv[i])
		} else {
			b.put(kv[i], []byte(kv[i+1]))
		}
	}
	if err := j.apply(&b); err != nil {
		t.Fatal(err)
	}
}

// A file that is cut anywhere yields a prefix of the batches, each whole or not
// there at all, and can be written on.
func TestJournalTorn(t *testing.T) {
	dir := t.TempDir()
	j := openTest(t, filepath.Join(dir, "whole"))
	for i := range 20 {
		write(t, j, "left", fmt.Sprint(i), "right", fmt.Sprint(i), fmt.Sprint("k", i), "x")
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for cut := range len(whole) + 1 {
		path := filepath.Join(dir, "cut")
		if err = os.WriteFile(path, append(bytes.Clone(whole[:cut]), 7, 7, 7), 0o600); err != nil {
			t.Fatal(err)
		}
		if cut < len(journalMagic) {
			continue // not a network's file any more, or a new one
		}
		j = openTest(t, path)
		if l, r := j.get("left"), j.get("right"); !bytes.Equal(l, r) {
			t.Fatalf("cut at %d: half a batch: %q, %q", cut, l, r)
		}
		if n := len(j.scan("k")); n < last {
			t.Fatalf("cut at %d: %d batches, fewer than before", cut, n)
		} else {
			last = n
		}
		write(t, j, "new", "yes")
		_ = j.close()
		j = openTest(t, path)
		if string(j.get("new")) != "yes" {
			t.Fatalf("cut at %d: what was written after is lost", cut)
		}
		_ = j.close()
	}
	if last != 20 {
		t.Fatalf("the whole file has %d batches", last)
	}
}

// Rewriting keeps what is alive and shrinks the file; a second process is refused.
func TestJournalCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	j := openTest(t, path)
	big := string(bytes.Repeat([]byte("x"), 1<<20))
	for i := range 20 {
		write(t, j, "big", big, fmt.Sprint("k", i), "v", "gone", "1")
	}
	write(t, j, "gone", "")
	if j.size > compactAt+2<<20 {
		t.Fatalf("the file has %d bytes", j.size)
	}
	if _, err := openJournal(path); err == nil {
		t.Fatal("two processes write one file")
	}
	_ = j.close()
	j = openTest(t, path)
	if len(j.scan("k")) != 20 || len(j.get("big")) != 1<<20 || j.get("gone") != nil {
		t.Fatalf("after a rewrite: %v", j.scan(""))
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if err := j.apply(&batch{order: []string{"a"}, ops: map[string][]byte{"a": nil}}); err == nil {
		t.Fatal("a closed journal took a batch")
	}
}
