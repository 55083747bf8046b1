package jobqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
)

// Handler does a job of a stage. It may be run more than once for a job, also at the
// same time by two processes of which one was taken for dead, so what it does outside
// of the Output must be repeatable. What it does by the Output happens once. An error,
// or a panic, is a failed attempt. ctx ends when the stage stops, or when another
// process takes over.
type Handler[J any] func(ctx context.Context, job Job[J], out *Output) error

// StageOptions are options of a stage.
type StageOptions struct {
	Options
	// Queue names what the jobs come from, if that is not a Log: the progress is
	// stored under it. 1 to 64 of A-Z, a-z, 0-9 and . _ -.
	Queue string
	// About says where this process runs, for display. Defaults to host and process.
	About string
}

// Stage is a consumer whose progress, parked jobs and effects are in the store of a
// cluster. Any number of processes may run the same stage: one is at work, and the
// others stand by. Its methods may be called from many goroutines; they tell of this
// process, and one that stands by has nothing to tell: joblog.Logs.Get has the progress
// as it is stored.
type Stage[J any] struct {
	cluster  *fdbmodel.Cluster
	consumer joblog.Consumer
	source   Jobs[J]
	asked    asked
	log      *Log[J] // nil for jobs that are elsewhere
	handle   Handler[J]
	options  StageOptions
	tally    tally

	ready     chan struct{}
	readyOnce sync.Once
	stopping  chan struct{}
	done      chan struct{}
	standby   context.Context // ends when the stage need not look for its lease
	giveUp    context.CancelFunc

	mu      sync.Mutex
	started bool
	stopped bool
	engine  *engine[item[J]] // while this process is at work
	last    uint64           // the processed index as last known
	err     error
}

// NewStage returns the stage of a name, which does nothing before Start. Its jobs are
// those of a Log, which wakes it, or any others, for which the program calls Check in
// the process where it learns of new ones. The name is unique among the consumers of
// the jobs: each name has a progress of its own. NewStage returns ErrBadOptions and
// layout.ErrBadName.
func NewStage[J any](cluster *fdbmodel.Cluster, jobs Jobs[J], name string, handle Handler[J], o StageOptions,
) (*Stage[J], error) {
	if o.Clock == nil {
		o.Clock = cluster.Clock()
	}
	o.Look = cmp.Or(o.Look, cluster.Config().Heartbeat)
	var err error
	if o.Options, err = o.Options.complete(); err != nil {
		return nil, err
	}
	s := &Stage[J]{cluster: cluster, source: jobs, asked: make(asked, 1), handle: handle, ready: make(chan struct{}),
		stopping: make(chan struct{}), done: make(chan struct{})}
	var isLog bool
	if s.log, isLog = jobs.(*Log[J]); isLog {
		if o.Queue != "" && o.Queue != s.log.name || s.log.cluster != cluster {
			return nil, fmt.Errorf("%w: the jobs are those of log %s, in its own cluster: leave Queue empty", ErrBadOptions,
				s.log.name)
		}
		o.Queue = s.log.name
	}
	if o.About == "" {
		host, _ := os.Hostname()
		o.About = fmt.Sprintf("%s, process %d", host, os.Getpid())
	}
	s.options, s.consumer = o, joblog.Consumer{Queue: o.Queue, Name: name}
	if err := s.consumer.Check(); err != nil {
		return nil, err
	}
	s.options.Logger = o.Logger.With("consumer", s.consumer.String())
	s.standby, s.giveUp = context.WithCancel(context.Background())
	return s, nil
}

// Start begins to work, or to stand by, until Stop. It returns ErrStarted.
func (s *Stage[J]) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.stopped {
		return ErrStarted
	}
	s.started = true
	go s.run()
	return nil
}

// Stop starts no more jobs, waits until those that run have ended, commits them, and
// lets another process take over at once. When ctx ends first, it ends the contexts
// of the handlers, waits for them to return, and returns ctx's error; what is not
// committed by then is done again. It returns the error that ended the stage before,
// if there was one.
func (s *Stage[J]) Stop(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		close(s.stopping)
		if !s.started {
			close(s.done)
		}
	}
	e := s.engine
	s.mu.Unlock()
	s.giveUp()
	var err error
	if e != nil {
		err = e.stop(ctx)
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return errors.Join(err, s.Err())
}

// Ready is closed once this process is at work for the first time. While another
// one is, it stays open.
func (s *Stage[J]) Ready() <-chan struct{} { return s.ready }

// Done is closed once the stage has stopped, for Stop or for an error.
func (s *Stage[J]) Done() <-chan struct{} { return s.done }

// Err returns the error that ended the stage: ErrJobFailed, ErrRemoved, or one of the
// store. It is nil before that, and after Stop.
func (s *Stage[J]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Check says that there may be new jobs. See Consumer.Check. It does nothing while the
// process stands by.
func (s *Stage[J]) Check() {
	if e := s.working(); e != nil {
		e.check()
	}
}

// AtWork reports whether this process is the one that processes the jobs, as far as
// it knows.
func (s *Stage[J]) AtWork() bool { return s.working() != nil }

// ParkedJobs returns jobs that the stage has parked, in whichever process, by their index: from
// the one behind after on, at most limit.
func (s *Stage[J]) ParkedJobs(ctx context.Context, after uint64, limit int) ([]Parked, error) {
	found, err := joblog.Of(s.cluster).Parked(ctx, s.consumer, int64(min(after, math.MaxInt64)), limit)
	parked := make([]Parked, len(found))
	for i, p := range found {
		parked[i] = Parked{Index: uint64(p.Index), Attempts: int(p.Attempts), Err: errors.New(p.Error), Value: p.Value}
	}
	return parked, err
}

// LastProcessedIndex returns the index up to which all jobs are done or parked, as
// this process has last stored or read it.
func (s *Stage[J]) LastProcessedIndex() uint64 {
	s.mu.Lock()
	e, last := s.engine, s.last
	s.mu.Unlock()
	if e != nil {
		return e.processed()
	}
	return last
}

// Size returns how many jobs are in memory. See Consumer.Size.
func (s *Stage[J]) Size() int {
	status := s.Status()
	return status.Processing + status.Waiting + status.Ended
}

// Status returns what this process is doing.
func (s *Stage[J]) Status() Status {
	if e := s.working(); e != nil {
		return e.status()
	}
	return Status{Processed: s.LastProcessedIndex()}
}

func (s *Stage[J]) working() *engine[item[J]] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine
}
