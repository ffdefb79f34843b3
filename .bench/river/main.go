// River does the job that `make bench-hooks` gives to Till: a payment's row and a
// job in one transaction, a signed POST, the completion stored. It is a program
// and a module of its own, so that Till never depends on it.
//
// It takes orders on its standard input and answers each with one line, both
// JSON; it ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River as its users tune it for speed: it looks for jobs as often as it can
// without spinning, and has a connection for every fourth worker.
const (
	workers = 128
	conns   = 32
	look    = 5 * time.Millisecond
	// patience is how long one order may take.
	patience = 2 * time.Minute
)

// setup is the first line of the input.
type setup struct {
	Database string          // a postgres:// address
	Schema   string          // that is made in it
	Hooks    []string        // where to post, in turn
	Secret   string          // whsec_…
	Body     json.RawMessage // of every post
}

// order is every further line: n jobs, added by so many producers while they are
// worked off; with 0 producers they are stored before the clock starts.
type order struct {
	Producers int
	N         int
}

// done is the answer to an order.
type done struct {
	Rate  float64 // jobs a second, from the first transaction to the last completion
	Error string  `json:",omitempty"`
}

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var s setup
	if err := lines.Decode(&s); err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	pool, err := open(ctx, s)
	if err != nil {
		return answers.Encode(done{Error: err.Error()})
	}
	defer pool.Close()
	if err := answers.Encode(done{}); err != nil { // it is ready
		return err
	}
	b := &bench{setup: s, pool: pool, post: newPoster(s)}
	for {
		var o order
		if err := lines.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		rate, err := b.do(ctx, o)
		d := done{Rate: rate}
		if err != nil {
			d.Error = err.Error()
		}
		if err := answers.Encode(d); err != nil {
			return err
		}
	}
}

// open makes River's tables and the one of the payments.
func open(ctx context.Context, s setup) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.Database)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	config.MaxConns = conns
	config.ConnConfig.RuntimeParams["search_path"] = s.Schema
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	for _, statement := range []string{"CREATE SCHEMA " + s.Schema, `CREATE TABLE payments (
  id TEXT PRIMARY KEY, project TEXT NOT NULL, session TEXT NOT NULL, attempt TEXT NOT NULL, amount BIGINT NOT NULL, fee BIGINT NOT NULL,
  channel TEXT NOT NULL, paid_at BIGINT NOT NULL, received_at BIGINT NOT NULL, payer TEXT NOT NULL, nip_session TEXT NOT NULL,
  rail_transaction_id TEXT NOT NULL UNIQUE, match_status TEXT NOT NULL)`, `CREATE INDEX payment_session ON payments (session)`} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("make the table of payments: %w", err)
		}
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	return pool, nil
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// hook is a job: an event on its way.
type hook struct {
	ID   string          `json:"id"`
	URL  string          `json:"url"`
	Body json.RawMessage `json:"body"`
}

// Kind names the job for River.
func (hook) Kind() string { return "hook" }

type worker struct {
	river.WorkerDefaults[hook]

	post *poster
}

// Work does a job.
func (w *worker) Work(ctx context.Context, job *river.Job[hook]) error {
	return w.post.send(ctx, job.Args)
}

// bench is what the orders share.
type bench struct {
	setup

	pool *pgxpool.Pool
	post *poster
	made atomic.Int64
}

// do carries out an order with a client of its own: between orders nothing polls.
func (b *bench) do(ctx context.Context, o order) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list := river.NewWorkers()
	river.AddWorker(list, &worker{post: b.post})
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{
		FetchCooldown: look, FetchPollInterval: look, Logger: quiet(), Workers: list,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
	})
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	completed, forget := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: o.N + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer forget()
	if o.Producers == 0 {
		if err := b.produce(ctx, client, conns, o.N); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	defer func() { err = errors.Join(err, client.Stop(context.WithoutCancel(ctx))) }()
	if o.Producers > 0 {
		began = time.Now()
		if err := b.produce(ctx, client, o.Producers, o.N); err != nil {
			return 0, err
		}
	}
	for range o.N {
		select {
		case <-completed:
		case <-ctx.Done():
			return 0, fmt.Errorf("jobs were left undone: %w", ctx.Err())
		}
	}
	return float64(o.N) / time.Since(began).Seconds(), nil
}

// produce adds n jobs, each with its payment.
func (b *bench) produce(ctx context.Context, client *river.Client[pgx.Tx], producers, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	faults := make(chan error, producers)
	for range producers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := b.pay(ctx, client); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-faults:
		return err
	default:
		return nil
	}
}

const insertPayment = `INSERT INTO payments VALUES ($1, 'wsp_prj_1', $2, $3, 500000, 17500, 'bank_transfer', $4, $4, '{}', '', $5, 'MATCHED')`

// pay keeps a payment and the job that follows from it, or neither.
func (b *bench) pay(ctx context.Context, client *river.Client[pgx.Tx]) error {
	n := b.made.Add(1)
	id := fmt.Sprintf("%026d", n)
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertPayment, "wsp_pay_"+id, "wsp_sess_"+id, "wsp_att_"+id, time.Now().UnixMilli(), "rail_"+id)
		if err != nil {
			return fmt.Errorf("keep a payment: %w", err)
		}
		_, err = client.InsertTx(ctx, tx, hook{ID: "evt_river" + id, URL: b.Hooks[n%int64(len(b.Hooks))], Body: b.Body}, nil)
		return err
	})
}
