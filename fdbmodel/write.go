package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// changes collects the changes that one transaction makes to futures. It keeps
// the rows, the index, the counters, the mailboxes and the done list in step:
// nothing else in the package writes them.
type changes struct {
	keys layout.Keyspace
	tx   kv.Tx
	now  int64

	counts map[layout.ShardCount]int64
	mail   map[layout.SessionID][]layout.Notice
	done   []layout.ID
	owners map[string]struct{} // owners whose bell is to ring
	placed demands             // futures that entered the pool
	open   map[layout.OpenKey]int64
	// losing is set while a worker dies or leaves, and lost are the open futures that it loses.
	losing bool
	lost   map[layout.OpenKey]int
	copies uint16 // of results, written so far
	// settling is what is to be settled after the commit.
	settling []mark
	// told are futures that the transaction realizes and all of whose users it tells
	// so itself.
	told map[layout.ID]bool

	cluster *Cluster
	// lanes are those whose slots or lines change, in the order in which they were
	// met.
	lanes []*laneChange
	kinds map[string]*kindState
	// shared says that the transaction is the caller's: others may have put futures in
	// line before, which can't be read.
	shared bool
	// laneDue is when the first lane is to be looked at again that the transaction holds
	// back, 0 for none.
	laneDue int64
}

func (c *Cluster) changes(tx kv.Tx) *changes {
	return &changes{keys: c.keys, tx: tx, now: layout.Millis(c.clock.Now()), cluster: c}
}

// insert writes a new future. Large arguments have been written before.
func (w *changes) insert(row *layout.Row, args []byte) {
	w.tx.Set(w.keys.Spec(row.ID), layout.Encode(row.Spec))
	if row.Spec.ArgsKey {
		w.tx.Set(w.keys.Args(row.ID), args)
	}
	if row.Attempts != (layout.Attempts{}) {
		w.setAttempts(row)
	}
	if !row.Spec.Lane.IsZero() && !row.Spec.Bundle && row.State() == layout.Ready {
		row.Line = &layout.LineRecord{}
		w.join(row, true)
	}
	w.place(row)
	w.keepLimit(&layout.Row{}, row)
	w.ringOwner(row)
	w.countOpen(row, 1)
	w.count(row.ID, row.Spec.Queue, row.Spec.Owner, row.State(), 1)
	if row.Spec.Unique != nil {
		w.takeName(row)
	}
	w.list(nil, row)
}

// put writes a new future that has its result. Large values have been written
// before.
func (w *changes) put(row *layout.Row) {
	w.tx.Set(w.keys.Spec(row.ID), layout.Encode(row.Spec))
	w.set(row.ID, layout.StateClaim, row.Claim, false)
	w.set(row.ID, layout.StateResult, row.Result, false)
	w.count(row.ID, row.Spec.Queue, row.Spec.Owner, layout.Realized, 1)
	w.list(nil, row)
	w.finish(row)
	if row.Object() != "" {
		w.addCopy(row, row.Result.Worker)
	}
}

// apply writes the difference between two states of a future. Both have their
// spec.
func (w *changes) apply(before, after *layout.Row) {
	w.applyRecords(before, after)
	from, to := before.State(), after.State()
	w.unplace(before)
	w.place(after)
	w.changeLane(before, after)
	w.keepLimit(before, after)
	w.ringOwner(after)
	w.countOpen(before, -1)
	w.countOpen(after, 1)
	if w.losing && before.Open() && !after.Open() {
		w.lose(before)
	}
	if from != to {
		w.moveCount(after.ID, after.Spec.Queue, after.Spec.Owner, from, to)
	}
	if to.Terminal() && from != to {
		w.finish(after)
		w.leaveEdges(before, after)
	}
	if after.Spec.Unique != nil {
		w.changeName(before, after)
	}
	w.changeCopies(before, after)
	w.list(before, after)
	if from != to && to == layout.Blocked {
		w.markSettling(after.ID, &layout.SettlingRecord{})
	}
	if after.InPool() {
		w.placed.addRow(after, after.ID.Shard(w.keys.Shards), w.now)
	}
}

