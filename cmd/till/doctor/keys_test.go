package doctor_test

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"till/cmd/till/doctor"
)

// faultsOfTheKeys are of the numbers' keys alone, whose folder may be on a disk of its own.
func faultsOfTheKeys() []fault {
	return []fault{
		{
			name: "the disk of the keys is full", check: "disk", state: doctor.Fail, what: `The disk of the numbers' keys in \S+data/whatsapp is full: 5\.0 MB of 64\.0 MB`, fix: `^df -h \S+data/whatsapp .* make room`,
			breaks: func(s *stage) {
				s.must(os.MkdirAll(s.file("whatsapp"), 0o700))
				s.cfg.Disk = func(dir string) (uint64, uint64, error) {
					if dir == s.file("whatsapp") {
						return 5 << 20, 64 << 20, nil
					}
					return 50 << 30, 100 << 30, nil
				}
			},
			mends: func(s *stage, fix string) {
				s.sh(fix)
				s.cfg.Disk = func(string) (uint64, uint64, error) { return 50 << 30, 100 << 30, nil }
			},
		},
		{
			name: "the keys are on a disk that may only be read", check: "disk", state: doctor.Fail, what: `The keys of the numbers cannot be kept in \S+data/whatsapp, .*read-only`, fix: `^findmnt -T \S+data/whatsapp   \(its disk is mounted read-only`,
			breaks: func(s *stage) {
				s.must(os.MkdirAll(s.file("whatsapp"), 0o700))
				s.cfg.Sync = func(dir string) (time.Duration, error) {
					if dir == s.file("whatsapp") {
						return 0, &fs.PathError{Op: "open", Path: dir + "/doctor-1", Err: syscall.EROFS}
					}
					return time.Millisecond, nil
				}
			},
			mends: func(s *stage, _ string) {
				s.cfg.Sync = quick
			},
		},
	}
}
