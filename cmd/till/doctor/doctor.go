// Package doctor looks for what keeps Till from working, or soon will: the
// machine's clock, disk and limits, the data, Redis, the bank, WhatsApp, the
// address under which others reach us. Each finding names its cause and the
// command that mends it. It works beside a server that runs, and without one,
// and changes nothing.
package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"till/config"
	"till/flow"
)

// State is how grave a finding is.
type State string

// The states of a finding.
const (
	OK   State = "ok"
	Warn State = "warn" // it works, and should not stay so
	Fail State = "fail" // something does not work, or nobody should rely on it
)

// Finding is what one check found.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	// What is so, in a sentence.
	What string `json:"what"`
	// Fix is the command that mends it, or the act where there is no command; ""
	// where nothing is to be done.
	Fix string `json:"fix"`
}

// Config is what a look needs. What is nil is the machine's own.
type Config struct {
	config.Settings

	// File is what is wrong in the file of settings.
	File []Finding
	// Quick leaves out what takes longer than a request may: reading every page of
	// a large database.
	Quick bool
	Now   func() time.Time
	// Resolve asks DNS.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Disk says how many bytes are free on the disk of a folder, and how many it has.
	Disk func(dir string) (free, all uint64, err error)
	// Sync says how long the disk takes to keep a small file of a folder.
	Sync func(dir string) (time.Duration, error)
	// Files is how many files and connections a process may have open.
	Files func() (uint64, error)
	// Roots are the authorities whose certificates are believed.
	Roots *x509.CertPool
}

// patience is how long one part that is asked may take.
const patience = 4 * time.Second

// look is one look at everything.
type look struct {
	Config

	client *http.Client
	tell   func(Finding)
	found  []Finding
	check  string // what the next finding is of
	clocks []clock
	serves bool // a Till answers where this one would
	away   bool // PostgreSQL lets us do nothing, or hangs: each further look would wait for it again
}

// clock is what another clock said, and when by ours.
type clock struct {
	whose     string
	said, ask time.Time
}

// Run looks at everything, in the same order each time. tell hears of each
// finding at once.
func Run(ctx context.Context, c Config, tell func(Finding)) []Finding {
	l := &look{Config: c.filled(), tell: tell}
	l.client = &http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{Proxy: nil, TLSClientConfig: l.trust(""), DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, one := range []struct {
		name string
		look func(ctx context.Context)
	}{
		{"settings", l.settings},
		{"data-dir", l.dataDir},
		{"file-modes", l.modes},
		{"disk", l.disk},
		{"open-files", l.openFiles},
		{"port", l.port},
		{"database", l.database},
		{"redis", l.redis},
		{"clock", l.clock},
		{"bank", l.bank},
		{"whatsapp", l.whatsapp},
		{"switches", l.switched},
		{"public-url", l.public},
		{"webhooks", l.webhooks},
		{"secrets", l.secrets},
		{"sealing-key", l.sealing},
		{"backups", l.backups},
	} {
		if ctx.Err() != nil {
			break
		}
		l.check = one.name
		one.look(ctx)
	}
	return l.found
}

// Worst is the gravest state among findings.
func Worst(list []Finding) State {
	worst := OK
	for _, f := range list {
		if f.State == Fail || f.State == Warn && worst == OK {
			worst = f.State
		}
	}
	return worst
}

func (c Config) filled() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Resolve == nil {
		c.Resolve = net.DefaultResolver.LookupHost
	}
	if c.Disk == nil {
		c.Disk = DiskSpace
	}
	if c.Sync == nil {
		c.Sync = syncTime
	}
	if c.Files == nil {
		c.Files = maxFiles
	}
	return c
}

func (l *look) add(s State, what, fix string) {
	f := Finding{Check: l.check, State: s, What: what, Fix: fix}
	l.found = append(l.found, f)
	if l.tell != nil {
		l.tell(f)
	}
}

func (l *look) ok(what string)        { l.add(OK, what, "") }
func (l *look) warn(what, fix string) { l.add(Warn, what, fix) }
func (l *look) fail(what, fix string) { l.add(Fail, what, fix) }

// pretend says whether nothing real is connected: money and chats are made up.
func (l *look) pretend() bool {
	return l.BankURL == "" && l.InsideWhatsApp()
}

// settings tells what is wrong with the settings.
func (l *look) settings(context.Context) {
	for _, f := range l.File {
		l.add(f.State, f.What, f.Fix)
	}
	err := l.Check()
	if err != nil {
		for fault := range strings.SplitSeq(err.Error(), "\n") {
			l.fail(fault, "till config   (it shows where each value comes from)")
		}
	}
	if len(l.File) == 0 && err == nil {
		l.ok("Every setting can be used.")
	}
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-:=") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// brief is the last line of an error's text, without what only we understand.
func brief(err error) string {
	if own, ok := errors.AsType[*flow.Error](err); ok && own.Err != nil {
		err = own.Err // what merchants read of it says nothing here
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	text := []rune(strings.TrimSpace(lines[len(lines)-1]))
	return string(text[:min(len(text), 160)])
}
