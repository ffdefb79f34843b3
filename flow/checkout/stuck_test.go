package checkout_test

import (
	"testing"
	"time"
)

// refusing has the database refuse to write rows of a table, those for which a
// condition holds, until let is called. It still reads, as one does whose disk is full.
func (w *world) refusing(table, when, why string) (let func()) {
	w.t.Helper()
	if w.store.URL == "" {
		w.change("CREATE TRIGGER refusing BEFORE UPDATE ON " + table + " WHEN " + when + " BEGIN SELECT RAISE(ABORT, '" + why + "'); END")
		return func() { w.change("DROP TRIGGER refusing") }
	}
	w.change("CREATE FUNCTION refusing() RETURNS TRIGGER AS 'BEGIN RAISE EXCEPTION ''" + why + "''; END' LANGUAGE plpgsql")
	w.change("CREATE TRIGGER refusing BEFORE UPDATE ON " + table + " FOR EACH ROW WHEN (" + when + ") EXECUTE FUNCTION refusing()")
	return func() { w.change("DROP TRIGGER refusing ON " + table) }
}

// A store that reads and does not write is asked again and again, each time after
// a longer wait, however often the loop is woken; and is written to once it is well.
func TestAStoreThatDoesNotWriteIsNotAskedWithoutAPause(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.stoppedOwing(3)
		let := w.refusing("deliveries", "TRUE", "the disk is full")
		w.run()
		tried := w.service.Looks
		w.until("it to be asked", func() bool { return w.logged("look for work") > 0 })
		began, first := time.Now(), tried()
		w.until("it to be asked twice more", func() bool {
			w.service.Wake()
			return tried() >= first+2
		})
		n, took := tried()-first, time.Since(began)
		if least := 200 * time.Millisecond * (1<<(n-1) - 1); took < least { // 200 ms, then 400, then 800: the first may be due just now
			t.Errorf("it was asked %d times within %s", n, took)
		}
		let()
		w.rest()
		w.until("it to be told that it writes again", func() bool { return w.logged("work is found again") == 1 })
		if n := w.logged("look for work"); n != 1 { // however often it was asked
			t.Errorf("it is told %d times that it does not write", n)
		}
		if n := w.to(e.ID); n != 3 || w.count("state = 'delivered'") != 3 {
			t.Errorf("%d posts of 3", n)
		}
	})
}
