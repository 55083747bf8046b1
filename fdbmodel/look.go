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
	first    int // the shard that the looks begin at
	until    int // how many shards they have come to
	looks    []claim.Look
	queues   []string
	page     int  // entries to read at a time
	crowded  bool // others claim at the same places
	taken    []layout.ReadyEntry
	// elsewhere reports whether another worker should have a future.
	elsewhere func(*layout.ReadyEntry) bool
	objects   int              // of those that it may still take whose results are to be objects
	free      layout.Resources // what is left of the worker's; Slots is how many futures it may still take
}

// look finds futures to take, and reports whether more fit than it took.
func (r *Registration) look(ctx context.Context, tx kv.Attempt, req *ClaimRequest) (_ *selection, more bool, err error,
) {
	r.scan.Begin()
	own, woken := r.askOwn(tx.Snapshot(), req.Max+1), r.wakes.AskWoken(tx.Snapshot())
	s := &selection{worker: r, req: req, now: r.cluster.clock.Now(), free: req.Free,
		elsewhere: r.avoided.Elsewhere(ctx, req.Defers, true)}
	s.free.Slots, s.objects = req.Max, req.Max
	if req.Objects != nil {
		s.objects = *req.Objects
	}
	s.first = r.cluster.random.Intn(r.cluster.config.Shards)
	s.page, s.crowded = r.scan.Page(s.req.Max, tx.Number > 1)
	s.page, s.queues = min(s.page+r.cluster.claimed.InFlight(), claim.MaxPage), r.queuesInTurn()
	// All that is known to be read travels together with the question for the version.
	if woken.IsKnown() {
		s.begin(tx.Snapshot(), woken.Shard())
	}
	if s.snapshot, err = tx.ReadVersion(ctx); err != nil {
		return nil, false, err
	}
	if !woken.IsKnown() {
		if err := woken.Wait(ctx); err != nil {
			return nil, false, err
		}
		s.begin(tx.Snapshot(), woken.Shard())
	}
	mine, err := r.ownEntries(ctx, tx.Snapshot(), own, req, req.Max+1, s.gone)
	if err != nil {
		return nil, false, err
	}
	// Assigned futures come first, except in every fourth claim, so that they
	// can't keep the worker from the pool forever.
	if r.claims%4 == 0 {
		more, err := s.lookInPool(ctx, tx.Snapshot())
		return s, more || s.choose(mine), err
	}
	if s.choose(mine) {
		return s, true, nil
	}
	more, err = s.lookInPool(ctx, tx.Snapshot())
	return s, more, err
}

// begin begins the looks at the shard that the worker was woken for, or a random one, or at all if
// the worker was idle and does not know what for it was woken.
func (s *selection) begin(tx kv.Reader, hinted int) {
	s.hinted, s.until = hinted, 1
	if hinted >= 0 {
		s.first = hinted
	} else if s.worker.wakes.InRing() {
		s.until = s.worker.cluster.config.Shards
	}
	s.looks = s.ask(tx, 0, s.until)
}

// ask begins the looks at shards, counted from the first one.
func (s *selection) ask(tx kv.Reader, from, until int) (looks []claim.Look) {
	r := s.worker
	for n := from; n < until; n++ {
		for _, q := range s.queues {
			looks = append(looks, r.scan.Ask(tx, (s.first+n)%r.cluster.config.Shards, s.want(q)))
		}
	}
	return looks
}

// lookInPool ends the looks that were begun, and looks into all shards if those had not enough.
// It reports whether something was left.
func (s *selection) lookInPool(ctx context.Context, tx kv.Reader) (more bool, err error) {
	r, shards := s.worker, s.worker.cluster.config.Shards
	if r.scan.SearchesClasses(s.now) {
		for _, q := range s.queues {
			if err := r.scan.Discover(ctx, tx, s.first, q, s.now); err != nil {
				return false, err
			}
		}
	}
	for looks := s.looks; ; looks, s.until = s.ask(tx, s.until, shards), shards {
		for _, a := range looks {
			a.Leave(s.free, s.objects <= 0)
			found, err := r.scan.Collect(ctx, tx, a, s.now, s.page)
			if err != nil {
				return false, err
			}
			if s.crowded {
				found = r.scan.Turn(found, s.free.Slots)
			}
			if s.choose(found) {
				return true, nil
			}
		}
		// An idle worker has seen that there is nothing in the other shards.
		if s.until == shards || len(s.taken) > 0 && (s.hinted >= 0 || s.req.Max <= len(s.taken)*2) {
			return false, nil
		}
	}
}

// want describes what the claim searches for in a queue.
func (s *selection) want(queue string) claim.Want {
	return claim.Want{Queue: queue, Free: s.free, Runs: s.req.Runs, Skip: s.req.Skip, Page: s.page,
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
			s.worker.avoided.Taken(e.ID)
			s.taken = append(s.taken, *e)
			s.worker.entered = append(s.worker.entered, *e)
		} else if !s.free.Fit(q) || object && s.objects <= 0 {
			s.worker.scan.NoRoom = true
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
	at := r.cluster.random.Intn(len(queues))
	return append(slices.Clone(queues[at:]), queues[:at]...)
}
