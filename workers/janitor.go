package workers

import (
	"bytes"
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Intervals of a janitor.
const (
	promoteEvery = 200 * time.Millisecond
	sweepEvery   = 10 * time.Second
	expireEvery  = time.Second
	// batchesPerStep bounds what one step does of one kind in one shard.
	batchesPerStep = 64
	// A session is dropped when it stood still for so many dead-after times,
	// and for a minute at least.
	sessionDeaths   = 12
	sessionDeathMin = time.Minute
)

// observer sees what stands still. It trusts no clock but that of the times
// that it is given.
type observer[K comparable] struct {
	seen map[K]sighting
}

type sighting struct {
	value []byte
	since time.Time
}

// still takes note of key's value and returns for how long it has not changed.
func (o *observer[K]) still(key K, value []byte, now time.Time) time.Duration {
	if o.seen == nil {
		o.seen = map[K]sighting{}
	}
	s, known := o.seen[key]
	if !known || !bytes.Equal(s.value, value) {
		o.seen[key] = sighting{value: value, since: now}
		return 0
	}
	return now.Sub(s.since)
}

// keep forgets what is not in present.
func (o *observer[K]) keep(present map[K]bool) {
	for k := range o.seen {
		if !present[k] {
			delete(o.seen, k)
		}
	}
}

// janitor keeps the cluster clean, if it is this worker's turn: it takes back
// what the dead hold, makes delayed futures ready, removes what has outlived
// its retention, and sweeps what nobody refers to.
type janitor struct {
	worker  *Worker
	cluster *fdbmodel.Cluster
	id      fdbmodel.WorkerID

	held  bool
	count int64
	role  observer[fdbmodel.WorkerID]
	beats observer[fdbmodel.WorkerID]
	mail  observer[fdbmodel.SessionID]

	roleAt, reapAt, promoteAt, expireAt, sweepAt time.Time
	sweepShard                                   int
	sweepCursor                                  []byte
}

func newJanitor(w *Worker, id fdbmodel.WorkerID) *janitor {
	return &janitor{worker: w, cluster: w.cluster, id: id}
}

func (j *janitor) loop(ctx context.Context) {
	clk := j.cluster.Clock()
	for ctx.Err() == nil {
		next := j.step(ctx, clk.Now())
		timer := clk.At(next)
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
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
		j.note("sweep", j.sweep(ctx, now))
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
	if err != nil && !j.worker.vanished() {
		j.worker.options.Logger.Warn("janitor: "+what+" is retried", "error", err)
	}
}

// takeRole keeps the role, or takes it from one that stands still.
func (j *janitor) takeRole(ctx context.Context, now time.Time) error {
	record, worker, err := j.cluster.LookJanitor(ctx)
	if err != nil {
		j.held = false
		return err
	}
	mine := record == nil || worker == j.id
	if !mine && j.role.still("", record, now) < j.cluster.Config().DeadAfter {
		j.held = false
		return nil
	}
	j.count++
	_, j.held, err = j.cluster.HoldJanitor(ctx, j.id, record, j.count)
	return err
}

// reap takes back what dead workers hold.
func (j *janitor) reap(ctx context.Context, now time.Time) error {
	members, err := j.cluster.Workers(ctx)
	if err != nil {
		return err
	}
	present := map[fdbmodel.WorkerID]bool{}
	for i := range members {
		m := &members[i]
		present[m.ID] = true
		if m.Alive && j.beats.still(m.ID, m.Beat, now) < j.cluster.Config().DeadAfter {
			continue
		}
		if m.Alive {
			dead, err := j.cluster.DeclareDead(ctx, m.ID, m.Beat)
			if err != nil {
				j.note("declare dead", err)
				continue
			}
			if !dead {
				continue
			}
			j.worker.options.Logger.Warn("a worker is dead", "worker", m.ID, "address", m.Address)
		}
		n, err := j.cluster.ReapClaims(ctx, m.ID)
		j.worker.stats.reaped.Add(int64(n))
		if err != nil {
			j.note("reap claims", err)
		}
	}
	j.beats.keep(present)
	return nil
}

// promote makes ready what is due, and returns when the next is.
func (j *janitor) promote(ctx context.Context) (first time.Time, err error) {
	for shard := range j.cluster.Config().Shards {
		for range batchesPerStep {
			n, next, err := j.cluster.PromoteDue(ctx, shard)
			if err != nil {
				return first, err
			}
			if !next.IsZero() && (first.IsZero() || next.Before(first)) {
				first = next
			}
			if n == 0 || next.IsZero() || next.After(j.cluster.Now()) {
				break
			}
		}
	}
	return first, nil
}

func (j *janitor) expire(ctx context.Context) error {
	for shard := range j.cluster.Config().Shards {
		for range batchesPerStep {
			_, progress, _, err := j.cluster.ExpireDone(ctx, shard)
			if err != nil {
				return err
			}
			if !progress {
				break
			}
		}
	}
	return nil
}

// sweep looks at some of the chunks, and at the sessions.
func (j *janitor) sweep(ctx context.Context, now time.Time) error {
	for range batchesPerStep {
		next, _, err := j.cluster.SweepChunks(ctx, j.sweepShard, j.sweepCursor)
		if err != nil {
			return err
		}
		if j.sweepCursor = next; next != nil {
			continue
		}
		if j.sweepShard = (j.sweepShard + 1) % j.cluster.Config().Shards; j.sweepShard == 0 {
			break
		}
	}
	sessions, err := j.cluster.Sessions(ctx)
	if err != nil {
		return err
	}
	limit := max(sessionDeaths*j.cluster.Config().DeadAfter, sessionDeathMin)
	present := map[fdbmodel.SessionID]bool{}
	for id, record := range sessions {
		present[id] = true
		if j.mail.still(id, record, now) >= limit {
			if err := j.cluster.DropSession(ctx, id); err != nil {
				return err
			}
		}
	}
	j.mail.keep(present)
	return nil
}
