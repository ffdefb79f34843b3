package console

import (
	"crypto/rand"
	"net/url"
	"sync"
	"time"
)

// Diagnosis is one finding of the doctor: how grave it is (ok, warn or fail),
// what is so, and what mends it.
type Diagnosis struct {
	Check string
	State string
	What  string
	Fix   string
}

// doctorAgain is how long a look at everything is good for: it writes to the
// disk and calls others.
const doctorAgain = 10 * time.Second

// looked is the last look at everything, which visitors share.
type looked struct {
	mu   sync.Mutex // held while one looks: the others wait for what is found
	at   time.Time
	list []Diagnosis
}

// doctorView is what the doctor's page is given.
type doctorView struct {
	At   time.Time
	List []Diagnosis
	Bad  int // findings that are not ok
}

// doctor is GET /ops/doctor: the checks of till doctor.
func (c *Console) doctor(v *visit) error {
	var out doctorView
	if c.cfg.Doctor != nil {
		c.looked.mu.Lock()
		if now := c.cfg.Real(); now.Sub(c.looked.at) >= doctorAgain {
			c.looked.list, c.looked.at = c.cfg.Doctor(v.ctx), now
		}
		out.At, out.List = c.looked.at, c.looked.list
		c.looked.mu.Unlock()
	}
	for _, d := range out.List {
		if d.State != "ok" {
			out.Bad++
		}
	}
	return v.show("doctor", "Doctor", out)
}

// oneTime is a password that is shown once.
func oneTime() string { return rand.Text() }

// queryOf is what stands behind a question mark: names and values in turn, empty
// ones left out.
func queryOf(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}
