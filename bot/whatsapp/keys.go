package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"till/flow/store/lite"
)

// ratchets keeps the keys of one device in the library's own file and tables,
// and what each message needs of them in memory.
//
// The library writes to that file six times for a message and its answer, each
// time with a commit of its own, and has its statements parsed each time. Here a
// change is only noted, and all that is noted is written in one transaction:
//
//   - Before a message of ours leaves. What was used to encrypt one must never be
//     used again: a payer's phone takes a message under a used key for one that it
//     has, and shows nothing. So the file is as safe as the money's:
//     synchronous=FULL, not a moment behind what went out, even when the power
//     fails.
//   - Else within notedFor. What was received may be forgotten: until it is
//     written the file stands before the message. A message that was not
//     acknowledged comes again and is decrypted again; one that was is kept by
//     whoever heard it, and the next one carries the ratchet past it.
//   - Whole: a ratchet is never written without the text that it was moved for,
//     as long as nobody has taken that text.
//
// One process at a time writes: the last that has claimed the file. The others
// are refused, so that one that was paused and wakes cannot turn ratchets back.
type ratchets struct {
	store.AllSessionSpecificStores // the library's, for what is rarely asked

	jid  string
	file *keyFile
	lids store.LIDStore

	turn sync.Mutex // held while a ratchet is moved: two moves of one must not meet

	mu         sync.Mutex // guards all below
	noted      *changes   // not written yet
	writing    *changes   // being written
	made, kept int64      // counts what was noted; up to where it is written
	anew       int64      // counts how often what is remembered of the file was dropped
	sessions   recent[string, []byte]
	identities recent[string, [32]byte]
	tokens     recent[string, *store.PrivacyToken]
	moved      recent[string, struct{}] // numbers whose sessions are kept under their LID
	salt       *[]byte                  // of the device, nil while it is not known
	timer      *time.Timer              // writes what nobody waits for; nil while nothing is noted
	swept      time.Time                // when old messages of ours were last forgotten
	over       error                    // why nothing is kept any more
}

// The bounds of what is in memory.
const (
	notedFor  = time.Second
	maxNoted  = 1024 // then it is written at once
	maxRecent = 1024 // entries of one kind, twice
	sweepEach = time.Hour
)

var (
	errTaken = errors.New("whatsapp: another process uses these keys")
	errGone  = errors.New("whatsapp: these keys are forgotten")
)

// keyFile is the file with a number's keys: the connections beside the
// library's, and the mark of who may write.
type keyFile struct {
	now func() time.Time
	log *slog.Logger

	flushing sync.Mutex // guards write
	write    *lite.Conn
	reading  sync.Mutex // guards read
	read     *lite.Conn
	claim    int64 // ours, by which the others' writes are refused
	closed   bool  // guarded by flushing and reading

	linking sync.Mutex // held while a device is kept or deleted

	mu      sync.Mutex
	current *ratchets // of the device that is used, nil for none
	fault   error     // why the last changes were not kept, nil where they were
	faulty  time.Time // since when
	changed func()    // called when that begins or ends; it may be nil
}

// inURI writes what means something in a URI so that it means itself.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// openKeys opens the file that the library has made, and claims it.
func openKeys(name string, now func() time.Time, log *slog.Logger) (*keyFile, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the keys: %w", err)
	}
	f := &keyFile{now: now, log: log}
	uri := "file:" + inURI.Replace(filepath.ToSlash(name))
	if f.write, err = lite.Open(uri, keyPragmas()...); err != nil {
		return nil, fmt.Errorf("opening the keys: %w", err)
	}
	if f.read, err = lite.Open(uri, append(keyPragmas(), "query_only(1)")...); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the keys: %w", err), f.write.Close())
	}
	return f, nil
}

// keyPragmas are what every connection to the file starts with; see ratchets for
// why it is synchronous. What is deleted is overwritten: undelivered texts pass
// through it, sealed.
func keyPragmas() []string {
	return []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)",
		"wal_autocheckpoint(2000)", "journal_size_limit(16777216)", "temp_store(MEMORY)",
	}
}

// own claims the file: from now on nobody else's ratchets are written to it.
func (f *keyFile) own() error {
	f.flushing.Lock()
	defer f.flushing.Unlock()
	if f.closed {
		return errGone
	}
	if _, err := f.write.Exec(`CREATE TABLE IF NOT EXISTS till_claim (one INTEGER PRIMARY KEY CHECK (one = 1), claim INTEGER NOT NULL) STRICT`); err != nil {
		return fmt.Errorf("claiming the keys: %w", err)
	}
	err := f.write.Each(`INSERT INTO till_claim VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET claim = claim + 1 RETURNING claim`, nil,
		func(scan lite.Scanner) error { return scan(&f.claim) })
	if err != nil {
		return fmt.Errorf("claiming the keys: %w", err)
	}
	return nil
}

// of are the ratchets of a device that is kept in the file.
func (f *keyFile) of(d *store.Device) (*ratchets, error) {
	inner, ok := d.Sessions.(store.AllSessionSpecificStores)
	if !ok || d.ID == nil {
		return nil, fmt.Errorf("opening the keys: a device keeps its sessions in a %T", d.Sessions)
	}
	// What the same device noted when it last ran. Taken, it is another's to keep.
	if err := f.settle(); err != nil && !errors.Is(err, errTaken) {
		return nil, err
	}
	f.forget()
	if err := f.own(); err != nil {
		return nil, err
	}
	r := &ratchets{AllSessionSpecificStores: inner, jid: d.ID.String(), file: f, lids: d.LIDs, noted: newChanges()}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = r
	return r, nil
}

// uses says whether no other device than this one is used.
func (f *keyFile) uses(d *store.Device) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, kept := d.Identities.(*ratchets)
	return f.current == nil || !kept || f.current == r
}

