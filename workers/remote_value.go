package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// errShort is why a value that came from elsewhere does not count.
var errShort = errors.New("another size than was told")

// RemoteValue is a value that is elsewhere.
type RemoteValue interface {
	// Size is how many bytes it has.
	Size() int64

	// Fetch writes to to what that has not Written yet, until ctx ends, whose cause says
	// why. It is called once at most. If it returns an error, or writes less than Size bytes, the
	// future is rejected, and counts no attempt. Progress tells how far it is.
	Fetch(ctx context.Context, to *results.Upload) error
}

// fetchRemote stores the value of an outcome as it comes, and says how the attempt ended
// with it.
func (w *Worker) fetchRemote(j *job, v RemoteValue, result layout.Result) fdbmodel.Completion {
	f, size := &j.future, v.Size()
	if most := w.policy.MaxOutput; most > 0 && size > most {
		return oversized(f, size, most, "return less, or raise max_output_bytes of the policy")
	}
	if size > layout.MaxPut {
		return oversized(f, size, layout.MaxPut, "store the data elsewhere and return where")
	}
	j.arriving.Store(true)
	if deadline := j.futureDeadline(); !j.final && !deadline.IsZero() {
		defer w.cluster.Clock().AfterFunc(deadline, func() { j.expireAt(deadline) })()
	}
	upload := results.Of(w.cluster).Upload(j.ctx, f.ID, f.Token)
	err := callFetch(jobContext{j.ctx, j}, v, upload)
	if err == nil && upload.Written() != size {
		err = fmt.Errorf("%w: %d bytes of %d", errShort, upload.Written(), size)
	}
	var ref layout.ChunkRef
	if err == nil {
		ref, err = upload.End()
	}
	switch {
	case err == nil:
		result.Value, result.ValueRef, result.Size = nil, &ref, ref.Size
		return w.success(j, result)
	case context.Cause(j.ctx) != nil:
		return fdbmodel.Completion{Future: f, Relinquish: true}
	}
	w.rare.Warn("a result did not come from where it is; putting its future back", "future", f.ID,
		"bytes", upload.Written(), "of", size, "error", err)
	return fdbmodel.Completion{Future: f, Reject: true}
}

// maxExtended is how often an attempt that is being prepared elsewhere has more time.
const maxExtended = 20

// extend gives an attempt whose time is over more of it, and reports whether it did.
func (j *job) extend() bool {
	p, prepares := j.membership.worker.options.Remote.(Preparer)
	if !prepares || j.settled.Load() || j.extended.Load() >= maxExtended || !p.Preparing(j.function()) {
		return false
	}
	j.extended.Add(1)
	c := j.membership.worker.cluster
	next := c.Now().Add(RemotePatience)
	if deadline := j.futureDeadline(); !deadline.IsZero() && deadline.Before(next) {
		c.Clock().AfterFunc(deadline, func() { j.expireAt(deadline) })
		return true
	}
	c.Clock().AfterFunc(next, j.expire) // of one that has ended it changes nothing
	return true
}

// isPast reports whether the time of the attempt is over.
func (j *job) isPast(now time.Time) bool {
	if j.final {
		return !now.Before(j.deadline)
	}
	more := time.Duration(j.extended.Load()) * RemotePatience
	return !j.arriving.Load() && !now.Before(j.deadline.Add(more))
}

// callFetch turns a panic into an error.
func callFetch(ctx context.Context, v RemoteValue, to *results.Upload) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("the remote panicked: %v", p))
		}
	}()
	return v.Fetch(ctx, to)
}
