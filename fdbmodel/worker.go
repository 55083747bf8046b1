package fdbmodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/avoid"
	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/member"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Registration is one start of a worker. Its methods are safe for concurrent
// use, except Claim, which runs in one goroutine at a time.
type Registration struct {
	cluster    *Cluster
	info       layout.WorkerInfo
	labels     layout.LabelSet
	avoided    avoid.List
	scan       claim.Scanner
	wakes      *notify.Worker
	unresolved []int64             // claims that ended with an error; used by Claim only
	entered    []layout.ReadyEntry // by the last attempt of a claim in the claim cache; used by Claim only
	idle       int                 // workers in the ring when Poll counted them, up to a bound
	alike      int                 // those of them that can run all that this one can
	polls      int                 // calls of Poll
	polled     int                 // shard of the next one
	sharers    float64             // as SharePolls says
	claims     int                 // calls of Claim that came to look; used by Claim only

	metered meter.Meter
	held    claim.Batches

	mu       sync.Mutex
	sequence int64
	lost     []layout.ID // futures whose claims were gone when they ended
	doubted  []int64     // claims of members and of successors that ended with an error
	beats    int64
	refused  refusals
}

// Register makes a worker a member of the cluster. info.ID is drawn if it is
// empty. If info has an address, the previous worker at that address is
// declared dead and its futures are taken back before Register returns. The
// same holds for workers of the process that had a store open before, if only
// one process can open it. It returns ErrBadWorker for an invalid info. An unknown commit is
// retried and harmless: the id is this start's own.
func (c *Cluster) Register(ctx context.Context, info layout.WorkerInfo) (*Registration, error) {
	if err := c.checkInfo(&info); err != nil {
		return nil, err
	}
	if err := c.reapEarlierOpenings(ctx); err != nil {
		return nil, err
	}
	var before layout.WorkerID
	var paused *pause.Seen
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-register"}, func(tx kv.Attempt) (err error) {
		if paused, err = pause.Ask(tx, pause.Keys(c.keys)).Wait(ctx); err != nil {
			return err
		}
		// The worker that an earlier attempt found at the address is kept: the
		// attempt may have committed.
		if !tx.MaybeCommitted {
			before = ""
		}
		if info.Address != "" {
			value, err := tx.Get(c.keys.Address(info.Address)).Wait(ctx)
			if err != nil {
				return err
			}
			if w := layout.WorkerID(value); w != "" && w != info.ID {
				before = w
			}
			tx.Set(c.keys.Address(info.Address), []byte(info.ID))
		}
		if before != "" {
			if _, err := c.unregister(ctx, tx, before); err != nil {
				return err
			}
		}
		return c.writeMember(tx, &info)
	})
	if err != nil {
		return nil, fmt.Errorf("register worker %s: %w", info.ID, err)
	}
	c.learnPauses(paused)
	if before != "" {
		if _, err := c.ReapClaims(ctx, before); err != nil {
			return nil, fmt.Errorf("take over from worker %s at %s: %w", before, info.Address, err)
		}
	}
	r := &Registration{cluster: c, info: info, labels: info.LabelSet(),
		wakes: c.notifier.Open(info.ID, info.Queues)}
	r.scan, r.avoided = claim.NewScanner(c.keys, c.random.Intn), avoid.NewList(c, c.random.Intn, info.ID, r.name())
	return r, nil
}

func (c *Cluster) checkInfo(info *layout.WorkerInfo) error {
	if info.ID == "" {
		id, err := c.DrawWorkerID()
		if err != nil {
			return err
		}
		info.ID = id
	}
	if err := info.CheckQueues(); err != nil {
		return err
	}
	r := info.Capacity
	if r.Slots < 1 || r.CPU < 0 || r.RAM < 0 || r.GPU < 0 {
		return fmt.Errorf("%w: worker with %d slots, cpu %d, ram %d, gpu %d: it needs a slot and nothing negative",
			layout.ErrBadWorker, r.Slots, r.CPU, r.RAM, r.GPU)
	}
	info.StartedAt = layout.Millis(c.clock.Now())
	return info.CheckLabels()
}

// writeMember prevents the late twin of an attempt with an unknown result from
// restoring a worker that has left since.
func (c *Cluster) writeMember(tx kv.Tx, info *layout.WorkerInfo) error {
	tx.AddReadConflictKey(c.keys.Worker(info.ID, layout.WorkerAlive))
	// A new connection may lead to another opening.
	info.Opening, info.Connection = c.opening(), c.connection()
	beat := layout.Encode(&layout.Heartbeat{Free: info.Capacity, At: info.StartedAt})
	tx.Set(c.keys.Worker(info.ID, layout.WorkerAlive), layout.Encode(info))
	tx.Set(c.keys.Worker(info.ID, layout.WorkerHeartbeat), beat)
	return nil
}

