//go:build !unix

package bench

import "time"

// process names the owner of processor time.
type process int

const (
	self process = iota
	children
)

// processorTime is unknown on this system.
func processorTime(process) (user, system time.Duration) { return 0, 0 }
