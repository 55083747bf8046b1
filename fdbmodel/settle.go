package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// maxSettle is the maximum number of futures whose edges one transaction settles.
const maxSettle = 64

// maxPiece is the maximum number of edges that one transaction settles. Each may end a
// future, with all that its end changes, and others wait for such a commit.
const maxPiece = 4 * maxSettle

// SettleEdges settles edges of futures that have ended, or that are to be linked
// to many inputs, where those that marked them did not: futures that used the
// result are unblocked, or fail with it. It returns how many futures it settled
// edges of, and whether to call it again at once. Several processes may run it.
// Unreadable futures stay and don't hold up the others; those that must be near an
// object whose records can't be read stay blocked, and the error, which IsUnreadable or is
// one of the store, names some: the rest is settled. An unknown commit is retried and
// harmless.
func (c *Cluster) SettleEdges(ctx context.Context) (settled int, more bool, err error) {
	var marks []index.Mark
	err = c.View(ctx, func(tx kv.Attempt) error {
		marks = nil
		scan := shards.Read(tx.Snapshot(), c.config.Shards, c.keys.SettlingOf, maxSettle)
		for len(marks) < shards.MaxRefills*maxSettle {
			item, skip, err := scan.Next(ctx)
			if err != nil || item.Key == nil {
				return err
			}
			rest := tuple.NewReader(item.Key[skip:])
			next := index.Mark{ID: layout.ID(rest.UUID())}
			if len(rest.Rest()) > 0 {
				rest.Expect(layout.LookPart)
				next.Input = layout.ID(rest.UUID())
			}
			if rest.Done() == nil && !c.marked.knows(next) {
				marks = append(marks, next)
			}
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	var waiting []error
	for part := range slices.Chunk(marks, maxSettle) {
		alone := [][]index.Mark{part}
		for i := 0; i < len(alone); i++ {
			n, left, unreadable, err := c.settle(ctx, alone[i])
			if layout.IsUnreadable(err) { // the lane of a future that is unblocked, or fails
				if unreadable = []error{err}; len(alone[i]) > 1 {
					alone, unreadable = slices.AppendSeq(alone, slices.Chunk(part, 1)), nil
				}
				err = nil
			}
			if err != nil {
				return settled, false, err
			}
			settled, more, waiting = settled+n, more || len(left) > 0, append(waiting, unreadable...)
		}
	}
	return settled, more, joinSome(waiting)
}

// namedErrors is how many errors one error names that stands for many.
const namedErrors = 3

// joinSome joins errors, of which it names some. It returns nil for none.
func joinSome(all []error) error {
	if more := len(all) - namedErrors; more > 0 {
		all = append(slices.Clip(all[:namedErrors]), fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// settle settles edges of marked futures in one transaction. It returns of how
// many, what is left to settle at once, and which are left to a janitor because
// something can't be read.
func (c *Cluster) settle(ctx context.Context, marks []index.Mark,
) (settled int, left []index.Mark, unreadable []error, err error) {
	var ids []layout.ID
	var looks []index.Mark
	for _, m := range marks {
		if m.Input.IsZero() {
			ids = append(ids, m.ID)
		} else {
			looks = append(looks, m)
		}
	}
	var placed demands
	var s *settlement
	result, err := c.Transact(ctx, kv.Options{Tag: "futura-settle"}, func(tx kv.Attempt) error {
		s = &settlement{cluster: c, tx: tx, w: c.write(tx), inputs: c.inputRows(tx),
			edges: maxPiece / max(1, len(ids)), changed: map[layout.ID]bool{},
			realized: telling{cluster: c, tx: tx, looks: tx.Number > 1}} // so it repeats once at most for ends of inputs
		if err := s.look(ctx, looks); err != nil {
			return err
		}
		if err := s.run(ctx, ids); err != nil {
			return err
		}
		if err := s.w.Flush(ctx); err != nil {
			return err
		}
		settled, left, placed = s.settled, s.w.edges.Marks, s.w.pool.placed
		return nil
	})
	if err != nil {
		return 0, nil, nil, err
	}
	c.wakeIdle(ctx, result.Version, placed)
	left = c.followNear(ctx, s, left)
	return settled, left, s.unreadable, nil
}

// settlement is one transaction that settles edges.
type settlement struct {
	cluster  *Cluster
	tx       kv.Attempt
	w        *WriteSet
	inputs   *inputRows
	edges    int // of one future
	settled  int
	realized telling
	failing  []failing
	changed  map[layout.ID]bool
	near     []*layout.Row     // to be unblocked, and taken by the worker that has their inputs
	called   []layout.WorkerID // have assignments
	lost     []lostNear        // objects that no worker has
	// unreadable says which futures wait for what can't be read.
	unreadable []error
}

// failing is a future one of whose inputs has failed.
type failing struct {
	id      layout.ID
	failure *layout.Exception
}

// look looks whether futures still wait for inputs after some have ended, and
// unblocks those that don't. It relies on the rows of these alone. Where an input is
// left, its end is yet to come, and is followed by another look. A mark is cleared only
// if it is the one that was there: the end of an input that was made again has the
// same.
func (s *settlement) look(ctx context.Context, looks []index.Mark) error {
	keys := s.cluster.keys
	ids := make([]layout.ID, 0, len(looks))
	for _, m := range looks {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	unreadable, err := s.unblock(ctx, ids)
	if err != nil {
		return err
	}
	for _, m := range looks {
		if !slices.Contains(unreadable, m.ID) {
			s.tx.AddReadConflictKey(keys.Look(m.ID, m.Input))
			s.tx.Clear(keys.Look(m.ID, m.Input))
			s.settled++
		}
	}
	return nil
}

// unblock unblocks those of some futures that wait for no input. It returns those of
// which only a newer version can tell.
func (s *settlement) unblock(ctx context.Context, ids []layout.ID) (unreadable []layout.ID, err error) {
	keys := s.cluster.keys
	others := waits{tx: s.tx.Snapshot(), keys: keys}
	rows, asked := make([]layout.Row, 0, len(ids)), make([]wait, 0, len(ids))
	for _, p := range read.Rows(others.tx, keys, ids, keys.Spec) {
		row, _, err := p.Wait(ctx)
		switch {
		case layout.IsUnreadable(err):
			unreadable = append(unreadable, p.ID)
		case err != nil:
			return nil, err
		case row.Spec != nil && row.State() == layout.Blocked && row.Blocked.Linked == row.Spec.CountInputs():
			rows, asked = append(rows, row), append(asked, others.ask(&row, nil))
		}
	}
	if err := others.read(ctx); err != nil {
		return nil, err
	}
	for i := range rows {
		_, waits, err := others.last(ctx, asked[i])
		switch {
		case layout.IsUnreadable(err):
			unreadable = append(unreadable, rows[i].ID)
		case err != nil:
			return nil, err
		case !waits:
			s.tx.AddReadConflictRange(keys.RecordRange(rows[i].ID))
			s.ready(&rows[i])
		}
	}
	return unreadable, nil
}

func (s *settlement) run(ctx context.Context, ids []layout.ID) error {
	keys := s.cluster.keys
	rows, marks := make([]read.Pending, len(ids)), make([]kv.Pending[[]byte], len(ids))
	for i, id := range ids {
		rows[i], marks[i] = read.Record(s.tx, keys, id), s.tx.Get(keys.Settling(id))
	}
	steps := make([]step, 0, len(ids))
	for i, id := range ids {
		next := step{}
		var err error
		if next.row, _, err = rows[i].Wait(ctx); layout.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return err
		}
		value, err := marks[i].Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil || layout.Decode(keys.Settling(id), value, &next.mark) != nil {
			continue // it is settled, or an audit reports it
		}
		s.askUsers(&next)
		steps = append(steps, next)
	}
	for i := range steps {
		if err := s.one(ctx, &steps[i]); layout.IsUnreadable(err) {
			continue
		} else if err != nil {
			return err
		}
		s.settled++
	}
	if err := s.realized.read(ctx); err != nil {
		return err
	}
	s.realized.write(s.w, s.apply)
	if err := s.readyNear(ctx); err != nil {
		return err
	}
	return s.fail(ctx)
}

// step is the next step for one future.
type step struct {
	row   layout.Row
	mark  layout.SettlingRecord
	users kv.Pending[kv.Page] // the next futures to tell that it has ended
	tells bool
}

// askUsers requests the next futures that use the result of one that has ended.
func (s *settlement) askUsers(next *step) {
	if next.row.Spec == nil || !next.row.State().Terminal() || !next.row.Dependants {
		return
	}
	keys, id := s.cluster.keys, next.row.ID
	users := kv.Prefix(keys.DependantsOf(id))
	if !next.mark.Told.IsZero() {
		users.Begin = kv.After(keys.Dependant(id, next.mark.Told))
	}
	next.tells, next.users = true, s.tx.GetRange(users, kv.RangeOptions{Limit: s.edges})
}

// one takes the next step for one future.
func (s *settlement) one(ctx context.Context, next *step) error {
	row, mark := &next.row, &next.mark
	switch {
	case row.Spec == nil:
	case row.State() == layout.Blocked && row.Spec.HasInputs():
		return s.link(ctx, row)
	case row.State().Terminal():
		more, err := s.tell(ctx, next)
		if err != nil {
			return err
		}
		if !more {
			if more, err = s.release(ctx, row, mark); err != nil {
				return err
			}
		}
		if more {
			s.w.edges.Mark(row.ID, mark)
			return nil
		}
	}
	s.tx.Clear(s.cluster.keys.Settling(row.ID))
	return nil
}

// link links the next inputs to a blocked future. One that was told of an input
// while it could not be read begins again.
func (s *settlement) link(ctx context.Context, row *layout.Row) error {
	keys, n := s.cluster.keys, row.Spec.CountInputs()
	first := row.Blocked.Linked % n
	inputs, err := s.cluster.someInputs(ctx, s.tx, row, first, s.edges)
	if err != nil {
		return err
	}
	s.inputs.ask(inputs)
	waiting, failure, err := s.inputs.link(ctx, row, inputs)
	if errors.Is(err, errNoInput) {
		failure, err = &layout.Exception{Kind: layout.KindUpstream, Message: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	if failure != nil {
		s.tx.Clear(keys.Settling(row.ID))
		s.apply(row, Event{Kind: EventUpstream, Exception: failure})
		return nil
	}
	linked := *row
	linked.Blocked = &layout.BlockedRecord{Linked: first + len(inputs), Objects: row.Blocked.Objects ||
		s.inputs.haveObjects(row, inputs...)}
	if linked.Blocked.Linked < n {
		s.w.places.Put(&linked)
		s.w.edges.Mark(row.ID, &layout.SettlingRecord{})
		return nil
	}
	s.tx.Clear(keys.Settling(row.ID))
	if waiting == 0 && row.Spec.ListsInputs() {
		page, err := s.tx.GetRange(kv.Prefix(keys.InputsOf(row.ID)), kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return err
		}
		waiting = len(page.Items)
	}
	if waiting > 0 {
		s.w.places.Put(&linked)
		return nil
	}
	s.ready(&linked)
	return nil
}

// tell finds the next futures that use the result of one that has ended.
func (s *settlement) tell(ctx context.Context, next *step) (more bool, err error) {
	if !next.tells {
		return false, nil
	}
	row, mark := &next.row, &next.mark
	page, err := next.users.Wait(ctx)
	if err != nil {
		return false, err
	}
	for _, item := range page.Items {
		user, ok := layout.OtherEnd(item.Key)
		if !ok {
			continue // an audit reports it
		}
		mark.Told = user
		if row.State() == layout.Failed {
			s.failing = append(s.failing, failing{user, upstream(row)})
			continue
		}
		s.realized.add(user, row.ID)
	}
	return page.More, nil
}

// release ends the use of the next inputs by a future that has ended and that
// had too many to release them at once.
func (s *settlement) release(ctx context.Context, row *layout.Row, mark *layout.SettlingRecord) (more bool, err error) {
	if row.Spec.InputsRef == nil || mark.Released >= row.Spec.CountInputs() {
		return false, nil
	}
	inputs, err := s.cluster.someInputs(ctx, s.tx, row, mark.Released, s.edges)
	if err != nil {
		return false, err
	}
	for _, input := range inputs {
		s.tx.Clear(s.cluster.keys.Dependant(input, row.ID))
	}
	mark.Released += len(inputs)
	return mark.Released < row.Spec.CountInputs(), nil
}

// fail fails the blocked futures one of whose inputs has failed.
func (s *settlement) fail(ctx context.Context) error {
	asked := make([]read.Pending, len(s.failing))
	for i, f := range s.failing {
		asked[i] = read.Record(s.tx, s.cluster.keys, f.id)
	}
	for i, f := range s.failing {
		row, err := s.blocked(ctx, asked[i])
		if err != nil {
			return err
		}
		if row != nil {
			s.apply(row, Event{Kind: EventUpstream, Exception: f.failure})
		}
	}
	return nil
}

// blocked returns a future if it is blocked. One that can't be read is marked, so
// that a version of Futura that can read it links it again.
func (s *settlement) blocked(ctx context.Context, p read.Pending) (*layout.Row, error) {
	row, _, err := p.Wait(ctx)
	switch {
	case layout.IsUnreadable(err):
		s.tx.Set(s.cluster.keys.Settling(p.ID), layout.Encode(&layout.SettlingRecord{}))
		return nil, nil
	case err != nil || row.Spec == nil || row.State() != layout.Blocked:
		return nil, err
	}
	return &row, nil
}

// apply applies an event to a future that the transaction has not changed yet.
func (s *settlement) apply(row *layout.Row, e Event) {
	e.Now = s.cluster.clock.Now()
	if s.changed[row.ID] {
		return
	}
	s.changed[row.ID] = true
	if linked := s.inputs.rows[row.ID]; linked != nil && linked.Dependants {
		row.Dependants = true
	}
	if after, outcome := Next(*row, e); outcome == Applied {
		s.w.Apply(row, &after)
	}
}
