package fdbmodel

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// WriteSet is what one transaction changes of futures: their records, which it writes
// itself, and all that follows from them, which its indexes write. Nothing else writes
// either. It belongs to one goroutine.
type WriteSet struct {
	index.Set
	cluster *Cluster

	lanes    lane.Index
	places   index.Places
	ends     index.Ends
	counters index.Counters
	owners   index.Owners
	mail     index.Mail
	edges    index.Edges
	names    index.Names
	copies   index.Copies
	calls    index.Calls
	pool     pool
	lost     []layout.Row
	asked    []layout.Row // to stop
	made     unique.Made

	// take claims a future that its lane admits, and reports whether it did. Defaults to nil: none.
	take func(row *layout.Row) bool
}

// Change runs fn in a transaction that changes futures through w, and repeats it as
// Transact does: it is how a room of the model changes them. Each attempt has a write set of
// its own, which is flushed after fn. If the lane of a future can't be read, fn is called again
// with a write set that Skips the futures of that lane, so that the rest goes on. After the
// commit it wakes workers and clients, and resolves dependencies of what has ended. It returns
// what fn and Transact return; an unknown commit is retried, so fn must be one that may be repeated.
func (c *Cluster) Change(ctx context.Context, o kv.Options, fn func(tx kv.Attempt, w *WriteSet) error,
) (result kv.Result, err error) {
	then, maybe := postCommit{}, false
	err = skipUnreadable(func(skip skippedLanes) (err error) {
		result, err = c.Transact(ctx, o, func(tx kv.Attempt) error {
			w := c.write(tx)
			w.lanes.Skip, tx.MaybeCommitted = skip, tx.MaybeCommitted || maybe
			if err := fn(tx, w); err != nil {
				return err
			}
			if err := w.Flush(ctx); err != nil {
				return err
			}
			then = w.postCommit()
			return nil
		})
		maybe = maybe || kv.MaybeCommitted(err)
		return err
	})
	if err == nil {
		c.follow(ctx, result.Version, then)
	}
	return result, err
}

// Skips reports whether the transaction must leave a future alone, because its lane can't
// be read.
func (w *WriteSet) Skips(row *layout.Row) bool {
	return row.Spec != nil && w.lanes.Skips(row.Spec.Lane)
}

// Lanes are the lanes that the transaction changes, and may change more of.
func (w *WriteSet) Lanes() *lane.Index { return &w.lanes }

func (c *Cluster) write(tx kv.Tx) *WriteSet {
	w := newWriteSet(c.keys, tx, layout.Millis(c.clock.Now()), &c.lanes)
	w.cluster = c
	return w
}

func newWriteSet(keys layout.Keyspace, tx kv.Tx, now int64, known *lane.Known) *WriteSet {
	w := &WriteSet{Set: index.Set{Keys: keys, Tx: tx, Now: now}}
	s := &w.Set
	w.lanes = lane.Index{Set: s, Model: laneModel{w}, Known: known}
	w.places, w.ends = index.Places{Set: s}, index.Ends{Set: s}
	w.counters, w.owners, w.mail = index.Counters{Set: s}, index.Owners{Set: s}, index.Mail{Set: s}
	w.edges, w.names, w.copies = index.Edges{Set: s}, index.Names{Set: s}, index.Copies{Set: s}
	w.calls, w.pool.Set = index.Calls{Set: s}, s
	// Lanes come first: what they admit changes the others. Ends are before what obeys their time.
	s.Register(&w.lanes, w.places, &w.ends, &w.counters, &w.owners, &w.mail, &w.edges, w.names, &w.copies, &w.calls,
		&w.pool, index.Deadlines{Set: s}, index.Lists{Set: s}, step.Index{Set: s},
		fork.Index{Set: s})
	return w
}

// Kinds returns the kinds of keys of the model and of its indexes. The rooms above it have
// others, see package keyspace.
func Kinds() []layout.KeyKind {
	return slices.Concat(layout.Kinds(), meter.Kinds(), pause.Kinds(), step.Kinds(), fork.Kinds())
}

