package embedded

import (
	"bytes"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// firstIllegal is the first key that belongs to the store.
var firstIllegal = []byte{0xff}

func checkLegal(key []byte) error {
	if len(key) > 0 && key[0] == 0xff {
		return fmt.Errorf("%w: it begins with 0xff", kv.ErrIllegalKey)
	}
	return nil
}

func checkKey(key []byte) error {
	if len(key) > kv.MaxKeySize {
		return fmt.Errorf("%w: it has %d", kv.ErrKeyTooLarge, len(key))
	}
	return checkLegal(key)
}

func checkValue(value []byte) error {
	if len(value) > kv.MaxValueSize {
		return fmt.Errorf("%w: it has %d; split it into several keys", kv.ErrValueTooLarge, len(value))
	}
	return nil
}

func checkRange(r kv.Range) error {
	if bytes.Compare(r.Begin, r.End) > 0 {
		return fmt.Errorf("%w: the range ends before it begins", kv.ErrIllegalKey)
	}
	if bytes.Compare(r.End, firstIllegal) > 0 {
		return fmt.Errorf("%w: the range reaches beyond 0xff", kv.ErrIllegalKey)
	}
	return nil
}

// cutRange shortens ends that are longer than any key, to a range that holds
// the same keys.
func cutRange(r kv.Range) kv.Range {
	const longest = kv.MaxKeySize + 1
	return kv.Range{Begin: r.Begin[:min(len(r.Begin), longest)], End: r.End[:min(len(r.End), longest)]}
}

// stampOffsetSize is what FoundationDB appends to stamped keys and values, and
// counts towards their limits.
const stampOffsetSize = 4

// checkStamp looks for room for a stamp in b, and for the offset behind it.
func checkStamp(b []byte, offset, limit int, tooLarge error) error {
	if offset < 0 || offset > len(b)-kv.StampSize {
		return fmt.Errorf("%w: offset %d in %d bytes", kv.ErrBadStampOffset, offset, len(b))
	}
	if len(b)+stampOffsetSize > limit {
		return fmt.Errorf("%w: it has %d, and a stamp takes %d more", tooLarge, len(b), stampOffsetSize)
	}
	return nil
}

// write does a mutation, unless the transaction is over, or one of the checks
// failed, which poisons it.
func (t *transaction) write(do func(*workspace), checks ...error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != txOpen {
		return
	}
	for _, err := range checks {
		if err != nil {
			t.fail(err)
			return
		}
	}
	do(t.work)
}

// Set implements kv.Tx.
func (t *transaction) Set(key, value []byte) {
	t.write(func(w *workspace) {
		w.addOp(op{kind: opSet, key: w.keep(key), value: w.keep(value)})
	}, checkKey(key), checkValue(value))
}

// Clear implements kv.Tx.
func (t *transaction) Clear(key []byte) {
	t.write(func(w *workspace) { w.addOp(op{kind: opClear, key: w.keep(key)}) }, checkKey(key))
}

// ClearRange implements kv.Tx.
func (t *transaction) ClearRange(r kv.Range) {
	t.write(func(w *workspace) {
		r := cutRange(r)
		if !r.Empty() {
			w.addOp(op{kind: opClearRange, key: w.keep(r.Begin), value: w.keep(r.End)})
		}
	}, checkRange(r))
}

// Atomic implements kv.Tx.
func (t *transaction) Atomic(o kv.AtomicOp, key, param []byte) {
	var known error
	if o < kv.Add || o > kv.CompareAndClear {
		known = fmt.Errorf("embedded: unknown atomic operation %d", o)
	}
	t.write(func(w *workspace) {
		w.addOp(op{kind: opAtomic, atomic: o, key: w.keep(key), value: w.keep(param)})
	}, known, checkKey(key), checkValue(param))
}

// SetVersionstampedKey implements kv.Tx.
func (t *transaction) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.write(func(w *workspace) {
		w.addOp(op{kind: opStampKey, offset: int32(offset), seen: t.version, key: w.keep(key), value: w.keep(value)})
	}, checkKey(key), checkValue(value), checkStamp(key, offset, kv.MaxKeySize, kv.ErrKeyTooLarge))
}

// SetVersionstampedValue implements kv.Tx.
func (t *transaction) SetVersionstampedValue(key, value []byte, offset int) {
	t.write(func(w *workspace) {
		w.addOp(op{kind: opStampValue, offset: int32(offset), key: w.keep(key), value: w.keep(value)})
	}, checkKey(key), checkValue(value), checkStamp(value, offset, kv.MaxValueSize, kv.ErrValueTooLarge))
}

// AddReadConflictKey implements kv.Tx.
func (t *transaction) AddReadConflictKey(key []byte) {
	t.write(func(*workspace) { t.addForeignRead(key, nil) }, checkKey(key))
}

// AddReadConflictRange implements kv.Tx.
func (t *transaction) AddReadConflictRange(r kv.Range) {
	t.write(func(*workspace) {
		r := cutRange(r)
		if !r.Empty() {
			t.addForeignRead(r.Begin, r.End)
		}
	}, checkRange(r))
}

// addForeignRead adds a range, or the single key begin where end is nil, to the
// read conflicts, without what the transaction itself set or cleared before.
func (t *transaction) addForeignRead(begin, end []byte) {
	w, own := t.work, t.own()
	if own == nil {
		s := span{begin: w.keep(begin)}
		if end != nil {
			s.end = w.keep(end)
		}
		w.addRead(s)
		return
	}
	if end == nil {
		end = w.after(begin)
	}
	own.foreign(begin, end, func(begin, end []byte) {
		w.addRead(span{begin: w.keep(begin), end: w.keep(end)})
	})
}

// AddWriteConflictKey implements kv.Tx.
func (t *transaction) AddWriteConflictKey(key []byte) {
	t.write(func(w *workspace) { w.addWrite(span{begin: w.keep(key)}) }, checkKey(key))
}

// AddWriteConflictRange implements kv.Tx.
func (t *transaction) AddWriteConflictRange(r kv.Range) {
	t.write(func(w *workspace) {
		r := cutRange(r)
		if !r.Empty() {
			w.addWrite(span{begin: w.keep(r.Begin), end: w.keep(r.End)})
		}
	}, checkRange(r))
}
