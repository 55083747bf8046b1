package fdbmodel

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/module"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// insertBatch reads the specs of ids that may exist, and of all if look is set.
// The first spec that it does not read and is sure to write is still in the read
// conflict set of each attempt, so that the late twin of one with an unknown result
// can't commit beside its retry.
func (c *Cluster) insertBatch(ctx context.Context, w *WriteSet, subs []Submission, look bool) ([]Submitted, error) {
	answers, lined, _, err := c.insertInto(ctx, w, subs, look)
	if err != nil {
		return nil, err
	}
	if err := w.Flush(ctx); err != nil {
		return nil, err
	}
	placeInLanes(answers, lined, w.pool.placed)
	return answers, nil
}

// insertInto is insertBatch in a write set that is flushed afterwards. It returns those that are
// put in line then, by their index, and with an error that of the submission at fault.
func (c *Cluster) insertInto(ctx context.Context, w *WriteSet, subs []Submission, look bool,
) (answers []Submitted, lined map[int]*layout.Row, at int, err error) {
	fresh, err := c.areFresh(ctx, w, subs)
	if err != nil {
		return nil, nil, 0, err
	}
	ins := inserting{Cluster: c, w: w, subs: subs, look: look, fresh: fresh, answers: make([]Submitted, len(subs)),
		lined: map[int]*layout.Row{}, seen: make(map[layout.ID]*layout.Row, len(subs))}
	maps.Copy(ins.seen, w.lanes.Lined)
	ins.asked = c.askSubmitted(w, subs, look, fresh)
	if at, err := w.lanes.Obey(ctx, len(subs), func(i int) *layout.Spec { return &subs[i].Spec }); err != nil {
		return nil, nil, at, err
	}
	for i := range subs {
		if err := ins.insert(ctx, i); err != nil {
			return nil, nil, i, err
		}
	}
	return ins.answers, ins.lined, 0, nil
}

// inserting is futures on their way into a write set.
type inserting struct {
	*Cluster
	w           *WriteSet
	subs        []Submission
	asked       *askedSubmitted
	look, fresh bool
	answers     []Submitted
	lined       map[int]*layout.Row
	seen        map[layout.ID]*layout.Row
}

func (ins *inserting) insert(ctx context.Context, i int) error {
	s, answer := &ins.subs[i], &ins.answers[i]
	row := ins.rowOf(s)
	*answer = Submitted{
		ID: s.ID, State: row.State(), spec: &s.Spec, worker: s.Assigned, place: layout.PlaceOf(&row),
	}
	if earlier := ins.seen[s.ID]; earlier != nil {
		err := ins.answerSame(ctx, ins.w.Tx, earlier, s, answer)
		answer.Existed = true
		return err
	}
	ins.seen[s.ID] = &row
	if (s.chosen || ins.look) && !ins.fresh {
		old, found, err := ins.asked.existing[i].Wait(ctx)
		if err != nil {
			return err
		}
		if found && old.Spec != nil {
			if err := ins.answerSame(ctx, ins.w.Tx, &old, s, answer); err != nil {
				return err
			}
			ins.asked.inputs.Made(&old)
			ins.seen[s.ID] = &old
			return nil
		}
	}
	if other, err := ins.resolveName(ctx, i); err != nil || other {
		delete(ins.seen, s.ID) // it is not made
		return err
	}
	if err := ins.asked.require(ctx, i, s); err != nil {
		return err
	}
	if err := ins.w.insertLinked(ctx, ins.asked.inputs, &row, s.Args); err != nil {
		return err
	}
	answer.State, answer.place = row.State(), layout.PlaceOf(&row)
	answer.resolve = slices.Contains(ins.w.edges.Marks, index.Mark{ID: s.ID})
	if row.Line != nil {
		ins.lined[i] = &row
	}
	return nil
}

// placeInLanes says where futures wait that got in line, after some were admitted, and
// which others were.
func placeInLanes(answers []Submitted, inLanes map[int]*layout.Row, others notify.Demands) {
	for i, row := range inLanes {
		answers[i].place = layout.PlaceOf(row)
	}
	if len(answers) > 0 {
		answers[0].admits = others
	}
}

// precondition is what new futures need that the store may not have. It belongs to one
// transaction.
type precondition interface {
	// prepare requests what check reads for submission i, before any read is waited for.
	prepare(tx kv.Tx, i int, s *Submission)
	// check returns an error unless submission i has what it needs.
	check(ctx context.Context, i int, s *Submission) error
}

// askedSubmitted is what a submit has requested.
type askedSubmitted struct {
	existing []read.Pending
	inputs   *edge.Inputs
	names    unique.Names
	needs    []precondition
}

