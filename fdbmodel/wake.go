package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

const (
	// wakeLimit is the maximum number of workers that one submit wakes across
	// processes.
	wakeLimit = 16
	// ringPage is the number of idle workers examined together, and ringPages
	// the maximum number of pages while none fits.
	ringPage  = 4 * wakeLimit
	ringPages = 4
)

// Wake hints to idle workers that futures were submitted at version. Submit
// calls it; after SubmitTx and its commit, the caller must. It is best effort:
// a worker that misses it looks by itself within its poll interval.
func (c *Cluster) Wake(ctx context.Context, version kv.Version, submitted []Submitted) {
	var placed demands
	for i := range submitted {
		switch s := &submitted[i]; {
		case s.Existed || s.State != layout.Ready || s.held:
		case s.worker != "":
			c.hub.wakeWorker(s.worker)
		default:
			placed.add(s.spec)
		}
	}
	c.wakeFor(ctx, version, placed)
}

// wakeFor wakes workers that can run the futures that entered the pool at
// version, first within the process, then through the store.
func (c *Cluster) wakeFor(ctx context.Context, version kv.Version, placed demands) {
	for d, n := range placed {
		placed[d] = n - c.hub.wake(d, n)
	}
	if len(placed.queues()) > 0 {
		c.wakeRing(ctx, version, placed)
	}
}

// WakeRing wakes idle workers of other processes. A worker that went idle
// before version is seen here; one that went idle after that version read the
// ready ranges at a later version and saw the futures.
func (c *Cluster) wakeRing(ctx context.Context, version kv.Version, placed demands) {
	tx := c.db.Begin(kv.Options{Tag: "futura-wake"})
	defer tx.Cancel()
	if version != kv.NoVersion {
		tx.SetReadVersion(version)
	}
	woken := 0
	for queue := range placed.queues() {
		n, err := c.wakeSome(ctx, tx, queue, placed, wakeLimit-woken)
		if err != nil {
			return
		}
		if woken += n; woken == wakeLimit {
			break
		}
	}
	if woken > 0 {
		// A hint that fails costs one poll interval; its error is not the caller's.
		_, _ = tx.Commit(ctx)
	}
}

