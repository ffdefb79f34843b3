package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"till/flow/store"
)

// patience is how long the server may take to start.
const patience = 30 * time.Second

var (
	now    = time.Now //nolint:forbidigo // names of schemas must differ from run to run
	random = rand.Reader
)

// server is the PostgreSQL of this test binary.
type server struct {
	mu      sync.Mutex
	watched bool // TestMain will stop it
	tried   bool
	fsync   string // on or off, "" for off
	url     string
	err     error
	dir     string
	stdin   io.Closer
	cmd     *exec.Cmd
	firsts  map[store.Schema]bool // there is a database that others are copied from
}

// shared is the one server of a test binary: starting one takes a second, and
// tests have a schema each.
var shared = server{firsts: map[store.Schema]bool{}}

// start starts the server once and returns its address.
func (s *server) start() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried {
		return s.url, s.err
	}
	s.tried = true
	if s.url = os.Getenv(envURL); s.url != "" {
		return s.url, nil
	}
	if !s.watched {
		s.err = errors.New("the package's TestMain does not run storetest.Main")
		return "", s.err
	}
	s.url, s.err = s.run()
	return s.url, s.err
}

// ours says whether the server was started for this test binary.
func (s *server) ours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil
}

// stop stops the server, if one was started.
func (s *server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	return errors.Join(s.stdin.Close(), s.cmd.Wait(), os.RemoveAll(s.dir))
}

// keeper runs the server for as long as its standard input is open, so that the
// server and its files go even when the test binary is killed. Its user may remove
// the folder itself only where the one above lets everybody do that.
const keeper = `"$1" -D "$2/data" -k "$2" -c listen_addresses= -c "fsync=${3:-off}" -c max_connections=300 $4 >"$2/log" 2>&1 &
cat >/dev/null
kill -QUIT $!
wait
rm -rf "$2" 2>/dev/null
[ ! -e "$2/data" ]`

func (s *server) run() (string, error) {
	initdb, postgres, err := programs()
	if err != nil {
		return "", err
	}
	under, bound := s.under()
	dir, err := os.MkdirTemp(under, "till-postgres-")
	if err != nil {
		return "", err
	}
	as, err := owner(dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	ctx := context.Background() //nolint:forbidigo // lives as long as the test binary
	//nolint:gosec // the programs that are installed here
	mk := exec.CommandContext(ctx, initdb, "-D", filepath.Join(dir, "data"), "-U", "till", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	mk.Dir, mk.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	if out, err := mk.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	s.cmd = exec.CommandContext(ctx, "/bin/sh", "-c", keeper, "sh", postgres, dir, s.fsync, bound) //nolint:gosec // as above
	s.dir, s.cmd.Dir, s.cmd.SysProcAttr = dir, dir, &syscall.SysProcAttr{Credential: as, Setpgid: true}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return "", err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	url := "postgres:///postgres?user=till&sslmode=disable&host=" + dir
	if err := answers(ctx, url); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log")) //nolint:gosec // our own file, only to explain the error
		return "", fmt.Errorf("start PostgreSQL: %w: %s", err, log)
	}
	return url, nil
}

// under is the folder that the server's own is made in, and settings that bound what it
// takes there. It is one in memory where there is room, for nothing outlives the tests,
// and most of what a database costs is its three hundred files; what is measured is
// on the disk that everything else is on.
func (s *server) under() (dir, bound string) {
	const memory, enough = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if s.fsync != "" || syscall.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < enough { //nolint:gosec // the size of a block
		return "", ""
	}
	return memory, "-c max_wal_size=128MB -c min_wal_size=32MB"
}

// answers waits until a server answers.
func answers(ctx context.Context, url string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// programs finds initdb and postgres.
func programs() (initdb, postgres string, err error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is well formed
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range slices.Backward(dirs) {
		initdb, postgres = filepath.Join(dir, "initdb"), filepath.Join(dir, "postgres")
		if _, err := os.Stat(initdb); err != nil {
			continue
		}
		if _, err := os.Stat(postgres); err == nil {
			return initdb, postgres, nil
		}
	}
	return "", "", errors.New("initdb and postgres are neither in PATH nor in /usr/lib/postgresql/*/bin")
}

// owner gives a directory to whom the server runs as: PostgreSQL refuses root,
// so root runs it as the user postgres. It is nil for "as we are".
func owner(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil // no credential is what exec wants then
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("root needs a user postgres to run it: %w", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
