package whatsapp

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"

	"till/flow/store/lite"
)

// trial is the key under which a context has what is tried in one decryption: it
// counts only when that succeeds.
type trial struct{}

func tried(ctx context.Context) *changes {
	t, _ := ctx.Value(trial{}).(*changes)
	return t
}

// DoDecryptionTxn decrypts: what is changed meanwhile is kept whole or not at
// all.
func (r *ratchets) DoDecryptionTxn(ctx context.Context, decrypt func(context.Context) error) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	t := newChanges()
	if err := decrypt(context.WithValue(ctx, trial{}, t)); err != nil {
		return err
	}
	full := false
	err := r.note(func(c *changes) {
		r.noted = c.and(t)
		full = r.noted.count() > maxNoted
		for address, session := range t.sessions {
			r.sessions.put(address, session)
		}
		for address, key := range t.identities {
			r.identities.put(address, key)
		}
	})
	if err == nil && full {
		err = r.flush()
	}
	return err
}

// GetSession returns a session, nil for none.
func (r *ratchets) GetSession(ctx context.Context, address string) ([]byte, error) {
	if t := tried(ctx); t != nil {
		if s, ok := t.sessions[address]; ok {
			return s, nil
		}
	}
	r.mu.Lock()
	for _, c := range []*changes{r.noted, r.writing} {
		if c == nil {
			continue
		}
		if s, ok := c.sessions[address]; ok {
			r.mu.Unlock()
			return s, nil
		}
	}
	s, ok := r.sessions.get(address)
	made, anew := r.made, r.anew
	r.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := r.AllSessionSpecificStores.GetSession(ctx, address)
	if err != nil {
		return nil, err // as the library's own does
	}
	r.mu.Lock()
	if made == r.made && anew == r.anew { // else it may be newer by now
		r.sessions.put(address, s)
	}
	r.mu.Unlock()
	return s, nil
}

// HasSession says whether there is a session.
func (r *ratchets) HasSession(ctx context.Context, address string) (bool, error) {
	s, err := r.GetSession(ctx, address)
	return s != nil, err
}

// GetManySessions returns sessions, nil for each that there is not.
func (r *ratchets) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	all := make(map[string][]byte, len(addresses))
	for _, address := range addresses {
		s, err := r.GetSession(ctx, address)
		if err != nil {
			return nil, err
		}
		all[address] = s
	}
	return all, nil
}

// PutSession keeps a session. Outside a decryption that is because something is
// about to be sent under it, so it is written before this returns.
func (r *ratchets) PutSession(ctx context.Context, address string, session []byte) error {
	if t := tried(ctx); t != nil {
		t.sessions[address] = session
		return nil
	}
	return r.PutManySessions(ctx, map[string][]byte{address: session})
}

// PutManySessions keeps sessions and all that was noted before: a message is
// about to be sent.
func (r *ratchets) PutManySessions(_ context.Context, sessions map[string][]byte) error {
	r.turn.Lock() // what is decrypted meanwhile began with the session that is replaced here
	err := r.note(func(c *changes) {
		for address, s := range sessions {
			c.sessions[address] = s
			r.sessions.put(address, s)
		}
	})
	r.turn.Unlock()
	if err != nil {
		return err
	}
	return r.flush()
}

// DeleteSession forgets a session.
func (r *ratchets) DeleteSession(ctx context.Context, address string) error {
	if t := tried(ctx); t != nil {
		t.sessions[address] = nil
		return nil
	}
	return r.PutManySessions(ctx, map[string][]byte{address: nil})
}

// DeleteAllSessions forgets the sessions of a person's devices.
func (r *ratchets) DeleteAllSessions(ctx context.Context, person string) error {
	return r.settled(func() error { return r.AllSessionSpecificStores.DeleteAllSessions(ctx, person) })
}

// MigratePNToLID moves what is kept under a number to its LID.
func (r *ratchets) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	name := pn.SignalAddressUser()
	r.mu.Lock()
	_, done := r.moved.get(name)
	r.mu.Unlock()
	if done {
		return nil
	}
	err := r.settled(func() error { return r.AllSessionSpecificStores.MigratePNToLID(ctx, pn, lid) })
	if err == nil {
		r.mu.Lock()
		r.moved.put(name, struct{}{})
		r.mu.Unlock()
	}
	return err
}

// PutIdentity keeps the key that somebody is known by.
func (r *ratchets) PutIdentity(ctx context.Context, address string, key [32]byte) error {
	if known, ok := r.identity(ctx, address); ok && known == key {
		return nil
	}
	if t := tried(ctx); t != nil {
		t.identities[address] = key
		return nil
	}
	return r.note(func(c *changes) {
		c.identities[address] = key
		r.identities.put(address, key)
	})
}

