//go:build !unix

package connlimit

import "math"

// Descriptors is unbounded where the system does not tell.
func Descriptors() int { return math.MaxInt }
