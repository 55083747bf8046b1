package edge

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
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// maxMarks is the maximum number of marks that one transaction resolves.
const maxMarks = 64

// MaxPiece is the maximum number of edges that one transaction resolves. Each may end a
// future, with all that its end changes, and others wait for such a commit.
const MaxPiece = 4 * maxMarks

// Resolve resolves marked dependencies that the processes which marked them did not:
// futures that use a result are unblocked, or fail with it. It returns of how many, whether
// to call it again at once, and an error that names some of the futures of which something
// can't be read: they stay blocked, and the rest is resolved. Thousands of those don't hold up
// what is behind them: one call goes on where the former has ended.
func (r *Resolver) Resolve(ctx context.Context) (resolved int, more bool, err error) {
	var marks []index.Mark
	var scan *shards.Scan
	err = r.Model.View(ctx, func(tx kv.Attempt) error {
		marks, scan = nil, r.at.Read(tx.Snapshot(), r.Keys.Shards, r.Keys.ResolveOf, maxMarks)
		for {
			item, skip, err := scan.Next(ctx)
			if err != nil || item.Key == nil {
				return err
			}
			rest := tuple.NewReader(item.Key[skip:])
			next := index.Mark{ID: layout.ID(rest.UUID())}
			if len(rest.Rest()) > 0 {
				rest.Expect(layout.CheckPart)
				next.Input = layout.ID(rest.UUID())
			}
			if rest.Done() == nil && !r.marked.knows(next) {
				marks = append(marks, next)
			}
		}
	})
	if err != nil {
		return 0, false, err
	}
	var unreadable []error
	for part := range slices.Chunk(marks, maxMarks) {
		alone := [][]index.Mark{part}
		for i := 0; i < len(alone); i++ {
			n, left, failed, err := r.ResolveMarks(ctx, alone[i])
			if layout.IsUnreadable(err) { // the lane of a future that is unblocked, or fails
				if failed = []error{err}; len(alone[i]) > 1 {
					alone, failed = slices.AppendSeq(alone, slices.Chunk(part, 1)), nil
				}
				err = nil
			}
			if err != nil {
				return resolved, false, err
			}
			resolved, more, unreadable = resolved+n, more || len(left) > 0, append(unreadable, failed...)
		}
	}
	r.at.Keep(scan)
	return resolved, more || scan.IsCut(), joinSome(unreadable)
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

// ResolveMarks resolves dependencies in one transaction. It returns of how many marks, what
// is left to resolve at once, and of which futures something can't be read, which are left
// to a janitor.
func (r *Resolver) ResolveMarks(ctx context.Context, marks []index.Mark,
) (resolved int, left []index.Mark, unreadable []error, err error) {
	var ids []layout.ID
	var checks []index.Mark
	for _, m := range marks {
		if m.Input.IsZero() {
			ids = append(ids, m.ID)
		} else {
			checks = append(checks, m)
		}
	}
	var s *resolution
	result, err := r.Model.Transact(ctx, kv.Options{Tag: "futura-resolve", Turns: true}, func(tx kv.Attempt) error {
		changes := r.Model.Write(tx)
		s = &resolution{Resolver: r, tx: tx, changes: changes, edges: changes.Edges(), inputs: NewInputs(tx, r.Keys),
			limit: MaxPiece / max(1, len(ids)), changed: map[layout.ID]bool{}}
		s.realized = Dependants{Edges: s.edges, Checks: tx.Number > 1} // so it repeats once at most for ends of inputs
		if err := s.check(ctx, checks); err != nil {
			return err
		}
		if err := s.run(ctx, ids); err != nil {
			return err
		}
		return changes.Flush(ctx)
	})
	if err != nil {
		return 0, nil, nil, err
	}
	s.changes.Committed(ctx, result.Version)
	left = s.reportLost(ctx, s.edges.Marks)
	return s.resolved, left, s.unreadable, nil
}

// resolution is one transaction that resolves dependencies.
type resolution struct {
	*Resolver
	tx       kv.Attempt
	changes  Changes
	edges    *index.Edges
	inputs   *Inputs
	limit    int // how many edges of one future
	resolved int
	realized Dependants
	failing  []failing
	changed  map[layout.ID]bool
	near     []*layout.Row // to be unblocked, and taken by the worker that has their inputs
	lost     []lostNear    // objects that no worker has
	// unreadable says which futures wait for what can't be read.
	unreadable []error
}

// failing is a future one of whose inputs has failed.
type failing struct {
	id      layout.ID
	failure *layout.Exception
}

// check checks whether futures still wait for inputs after some have ended, and unblocks
// those that don't. It relies on the rows of these alone. Where an input is left, its end is
// yet to come, and is followed by another check. A mark is cleared only if it is the one that
// was there: the end of an input that was made again has the same.
func (r *resolution) check(ctx context.Context, marks []index.Mark) error {
	keys := r.Keys
	ids := make([]layout.ID, 0, len(marks))
	for _, m := range marks {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	unreadable, err := r.unblock(ctx, ids)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if !slices.Contains(unreadable, m.ID) {
			r.tx.AddReadConflictKey(keys.PendingCheck(m.ID, m.Input))
			r.tx.Clear(keys.PendingCheck(m.ID, m.Input))
			r.resolved++
		}
	}
	return nil
}

// unblock unblocks those of some futures that wait for no input. It returns those of
// which only a newer version knows.
func (r *resolution) unblock(ctx context.Context, ids []layout.ID) (unreadable []layout.ID, err error) {
	keys := r.Keys
	others := check{tx: r.tx.Snapshot(), keys: keys}
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
			r.tx.AddReadConflictRange(keys.RecordRange(rows[i].ID))
			r.ready(&rows[i])
		}
	}
	return unreadable, nil
}