func (c *Cluster) askSubmitted(w *WriteSet, subs []Submission, look, fresh bool) *askedSubmitted {
	asked := &askedSubmitted{
		existing: make([]read.Pending, len(subs)), inputs: edge.NewInputs(w.Tx, c.keys),
		needs: []precondition{&writtenAhead{keys: c.keys}, &neededModules{module.Needed{Known: c.modules}},
			&assignees{cluster: c}},
	}
	guarded := fresh
	for i := range subs {
		s := &subs[i]
		if s.Unique != nil {
			asked.names.Ask(w.Tx, c.keys, s.Spec.Unique.Name)
		}
		if w.lanes.Lined[s.ID] != nil {
			continue // it is known
		}
		if (s.chosen || look) && !fresh {
			asked.existing[i] = read.Record(w.Tx, c.keys, s.ID)
		} else if !guarded {
			guarded = s.Unique == nil // another one may stand for it
			w.Tx.AddReadConflictKey(c.keys.Spec(s.ID))
		}
		for _, need := range asked.needs {
			need.prepare(w.Tx, i, s)
		}
		asked.inputs.Ask(layout.UnpackIDs(s.Spec.Inputs), w.lanes.Lined)
	}
	return asked
}

// require returns an error unless what a submission needs is there.
func (a *askedSubmitted) require(ctx context.Context, i int, s *Submission) error {
	for _, need := range a.needs {
		if err := need.check(ctx, i, s); err != nil {
			return err
		}
	}
	return nil
}

// writtenAhead are the first pieces of large arguments and of many inputs, which are written
// before their futures, by the index of the submission.
type writtenAhead struct {
	keys layout.Keyspace
	pieces.Firsts
}

func (w *writtenAhead) prepare(tx kv.Tx, i int, s *Submission) {
	for _, ref := range [...]*layout.ChunkRef{s.Spec.ArgsRef, s.Spec.InputsRef} {
		if ref != nil && ref.Count > 0 {
			w.Ask(tx, i, w.keys.Chunk(s.ID, *ref, 0))
		}
	}
}

// check returns errArgsSwept unless the pieces are there.
func (w *writtenAhead) check(ctx context.Context, i int, s *Submission) error {
	there, err := w.Wait(ctx, i)
	if err == nil && !there {
		err = fmt.Errorf("future %s: %w", s.ID, errArgsSwept)
	}
	return err
}

// neededModules are those of the functions.
type neededModules struct{ module.Needed }

func (n *neededModules) prepare(tx kv.Tx, _ int, s *Submission) { n.Ask(tx, s.Spec.Function) }

func (n *neededModules) check(ctx context.Context, _ int, s *Submission) error {
	return n.Check(ctx, s.Spec.Function)
}

// assignees are the workers that futures are assigned to.
type assignees struct {
	cluster *Cluster
	asked   map[layout.WorkerID]kv.Pending[[]byte]
	infos   map[layout.WorkerID]*layout.WorkerInfo
}

func (a *assignees) prepare(tx kv.Tx, _ int, s *Submission) {
	if _, asked := a.asked[s.Assigned]; s.Assigned == "" || asked {
		return
	}
	if a.asked == nil {
		a.asked, a.infos = map[layout.WorkerID]kv.Pending[[]byte]{}, map[layout.WorkerID]*layout.WorkerInfo{}
	}
	a.asked[s.Assigned] = tx.Get(a.cluster.keys.Worker(s.Assigned, layout.WorkerAlive))
}

// check returns an error unless the worker is registered and can run the future.
func (a *assignees) check(ctx context.Context, _ int, s *Submission) error {
	if s.Assigned == "" {
		return nil
	}
	info := a.infos[s.Assigned]
	if info == nil {
		var err error
		if info, err = a.cluster.requireAlive(ctx, s.Assigned, a.asked[s.Assigned]); err != nil {
			return err
		}
		a.infos[s.Assigned] = info
	}
	if err := info.CanRun(&s.Spec); err != nil {
		return fmt.Errorf("future %s: %w", s.ID, err)
	}
	return nil
}

// rowOf returns the row that a submission becomes.
func (c *Cluster) rowOf(s *Submission) layout.Row {
	row := layout.Row{ID: s.ID, Spec: &s.Spec}
	if !s.NotBefore.IsZero() && s.NotBefore.After(c.clock.Now()) {
		row.Attempts.Due = layout.Millis(s.NotBefore)
	}
	row.Attempts.Assigned, row.Attempts.Reason = s.Assigned, s.Reason
	if s.Spec.IsPromise() {
		row.Blocked = &layout.BlockedRecord{}
	}
	return row
}

// areFresh reports whether neighbouring ids are unused, by one read of
// everything between the first and the last one. If it returns false, they may
// still be unused.
func (c *Cluster) areFresh(ctx context.Context, w *WriteSet, subs []Submission) (bool, error) {
	for i := range subs {
		if !subs[i].chosen || i > 0 && !subs[i].ID.Follows(subs[i-1].ID) {
			return false, nil
		}
	}
	if len(subs) == 1 || len(w.lanes.Lined) > 0 {
		return false, nil
	}
	between := kv.Range{Begin: c.keys.Row(subs[0].ID), End: kv.AfterPrefix(c.keys.Row(subs[len(subs)-1].ID))}
	page, err := w.Tx.GetRange(between, kv.RangeOptions{Limit: 1}).Wait(ctx)
	return err == nil && len(page.Items) == 0, err
}
