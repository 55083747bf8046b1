package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// Options of a run. Everything else is drawn from the seed.
type Options struct {
	Seed uint64
	// Futures is how many are submitted. Defaults to 60.
	Futures int
	// Workers is how many run at a time. Defaults to 4.
	Workers int
	// Chaos is how long faults happen, in virtual time. Defaults to 60 s.
	Chaos time.Duration
	// Database is the store, which must be empty. It loses nothing when the
	// cluster crashes, and is closed at the end. Defaults to an embedded store on
	// a disk that forgets what was not synced.
	Database kv.Database
	// Memory is that store's, in bytes: what it has beyond that lies in tables on its
	// disk. A checkpoint comes every few transactions then. Defaults to all that is needed.
	Memory int64
	// Promises are made and completed by processes of their own. Defaults to none: they draw.
	Promises int
	Actors   int // that functions take turns on, two at a time. Defaults to none.
	Forks    int // futures that processes of their own submit and fork. Defaults to none.
	// Bug is planted, see Bugs. Defaults to none.
	Bug Bug
	// Log is told each step, for finding out what a seed does. Defaults to none.
	Log func(format string, args ...any)
}

// Report is the result of a run.
type Report struct {
	Seed                                       uint64
	Submitted, Unknown, Realized, Failed, Runs int
	// TimedOut are runs that took longer than they may. Cancelled, Lost and
	// Infeasible are futures that ended so, and Charged those with a crash. Awaited
	// are waits of functions for other futures that ended with those.
	TimedOut, Cancelled, Lost, Infeasible, Charged, Awaited int
	// Joined are runs of futures with inputs, Upstream futures that failed with an
	// input, Wide lists of inputs too long for a record, and Retried, Discarded and
	// Expired what a client did to futures that had ended, and a janitor.
	Joined, Upstream, Wide, Retried, Discarded, Expired int
	// Ticks are runs of futures that schedules submitted, and TicksExpired those that
	// waited too long.
	Ticks, TicksExpired int
	// Unique are submits of futures with a unique key, and Refused those of them that
	// another future's key kept from being made.
	Unique, Refused int
	// InLanes are runs of futures in lanes, InLine those that were seen to wait in line,
	// and LaneChanges changes of the settings of lanes, and pauses.
	InLanes, InLine, LaneChanges int
	// Bundles are runs of bundles with members, InBundles those members, Together those of
	// them that were not alone, and Alone those that workers had died with. Lingered are
	// bundles that waited for more.
	Bundles, InBundles, Together, Alone, Lingered int
	// Jobs were appended, Leases taken to do them, and LeasesLost to others. JobKills are
	// deaths of processes that do jobs, and JobRetries retries of those that were parked.
	Jobs, Leases, LeasesLost, JobKills, JobRetries int
	// Taken are results as objects that runs of others took, Read those that the
	// client read, Missing those that it found lost, Unreached attempts to read one
	// from a worker that did not answer, and Cloned and Dropped copies that workers
	// made and lost. Losses are attempts to remove a result, Rebuilds runs asked for
	// because of one, LostForGood results that could not be rebuilt, and Blocks runs
	// that were given back because an input was lost.
	Taken, Read, Missing, Unreached, Cloned, Dropped, Losses, Rebuilds, LostForGood, Blocks int
	// Put are values that were put, Pinned pins that were made, Transferred results that
	// moved from all workers that had them to another one, HandedOver those of workers
	// that stopped as they should, which Left are, and Aged futures that were removed
	// once nobody kept them.
	Put, Pinned, Transferred, HandedOver, Left, Aged int
	// Near are runs that could be near an object and were, Bound those that had to be,
	// and Unplaceable futures that ended because no worker with the object could run them.
	Near, Bound, Unplaceable int
	// Declared are workers that were taken for dead and were alive.
	Declared int
	// Elsewhere and Again are runs of futures on another worker than the last one
	// that failed them, and on the same.
	Elsewhere, Again int
	// Deaths and Stops are those in the midst of a transaction or between two.
	Kills, Pauses, Crashes, Reaped, Deaths, Stops int
	// Items are those of batches that ended.
	Batches, Items, HeadKills int
	Moved                     int // items that went to another worker before they began
	Steps                     int
	Virtual                   time.Duration
	Faults                    faultkv.Counts
}