func (r *resolution) run(ctx context.Context, ids []layout.ID) error {
	keys := r.Keys
	rows, marks := make([]read.Pending, len(ids)), make([]kv.Pending[[]byte], len(ids))
	for i, id := range ids {
		rows[i], marks[i] = read.Record(r.tx, keys, id), r.tx.Get(keys.Resolve(id))
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
		if value == nil || layout.Decode(keys.Resolve(id), value, &next.mark) != nil {
			continue // it is resolved, or an audit reports it
		}
		r.askDependants(&next)
		steps = append(steps, next)
	}
	for i := range steps {
		if err := r.one(ctx, &steps[i]); layout.IsUnreadable(err) {
			continue
		} else if err != nil {
			return err
		}
		r.resolved++
	}
	if err := r.realized.Read(ctx); err != nil {
		return err
	}
	r.realized.Notify(r.apply)
	if err := r.unblockNear(ctx); err != nil {
		return err
	}
	return r.fail(ctx)
}

// step is the next step for one future.
type step struct {
	row      layout.Row
	mark     layout.ResolveRecord
	users    kv.Pending[kv.Page] // the next futures to notify that it has ended
	notifies bool
}

// askDependants requests the next futures that use the result of one that has ended.
func (r *resolution) askDependants(next *step) {
	if next.row.Spec == nil || !next.row.State().Terminal() || !next.row.Dependants {
		return
	}
	keys, id := r.Keys, next.row.ID
	users := kv.Prefix(keys.DependantsOf(id))
	if !next.mark.Notified.IsZero() {
		users.Begin = kv.After(keys.Dependant(id, next.mark.Notified))
	}
	next.notifies, next.users = true, r.tx.GetRange(users, kv.RangeOptions{Limit: r.limit})
}

// one takes the next step for one future.
func (r *resolution) one(ctx context.Context, next *step) error {
	row, mark := &next.row, &next.mark
	switch {
	case row.Spec == nil:
	case row.State() == layout.Blocked && row.Spec.HasInputs():
		return r.link(ctx, row)
	case row.State().Terminal():
		more, err := r.notify(ctx, next)
		if err != nil {
			return err
		}
		if !more {
			if more, err = r.release(ctx, row, mark); err != nil {
				return err
			}
		}
		if more {
			r.edges.Mark(row.ID, mark)
			return nil
		}
	}
	r.tx.Clear(r.Keys.Resolve(row.ID))
	return nil
}