// identity is the key that somebody is known by, as far as that is in memory.
func (r *ratchets) identity(ctx context.Context, address string) ([32]byte, bool) {
	if t := tried(ctx); t != nil {
		if key, ok := t.identities[address]; ok {
			return key, true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []*changes{r.noted, r.writing} {
		if c == nil {
			continue
		}
		if key, ok := c.identities[address]; ok {
			return key, true
		}
	}
	return r.identities.get(address)
}

// IsTrustedIdentity says whether somebody's key is the one that they are known
// by; whom nobody knows is trusted.
func (r *ratchets) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	if known, ok := r.identity(ctx, address); ok {
		return known == key || known == nobody, nil
	}
	return r.AllSessionSpecificStores.IsTrustedIdentity(ctx, address, key) // as the library's own does
}

// nobody is the key of one who is not known any more. Nobody has it.
var nobody [32]byte

// DeleteIdentity forgets the key that somebody is known by.
func (r *ratchets) DeleteIdentity(ctx context.Context, address string) error {
	return r.PutIdentity(ctx, address, nobody)
}

// DeleteAllIdentities forgets the keys of a person's devices.
func (r *ratchets) DeleteAllIdentities(ctx context.Context, person string) error {
	return r.settled(func() error { return r.AllSessionSpecificStores.DeleteAllIdentities(ctx, person) })
}

// GetPreKey returns a key that somebody may begin with, nil for one that is used.
func (r *ratchets) GetPreKey(ctx context.Context, id uint32) (*keys.PreKey, error) {
	r.mu.Lock()
	used := r.noted.used[id] || r.writing != nil && r.writing.used[id]
	r.mu.Unlock()
	if t := tried(ctx); used || t != nil && t.used[id] {
		return nil, nil
	}
	return r.AllSessionSpecificStores.GetPreKey(ctx, id) // as the library's own does
}

// RemovePreKey notes that a key is used.
func (r *ratchets) RemovePreKey(ctx context.Context, id uint32) error {
	if t := tried(ctx); t != nil {
		t.used[id] = true
		return nil
	}
	return r.note(func(c *changes) { c.used[id] = true })
}

// PutBufferedEvent notes a message until it is handled.
func (r *ratchets) PutBufferedEvent(ctx context.Context, hash [32]byte, text []byte, at time.Time) error {
	h := heard{text: text, at: at, noted: r.file.now()}
	if t := tried(ctx); t != nil {
		t.heard[hash] = h
		return nil
	}
	return r.note(func(c *changes) { c.heard[hash] = h })
}

// GetBufferedEvent returns a message that was decrypted before, nil for none;
// its text is nil where it was handled.
func (r *ratchets) GetBufferedEvent(_ context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	var found *heard
	r.mu.Lock()
	if h, ok := r.noted.heard[hash]; ok {
		found = &h
	} else if r.writing != nil {
		if h, ok := r.writing.heard[hash]; ok {
			found = &h
		}
	}
	handled := r.noted.handled[hash] || r.writing != nil && r.writing.handled[hash]
	r.mu.Unlock()
	if found == nil {
		var err error
		if found, err = r.file.heard(r.jid, hash); err != nil || found == nil {
			return nil, err
		}
	}
	e := &store.BufferedEvent{Plaintext: found.text, ServerTime: found.at, InsertTime: found.noted}
	if handled {
		e.Plaintext = nil
	}
	return e, nil
}

const heardSQL = `SELECT plaintext IS NULL, COALESCE(plaintext, x''), server_timestamp, insert_timestamp FROM whatsmeow_event_buffer WHERE our_jid = ? AND ciphertext_hash = ?`

func (f *keyFile) heard(jid string, hash [32]byte) (found *heard, err error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.closed {
		return nil, errGone
	}
	err = f.read.Each(heardSQL, []any{jid, hash[:]}, func(scan lite.Scanner) error {
		var none, at, noted int64
		found = &heard{}
		if err := scan(&none, &found.text, &at, &noted); err != nil {
			return err
		}
		if none != 0 {
			found.text = nil
		}
		found.at, found.noted = time.Unix(at, 0), time.UnixMilli(noted)
		return nil
	})
	return found, err
}

// ClearBufferedEventPlaintext notes that a message is handled. Mostly it was not
// written yet: then its text never is.
func (r *ratchets) ClearBufferedEventPlaintext(_ context.Context, hash [32]byte) error {
	return r.note(func(c *changes) {
		if h, ok := c.heard[hash]; ok {
			h.text = nil
			c.heard[hash] = h
			return
		}
		c.handled[hash] = true
	})
}

// AddOutgoingEvent notes a message of ours, for whoever cannot read it at first.
func (r *ratchets) AddOutgoingEvent(_ context.Context, chat types.JID, id types.MessageID, format string, text []byte) error {
	return r.note(func(c *changes) {
		c.sent[inChat{chat.String(), "", id}] = sent{format: format, text: text, at: r.file.now()}
	})
}

// GetOutgoingEvent returns a message of ours.
func (r *ratchets) GetOutgoingEvent(ctx context.Context, chat, alt types.JID, id types.MessageID) (string, []byte, error) {
	if err := r.flush(); err != nil {
		return "", nil, err
	}
	return r.AllSessionSpecificStores.GetOutgoingEvent(ctx, chat, alt, id) // the library looks for sql.ErrNoRows
}

// DeleteOldOutgoingEvents forgets old messages of ours. The library asks for it
// with each message.
func (r *ratchets) DeleteOldOutgoingEvents(ctx context.Context) error {
	now := r.file.now()
	r.mu.Lock()
	due := now.Sub(r.swept) >= sweepEach
	if due {
		r.swept = now
	}
	r.mu.Unlock()
	if !due {
		return nil
	}
	return r.AllSessionSpecificStores.DeleteOldOutgoingEvents(ctx) // as the library's own does
}

// PutMessageSecret notes what an edit of a message is encrypted with.
func (r *ratchets) PutMessageSecret(_ context.Context, chat, sender types.JID, id types.MessageID, secret []byte) error {
	return r.note(func(c *changes) { c.secrets[inChat{chat.ToNonAD().String(), sender.ToNonAD().String(), id}] = secret })
}

// GetMessageSecret returns what an edit of a message is encrypted with.
func (r *ratchets) GetMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID) ([]byte, types.JID, error) {
	if err := r.flush(); err != nil {
		return nil, types.JID{}, err
	}
	return r.AllSessionSpecificStores.GetMessageSecret(ctx, chat, sender, id) // as the library's own does
}
