package fdbmodel

import (
	"encoding/binary"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// changes collects what one transaction does to futures. It keeps the rows,
// the index, the counters, the mailboxes and the done list in step: nothing
// else in the package writes them, but for a claim, which is blind.
type changes struct {
	keys layout.Keyspace
	tx   kv.Tx
	now  int64

	counts map[layout.ShardCount]int64
	mail   map[layout.SessionID][]layout.Notice
	done   []layout.ID
	groups map[string]struct{} // whose bell is to ring
	open   map[layout.OpenKey]int64
}

func (c *Cluster) changes(tx kv.Tx) *changes {
	return &changes{keys: c.keys, tx: tx, now: layout.Millis(c.clock.Now())}
}

// insert writes a new future. Large arguments have been written before.
func (w *changes) insert(row *layout.Row, args []byte) error {
	spec, err := layout.Encode(row.Spec)
	if err != nil {
		return err
	}
	w.tx.Set(w.keys.Spec(row.ID), spec)
	if row.Spec.ArgsKey {
		w.tx.Set(w.keys.Args(row.ID), args)
	}
	if row.Attempts != (layout.Attempts{}) {
		if err := w.setAttempts(row); err != nil {
			return err
		}
	}
	w.place(row)
	w.ringGroup(row)
	w.countOpen(row, 1)
	w.count(row.ID, row.Spec.Queue, row.Spec.Group, row.State(), 1)
	return nil
}

// apply writes the difference between two states of a future. Both have their
// spec.
func (w *changes) apply(before, after *layout.Row) error {
	if err := w.applyRecords(before, after); err != nil {
		return err
	}
	from, to := before.State(), after.State()
	w.unplace(before)
	w.place(after)
	w.ringGroup(after)
	w.countOpen(before, -1)
	w.countOpen(after, 1)
	if from != to {
		w.count(after.ID, after.Spec.Queue, after.Spec.Group, from, -1)
		w.count(after.ID, after.Spec.Queue, after.Spec.Group, to, 1)
	}
	if to.Terminal() && !from.Terminal() {
		w.finish(after)
	}
	return nil
}

func (w *changes) applyRecords(before, after *layout.Row) error {
	if before.Attempts != after.Attempts {
		if err := w.setAttempts(after); err != nil {
			return err
		}
	}
	if before.Claim != after.Claim {
		if err := setOrClear(w, after.ID, layout.StateClaim, after.Claim, layout.EncodeStamped); err != nil {
			return err
		}
	}
	if before.Cancel != after.Cancel {
		if err := setOrClear(w, after.ID, layout.StateCancel, after.Cancel, layout.Encode); err != nil {
			return err
		}
	}
	if before.Exception != after.Exception {
		if err := setOrClear(w, after.ID, layout.StateException, after.Exception, layout.Encode); err != nil {
			return err
		}
	}
	if before.Result != after.Result {
		return setOrClear(w, after.ID, layout.StateResult, after.Result, layout.EncodeStamped)
	}
	return nil
}

func setOrClear[T any](w *changes, id layout.ID, field string, record *T, encode func(any) ([]byte, error)) error {
	key := w.keys.State(id, field)
	if record == nil {
		w.tx.Clear(key)
		return nil
	}
	value, err := encode(record)
	if err != nil {
		return err
	}
	if field == layout.StateClaim || field == layout.StateResult {
		w.tx.SetVersionstampedValue(key, value, layout.StampOffset)
	} else {
		w.tx.Set(key, value)
	}
	return nil
}

func (w *changes) setAttempts(row *layout.Row) error {
	key := w.keys.State(row.ID, layout.StateAttempts)
	if row.Attempts == (layout.Attempts{}) {
		w.tx.Clear(key)
		return nil
	}
	value, err := layout.Encode(&row.Attempts)
	if err == nil {
		w.tx.Set(key, value)
	}
	return err
}

// place puts an unclaimed future where it waits.
func (w *changes) place(row *layout.Row) {
	switch s := row.State(); {
	case s == layout.Ready, s == layout.Delayed && row.Spec.Held:
		w.tx.Set(w.keys.Waits(row), []byte(row.Spec.Function))
	case s == layout.Delayed:
		w.tx.Set(w.keys.Delayed(row.ID, row.Attempts.Due), nil)
	}
}

func (w *changes) unplace(row *layout.Row) {
	switch s := row.State(); {
	case s == layout.Ready, s == layout.Delayed && row.Spec.Held:
		w.tx.Clear(w.keys.Waits(row))
	case s == layout.Delayed:
		w.tx.Clear(w.keys.Delayed(row.ID, row.Attempts.Due))
	}
}

// ringGroup takes note that whoever drives a group of held futures has to look:
// one has ended, was assigned, or waits for that.
func (w *changes) ringGroup(row *layout.Row) {
	if row.Spec.Held && row.State() != layout.Claimed {
		if w.groups == nil {
			w.groups = map[string]struct{}{}
		}
		w.groups[row.Spec.Group] = struct{}{}
	}
}

func (w *changes) countOpen(row *layout.Row, n int64) {
	if !row.Open() {
		return
	}
	if w.open == nil {
		w.open = map[layout.OpenKey]int64{}
	}
	w.open[layout.OpenKey{Group: row.Spec.Group, Why: row.Attempts.Why}] += n
}

func (w *changes) count(id layout.ID, queue, group string, s layout.State, n int64) {
	if w.counts == nil {
		w.counts = map[layout.ShardCount]int64{}
	}
	w.counts[layout.ShardCount{Shard: id.Shard(w.keys.Shards), Queue: queue, Group: group, State: s}] += n
}

// finish tells those who wait, and the janitor.
func (w *changes) finish(row *layout.Row) {
	// Held futures stay until whoever drives their group discards them.
	if !row.Spec.Held {
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

// flush writes what is kept once per transaction.
func (w *changes) flush() error {
	for k, n := range w.counts {
		if n != 0 {
			w.tx.Atomic(kv.Add, w.keys.Count(k.Shard, k.Queue, k.Group, k.State), layout.EncodeCounter(n))
		}
	}
	if err := w.flushDone(); err != nil {
		return err
	}
	for session, notices := range w.mail {
		if err := w.flushMail(session, notices); err != nil {
			return err
		}
	}
	for k, n := range w.open {
		if n != 0 {
			w.tx.Atomic(kv.Add, w.keys.GroupOpen(k.Group, k.Why), layout.EncodeCounter(n))
		}
	}
	if len(w.groups) == 0 {
		return nil
	}
	bell, err := layout.EncodeStamped(struct{}{})
	if err != nil {
		return err
	}
	for group := range w.groups {
		w.tx.SetVersionstampedValue(w.keys.GroupBell(group), bell, layout.StampOffset)
	}
	return nil
}

func (w *changes) flushDone() error {
	if len(w.done) == 0 {
		return nil
	}
	value, err := layout.Encode(&layout.DoneEntry{At: w.now, IDs: layout.PackIDs(w.done)})
	if err != nil {
		return err
	}
	prefix := w.keys.DoneOf(w.done[0].Shard(w.keys.Shards))
	key, offset := tuple.AppendIncompleteStamp(prefix, 0)
	w.tx.SetVersionstampedKey(key, offset, value)
	return nil
}

// flushMail packs the notices of one session into as few values as hold them.
func (w *changes) flushMail(session layout.SessionID, notices []layout.Notice) error {
	var part []byte
	order, n := uint16(0), 0
	put := func() {
		value := binary.BigEndian.AppendUint32([]byte{layout.RecordVersion}, uint32(n))
		key, offset := tuple.AppendIncompleteStamp(w.keys.Mailbox(session), order)
		w.tx.SetVersionstampedKey(key, offset, append(value, part...))
		order, n, part = order+1, 0, nil
	}
	for i := range notices {
		b, err := msgpack.Marshal(&notices[i])
		if err != nil {
			return err
		}
		if len(part)+len(b) > maxMailValue {
			put()
		}
		part = append(part, b...)
		n++
	}
	put()
	bell, err := layout.EncodeStamped(struct{}{})
	if err != nil {
		return err
	}
	w.tx.SetVersionstampedValue(w.keys.Bell(session), bell, layout.StampOffset)
	return nil
}
