// Package budget bounds the memory that requests from outside hold together.
package budget

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// ErrExceeded is returned when the budget can't hold the bytes that were asked
// for: ever, or now.
var ErrExceeded = errors.New("budget: too many bytes in use")

// Bytes is a number of bytes that several owners share. Its methods are safe for
// concurrent use. A nil budget holds everything.
type Bytes struct {
	total int64
	free  *semaphore.Weighted
}

// New returns a budget of total bytes.
func New(total int64) *Bytes {
	return &Bytes{total: total, free: semaphore.NewWeighted(total)}
}

// Total is how many bytes the budget has.
func (b *Bytes) Total() int64 { return b.total }

// Acquire takes n bytes and waits for them, in the order of the calls, until ctx
// ends. Bytes that are free are taken even if ctx has ended. It returns
// ErrExceeded at once if n is more than the whole budget, and wraps both it and
// ctx's error if ctx ends first.
func (b *Bytes) Acquire(ctx context.Context, n int64) error {
	if b == nil {
		return nil
	}
	if n > b.total {
		return fmt.Errorf("%w: %d asked for, the budget is %d", ErrExceeded, n, b.total)
	}
	if b.free.TryAcquire(n) {
		return nil
	}
	if err := b.free.Acquire(ctx, n); err != nil {
		return fmt.Errorf("%w: %d asked for, the budget is %d: %w", ErrExceeded, n, b.total, err)
	}
	return nil
}

// TryAcquire takes n bytes if they are free now and no caller waits for some.
func (b *Bytes) TryAcquire(n int64) bool { return b == nil || b.free.TryAcquire(n) }

// Release gives back n bytes that were taken before.
func (b *Bytes) Release(n int64) {
	if b != nil {
		b.free.Release(n)
	}
}
