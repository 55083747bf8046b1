package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/taskcontext"
)

// shortSleep is the longest sleep in which a function stays, without its slot.
const shortSleep = 5 * time.Second

// unrecordedError says that a step is not recorded, or can't be read, through no fault of its
// function: an attempt that ends with it does not count.
type unrecordedError struct{ error }

// Unwrap returns the cause.
func (e unrecordedError) Unwrap() error { return e.error }

// stepLog are the steps of an attempt. It implements taskcontext.Steps.
type stepLog struct {
	job *job

	mu     sync.Mutex
	loaded bool
	// earlier are the steps that earlier claims have recorded.
	earlier steps.Recorded
	asked   map[string]int // by name, how often; nil before the first one
	used    map[string]bool
	last    int  // number that was given to a step
	some    bool // of the attempt are recorded
	runs    int  // steps whose code runs
	wake    time.Time
	// seen is the highest version of a commit of its steps. One that is not known, after an unknown result, is left out:
	// the end of the attempt may then conflict with it, and reads again.
	seen kv.Version
	// unsure are the numbers of steps with a transaction that may have committed.
	unsure map[string]int
	// calling is set in a call within middleware, which may make another one. within has the names that the last call
	// has asked for, and how often, and made what calls have recorded.
	calling bool
	within  map[string]int
	made    map[string]*steps.Record
}

// stepLog returns the steps of the attempt.
func (j *job) stepLog() *stepLog {
	j.stepsMu.Lock()
	defer j.stepsMu.Unlock()
	if j.steps == nil {
		j.steps = &stepLog{job: j}
	}
	return j.steps
}

// stepsSoFar returns the steps of the attempt, nil if it has asked for none.
func (j *job) stepsSoFar() *stepLog {
	j.stepsMu.Lock()
	defer j.stepsMu.Unlock()
	return j.steps
}

// mayStep returns an error for a job whose steps can't be recorded.
func (j *job) mayStep() error {
	switch {
	case j.sourced:
		return Permanent(errors.New("workers: a function that a head gave to a peer has no steps: " +
			"run it on a worker with access to the store"))
	case j.future.Spec.Bundle:
		return Permanent(errors.New("workers: a function that takes many futures in one call has no steps"))
	}
	return nil
}

// Ask implements taskcontext.Steps.
func (l *stepLog) Ask(ctx context.Context, name string) (string, *taskcontext.RecordedStep, error) {
	if err := l.job.mayStep(); err != nil {
		return "", nil, err
	}
	if err := steps.CheckName(name); err != nil {
		return "", nil, Permanent(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wake.IsZero() {
		return "", nil, l.asleep()
	}
	if err := l.load(ctx); err != nil {
		return "", nil, err
	}
	if l.asked == nil {
		l.asked, l.used = map[string]int{}, map[string]bool{}
	}
	step := steps.Numbered(name, l.asked[name]+1)
	record := cmp.Or(l.earlier.Steps[step], l.made[step])
	if record == nil {
		l.count(name)
		return step, nil, l.full()
	}
	value, err := l.value(ctx, step, record)
	if err != nil { // not counted: a function that asks again must not run the step by the next number
		return "", nil, unread(fmt.Errorf("step %s of future %s: %w", step, l.job.future.ID, err))
	}
	l.count(name)
	l.used[step] = true
	recorded := &taskcontext.RecordedStep{Codec: record.Codec, Value: value, Attempt: record.Attempt,
		Started: time.UnixMilli(record.StartedAt)}
	if record.Wake != 0 {
		recorded.Wake = time.UnixMilli(record.Wake)
	}
	return step, recorded, nil
}

// count counts a step that was asked for. It is called under mu.
func (l *stepLog) count(name string) {
	l.asked[name]++
	if l.calling {
		l.within[name]++
	}
}

// call says that middleware, which may call it once more, calls the function, and returns how to say that
// the call has ended: another one finds what this one records, by the same names.
func (l *stepLog) call() (ended func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, n := range l.within {
		l.asked[name] -= n
	}
	l.calling, l.within = true, map[string]int{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calling = false
	}
}

// note notes that a step is recorded, which another call of the attempt may ask for: without its value, which that
// reads. It is called under mu.
func (l *stepLog) note(step string, record steps.Record, version kv.Version) {
	l.some, l.seen = true, max(l.seen, version)
	if !l.calling {
		return
	}
	if l.made == nil {
		l.made = map[string]*steps.Record{}
	}
	record.Value = nil
	l.made[step] = &record
}

// Begin implements taskcontext.Steps.
func (l *stepLog) Begin() (ended func()) {
	count := func(by int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs += by
	}
	count(1)
	return func() { count(-1) }
}

// Runs implements taskcontext.Steps.
func (l *stepLog) Runs() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs > 0
}

// load reads what earlier claims have recorded, once. A future without a mark has nothing, so that
// its attempt reads nothing. It is called under mu.
func (l *stepLog) load(ctx context.Context) error {
	f := &l.job.future
	if l.loaded || !f.Steps {
		return nil
	}
	all, err := l.rooms().Load(ctx, l.job.membership.reg, f)
	if err != nil {
		return unread(fmt.Errorf("the steps of future %s can't be read: %w", f.ID, err))
	}
	l.earlier, l.last, l.loaded = all, all.Last, true
	return nil
}

// unread is the error of an attempt whose steps can't be read. Damaged ones do not mend, and a
// worker of another version may read what this one can't.
func unread(err error) error {
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound), errors.Is(err, layout.ErrBadRecord):
		return Permanent(err)
	case layout.IsUnreadable(err):
		return err
	default:
		return unrecordedError{err}
	}
}