// Bounds of the second phase.
const (
	healTime = 30 * time.Minute
	maxSteps = 40_000
	// checkEvery is how many steps lie between two checks of all invariants, while
	// there are faults; without, it is ten times that.
	checkEvery = 25
	// soonExpired is the retention of ended futures in some runs.
	soonExpired = 15 * time.Second
)

// epoch is when each run begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one run.
type world struct {
	options Options
	random  *rand.Rand
	clock   *clock.Virtual
	report  Report

	disk   *vfs.MemFS
	store  kv.Database
	faults *faultkv.Database

	client   *clientProcess
	workers  []*workerProcess
	heads    []*headProcess
	batches  []*batchRequest
	wanted   int               // batches
	reader   *fdbmodel.Cluster // of the checkers
	log      *runLog
	bug      *plantedBug
	claimed  map[layout.WorkerID]map[layout.ID]int64 // by the sequences of the claims
	objects  objectLog
	lanes    *laneLog
	bundles  *bundleLog
	jobs     *jobLog
	stages   []*jobProcess
	hooks    []*hookProcess
	promises []*simPromise // that were asked for
	forking  forking
	turns    turns
	// bundling says that some futures run in bundles.
	bundling bool
	piping   bool      // there is a pipeline of jobs
	expires  bool      // ended futures are soon removed
	wide     int       // inputs in a long list that is to come
	leaves   int       // futures that were submitted for one
	until    time.Time // when the present phase ends
	seen     time.Time // when the client last looked at all that is open
	healing  bool
	stopped  bool    // a process is stopped in the midst of a step
	broken   []error // what was seen that must not be
	told     map[attemptOf]int64
	stepRuns stepRuns
	ticks    ticks
}

// Run runs a seed and returns an error that names what does not hold.
func Run(ctx context.Context, o Options) (Report, error) {
	o.Futures, o.Workers = cmp.Or(o.Futures, 60), cmp.Or(o.Workers, 4)
	o.Chaos = cmp.Or(o.Chaos, time.Minute)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	w := &world{
		options: o, random: rand.New(rand.NewPCG(o.Seed, 0x5eed)), clock: clock.NewVirtual(epoch),
		report: Report{Seed: o.Seed}, disk: vfs.NewCrashableMem(), log: newRunLog(), bug: o.Bug.planted(),
		claimed: map[layout.WorkerID]map[layout.ID]int64{}, objects: newObjectLog(),
		ticks: newTicks(), lanes: newLaneLog(), bundles: &bundleLog{gathered: map[layout.ID]int{}},
	}
	w.jobs, w.bundling, w.piping = &jobLog{}, w.drawBundling(), w.drawJobs()
	w.expires = w.random.IntN(4) == 0
	w.wide = w.drawWidth()
	w.seen = epoch
	w.wanted = w.random.IntN(maxBatches + 1)
	err := w.run(ctx)
	w.report.Virtual = w.clock.Now().Sub(epoch)
	if err != nil {
		err = fmt.Errorf("seed %d after %v: %w", o.Seed, w.report.Virtual, err)
	}
	return w.report, err
}

func (w *world) run(ctx context.Context) error {
	if err := w.boot(ctx, w.disk); err != nil {
		return err
	}
	defer func() { _ = w.store.Close() }()
	if err := w.setLanes(ctx); err != nil {
		return err
	}
	w.until = epoch.Add(w.options.Chaos)
	for w.clock.Now().Before(w.until) {
		if err := w.round(ctx); err != nil {
			return err
		}
	}
	return w.heal(ctx)
}

// round is a step, and with faults what goes wrong around it. A function that
// awaits others calls it too.
func (w *world) round(ctx context.Context) error {
	if err := w.step(ctx); err != nil || w.healing {
		return err
	}
	if err := w.chaos(ctx); err != nil {
		return err
	}
	if w.report.Steps%checkEvery == 0 {
		return w.checkInvariants(ctx)
	}
	return nil
}

