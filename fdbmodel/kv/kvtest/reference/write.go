package reference

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// stampOffsetSize is what FoundationDB appends to a stamped key or value, and
// counts towards its limit.
const stampOffsetSize = 4

// Set implements kv.Tx.
func (t *tx) Set(key, value []byte) {
	t.write(mutation{kind: set, key: key, value: value}, checkWrite(key, value))
}

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) {
	t.write(mutation{kind: clearRange, key: key, end: kv.After(key)}, checkWrite(key, nil))
}

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) {
	t.write(mutation{kind: clearRange, key: r.Begin, end: r.End}, checkRange(r))
}

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.write(mutation{kind: atomic, op: op, key: key, value: param}, checkWrite(key, param))
}

// SetVersionstampedKey implements kv.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	err := checkWrite(key, value)
	if err == nil {
		err = checkStamp(key, offset, kv.MaxKeySize, kv.ErrKeyTooLarge)
	}
	t.write(mutation{kind: stampKey, key: key, offset: offset, value: value}, err)
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	err := checkWrite(key, value)
	if err == nil {
		err = checkStamp(value, offset, kv.MaxValueSize, kv.ErrValueTooLarge)
	}
	t.write(mutation{kind: stampValue, key: key, offset: offset, value: value}, err)
}

// write keeps m, or the mistake in it, and what it does to later reads.
func (t *tx) write(m mutation, mistake error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if mistake != nil {
		t.fail(mistake)
		return
	}
	m.key, m.end = bytes.Clone(m.key), bytes.Clone(m.end)
	m.value = append([]byte{}, m.value...)
	written := m.writes()
	switch m.kind {
	case set:
		t.known = append(t.known, written)
	case clearRange:
		if written.Empty() {
			return
		}
		t.known = append(t.known, written)
		t.unreadable = without(t.unreadable, written)
	case stampKey:
		// What the key may fall on counts as the store's own again.
		stamped := t.unreadableRange(m.key, m.offset)
		t.known = without(t.known, stamped)
		t.unreadable = append(t.unreadable, stamped)
	case stampValue:
		t.known = append(t.known, written)
		t.unreadable = append(t.unreadable, written)
	}
	t.mutations = append(t.mutations, m)
}

// AddReadConflictKey implements kv.Tx.
func (t *tx) AddReadConflictKey(key []byte) {
	t.addConflict(t.addRead, kv.Single(key), checkWrite(key, nil))
}

// AddReadConflictRange implements kv.Tx.
func (t *tx) AddReadConflictRange(r kv.Range) { t.addConflict(t.addRead, r, checkRange(r)) }

// AddWriteConflictKey implements kv.Tx.
func (t *tx) AddWriteConflictKey(key []byte) {
	t.addConflict(t.addWrite, kv.Single(key), checkWrite(key, nil))
}

// AddWriteConflictRange implements kv.Tx.
func (t *tx) AddWriteConflictRange(r kv.Range) { t.addConflict(t.addWrite, r, checkRange(r)) }

// addRead adds what of r the transaction has not itself set or cleared.
func (t *tx) addRead(r kv.Range) {
	fresh := []kv.Range{r}
	for _, k := range t.known {
		fresh = without(fresh, k)
	}
	t.reads = append(t.reads, fresh...)
}

func (t *tx) addWrite(r kv.Range) { t.writes = append(t.writes, r) }

func (t *tx) addConflict(add func(kv.Range), r kv.Range, mistake error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if mistake != nil {
		t.fail(mistake)
		return
	}
	if !r.Empty() {
		add(cloneRange(r))
	}
}

func cloneRange(r kv.Range) kv.Range {
	return kv.Range{Begin: append([]byte{}, r.Begin...), End: append([]byte{}, r.End...)}
}

func checkWrite(key, value []byte) error {
	switch {
	case !everything.Contains(key):
		return kv.ErrIllegalKey
	case len(key) > kv.MaxKeySize:
		return kv.ErrKeyTooLarge
	case len(value) > kv.MaxValueSize:
		return kv.ErrValueTooLarge
	}
	return nil
}

func checkRange(r kv.Range) error {
	if bytes.Compare(r.Begin, everything.End) > 0 || bytes.Compare(r.End, everything.End) > 0 {
		return kv.ErrIllegalKey
	}
	if bytes.Compare(r.Begin, r.End) > 0 {
		return kv.ErrIllegalKey
	}
	return nil
}

func checkStamp(stamped []byte, offset, limit int, tooLarge error) error {
	if offset < 0 || offset > len(stamped)-kv.StampSize {
		return kv.ErrBadStampOffset
	}
	if len(stamped)+stampOffsetSize > limit {
		return tooLarge
	}
	return nil
}