func (l *stepLog) value(ctx context.Context, step string, record *steps.Record) ([]byte, error) {
	id := l.job.future.ID
	if record.ValueRef == nil && len(record.Value) == 0 && record.Size > 0 {
		whole, err := l.rooms().Reload(ctx, id, step)
		if err != nil {
			return nil, err
		}
		return whole.Value, nil
	}
	return l.rooms().Value(ctx, id, record)
}

func (l *stepLog) rooms() *steps.Steps { return steps.Of(l.job.membership.worker.cluster) }

// Record implements taskcontext.Steps.
func (l *stepLog) Record(ctx context.Context, step string, of taskcontext.RecordedStep) error {
	j := l.job
	f, size := &j.future, len(of.Value)
	record := steps.Record{Token: f.Token, Attempt: f.Attempt(), Codec: of.Codec, Value: of.Value, Size: int64(size),
		StartedAt: layout.Millis(of.Started), At: layout.Millis(l.Now())}
	if !of.Wake.IsZero() {
		record.Wake = layout.Millis(of.Wake.Add(time.Millisecond - 1)) // never too early
	}
	if size > layout.MaxPut {
		return Permanent(fmt.Errorf("step %s of future %s returned %d bytes: at most %d; store the data elsewhere and "+
			"return where", step, f.ID, size, layout.MaxPut))
	}
	if size > steps.MaxInline {
		ref, err := l.rooms().Store(ctx, f.ID, f.Token, step, of.Value)
		if err != nil {
			return unrecordedError{fmt.Errorf("step %s of future %s is not recorded: %w", step, f.ID, err)}
		}
		record.Value, record.ValueRef = nil, &ref
	}
	number, first, err := l.number()
	if err != nil {
		return err
	}
	record.Number = number
	e := steps.Entry{Future: f, Name: step, Record: record, First: first, Ended: j.settled.Load}
	// Others use the slot meanwhile, and their steps join the commit. That of a module stays: the runner may have no
	// place for another one before this one has ended.
	if !j.membership.worker.manual() && !isModule(f.Spec.Function) {
		defer j.membership.worker.slots.await(ctx, j, nil, nil)()
	}
	version, err := j.membership.stepWrites.write(ctx, e)
	if err != nil {
		return unrecordedError{fmt.Errorf("step %s of future %s: %w", step, f.ID, err)}
	}
	j.prove()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(step, record, version)
	return nil
}

