//go:build unix && !linux

package wasm

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// starter starts children.
type starter struct{}

func newStarter() *starter { return &starter{} }

func (s *starter) start(command *exec.Cmd) error { return command.Start() }

func (s *starter) stop() {}

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("wasm: path of this program: %w", err)
	}
	return path, nil
}

func widenPipes(...*os.File) {}