// wakeSome wakes up to limit workers in the ring of a queue that can run one of
// placed, and returns how many.
func (c *Cluster) wakeSome(ctx context.Context, tx kv.Tx, queue string, placed demands, limit int) (int, error) {
	value := layout.EncodeBell()
	prefix := c.keys.IdleQueue(queue)
	ring, woken := kv.Prefix(prefix), 0
	for pages := range ringPages {
		page, err := tx.Snapshot().GetRange(ring, kv.RangeOptions{Limit: ringPage}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return woken, err
		}
		first := 0
		if pages == 0 {
			first = c.random.intn(len(page.Items))
		}
		for i := range page.Items {
			item := page.Items[(first+i)%len(page.Items)]
			rest := tuple.NewReader(item.Key[len(prefix):])
			worker := layout.WorkerID(rest.Text())
			var idle layout.IdleRecord
			if rest.Err() != nil || layout.Decode(item.Key, item.Value, &idle) != nil ||
				!placed.take(queue, func(d demand) bool { return fitsIdle((&idle), d) }) {
				continue
			}
			tx.SetVersionstampedValue(c.keys.Worker(worker, layout.WorkerWake), value, layout.StampOffset)
			// A worker that is alive looks for work and returns to the ring. A
			// vanished one must not take a second hint from the others.
			tx.Clear(item.Key)
			if woken++; woken == limit {
				return woken, nil
			}
		}
		if _, wanted := placed.queues()[queue]; !wanted || !page.More {
			break
		}
		ring.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
	return woken, nil
}

// GoIdle writes the worker into the ring of idle workers, where submitters of
// other processes find it, if there is nothing to claim. It returns nil if
// there is, otherwise a watch that fires when the worker is woken, which the
// caller waits for or cancels. It returns ErrReaped if the worker was declared
// dead. An unknown commit is retried and harmless.
//
// Waking a worker removes it from the ring of the queue that has work: the
// worker looks for work, and calls GoIdle again if it finds none. A worker that
// claims for another reason calls LeaveIdle, or may be woken for nothing. A
// hint may be lost, so a worker in the ring also calls Glance periodically.
//
// The worker reads the ready ranges serializably, so a submit that it does not
// see makes it look again. The watch is in a writing transaction on purpose:
// its key is the worker's own, so only a wake can conflict with it.
func (r *Registration) GoIdle(ctx context.Context, req ClaimRequest) (kv.Watch, error) {
	if req.Runs == nil {
		req.Runs = r.info.Runs
	}
	var watch kv.Watch
	_, err := r.cluster.transact(ctx, kv.Options{Tag: "futura-idle", NoSync: true}, func(tx kv.Attempt) error {
		watch = nil
		alive := r.askAlive(tx)
		found, err := r.anyOf(ctx, tx, req, 0, r.cluster.config.Shards)
		if err != nil {
			return err
		}
		if err := r.checkAlive(ctx, alive); err != nil || found {
			return err
		}
		record := layout.Encode(idleRecordOf(&r.info, req.Free))
		for _, q := range r.info.Queues {
			tx.Set(r.cluster.keys.Idle(q, r.info.ID), record)
		}
		watch = tx.Watch(r.cluster.keys.Worker(r.info.ID, layout.WorkerWake))
		r.inRing = true
		return nil
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return watch, err
}

// glances is the number of calls of Glance that together cover all shards.
const glances = 4

// Glance reports whether there may be something to claim. It reads some of the
// shards: all of them within four calls, or in each call if few other workers
// are idle. A worker in the ring calls it periodically in case a hint was lost.
// It only reads.
func (r *Registration) Glance(ctx context.Context, req ClaimRequest) (found bool, err error) {
	if req.Runs == nil {
		req.Runs = r.info.Runs
	}
	shards := r.cluster.config.Shards
	n := max(shards/glances, shards/max(r.idle, 1), 1)
	err = r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		if r.glanced == 0 {
			if r.idle, err = r.countIdle(ctx, tx.Snapshot()); err != nil {
				return err
			}
		}
		found, err = r.anyOf(ctx, tx.Snapshot(), req, r.glanced, n)
		return err
	})
	r.glanced = (r.glanced + n) % shards
	return found, err
}

// countIdle counts the workers in the ring, up to the number of shards.
func (r *Registration) countIdle(ctx context.Context, tx kv.Reader) (int, error) {
	ring := kv.Prefix(r.cluster.keys.IdleQueue(r.info.Queues[0]))
	page, err := tx.GetRange(ring, kv.RangeOptions{Limit: r.cluster.config.Shards}).Wait(ctx)
	return len(page.Items), err
}

// LeaveIdle removes the worker from the ring if it is in it. A Claim that takes
// something has already done so. An unknown commit is harmless.
func (r *Registration) LeaveIdle(ctx context.Context) error {
	if !r.inRing {
		return nil
	}
	_, err := r.cluster.transact(ctx, kv.Options{Tag: "futura-idle", NoSync: true}, func(tx kv.Attempt) error {
		r.leaveRing(tx)
		return nil
	})
	r.inRing = r.inRing && err != nil
	return err
}

func (r *Registration) leaveRing(tx kv.Tx) {
	for _, q := range r.info.Queues {
		tx.Clear(r.cluster.keys.Idle(q, r.info.ID))
	}
}

// anyOf reports whether the worker could claim something, from n shards.
func (r *Registration) anyOf(ctx context.Context, tx kv.Reader, req ClaimRequest, first, n int) (bool, error) {
	const page = 16
	now, shards := r.cluster.clock.Now(), r.cluster.config.Shards
	var looks []asked
	mine := r.askOwn(tx, page)
	for i := range n {
		shard := (first + i) % shards
		for _, q := range r.info.Queues {
			prefix := r.scan.keys.ReadyQueue(shard, q)
			looks = append(looks, asked{
				shard: shard, want: want{queue: q, free: req.Free, runs: req.Runs, skip: req.Skip, page: page},
				from:    prefix,
				pending: tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: page}),
			})
		}
	}
	if own, err := r.ownEntries(ctx, mine, &req); err != nil || len(own) > 0 {
		return len(own) > 0, err
	}
	for _, a := range looks {
		found, err := r.scan.collect(ctx, tx, a, now, 1)
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
}