// number gives a step its number.
func (l *stepLog) number() (n int, first bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.full(); err != nil {
		return 0, false, err
	}
	l.last++
	return l.last, !l.some && !l.job.future.Steps, nil
}

// full returns an error if no further step may be recorded. It is called under mu, before the code of a
// step has effects and again when it has returned, because others may have taken the last number.
func (l *stepLog) full() error {
	if l.last < steps.Max {
		return nil
	}
	return Permanent(fmt.Errorf("future %s has %d steps, the most that it may have: submit a future for "+
		"each part of its work", l.job.future.ID, steps.Max))
}

// SleepUntil implements taskcontext.Steps. An attempt that began before its sleep was over, for a janitor whose clock
// is ahead, waits a while here: it would be begun again at once.
func (l *stepLog) SleepUntil(ctx context.Context, t time.Time) error {
	w := l.job.membership.worker
	early := l.slept(t)
	for left := t.Sub(w.cluster.Now()); ; left = t.Sub(w.cluster.Now()) {
		if left <= 0 {
			return nil
		}
		if w.manual() || left > shortSleep && !early {
			break
		}
		early = false
		if err := l.Pause(ctx, min(left, shortSleep)); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake.IsZero() || t.Before(l.wake) {
		l.wake = t
	}
	return l.asleep()
}

// slept reports whether an earlier attempt slept until a time.
func (l *stepLog) slept(until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, step := range l.earlier.Steps {
		if step.Wake != 0 && step.Wake == layout.Millis(until) {
			return true
		}
	}
	return false
}

// asleep is the error that ends an attempt until the first sleep of it is over. It is called
// under mu.
func (l *stepLog) asleep() error {
	return snoozeError{max(l.wake.Sub(l.job.membership.worker.cluster.Now()), 0)}
}

// Now implements taskcontext.Steps.
func (l *stepLog) Now() time.Time { return l.job.membership.worker.cluster.Now() }

// Pause implements taskcontext.Steps.
func (l *stepLog) Pause(ctx context.Context, d time.Duration) error {
	w := l.job.membership.worker
	if w.manual() { // nothing moves its clock meanwhile
		return context.Cause(ctx)
	}
	defer l.job.await(ctx, nil, nil)()
	if err := clock.Sleep(ctx, w.cluster.Clock(), d); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Timeout implements taskcontext.Steps.
func (l *stepLog) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, l.job.membership.worker.cluster.Clock(), d)
}

// mind has an attempt whose function sleeps end as a snooze, whatever the function makes of the
// error that it was given: its result would come before the sleep is over. A permanent
// failure and a panic count.
func (j *job) mind(err error) error {
	l := j.stepsSoFar()
	if l == nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var panicked *panicError
	var permanent interface{ Permanent() bool }
	if l.wake.IsZero() || errors.As(err, &panicked) || errors.As(err, &permanent) && permanent.Permanent() {
		return err
	}
	if err == nil {
		j.membership.worker.rare.Warn("a function went on although it sleeps, and what it returned is discarded: have it "+
			"return the error of Sleep", "future", j.future.ID, "function", j.function())
	}
	return l.asleep()
}

// stepsSeen is the highest version of a commit of a step of the attempt, zero if it has none. The end of the
// attempt reads at it or later: the first step changes a record that the end reads.
func (j *job) stepsSeen() kv.Version {
	l := j.stepsSoFar()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// noteUnused has the end of an attempt with a result say which recorded steps it did not ask for.
func (j *job) noteUnused(write func(names []string, all bool)) {
	l := j.stepsSoFar()
	if l == nil {
		if j.future.Steps {
			write(nil, true)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded {
		if j.future.Steps {
			write(nil, true)
		}
		return
	}
	var names []string
	for name := range l.earlier.Steps {
		if !l.used[name] {
			names = append(names, name)
		}
	}
	if len(names) > 0 || l.earlier.Unused {
		write(names, false)
	}
}
