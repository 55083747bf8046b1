package fdbmodel

import (
	"encoding/binary"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// changes collects what one transaction does to futures. It keeps the rows,
// the index, the counters, the mailboxes and the done list in step: nothing
// else in the package writes them, but for a claim, which is blind.
type changes struct {
	keys keyspace
	tx   kv.Tx
	now  int64

	counts map[countKey]int64
	mail   map[SessionID][]Notice
	done   []ID
	groups map[string]struct{} // whose bell is to ring
	open   map[openKey]int64
}

// openKey is what held futures are counted by while somebody has them.
type openKey struct{ group, why string }

type countKey struct {
	shard        int
	queue, group string
	state        State
}

func (c *Cluster) changes(tx kv.Tx) *changes {
	return &changes{keys: c.keys, tx: tx, now: millis(c.clock.Now())}
}

// insert writes a new future. Large arguments have been written before.
func (w *changes) insert(row *Row, args []byte) error {
	spec, err := encodeRecord(row.Spec)
	if err != nil {
		return err
	}
	w.tx.Set(w.keys.spec(row.ID), spec)
	if row.Spec.ArgsKey {
		w.tx.Set(w.keys.args(row.ID), args)
	}
	if row.Attempts != (Attempts{}) {
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
func (w *changes) apply(before, after *Row) error {
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

func (w *changes) applyRecords(before, after *Row) error {
	if before.Attempts != after.Attempts {
		if err := w.setAttempts(after); err != nil {
			return err
		}
	}
	if before.Claim != after.Claim {
		if err := setOrClear(w, after.ID, stateClaim, after.Claim, encodeStamped); err != nil {
			return err
		}
	}
	if before.Cancel != after.Cancel {
		if err := setOrClear(w, after.ID, stateCancel, after.Cancel, encodeRecord); err != nil {
			return err
		}
	}
	if before.Exception != after.Exception {
		if err := setOrClear(w, after.ID, stateException, after.Exception, encodeRecord); err != nil {
			return err
		}
	}
	if before.Result != after.Result {
		return setOrClear(w, after.ID, stateResult, after.Result, encodeStamped)
	}
	return nil
}

func setOrClear[T any](w *changes, id ID, field string, record *T, encode func(any) ([]byte, error)) error {
	key := w.keys.state(id, field)
	if record == nil {
		w.tx.Clear(key)
		return nil
	}
	value, err := encode(record)
	if err != nil {
		return err
	}
	if field == stateClaim || field == stateResult {
		w.tx.SetVersionstampedValue(key, value, stampOffset)
	} else {
		w.tx.Set(key, value)
	}
	return nil
}

func (w *changes) setAttempts(row *Row) error {
	key := w.keys.state(row.ID, stateAttempts)
	if row.Attempts == (Attempts{}) {
		w.tx.Clear(key)
		return nil
	}
	value, err := encodeRecord(&row.Attempts)
	if err == nil {
		w.tx.Set(key, value)
	}
	return err
}

// place puts an unclaimed future where it waits.
func (w *changes) place(row *Row) {
	switch s := row.State(); {
	case s == Ready, s == Delayed && row.Spec.Held:
		w.tx.Set(w.keys.waits(row), []byte(row.Spec.Function))
	case s == Delayed:
		w.tx.Set(w.keys.delayed(row.ID, row.Attempts.Due), nil)
	}
}

func (w *changes) unplace(row *Row) {
	switch s := row.State(); {
	case s == Ready, s == Delayed && row.Spec.Held:
		w.tx.Clear(w.keys.waits(row))
	case s == Delayed:
		w.tx.Clear(w.keys.delayed(row.ID, row.Attempts.Due))
	}
}

// ringGroup takes note that whoever drives a group of held futures has to look:
// one has ended, was assigned, or waits for that.
func (w *changes) ringGroup(row *Row) {
	if row.Spec.Held && row.State() != Claimed {
		if w.groups == nil {
			w.groups = map[string]struct{}{}
		}
		w.groups[row.Spec.Group] = struct{}{}
	}
}

func (w *changes) countOpen(row *Row, n int64) {
	if !row.open() {
		return
	}
	if w.open == nil {
		w.open = map[openKey]int64{}
	}
	w.open[openKey{row.Spec.Group, row.Attempts.Why}] += n
}

func (w *changes) count(id ID, queue, group string, s State, n int64) {
	if w.counts == nil {
		w.counts = map[countKey]int64{}
	}
	w.counts[countKey{id.shard(w.keys.shards), queue, group, s}] += n
}

// finish tells those who wait, and the janitor.
func (w *changes) finish(row *Row) {
	// Held futures stay until whoever drives their group discards them.
	if !row.Spec.Held {
		w.done = append(w.done, row.ID)
	}
	w.now = max(w.now, row.FinishedAt())
	if w.mail == nil {
		w.mail = map[SessionID][]Notice{}
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
			w.tx.Atomic(kv.Add, w.keys.count(k.shard, k.queue, k.group, k.state), littleEndian(n))
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
			w.tx.Atomic(kv.Add, w.keys.groupOpen(k.group, k.why), littleEndian(n))
		}
	}
	if len(w.groups) == 0 {
		return nil
	}
	bell, err := encodeStamped(struct{}{})
	if err != nil {
		return err
	}
	for group := range w.groups {
		w.tx.SetVersionstampedValue(w.keys.groupBell(group), bell, stampOffset)
	}
	return nil
}

func (w *changes) flushDone() error {
	if len(w.done) == 0 {
		return nil
	}
	value, err := encodeRecord(&doneEntry{At: w.now, IDs: packIDs(w.done)})
	if err != nil {
		return err
	}
	prefix := w.keys.doneOf(w.done[0].shard(w.keys.shards))
	key, offset := tuple.AppendIncompleteStamp(prefix, 0)
	w.tx.SetVersionstampedKey(key, offset, value)
	return nil
}

// flushMail packs the notices of one session into as few values as hold them.
func (w *changes) flushMail(session SessionID, notices []Notice) error {
	var part []byte
	order, n := uint16(0), 0
	put := func() {
		value := binary.BigEndian.AppendUint32([]byte{recordVersion}, uint32(n))
		key, offset := tuple.AppendIncompleteStamp(w.keys.mailbox(session), order)
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
	bell, err := encodeStamped(struct{}{})
	if err != nil {
		return err
	}
	w.tx.SetVersionstampedValue(w.keys.bell(session), bell, stampOffset)
	return nil
}
