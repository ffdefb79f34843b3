package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"till/flow"
	"till/flow/store/lite"
)

// inURI writes what means something in a URI so that it means itself.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// fileURI is the URI of a database's SQLite file, which has options already.
func fileURI(c Config) string {
	uri := "file:" + inURI.Replace(filepath.Join(c.Dir, c.Name+".db")) + "?mode=rwc"
	if c.VFS != "" {
		uri += "&vfs=" + c.VFS
	}
	return uri
}

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
// one, but what was begun is not cancelled. Whoever reads gets the one that was
// used last: it remembers the most.
type liteReaders struct {
	uri    string
	places chan struct{} // one is held by each who reads
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	idle []*lite.Conn // that are open, the one that was used last behind the others
}

func newLiteReaders(uri string, count int) *liteReaders {
	return &liteReaders{uri: uri, places: make(chan struct{}, count), closed: make(chan struct{})}
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
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return flow.Refuse(flow.CodeStorage, "The store is closing.")
	}
	defer func() { <-p.places }()
	l := p.last()
	if l == nil {
		if l, err = lite.Open(p.uri, append(sqlitePragmas(), "query_only(1)")...); err != nil {
			return storageError(err)
		}
	}
	defer p.keep(l)
	return liteError(do(l))
}

// last takes the connection that was used last; nil where none is idle.
func (p *liteReaders) last() *lite.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	l := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return l
}

func (p *liteReaders) keep(l *lite.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, l)
}

// close waits for what is being read.
func (p *liteReaders) close() (err error) {
	p.once.Do(func() {
		close(p.closed)
		for range cap(p.places) {
			p.places <- struct{}{}
		}
		for l := p.last(); l != nil; l = p.last() {
			err = errors.Join(err, l.Close())
		}
	})
	return err
}
