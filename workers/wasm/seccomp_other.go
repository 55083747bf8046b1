//go:build linux && !amd64 && !arm64

package wasm

import (
	"fmt"
	"runtime"
)

// filterSystemCalls needs a list of system calls for each processor.
func filterSystemCalls() error { return fmt.Errorf("there is no filter for %s", runtime.GOARCH) }
