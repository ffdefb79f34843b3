package sandbox

import (
	"net/http"
	"time"
)

// SetSchedule makes the waits between tries short enough for a test.
func (b *Bank) SetSchedule(waits ...time.Duration) { b.schedule = waits }

// SetPages bounds how many pages of a statement are read at once.
func (r *Rail) SetPages(n int) { r.pages = n }

// Owed counts the notices in a state.
func (b *Bank) Owed(state string) (n int, err error) {
	err = b.file.view(func(f books) (err error) {
		_, err = f.one(`SELECT count(*) FROM notices WHERE state = ?`, []any{state}, &n)
		return err
	})
	return n, err
}

// Tried counts the notices that were tried and are still owed.
func (b *Bank) Tried() (n int, err error) {
	err = b.file.view(func(f books) (err error) {
		_, err = f.one(`SELECT count(*) FROM notices WHERE state = 'owed' AND tries > 0`, nil, &n)
		return err
	})
	return n, err
}

// Exec runs statements on the bank's file.
func (b *Bank) Exec(query string) error {
	if err := b.file.take(); err != nil {
		return err
	}
	defer func() { b.file.turn <- struct{}{} }()
	return b.file.conn.Script(query)
}

// NotifyAddress is the check of addresses at dial time.
var NotifyAddress = notifyAddress

// MaxOwed is how many notices may be owed.
const MaxOwed = maxOwed

// MaxHeld is how many orders may wait for other weather.
const MaxHeld = maxHeld

// Bounded is a door with so many places.
func (b *Bank) Bounded(places int, h http.HandlerFunc) http.Handler {
	return b.bounded(make(chan struct{}, places), h)
}
