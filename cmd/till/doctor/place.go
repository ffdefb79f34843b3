package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"till/config"
	"till/flow/store"
)

// dataDir looks whether there is a place for what is kept.
func (l *look) dataDir(ctx context.Context) {
	info, err := os.Stat(l.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		start := "till serve"
		if l.DatabaseURL == "" && l.RedisURL == "" && l.pretend() {
			start = "till dev"
		}
		l.warn("There is no data dir "+l.DataDir+": nothing was ever kept there.", start+"   (it makes one; or give the right --data-dir)")
	case err != nil:
		l.fail("The data dir "+l.DataDir+" cannot be read: "+brief(err)+".", "ls -ld "+quoted(l.DataDir)+"   (then run Till as its owner)")
	case !info.IsDir():
		l.fail("The data dir "+l.DataDir+" is a file.", "ls -l "+quoted(l.DataDir)+"   (move it away, for a folder of that name; or give the right --data-dir)")
	default:
		l.holder(ctx)
	}
}

// holder tells who uses the data dir.
func (l *look) holder(ctx context.Context) {
	l.serves = l.answers(ctx)
	if l.shared() { // nobody locks it
		if l.serves {
			l.ok("The Till that answers on " + l.HTTPAddr + " shares the data dir " + l.DataDir + " with others, if there are any.")
		} else {
			l.ok("No Till answers on " + l.HTTPAddr + ". Others may use the data dir " + l.DataDir + ", which processes with PostgreSQL share.")
		}
		return
	}
	pid, held, err := heldBy(filepath.Join(l.DataDir, "lock"))
	switch {
	case err != nil:
		l.fail("The data dir cannot be used from here: "+brief(err)+".", l.reach("lock", err))
	case held && !l.serves:
		who, stop := "Another process", "fuser -k "+quoted(filepath.Join(l.DataDir, "lock"))
		if pid > 0 {
			who, stop = fmt.Sprintf("Another process (%d)", pid), "kill "+strconv.Itoa(pid)
		}
		l.warn(who+" uses the data dir "+l.DataDir+", and no Till answers on "+l.HTTPAddr+".", stop+"   (only where it hangs; else give the --http-addr that it has)")
	case held && !l.Quick:
		l.ok("A Till uses the data dir " + l.DataDir + " now. It is taken to have the settings that are given here.")
	case held: // this one
		l.ok("A Till uses the data dir " + l.DataDir + " now.")
	default:
		l.ok("The data dir " + l.DataDir + " is free.")
	}
}

// shared says whether several processes may use the data dir, with all else elsewhere.
func (l *look) shared() bool { return l.DatabaseURL != "" && l.BankURL != "" && !l.InsideWhatsApp() }

// reach shows why a file of the data dir, "" for none, cannot be used: whose it is,
// how its disk is mounted, or what has run out on it. It does not make it the asker's own, since Till, which
// may run as another user, could not use it then.
func (l *look) reach(file string, err error) string { return reachIn(l.DataDir, file, err) }

func reachIn(folder, file string, err error) string {
	dir := quoted(folder)
	if errors.Is(err, syscall.EROFS) {
		return "findmnt -T " + dir + "   (its disk is mounted read-only: mount it to be written, or give another --data-dir)"
	}
	if store.Full(err) {
		return "df -h " + dir + " && df -i " + dir + "   (room or files have run out: remove what is not needed, or move --data-dir to a larger disk)"
	}
	show := "ls -ld " + dir
	if file != "" {
		show += " " + quoted(filepath.Join(folder, file))
	}
	return show + "   (then run this as the owner of the folder: sudo -u OWNER, or with systemd-run as in the unit till.service; a file that is another's: sudo chown --reference=" + dir + " FILE)"
}

// maxEntries is how many files are looked at.
const maxEntries = 10_000

