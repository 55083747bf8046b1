package remote

import (
	"encoding/binary"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// maxKept is what a transaction may write, in bytes as they travel, before it
// counts as too large without being sent.
const maxKept = 3 * kv.MaxTxSize

// write keeps a write, or the mistake in it.
func (t *tx) write(op byte, mistake error, parts ...[]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage != stageOpen {
		return
	}
	if mistake == nil && t.written > maxKept {
		mistake = fmt.Errorf("%w: it has far more; split it", kv.ErrTxTooLarge)
	}
	if mistake != nil {
		t.fail(mistake)
		return
	}
	t.wrote = t.wrote || op != opReadConflictKey && op != opReadConflictRange
	before := len(t.ops)
	t.ops = append(t.ops, op)
	for _, part := range parts {
		t.ops = appendBytes(t.ops, part)
	}
	t.written += len(t.ops) - before
	t.added()
}

// Set implements kv.Tx.
func (t *tx) Set(key, value []byte) { t.write(opSet, kv.CheckWrite(key, value), key, value) }

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) { t.write(opClear, kv.CheckWrite(key, nil), key) }

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) { t.writeRange(opClearRange, r) }

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.write(opAtomic+byte(op), kv.CheckAtomic(op, key, param), key, param)
}

// SetVersionstampedKey implements kv.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.write(opStampKey, kv.CheckStampedKey(key, offset, value), key, place(offset), value)
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	t.write(opStampValue, kv.CheckStampedValue(key, value, offset), key, place(offset), value)
}

// place encodes the offset of a stamp.
func place(offset int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(offset)) }

// AddReadConflictKey implements kv.Tx.
func (t *tx) AddReadConflictKey(key []byte) { t.write(opReadConflictKey, kv.CheckWrite(key, nil), key) }

// AddReadConflictRange implements kv.Tx.
func (t *tx) AddReadConflictRange(r kv.Range) { t.writeRange(opReadConflictRange, r) }

// AddWriteConflictKey implements kv.Tx.
func (t *tx) AddWriteConflictKey(key []byte) {
	t.write(opWriteConflictKey, kv.CheckWrite(key, nil), key)
}

// AddWriteConflictRange implements kv.Tx.
func (t *tx) AddWriteConflictRange(r kv.Range) { t.writeRange(opWriteConflictRange, r) }

func (t *tx) writeRange(op byte, r kv.Range) {
	mistake := kv.CheckRange(r)
	r = kv.Range{Begin: cut(r.Begin), End: cut(r.End)}
	if mistake != nil || !r.Empty() {
		t.write(op, mistake, r.Begin, r.End)
	}
}
