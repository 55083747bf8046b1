package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Hints between the processes of a cluster.
type (
	// Notifier wakes the idle workers of a cluster. WakeWorker has one of this process look for
	// what it was assigned. OfferHinter has a Hinter used by the cluster's submits, unless
	// another one is, until WithdrawHinter; OfferBackground has workers of other processes woken while no caller waits
	// for it. Hinted has idle workers of this process look for
	// futures, as the message of another one's Hinter says.
	Notifier = notify.Notifier
	// Hinter passes hints on to the workers of other processes, past the store.
	Hinter = notify.Hinter
	// HintPace bounds how often hints lead to a look. The zero value allows a look at once. It
	// belongs to one goroutine at a time.
	HintPace = notify.Pace
	// HintRequest is a worker's request to be woken within its process.
	HintRequest = notify.Request
)

// Notifier returns what wakes the cluster's idle workers.
func (c *Cluster) Notifier() *Notifier { return c.notifier }

// Wake hints to idle workers that futures were submitted at version. Submit
// calls it; after SubmitTx and its commit, the caller must. It is best effort:
// a worker that misses it looks by itself within its poll interval.
func (c *Cluster) Wake(ctx context.Context, version kv.Version, submitted []Submitted) {
	c.follow(ctx, version, c.afterSubmit(submitted))
}

// afterSubmit is what is to be done once futures have been submitted.
func (c *Cluster) afterSubmit(submitted []Submitted) (p postCommit) {
	for i := range submitted {
		s := &submitted[i]
		p.placed.AddAll(s.admits)
		switch {
		case s.Existed || s.place == nil:
		case s.place.Kind == layout.PlaceAssigned:
			p.called = append(p.called, s.worker)
		case s.place.Kind == layout.PlaceReady:
			p.placed.Add(s.spec, s.ID.Shard(c.config.Shards))
		}
		if s.resolve {
			p.marks = append(p.marks, index.Mark{ID: s.ID})
		}
		if !s.Replaced.IsZero() {
			p.marks, p.mail = append(p.marks, index.Mark{ID: s.Replaced}), s.mail
		}
	}
	return p
}

// RequestHint registers a worker that has nothing to do, for the futures that
// it could claim by req. If it reports that a hint was missed, the worker must
// look for work once more before it waits.
func (r *Registration) RequestHint(req ClaimRequest) *HintRequest {
	return r.wakes.Request(notify.Want{Queues: r.queues(), Free: req.Free, Labels: r.labels, Runs: r.runs(req.Runs),
		NoObjects: req.noObjects(), Name: r.name(), Last: req.Last, Defers: req.Defers})
}

// LacksRoom reports whether the last look for futures, by Claim, EnterIdleRing or a poll, passed
// over some that the worker has no room for, or whose function it can't run.
func (r *Registration) LacksRoom() bool { return r.scan.NoRoom || r.scan.Refused }

// FoundOnlyOthers reports whether the last look for futures has seen all, and passed over them for nothing but their
// functions: it finds no more whatever room the worker gets.
func (r *Registration) FoundOnlyOthers() bool {
	return r.scan.Refused && !r.scan.NoRoom && !r.scan.Unseen
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
		able := r.able()
		if len(able.Functions) == 0 && len(r.info.Functions) > 0 {
			able.Queues = nil // of those that it runs, all are paused
		}
		watch = r.wakes.EnterRing(tx, &able, req.Free, req.noObjects())
		return nil
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return watch, err
}

// pollsForAll is the number of calls of Poll that together cover all shards, unless they are
// shared.
const pollsForAll = 4

// Poll reports whether there may be something to claim. It reads some of the
// shards: all of them within four calls, or as SharePolls says, or in each call if few
// other workers are idle. A worker in the ring calls it periodically in case a hint was lost.
// It only reads.
func (r *Registration) Poll(ctx context.Context, req ClaimRequest) (found bool, err error) {
	req.Runs = r.runs(req.Runs)
	shards := r.cluster.config.Shards
	if r.polls == 0 {
		r.polled = int(r.info.ID[len(r.info.ID)-1]) % shards // workers that started together look at different ones
	}
	n := max(int(float64(shards)/(pollsForAll*max(r.sharers, 1))), shards/max(r.idle, 1), 1)
	err = r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		if r.polls%pollsForAll == 0 {
			able := r.able()
			r.idle, r.alike, err = r.wakes.CountIdle(ctx, tx.Snapshot(), &able, req.Free, req.noObjects())
			if err != nil {
				return err
			}
		}
		found, err = r.anyOf(ctx, tx, tx.Snapshot(), req, r.polled, n)
		return err
	})
	r.polled = (r.polled + n) % shards
	r.polls++
	return found, err
}

// SharePolls has Poll read all shards within four calls of each of n workers together, which find
// the same.
func (r *Registration) SharePolls(n float64) { r.sharers = n }

// Alike returns how many workers in the ring, with this one, can run all that it can, up to a bound, as Poll
// counted them last. Together they find what one would that polls as often as all of them.
func (r *Registration) Alike() int { return r.alike }

// PollAll is Poll for a worker that calls it seldom: it reads all shards.
func (r *Registration) PollAll(ctx context.Context, req ClaimRequest) (found bool, err error) {
	req.Runs = r.runs(req.Runs)
	err = r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		found, err = r.anyOf(ctx, tx, tx.Snapshot(), req, 0, r.cluster.config.Shards)
		return err
	})
	return found, err
}

// LeaveIdleRing removes the worker from the ring if it is in it. A Claim that
// takes something has already done so. An unknown commit is harmless.
func (r *Registration) LeaveIdleRing(ctx context.Context) error {
	if !r.wakes.InRing() {
		return nil
	}
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-idle", NoSync: true}, func(tx kv.Attempt) error {
		r.wakes.LeaveRing(tx)
		return nil
	})
	if err == nil {
		r.wakes.Left()
	}
	return err
}

// anyOf reports whether the worker could claim something, from n shards. It reads
// by reader, of tx.
func (r *Registration) anyOf(ctx context.Context, tx kv.Tx, reader kv.Reader, req ClaimRequest, first, n int,
) (bool, error) {
	const page = 16
	r.scan.Begin()
	now, shards := r.cluster.clock.Now(), r.cluster.config.Shards
	var snapshot kv.Version
	gone := func(id layout.ID) bool { return r.cluster.claimed.HasCommitted(id, snapshot, now) }
	var looks []claim.Look
	mine := r.askOwn(reader, page)
	for i := range n {
		shard := (first + i) % shards
		for _, q := range r.queues() {
			want := claim.Want{Queue: q, Free: req.Free, Runs: req.Runs, Skip: req.Skip, Labels: r.labels, Page: page,
				NoObjects: req.noObjects(), Gone: gone, Elsewhere: r.avoided.Elsewhere(ctx, req.Defers, n == shards)}
			looks = append(looks, r.scan.Ask(reader, shard, want))
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
		found, err := r.scan.Collect(ctx, reader, a, now, 1)
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
}