// LeftUntil returns when the worker should look again for futures that it left to
// others, the zero time if it left none. It may have passed.
func (r *Registration) LeftUntil() time.Time { return r.avoided.Until() }

// ID returns the worker's id.
func (r *Registration) ID() layout.WorkerID { return r.info.ID }

// Info returns the info that the worker registered with.
func (r *Registration) Info() layout.WorkerInfo { return r.info }

// askAlive requests the fence, serializably: a reaper's clear makes the
// transaction conflict.
func (r *Registration) askAlive(tx kv.Reader) kv.Pending[[]byte] {
	return tx.Get(r.cluster.keys.Worker(r.info.ID, layout.WorkerAlive))
}

func (r *Registration) checkAlive(ctx context.Context, asked kv.Pending[[]byte]) error {
	value, err := asked.Wait(ctx)
	if err == nil && value == nil {
		err = r.reaped()
	}
	return err
}

func (r *Registration) reaped() error { return fmt.Errorf("worker %s: %w", r.info.ID, ErrReaped) }

// Cancels receives the futures of this worker that were cancelled within the
// same process. It may miss some; Heartbeat returns them all.
func (r *Registration) Cancels() <-chan layout.ID { return r.wakes.Cancels() }

// Leave ends the registration. Futures that the worker still holds, and those
// that wait for it alone, go back to the pool without counting as an attempt or
// a crash, and idle workers are woken for them; those that a newer version of Futura has written stay a dead
// worker's, until a process of that version reaps it. It returns nil for a
// worker that was reaped: it is alive after all, so futures that it held, and
// that have not ended, forget its death. An unknown commit is retried and
// harmless.
func (r *Registration) Leave(ctx context.Context) error {
	c := r.cluster
	r.wakes.Close()
	// In the ring it would take a hint that is for those that stay.
	if err := r.LeaveIdleRing(ctx); err != nil {
		return err
	}
	dropped, used := 0, r.metered.Unwritten(r.cluster.keys, &r.info, c.clock.Now())
	for {
		_, kept, err := c.endAllClaims(ctx, r.info.ID, state.EventRelinquish)
		if err != nil {
			return err
		}
		n, left, err := c.dropAssigned(ctx, r.info.ID, false)
		if err != nil {
			return err
		}
		dropped, kept = dropped+n, kept || left
		_, err = c.Transact(ctx, kv.Options{Tag: "futura-leave"}, func(tx kv.Attempt) error {
			if err := r.meterLast(ctx, tx, used); err != nil {
				return err
			}
			if kept {
				_, err := c.unregister(ctx, tx, r.info.ID)
				return err
			}
			return c.forget(ctx, tx, r.info)
		})
		// A claim that was not visible before is visible by now.
		if errors.Is(err, ErrTransition) {
			continue
		}
		if err != nil {
			return err
		}
		if dropped > 0 { // some may have to be near objects that others have
			if _, _, err := c.ResolveEdges(ctx); err != nil && !layout.IsUnreadable(err) {
				return err
			}
		}
		return r.reappear(ctx)
	}
}

// Meter adds what an attempt has used to what the worker has used today, by UTC. The next
// Heartbeat or Leave writes it; until then it is in memory alone.
func (r *Registration) Meter(use meter.Metered) {
	r.metered.Use(layout.Day(r.cluster.clock.Now()), &use)
}

// Count adds the end of an attempt, or of a future without one, to the activity of the present
// minute. The next Heartbeat or Leave writes it; until then it is in memory alone. What could
// not be written for ten minutes after its minute is forgotten.
func (r *Registration) Count(e meter.Ended) {
	r.metered.End(meter.MinuteOf(r.cluster.clock.Now()), &e)
}

// meterLast writes what the store does not have yet of a worker that leaves. What a worker
// has used that is no member any more is final.
func (r *Registration) meterLast(ctx context.Context, tx kv.Tx, used []meter.Record) error {
	if len(used) == 0 {
		return nil
	}
	alive, err := r.askAlive(tx).Wait(ctx)
	if err == nil && alive != nil {
		meter.Write(tx, used)
	}
	return err
}