// heal ends the faults and waits for everything to end.
func (w *world) heal(ctx context.Context) error {
	w.options.Log("healing")
	w.healing = true
	w.faults.Pause()
	w.faults.Flush()
	w.report.Faults = w.faults.Counts()
	for _, p := range w.heads {
		p.process.die()
	}
	// The last workers know all functions, and in some runs have what the others had.
	old, calm := w.workers, w.random.IntN(3) == 0
	for _, p := range old {
		if !calm {
			p.process.die()
			w.report.Reaped += int(p.worker.Stats().Reaped)
		}
	}
	if err := w.startClient(ctx); err != nil {
		return err
	}
	w.client.forgetEnds()
	w.lanes.forgetDoubts()
	if err := errors.Join(w.setLanes(ctx), w.resume(ctx)); err != nil {
		return err
	}
	if err := w.stopSchedules(ctx); err != nil {
		return err
	}
	if err := w.startOthers(ctx); err != nil {
		return err
	}
	if calm {
		if err := w.replaceCalmly(ctx, old); err != nil {
			return err
		}
	}
	w.until = w.clock.Now().Add(healTime)
	for {
		if over, err := w.over(ctx); over || err != nil {
			return errors.Join(err, w.check(ctx), w.end(ctx))
		}
		if !w.clock.Now().Before(w.until) {
			return fmt.Errorf("%d futures and %d batches have not ended within %v without faults: %s", w.client.open(),
				w.openBatches(), healTime, w.stuck(ctx))
		}
		if err := w.round(ctx); err != nil {
			return err
		}
		if w.report.Steps%(10*checkEvery) == 0 {
			if err := w.checkInvariants(ctx); err != nil {
				return err
			}
		}
	}
}

// end stops workers as they should stop, in some runs, and waits there for what is
// removed by its age.
func (w *world) end(ctx context.Context) error {
	if !w.expires && w.random.IntN(2) == 0 {
		return nil
	}
	if err := w.close(ctx); err != nil || !w.expires {
		return err
	}
	return errors.Join(w.age(ctx), w.checkInvariants(ctx))
}

// over reports whether all that was asked for has ended. A result that was said to
// be there may have been lost since.
func (w *world) over(ctx context.Context) (bool, error) {
	if w.client.open() > 0 || w.openBatches() > 0 {
		return false, nil
	}
	if over, err := w.ticksOver(ctx); over != nil || err != nil {
		return false, err
	}
	err := w.client.lookAgain(ctx)
	if err != nil || w.client.open() > 0 {
		return false, err
	}
	for _, over := range []func(context.Context) (bool, error){
		w.forksAreOver, w.sendsAreOver, w.jobsAreOver, w.lanesAreOver,
	} {
		if over, err := over(ctx); !over || err != nil {
			return false, err
		}
	}
	return w.promisesAreOver(), nil
}

// openStore opens the store from a disk, unless the run was given one.
func (w *world) openStore(ctx context.Context, disk *vfs.MemFS) error {
	w.disk, w.store = disk, w.options.Database
	if w.store != nil {
		return nil
	}
	store, err := embedded.Open(ctx, "store", embedded.Options{
		FS: disk, Clock: w.clock, Inline: true, SegmentSize: 64 << 10, CheckpointBytes: 256 << 10,
		Memory: w.options.Memory,
	})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	w.store = store
	if w.options.Memory > 0 {
		w.store = storetest.Checkpointed(store)
	}
	return nil
}

// boot opens the store and starts everybody.
func (w *world) boot(ctx context.Context, disk *vfs.MemFS) error {
	if err := w.openStore(ctx, disk); err != nil {
		return err
	}
	w.faults = faultkv.Wrap(w.store, faultkv.Everywhere(w.random.Uint64(), 0.02))
	if w.healing {
		w.faults.Pause()
	}
	if err := w.startClient(ctx); err != nil {
		return err
	}
	if err := w.openReader(ctx); err != nil {
		return err
	}
	return w.startOthers(ctx)
}

