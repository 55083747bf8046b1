package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/away"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/ratelog"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Worker executes futures. Its methods may be called from many goroutines.
type Worker struct {
	cluster *fdbmodel.Cluster
	options Options
	slots   *slots
	paces   paces
	freeze  freeze      // lasts while the worker is frozen
	paused  atomic.Bool // claims no more

	mu         sync.Mutex
	functions  map[string]Function
	readers    []string // those that are readers of actors
	bundles    map[string]BundleFunction
	started    bool
	membership *membership // the present membership
	steps      manualSteps

	running  sync.WaitGroup // slots
	ready    chan struct{}
	readyOne sync.Once
	vanish   context.Context
	crash    context.CancelFunc // ends the worker without telling the store
	stats    counters
	failures *failureLog
	rare     *ratelog.Log // of what comes again with each attempt while its cause lasts
	stall    stall
	away     *away.Watch
	clients  clientSource
	policy   layout.Policy // of the worker and of the cluster
	unhear   func()        // ends hearLost; used by the goroutine of Run, or by steps
	tallies  *tallies
	waits    prometheus.Histogram
	sizes    prometheus.Histogram
}

// counters of a worker since it was made.
type counters struct {
	claims, conflicts, hinted, ran, failed, cancelled, lost, rejected, relinquished, reaped,
	bundles, members atomic.Int64
}

// Stats are the counters of a worker since it was created.
type Stats struct {
	Claims       int64 `json:"claims"`       // claim transactions that took something
	Conflicts    int64 `json:"conflicts"`    // claims that met another worker's
	Hinted       int64 `json:"hinted"`       // looks for work that another process hinted at
	Ran          int64 `json:"ran"`          // attempts that ended with a result
	Failed       int64 `json:"failed"`       // attempts that failed
	Cancelled    int64 `json:"cancelled"`    // attempts that ended because that was asked
	Lost         int64 `json:"lost"`         // ends that came too late to count
	Rejected     int64 `json:"rejected"`     // futures that it could not run
	Relinquished int64 `json:"relinquished"` // futures given back unrun or interrupted
	Reaped       int64 `json:"reaped"`       // futures that its janitor took back from the dead
	Bundles      int64 `json:"bundles"`      // calls of functions with members
	Members      int64 `json:"members"`      // futures that ran in these
	// Running is how many functions run, Awaiting how many of them wait for other
	// futures and have given their slots to others, Waiting how many futures wait
	// for a slot, and Free what no function uses.
	Running  int              `json:"running"`
	Awaiting int              `json:"awaiting"`
	Waiting  int              `json:"waiting"`
	Free     layout.Resources `json:"free"`
}

// Client is what a worker is made from: a *futures.Client.
type Client interface {
	Cluster() *fdbmodel.Cluster
}