// modes looks whether others on the machine can read what is kept.
func (l *look) modes(context.Context) {
	if runtimeWindows {
		return
	}
	dir := l.DataDir
	if to, err := filepath.EvalSymlinks(dir); err == nil { // a link itself is not walked into
		dir = to
	}
	open, first, seen := 0, "", 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxEntries {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil { // gone since
			return nil //nolint:nilerr // a file that is not there lets nobody read it
		}
		if d.Type()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			if open++; first == "" {
				first = path
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	if open > 0 {
		l.fail(fmt.Sprintf("Others on this machine can read %d of the files in the data dir, as %s: keys and payers' names are in them.", open, first),
			"chmod -R go-rwx "+quoted(l.DataDir))
	}
	shown := 0
	for _, file := range []string{".env.till", "till.toml"} {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 || file == "till.toml" && !holdsSecret(file) {
			continue
		}
		shown++
		l.fail("Others on this machine can read "+file+", and it holds secrets.", "chmod 600 "+file)
	}
	if open+shown == 0 && seen > 1 {
		l.ok("What is kept is for its owner alone.")
	}
}

// holdsSecret says whether a setting stands in a file that nobody else may read.
func holdsSecret(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for field := range reflect.TypeFor[config.Settings]().Fields() {
		if field.Type == reflect.TypeFor[config.Secret]() && strings.Contains(string(text), field.Tag.Get("name")) {
			return true
		}
	}
	return false
}

// The bounds of disks.
const (
	leastFree = 256 << 20
	lowFree   = 1 << 30
	slowSync  = 25 * time.Millisecond
	deadSync  = 250 * time.Millisecond
)

// disk looks whether there is room, and how soon the disk keeps what is written:
// every confirmed payment waits for that.
func (l *look) disk(context.Context) {
	dir := l.DataDir
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Dir(filepath.Clean(dir))
	}
	free, all, err := l.Disk(dir)
	fix := "du -xh " + quoted(dir) + " | sort -h | tail   (then make room, or move --data-dir to a larger disk)"
	switch {
	case err != nil:
		l.warn("The room on the disk cannot be read: "+brief(err)+".", "df -h "+quoted(dir))
	case free < leastFree && free > all/2:
		l.fail(fmt.Sprintf("The disk of %s has too little room: %s of %s are free. Soon no payment can be kept.", dir, bytesOf(free), bytesOf(all)), "df -h "+quoted(dir)+"   (then move --data-dir to a larger disk)")
	case free < leastFree || free*50 < all:
		l.fail(fmt.Sprintf("The disk of %s is full: %s of %s are free. Soon no payment can be kept.", dir, bytesOf(free), bytesOf(all)), fix)
	case free < lowFree || free*20 < all:
		l.warn(fmt.Sprintf("The disk of %s is nearly full: %s of %s are free.", dir, bytesOf(free), bytesOf(all)), fix)
	default:
		l.ok(fmt.Sprintf("%s of %s are free on the disk of %s.", bytesOf(free), bytesOf(all), dir))
	}
	if dir != l.DataDir {
		return
	}
	l.logFile()
	l.keys()
	l.copies()
	took, err := l.Sync(dir)
	slow := fmt.Sprintf("The disk takes %s to keep a small file: that bounds how many payments a second can be confirmed.", took.Round(100*time.Microsecond))
	faster := "iostat -x 1 3   (see what else writes; a local SSD takes under 5ms)"
	switch {
	case err != nil:
		l.fail("Nothing can be written to the data dir "+dir+": "+brief(err)+".", l.reach("", err))
	case took >= deadSync:
		l.fail(slow, faster)
	case took >= slowSync:
		l.warn(slow, faster)
	default:
		l.ok(fmt.Sprintf("The disk keeps a small file in %s.", took.Round(100*time.Microsecond)))
	}
}

// leastKeys is the room that a number's keys need at least: SQLite's log of them grows so
// large.
const leastKeys = 16 << 20

// keys looks whether the keys of the numbers can be kept, whose folder may be on a disk
// of its own: before each message to a payer some are.
func (l *look) keys() {
	dir := filepath.Join(l.DataDir, "whatsapp")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if free, all, err := l.Disk(dir); err == nil && all > 0 && free < leastKeys {
		l.fail(fmt.Sprintf("The disk of the numbers' keys in %s is full: %s of %s are free. Payers get no answers.", dir, bytesOf(free), bytesOf(all)),
			"df -h "+quoted(dir)+" && du -xh "+quoted(dir)+" | sort -h | tail   (then make room, or move the folder to a larger disk while Till is stopped)")
		return
	}
	if _, err := l.Sync(dir); err != nil {
		l.fail("The keys of the numbers cannot be kept in "+dir+", and payers get no answers: "+brief(err)+".", reachIn(dir, "", err))
	}
}

// logFile looks whether the server can go on writing its log: it serves without.
func (l *look) logFile() {
	name := filepath.Join("logs", "till.log")
	f, err := os.OpenFile(filepath.Join(l.DataDir, name), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.warn("The log cannot be kept in the data dir, and till logs does not show what comes: "+brief(err)+".", l.reach(name, err))
	}
}

// syncTries is how often the disk is asked: the middle answer counts.
const syncTries = 5

// syncTime writes a small file and waits until the disk has it.
func syncTime(dir string) (took time.Duration, err error) {
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	var all []time.Duration
	for range syncTries {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began)) //nolint:forbidigo // what is measured is real time
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// bytesOf shows a size in its largest unit.
func bytesOf(n uint64) string {
	for _, unit := range []struct {
		name string
		of   uint64
	}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}} {
		if n >= unit.of {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.of), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// fewFiles is how many open files are too few for a server: each payer's chat,
// each merchant's call and each webhook is one.
const fewFiles = 4096

// openFiles looks how many connections the system lets a process have.
func (l *look) openFiles(context.Context) {
	most, err := l.Files()
	if err != nil {
		return
	}
	if most < fewFiles {
		l.warn(fmt.Sprintf("A process may have %d files and connections open: a busy server needs more.", most),
			"ulimit -n 65536   (as root; for a service: LimitNOFILE=65536 in its unit)")
		return
	}
	l.ok(fmt.Sprintf("A process may have %d files and connections open.", most))
}

// port looks whether the API can listen where it is told to, or does.
func (l *look) port(ctx context.Context) {
	host, port, err := net.SplitHostPort(l.HTTPAddr)
	if err != nil {
		return // told with the settings
	}
	if l.serves || l.answers(ctx) {
		_, held, err := heldBy(filepath.Join(l.DataDir, "lock"))
		if err == nil && !held && l.DatabaseURL == "" {
			l.fail("Another Till answers on "+l.HTTPAddr+", with another data dir than "+l.DataDir+".", "till serve --http-addr "+l.freePort(ctx, host)+"   (or give the --data-dir that it has)")
			return
		}
		if why := l.unready(ctx); why != "" {
			l.fail("Till answers on "+l.HTTPAddr+" and can serve nobody: "+why+".", l.unreadyFix())
			return
		}
		l.ok("Till answers on " + l.HTTPAddr + ".")
		return
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", l.HTTPAddr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		l.fail("Port "+port+" is used by another program: the API cannot listen on "+l.HTTPAddr+".", "till serve --http-addr "+l.freePort(ctx, host)+"   (or stop the other: ss -ltnp 'sport = :"+port+"')")
	case err != nil:
		l.fail("The API cannot listen on "+l.HTTPAddr+": "+brief(err)+".", "till serve --http-addr 127.0.0.1:8080")
	default:
		_ = ln.Close()
		l.ok("Port " + port + " is free: no Till runs on " + l.HTTPAddr + ".")
	}
}

// freePort is an address that nobody listens on.
func (*look) freePort(ctx context.Context, host string) string {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return net.JoinHostPort(host, "8081")
	}
	defer func() { _ = ln.Close() }()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return net.JoinHostPort(host, port)
}

// answers says whether a Till answers where this one would.
func (l *look) answers(ctx context.Context) bool {
	return l.alive(ctx, "http://"+l.here())
}

// here is where this machine reaches a Till with these settings.
func (l *look) here() string {
	host, port, err := net.SplitHostPort(l.HTTPAddr)
	if err != nil {
		return l.HTTPAddr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// alive says whether a Till answers at an address.
func (l *look) alive(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/livez", nil)
	if err != nil {
		return false
	}
	res, err := l.client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	var said struct {
		Data struct {
			Alive bool `json:"alive"`
		} `json:"data"`
	}
	return json.NewDecoder(io.LimitReader(res.Body, 4096)).Decode(&said) == nil && said.Data.Alive
}