// forget drops what is noted for a device that is deleted.
func (f *keyFile) forget() {
	f.mu.Lock()
	r := f.current
	f.current = nil
	f.mu.Unlock()
	if r != nil {
		r.end(errGone)
	}
}

// settle writes what is noted.
func (f *keyFile) settle() error {
	f.mu.Lock()
	r := f.current
	f.mu.Unlock()
	if r == nil {
		return nil
	}
	if err := r.flush(); err != nil {
		return fmt.Errorf("keeping the keys: %w", err)
	}
	return nil
}

// close writes what is noted and closes the file.
func (f *keyFile) close() error {
	err := f.settle()
	f.forget()
	f.flushing.Lock()
	defer f.flushing.Unlock()
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.closed {
		return err
	}
	f.closed = true
	return errors.Join(err, f.read.Close(), f.write.Close())
}

// end has nothing more be kept.
func (r *ratchets) end(why error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.file.flushing.Lock()
	defer r.file.flushing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over, r.noted = why, newChanges()
	if r.timer != nil {
		r.timer.Stop()
	}
}

// note notes changes. Somebody writes them before long.
func (r *ratchets) note(change func(c *changes)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return r.over
	}
	change(r.noted)
	r.made++
	r.writeLater()
	return nil
}

// writeLater has what is noted be written though nobody waits for it. The caller
// holds the lock.
func (r *ratchets) writeLater() {
	if r.timer != nil {
		return
	}
	r.timer = time.AfterFunc(notedFor, func() {
		if err := r.flush(); err != nil {
			r.file.log.Error("whatsapp keys not kept", slog.String("error", scrub(err.Error())))
		}
	})
}

// flush writes all that is noted. When it returns nil, what the caller noted
// survives a power cut.
func (r *ratchets) flush() error {
	r.mu.Lock()
	mine := r.made
	r.mu.Unlock()
	r.file.flushing.Lock()
	defer r.file.flushing.Unlock()
	r.mu.Lock()
	if r.over != nil || r.kept >= mine { // whoever was before us took it along
		defer r.mu.Unlock()
		return r.over
	}
	upTo, what := r.made, r.noted
	r.writing, r.noted = what, newChanges()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.mu.Unlock()
	err := r.file.keep(r.jid, what)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = nil
	switch {
	case errors.Is(err, errTaken):
		r.over = err
	case err != nil:
		r.noted = what.and(r.noted)
		r.writeLater()
	default:
		r.kept = upTo
	}
	return err
}

// settled asks the library's own store for something rare: it sees all that is
// noted, and what it changes is not remembered otherwise.
func (r *ratchets) settled(do func() error) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if err := r.flush(); err != nil {
		return err
	}
	err := do()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.anew++ // what was read before is not to be remembered
	r.sessions, r.identities, r.tokens, r.salt = recent[string, []byte]{}, recent[string, [32]byte]{}, recent[string, *store.PrivacyToken]{}, nil
	return err
}

// GetPrivacyToken returns what WhatsApp wants to see of us in a chat.
func (r *ratchets) GetPrivacyToken(ctx context.Context, user types.JID) (*store.PrivacyToken, error) {
	name := user.ToNonAD().String()
	if user.Server == types.HiddenUserServer { // it can be kept under the number, as soon as that is known
		pn, err := r.lids.GetPNForLID(ctx, user)
		if err != nil {
			return nil, fmt.Errorf("looking up a phone number: %w", err)
		}
		name += " " + pn.User
	}
	r.mu.Lock()
	token, known := r.tokens.get(name)
	at := r.anew
	r.mu.Unlock()
	if !known {
		var err error
		if token, err = r.AllSessionSpecificStores.GetPrivacyToken(ctx, user); err != nil {
			return nil, err // as the library's own does
		}
		r.mu.Lock()
		if at == r.anew {
			r.tokens.put(name, token)
		}
		r.mu.Unlock()
	}
	if token == nil {
		return nil, nil
	}
	own := *token // the caller writes in it
	return &own, nil
}

// PutPrivacyTokens keeps tokens.
func (r *ratchets) PutPrivacyTokens(ctx context.Context, tokens ...store.PrivacyToken) error {
	return r.settled(func() error { return r.AllSessionSpecificStores.PutPrivacyTokens(ctx, tokens...) })
}

// DeleteExpiredPrivacyTokens forgets old tokens.
func (r *ratchets) DeleteExpiredPrivacyTokens(ctx context.Context, before time.Time) (n int64, err error) {
	err = r.settled(func() error {
		n, err = r.AllSessionSpecificStores.DeleteExpiredPrivacyTokens(ctx, before)
		return err
	})
	return n, err
}

// GetNCTSalt returns the salt of what we show to chats that gave us no token.
func (r *ratchets) GetNCTSalt(ctx context.Context) ([]byte, error) {
	r.mu.Lock()
	known, at := r.salt, r.anew
	r.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	salt, err := r.AllSessionSpecificStores.GetNCTSalt(ctx)
	if err != nil {
		return nil, err // as the library's own does
	}
	r.mu.Lock()
	if at == r.anew {
		r.salt = &salt
	}
	r.mu.Unlock()
	return salt, nil
}

// PutNCTSalt keeps that salt.
func (r *ratchets) PutNCTSalt(ctx context.Context, salt []byte) error {
	return r.settled(func() error { return r.AllSessionSpecificStores.PutNCTSalt(ctx, salt) })
}

// DeleteNCTSalt forgets that salt.
func (r *ratchets) DeleteNCTSalt(ctx context.Context) error {
	return r.settled(func() error { return r.AllSessionSpecificStores.DeleteNCTSalt(ctx) })
}
