package workers

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/fdbmodel/names"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/internal/clock"
)

// Intervals of a janitor.
const (
	promoteEvery       = 200 * time.Millisecond
	sweepEvery         = 10 * time.Second
	foldEvery          = time.Hour
	foldAfter          = time.Minute // since a janitor began
	countEvery         = time.Minute
	expireEvery        = time.Second
	pacesEvery         = time.Minute
	resolveEvery       = time.Second
	unschedulableEvery = 10 * time.Second // or a quarter of the time after which they end
	replaceEvery       = 2 * time.Second
	measureEvery       = 2 * time.Second
	schedulesEvery     = time.Second
	overdueEvery       = time.Second
	// sweepsPerRun is the maximum number of futures whose chunks one run examines.
	sweepsPerRun = 64
	// A session is dropped when its heartbeat has been unchanged for this many
	// dead-after times, and for at least a minute.
	sessionDeaths   = 12
	sessionDeathMin = time.Minute
	// A duty that fails again in the same way is logged again after this time.
	logAgainAfter = time.Minute
)

// janitor keeps the cluster clean, if it is this worker's turn: it takes back
// futures of dead workers, makes delayed futures ready, removes futures whose
// retention has passed, resolves dependencies, finds workers again for
// those that must be near an object, fires schedules, ends what no worker can run, and
// sweeps unreferenced chunks.
type janitor struct {
	janitorHost
	maintain maintenance.Janitor
	id       layout.WorkerID
	opening  string // of a store that only this process can reach
	broken   error  // why the store won't come back within this process

	keepRole duty
	measure  duty   // with and without the role: others may be unable to
	duties   []duty // while it has the role

	held  bool
	count int64
	role  observer[layout.WorkerID]
	beats observer[layout.WorkerID]
	mail  observer[layout.SessionID]

	unschedulable fit.Unschedulable
	unplaceable   results.UnplaceableWalk
	schedules     schedule.Walk
	activity      activity.Keeper

	sweepShard  int
	sweepCursor []byte
}

// janitorHost is what a janitor has from whoever runs it.
type janitorHost struct {
	cluster *fdbmodel.Cluster
	logger  *slog.Logger
	freeze  *freeze
	gone    func() bool // it may not say anything any more
	reaped  func(n int) // futures that were taken back
}

// duty is something that a janitor does again and again.
type duty struct {
	name  string
	every time.Duration
	run   run
	at    time.Time // when it is due

	failed   string // how it failed when that was logged last
	loggedAt time.Time
}

// run is one run of a duty. It returns when the next one should be: at the
// latest, and with the zero time, that is after the duty's interval. An error is
// logged, and the next run tries again.
type run func(ctx context.Context, now time.Time) (next time.Time, err error)

// newJanitor returns the janitor of a worker.
func newJanitor(w *Worker, id layout.WorkerID) *janitor {
	return janitorOf(janitorHost{
		cluster: w.cluster, logger: w.options.Logger, freeze: &w.freeze, gone: w.vanished,
		reaped: func(n int) { w.stats.reaped.Add(int64(n)) },
	}, id)
}