// link links the next inputs to a blocked future. One that was notified of an
// input while it could not be read begins again.
func (r *resolution) link(ctx context.Context, row *layout.Row) error {
	keys, n := r.Keys, row.Spec.CountInputs()
	if n < 1 {
		return fmt.Errorf("future %s: %w: a list of %d inputs", row.ID, layout.ErrBadRecord, n)
	}
	first := row.Blocked.Linked % n
	inputs, err := Some(ctx, r.tx, r.Keys, row, first, r.limit)
	if err != nil {
		return err
	}
	r.inputs.Ask(inputs, nil)
	waiting, failure, err := r.inputs.link(ctx, row, inputs)
	var missing *noInputError
	if errors.As(err, &missing) {
		failure, err = missing.failure(), nil
	}
	if err != nil {
		return err
	}
	if failure != nil {
		r.tx.Clear(keys.Resolve(row.ID))
		r.apply(row, state.Event{Kind: state.EventUpstream, Exception: failure})
		return nil
	}
	linked := *row
	linked.Blocked = &layout.BlockedRecord{Linked: first + len(inputs), Objects: row.Blocked.Objects ||
		r.inputs.haveObjects(row, inputs...)}
	if linked.Blocked.Linked < n {
		r.changes.Place(&linked)
		r.edges.Mark(row.ID, &layout.ResolveRecord{})
		return nil
	}
	r.tx.Clear(keys.Resolve(row.ID))
	if waiting == 0 && row.Spec.ListsInputs() {
		page, err := r.tx.GetRange(kv.Prefix(keys.InputsOf(row.ID)), kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return err
		}
		waiting = len(page.Items)
	}
	if waiting > 0 {
		r.changes.Place(&linked)
		return nil
	}
	r.ready(&linked)
	return nil
}

// notify finds the next futures that use the result of one that has ended.
func (r *resolution) notify(ctx context.Context, next *step) (more bool, err error) {
	if !next.notifies {
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
		mark.Notified = user
		if row.State() == layout.Failed {
			r.failing = append(r.failing, failing{user, upstream(row)})
			continue
		}
		r.realized.add(user, row.ID)
	}
	return page.More, nil
}

// release ends the use of the next inputs by a future that has ended and that
// had too many to release them at once.
func (r *resolution) release(ctx context.Context, row *layout.Row, mark *layout.ResolveRecord) (more bool, err error) {
	if row.Spec.InputsRef == nil || mark.Released >= row.Spec.CountInputs() {
		return false, nil
	}
	inputs, err := Some(ctx, r.tx, r.Keys, row, mark.Released, r.limit)
	if err != nil {
		return false, err
	}
	for _, input := range inputs {
		r.tx.Clear(r.Keys.Dependant(input, row.ID))
	}
	mark.Released += len(inputs)
	return mark.Released < row.Spec.CountInputs(), nil
}

// fail fails the blocked futures one of whose inputs has failed.
func (r *resolution) fail(ctx context.Context) error {
	asked := make([]read.Pending, len(r.failing))
	for i, f := range r.failing {
		asked[i] = read.Record(r.tx, r.Keys, f.id)
	}
	for i, f := range r.failing {
		row, err := r.blocked(ctx, asked[i])
		if err != nil {
			return err
		}
		if row != nil {
			r.apply(row, state.Event{Kind: state.EventUpstream, Exception: f.failure})
		}
	}
	return nil
}

// blocked returns a future if it is blocked. One that can't be read is marked, so
// that a version of Futura that can read it links it again.
func (r *resolution) blocked(ctx context.Context, p read.Pending) (*layout.Row, error) {
	row, _, err := p.Wait(ctx)
	switch {
	case layout.IsUnreadable(err):
		r.tx.Set(r.Keys.Resolve(p.ID), layout.Encode(&layout.ResolveRecord{}))
		return nil, nil
	case err != nil || row.Spec == nil || row.State() != layout.Blocked:
		return nil, err
	}
	return &row, nil
}

// apply applies an event to a future that the transaction has not changed yet.
func (r *resolution) apply(row *layout.Row, e state.Event) {
	e.Now = r.Model.Now()
	if r.changed[row.ID] {
		return
	}
	r.changed[row.ID] = true
	if linked := r.inputs.rows[row.ID]; linked != nil && linked.Dependants {
		row.Dependants = true
	}
	if after, outcome := state.Next(*row, e); outcome == state.Applied {
		r.changes.Apply(row, &after)
	}
}
