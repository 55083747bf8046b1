package wasm

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// starter starts children from one thread that lives as long as they may: the
// kernel ends a child when the thread that started it ends.
type starter struct{ requests chan startRequest }

type startRequest struct {
	command *exec.Cmd
	started chan<- error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest)}
	go func() {
		runtime.LockOSThread()
		dropPrivileges()
		for request := range s.requests {
			request.started <- request.command.Start()
		}
	}()
	return s
}

func (s *starter) start(command *exec.Cmd) error {
	started := make(chan error, 1)
	s.requests <- startRequest{command: command, started: started}
	return <-started
}

func (s *starter) stop() { close(s.requests) }

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// executable is this very program, even if its file was replaced since.
func executable() (string, error) { return "/proc/self/exe", nil }

// widenPipes lets large frames through in fewer turns. It is a request only.
func widenPipes(files ...*os.File) {
	const setPipeSize = 1031
	for _, file := range files {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), setPipeSize, mebibyte)
	}
}
