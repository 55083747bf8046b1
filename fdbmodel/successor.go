package fdbmodel

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/serial"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// How long a worker goes on with the futures of one lane before others may take its next one, and the
// worker takes what has waited longer.
const (
	maxInRow    = 16                    // futures
	maxRunInRow = 20 * time.Millisecond // of run time
)

// EndAndClaim is End that also claims successors for the worker: of each lane of which a completion frees a slot,
// the next future in line, if the request has room for it, in the transaction that ends the one before. It
// costs no place in the pool and no claim of its own, and the worker has at hand what the one before left. Of
// the request, Max, Runs and Objects count.
//
// A successor requires nothing but a slot, its priority is not below that of the one before, it is on its
// first attempt, and no worker is better for it. After 16 in a row, or once those have run for 20 ms
// together, the next one goes to the pool, as all do that are not claimed: others wait there too.
//
// If the commit is unknown, the worker's own list of claims shows what it took. What could not be read
// after it was claimed is given back by the next Claim, at the latest by Leave or a reaper.
func (r *Registration) EndAndClaim(ctx context.Context, completions []Completion, req ClaimRequest,
) (outcomes []Outcome, claimed []ClaimedFuture, err error) {
	for i := range completions {
		if err := completions[i].check(); err != nil {
			return nil, nil, err
		}
	}
	req.Runs = r.runs(req.Runs)
	for len(completions) > 0 {
		n, size, most := 0, 0, r.cluster.finishSerializer.Most(MaxFinish, r.cluster.clock.Now())
		for n < len(completions) && n < most && (n == 0 || size < maxFinishTx) {
			size += completions[n].size()
			n++
		}
		part, more, err := r.finishBatch(ctx, completions[:n], req)
		if errors.Is(err, serial.ErrSplit) {
			continue
		}
		if err != nil {
			return outcomes, claimed, err
		}
		r.countEnds(completions[:n], part)
		if n == len(completions) && len(outcomes) == 0 {
			return part, more, nil
		}
		req.take(more)
		outcomes, claimed, completions = append(outcomes, part...), append(claimed, more...), completions[n:]
	}
	return outcomes, claimed, nil
}

// take takes from a request what was claimed by it.
func (q *ClaimRequest) take(claimed []ClaimedFuture) {
	q.Max -= len(claimed)
	if q.Objects == nil {
		return
	}
	left := *q.Objects
	for i := range claimed {
		if spec := claimed[i].Spec; spec != nil && spec.AsObject {
			left--
		}
	}
	q.Objects = &left
}

// succession claims successors within a transaction that ends completions. Nil claims none.
type succession struct {
	r     *Registration
	req   ClaimRequest
	token layout.Token

	// Of one attempt at the transaction.
	alive, list kv.Pending[[]byte]
	again       bool // an attempt may have committed: list is what it claimed
	free        int
	objects     int
	before      map[layout.Lane][]*Completion // which have ended, and have no successor
	taken       []successor
	event       state.Event         // of the last one
	recovered   []layout.ReadyEntry // by an earlier attempt with an unknown result
}

// successor is a future that was claimed, and how long the worker has gone on with its lane.
type successor struct {
	row   layout.Row
	inRow inRow
}

// inRow is how many futures of its lane a worker took before it without a look at the pool, and how long
// those ran.
type inRow struct {
	n   int
	ran time.Duration
}

// IsSuccessor reports whether the future was claimed with the end of the one before it in its lane.
func (c *ClaimedFuture) IsSuccessor() bool { return c.inRow.n > 0 }

// succeed returns the succession of completions, nil if none can have a successor.
func (r *Registration) succeed(completions []Completion, req ClaimRequest) *succession {
	if req.Max <= 0 || !slices.ContainsFunc(completions, func(c Completion) bool { return c.mayHaveSuccessor() }) {
		return nil
	}
	return &succession{r: r, req: req, token: r.nextToken()}
}

func (c *Completion) mayHaveSuccessor() bool {
	spec := c.Future.Spec
	return spec != nil && !spec.Lane.IsZero() && !spec.Bundle && !spec.Member &&
		c.Future.inRow.n+1 < maxInRow && c.Future.inRow.ran+c.RunTime < maxRunInRow
}

// ask requests whether the worker is a member, and what an earlier attempt has claimed.
func (s *succession) ask(tx kv.Attempt) {
	if s == nil {
		return
	}
	s.taken, s.recovered, s.before = nil, nil, nil
	s.again = s.again || tx.MaybeCommitted
	s.alive = s.r.askAlive(tx)
	key := s.listKey()
	if s.again {
		s.list = tx.Get(key)
	}
	// The late twin of an attempt with an unknown result can't commit beside its retry.
	tx.AddReadConflictKey(key)
}

func (s *succession) listKey() []byte {
	return s.r.cluster.keys.Claims(s.r.info.ID, s.token.Sequence)
}

