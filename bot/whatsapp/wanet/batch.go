package wanet

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
)

// batch is a set of changes that become durable together. A nil value deletes.
type batch struct {
	ops     map[string][]byte
	order   []string
	touched []*Device // devices whose queue grew; they are pumped after the commit
}

func (t *batch) put(key string, val []byte) {
	if t.ops == nil {
		t.ops = map[string][]byte{}
	}
	if _, ok := t.ops[key]; !ok {
		t.order = append(t.order, key)
	}
	t.ops[key] = val
}

func (t *batch) del(key string) { t.put(key, nil) }

// putJSON stores a record of ours; our records always marshal.
func (t *batch) putJSON(key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the record %s: %w", key, err)
	}
	t.put(key, raw)
	return nil
}

func (t *batch) touch(d *Device) {
	if !slices.Contains(t.touched, d) {
		t.touched = append(t.touched, d)
	}
}

// encode renders the batch as one journal record: length, checksum, changes.
func (t *batch) encode() []byte {
	buf := make([]byte, 8, 256)
	for _, key := range t.order {
		val := t.ops[key]
		if val == nil {
			buf = appendBytes(append(buf, 0), []byte(key))
			continue
		}
		buf = appendBytes(append(buf, 1), []byte(key))
		buf = appendBytes(buf, val)
	}
	body := buf[8:]
	binary.BigEndian.PutUint32(buf[:4], uint32(len(body))) //nolint:gosec // far below 4 GiB
	binary.BigEndian.PutUint32(buf[4:8], crc32.ChecksumIEEE(body))
	return buf
}

func appendBytes(buf, b []byte) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(b))), b...)
}

// takeBytes reads a length and that many bytes; nil if they are not there.
func takeBytes(b []byte) (head, rest []byte) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) { //nolint:gosec // w is at most len(b)
		return nil, nil
	}
	end := w + int(n) //nolint:gosec // bounded by len(b)
	return b[w:end:end], b[end:]
}
