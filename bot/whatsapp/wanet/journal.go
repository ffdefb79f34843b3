package wanet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	journalMagic = "TILLWANET1\n"
	// A batch is one record, so a torn write loses a whole batch or nothing.
	maxBatch = 64 << 20
	// The journal is rewritten when it is this large and mostly dead.
	compactAt     = 8 << 20
	compactFactor = 4
)

// errClosed is what the journal answers after it was closed or has failed.
var errClosed = errors.New("wanet: the network is closed")

// journal is a small key/value store: a map in memory and, with a file, an
// append-only log of batches that rebuilds it. A batch is written with one
// write(2) before it counts, so it survives the death of the process; it is not
// synced, so a power cut may take the last ones.
type journal struct {
	mu     sync.RWMutex
	data   map[string][]byte
	live   int64 // bytes the data would take if written afresh
	size   int64 // bytes of the file
	dir    *os.Root
	name   string // of the file in dir
	file   *os.File
	unlock func()
	err    error // set for good by the first failed write
}

// openJournal reads the log at path, or starts an empty one. An empty path keeps
// everything in memory only.
func openJournal(path string) (*journal, error) {
	j := &journal{data: map[string][]byte{}, name: filepath.Base(path)}
	if path == "" {
		return j, nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w", path, err)
	}
	if j.dir, err = os.OpenRoot(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("opening the folder of %s: %w", path, err)
	}
	if j.unlock, err = lockFile(j.dir, j.name+".lock"); err != nil {
		_ = j.dir.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err = j.load(); err != nil {
		j.unlock()
		_ = j.dir.Close()
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return j, nil
}

func (j *journal) load() error {
	file, err := j.dir.OpenFile(j.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	good, err := j.replay(bufio.NewReaderSize(file, 1<<16))
	if err == nil && good == 0 {
		_, err = file.WriteAt([]byte(journalMagic), 0)
		good = int64(len(journalMagic))
	}
	if err == nil {
		// What follows the last whole batch is a write the process did not
		// live to finish: nobody was told of it.
		err = file.Truncate(good)
	}
	if err == nil {
		_, err = file.Seek(good, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("replaying the journal: %w", err)
	}
	j.file, j.size = file, good
	return nil
}

// replay applies whole batches and returns where the last one ends.
func (j *journal) replay(r io.Reader) (int64, error) {
	magic := make([]byte, len(journalMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		return 0, fmt.Errorf("reading the head: %w", err)
	}
	if string(magic) != journalMagic {
		return 0, errors.New("this is not a network file")
	}
	good := int64(len(magic))
	var head [8]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return good, nil //nolint:nilerr // a torn tail is expected after a kill
		}
		n := binary.BigEndian.Uint32(head[:4])
		if n > maxBatch {
			return good, nil
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return good, nil //nolint:nilerr // a torn tail is expected after a kill
		}
		if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(head[4:]) {
			return good, nil
		}
		if err := j.applyBody(body); err != nil {
			return good, err
		}
		good += int64(len(head)) + int64(n)
	}
}

func (j *journal) applyBody(body []byte) error {
	for len(body) > 0 {
		var key, val []byte
		op := body[0]
		body = body[1:]
		if key, body = takeBytes(body); key == nil {
			return errors.New("a batch is cut inside a key")
		}
		if op == 0 {
			j.set(string(key), nil)
			continue
		}
		if val, body = takeBytes(body); val == nil {
			return errors.New("a batch is cut inside a value")
		}
		j.set(string(key), append([]byte{}, val...))
	}
	return nil
}

func (j *journal) set(key string, val []byte) {
	if old, ok := j.data[key]; ok {
		j.live -= int64(len(key) + len(old) + 8)
	}
	if val == nil {
		delete(j.data, key)
		return
	}
	j.data[key] = val
	j.live += int64(len(key) + len(val) + 8)
}

func (j *journal) get(key string) []byte {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.data[key]
}

// scan returns the keys that start with prefix, sorted.
func (j *journal) scan(prefix string) []string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var keys []string
	for key := range j.data {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// apply makes a batch durable and then visible. After a failure nothing more is
// accepted: what memory holds may be ahead of the file, and only a restart heals.
func (j *journal) apply(t *batch) error {
	if len(t.order) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if j.file != nil {
		n, err := j.file.Write(t.encode())
		j.size += int64(n)
		if err != nil {
			j.err = fmt.Errorf("writing the network's journal: %w", err)
			return j.err
		}
	}
	for _, key := range t.order {
		j.set(key, t.ops[key])
	}
	if j.file != nil && j.size > compactAt && j.size > compactFactor*j.live {
		if err := j.compact(); err != nil {
			j.err = fmt.Errorf("compacting the network's journal: %w", err)
			return j.err
		}
	}
	return nil
}

// compact writes what is alive to a new file and puts it in the old one's place.
func (j *journal) compact() error {
	next, err := j.dir.OpenFile(j.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("creating the new file: %w", err)
	}
	w := bufio.NewWriterSize(next, 1<<20)
	size := int64(len(journalMagic))
	_, err = w.WriteString(journalMagic)
	for key, val := range j.data {
		if err != nil {
			break
		}
		var one batch
		one.put(key, val)
		raw := one.encode()
		size += int64(len(raw))
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = next.Sync()
	}
	if err == nil {
		err = j.dir.Rename(j.name+".new", j.name)
	}
	if err != nil {
		_ = next.Close()
		return fmt.Errorf("writing the new file: %w", err)
	}
	_ = j.file.Close()
	j.file, j.size = next, size
	return nil
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = errClosed
	}
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	_ = j.dir.Close()
	j.unlock()
	if err != nil {
		return fmt.Errorf("closing the network's journal: %w", err)
	}
	return nil
}
