package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow"
	"till/flow/store"
)

var (
	// ErrHeld says that another process runs a number.
	ErrHeld = errors.New("checkout: another process runs this number")
	// ErrLeaseLost says that this process must not send with a number any more.
	ErrLeaseLost = errors.New("checkout: the lease of this number is lost")
)

// The times of a lease.
const (
	// LeaseLasts is how long a process that says nothing keeps a number.
	LeaseLasts = 15 * time.Second
	// LeaseRenew is how often it says something.
	LeaseRenew = 4 * time.Second
	// leaseMargin is how much earlier a process believes its own lease to be over
	// than the others do: more than their clocks may differ, and than a message
	// may be under way between the check and the wire.
	leaseMargin = 3 * time.Second
	// redisSlow is how long a Redis that hangs may hold a lease up.
	redisSlow = time.Second
)

// Leases say which process runs a WhatsApp number. At most one may send with it.
//
// The lease is in Redis, where it runs out by itself, and in the database,
// which decides: a process holds a number while the number's row has its token.
// A token is drawn in Redis (INCR) above the row's, and a row only ever takes a
// higher one, and only when the row's own time has run out or its holder let
// go. So:
//
//   - Redis emptied, restarted or behind: the tokens go on above the row's, and
//     nobody can take a number whose row is held.
//   - Redis gone: the holder goes on, because the row is renewed all the same;
//     who wants the number asks the row alone.
//   - The database gone: nobody can take the number, and the holder stops when
//     its lease has run out by its own clock, a margin before it does for others.
//   - The holder paused and woken: its clock or the row's token tells it at its
//     next message that the number is somebody else's. A message that was past
//     that check when the process was paused meets a line that WhatsApp has
//     closed: one device of a number has one line, and the next holder has it.
type Leases struct {
	db     *store.DB
	client redis.UniversalClient // nil: none
	prefix string
	holder string // names this process
	now    func() time.Time
	log    *slog.Logger

	alone bool // no other process can take a number
	mu    sync.Mutex
	taken map[int]int64 // where alone: the token of the newest lease of each number
}

// NewLeases makes the leases of a process, which holder names: it must be a
// name that no other process has or had. Keys in Redis begin with prefix. Now
// is never a clock that merchants move.
func NewLeases(db *store.DB, client redis.UniversalClient, prefix, holder string, now func() time.Time, log *slog.Logger) *Leases {
	return &Leases{db: db, client: client, prefix: prefix, holder: holder, now: now, log: log, taken: map[int]int64{}}
}

// Alone says, before the first number is taken, that the database is locked for this
// process: nobody else can take a number, and none is asked about before each message.
func (l *Leases) Alone() { l.alone = true }

