//go:build !linux && !darwin

package doctor

import (
	"errors"
	"math"
)

// runtimeWindows says that file modes mean nothing here.
const runtimeWindows = true

var errUnknown = errors.New("this system does not say")

// DiskSpace cannot ask this system.
func DiskSpace(string) (free, all uint64, err error) { return 0, 0, errUnknown }

func maxFiles() (uint64, error) { return math.MaxUint64, nil }

func heldBy(string) (pid int, held bool, err error) { return 0, false, nil }
