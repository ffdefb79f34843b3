package store

import (
	"context"
	"errors"
	"sync"

	"till/flow"
	"till/flow/store/lite"
)

// liteError is storageError for what SQLite refused; what a scan says of a row
// stays as it is.
func liteError(err error) error {
	if _, ok := errors.AsType[*lite.Error](err); ok {
		return storageError(err)
	}
	return err
}

// liteWriter is the connection that writes.
type liteWriter struct{ *lite.Conn }

func (w liteWriter) run(_ context.Context, query string, args []any) (int64, error) {
	n, err := w.Exec(query, args...)
	return n, liteError(err)
}

func (w liteWriter) put(ctx context.Context, query string, args []any) error {
	_, err := w.run(ctx, query, args)
	return err
}

func (w liteWriter) each(_ context.Context, query string, args []any, scan func(scanner) error) error {
	return liteError(w.Each(query, args, scan))
}

// liteReaders are the connections that read. A caller may give up waiting for
// one, but what was begun is not cancelled.
type liteReaders struct {
	uri    string
	free   chan *lite.Conn // nil for one that is not open yet
	once   sync.Once
	closed chan struct{}
}

func newLiteReaders(uri string, count int) *liteReaders {
	p := &liteReaders{uri: uri, free: make(chan *lite.Conn, count), closed: make(chan struct{})}
	for range count {
		p.free <- nil
	}
	return p
}

func (p *liteReaders) run(ctx context.Context, query string, args []any) (n int64, err error) {
	err = p.with(ctx, func(l *lite.Conn) error {
		n, err = l.Exec(query, args...)
		return err
	})
	return n, err
}

func (p *liteReaders) put(ctx context.Context, query string, args []any) error {
	_, err := p.run(ctx, query, args)
	return err
}

func (p *liteReaders) each(ctx context.Context, query string, args []any, scan func(scanner) error) error {
	return p.with(ctx, func(l *lite.Conn) error { return l.Each(query, args, scan) })
}

func (p *liteReaders) with(ctx context.Context, do func(*lite.Conn) error) (err error) {
	var l *lite.Conn
	select {
	case l = <-p.free:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return flow.Refuse(flow.CodeStorage, "The store is closing.")
	}
	defer func() { p.free <- l }()
	if l == nil {
		if l, err = lite.Open(p.uri, append(sqlitePragmas(), "query_only(1)")...); err != nil {
			return storageError(err)
		}
	}
	return liteError(do(l))
}

// close waits for what is being read.
func (p *liteReaders) close() (err error) {
	p.once.Do(func() {
		close(p.closed)
		for range cap(p.free) {
			if l := <-p.free; l != nil {
				err = errors.Join(err, l.Close())
			}
		}
	})
	return err
}
