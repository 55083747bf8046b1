package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/index"
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
		for d, n := range submitted[i].admits {
			placed.addMany(d, n)
		}
		switch s := &submitted[i]; {
		case s.Existed || s.place == nil:
		case s.place.Kind == layout.PlaceAssigned:
			c.hub.wakeWorker(s.worker)
		case s.place.Kind == layout.PlaceReady:
			placed.add(s.spec, s.ID.Shard(c.config.Shards))
		}
	}
	var marks []index.Mark
	var mail map[layout.SessionID][]layout.Notice
	for i := range submitted {
		if submitted[i].settle {
			marks = append(marks, index.Mark{ID: submitted[i].ID})
		}
		if replaced := submitted[i].Replaced; !replaced.IsZero() {
			marks, mail = append(marks, index.Mark{ID: replaced}), submitted[i].mail
		}
	}
	c.follow(ctx, version, postCommit{placed: placed, marks: marks, mail: mail})
}

// wakeIdle wakes workers that can run the futures that entered the pool at
// version: first those that have what the futures take, then others within the
// process, then those of other processes: by hints, and what nobody heeds through
// the store.
func (c *Cluster) wakeIdle(ctx context.Context, version kv.Version, placed demands) {
	c.wakeNear(ctx, version, placed)
	for d, n := range placed {
		placed[d] = n - c.hub.wake(d, n)
	}
	if len(placed.queues()) > 0 {
		c.hintOthers(ctx, placed)
	}
	if len(placed.queues()) > 0 {
		c.wakeOtherProcesses(ctx, version, placed)
	}
}

// wakeOtherProcesses wakes idle workers of other processes. A worker that went
// idle before version is seen here; one that went idle after that version read
// the ready ranges at a later version and saw the futures.
func (c *Cluster) wakeOtherProcesses(ctx context.Context, version kv.Version, placed demands) {
	tx := c.db.Begin(kv.Options{Tag: "futura-wake"})
	defer tx.Cancel()
	if version != kv.NoVersion {
		tx.SetReadVersion(version)
	}
	var woken []layout.WorkerID
	// First those that have not failed the futures.
	for _, sparing := range []bool{true, false} {
		if len(woken) == wakeLimit || !sparing && !placed.anyFailed() {
			break
		}
		for queue := range placed.queues() {
			more, err := c.wakeQueue(ctx, tx, queue, placed, sparing, wakeLimit-len(woken))
			if err != nil {
				return
			}
			if woken = append(woken, more...); len(woken) == wakeLimit {
				break
			}
		}
	}
	if len(woken) == 0 {
		return
	}
	// A hint that fails costs one poll interval; its error is not the caller's.
	_, _ = tx.Commit(ctx)
	if hinter := c.offeredHinter(); hinter != nil {
		hinter.Met(woken)
	}
}

// wakeQueue wakes up to limit workers in the ring of a queue that can run one of
// placed, and returns them. With sparing it wakes none that has failed it.
func (c *Cluster) wakeQueue(ctx context.Context, tx kv.Tx, queue string, placed demands, sparing bool, limit int,
) (woken []layout.WorkerID, err error) {
	prefix := c.keys.IdleQueue(queue)
	ring := kv.Prefix(prefix)
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
			if rest.Err() != nil || layout.Decode(item.Key, item.Value, &idle) != nil {
				continue
			}
			shard, found := placed.take(queue, func(d demand) bool {
				return fitsIdle(&idle, d) && !(sparing && d.failedOn == worker) && !d.refusedBy(nameOf(worker, idle.Labels))
			})
			if !found {
				continue
			}
			value := layout.EncodeStamped(&layout.Wake{Shard: shard + 1})
			tx.SetVersionstampedValue(c.keys.Worker(worker, layout.WorkerWake), value, layout.StampOffset)
			// A worker that is alive looks for work and returns to the ring. A
			// vanished one must not take a second hint from the others.
			tx.Clear(item.Key)
			if woken = append(woken, worker); len(woken) == limit {
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

// EnterIdleRing writes the worker into the ring of idle workers, where
// submitters of other processes find it, if there is nothing to claim. It
// returns nil if there is, otherwise a watch that fires when the worker is
// woken, which the caller waits for or cancels. It returns ErrReaped if the
// worker was declared dead. An unknown commit is retried and harmless.
//
// Waking a worker removes it from the ring of the queue that has work: the
// worker looks for work, and calls EnterIdleRing again if it finds none. A
// worker that claims for another reason calls LeaveIdleRing, or may be woken
// for nothing. A hint may be lost, so a worker in the ring also calls Poll
// periodically.
//
// The worker reads the ready ranges serializably, so a submit that it does not
// see makes it look again. The watch is in a writing transaction on purpose:
// its key is the worker's own, so only a wake can conflict with it.
func (r *Registration) EnterIdleRing(ctx context.Context, req ClaimRequest) (kv.Watch, error) {
	req.Runs = r.runs(req.Runs)
	var watch kv.Watch
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-idle", NoSync: true}, func(tx kv.Attempt) error {
		watch = nil
		alive := r.askAlive(tx)
		found, err := r.anyOf(ctx, tx, tx, req, 0, r.cluster.config.Shards)
		if err != nil {
			return err
		}
		if err := r.checkAlive(ctx, alive); err != nil || found {
			return err
		}
		if able := r.able(); len(able.Functions) > 0 || len(r.info.Functions) == 0 {
			record := layout.Encode(idleRecordOf(&able, &req))
			for _, q := range able.Queues {
				tx.Set(r.cluster.keys.Idle(q, r.info.ID), record)
			}
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

// pollsForAll is the number of calls of Poll that together cover all shards.
const pollsForAll = 4

// Poll reports whether there may be something to claim. It reads some of the
// shards: all of them within four calls, or in each call if few other workers
// are idle. A worker in the ring calls it periodically in case a hint was lost.
// It only reads.
func (r *Registration) Poll(ctx context.Context, req ClaimRequest) (found bool, err error) {
	req.Runs = r.runs(req.Runs)
	shards := r.cluster.config.Shards
	n := max(shards/pollsForAll, shards/max(r.idle, 1), 1)
	err = r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		if r.polled == 0 {
			if r.idle, err = r.countIdle(ctx, tx.Snapshot()); err != nil {
				return err
			}
		}
		found, err = r.anyOf(ctx, tx, tx.Snapshot(), req, r.polled, n)
		return err
	})
	r.polled = (r.polled + n) % shards
	return found, err
}

// PollAll is Poll for a worker that calls it seldom: it reads all shards.
func (r *Registration) PollAll(ctx context.Context, req ClaimRequest) (found bool, err error) {
	req.Runs = r.runs(req.Runs)
	err = r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		found, err = r.anyOf(ctx, tx, tx.Snapshot(), req, 0, r.cluster.config.Shards)
		return err
	})
	return found, err
}