// insert writes a new future. Large arguments have been written before.
func (w *WriteSet) insert(row *layout.Row, args []byte) {
	w.Tx.Set(w.Keys.Spec(row.ID), layout.Encode(row.Spec))
	if row.Spec.ArgsKey {
		w.Tx.Set(w.Keys.Args(row.ID), args)
	}
	if row.Attempts != (layout.Attempts{}) {
		w.setAttempts(row)
	}
	if !row.Spec.Lane.IsZero() && !row.Spec.Bundle && row.State() == layout.Ready {
		row.Line = &layout.LineRecord{}
	}
	w.Update(nil, row)
}

// Put writes a new future that has its result. Large values have been written
// before.
func (w *WriteSet) Put(row *layout.Row) {
	w.Tx.Set(w.Keys.Spec(row.ID), layout.Encode(row.Spec))
	w.set(row.ID, layout.StateClaim, row.Claim, false)
	w.set(row.ID, layout.StateResult, row.Result, false)
	w.Update(nil, row)
}

// Apply writes the difference between two states of a future, as Next returns them. Both
// have their spec.
func (w *WriteSet) Apply(before, after *layout.Row) {
	w.applyRecords(before, after)
	w.Update(before, after)
}

// remove clears all of a terminal future. Its entry in the done list stays as a
// dangling reference.
func (w *WriteSet) remove(row *layout.Row) {
	w.Tx.ClearRange(w.Keys.RowRange(row.ID))
	w.Tx.ClearRange(kv.Prefix(w.Keys.ChunksOfFuture(row.ID)))
	w.Update(row, nil)
}

// Expire removes a terminal future, and reports whether it did. One that is still needed it
// Keeps.
func (w *WriteSet) Expire(ctx context.Context, row *layout.Row) (bool, error) {
	released, err := edge.IsReleased(ctx, w.Tx, w.Keys, row)
	if err != nil {
		return false, err
	}
	if !released {
		w.Keep(row.ID)
		return false, nil
	}
	w.remove(row)
	return true, nil
}

// Keep lists a future as one that has ended with the transaction: it may expire after
// another retention.
func (w *WriteSet) Keep(id layout.ID) { w.ends.Add(id) }

// Lost has the listener of OnLost told of a future that the transaction fails, after the
// commit.
func (w *WriteSet) Lost(row *layout.Row) { w.lost = append(w.lost, *row) }

// claim writes what apply writes for EventClaim on waiting futures, without
// reading their rows: from their entries in the index. The transaction conflicts
// if an entry is gone by the time it commits. Call it before other writes: a
// store compares each conflict that is added later with the keys written so far.
func (w *WriteSet) claim(entries []layout.ReadyEntry, token layout.Token) {
	for i := range entries {
		w.Tx.AddReadConflictKey(entries[i].Key)
	}
	claim := layout.EncodeStamped(&layout.Claim{Token: token})
	for i := range entries {
		e := &entries[i]
		w.setStamped(e.ID, layout.StateClaim, claim)
		w.Tx.Clear(e.Key)
		w.counters.Move(e.ID, e.Class.Queue, e.Owner, layout.Ready, layout.Claimed)
	}
}

// unclaim writes what apply writes for EventRelinquish on a claimed future whose
// cancellation was not requested, without its row: from the entry that it was
// claimed by. The caller has read the claim.
func (w *WriteSet) unclaim(e *layout.ReadyEntry) {
	w.Tx.Clear(w.Keys.State(e.ID, layout.StateClaim))
	w.Tx.Set(e.Key, e.Value())
	w.owners.Wake(e.Owner)
	w.counters.Move(e.ID, e.Class.Queue, e.Owner, layout.Claimed, layout.Ready)
}

func (w *WriteSet) applyRecords(before, after *layout.Row) {
	id := after.ID
	if before.Attempts != after.Attempts {
		w.setAttempts(after)
	}
	if before.Claim != after.Claim {
		w.set(id, layout.StateClaim, after.Claim, after.Claim == nil)
	}
	if before.Cancel != after.Cancel {
		w.set(id, layout.StateCancel, after.Cancel, after.Cancel == nil)
	}
	if before.Line != nil && after.Line == nil {
		w.Tx.Clear(w.Keys.State(id, layout.StateLine))
	}
	if before.Exception != after.Exception {
		w.set(id, layout.StateException, after.Exception, after.Exception == nil)
	}
	if before.History != after.History {
		w.set(id, layout.StateHistory, after.History, after.History == nil)
	}
	if before.Result != after.Result {
		w.set(id, layout.StateResult, after.Result, after.Result == nil)
	}
}

