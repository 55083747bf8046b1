package jobqueue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// Codec turns jobs into bytes and back. Decode of what Encode returned is the same
// job.
type Codec[J any] struct {
	Encode func(J) ([]byte, error)
	Decode func([]byte) (J, error)
}

// LogOptions are options of a Log. The zero value suits most.
type LogOptions[J any] struct {
	// Codec defaults to JSON, and to the bytes themselves for []byte and string.
	Codec Codec[J]
	// Keep is how many jobs stay in the log that all of its consumers have done, for
	// consumers that are added later. Stages remove the others now and then; a log
	// without consumers keeps all. Defaults to 0.
	Keep uint64
}

// Log is a durable log of jobs in a cluster's store: it gives each job that is
// appended the next index. Its methods may be called from many goroutines, and any
// number of processes may use the log. It implements Jobs.
type Log[J any] struct {
	cluster *fdbmodel.Cluster
	name    string
	options LogOptions[J]
	append  appender
}

// NewLog returns the log of a name, 1 to 64 of A-Z, a-z, 0-9 and . _ -. It need not
// exist: its first job makes it, unless the name is . or .. alone. The caller closes the log before the cluster's
// store. NewLog returns layout.ErrBadName.
func NewLog[J any](cluster *fdbmodel.Cluster, name string, o LogOptions[J]) (*Log[J], error) {
	if err := layout.CheckName("queue", name); err != nil {
		return nil, err
	}
	producer, err := cluster.DrawWorkerID()
	if err != nil {
		return nil, err
	}
	if o.Codec.Encode == nil || o.Codec.Decode == nil {
		o.Codec = defaultCodec[J]()
	}
	l := &Log[J]{cluster: cluster, name: name, options: o}
	l.append = appender{cluster: cluster, queue: name, producer: string(producer)}
	l.append.ctx, l.append.cancel = context.WithCancel(context.Background())
	return l, nil
}

func defaultCodec[J any]() Codec[J] {
	switch any(*new(J)).(type) {
	case []byte:
		return Codec[J]{
			// Append may return before the bytes are written.
			Encode: func(j J) ([]byte, error) { return bytes.Clone(any(j).([]byte)), nil },
			Decode: func(b []byte) (J, error) { return any(b).(J), nil },
		}
	case string:
		return Codec[J]{
			Encode: func(j J) ([]byte, error) { return []byte(any(j).(string)), nil },
			Decode: func(b []byte) (J, error) { return any(string(b)).(J), nil },
		}
	}
	return Codec[J]{
		Encode: func(j J) ([]byte, error) { return json.Marshal(j) },
		Decode: func(b []byte) (j J, err error) { err = json.Unmarshal(b, &j); return j, err },
	}
}

// Name returns the log's name.
func (l *Log[J]) Name() string { return l.name }

// Close ends appends that are under way. Jobs that were acknowledged stay. The log
// must not be used after it.
func (l *Log[J]) Close() {
	l.append.mu.Lock()
	l.append.cancel() // no append begins any more
	l.append.mu.Unlock()
	l.append.running.Wait()
}

// Append appends jobs durably, all or none, and returns the index of the first one.
// Consumers in all processes are woken. Calls that come together share a transaction.
// It returns fdbmodel.ErrTooLarge for a job of more than 16 KiB, or more than 1,000
// jobs or 1 MiB in all, and the errors of the codec and of the store. If the error is
// kv.ErrUnknownResult, or ctx ends first, the jobs may have been appended, or may be
// yet; AppendOnce can be repeated then.
func (l *Log[J]) Append(ctx context.Context, jobs ...J) (first uint64, err error) {
	encoded, err := l.encodeAll(jobs)
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	return l.append.do(ctx, encoded)
}

// AppendOnce is Append that can be repeated: it appends nothing if the producer of
// that name has appended with this sequence, or a higher one, before. The sequence is
// above 0 and grows with each append of a producer, such as the offset in a file that
// the jobs are read from. The log remembers the producer for ever. It returns whether
// the jobs were appended by this call, and the index of the first one, 0 if that is
// known no more.
func (l *Log[J]) AppendOnce(ctx context.Context, producer string, sequence int64, jobs ...J,
) (first uint64, appended bool, err error) {
	if sequence <= 0 {
		return 0, false, fmt.Errorf("%w: sequence %d: use numbers above 0", ErrBadOptions, sequence)
	}
	encoded, err := l.encodeAll(jobs)
	if err != nil {
		return 0, false, err
	}
	at, appended, err := joblog.Of(l.cluster).Append(ctx, joblog.Append{
		Queue: l.name, Jobs: encoded, Producer: producer, Sequence: sequence, Keep: true,
	})
	return uint64(at), appended, err
}

// LastSequence returns the sequence of the last AppendOnce of a producer, 0 if there
// was none: where the producer goes on after a crash.
func (l *Log[J]) LastSequence(ctx context.Context, producer string) (int64, error) {
	last, err := joblog.Of(l.cluster).Producer(ctx, l.name, producer)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return 0, nil
	}
	return last.Sequence, err
}

// Emit appends jobs when the job that an Output belongs to is committed, after those
// that it emitted before. It returns ErrBadOptions for a log in another cluster, and
// the errors of Append that don't come from the store. The handler returns the error,
// or the jobs are missing.
func (l *Log[J]) Emit(out *Output, jobs ...J) error {
	encoded, err := l.encodeAll(jobs)
	if err != nil {
		return err
	}
	return out.emit(l.cluster, l.name, encoded)
}

