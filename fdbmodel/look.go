package fdbmodel

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// selection is what one attempt of a claim takes.
type selection struct {
	worker   *Registration
	req      *ClaimRequest
	snapshot kv.Version
	now      time.Time
	hinted   int // the shard that the worker was woken for, or -1
	taken    []layout.ReadyEntry
	// elsewhere reports whether another worker should have a future.
	elsewhere func(*layout.ReadyEntry) bool
	objects   int              // of those that it may still take whose results are to be objects
	free      layout.Resources // what is left of the worker's; Slots is how many futures it may still take
}

// look finds futures to take, and reports whether more fit than it took.
func (r *Registration) look(ctx context.Context, tx kv.Attempt, req *ClaimRequest) ([]layout.ReadyEntry, bool, error) {
	own := r.askOwn(tx.Snapshot(), req.Max+1)
	snapshot, err := tx.ReadVersion(ctx)
	if err != nil {
		return nil, false, err
	}
	hinted, err := r.wakes.WokenFor(ctx, tx.Snapshot())
	if err != nil {
		return nil, false, err
	}
	s := selection{worker: r, req: req, snapshot: snapshot, now: r.cluster.clock.Now(), hinted: hinted, free: req.Free,
		elsewhere: r.elsewhere(ctx, req.Defers)}
	s.free.Slots, s.objects = req.Max, req.Max
	if req.Objects != nil {
		s.objects = *req.Objects
	}
	mine, err := r.ownEntries(ctx, tx.Snapshot(), own, req, req.Max+1, s.gone)
	if err != nil {
		return nil, false, err
	}
	// Assigned futures come first, except in every fourth claim, so that they
	// can't keep the worker from the pool forever.
	if r.claims%4 == 0 {
		more, err := s.lookInPool(ctx, tx)
		return s.taken, more || s.choose(mine), err
	}
	if s.choose(mine) {
		return s.taken, true, nil
	}
	more, err := s.lookInPool(ctx, tx)
	return s.taken, more, err
}

// lookInPool looks into the shard that the worker was woken for, or a random
// one, and into all if that has not enough, or if the worker was idle and does
// not know what for it was woken. It reports whether something was left.
func (s *selection) lookInPool(ctx context.Context, attempt kv.Attempt) (more bool, err error) {
	r, tx := s.worker, attempt.Snapshot()
	c, now := r.cluster, s.now
	shards, first := c.config.Shards, c.random.intn(c.config.Shards)
	if s.hinted >= 0 {
		first = s.hinted
	}
	page, crowded := r.scan.Page(s.req.Max, attempt.Number > 1)
	page = min(page+c.claimed.InFlight(), claim.MaxPage)
	queues := r.queuesInTurn()
	if r.scan.SearchesClasses(now) {
		for _, q := range queues {
			if err := r.scan.Discover(ctx, tx, first, q, now); err != nil {
				return false, err
			}
		}
	}
	for from, until := 0, 1; from < shards; from, until = until, shards {
		if r.wakes.InRing() && s.hinted < 0 {
			until = shards
		}
		var looks []claim.Look
		for n := from; n < until; n++ {
			for _, q := range queues {
				looks = append(looks, r.scan.Ask(tx, (first+n)%shards, s.want(q, page)))
			}
		}
		for _, a := range looks {
			a.Leave(s.free)
			found, err := r.scan.Collect(ctx, tx, a, now, page)
			if err != nil {
				return false, err
			}
			if crowded {
				found = r.scan.Turn(found, s.free.Slots)
			}
			if s.choose(found) {
				return true, nil
			}
		}
		// An idle worker has seen that there is nothing in the other shards.
		if len(s.taken) > 0 && (s.hinted >= 0 || s.req.Max <= len(s.taken)*2) {
			break
		}
	}
	return false, nil
}

// want describes what the claim searches for in a queue.
func (s *selection) want(queue string, page int) claim.Want {
	return claim.Want{Queue: queue, Free: s.free, Runs: s.req.Runs, Skip: s.req.Skip, Page: page,
		Labels: s.worker.labels, NoObjects: s.objects <= 0, Gone: s.gone, Elsewhere: s.elsewhere}
}

// gone reports whether another claim has a future.
func (s *selection) gone(id layout.ID) bool {
	return s.worker.cluster.claimed.Gone(id, s.snapshot, s.now)
}

// choose takes the futures in found that fit and that no other claim of the
// process has. It reports whether something was left.
func (s *selection) choose(found []layout.ReadyEntry) (more bool) {
	for i := range found {
		e := &found[i]
		if s.free.Slots == 0 {
			return true
		}
		q, object := e.Class.Requirements(), e.AsObject()
		if s.free.Fit(q) && !(object && s.objects <= 0) && s.worker.cluster.claimed.Take(e.ID, s.snapshot, s.now) {
			s.free = s.free.Take(q)
			if object {
				s.objects--
			}
			delete(s.worker.avoided.left, e.ID)
			s.taken = append(s.taken, *e)
			s.worker.entered = append(s.worker.entered, *e)
		}
	}
	return false
}

// queuesInTurn returns the worker's queues, beginning at a random one.
func (r *Registration) queuesInTurn() []string {
	queues := r.queues()
	if len(queues) < 2 {
		return queues
	}
	at := r.cluster.random.intn(len(queues))
	return append(slices.Clone(queues[at:]), queues[:at]...)
}
