package workers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
)

var (
	// errResultTooLarge is returned by a result writer at its limit.
	errResultTooLarge = errors.New("the result is too large")
	// errResultOver is returned by a result writer once its function has returned.
	errResultOver = errors.New("workers: the function has returned")
)

// jobKey is the key of a function's own job in its context.
type jobKey struct{}

// ResultWriter returns where a Go function writes its result, as raw bytes, instead of
// returning it: what it returns beside that is ignored. Of a future that was submitted
// as an object, on a worker with an object store, the result goes there as it is
// written, and may have any size that the store has room for; else it goes to the store of
// the cluster, from 1 MiB on as it is written, and has at most 64 MiB. If the function
// fails, what it has written is dropped. If the object store has no room, an attempt that
// writes more than 64 MiB fails for good as too_large, and another one when the function
// returns, to be tried again. All calls of one function get the same writer, which belongs
// to one goroutine. Its Write returns an error that the function should return; after it
// the attempt fails in any case. ResultWriter returns an error for a context that is not a
// function's.
func ResultWriter(ctx context.Context) (io.Writer, error) {
	j, ok := ctx.Value(jobKey{}).(*job)
	if !ok {
		return nil, errors.New("workers: this is not the context of a function")
	}
	j.resultMu.Lock()
	defer j.resultMu.Unlock()
	if j.result == nil {
		j.result = j.openResult()
	}
	return j.result, nil
}

// resultStream is a result that its function writes.
type resultStream struct {
	limit int64
	size  int64
	pipe  *io.PipeWriter // to the object store, nil if it is stored with the cluster
	// begin returns where a value goes of which there is much, and what is called at its
	// end, or if it has failed.
	begin func() (to io.Writer, end func(failed error, r *layout.Result) error, err error)

	mu    sync.Mutex
	over  bool
	full  error // why the object store has no room: what is written is dropped
	large error // why nothing more is taken: a result that lacks some of it is none
	value bytes.Buffer
	// sink has what was in value too, nil before.
	sink     io.Writer
	endSink  func(failed error, r *layout.Result) error
	unstored error // of sink

	stored chan struct{} // closed once the object store has it, or has failed
	ref    objects.Ref
	failed error
}

// uploadFrom is how many bytes of a result are in memory before it is uploaded.
const uploadFrom = 1 << 20

func (j *job) openResult() *resultStream {
	s := &resultStream{limit: layout.MaxPut, begin: j.beginUpload}
	if j.sourced {
		s.begin = func() (io.Writer, func(error, *layout.Result) error, error) {
			to, err := j.membership.worker.options.Source.Writer(j.future.ID)
			return to, func(failed error, r *layout.Result) error { r.Size = s.size; return failed }, err
		}
	}
	if k := j.membership.kept; k != nil && j.future.Spec.AsObject {
		s.limit = math.MaxInt64
		s.toStore(j.ctx, k, j.future.ID)
	}
	if most := j.membership.worker.policy.MaxOutput; most > 0 {
		s.limit = min(s.limit, most)
	}
	return s
}

// beginUpload has the value of the job stored with the cluster as it comes.
func (j *job) beginUpload() (to io.Writer, end func(failed error, r *layout.Result) error, err error) {
	upload := results.Of(j.membership.worker.cluster).Upload(j.ctx, j.future.ID, j.future.Token)
	return upload, func(failed error, r *layout.Result) error {
		if failed != nil {
			_ = upload.Drop() // else it is swept
			return failed
		}
		ref, err := upload.End()
		r.ValueRef, r.Size = &ref, ref.Size
		return err
	}, nil
}

// toStore sends what is written to an object store, until ctx ends.
func (s *resultStream) toStore(ctx context.Context, k *keeper, id layout.ID) {
	from, to := io.Pipe()
	s.pipe, s.stored = to, make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = to.CloseWithError(context.Cause(ctx)) }) // it never fails
	go func() {
		defer close(s.stored)
		defer stop()
		s.ref, s.failed = k.store.Put(ctx, from, objects.PutOptions{
			Kept: func(ref objects.Ref) { k.hold(id, ref.Hash, time.Time{}) },
		})
		_ = from.CloseWithError(s.failed) // it never fails
	}()
}

