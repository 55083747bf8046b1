package layout

import (
	"math"
	"time"
)

// Bounds of the wait between two attempts.
const (
	DefaultBackoffBase = time.Second
	DefaultBackoffMax  = 5 * time.Minute
)

// Wait returns the length of the n-th wait, counted from 1.
func (b Backoff) Wait(n int, jitter float64) time.Duration {
	base, limit := b.Base, b.Max
	if base <= 0 {
		base = DefaultBackoffBase
	}
	if limit <= 0 {
		limit = DefaultBackoffMax
	}
	wait := limit
	if n = max(n, 1); n < 40 && base < limit>>(n-1) {
		wait = base << (n - 1)
	}
	spread := float64(wait) * (0.5 + jitter)
	if spread >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(spread)
}
