package faultkv

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Database is a store with faults. It implements kv.Database and has the traits
// of the store that it wraps.
type Database struct {
	inner kv.Database

	mu         sync.Mutex
	options    Options
	random     *rand.Rand
	paused     bool
	next       []planned
	late       []*lateCommit
	watches    map[*watch]struct{}
	sweepAt    int
	generation int
	counts     Counts
}

// planned is a fault that waits for its commit.
type planned struct {
	fault Fault
	match func(tag string) bool
}

// lateCommit is a transaction that will be committed after some operations.
type lateCommit struct {
	inner kv.Tx
	after int
}

// Wrap returns db with faults. Closing it closes db, and drops the late commits that
// are pending then.
func Wrap(db kv.Database, o Options) *Database {
	return &Database{
		inner:   db,
		options: o.withDefaults(),
		random:  rand.New(rand.NewPCG(o.Seed, 0)),
		watches: map[*watch]struct{}{},
	}
}

// SetOptions replaces the options from now on. The random choices go on where
// they are, whatever the seed.
func (d *Database) SetOptions(o Options) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.options = o.withDefaults()
}

// Pause stops the injection of faults until Resume. Late commits may still be made,
// and faults of FailNext wait.
func (d *Database) Pause() { d.setPaused(true) }

// Resume ends a pause.
func (d *Database) Resume() { d.setPaused(false) }

func (d *Database) setPaused(paused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = paused
}

// FailNext injects fault into the next commit of a writing transaction whose
// kv.Options.Tag match accepts; nil accepts all. Each call adds one fault.
func (d *Database) FailNext(fault Fault, match func(tag string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = append(d.next, planned{fault: fault, match: match})
}

// Counts returns what was injected so far.
func (d *Database) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := d.counts
	counts.Pending = len(d.late)
	return counts
}

// Flush tries all late commits now, in the order in which they were held back,
// and returns how many of them were written.
func (d *Database) Flush() int {
	d.mu.Lock()
	due := d.late
	d.late = nil
	d.mu.Unlock()
	return d.commitLate(due)
}

// Recover does what a recovery of FoundationDB does: transactions that are open
// become too old, commits that are under way get an unknown result, late ones are
// made now or never, and watches fire.
func (d *Database) Recover() {
	d.mu.Lock()
	d.generation++
	d.counts.Recoveries++
	due := d.late
	d.late = nil
	var committing, dropped []*lateCommit
	for _, l := range due {
		if d.random.IntN(2) == 0 {
			committing = append(committing, l)
		} else {
			dropped = append(dropped, l)
		}
	}
	d.mu.Unlock()

	d.commitLate(committing)
	d.drop(dropped)
	d.wakeWatches()
}

// wakeWatches fires all watches without a change.
func (d *Database) wakeWatches() {
	d.mu.Lock()
	watches := d.watches
	d.watches = map[*watch]struct{}{}
	d.mu.Unlock()
	for w := range watches {
		w.end(nil)
	}
}

// commitLate makes late commits, and returns how many of them wrote something.
func (d *Database) commitLate(due []*lateCommit) int {
	committed := 0
	for _, l := range due {
		done, err := l.inner.Commit(context.Background())
		if err == nil && done.Version != kv.NoVersion {
			committed++
		}
		l.inner.Cancel()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Committed += committed
	d.counts.Died += len(due) - committed
	return committed
}

func (d *Database) drop(late []*lateCommit) {
	for _, l := range late {
		l.inner.Cancel()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Died += len(late)
}

// hold keeps inner for a late commit.
func (d *Database) hold(inner kv.Tx) {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := d.options.LateAfter
	if after > 0 {
		after = 1 + d.random.IntN(after)
	}
	d.late = append(d.late, &lateCommit{inner: inner, after: after})
}

// operation counts one operation and makes the late commits that have come due by it.
func (d *Database) operation() {
	d.mu.Lock()
	var due, rest []*lateCommit
	for _, l := range d.late {
		l.after--
		if l.after == 0 {
			due = append(due, l)
		} else {
			rest = append(rest, l)
		}
	}
	d.late = rest
	d.mu.Unlock()
	if len(due) > 0 {
		d.commitLate(due)
	}
}

// sleep holds up an operation.
func (d *Database) sleep(ctx context.Context) error {
	d.mu.Lock()
	var wait time.Duration
	if d.options.Latency > 0 && !d.paused {
		wait = time.Duration(d.random.Int64N(int64(d.options.Latency)))
	}
	sleep := d.options.Sleep
	d.mu.Unlock()
	if wait == 0 {
		return nil
	}
	return sleep(ctx, wait)
}

// commitFault draws the fault of a commit.
func (d *Database) commitFault(tag string) (Fault, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused {
		return 0, false
	}
	for i, p := range d.next {
		if p.match == nil || p.match(tag) {
			d.next = append(d.next[:i:i], d.next[i+1:]...)
			d.counts.Injected[p.fault]++
			return p.fault, true
		}
	}
	return d.draw(d.options.Commit)
}

// readFault draws the fault of a read.
func (d *Database) readFault() (Fault, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused {
		return 0, false
	}
	var odds [faults]float64
	odds[TooOld], odds[Unavailable] = d.options.Read[TooOld], d.options.Read[Unavailable]
	return d.draw(odds)
}

func (d *Database) draw(odds [faults]float64) (Fault, bool) {
	dice := d.random.Float64()
	for f, p := range odds {
		if dice < p {
			d.counts.Injected[f]++
			return Fault(f), true
		}
		dice -= p
	}
	return 0, false
}

// Begin implements kv.Database.
func (d *Database) Begin(o kv.Options) kv.Tx {
	d.operation()
	d.mu.Lock()
	generation := d.generation
	d.mu.Unlock()
	return &tx{Tx: d.inner.Begin(o), db: d, tag: o.Tag, generation: generation}
}

// Close implements kv.Database.
func (d *Database) Close() error {
	d.mu.Lock()
	late := d.late
	d.late = nil
	d.mu.Unlock()
	d.drop(late)
	return d.inner.Close()
}

// Traits returns those of the wrapped store, which is asked about its own
// conflicts only.
func (d *Database) Traits() kv.Traits {
	traits := kv.TraitsOf(d.inner)
	traits.WaitConflict = d.waitConflict
	return traits
}

func (d *Database) waitConflict(ctx context.Context, t kv.Tx) error {
	own, ok := t.(*tx)
	if wait := kv.TraitsOf(d.inner).WaitConflict; wait != nil && ok && own.conflicted {
		return wait(ctx, own.Tx)
	}
	runtime.Gosched()
	return ctx.Err()
}

// recovered reports whether there was a recovery since generation.
func (d *Database) recovered(generation int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.generation != generation
}

// errInjected is part of every error that is injected.
var errInjected = errors.New("faultkv: injected")
