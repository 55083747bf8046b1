package workers

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Worker executes futures. Its methods may be called from many goroutines.
type Worker struct {
	cluster *fdbmodel.Cluster
	options Options

	mu        sync.Mutex
	functions map[string]Function
	started   bool
	life      *life // the present membership
	janitor   *janitor
	manual    manual

	ready    chan struct{}
	readyOne sync.Once
	vanish   context.Context
	vanishIt context.CancelFunc
	stats    counters
}

// counters of a worker since it was made.
type counters struct {
	claims, conflicts, ran, failed, lost, putBack, relinquished, reaped atomic.Int64
}

// Stats is what a worker has done since it was made.
type Stats struct {
	Claims       int64 `json:"claims"`       // claim transactions that took something
	Conflicts    int64 `json:"conflicts"`    // claims that met another worker's
	Ran          int64 `json:"ran"`          // attempts that ended with a result
	Failed       int64 `json:"failed"`       // attempts that failed
	Lost         int64 `json:"lost"`         // ends that came too late to count
	PutBack      int64 `json:"put_back"`     // futures that it could not run
	Relinquished int64 `json:"relinquished"` // futures given back unrun or interrupted
	Reaped       int64 `json:"reaped"`       // futures that its janitor took back from the dead
	Running      int   `json:"running"`
	Waiting      int   `json:"waiting"`
}

// New returns a worker of a cluster. It does nothing before Run or Step.
func New(cluster *fdbmodel.Cluster, o Options) (*Worker, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	w := &Worker{cluster: cluster, options: o, functions: map[string]Function{}, ready: make(chan struct{})}
	w.vanish, w.vanishIt = context.WithCancel(context.Background())
	return w, nil
}

// Register makes the worker know a function, as go:NAME. It returns
// fdbmodel.ErrBadName, and an error for a name that is known or comes after Run.
func (w *Worker) Register(name string, fn Function) error {
	full := "go:" + name
	if err := fdbmodel.CheckFunctionName(full); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return fmt.Errorf("workers: function %s comes too late: the worker runs", name)
	}
	if _, known := w.functions[full]; known {
		return fmt.Errorf("workers: function %s is registered already", name)
	}
	w.functions[full] = fn
	return nil
}

// Ready is closed when the worker has first become a member of the cluster.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// ID returns the id of the present membership, empty before the first.
func (w *Worker) ID() fdbmodel.WorkerID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life == nil {
		return ""
	}
	return w.life.reg.ID()
}

// Stats returns what the worker has done.
func (w *Worker) Stats() Stats {
	s := Stats{
		Claims: w.stats.claims.Load(), Conflicts: w.stats.conflicts.Load(), Ran: w.stats.ran.Load(),
		Failed: w.stats.failed.Load(), Lost: w.stats.lost.Load(), PutBack: w.stats.putBack.Load(),
		Relinquished: w.stats.relinquished.Load(), Reaped: w.stats.reaped.Load(),
	}
	w.mu.Lock()
	l := w.life
	w.mu.Unlock()
	if l != nil {
		l.mu.Lock()
		s.Running, s.Waiting = len(l.running), len(l.queue)
		l.mu.Unlock()
	}
	return s
}

// Vanish ends the worker as a crash of its process would: without a word to the
// store. What it holds stays claimed until others notice. Run returns once the
// functions that run have returned; what they came to counts for nothing.
func (w *Worker) Vanish() { w.vanishIt() }

func (w *Worker) vanished() bool { return w.vanish.Err() != nil }

// Run makes the worker a member of the cluster and executes futures until ctx
// ends. Then it claims no more, lets what runs end for at most DrainTimeout,
// and gives back the rest, which counts as no attempt. A worker that was
// declared dead, for instance after a long pause, stops what it runs and
// becomes a member anew. Run returns nil after a graceful stop, and the store's
// error if the worker can't go on. It may be called once.
func (w *Worker) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return errors.New("workers: Run was called before")
	}
	w.started = true
	w.mu.Unlock()
	for {
		err := w.live(ctx)
		if errors.Is(err, fdbmodel.ErrReaped) && ctx.Err() == nil && !w.vanished() {
			w.options.Logger.Warn("this worker was declared dead and starts anew")
			continue
		}
		return err
	}
}

// join becomes a member.
func (w *Worker) join(ctx context.Context) (*life, error) {
	w.mu.Lock()
	info := fdbmodel.WorkerInfo{
		Name: w.options.Name, Address: w.options.Address, Queues: w.options.Queues,
		Capacity: fdbmodel.Resources{Slots: w.options.Slots, CPU: w.options.CPU, RAM: w.options.RAM, GPU: w.options.GPU},
	}
	for name := range w.functions {
		info.Functions = append(info.Functions, name)
	}
	w.mu.Unlock()
	sort.Strings(info.Functions)
	if w.options.Modules != nil {
		info.Functions = append(info.Functions, fdbmodel.AnyModule)
	}
	reg, err := w.cluster.Register(ctx, info)
	if err != nil {
		return nil, err
	}
	l := w.newLife(ctx, reg)
	w.mu.Lock()
	w.life = l
	w.janitor = newJanitor(w, reg.ID())
	w.mu.Unlock()
	w.readyOne.Do(func() { close(w.ready) })
	w.options.Logger.Info("worker is a member", "worker", reg.ID(), "slots", info.Capacity.Slots)
	return l, nil
}

// live is one membership.
func (w *Worker) live(ctx context.Context) error {
	l, err := w.join(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	unhook := context.AfterFunc(w.vanish, func() { stop(errVanished); l.end(errVanished) })
	defer unhook()

	var slots, loops sync.WaitGroup
	for range w.options.Slots {
		slots.Go(l.slot)
	}
	// What finishes, and says that the worker lives, goes on while it drains.
	finishing, stopFinishing := context.WithCancel(context.Background())
	defer stopFinishing()
	fail := func(err error) {
		if err != nil {
			stop(err)
		}
	}
	for range finishers {
		loops.Go(func() { fail(l.finishLoop(finishing)) })
	}
	loops.Go(func() { fail(l.beatLoop(finishing)) })
	var claiming sync.WaitGroup
	claiming.Go(func() { fail(l.claimLoop(ctx)) })
	claiming.Go(func() { w.janitor.loop(ctx) })

	<-ctx.Done()
	claiming.Wait()
	cause := context.Cause(ctx)
	lost := errors.Is(cause, errVanished) || errors.Is(cause, fdbmodel.ErrReaped)
	if lost {
		l.end(cause)
	}
	l.close()
	l.drain(&slots, lost)
	stopFinishing()
	loops.Wait()
	switch {
	case errors.Is(cause, errVanished):
		return nil
	case errors.Is(cause, fdbmodel.ErrReaped):
		return cause
	}
	err = w.leave(l)
	if err == nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = cause
	}
	return err
}

var errVanished = errors.New("workers: the worker vanished")

// leaveTimeout bounds the last transactions of a graceful stop.
const leaveTimeout = 10 * time.Second

func (w *Worker) leave(l *life) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := l.flush(ctx); err != nil && !errors.Is(err, fdbmodel.ErrReaped) {
		w.options.Logger.Warn("results could not be written at the end", "error", err)
	}
	if err := w.cluster.DropJanitor(ctx, l.reg.ID()); err != nil {
		w.options.Logger.Warn("the janitor's role could not be given up", "error", err)
	}
	return l.reg.Leave(ctx)
}