// New returns a worker of a client's cluster. It does nothing before Run. It
// returns ErrBadName of package futures for an invalid queue, and an error for
// invalid numbers.
//
// The functions of the worker get the client with futures.FromContext. Close the
// client after Run has returned: functions that find it closed get another one,
// which the worker closes.
func New(c Client, o Options) (*Worker, error) {
	cluster := c.Cluster()
	o = o.withDefaults()
	if o.Fleet != nil && o.Fleet.cluster != cluster {
		return nil, errors.New("workers: the fleet is one of another Cluster: make one for each")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	w := &Worker{
		cluster: cluster, options: o, functions: map[string]Function{},
		bundles: map[string]BundleFunction{}, ready: make(chan struct{}),
		paces: paces{clock: cluster.Clock(), cluster: cluster},
		slots: newSlots(cluster.Clock(), layout.Resources{Slots: o.Slots, CPU: o.CPU, RAM: o.RAM, GPU: o.GPU},
			cluster.Config().DeadAfter, o.MaxAwaiting),
		tallies:  newTallies(o.Name),
		waits:    newWaits(o.Name),
		sizes:    newSizes(o.Name),
		failures: newFailureLog(o.Logger, cluster.Now),
		rare:     ratelog.New(o.Logger, cluster.Clock()),
		policy:   o.Policy.Within(cluster.Config().Policy),
		clients:  clientSource{given: c, logger: o.Logger},
	}
	if w.away = away.New(o.Logger, cluster.Clock()); o.Fleet != nil {
		w.away = o.Fleet.watch(w.away)
	}
	w.slots.pipeline = o.Remote != nil
	serial, ok := o.Remote.(Serial)
	w.slots.serial = ok && serial.Serial()
	limiter, ok := o.Remote.(Limiter)
	w.slots.limiter = ok && limiter.KeepsLimits()
	w.vanish, w.crash = context.WithCancel(context.Background())
	w.attachSource()
	if o.Seam != nil {
		o.Seam.Step, o.Seam.Leave, o.Seam.Vanish = w.step, w.leave, w.crash
		o.Seam.Freeze, o.Seam.Thaw = w.freeze.begin, w.freeze.end
		o.Seam.TakeCancels = w.takeCancels
		o.Seam.ReadObject, o.Seam.DropObject, o.Seam.Room = w.readObject, w.dropObject, w.objectRoom
		o.Seam.Keep, o.Seam.Take = w.keepValue, w.takeCopy
	}
	return w, nil
}

// FromCluster returns a worker of a cluster that is open; see New. Its functions
// get a client that is made when one of them first asks for it.
func FromCluster(cluster *fdbmodel.Cluster, o Options) (*Worker, error) {
	return New(onlyCluster{cluster}, o)
}

// manual reports whether the worker runs without goroutines.
func (w *Worker) manual() bool { return w.options.Seam != nil && w.options.Seam.Manual }

// Register registers a function as go:NAME. It returns layout.ErrBadName for an
// invalid name, and an error for nil, a registered name or after Run. What futures.Reader.Bind returns is registered as
// a reader of actors.
func (w *Worker) Register(name string, fn Function) error {
	name, reads := strings.CutSuffix(name, taskcontext.ReaderMark)
	if err := w.register(name, fn); err != nil || !reads {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readers = append(w.readers, "go:"+name)
	return nil
}

func (w *Worker) register(name string, fn Function) error {
	full := "go:" + name
	if err := layout.CheckFunctionName(full); err != nil {
		return err
	}
	if fn == nil {
		return errNil(name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return fmt.Errorf("workers: function %s is registered too late: the worker is running", name)
	}
	if _, known := w.functions[full]; known {
		return fmt.Errorf("workers: function %s is already registered", name)
	}
	w.functions[full] = fn
	return nil
}

func errNil(name string) error {
	return fmt.Errorf("workers: function %s is nil: no future of it could run here", name)
}

// Ready returns a channel that is closed once the worker has first become a
// member of the cluster.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// ID returns the id of the present membership, empty before the first.
func (w *Worker) ID() layout.WorkerID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.membership == nil {
		return ""
	}
	return w.membership.reg.ID()
}

// Stats returns the counters of the worker.
func (w *Worker) Stats() Stats {
	s := Stats{
		Claims: w.stats.claims.Load(), Conflicts: w.stats.conflicts.Load(),
		Hinted: w.stats.hinted.Load(), Ran: w.stats.ran.Load(), Failed: w.stats.failed.Load(),
		Cancelled: w.stats.cancelled.Load(), Lost: w.stats.lost.Load(), Rejected: w.stats.rejected.Load(),
		Relinquished: w.stats.relinquished.Load(), Reaped: w.stats.reaped.Load(),
		Bundles: w.stats.bundles.Load(), Members: w.stats.members.Load(),
	}
	s.Free, s.Running, s.Waiting = w.slots.status()
	s.Awaiting, _ = w.slots.awaits()
	return s
}

// Abandon ends the worker as a crash of its process would, without telling the store: its
// futures stay claimed until a janitor declares it dead, or ForceReap does. It is for workers whose
// Remote is lost. Run returns at most a second later; the results of functions are discarded.
func (w *Worker) Abandon() { w.crash() }

func (w *Worker) vanished() bool { return w.vanish.Err() != nil }

// Pause makes the worker claim no more until Resume. It stays a member, what it
// has claimed runs, and a claim that is under way may commit.
func (w *Worker) Pause() { w.setPaused(true) }

// Resume ends a Pause.
func (w *Worker) Resume() { w.setPaused(false) }

// setPaused has the claim loop look again.
func (w *Worker) setPaused(paused bool) {
	w.paused.Store(paused)
	signal.Send(w.slots.hungry)
}

// Run makes the worker a member of the cluster and executes futures until ctx
// ends. Then it claims no more, lets what runs end for at most DrainTimeout,
// and gives back the rest, which counts as no attempt. A worker that was
// declared dead, for instance after a long pause, stops its functions and
// becomes a member again. Run returns nil after a graceful stop, also of a
// worker that has not registered yet: if the commit of that is unknown, it may be
// listed until a janitor finds it dead. It returns the store's error if the worker
// can't go on, and kv.ErrUnavailable for a stop while the store is away, after ten
// seconds or those of the drain, and a few more. Functions that ignore their context are
// left running. It may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if w.manual() {
		return errors.New("workers: a manual worker is driven by Step, not by Run")
	}
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return errors.New("workers: Run may be called only once")
	}
	w.started = true
	w.mu.Unlock()
	defer w.readObjects()()
	w.slots.lazy = w.options.Fleet != nil
	w.slots.startExecutors(func() { w.running.Go(w.slot) })
	w.slots.held = func(jobs []*job) {
		for _, j := range jobs {
			j.relinquish()
		}
	}
	err := w.live(ctx)
	w.slots.close()
	w.awaitReturns()
	w.clients.close(w, true, errors.Is(err, errAway))
	w.stopReporting()
	return err
}