// newest is the token of the newest lease of a number.
func (l *Leases) newest(ctx context.Context, slot int) (int64, error) {
	if !l.alone {
		return l.db.NumberToken(ctx, slot)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken[slot], nil
}

// Holder names this process.
func (l *Leases) Holder() string { return l.holder }

// Lease is the right to send with a number.
type Lease struct {
	Slot  int
	Token int64
	Row   flow.Number // as it stood before

	of *Leases
	mu sync.Mutex
	at time.Time // when it was last known to be held
}

// takeLease draws a token above a floor and takes the lease where it is free, is
// that of this process or of one that is dead, or is from before the floor: Redis
// was away when the row went on. 0 is a refusal.
var takeLease = redis.NewScript(`
for i = 1, 2 do
  local want = i == 1 and 'hash' or 'string'
  local type = redis.call('TYPE', KEYS[i]).ok
  if type ~= want and type ~= 'none' then redis.call('DEL', KEYS[i]) end
end
local held = redis.call('HMGET', KEYS[1], 'holder', 'token')
if held[1] and held[1] ~= ARGV[1] and held[1] ~= ARGV[2] and (tonumber(held[2] or '0') or 0) >= tonumber(ARGV[4]) then return 0 end
local drawn = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
if drawn < tonumber(ARGV[4]) then redis.call('SET', KEYS[2], ARGV[4]) end
local token = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'token', token)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return token`)

// renewLease makes a lease last, or writes it anew where Redis has lost it. One
// with a higher token is left alone.
var renewLease = redis.NewScript(`
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local token = tonumber(redis.call('HGET', KEYS[1], 'token') or '0') or 0
if token > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'token', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`)

var dropLease = redis.NewScript(`
if redis.call('TYPE', KEYS[1]).ok == 'hash' and redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

func (l *Leases) keys(slot int) []string {
	name := l.prefix + "number:" + strconv.Itoa(slot)
	return []string{name + ":lease", name + ":token"}
}

// ask runs a script. What Redis cannot say is left to the row.
func (l *Leases) ask(ctx context.Context, script *redis.Script, slot int, args ...any) (int64, bool) {
	if l.client == nil {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, redisSlow)
	defer cancel()
	answer, err := script.Run(ctx, l.client, l.keys(slot), args...).Int64()
	if err != nil {
		l.log.LogAttrs(ctx, slog.LevelDebug, "redis did not say who runs a number", slog.Int("slot", slot), slog.String("error", err.Error()))
	}
	return answer, err == nil
}

// Take takes a number. heir names a process that is known to be dead and whose
// lease need not be waited for, "" for none. Errors: ErrHeld.
func (l *Leases) Take(ctx context.Context, slot int, heir string) (*Lease, error) {
	began := l.now()
	row, found, err := l.db.Number(ctx, slot)
	if err == nil && !found {
		err = l.db.Update(ctx, func(tx *store.Tx) error { return tx.AddNumber(ctx, slot, began) })
	}
	if err != nil {
		return nil, fmt.Errorf("take number %d: %w", slot, err)
	}
	if row.Holder != "" && row.Holder != l.holder && row.Holder != heir && row.HeldUntil.After(began) {
		return nil, ErrHeld
	}
	token, answered := l.ask(ctx, takeLease, slot, l.holder, heir, LeaseLasts.Milliseconds(), row.Token)
	if answered && token == 0 {
		return nil, ErrHeld
	}
	if !answered {
		token = row.Token + 1
	}
	taken := false
	err = l.db.Update(ctx, func(tx *store.Tx) error {
		var err error
		taken, err = tx.TakeNumber(ctx, flow.Number{Slot: slot, Holder: l.holder, Token: token, HeldUntil: began.Add(LeaseLasts)}, heir, began)
		return err
	})
	if err != nil || !taken {
		l.ask(ctx, dropLease, slot, l.holder)
		if err == nil {
			err = ErrHeld
		}
		return nil, fmt.Errorf("take number %d: %w", slot, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[slot] = token
	return &Lease{Slot: slot, Token: token, Row: row, of: l, at: began}, nil
}

// Renew makes a lease last. Errors: ErrLeaseLost.
func (h *Lease) Renew(ctx context.Context) error {
	began := h.of.now()
	held := false
	err := h.of.db.Update(ctx, func(tx *store.Tx) error {
		var err error
		held, err = tx.HoldNumber(ctx, h.Slot, h.Token, began.Add(LeaseLasts))
		return err
	})
	if err == nil && !held {
		err = ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("renew number %d: %w", h.Slot, err)
	}
	h.of.ask(ctx, renewLease, h.Slot, h.of.holder, h.Token, LeaseLasts.Milliseconds())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = began
	return nil
}

// Keep makes a lease last until ctx ends, and returns when it is lost: to another
// process, or because it ran out by our own clock before it could be renewed.
// Errors: ErrLeaseLost; that of ctx.
func (h *Lease) Keep(ctx context.Context) error {
	ticker := time.NewTicker(LeaseRenew)
	defer ticker.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		err := h.Renew(ctx)
		if errors.Is(err, ErrLeaseLost) {
			return err
		}
		if err != nil && h.Left() <= 0 {
			return fmt.Errorf("%w: %w", ErrLeaseLost, err)
		}
		if failed != (err != nil) && ctx.Err() == nil {
			failed = err != nil
			if failed {
				h.of.log.LogAttrs(ctx, slog.LevelWarn, "the lease of a whatsapp number is not renewed", slog.Int("slot", h.Slot), slog.String("error", err.Error()))
			} else {
				h.of.log.LogAttrs(ctx, slog.LevelWarn, "the lease of a whatsapp number is renewed again", slog.Int("slot", h.Slot))
			}
		}
	}
}

// Left is how long the lease lasts by this process's own clock.
func (h *Lease) Left() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return LeaseLasts - leaseMargin - h.of.now().Sub(h.at)
}

// Check is asked before each message. Errors: ErrLeaseLost.
func (h *Lease) Check(ctx context.Context) error {
	if h.Left() <= 0 {
		return ErrLeaseLost
	}
	token, err := h.of.newest(ctx, h.Slot)
	if err == nil && token != h.Token {
		err = ErrLeaseLost
	}
	return err
}

// Drop lets go of the number, so that another process need not wait.
func (h *Lease) Drop(ctx context.Context) error {
	h.of.ask(ctx, dropLease, h.Slot, h.of.holder)
	err := h.of.db.Update(ctx, func(tx *store.Tx) error { return tx.DropNumber(ctx, h.Slot, h.Token) })
	return wrap("let go of a number", err)
}
