//go:build unix

package system

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the most memory that an ended process took, in bytes.
func peakMemory(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}