func janitorOf(host janitorHost, id layout.WorkerID) *janitor {
	cluster, config := host.cluster, host.cluster.Config()
	j := &janitor{janitorHost: host, id: id, maintain: maintenance.Of(cluster)}
	if traits := kv.TraitsOf(cluster.Database()); traits.Exclusive {
		j.opening = traits.Opening
	}
	j.role.gap, j.beats.gap, j.mail.gap = config.DeadAfter/2, config.DeadAfter/2, 2*sweepEvery
	j.keepRole = duty{name: "the janitor's role", every: config.Heartbeat, run: atIntervals(j.takeRole)}
	j.measure = duty{name: "measuring of the store", every: config.Heartbeat,
		run: atIntervals(func(ctx context.Context, _ time.Time) error { return quota.Of(cluster).WriteUsage(ctx) })}
	j.duties = []duty{
		{name: "reap", every: config.Heartbeat, run: atIntervals(j.reap)},
		{name: "promote", every: promoteEvery, run: inBatches(j.maintain.PromoteDue)},
		{name: "admission to lanes", every: promoteEvery, run: inBatches(lanes.Of(cluster).AdmitDue)},
		{name: "sweep of lanes", every: sweepEvery, run: atIntervals(j.sweepLanes)},
		{name: "resolution of dependencies", every: resolveEvery, run: j.resolveEdges},
		{name: "search for workers that have inputs", every: replaceEvery, run: inBatches(j.replaceUnplaceable)},
		{name: "end of what is overdue", every: overdueEvery, run: inBatches(j.maintain.EndOverdue)},
		{name: "schedules", every: schedulesEvery, run: inBatches(j.fireSchedules)},
		{name: "expire", every: expireEvery, run: inBatches(j.maintain.ExpireDone)},
		{name: "freeing of unique names", every: sweepEvery, run: inBatches(names.Of(cluster).Free)},
		{name: "folding of metered use", every: foldEvery, run: atIntervals(j.foldMetered),
			at: cluster.Clock().Now().Add(foldAfter)},
		{name: "record of activity", every: countEvery, run: j.keepActivity, at: cluster.Clock().Now().Add(countEvery)},
		{name: "sweep of chunks", every: sweepEvery, run: atIntervals(j.sweepChunks)},
		{name: "sweep of paces", every: pacesEvery, run: atIntervals(func(ctx context.Context, _ time.Time) error {
			_, err := quota.Of(cluster).SweepPaces(ctx)
			return err
		})},
		{name: "sweep of sessions", every: sweepEvery, run: atIntervals(j.sweepSessions)},
	}
	if after := config.InfeasibleAfter; after > 0 {
		j.duties = append(j.duties, duty{
			name: "end of what no worker can run", every: min(unschedulableEvery, after/4), run: inBatches(j.endInfeasible),
		})
	}
	return j
}

func (j *janitor) endInfeasible(ctx context.Context) (int, time.Time, error) {
	return fit.EndInfeasible(ctx, j.cluster, &j.unschedulable)
}

func (j *janitor) replaceUnplaceable(ctx context.Context) (int, time.Time, error) {
	return results.Of(j.cluster).ReplaceUnplaceable(ctx, &j.unplaceable)
}

func (j *janitor) fireSchedules(ctx context.Context) (int, time.Time, error) {
	return schedule.Of(j.cluster).Fire(ctx, &j.schedules)
}

// atIntervals is for a duty that has no other wish.
func atIntervals(act func(context.Context, time.Time) error) run {
	return func(ctx context.Context, now time.Time) (time.Time, error) { return time.Time{}, act(ctx, now) }
}

// inBatches is for a duty that is done a batch at a time: batch returns when the
// next one should be, not after the present time if there may be more to do.
func inBatches(batch func(context.Context) (n int, next time.Time, err error)) run {
	return func(ctx context.Context, _ time.Time) (time.Time, error) {
		_, next, err := batch(ctx)
		return next, err
	}
}

// loop returns when ctx ends, or with an error of the store if that won't come back
// within this process.
func (j *janitor) loop(ctx context.Context) error {
	clk := j.cluster.Clock()
	for j.freeze.wait(ctx) == nil && ctx.Err() == nil {
		next := j.step(ctx, clk.Now())
		if j.broken != nil {
			return j.broken
		}
		_ = clock.Wait(ctx, clk, next)
	}
	return nil
}

// step does what is due and returns when the next is.
func (j *janitor) step(ctx context.Context, now time.Time) time.Time {
	next := j.perform(ctx, &j.keepRole, now)
	if at := j.perform(ctx, &j.measure, now); at.Before(next) {
		next = at
	}
	for i := range j.duties {
		if !j.held {
			break
		}
		if at := j.perform(ctx, &j.duties[i], now); at.Before(next) {
			next = at
		}
	}
	return next
}

// perform runs a duty if it is due, and returns when it is due next.
func (j *janitor) perform(ctx context.Context, d *duty, now time.Time) time.Time {
	if now.Before(d.at) {
		return d.at
	}
	next, err := d.run(ctx, now)
	if isFatal(err) {
		j.broken = err
	}
	if err != nil && !errors.Is(err, context.Canceled) && !j.gone() &&
		(kindOfFailure(err) != d.failed || now.Sub(d.loggedAt) >= logAgainAfter) {
		d.failed, d.loggedAt = kindOfFailure(err), now
		j.logger.Warn("janitor: "+d.name+" failed; retrying", "error", err)
	}
	if d.at = now.Add(d.every); err == nil && !next.IsZero() && next.Before(d.at) {
		// next may come from a record, and so change its distance when the clock is
		// set. What is added to now keeps it.
		d.at = now.Add(next.Sub(now))
	}
	return d.at
}

// kindOfFailure is what failures of a duty have in common that are logged once a minute. Those of a full disk name
// another file each.
func kindOfFailure(err error) string {
	if errors.Is(err, kv.ErrReadOnly) {
		return kv.ErrReadOnly.Error()
	}
	return err.Error()
}

