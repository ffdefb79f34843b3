package checkout

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"till/flow"
	"till/flow/store"
)

// boardMemory is how old what a Board shows may be: what another process
// changes (an operator's command) holds everywhere after it.
const boardMemory = 500 * time.Millisecond

// BoardMemory is when what an operator switched holds in every process.
const BoardMemory = 2 * boardMemory

// Board shows what operators want and how our WhatsApp numbers stand, in one
// environment. It answers from memory, so that nobody waits for it inside a
// transaction; Run keeps that young. While the store does not answer, what was
// seen last goes on being true.
type Board struct {
	db  *store.DB
	now func() time.Time // of leases: never a clock that merchants move
	day func() time.Time // the environment's clock, which dates chats
	log *slog.Logger
	// suspended reads the projects that may do nothing in this environment; nil:
	// there are none.
	suspended func(ctx context.Context) ([]flow.ProjectID, error)

	refreshing sync.Mutex // one reading at a time, so that an older one never wins

	mu       sync.RWMutex
	numbers  []flow.Number
	switches map[flow.SwitchKind]map[string]string
	barred   map[flow.ProjectID]bool // those that are suspended
	given    map[string]int          // links given out with each number that could be
	away     bool                    // the store did not answer
}

// NewBoard makes a Board. It shows nothing before Refresh or Run.
func NewBoard(db *store.DB, now, day func() time.Time, log *slog.Logger) *Board {
	return &Board{db: db, now: now, day: day, log: log, given: map[string]int{}}
}

// Heed has the Board bar the projects that suspended reads, from the next Refresh
// on.
func (b *Board) Heed(suspended func(ctx context.Context) ([]flow.ProjectID, error)) {
	b.suspended = suspended
}

