//go:build unix

package bench

import (
	"syscall"
	"time"
)

// process names the owner of processor time.
type process int

const (
	self     process = syscall.RUSAGE_SELF
	children process = syscall.RUSAGE_CHILDREN // those that have ended
)

func processorTime(who process) (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(int(who), &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
