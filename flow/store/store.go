// Package store keeps what package flow names, in SQLite or in PostgreSQL, with
// the same queries.
//
// There is one way to write: Update. On SQLite one goroutine owns the one write
// connection and commits many callers' work with one fsync; on PostgreSQL each
// Update is a serialisable transaction that is tried again when it met another.
// Reads outside an Update go through Reader, which cannot write.
//
// The package knows rows, not rules: whether a move is legal is decided in
// flow. Its schema still refuses what must never be: a session settled twice, a
// second live attempt of a method, a movement of the rail booked twice.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"till/flow"
	"till/flow/planted"
	"till/flow/store/lite"
)

//go:embed migration
var migrations embed.FS

// Schema is what a database holds.
type Schema string

// The schemas: who may use Till, and one environment's checkouts.
const (
	Accounts Schema = "accounts"
	Checkout Schema = "checkout"
)

// The bounds of the writer.
const (
	queueLength = 1024
	batchSize   = 256
	readers     = 4
	pgConns     = 12
	// maxRetries is how often PostgreSQL may refuse a transaction because it met
	// another one; from aloneFrom on it is tried alone in this process.
	maxRetries = 20
	aloneFrom  = 2
	batchTries = 4
	// maxTaken is how often a unique index may refuse a row before that is
	// believed: PostgreSQL also says so to a transaction that met another one.
	maxTaken = 2
	// retryWait is the longest first wait of a refused transaction; it doubles.
	retryWait = 2 * time.Millisecond
	// patience is how long a caller waits for a place in the queue, and
	// longPatience how long one does that is in no hurry.
	patience     = 3 * time.Second
	longPatience = 25 * time.Second
	// begun is how much longer a caller waits until its work is begun: another
	// process may hold the file, or the disk be slow for all before it.
	begun = 2 * time.Second
)

// unhurried is the key under which a context says so.
type unhurried struct{}

// Unhurried is a context whose updates wait long for their turn while the store
// is busy. It is for what nobody waits for and what would have to be done again,
// at the store's further cost, if it were turned away.
func Unhurried(ctx context.Context) context.Context { return context.WithValue(ctx, unhurried{}, true) }

// patient is how long an update under a context waits for its turn.
func patient(ctx context.Context) time.Duration {
	if ctx.Value(unhurried{}) != nil {
		return longPatience
	}
	return patience
}

// Config says where a database is. URL is a postgres:// address, and Name then
// the PostgreSQL schema; with an empty URL it is the SQLite file Dir/Name.db.
type Config struct {
	Schema Schema
	Dir    string
	URL    string
	Name   string
	Log    *slog.Logger

	// VFS is the disk that an SQLite file is on, by the name that SQLite knows it by; ""
	// is the system's.
	VFS string

	// Within is how long a transaction on PostgreSQL, or a read outside one, may take
	// before it is given up: a server that is gone without a word is noticed by
	// nothing else. 0: 25 s.
	Within time.Duration

	// Commits is called before each commit, and what it returns after it: whoever
	// has a clock can say how long commits take. Nil: nobody does.
	Commits func() (done func()) `json:"-"`

	// Keys seal what is secret; without them none of that can be read or kept.
	Keys *Keyring `json:"-"`
	// Seal has Open seal what is in the clear or sealed with an old key, Secrets
	// being the settings that are secret. Errors of Open are then ErrKey for what no
	// key opens.
	Seal    bool
	Secrets []string

	// AsIs has Open neither make nor migrate a database. Errors: ErrOlder for one that
	// would have to be.
	AsIs bool
}

// DB is one open database.
type DB struct {
	Reader

	dialect dialect
	write   *sql.DB
	read    *sql.DB
	readers *liteReaders
	gate    *semaphore.Weighted // PostgreSQL: a place for each transaction
	bound   *bound              // PostgreSQL: its queries
	units   chan *unit
	later   chan *unit // work that waits a moment for some in units
	stop    chan struct{}
	done    chan struct{}
	once    sync.Once
	under   atomic.Int64 // updates that have not returned
	lost    atomic.Bool  // the last that was to be kept was not, for want of room or the like, and nothing was since
	log     *slog.Logger
	keys    *Keyring
	commits func() (done func())
	within  time.Duration      // PostgreSQL: Config.Within
	life    context.Context    //nolint:containedctx // PostgreSQL: of all that is done there
	leave   context.CancelFunc // ends it
}

// ErrOlder says that a database was not migrated to what this program knows.
var ErrOlder = errors.New("the data is of an older Till")

