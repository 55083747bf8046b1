//go:build fdb && linux

package fdbtest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the system kill the process when the thread that starts
// it ends.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