// begin finds out what an earlier attempt has claimed. Only a member of the cluster claims more.
func (s *succession) begin(ctx context.Context, tx kv.Attempt, w *WriteSet, completions []Completion, ends []ending,
) error {
	if s == nil {
		return nil
	}
	if s.again {
		list, err := s.list.Wait(ctx)
		if err != nil {
			return err
		}
		if list != nil {
			s.recovered, err = s.r.recoverClaim(ctx, tx, s.listKey(), list)
			return err
		}
	}
	alive, err := s.alive.Wait(ctx)
	if err != nil || alive == nil {
		return err
	}
	s.free, s.objects, s.before = s.req.Max, s.req.Max, map[layout.Lane][]*Completion{}
	if s.req.Objects != nil {
		s.objects = *s.req.Objects
	}
	for i := range ends {
		e, c := &ends[i], &completions[i]
		if e.outcome == Applied && e.before.HasSlot() && !e.after.HasSlot() && c.mayHaveSuccessor() {
			l := c.Future.Spec.Lane
			s.before[l] = append(s.before[l], c)
		}
	}
	s.taken = make([]successor, 0, min(s.free, len(s.before)))
	w.take = s.take
	return nil
}

// take claims a future that its lane admits, if it may have it.
func (s *succession) take(row *layout.Row) bool {
	ended := s.before[row.Spec.Lane]
	if s.free == 0 || len(ended) == 0 || !s.fits(row, ended[0].Future.Spec) {
		return false
	}
	s.event = state.Event{Kind: state.EventClaim, Token: s.token, Now: s.r.cluster.clock.Now()}
	if state.Apply(row, &s.event) != Applied {
		return false
	}
	c := ended[0]
	s.before[row.Spec.Lane] = ended[1:]
	s.free--
	if row.Spec.AsObject {
		s.objects--
	}
	s.taken = append(s.taken, successor{*row, inRow{c.Future.inRow.n + 1, c.Future.inRow.ran + c.RunTime}})
	return true
}

// fits reports whether the worker may go on with a future after one that has ended.
func (s *succession) fits(row *layout.Row, ended *layout.Spec) bool {
	spec, q := row.Spec, row.Spec.Requirements
	switch {
	case !row.InPool() || row.Attempts != (layout.Attempts{}) || row.Exception != nil || row.Cancel != nil:
		return false
	case q.CPU > 0 || q.RAM > 0 || q.GPU > 0 || spec.AsObject && s.objects <= 0:
		return false
	case spec.Priority < ended.Priority || !slices.Contains(s.r.queues(), spec.Queue):
		return false
	}
	return s.r.labels.Have(layout.LabelText(q.Labels)) && s.req.Runs(spec.Function)
}

// write writes the worker's list of what it has claimed.
func (s *succession) write(tx kv.Attempt) {
	switch {
	case s == nil || s.recovered != nil:
	case len(s.taken) > 0:
		tx.Set(s.listKey(), layout.EncodeClaims(entryIDs(s.entries())))
	case s.again:
		tx.Clear(s.listKey())
	}
}

// end returns what was claimed, once the transaction has ended. What can't be read now, or may not have been
// claimed, is given back by the next Claim.
func (s *succession) end(ctx context.Context, result kv.Result, err error) []ClaimedFuture {
	if s == nil {
		return nil
	}
	r, taken := s.r, s.entries()
	if err == nil && len(taken) == 0 {
		return nil
	}
	futures, complete := s.asRead(taken, result.Version)
	if err == nil && !complete {
		futures, err = r.readClaimed(ctx, s.token, taking{entries: taken}, result.Version)
	}
	if err != nil {
		r.doubt(s.token)
		return nil
	}
	for i := range s.taken {
		futures[i].inRow = s.taken[i].inRow
	}
	r.held.Hold(s.token.Sequence, taken)
	r.cluster.claims.Tell(len(taken), result.Version)
	return futures
}

// entries are what was claimed.
func (s *succession) entries() []layout.ReadyEntry {
	if s.recovered != nil {
		return s.recovered
	}
	taken := make([]layout.ReadyEntry, len(s.taken))
	for i := range s.taken {
		row := &s.taken[i].row
		taken[i] = layout.ReadyEntry{ID: row.ID, Function: row.Spec.Function, Class: row.Spec.Class(), Owner: row.Spec.Owner}
	}
	return taken
}

// asRead returns what was claimed as the transaction has read it, and false if that is not all that a worker
// needs.
func (s *succession) asRead(taken []layout.ReadyEntry, at kv.Version) (futures []ClaimedFuture, complete bool) {
	if s.recovered != nil || slices.ContainsFunc(s.taken, func(t successor) bool {
		return t.row.Spec.ArgsKey || t.row.Spec.HasInputs() || t.row.Steps
	}) {
		return nil, false
	}
	now := s.r.cluster.clock.Now()
	futures = make([]ClaimedFuture, len(taken))
	for i := range s.taken {
		row := &s.taken[i].row
		futures[i] = ClaimedFuture{ID: row.ID, Token: s.token, Spec: row.Spec, Attempts: row.Attempts, Inline: row.Spec.Args,
			class: taken[i].Class, owner: taken[i].Owner, version: at, at: now}
	}
	return futures, true
}