// Open opens a database, creating and migrating it as needed unless it is to stay
// as it is.
func Open(ctx context.Context, c Config) (*DB, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With(slog.String("database", c.Name)) // there are three of them
	if c.Commits == nil {
		c.Commits = func() func() { return func() {} }
	}
	c.Within = cmp.Or(c.Within, longPatience)
	d := &DB{commits: c.Commits, within: c.Within, units: make(chan *unit, queueLength), later: make(chan *unit, queueLength), stop: make(chan struct{}), done: make(chan struct{}), log: c.Log, keys: c.Keys}
	var err error
	if c.URL != "" {
		err = d.openPostgres(ctx, c)
	} else {
		err = d.openSQLite(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// synchronous has each commit wait for the disk: what was answered survives a power cut.
func synchronous() string {
	if planted.UnsyncedCommit {
		return "synchronous(NORMAL)"
	}
	return "synchronous(FULL)"
}

// sqlitePragmas are what every connection starts with; sizes were measured. Without
// recursive triggers SQLite asks none about a row that REPLACE takes away, and the
// ledger could be written over.
func sqlitePragmas() []string {
	return []string{
		"busy_timeout(5000)", "journal_mode(WAL)", synchronous(), "foreign_keys(1)", "recursive_triggers(1)", "wal_autocheckpoint(4000)",
		fmt.Sprintf("journal_size_limit(%d)", logKept), "mmap_size(268435456)", "temp_store(MEMORY)",
	}
}

// sqlitePage is how large a page of an SQLite file is.
const sqlitePage = 4096

// writerCache is how much of the file the writer remembers, in KiB, as far as it
// is used: nobody else writes, so that what it remembers stays true, and what is
// not yet checkpointed would be read from the log again each time.
const writerCache = "cache_size(-16384)"

func (d *DB) openSQLite(ctx context.Context, c Config) error {
	d.dialect = sqliteDialect
	uri := fileURI(c)
	var err error
	// A table can only be made anew while nobody asks whether others name its rows;
	// each migration is checked for that as a whole. The driver sorts what it is told:
	// it must not be told both.
	pragmas := sqlitePragmas()
	pragmas[slices.Index(pragmas, "foreign_keys(1)")] = "foreign_keys(0)"
	if d.write, err = sql.Open("sqlite", uri+"&_txlock=immediate&_pragma="+strings.Join(pragmas, "&_pragma=")); err != nil {
		return fmt.Errorf("open %s: %w", c.Name, err)
	}
	d.write.SetMaxOpenConns(1)
	// To turn a new file to WAL takes a lock that SQLite does not wait for.
	err = d.migrate(ctx, c)
	for try := 0; try < maxRetries && lite.Busy(err); try++ {
		if err = pause(ctx, try); err == nil {
			err = d.migrate(ctx, c)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", c.Name, err), d.write.Close())
	}
	if err := d.sealAll(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", c.Name, err), d.write.Close())
	}
	writer, err := lite.Open(uri, append(sqlitePragmas(), writerCache)...)
	if err != nil {
		return errors.Join(fmt.Errorf("open %s for writing: %w", c.Name, err), d.write.Close())
	}
	if err := d.write.Close(); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", c.Name, err), writer.Close())
	}
	d.readers = newLiteReaders(uri, readers)
	d.Reader = Reader{run: runner{statements: d.readers, dialect: d.dialect, keys: d.keys}}
	log := newTail(filepath.Join(c.Dir, c.Name+".db-wal"), d.log)
	go d.writer(func(units []*unit) {
		d.batch(writer, units)
		if c.VFS == "" { // elsewhere there is no such file
			log.bound(writer)
		}
	}, writer.Close)
	return nil
}

// Leave gives up what PostgreSQL has not answered, and asks it for nothing more: who
// waits is told that the store does not answer. What of it is kept is as unknown as after a
// crash. An SQLite file answers.
func (d *DB) Leave() {
	if d.leave != nil {
		d.leave()
	}
}

// Close lets the writer finish what is queued and closes the database.
func (d *DB) Close() error {
	d.once.Do(func() { close(d.stop) })
	if d.dialect == postgresDialect { // nobody waits any more for what it is asked yet
		defer d.leave()
		defer time.AfterFunc(patience, d.leave).Stop()
	}
	<-d.done
	if d.dialect == sqliteDialect {
		return d.readers.close()
	}
	return errors.Join(d.write.Close(), d.read.Close())
}

// Update runs fn in a transaction: all of it is kept, or none. When Update
// returns nil, what fn wrote survives a power cut. fn may run more than once
// and must set, not add to, what it hands out.
func (d *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	d.under.Add(1)
	defer d.under.Add(-1)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if d.dialect == postgresDialect && rowwise(ctx) {
		return d.updatePostgres(ctx, fn)
	}
	u := &unit{run: fn, gone: ctx.Err, keys: d.keys, done: make(chan struct{})}
	place, begin := time.NewTimer(patient(ctx)), time.NewTimer(patient(ctx)+begun)
	defer place.Stop()
	defer begin.Stop()
	select {
	case d.queue(ctx) <- u:
	case <-ctx.Done():
		return fmt.Errorf("wait for the writer: %w", ctx.Err())
	case <-place.C:
		return flow.Refuse(flow.CodeStorage, "The store is busy. Try again.")
	case <-d.stop:
		return flow.Refuse(flow.CodeStorage, "The store is closing.")
	}
	select {
	case <-u.done:
	case <-d.done:
	case <-ctx.Done():
		if u.leave() {
			return fmt.Errorf("wait for the writer: %w", ctx.Err())
		}
	case <-begin.C:
		if u.leave() {
			return flow.Refuse(flow.CodeStorage, "The store is busy. Try again.")
		}
	}
	// Once begun, the outcome is waited for: nobody may guess at a commit.
	select {
	case <-u.done:
	case <-d.done:
		select {
		case <-u.done:
		default:
			return flow.Refuse(flow.CodeStorage, "The store is closing.")
		}
	}
	if errors.Is(u.err, errSingly) {
		return d.updatePostgres(ctx, fn)
	}
	if u.err != nil {
		return u.err
	}
	u.tx.committed()
	return nil
}

// pause waits before the next try: two that met must not meet again.
func pause(ctx context.Context, try int) error {
	longest := retryWait << min(try, 5)
	wait := time.NewTimer(rand.N(longest)) //nolint:gosec // nothing is secret here
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notNow is what callers are told where the store is at fault.
const notNow = "The store does not answer right now. Try again."

// storageError says that the store, not the request, is at fault. What it was
// asked wrongly is a bug of ours, which trying again does not mend: that stays
// as it is.
func storageError(err error) error {
	if _, ok := errors.AsType[*flow.Error](err); ok || err == nil || lite.Bug(err) || postgresBug(err) {
		return err
	}
	return &flow.Error{Code: flow.CodeStorage, Message: notNow, Err: err}
}