func (l *Log[J]) encodeAll(jobs []J) ([][]byte, error) {
	encoded := make([][]byte, len(jobs))
	for i := range jobs {
		b, err := l.options.Codec.Encode(jobs[i])
		if err != nil {
			return nil, fmt.Errorf("encode a job for log %s: %w", l.name, err)
		}
		if len(b) > joblog.MaxJob {
			return nil, Permanent(fmt.Errorf("%w: a job of %d bytes for log %s, at most %d: put the value apart, and "+
				"name it in the job", fdbmodel.ErrTooLarge, len(b), l.name, joblog.MaxJob))
		}
		encoded[i] = b
	}
	return encoded, nil
}

// AtIndex implements Jobs. It returns ErrRemoved for a job that was removed.
func (l *Log[J]) AtIndex(ctx context.Context, index uint64) (job J, err error) {
	found, err := logItems[J]{l}.AtIndex(ctx, index)
	if err == nil {
		err = found.err
	}
	if err != nil {
		return job, fmt.Errorf("job %d of log %s: %w", index, l.name, err)
	}
	return found.value, nil
}

// Range implements JobRange. It returns jobs up to the first that can't be decoded,
// and an error for that one.
func (l *Log[J]) Range(ctx context.Context, from uint64, limit int) (jobs []J, err error) {
	items, err := logItems[J]{l}.Range(ctx, from, limit)
	for i := range items {
		if items[i].err != nil && i == 0 {
			return nil, fmt.Errorf("job %d of log %s: %w", from, l.name, items[i].err)
		}
		if items[i].err != nil {
			break
		}
		jobs = append(jobs, items[i].value)
	}
	return jobs, err
}

// Head implements Jobs.
func (l *Log[J]) Head(ctx context.Context) (uint64, error) {
	last, err := joblog.Of(l.cluster).Last(ctx, l.name)
	return uint64(last), err
}

// Watch calls fn once, and again whenever jobs are appended, until ctx ends: the Check
// of a consumer of the log, for one. It has one watch of the store open, and several
// appends may lead to one call. It returns ctx's error.
func (l *Log[J]) Watch(ctx context.Context, fn func()) error {
	seen, time := int64(-1), l.cluster.Clock()
	for ctx.Err() == nil {
		last, watch, err := joblog.Of(l.cluster).Watch(ctx, l.name)
		if err == nil {
			if last != seen {
				seen = last
				fn()
			}
			select {
			case <-watch.Done():
				err = watch.Err()
			case <-ctx.Done():
			}
			watch.Cancel()
		}
		if err != nil {
			_ = clock.Sleep(ctx, time, Backoff{}.Wait(1, 0.5))
		}
	}
	return ctx.Err()
}

// Trim removes jobs that all consumers of the log have done, but for the last Keep of
// those. Stages do so themselves.
func (l *Log[J]) Trim(ctx context.Context) error {
	_, err := joblog.Of(l.cluster).Trim(ctx, l.name, int64(min(l.options.Keep, 1<<62)))
	return err
}

// appender gathers appends of one process to a log.
type appender struct {
	cluster  *fdbmodel.Cluster
	queue    string
	producer string
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	waiting  []*appending
	busy     bool
	sequence int64
}

// appending is one call of Append.
type appending struct {
	jobs  [][]byte
	first uint64
	err   error
	done  chan struct{}
}

func (a *appender) do(ctx context.Context, jobs [][]byte) (uint64, error) {
	if err := checkAppend(jobs); err != nil {
		return 0, err
	}
	call := &appending{jobs: jobs, done: make(chan struct{})}
	a.mu.Lock()
	if a.ctx.Err() != nil {
		a.mu.Unlock()
		return 0, kv.ErrClosed
	}
	a.waiting = append(a.waiting, call)
	if !a.busy {
		a.busy = true
		a.running.Add(1)
		go a.run()
	}
	a.mu.Unlock()
	select {
	case <-call.done:
		return call.first, call.err
	case <-ctx.Done():
		a.withdraw(call)
		return 0, ctx.Err()
	}
}

// withdraw has a call not be made that has not begun: while the store does not answer, others would pile up, and all
// come once it does.
func (a *appender) withdraw(call *appending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.waiting, call); i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
}

// checkAppend returns ErrTooLarge for jobs that one transaction can't append.
func checkAppend(jobs [][]byte) error {
	size := 0
	for _, job := range jobs {
		size += len(job)
	}
	if len(jobs) > joblog.MaxAppend || size > joblog.MaxAppendBytes {
		return fmt.Errorf("%w: %d jobs of %d bytes in one append, at most %d of %d bytes", fdbmodel.ErrTooLarge, len(jobs),
			size, joblog.MaxAppend, joblog.MaxAppendBytes)
	}
	return nil
}

// run appends what waits, until nothing does.
func (a *appender) run() {
	defer a.running.Done()
	for {
		calls, sequence := a.take()
		if len(calls) == 0 {
			return
		}
		var jobs [][]byte
		for _, call := range calls {
			jobs = append(jobs, call.jobs...)
		}
		first, _, err := joblog.Of(a.cluster).Append(a.ctx, joblog.Append{Queue: a.queue, Jobs: jobs, Producer: a.producer,
			Sequence: sequence})
		for _, call := range calls {
			call.first, call.err = uint64(first), err
			first += int64(len(call.jobs))
			close(call.done)
		}
	}
}

// take returns calls for one transaction, none if none waits.
func (a *appender) take() (calls []*appending, sequence int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	jobs, size := 0, 0
	for _, call := range a.waiting {
		jobs += len(call.jobs)
		for _, job := range call.jobs {
			size += len(job)
		}
		if len(calls) > 0 && (jobs > joblog.MaxAppend || size > joblog.MaxAppendBytes) {
			break
		}
		calls = append(calls, call)
	}
	clear(a.waiting[:len(calls)])
	a.waiting = a.waiting[len(calls):]
	a.busy = len(calls) > 0
	a.sequence++
	return calls, a.sequence
}