// Write implements io.Writer.
func (s *resultStream) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return 0, errResultOver
	case s.large != nil:
		return 0, s.large
	case int64(len(p)) > s.limit-s.size:
		s.large = fmt.Errorf("%w: more than %d bytes", errResultTooLarge, s.limit)
		return 0, s.large
	case s.pipe == nil:
		n, err = s.keep(p)
	case s.full == nil:
		n, err = s.pipe.Write(p)
		if errors.Is(err, objects.ErrFull) {
			n, s.full, err = len(p), err, nil
		}
	default:
		n = len(p) // counted, and dropped
	}
	if s.size += int64(n); s.full != nil && s.size > layout.MaxPut {
		s.large = fmt.Errorf("%w: more than %d bytes, and %w", errResultTooLarge, layout.MaxPut, s.full)
		err = s.large
	}
	return n, err
}

// keep takes what is stored with the cluster. It is called under mu.
func (s *resultStream) keep(p []byte) (n int, err error) {
	if s.sink == nil && (s.begin == nil || s.value.Len()+len(p) <= uploadFrom) {
		return s.value.Write(p)
	}
	if s.sink == nil {
		if s.sink, s.endSink, s.unstored = s.begin(); s.unstored == nil {
			_, s.unstored = s.sink.Write(s.value.Bytes())
		}
		s.value = bytes.Buffer{}
	}
	if s.unstored == nil {
		n, s.unstored = s.sink.Write(p)
	}
	return n, s.unstored
}

// endKept is end for what is stored with the cluster.
func (s *resultStream) endKept(failed error, result *layout.Result) error {
	if s.endSink == nil && s.unstored == nil {
		result.Value = s.value.Bytes()
		return failed
	}
	failed = errors.Join(failed, s.unstored)
	if s.endSink == nil {
		return failed
	}
	err := s.endSink(failed, result)
	if failed == nil {
		s.unstored = err
	}
	return err
}

// end ends the writing, and drops what was written if the function failed; else it is
// added to result.
func (s *resultStream) end(failed error, result *layout.Result) error {
	s.mu.Lock()
	s.over = true
	failed = cmp.Or(failed, s.large)
	s.mu.Unlock()
	result.Codec = layout.CodecRaw
	if s.pipe == nil {
		return s.endKept(failed, result)
	}
	_ = s.pipe.CloseWithError(failed) // it never fails
	<-s.stored
	if failed == nil {
		failed = s.failed
	}
	result.Object, result.Size = s.ref.Hash.String(), s.ref.Size
	return failed
}

// ended is how an attempt ends whose function has written its result. What else there is
// of it is in result.
func (w *Worker) ended(j *job, s *resultStream, failed error, result layout.Result) fdbmodel.Completion {
	err := s.end(failed, &result)
	if s.unstored != nil && context.Cause(j.ctx) == nil {
		return w.unwritten(j, s.unstored)
	}
	if errors.Is(err, errResultTooLarge) {
		return fdbmodel.Completion{Future: &j.future, Exception: &layout.Exception{
			Kind: layout.KindTooLarge, Message: fmt.Sprintf("%v; submit it as an object, to workers that have room for it, or "+
				"store the data elsewhere and return where", err),
		}}
	}
	if err != nil {
		return j.failure(err)
	}
	if k := j.membership.kept; result.Object != "" {
		k.expect(result.Size)
		if result.Size <= k.above {
			if value, found := k.read(result.Object, result.Size); found {
				result.Value, result.Object = value, "" // a sweep drops it
			}
		}
	}
	return w.success(j, result)
}

// written returns the result that the function has begun to write, nil if none.
func (j *job) written() *resultStream {
	j.resultMu.Lock()
	defer j.resultMu.Unlock()
	return j.result
}
