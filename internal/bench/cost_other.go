//go:build !unix

package bench

import "time"

// process says whose processor time is asked for.
type process int

const (
	self process = iota
	children
)

// processorTime is not known here.
func processorTime(process) (user, system time.Duration) { return 0, 0 }
