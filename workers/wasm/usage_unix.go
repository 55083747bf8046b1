//go:build unix

package wasm

import (
	"syscall"
	"time"
)

// processorTime is what this process has used, 0 if the system does not say.
func processorTime() (user, sys time.Duration) {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0, 0
	}
	return time.Duration(used.Utime.Nano()), time.Duration(used.Stime.Nano())
}
