package embedded

import "github.com/futura-run/futura/fdbmodel/kv"

// cutRange shortens ends that are longer than any key, to a range that holds
// the same keys.
func cutRange(r kv.Range) kv.Range {
	const longest = kv.MaxKeySize + 1
	return kv.Range{Begin: r.Begin[:min(len(r.Begin), longest)], End: r.End[:min(len(r.End), longest)]}
}

// write does a mutation, unless the transaction is over, or it is a mistake,
// which poisons the transaction.
func (t *transaction) write(mistake error, do func(*workspace)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != txOpen {
		return
	}
	if mistake != nil {
		t.fail(mistake)
		return
	}
	do(t.work)
}

// Set implements kv.Tx.
func (t *transaction) Set(key, value []byte) {
	t.write(kv.CheckWrite(key, value), func(w *workspace) {
		w.addOp(op{kind: opSet, key: w.keep(key), value: w.keep(value)})
	})
}

// Clear implements kv.Tx.
func (t *transaction) Clear(key []byte) {
	t.write(kv.CheckWrite(key, nil), func(w *workspace) { w.addOp(op{kind: opClear, key: w.keep(key)}) })
}

// ClearRange implements kv.Tx.
func (t *transaction) ClearRange(r kv.Range) {
	t.write(kv.CheckRange(r), func(w *workspace) {
		r := cutRange(r)
		if !r.Empty() {
			w.addOp(op{kind: opClearRange, key: w.keep(r.Begin), value: w.keep(r.End)})
		}
	})
}

// Atomic implements kv.Tx.
func (t *transaction) Atomic(o kv.AtomicOp, key, param []byte) {
	t.write(kv.CheckAtomic(o, key, param), func(w *workspace) {
		w.addOp(op{kind: opAtomic, atomic: o, key: w.keep(key), value: w.keep(param)})
	})
}

// SetVersionstampedKey implements kv.Tx.
func (t *transaction) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.write(kv.CheckStampedKey(key, offset, value), func(w *workspace) {
		w.addOp(op{kind: opStampKey, offset: int32(offset), seen: t.version, key: w.keep(key), value: w.keep(value)})
	})
}

// SetVersionstampedValue implements kv.Tx.
func (t *transaction) SetVersionstampedValue(key, value []byte, offset int) {
	t.write(kv.CheckStampedValue(key, value, offset), func(w *workspace) {
		w.addOp(op{kind: opStampValue, offset: int32(offset), key: w.keep(key), value: w.keep(value)})
	})
}

// AddReadConflictKey implements kv.Tx.
func (t *transaction) AddReadConflictKey(key []byte) {
	t.write(kv.CheckWrite(key, nil), func(*workspace) { t.addForeignRead(key, nil) })
}

// AddReadConflictRange implements kv.Tx.
func (t *transaction) AddReadConflictRange(r kv.Range) {
	t.write(kv.CheckRange(r), func(*workspace) {
		r := cutRange(r)
		if !r.Empty() {
			t.addForeignRead(r.Begin, r.End)
		}
	})
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
	t.write(kv.CheckWrite(key, nil), func(w *workspace) { w.addWrite(span{begin: w.keep(key)}) })
}

// AddWriteConflictRange implements kv.Tx.
func (t *transaction) AddWriteConflictRange(r kv.Range) {
	t.write(kv.CheckRange(r), func(w *workspace) {
		r := cutRange(r)
		if !r.Empty() {
			w.addWrite(span{begin: w.keep(r.Begin), end: w.keep(r.End)})
		}
	})
}