// live is one membership after the other.
func (w *Worker) live(ctx context.Context) error {
	warned, awaitsRoom := false, w.options.AwaitsRoom
	for {
		m, err := w.join(ctx)
		if err == nil {
			warned, awaitsRoom = false, true // one that has begun does not end by a full disk
			err = m.run(ctx)
		}
		switch {
		case m == nil && ctx.Err() != nil: // it was to stop while it registered
			return nil
		case w.vanished() || errors.Is(err, errVanished):
			return nil
		case m == nil && awaitsRoom && errors.Is(err, kv.ErrReadOnly):
			if !warned {
				warned = true
				w.options.Logger.Warn("this worker runs nothing before the store can be written", "error", err)
			}
			if clock.Sleep(ctx, w.cluster.Clock(), w.cluster.Config().Heartbeat) != nil {
				return nil
			}
			continue
		case !errors.Is(err, fdbmodel.ErrReaped):
			return err
		case ctx.Err() != nil:
			return nil
		}
		w.options.Logger.Warn("this worker was declared dead; registering again", "worker", w.ID())
	}
}

// awaitReturns gives functions whose contexts have ended the time to return.
func (w *Worker) awaitReturns() {
	timer := w.cluster.Clock().At(w.cluster.Now().Add(returnGrace))
	defer timer.Stop()
	for {
		_, running, _ := w.slots.status()
		if running == 0 {
			w.running.Wait()
			return
		}
		select {
		case <-w.slots.returned:
		case <-timer.C():
			w.options.Logger.Warn("functions ignore their contexts and are left running", "number", running)
			return
		}
	}
}

// join becomes a member.
func (w *Worker) join(ctx context.Context) (*membership, error) {
	info := layout.WorkerInfo{
		Name: w.options.Name, Address: w.options.Address, Queues: w.options.Queues, Capacity: w.slots.capacity,
		Process: os.Getpid(), Labels: w.options.Labels,
	}
	if w.options.Seam != nil && w.options.Seam.AllLabels {
		info.Labels = map[string]string{layout.AnyLabel: ""}
	}
	if peer, ok := w.options.Remote.(Peer); ok {
		info.Labels = maps.Clone(info.Labels)
		if info.Labels == nil {
			info.Labels = map[string]string{}
		}
		info.Labels[layout.LabelPeer] = peer.PeerID()
	}
	w.mu.Lock()
	for name := range w.functions {
		info.Functions = append(info.Functions, name)
	}
	info.Readers = slices.Sorted(slices.Values(w.readers))
	w.mu.Unlock()
	if w.options.Remote != nil {
		info.Functions = append(info.Functions, w.options.Remote.Functions()...)
	}
	sort.Strings(info.Functions)
	if w.options.Modules != nil {
		info.Functions = append(info.Functions, layout.AnyModule)
	}
	kept, err := w.openKeeper(&info)
	if err != nil {
		return nil, err
	}
	w.hearLost()
	joining, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(w.vanish, stop)()
	reg, err := w.cluster.Register(joining, info)
	if err != nil {
		if kept != nil {
			err = errors.Join(err, kept.close())
		}
		return nil, err
	}
	m := w.newMembership(ctx, reg, info.Runs)
	if m.kept = kept; kept != nil {
		kept.worker, kept.reg = reg.ID(), reg
	}
	w.mu.Lock()
	w.membership = m
	w.mu.Unlock()
	w.readyOne.Do(func() { close(w.ready) })
	w.options.Logger.Info("worker registered", "worker", reg.ID(), "slots", info.Capacity.Slots)
	return m, nil
}

// openKeeper opens the object store of a membership, if the worker is to have one.
func (w *Worker) openKeeper(info *layout.WorkerInfo) (*keeper, error) {
	if w.options.Objects.Memory <= 0 {
		return nil, nil
	}
	if has := machineMemory(); has > 0 && w.options.Objects.Memory > has {
		w.options.Logger.Warn("objects may take more memory than this process may use: what fills it can be killed; use "+
			"less (Objects.Memory, --object-memory), or a directory for the rest (Objects.Dir, --object-dir)",
			"object_memory", w.options.Objects.Memory, "machine_memory", has)
	}
	k, err := newKeeper(w.cluster, w.options.Objects, !w.manual())
	if err == nil {
		info.Objects, info.Secret = k.addresses(), layout.Secret(k.secret)
	}
	if err == nil && w.manual() {
		k.peers = stepPeers{w.options.Seam}
	}
	return k, err
}

var errVanished = errors.New("workers: the worker vanished")