// takeRole keeps the role, or takes it from a janitor whose heartbeat is
// unchanged.
func (j *janitor) takeRole(ctx context.Context, now time.Time) error {
	record, worker, at, known := j.maintain.Seen(2 * j.cluster.Config().Heartbeat)
	if !known {
		var err error
		if record, worker, err = j.maintain.Present(ctx); err != nil {
			j.held = false
			return err
		}
		at = now
	}
	mine := record == nil || worker == j.id
	if !mine && j.role.look("", record, at) < j.cluster.Config().DeadAfter && !j.maintain.IsGone(record) {
		j.held = false
		return nil
	}
	j.count++
	var err error
	_, j.held, err = j.maintain.Acquire(ctx, j.id, record, j.count)
	return err
}

// reap takes back the futures of dead workers. A failure with one worker does
// not affect the others.
func (j *janitor) reap(ctx context.Context, now time.Time) error {
	members, err := j.cluster.Workers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	present := map[layout.WorkerID]bool{}
	for i := range members {
		m := &members[i]
		present[m.ID] = true
		if m.Alive && !j.isDead(m, now) {
			continue
		}
		errs = append(errs, j.reapWorker(ctx, m))
	}
	j.beats.keep(present)
	return errors.Join(errs...)
}

// isDead reports whether a member is dead: its heartbeat is unchanged, or it was
// part of the process that had the store open before, if only one process can
// open it. A worker with a connection outlives that process.
func (j *janitor) isDead(m *fdbmodel.Member, now time.Time) bool {
	still := j.beats.look(m.ID, m.Beat, now)
	return still >= j.cluster.Config().DeadAfter || m.Opening != j.opening && j.opening != "" && m.Connection == ""
}

func (j *janitor) reapWorker(ctx context.Context, m *fdbmodel.Member) error {
	if m.Alive {
		dead, err := j.cluster.DeclareDead(ctx, m.ID, m.Beat)
		if err != nil || !dead {
			return err
		}
		j.logger.Warn("declared a worker dead", "worker", m.ID, "address", m.Address)
	}
	n, err := j.cluster.ReapClaims(ctx, m.ID)
	j.reaped(n)
	return err
}

// resolveEdges resolves the dependencies that processes have left after ends of futures.
func (j *janitor) resolveEdges(ctx context.Context, now time.Time) (next time.Time, err error) {
	if _, more, err := j.cluster.ResolveEdges(ctx); err != nil || !more {
		return time.Time{}, err
	}
	return now, nil
}

// sweepLanes goes on where a process that changed the settings of lanes has died.
func (j *janitor) sweepLanes(ctx context.Context, _ time.Time) error {
	return lanes.Of(j.cluster).Sweep(ctx)
}

// foldMetered keeps what was used in few records.
func (j *janitor) foldMetered(ctx context.Context, _ time.Time) error {
	return metering.Fold(ctx, j.cluster)
}

// keepActivity counts futures once a minute, and keeps what happened in few records.
func (j *janitor) keepActivity(ctx context.Context, _ time.Time) (time.Time, error) {
	return j.activity.Keep(ctx, j.cluster)
}

// sweepChunks looks at some of the chunks, one shard after the other.
func (j *janitor) sweepChunks(ctx context.Context, _ time.Time) error {
	var errs []error
	for range sweepsPerRun {
		next, _, err := j.maintain.SweepChunks(ctx, j.sweepShard, j.sweepCursor)
		if err != nil {
			errs = append(errs, err)
			next = nil
		}
		if j.sweepCursor = next; next != nil {
			continue
		}
		if j.sweepShard = (j.sweepShard + 1) % j.cluster.Config().Shards; j.sweepShard == 0 {
			break
		}
	}
	return errors.Join(errs...)
}

// sweepSessions drops the mail of clients that are gone.
func (j *janitor) sweepSessions(ctx context.Context, now time.Time) error {
	sessions, err := j.maintain.Sessions(ctx)
	if err != nil {
		return err
	}
	var errs []error
	limit := max(sessionDeaths*j.cluster.Config().DeadAfter, sessionDeathMin)
	present := map[layout.SessionID]bool{}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		present[id] = true
		if j.mail.look(id, sessions[id], now) >= limit {
			errs = append(errs, j.maintain.DropSession(ctx, id))
		}
	}
	j.mail.keep(present)
	return errors.Join(errs...)
}
