package workers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// Intervals of a janitor.
const (
	promoteEvery = 200 * time.Millisecond
	sweepEvery   = 10 * time.Second
	expireEvery  = time.Second
	// batchesPerStep bounds what one step does of one kind in one shard.
	batchesPerStep = 64
	// A session is dropped when its heartbeat has been unchanged for this many
	// dead-after times, and for at least a minute.
	sessionDeaths   = 12
	sessionDeathMin = time.Minute
)

// janitor keeps the cluster clean, if it is this worker's turn: it takes back
// futures of dead workers, makes delayed futures ready, removes futures whose
// retention has passed, and sweeps unreferenced chunks.
type janitor struct {
	worker  *Worker
	cluster *fdbmodel.Cluster
	id      layout.WorkerID
	opening string // of a store that only this process can reach

	held  bool
	count int64
	role  observer[layout.WorkerID]
	beats observer[layout.WorkerID]
	mail  observer[layout.SessionID]

	roleAt, reapAt, promoteAt, expireAt, sweepAt time.Time
	sweepShard                                   int
	sweepCursor                                  []byte
}

func newJanitor(w *Worker, id layout.WorkerID) *janitor {
	dead := w.cluster.Config().DeadAfter
	j := &janitor{worker: w, cluster: w.cluster, id: id}
	if traits := kv.TraitsOf(w.cluster.Database()); traits.Exclusive {
		j.opening = traits.Opening
	}
	j.role.gap, j.beats.gap, j.mail.gap = dead/2, dead/2, 2*sweepEvery
	return j
}

func (j *janitor) loop(ctx context.Context) {
	clk := j.cluster.Clock()
	for j.worker.gate.pass(ctx) == nil && ctx.Err() == nil {
		_ = clock.Wait(ctx, clk, j.step(ctx, clk.Now()))
	}
}

// step does what is due and returns when the next is.
func (j *janitor) step(ctx context.Context, now time.Time) time.Time {
	config := j.cluster.Config()
	if !now.Before(j.roleAt) {
		j.roleAt = now.Add(config.Heartbeat)
		j.note("the janitor's role", j.takeRole(ctx, now))
	}
	if !j.held {
		return j.roleAt
	}
	if !now.Before(j.reapAt) {
		j.reapAt = now.Add(config.Heartbeat)
		j.note("reap", j.reap(ctx, now))
	}
	if !now.Before(j.promoteAt) {
		next, err := j.promote(ctx)
		j.note("promote", err)
		j.promoteAt = now.Add(promoteEvery)
		if !next.IsZero() && next.Before(j.promoteAt) {
			j.promoteAt = next
		}
	}
	if !now.Before(j.expireAt) {
		j.expireAt = now.Add(expireEvery)
		j.note("expire", j.expire(ctx))
	}
	if !now.Before(j.sweepAt) {
		j.sweepAt = now.Add(sweepEvery)
		j.note("sweep of chunks", j.sweepChunks(ctx))
		j.note("sweep of sessions", j.sweepSessions(ctx, now))
	}
	next := j.roleAt
	for _, t := range []time.Time{j.reapAt, j.promoteAt, j.expireAt, j.sweepAt} {
		if t.Before(next) {
			next = t
		}
	}
	return next
}

// note logs what failed; the next step tries again.
func (j *janitor) note(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !j.worker.vanished() {
		j.worker.options.Logger.Warn("janitor: "+what+" is retried", "error", err)
	}
}

// takeRole keeps the role, or takes it from a janitor whose heartbeat is
// unchanged.
func (j *janitor) takeRole(ctx context.Context, now time.Time) error {
	record, worker, err := j.cluster.LookJanitor(ctx)
	if err != nil {
		j.held = false
		return err
	}
	mine := record == nil || worker == j.id
	if !mine && j.role.look("", record, now) < j.cluster.Config().DeadAfter {
		j.held = false
		return nil
	}
	j.count++
	_, j.held, err = j.cluster.HoldJanitor(ctx, j.id, record, j.count)
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
		errs = append(errs, j.bury(ctx, m))
	}
	j.beats.keep(present)
	return errors.Join(errs...)
}

// isDead reports whether a member is dead: its heartbeat is unchanged, or it
// belongs to another opening of a store that only one process can open.
func (j *janitor) isDead(m *fdbmodel.Member, now time.Time) bool {
	still := j.beats.look(m.ID, m.Beat, now)
	return still >= j.cluster.Config().DeadAfter || m.Opening != j.opening && j.opening != ""
}

func (j *janitor) bury(ctx context.Context, m *fdbmodel.Member) error {
	if m.Alive {
		dead, err := j.cluster.DeclareDead(ctx, m.ID, m.Beat)
		if err != nil || !dead {
			return err
		}
		j.worker.options.Logger.Warn("a worker is dead", "worker", m.ID, "address", m.Address)
	}
	n, err := j.cluster.ReapClaims(ctx, m.ID)
	j.worker.stats.reaped.Add(int64(n))
	return err
}

// promote makes due futures ready, and returns when the next is due. A failure
// in one shard does not affect the others.
func (j *janitor) promote(ctx context.Context) (first time.Time, err error) {
	var errs []error
	for shard := range j.cluster.Config().Shards {
		var next time.Time
		for range batchesPerStep {
			var n int
			if n, next, err = j.cluster.PromoteDue(ctx, shard); err != nil {
				errs = append(errs, err)
				break
			}
			if n == 0 || next.IsZero() || next.After(j.cluster.Now()) {
				break
			}
		}
		if err == nil && !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first, errors.Join(errs...)
}

func (j *janitor) expire(ctx context.Context) error {
	var errs []error
	for shard := range j.cluster.Config().Shards {
		for range batchesPerStep {
			_, progress, _, err := j.cluster.ExpireDone(ctx, shard)
			if err != nil {
				errs = append(errs, err)
			}
			if err != nil || !progress {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// sweepChunks looks at some of the chunks, one shard after the other.
func (j *janitor) sweepChunks(ctx context.Context) error {
	var errs []error
	for range batchesPerStep {
		next, _, err := j.cluster.SweepChunks(ctx, j.sweepShard, j.sweepCursor)
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
	sessions, err := j.cluster.Sessions(ctx)
	if err != nil {
		return err
	}
	var errs []error
	limit := max(sessionDeaths*j.cluster.Config().DeadAfter, sessionDeathMin)
	present := map[layout.SessionID]bool{}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		present[id] = true
		if j.mail.look(id, sessions[id], now) >= limit {
			errs = append(errs, j.cluster.DropSession(ctx, id))
		}
	}
	j.mail.keep(present)
	return errors.Join(errs...)
}