// countIdle counts the workers in the ring, up to the number of shards.
func (r *Registration) countIdle(ctx context.Context, tx kv.Reader) (int, error) {
	ring := kv.Prefix(r.cluster.keys.IdleQueue(r.info.Queues[0]))
	page, err := tx.GetRange(ring, kv.RangeOptions{Limit: r.cluster.config.Shards}).Wait(ctx)
	return len(page.Items), err
}

// LeaveIdleRing removes the worker from the ring if it is in it. A Claim that
// takes something has already done so. An unknown commit is harmless.
func (r *Registration) LeaveIdleRing(ctx context.Context) error {
	if !r.inRing {
		return nil
	}
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-idle", NoSync: true}, func(tx kv.Attempt) error {
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

// hintedShard returns the shard of the futures that the worker was woken for, or
// -1 if it was not woken, or does not know. Only the first call after a hint
// returns it.
func (r *Registration) hintedShard(ctx context.Context, tx kv.Reader) (int, error) {
	if h := r.hinted.Swap(nil); h != nil {
		r.far = h.far
		if r.cluster.config.Shards > 1 {
			r.heard = h.count // the claim may not look into other shards
		}
		return h.shard, nil
	}
	if !r.inRing {
		return -1, nil
	}
	key := r.cluster.keys.Worker(r.info.ID, layout.WorkerWake)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil || value == nil {
		return -1, err
	}
	var wake layout.Wake
	stamp, err := layout.DecodeStamped(key, value, &wake)
	if err != nil || stamp == r.wokenAt || wake.Shard > r.cluster.config.Shards {
		return -1, nil // unknown, or of a newer version
	}
	r.wokenAt = stamp
	return wake.Shard - 1, nil
}

// anyOf reports whether the worker could claim something, from n shards. It reads
// by reader, of tx.
func (r *Registration) anyOf(ctx context.Context, tx kv.Tx, reader kv.Reader, req ClaimRequest, first, n int,
) (bool, error) {
	const page = 16
	now, shards := r.cluster.clock.Now(), r.cluster.config.Shards
	var snapshot kv.Version
	gone := func(id layout.ID) bool { return r.cluster.ledger.hasLanded(id, snapshot, now) }
	var looks []asked
	mine := r.askOwn(reader, page)
	for i := range n {
		shard := (first + i) % shards
		for _, q := range r.queues() {
			want := want{queue: q, free: req.Free, runs: req.Runs, skip: req.Skip, labels: r.labels, page: page,
				noObjects: req.noObjects(), gone: gone, elsewhere: r.elsewhere(ctx)}
			looks = append(looks, r.scan.ask(reader, shard, want))
		}
	}
	// A store may not show a claim without a sync yet that has been acknowledged.
	var err error
	if snapshot, err = tx.ReadVersion(ctx); err != nil {
		return false, err
	}
	if own, err := r.ownEntries(ctx, reader, mine, &req, 1, gone); err != nil || len(own) > 0 {
		return len(own) > 0, err
	}
	for _, a := range looks {
		found, err := r.scan.collect(ctx, reader, a, now, 1)
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
}
