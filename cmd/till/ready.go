package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"till/api"
	"till/flow"
	"till/flow/store"
	"till/rail"
)

// checkPatience is how long a part may take to say that it works: those who ask
// wait for little more.
const checkPatience = 2 * time.Second

// check adds a part that is asked whether it works. away is what is said while
// it does not.
func (a *app) check(away api.Check, ask func(ctx context.Context) error) {
	a.checks = append(a.checks, func(ctx context.Context) api.Check {
		short, cancel := context.WithTimeout(ctx, checkPatience)
		defer cancel()
		out := away
		if out.Err = ask(short); out.Err == nil {
			out.OK, out.Reason = true, ""
		}
		return out
	})
}

// ready asks every part at once.
func (a *app) ready(ctx context.Context) []api.Check {
	out := make([]api.Check, len(a.checks))
	var asked sync.WaitGroup
	for i, ask := range a.checks {
		asked.Go(func() { out[i] = ask(ctx) })
	}
	asked.Wait()
	return out
}

// checkStores: without them nothing can be served.
func (a *app) checkStores(all ...*store.DB) {
	a.check(api.Check{Name: "store", Needed: true, Reason: "It does not answer, or keeps nothing: till doctor says why."}, func(ctx context.Context) error {
		for _, db := range all {
			if err := db.Takes(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkSchemas: on PostgreSQL a newer program may be started while this one runs, and
// change under it what it reads and writes, or a schema be dropped: the database itself
// answers on.
func (a *app) checkSchemas(test, live *store.DB) {
	a.checks = append(a.checks, func(ctx context.Context) api.Check {
		short, cancel := context.WithTimeout(ctx, checkPatience)
		defer cancel()
		out := api.Check{Name: "schema", Needed: true, OK: true}
		for _, err := range []error{a.settings.Fits(short, store.Accounts), test.Fits(short, store.Checkout), live.Fits(short, store.Checkout)} {
			switch { // a store that does not answer is told by itself
			case errors.Is(err, store.ErrGone):
				out.OK, out.Err = false, err
				out.Reason = "A schema is gone from the database, or may not be read: till doctor says what mends it. What was in it is answered with 500."
			case errors.Is(err, store.ErrNewer):
				out.OK, out.Err = false, err
				out.Reason = "A newer Till has changed the database: stop this process, and start that one in its place. What this one cannot read any more it answers with 500."
			}
		}
		return out
	})
}

// checkSealing: a start with another key seals everything anew, also under a process that
// runs on with the one before. That tells no merchant of money any more: it cannot read
// what their webhooks are signed with.
func (a *app) checkSealing(all ...*store.DB) {
	a.checks = append(a.checks, func(ctx context.Context) api.Check {
		short, cancel := context.WithTimeout(ctx, checkPatience)
		defer cancel()
		out := api.Check{Name: "sealing_key", Needed: true, OK: true}
		for _, db := range all { // a store that does not answer is told by itself
			switch err := db.SealsStill(short); {
			case errors.Is(err, store.ErrKey):
				out.OK, out.Err = false, err
				out.Reason = "Secrets were sealed with another key meanwhile: start this process again with the new TILL_SECRETS_KEY. Until then it reads none of them, and sends no webhook."
				return out
			case errors.Is(err, store.ErrOldKey):
				out.OK, out.Needed, out.Err = false, false, err
				out.Reason = "Secrets are sealed with another key by now: start this process again with that as its TILL_SECRETS_KEY. Until then it seals none that are new, as those of new endpoints."
			}
		}
		return out
	})
}

// leastRoom is how much room a disk has at least while something can be kept on it.
const leastRoom = 1 << 20

// checkDisk: a store answers on a full disk, and keeps nothing.
func (a *app) checkDisk(room func(dir string) (free, all uint64, err error)) {
	a.check(api.Check{Name: "disk", Needed: true, Reason: "It is full: nothing can be kept."}, func(context.Context) error {
		if free, all, err := room(a.set.DataDir); err == nil && all > 0 && free < leastRoom { // a system that does not say is not blamed
			return fmt.Errorf("%d bytes are free on the disk of %s", free, a.set.DataDir)
		}
		return nil
	})
}

// checkBank: without it no instructions are made; what was made can be paid. It is the
// test environment's: no live bank is connected yet.
func (a *app) checkBank() {
	a.checks = append(a.checks, func(context.Context) api.Check {
		out := api.Check{Name: "bank", Err: a.bankKnows.why()}
		since, away := a.meter.BankAway(flow.Test)
		switch {
		case errors.Is(out.Err, rail.ErrRejected):
			out.Reason = "It refuses to register us: payers get no instructions, and nothing can be paid. The log says why."
		case out.Err != nil:
			out.Reason = "It has not answered since the start, and is asked again: payers get no instructions, and nothing new can be paid."
		case away:
			out.Reason = "It left the last calls unanswered, or does not know us any more. What it is owed is tried again; payers get no new instructions."
			out.Err = fmt.Errorf("nothing was answered since %s", since.UTC().Format(time.RFC3339))
		default:
			out.OK = true
		}
		return out
	})
}

// checkMoney: it is held after a restore, until somebody looked what left since.
func (a *app) checkMoney() {
	a.checks = append(a.checks, func(context.Context) api.Check {
		var release []string
		if a.board.Held() {
			release = append(release, "till ledger release")
		}
		if a.liveBoard.Held() {
			release = append(release, "till ledger release --live")
		}
		out := api.Check{Name: "payouts", OK: len(release) == 0}
		if !out.OK {
			out.Reason = "They are held, and refunds too, until somebody looked at what the bank sent: " + strings.Join(release, ", then ") + "."
			out.Err = errors.New("no payout and no refund is newly ordered")
		}
		return out
	})
}

// readyKey is what Redis is told to see whether it keeps what it is told.
const readyKey = "till:ready"

// checkRedis: it holds only what may be lost. One that is full, or a replica, answers
// and keeps nothing.
func (a *app) checkRedis() {
	a.checks = append(a.checks, func(ctx context.Context) api.Check {
		// The client dials again and again; whoever probes every second must not wait for that.
		short, cancel := context.WithTimeout(ctx, checkPatience/4)
		defer cancel()
		out := api.Check{Name: "redis", Err: a.redis.Set(short, readyKey, 1, time.Minute).Err()}
		_, no := errors.AsType[redis.Error](out.Err)
		switch {
		case out.Err == nil:
			out.OK = true
		case no:
			out.Reason = "It answers and keeps nothing: till doctor says why. Nothing is lost: calls are counted by each process alone."
		default:
			out.Reason = "It does not answer. Nothing is lost: calls are counted by each process alone."
		}
		return out
	})
}

// checkWhatsApp: without a number, headless sessions go on.
func (a *app) checkWhatsApp() {
	a.checks = append(a.checks, func(context.Context) api.Check {
		out := api.Check{Name: "whatsapp", Err: a.fleet.Unkept()}
		if out.Err != nil { // whatever other numbers do: nobody in the chats of these is answered
			out.Reason = "Keys of numbers cannot be kept: payers get no answers until the folder " + keysDir + " of the data dir can be written again. till doctor says what it lacks; nothing is lost meanwhile."
			return out
		}
		if out.OK = a.board.Any() != ""; out.OK {
			return out
		}
		out.Reason = "No number takes new chats: " + standings(a.board.Numbers(), time.Now())
		if why := a.fleet.Trouble(); why != "" {
			out.Reason += notReached(a.set.WhatsAppDial)
			out.Err = errors.New(why)
		}
		return out
	})
}

// notReached says what to look at where the network was not reached: WhatsApp's own
// stands at no address that somebody set.
func notReached(dial string) string {
	if dial == "" {
		return " WhatsApp was not reached: look at how this machine reaches others, by name and on port 443."
	}
	return " The network was not reached: check --whatsapp-dial and --whatsapp-root-key."
}

// standings says in one line how numbers stand. Anybody may read it: numbers are
// cut to their last digits.
func standings(list []flow.Number, now time.Time) string {
	if len(list) == 0 {
		return "there is none yet."
	}
	parts := make([]string, 0, len(list))
	for _, n := range list[:min(len(list), 5)] {
		name := "a number not linked yet"
		if n.Digits != "" {
			name = flow.Phone(n.Digits).String()
		}
		parts = append(parts, name+" is "+string(n.At(now)))
	}
	return strings.Join(parts, ", ") + "."
}
