package peerworker

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/protocol"
)

// How an item's future is made, so that its records say how its only attempt ended.
// One that fails, and may be tried again, waits for its next attempt here, which
// never comes; the wait is that which the function asked for, or else next to none.
const (
	itemRetries = 1
	itemBackoff = time.Millisecond
	// leastRetry is the shortest wait that a function asked for, of what is told from
	// the backoff. None at all is told as well.
	leastRetry = 2 * itemBackoff
)

// maxInline is the largest value that is in a message; larger ones are blobs.
const maxInline = 1 << 20

// endKind is how an attempt ended.
type endKind uint8

const (
	endNone     endKind = iota // it has not
	endOver                    // with a result, or for good
	endFailed                  // with a failure; another attempt may follow
	endSnoozed                 // its function asked to be run later
	endReturned                // it could not be run here
)

// endOf says how the attempt of a future ended.
func endOf(row *layout.Row) endKind {
	switch row.State() {
	case layout.Realized, layout.Failed:
		return endOver
	case layout.Claimed:
		return endNone
	}
	switch {
	case row.Exception != nil:
		return endFailed
	case row.Attempts.PutBack > 0:
		return endReturned
	case row.State() != layout.Delayed:
		return endNone
	default:
		return endSnoozed
	}
}

// outcome describes how an item ended.
func (c *chunk) outcome(ctx context.Context, index int, row *layout.Row, what endKind) (*protocol.Outcome, error) {
	w := c.worker
	switch what {
	case endReturned:
		return returned(index, "the function could not be run here; the log of the worker says why"), nil
	case endSnoozed:
		wait := time.UnixMilli(row.Attempts.Due).Sub(w.node.cluster.Now())
		return &protocol.Outcome{Index: index, Code: protocol.CodeAccepted, SnoozeMS: max(wait.Milliseconds(), 1)}, nil
	}
	ending := row.Ending()
	if err := results.Of(w.node.cluster).LoadUpTo(ctx, &ending, maxInline); err != nil {
		return nil, err
	}
	if ending.Result == nil {
		o := failure(index, ending.Failure)
		if what == endFailed {
			o.RetryMS = retryOf(row, ending.Failure)
		}
		return o, nil
	}
	r := ending.Result
	o := &protocol.Outcome{
		Index: index, Code: protocol.CodeOK, Value: r.Value, Codec: r.Codec, ExitCode: r.ExitCode, Stderr: r.Stderr,
		Truncated: r.Truncated, Usage: usageOf(r.RunTime, r.Usage),
	}
	if r.ValueRef != nil {
		id, err := w.blobs.add(ctx, c.name.head, row.ID, r)
		if err != nil {
			return nil, err
		}
		o.Value, o.Blob = nil, &protocol.Blob{ID: id, Size: r.ValueRef.Size}
	}
	return o, nil
}

// failure describes a failed attempt.
func failure(index int, f *layout.Exception) *protocol.Outcome {
	o := &protocol.Outcome{
		Index: index, Code: protocol.CodeError, Kind: string(f.Kind), Message: f.Message, ExitCode: f.ExitCode,
		Stdout: f.Stdout, Stderr: f.Stderr, Truncated: f.Truncated, Permanent: f.Permanent,
	}
	switch f.Kind {
	case layout.KindTimeout:
		o.Code = protocol.CodeTimeout
	case layout.KindCancelled:
		o.Code = protocol.CodeGone
	}
	ran := time.Duration(0)
	if f.StartedAt > 0 {
		ran = time.Duration(max(f.At-f.StartedAt, 0)) * time.Millisecond
	}
	o.Usage = usageOf(ran, f.Usage)
	return o
}

// usageOf is what an attempt took, as far as it is known.
func usageOf(ran time.Duration, u *layout.Usage) protocol.Usage {
	used := protocol.Usage{WallClock: ran.Nanoseconds()}
	if u != nil {
		const kib = 1 << 10
		used.CPUUser, used.CPUSystem, used.MemoryMaxKB = u.CPUUser.Nanoseconds(), u.CPUSys.Nanoseconds(), u.Memory/kib
	}
	return used
}

// retryOf is the wait that a function asked for with its error, nil for none.
func retryOf(row *layout.Row, f *layout.Exception) *int64 {
	wait := int64(0)
	if row.State() == layout.Delayed {
		if wait = row.Attempts.Due - f.At; wait <= leastRetry.Milliseconds() {
			return nil
		}
	}
	return &wait
}

// returned describes an item that is given back.
func returned(index int, why string) *protocol.Outcome {
	return &protocol.Outcome{Index: index, Code: protocol.CodeUnavailable, Message: why}
}

// load returns the outcome of an item whose future has ended, from the store.
func (c *chunk) load(ctx context.Context, index int) (*protocol.Outcome, error) {
	row, err := c.worker.node.cluster.Get(ctx, c.ids[index])
	if err != nil {
		return nil, err
	}
	return c.outcome(ctx, index, &row, endOf(&row))
}
