package tilltest

import (
	"os/exec"
	"syscall"
)

// diesWithUs has a process end when whoever started it does, however that ends.
func diesWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