// Run keeps what the Board shows young, until ctx ends.
func (b *Board) Run(ctx context.Context) error {
	ticker := time.NewTicker(boardMemory)
	defer ticker.Stop()
	for {
		err := b.Refresh(ctx)
		b.mu.Lock()
		changed := b.away != (err != nil)
		b.away = err != nil
		b.mu.Unlock()
		switch {
		case !changed || ctx.Err() != nil:
		case err != nil:
			b.log.LogAttrs(ctx, slog.LevelWarn, "the switches and numbers cannot be read", slog.String("error", err.Error()))
		default:
			b.log.LogAttrs(ctx, slog.LevelWarn, "the switches and numbers are read again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Refresh reads everything anew.
func (b *Board) Refresh(ctx context.Context) error {
	b.refreshing.Lock()
	defer b.refreshing.Unlock()
	numbers, err := b.db.Numbers(ctx, flow.DayOf(b.day()))
	if err != nil {
		return err
	}
	switches, err := b.db.Switches(ctx)
	if err != nil {
		return err
	}
	now := b.now()
	b.mu.Lock()
	for _, n := range numbers {
		if !n.Takes(now) { // it begins level with the others when it comes back
			delete(b.given, n.Digits)
			continue
		}
		if _, known := b.given[n.Digits]; !known {
			b.given[n.Digits] = b.level() * n.Weight
		}
	}
	b.numbers, b.switches = numbers, switches
	b.mu.Unlock()
	return b.bar(ctx)
}

// bar reads which projects are suspended. Those are kept elsewhere: where that
// cannot be read, what is known stays, and what an operator switches counts.
func (b *Board) bar(ctx context.Context) error {
	if b.suspended == nil {
		return nil
	}
	list, err := b.suspended(ctx)
	if err != nil {
		return err
	}
	barred := map[flow.ProjectID]bool{}
	for _, id := range list {
		barred[id] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.barred = barred
	return nil
}

// level is how many links for its weight the number was given that was given
// the fewest. The caller holds mu.
func (b *Board) level() int {
	least, found := 0, false
	for _, n := range b.numbers {
		if given, ok := b.given[n.Digits]; ok && n.Weight > 0 && (!found || given/n.Weight < least) {
			least, found = given/n.Weight, true
		}
	}
	return least
}

// Pick is the number that a new link carries, "" where none takes new chats.
func (b *Board) Pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := flow.PickNumber(b.numbers, b.given, b.now())
	if ok {
		b.given[n.Digits]++
	}
	return n.Digits
}

// Current is the number that a link to a chat with number should carry now: the
// same one, unless it leads nowhere any more and another takes new chats. An
// entry code works on each of our numbers.
func (b *Board) Current(number string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	now := b.now()
	// One that none of our places has any more is somebody else's: another phone was
	// linked where it was.
	leads := slices.ContainsFunc(b.numbers, func(n flow.Number) bool { return n.Digits == number && n.Able(now) })
	if number == "" || leads {
		return number
	}
	// Not Pick: the same question gets the same answer, and reading is not giving out.
	if other, ok := flow.PickNumber(b.numbers, nil, now); ok {
		return other.Digits
	}
	return number
}

// Numbers are our numbers, by slot.
func (b *Board) Numbers() []flow.Number {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.numbers)
}

// Any is a number that takes new chats, without choosing it; "" where none does.
func (b *Board) Any() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n, _ := flow.PickNumber(b.numbers, nil, b.now())
	return n.Digits
}

// Ours says whether a phone number is one of our own.
func (b *Board) Ours(digits string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return digits != "" && slices.ContainsFunc(b.numbers, func(n flow.Number) bool { return n.Digits == digits })
}

func (b *Board) at(kind flow.SwitchKind, name string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.switches[kind][name]
}

// Killed says whether an operator switched a number off.
func (b *Board) Killed(number string) bool {
	return b.at(flow.SwitchNumber, number) == string(flow.NumberKill)
}

// Stopped says whether an operator stopped a merchant's project.
func (b *Board) Stopped(project flow.ProjectID) bool {
	return b.at(flow.SwitchMerchant, string(project)) == flow.MerchantStopped
}

// Barred says whether a project may do nothing here, because an operator stopped
// it or suspended its merchant. Money that comes for it is kept all the same.
func (b *Board) Barred(project flow.ProjectID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.barred[project] || b.switches[flow.SwitchMerchant][string(project)] == flow.MerchantStopped
}

// Held says whether no money may be sent out: what was ordered since the data is of
// may not be known here.
func (b *Board) Held() bool { return b.at(flow.SwitchMoney, flow.MoneyOut) == flow.MoneyHeld }

// StoppedProjects are the ids of the projects that operators stopped, in order.
func (b *Board) StoppedProjects() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Sorted(maps.Keys(b.switches[flow.SwitchMerchant]))
}

// Served is what is left of the methods that a rail serves for a project.
func (b *Board) Served(methods []flow.Method, project flow.ProjectID) []flow.Method {
	if b.Barred(project) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(methods), func(m flow.Method) bool { return b.at(flow.SwitchMethod, string(m)) != "" })
}

// Move moves a switch. Errors: invalid_field for one that there is not.
func (b *Board) Move(ctx context.Context, m flow.SwitchMove) (flow.SwitchMove, error) {
	if err := m.Check(); err != nil {
		return m, err
	}
	m.At = b.now()
	var moved flow.SwitchMove
	err := b.db.Update(ctx, func(tx *store.Tx) error {
		var err error
		moved, err = tx.MoveSwitch(ctx, m)
		return err
	})
	if err != nil {
		return m, fmt.Errorf("move a switch: %w", err)
	}
	return moved, b.Refresh(ctx)
}

// Bound sets a number's share of new chats beside the others' and how many it
// takes a day, 0 for any number.
func (b *Board) Bound(ctx context.Context, slot, weight, dailyChats int) error {
	err := b.db.Update(ctx, func(tx *store.Tx) error { return tx.SetNumberBounds(ctx, slot, weight, dailyChats) })
	if err != nil {
		return fmt.Errorf("bound a number: %w", err)
	}
	return b.Refresh(ctx)
}

// Report keeps what a number says of itself. Errors: ErrLeaseLost.
func (b *Board) Report(ctx context.Context, n flow.Number) error {
	err := b.db.Update(ctx, func(tx *store.Tx) error {
		kept, err := tx.ReportNumber(ctx, n)
		if err == nil && !kept {
			err = ErrLeaseLost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep how a number stands: %w", err)
	}
	return b.Refresh(ctx)
}

// Moves are the last acts of operators, oldest first.
func (b *Board) Moves(ctx context.Context, limit int) ([]flow.SwitchMove, error) {
	return b.db.SwitchMoves(ctx, limit)
}