// claim writes what apply writes for EventClaim on waiting futures, without
// reading their rows: from their entries in the index. The transaction conflicts
// if an entry is gone by the time it commits. Call it before other writes: a
// store compares each conflict that is added later with the keys written so far.
func (w *changes) claim(entries []layout.ReadyEntry, token layout.Token) {
	for i := range entries {
		w.tx.AddReadConflictKey(entries[i].Key)
	}
	claim := layout.EncodeStamped(&layout.Claim{Token: token})
	for i := range entries {
		e := &entries[i]
		w.tx.SetVersionstampedValue(w.keys.State(e.ID, layout.StateClaim), claim, layout.StampOffset)
		w.tx.Clear(e.Key)
		w.moveCount(e.ID, e.Class.Queue, e.Owner, layout.Ready, layout.Claimed)
	}
}

// unclaim writes what apply writes for EventRelinquish on a claimed future whose
// cancellation was not requested, without its row: from the entry that it was
// claimed by. The caller has read the claim.
func (w *changes) unclaim(e *layout.ReadyEntry) {
	w.tx.Clear(w.keys.State(e.ID, layout.StateClaim))
	w.tx.Set(e.Key, e.Value())
	w.ringBell(e.Owner)
	w.moveCount(e.ID, e.Class.Queue, e.Owner, layout.Claimed, layout.Ready)
}