// forget clears all keys of a worker. A claim batch that committed after the
// caller looked conflicts, because it wrote inside the range read here.
func (c *Cluster) forget(ctx context.Context, tx kv.Tx, info layout.WorkerInfo) error {
	claims := kv.Prefix(c.keys.Worker(info.ID, layout.WorkerClaims))
	page, err := tx.GetRange(claims, kv.RangeOptions{Limit: 1}).Wait(ctx)
	if err != nil {
		return err
	}
	if len(page.Items) > 0 {
		return fmt.Errorf("worker %s: %w: it still holds claims", info.ID, ErrTransition)
	}
	waits := kv.Prefix(c.keys.AssignedTo(info.ID))
	if page, err = tx.GetRange(waits, kv.RangeOptions{Limit: 1}).Wait(ctx); err != nil {
		return err
	}
	if len(page.Items) > 0 {
		return fmt.Errorf("worker %s: %w: futures still wait for it", info.ID, ErrTransition)
	}
	if info.Address != "" {
		owner, err := tx.Get(c.keys.Address(info.Address)).Wait(ctx)
		if err != nil {
			return err
		}
		if layout.WorkerID(owner) == info.ID {
			tx.Clear(c.keys.Address(info.Address))
		}
	}
	for _, q := range info.Queues {
		tx.Clear(c.keys.Idle(q, info.ID))
	}
	tx.ClearRange(kv.Prefix(c.keys.WorkerAll(info.ID)))
	return nil
}

// Member is a worker as the store knows it.
type Member = member.Member

// Registered returns the info of a worker, and ErrNotFound for one that is not
// registered, or not any more. It only reads.
func (c *Cluster) Registered(ctx context.Context, worker layout.WorkerID) (layout.WorkerInfo, error) {
	info := layout.WorkerInfo{ID: worker}
	key := c.keys.Worker(worker, layout.WorkerAlive)
	err := c.View(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("%w: worker %s", ErrNotFound, worker)
		}
		if err != nil {
			return err
		}
		return layout.Decode(key, value, &info)
	})
	return info, err
}

// Workers returns all workers, sorted by id, from pages at different versions.
func (c *Cluster) Workers(ctx context.Context) ([]Member, error) { return member.All(ctx, c) }

// DeclareDead clears a worker's fence if its heartbeat is still the one that
// was observed, and reports whether it did. The worker can change nothing
// afterwards; ReapClaims takes back what it holds. An unknown commit is retried
// and harmless.
func (c *Cluster) DeclareDead(ctx context.Context, worker layout.WorkerID, observed []byte) (bool, error) {
	var dead, was bool
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
		beat, err := tx.Get(c.keys.Worker(worker, layout.WorkerHeartbeat)).Wait(ctx)
		if err != nil {
			return err
		}
		// A missing heartbeat was cleared by another reaper, or by an attempt of
		// this one.
		dead = beat == nil || bytes.Equal(beat, observed)
		was = was && tx.MaybeCommitted
		if !dead || beat == nil {
			return nil
		}
		was = true
		_, err = c.unregister(ctx, tx, worker)
		return err
	})
	if err == nil && dead && was {
		c.deaths.Add(1)
	}
	return dead, err
}

// Deaths is how many workers DeclareDead and ForceReap have declared dead here, since the cluster
// was opened.
func (c *Cluster) Deaths() int64 { return c.deaths.Load() }

// unregister clears the keys that make a worker registered, and reports whether it was. Its claims
// stay for ReapClaims.
func (c *Cluster) unregister(ctx context.Context, tx kv.Tx, worker layout.WorkerID) (was bool, err error) {
	key := c.keys.Worker(worker, layout.WorkerAlive)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil {
		return false, err
	}
	if value != nil {
		var info layout.WorkerInfo
		if err := layout.Decode(key, value, &info); err != nil && !layout.IsUnreadable(err) {
			return false, err
		}
		for _, q := range info.Queues {
			tx.Clear(c.keys.Idle(q, worker))
		}
		if info.Address != "" {
			owner, err := tx.Get(c.keys.Address(info.Address)).Wait(ctx)
			if err != nil {
				return false, err
			}
			if layout.WorkerID(owner) == worker {
				tx.Clear(c.keys.Address(info.Address))
			}
		}
	}
	tx.Clear(key)
	tx.Clear(c.keys.Worker(worker, layout.WorkerHeartbeat))
	tx.Clear(c.keys.Worker(worker, layout.WorkerWake))
	return value != nil, nil
}
