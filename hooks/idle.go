package hooks

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// idle keeps connections for the next post, for a while and only so many.
type idle struct {
	mu    sync.Mutex
	to    map[string][]*conn // the one used last is the last
	all   list.List          // of *conn; the one used last is the last
	ended bool               // what is put back is closed
}

// take is a connection that was kept for a place, nil where there is none that
// still serves.
func (i *idle) take(ctx context.Context, key string) *conn {
	for ctx.Err() == nil {
		c := i.last(key)
		if c == nil || c.silent() {
			return c
		}
		c.hangUp() // the other side hung up, or said what nobody asked for
	}
	return nil
}

// last takes out what was put in last for a place.
func (i *idle) last(key string) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = false
	there := i.to[key]
	if len(there) == 0 {
		return nil
	}
	c := there[len(there)-1]
	i.remove(c, len(there)-1)
	return c
}

// remove takes one out, which is at that index among those of its place. The
// caller holds the lock.
func (i *idle) remove(c *conn, at int) {
	c.timer.Stop()
	i.all.Remove(c.place)
	if i.to[c.key] = slices.Delete(i.to[c.key], at, at+1); len(i.to[c.key]) == 0 {
		delete(i.to, c.key)
	}
}

// drop takes one out that may be out already, and closes it.
func (i *idle) drop(c *conn) {
	i.mu.Lock()
	at := slices.Index(i.to[c.key], c)
	if at >= 0 {
		i.remove(c, at)
	}
	i.mu.Unlock()
	if at >= 0 {
		_ = c.net.Close() // as TLS does it: nobody waits for this
	}
}

// put keeps a connection. Where there are too many, the one goes that was used
// last longest ago.
func (i *idle) put(c *conn) {
	i.mu.Lock()
	there := i.to[c.key]
	if i.ended || len(there) >= idlePerHost {
		i.mu.Unlock()
		c.hangUp()
		return
	}
	if i.to == nil {
		i.to = map[string][]*conn{}
	}
	c.place = i.all.PushBack(c)
	if c.timer == nil {
		c.timer = time.AfterFunc(idleTimeout, func() { i.drop(c) })
	} else {
		c.timer.Reset(idleTimeout)
	}
	i.to[c.key] = append(there, c)
	var oldest *conn
	if i.all.Len() > idleConns {
		oldest, _ = i.all.Front().Value.(*conn)
		i.remove(oldest, 0)
	}
	i.mu.Unlock()
	if oldest != nil {
		oldest.hangUp()
	}
}

// end closes all that waits, and what is put back until something is asked for
// again.
func (i *idle) end() {
	i.mu.Lock()
	i.ended = true
	var all []*conn
	for e := i.all.Front(); e != nil; e = i.all.Front() {
		c, _ := e.Value.(*conn)
		i.remove(c, 0)
		all = append(all, c)
	}
	i.mu.Unlock()
	for _, c := range all {
		c.hangUp()
	}
}