// set writes or clears a mutable record of a future.
func (w *WriteSet) set(id layout.ID, field string, record layout.Record, gone bool) {
	key := w.Keys.State(id, field)
	switch {
	case gone:
		w.Tx.Clear(key)
	case field == layout.StateClaim || field == layout.StateResult:
		w.setStamped(id, field, layout.EncodeStamped(record))
	default:
		w.Tx.Set(key, layout.Encode(record))
	}
}

func (w *WriteSet) setStamped(id layout.ID, field string, value []byte) {
	w.Stamped = append(w.Stamped, id)
	w.Tx.SetVersionstampedValue(w.Keys.State(id, field), value, layout.StampOffset)
}

func (w *WriteSet) setAttempts(row *layout.Row) {
	w.set(row.ID, layout.StateAttempts, &row.Attempts, row.Attempts == (layout.Attempts{}))
}

// pool counts the futures that any suitable worker may take from now on.
type pool struct {
	*index.Set
	placed notify.Demands
}

// Update implements index.Index. Whoever submits futures wakes workers for them.
func (p *pool) Update(before, after *layout.Row) {
	if before != nil && after != nil && after.InPool() {
		p.offer(after)
	}
}

func (p *pool) offer(row *layout.Row) { p.placed.AddRow(row, row.ID.Shard(p.Keys.Shards), p.Now) }

// Flush implements index.Index.
func (p *pool) Flush(context.Context) error { return nil }

// laneModel is what the lanes of a write set need of it.
type laneModel struct{ w *WriteSet }

func (m laneModel) Now() time.Time                  { return m.w.cluster.clock.Now() }
func (m laneModel) Incarnation() int64              { return m.w.cluster.config.Incarnation }
func (m laneModel) Apply(before, after *layout.Row) { m.w.Apply(before, after) }
func (m laneModel) Insert(row *layout.Row)          { m.w.insert(row, nil) }
func (m laneModel) Place(row *layout.Row)           { m.w.places.Put(row) }
func (m laneModel) Offer(row *layout.Row)           { m.w.pool.offer(row) }
func (m laneModel) DrawID() (id layout.ID, err error) {
	ids, err := m.w.cluster.DrawIDs(1)
	if err != nil {
		return id, err
	}
	return ids[0], nil
}

func (m laneModel) Admit(row *layout.Row, now time.Time) bool {
	outcome := state.Apply(row, &state.Event{Kind: state.EventAdmit, Now: now})
	if outcome == Applied && m.w.take != nil {
		m.w.take(row)
	}
	return outcome == Applied
}

// postCommit is what is to be done once a transaction has committed. All of it is
// best effort.
type postCommit struct {
	placed notify.Demands // futures to wake workers for
	called []layout.WorkerID
	marks  []index.Mark // dependencies to resolve
	mail   map[layout.SessionID][]layout.Notice
	lost   []layout.Row
	asked  []layout.Row // whose workers hear that they are to stop
}

// offer adds the futures that were submitted in the write set. Their marks and mail are in it.
func (p *postCommit) offer(submitted postCommit) {
	p.placed.AddAll(submitted.placed)
	p.called = append(p.called, submitted.called...)
}

func (w *WriteSet) postCommit() postCommit {
	return postCommit{w.pool.placed, w.calls.Workers, w.edges.Marks, w.mail.Notices, w.lost, w.asked}
}

// follow does what is to be done after a transaction that committed at version.
func (c *Cluster) follow(ctx context.Context, version kv.Version, p postCommit) {
	c.announce(ctx, version, p)
	c.ResolveMarked(ctx)
}

// announce is follow for callers of ResolveMarked.
func (c *Cluster) announce(ctx context.Context, version kv.Version, p postCommit) {
	if len(p.mail) > 0 {
		c.notices.Tell(p.mail, version)
	}
	if len(p.lost) > 0 {
		c.lost.Tell(p.lost)
	}
	c.notifier.Wake(ctx, version, p.placed)
	for _, worker := range p.called {
		c.notifier.WakeWorker(worker)
	}
	for i := range p.asked {
		c.notifier.HintCancel(p.asked[i].Claim.Worker, p.asked[i].ID)
	}
	c.edges.Add(p.marks)
}