// startOthers starts workers and heads, and forgets those there were.
func (w *world) startOthers(ctx context.Context) error {
	w.workers, w.heads = nil, nil
	if err := w.startJobs(ctx); err != nil {
		return err
	}
	if err := errors.Join(w.startHooks(ctx), w.startForkers(ctx)); err != nil {
		return err
	}
	for range w.options.Workers {
		if err := w.startWorker(ctx, ""); err != nil {
			return err
		}
	}
	for range heads {
		if err := w.startHead(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openCluster opens a process's handle on the cluster.
func (w *world) openCluster(ctx context.Context, p *process) error {
	seed := make([]byte, 32)
	for i := range seed {
		seed[i] = byte(w.random.Uint32())
	}
	retention := 24 * time.Hour
	if w.expires {
		retention = soonExpired
	}
	c, err := fdbmodel.Open(ctx, p, "sim", fdbmodel.Options{
		Config: layout.Config{Shards: 4, Heartbeat: time.Second, DeadAfter: 3 * time.Second, Retention: retention,
			InfeasibleAfter: infeasibleAfter},
		Clock: w.clock, Random: rand.NewChaCha8([32]byte(seed)),
		// A wait between two attempts lets no time pass: nothing else would run.
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if p.cluster = c; err == nil {
		results.Of(c).OfferReader(p)
	}
	return err
}

// openReader opens the cluster for the checkers.
func (w *world) openReader(ctx context.Context) error {
	defer w.calm()()
	p := w.newProcess(&agenda{}, func() {})
	p.checks = true
	err := w.openCluster(ctx, p)
	w.reader = p.cluster
	return err
}

// calm ends the faults until the function that it returns is called.
func (w *world) calm() (end func()) {
	if w.healing {
		return func() {}
	}
	w.faults.Pause()
	return w.faults.Resume
}

// actor is something that is stepped.
type actor interface {
	step(ctx context.Context, now time.Time) (next time.Time, err error)
}

// step lets the actor run that is due next, and moves the clock there.
func (w *world) step(ctx context.Context) error {
	if w.report.Steps++; w.report.Steps > maxSteps {
		return fmt.Errorf("no end after %d steps: %s", maxSteps, w.stuck(ctx))
	}
	now := w.clock.Now()
	at, due := w.until, []*agenda(nil)
	for _, s := range w.schedules() {
		when := s.next
		if when.Before(now) {
			when = now
		}
		switch {
		case when.Before(at):
			at, due = when, []*agenda{s}
		case when.Equal(at) && when.Before(w.until):
			due = append(due, s)
		}
	}
	w.clock.Advance(at.Sub(now))
	if len(due) == 0 {
		return nil
	}
	s := due[w.random.IntN(len(due))]
	next, err := s.actor.step(ctx, w.clock.Now())
	if err != nil && !tolerable(err) {
		return err
	}
	// Every actor advances the clock: a step costs at least a tenth of a
	// millisecond.
	s.next = next
	if soonest := w.clock.Now().Add(100 * time.Microsecond); s.next.Before(soonest) {
		s.next = soonest
	}
	return nil
}

// tolerable are errors that a process lives with under faults.
func tolerable(err error) bool {
	return kv.Retryable(err) || errors.Is(err, fdbmodel.ErrReaped) || errors.Is(err, kv.ErrClosed)
}

// agenda says when an actor wants to run.
type agenda struct {
	actor       actor
	next        time.Time
	pausedUntil time.Time
}

func (w *world) schedules() []*agenda {
	all := []*agenda{&w.client.agenda}
	for _, p := range w.workers {
		all = append(all, &p.agenda)
	}
	for _, p := range w.heads {
		all = append(all, &p.agenda)
	}
	for _, p := range w.stages {
		all = append(all, &p.agenda)
	}
	for _, p := range w.hooks {
		all = append(all, &p.agenda)
	}
	all = append(all, w.forking.agendas()...)
	return slices.DeleteFunc(all, func(s *agenda) bool {
		paused := w.clock.Now().Before(s.pausedUntil)
		if paused && s.next.Before(s.pausedUntil) {
			s.next = s.pausedUntil
		}
		return paused
	})
}
