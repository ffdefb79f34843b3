package whatsapp

import (
	"fmt"
	"sync"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store"
)

// process is what the libraries keep once for a whole process: the key that
// server certificates lead to, the version of WhatsApp Web that clients pass
// for, and libsignal's logger. All are set here, once, before the first connection,
// and nowhere else.
var process struct {
	sync.Mutex
	settled bool
	real    [32]byte // the key that whatsmeow is built with
	root    [32]byte // the key that was chosen
	version string   // of WhatsApp Web that was chosen, "" for the library's
}

// settleProcess chooses the root key and the version of the process. A second
// client may ask for the same ones again, not for others.
func settleProcess(root *[32]byte, version string) error {
	var parsed store.WAVersionContainer
	if version != "" {
		var err error
		if parsed, err = store.ParseVersion(version); err != nil {
			return fmt.Errorf("%w: the version %q is not three numbers with dots between", ErrInput, version)
		}
	}
	process.Lock()
	defer process.Unlock()
	if !process.settled {
		process.real = whatsmeow.WACertPubKey
	}
	want := process.real
	if root != nil {
		want = *root
	}
	if process.settled && want != process.root {
		return fmt.Errorf("%w: this process trusts another WhatsApp network already", ErrInput)
	}
	if process.settled && version != process.version {
		return fmt.Errorf("%w: this process passes for another version already", ErrInput)
	}
	if process.settled {
		return nil
	}
	if version != "" {
		store.SetWAVersion(parsed)
	}
	if logger.Logger == nil { // else it prints every bad message to stdout
		var none logger.Loggable = silent{}
		logger.Setup(&none)
	}
	if want != process.real {
		whatsmeow.WACertPubKey = want
	}
	process.root, process.version, process.settled = want, version, true
	return nil
}

// silent is a logger for libsignal. What is wrong with a message comes to us as
// an error as well.
type silent struct{}

// Debug drops a line.
func (silent) Debug(string, string) {}

// Info drops a line.
func (silent) Info(string, string) {}

// Warning drops a line.
func (silent) Warning(string, string) {}

// Error drops a line.
func (silent) Error(string, string) {}

// Configure does nothing.
func (silent) Configure(string) {}