func (w *changes) applyRecords(before, after *layout.Row) {
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
		w.tx.Clear(w.keys.State(id, layout.StateLine))
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
func (w *changes) set(id layout.ID, field string, record layout.Record, gone bool) {
	key := w.keys.State(id, field)
	switch {
	case gone:
		w.tx.Clear(key)
	case field == layout.StateClaim || field == layout.StateResult:
		w.tx.SetVersionstampedValue(key, layout.EncodeStamped(record), layout.StampOffset)
	default:
		w.tx.Set(key, layout.Encode(record))
	}
}

func (w *changes) setAttempts(row *layout.Row) {
	w.set(row.ID, layout.StateAttempts, &row.Attempts, row.Attempts == (layout.Attempts{}))
}

// place puts an unclaimed future where it waits. One that gets in line is put there
// at the end of the transaction, if its lane has no room.
func (w *changes) place(row *layout.Row) {
	if row.Line != nil && row.Line.Fresh() {
		return
	}
	if p := layout.PlaceOf(row); p != nil {
		w.tx.Set(p.Key(w.keys, row), p.Value(row))
	}
}

func (w *changes) unplace(row *layout.Row) {
	if p := layout.PlaceOf(row); p != nil {
		w.tx.Clear(p.Key(w.keys, row))
	}
}

// ringOwner records that the process that drives an owner of held futures has
// to look: one has ended, was assigned, or waits for an assignment.
func (w *changes) ringOwner(row *layout.Row) {
	if row.State() != layout.Claimed {
		w.ringBell(row.Spec.Owner)
	}
}

// ringBell rings the bell of the owner of a held future; others have an empty
// one.
func (w *changes) ringBell(owner string) {
	if owner == "" {
		return
	}
	if w.owners == nil {
		w.owners = map[string]struct{}{}
	}
	w.owners[owner] = struct{}{}
}

func (w *changes) countOpen(row *layout.Row, n int64) {
	if !row.Open() {
		return
	}
	if w.open == nil {
		w.open = map[layout.OpenKey]int64{}
	}
	w.open[layout.OpenKey{Owner: row.Spec.Owner, Reason: row.Attempts.Reason}] += n
}

func (w *changes) moveCount(id layout.ID, queue, owner string, from, to layout.State) {
	w.count(id, queue, owner, from, -1)
	w.count(id, queue, owner, to, 1)
}

func (w *changes) count(id layout.ID, queue, owner string, s layout.State, n int64) {
	if w.counts == nil {
		w.counts = map[layout.ShardCount]int64{}
	}
	key := layout.CountKey{Queue: queue, Owner: owner, State: s}
	w.counts[layout.ShardCount{Shard: id.Shard(w.keys.Shards), CountKey: key}] += n
}

// finish notifies the waiting sessions and the janitor.
func (w *changes) finish(row *layout.Row) {
	// Held futures stay until the process that drives their owner discards
	// them.
	if !row.Spec.Held() {
		w.done = append(w.done, row.ID)
	}
	w.now = max(w.now, row.FinishedAt())
	if w.mail == nil {
		w.mail = map[layout.SessionID][]layout.Notice{}
	}
	notice := noticeOf(row)
	if row.Spec.Session != "" {
		w.mail[row.Spec.Session] = append(w.mail[row.Spec.Session], notice)
	}
	for _, s := range row.Subscribers {
		if s != row.Spec.Session {
			w.mail[s] = append(w.mail[s], notice)
		}
	}
}

// flush admits futures to lanes, and writes the records that are written once per
// transaction.
func (w *changes) flush(ctx context.Context) error {
	if err := w.settleLanes(ctx); err != nil {
		return err
	}
	for k, n := range w.counts {
		if n != 0 {
			w.tx.Atomic(kv.Add, w.keys.Count(k.Shard, k.Queue, k.Owner, k.State), layout.EncodeCounter(n))
		}
	}
	if len(w.done) > 0 {
		value := layout.Encode(&layout.DoneEntry{At: w.now, IDs: layout.PackIDs(w.done)})
		key, offset := tuple.AppendIncompleteStamp(w.keys.DoneOf(w.done[0].Shard(w.keys.Shards)), 0)
		w.tx.SetVersionstampedKey(key, offset, value)
	}
	for session, notices := range w.mail {
		w.flushMail(session, notices)
	}
	for k, n := range w.open {
		if n != 0 {
			w.tx.Atomic(kv.Add, w.keys.OwnerOpen(k.Owner, k.Reason), layout.EncodeCounter(n))
		}
	}
	if err := w.flushLost(ctx); err != nil {
		return err
	}
	for owner := range w.owners {
		w.tx.SetVersionstampedValue(w.keys.OwnerBell(owner), layout.EncodeBell(), layout.StampOffset)
	}
	return nil
}

// flushMail packs the notices of one session into as few values as possible.
func (w *changes) flushMail(session layout.SessionID, notices []layout.Notice) {
	var part []byte
	order, n := uint16(0), 0
	put := func() {
		key, offset := tuple.AppendIncompleteStamp(w.keys.Mailbox(session), order)
		w.tx.SetVersionstampedKey(key, offset, layout.MailValue(part, n))
		order, n, part = order+1, 0, nil
	}
	for i := range notices {
		before := len(part)
		if part = layout.AppendNotice(part, &notices[i]); len(part) > maxMailValue && before > 0 {
			last := part[before:]
			part = part[:before]
			put()
			part = append(part, last...)
		}
		n++
	}
	put()
	w.tx.SetVersionstampedValue(w.keys.Bell(session), layout.EncodeBell(), layout.StampOffset)
}

// aftermath is what is to be done once a transaction has committed. All of it is
// best effort.
type aftermath struct {
	placed   demands // workers to wake
	settling []mark  // edges to settle
	mail     map[layout.SessionID][]layout.Notice
}

func (w *changes) aftermath() aftermath { return aftermath{w.placed, w.settling, w.mail} }

// follow does what is to be done after a transaction that committed at version.
func (c *Cluster) follow(ctx context.Context, version kv.Version, a aftermath) {
	c.announce(ctx, version, a)
	c.SettleMarked(ctx)
}

// announce is follow for callers of SettleMarked.
func (c *Cluster) announce(ctx context.Context, version kv.Version, a aftermath) {
	c.mail.tell(a.mail)
	c.wakeIdle(ctx, version, a.placed)
	c.marked.add(a.settling)
}
