package doctor_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"till/cmd/till/doctor"
	"till/config"
)

// told is a Redis of this machine that tells of itself what a test wants: what
// a real one says only when its disk is full or it is years old.
func (s *stage) told(info, save string) {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go tell(conn, info, save)
		}
	}()
	s.cfg.RedisURL = config.Secret("redis://" + ln.Addr().String() + "/0")
}

// secretive is the answer of a Redis that does not let itself be asked for its settings.
const secretive = "no answer"

// tell answers one connection in Redis's own protocol.
func tell(conn net.Conn, info, save string) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	line := func() string {
		text, err := in.ReadString('\n')
		if err != nil {
			return ""
		}
		return strings.TrimSpace(text)
	}
	for {
		count, err := strconv.Atoi(strings.TrimPrefix(line(), "*"))
		if err != nil || count < 1 {
			return
		}
		words := make([]string, 0, count)
		for range count {
			line() // how long the word is
			words = append(words, line())
		}
		answer := "-ERR unknown command\r\n"
		switch strings.ToUpper(words[0]) {
		case "PING":
			answer = "+PONG\r\n"
		case "INFO":
			answer = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
		case "CONFIG":
			if save != secretive {
				answer = fmt.Sprintf("*2\r\n$4\r\nsave\r\n$%d\r\n%s\r\n", len(save), save)
			}
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// What Redis says of itself that is no good is named with what mends it, and a
// Redis that is mended is well.
func TestTheDoctorHearsWhatRedisSaysOfItself(t *testing.T) {
	const good = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrdb_last_bgsave_status:ok\r\naof_last_write_status:ok\r\naof_enabled:1\r\n"
	for _, c := range []struct {
		name, from, to string
		save           string
		state          doctor.State
		what, fix      string
	}{
		{"well", "", "", "", doctor.OK, "Redis 7.0.15 answers; it keeps a log on disk.", ""},
		{"old", "7.0.15", "5.0.14", "", doctor.Warn, "Redis 5.0.14 is older than Till is tried with.", "apt-get install --only-upgrade redis-server"},
		{"evicts", "noeviction", "allkeys-lru", "", doctor.Warn, "forgets what it likes when its memory is full (allkeys-lru)", "CONFIG SET maxmemory-policy volatile-ttl"},
		{"cannot save", "bgsave_status:ok", "bgsave_status:err", "", doctor.Fail, "could not write to its disk", "redis-cli BGSAVE"},
		{"cannot append", "write_status:ok", "write_status:err", "", doctor.Fail, "could not write to its disk", "redis-cli BGSAVE"},
		{"keeps nothing", "aof_enabled:1", "aof_enabled:0\r\nrdb_last_save_time:1\r\nrdb_bgsave_in_progress:0", "", doctor.OK, "7.0.15 answers; what it holds is gone when it restarts, as it may be.", ""},
		{"saves", "aof_enabled:1", "aof_enabled:0\r\nrdb_last_save_time:1\r\nrdb_bgsave_in_progress:0", "3600 1 300 100", doctor.OK, "7.0.15 answers; it saves to disk now and then.", ""},
		{"does not say", "aof_enabled:1", "aof_enabled:0", secretive, doctor.OK, "Redis 7.0.15 answers.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := well(t)
			s.told(strings.Replace(good, c.from, c.to, 1), c.save)
			if got := s.found("redis"); got.State != c.state || !strings.Contains(got.What, c.what) || !strings.Contains(got.Fix, c.fix) || (c.fix == "") != (got.Fix == "") {
				t.Errorf("%+v", got)
			}
			s.told(good, "")
			if got := s.found("redis"); got.State != doctor.OK {
				t.Errorf("mended: %+v", got)
			}
		})
	}
}
