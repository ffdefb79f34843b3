package whatsapp

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"go.mau.fi/whatsmeow/types"

	"till/flow/crashpoint"
	"till/flow/store/lite"
)

// changes are what is to be written to a file of keys.
type changes struct {
	sessions   map[string][]byte   // nil: forgotten
	identities map[string][32]byte // nobody: forgotten
	used       map[uint32]bool     // keys to begin with
	heard      map[[32]byte]heard
	handled    map[[32]byte]bool // of those heard before
	sent       map[inChat]sent
	secrets    map[inChat][]byte
}

// heard is a message that was decrypted; its text is nil once it is handled.
type heard struct {
	text      []byte
	at, noted time.Time
}

// sent is a message of ours.
type sent struct {
	format string
	text   []byte
	at     time.Time
}

// inChat names a message; the sender is "" where it is us.
type inChat struct {
	chat, sender string
	id           types.MessageID
}

func newChanges() *changes {
	return &changes{
		sessions: map[string][]byte{}, identities: map[string][32]byte{}, used: map[uint32]bool{},
		heard: map[[32]byte]heard{}, handled: map[[32]byte]bool{}, sent: map[inChat]sent{}, secrets: map[inChat][]byte{},
	}
}

func (c *changes) count() int {
	return len(c.sessions) + len(c.identities) + len(c.used) + len(c.heard) + len(c.handled) + len(c.sent) + len(c.secrets)
}

// and adds later changes and returns all.
func (c *changes) and(later *changes) *changes {
	maps.Copy(c.sessions, later.sessions)
	maps.Copy(c.identities, later.identities)
	maps.Copy(c.used, later.used)
	maps.Copy(c.heard, later.heard)
	maps.Copy(c.handled, later.handled)
	maps.Copy(c.sent, later.sent)
	maps.Copy(c.secrets, later.secrets)
	return c
}

// The tables are the library's: store/sqlstore/upgrades of whatsmeow.
const (
	putSessionSQL = `INSERT INTO whatsmeow_sessions (our_jid, their_id, session) VALUES (?, ?, ?)
 ON CONFLICT (our_jid, their_id) DO UPDATE SET session = excluded.session`
	dropSessionSQL = `DELETE FROM whatsmeow_sessions WHERE our_jid = ? AND their_id = ?`
	putIdentitySQL = `INSERT INTO whatsmeow_identity_keys (our_jid, their_id, identity) VALUES (?, ?, ?)
 ON CONFLICT (our_jid, their_id) DO UPDATE SET identity = excluded.identity`
	dropIdentitySQL = `DELETE FROM whatsmeow_identity_keys WHERE our_jid = ? AND their_id = ?`
	usedSQL         = `DELETE FROM whatsmeow_pre_keys WHERE jid = ? AND key_id = ?`
	putHeardSQL     = `INSERT INTO whatsmeow_event_buffer (our_jid, ciphertext_hash, plaintext, server_timestamp, insert_timestamp)
 VALUES (?, ?, NULLIF(?, x''), ?, ?) ON CONFLICT (our_jid, ciphertext_hash) DO NOTHING`
	handledSQL = `UPDATE whatsmeow_event_buffer SET plaintext = NULL WHERE our_jid = ? AND ciphertext_hash = ?`
	putSentSQL = `INSERT INTO whatsmeow_retry_buffer (our_jid, chat_jid, message_id, format, plaintext, timestamp) VALUES (?, ?, ?, ?, ?, ?)
 ON CONFLICT (our_jid, chat_jid, message_id) DO UPDATE SET format = excluded.format, plaintext = excluded.plaintext, timestamp = excluded.timestamp`
	putSecretSQL = `INSERT INTO whatsmeow_message_secrets (our_jid, chat_jid, sender_jid, message_id, key) VALUES (?, ?, ?, ?, ?)
 ON CONFLICT (our_jid, chat_jid, sender_jid, message_id) DO NOTHING`
)

// keep writes changes in one transaction, unless the file is another's by now.
// Only who holds flushing calls it.
func (f *keyFile) keep(jid string, c *changes) error {
	if f.closed {
		return errGone
	}
	err := f.commit(jid, c)
	if errors.Is(err, errTaken) {
		return err
	}
	f.mu.Lock()
	turned := (f.fault == nil) != (err == nil)
	if f.fault = err; turned {
		f.faulty = f.now()
	}
	f.mu.Unlock()
	if turned && f.changed != nil {
		f.changed()
	}
	return err
}

// unkept says why what was last to be kept was not, and since when; nil where it was.
// It is tried again each second until it is.
func (f *keyFile) unkept() (since time.Time, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faulty, f.fault
}

func (f *keyFile) commit(jid string, c *changes) error {
	_, err := f.write.Exec("BEGIN IMMEDIATE")
	if err != nil {
		return fmt.Errorf("keeping the keys: %w", err)
	}
	f.write.Inside = true
	var holds int64
	err = f.write.Each(`SELECT claim FROM till_claim`, nil, func(scan lite.Scanner) error { return scan(&holds) })
	if err == nil && holds != f.claim {
		err = errTaken
	}
	if err == nil {
		err = c.write(jid, f.write)
	}
	crashpoint.At(crashpoint.KeysCommit)
	if err == nil {
		_, err = f.write.Exec("COMMIT")
	}
	f.write.Inside = false
	if err != nil {
		return fmt.Errorf("keeping the keys: %w", errors.Join(err, f.write.Undo()))
	}
	return nil
}

func (c *changes) write(jid string, to *lite.Conn) (err error) {
	run := func(query string, args ...any) {
		if err == nil {
			_, err = to.Exec(query, args...)
		}
	}
	for address, session := range c.sessions {
		if session == nil {
			run(dropSessionSQL, jid, address)
			continue
		}
		run(putSessionSQL, jid, address, session)
	}
	for address, key := range c.identities {
		if key == nobody {
			run(dropIdentitySQL, jid, address)
			continue
		}
		run(putIdentitySQL, jid, address, key[:])
	}
	for id := range c.used {
		run(usedSQL, jid, int64(id))
	}
	for hash, h := range c.heard {
		run(putHeardSQL, jid, hash[:], h.text, h.at.Unix(), h.noted.UnixMilli())
	}
	for hash := range c.handled {
		run(handledSQL, jid, hash[:])
	}
	for m, s := range c.sent {
		run(putSentSQL, jid, m.chat, m.id, s.format, s.text, s.at.UnixMilli())
	}
	for m, secret := range c.secrets {
		run(putSecretSQL, jid, m.chat, m.sender, m.id, secret)
	}
	return err
}

// recent remembers what was used last: at least maxRecent entries, at most twice
// as many. The zero value is empty.
type recent[K comparable, V any] struct{ young, old map[K]V }

func (m *recent[K, V]) get(k K) (V, bool) {
	v, ok := m.young[k]
	if !ok {
		if v, ok = m.old[k]; ok {
			m.put(k, v)
		}
	}
	return v, ok
}

func (m *recent[K, V]) put(k K, v V) {
	if m.young == nil || len(m.young) >= maxRecent {
		m.young, m.old = map[K]V{}, m.young
	}
	m.young[k] = v
}
