//go:build !unix

package wasm

import (
	"context"
	"errors"
)

// ChildMain makes a program able to run functions in child processes; see
// IsolationProcess. On this system it does nothing, and functions run in the
// process itself.
func ChildMain() {}

func newProcesses(context.Context, Config) (backend, error) {
	return nil, errors.New("wasm: child processes are supported on Unix systems only")
}
