package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

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
func (t *tx) Set(key, value []byte) { t.write(opSet, checkWrite(key, value), key, value) }

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) { t.write(opClear, checkWrite(key, nil), key) }

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) { t.writeRange(opClearRange, r) }

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) {
	mistake := checkWrite(key, param)
	if mistake == nil && (op < kv.Add || op > kv.CompareAndClear) {
		mistake = fmt.Errorf("remote: unknown atomic operation %d", op)
	}
	t.write(opAtomic+byte(op), mistake, key, param)
}

// SetVersionstampedKey implements kv.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	mistake := checkWrite(key, value)
	if mistake == nil {
		mistake = checkStamp(key, offset, kv.MaxKeySize, kv.ErrKeyTooLarge)
	}
	var place [4]byte
	binary.LittleEndian.PutUint32(place[:], uint32(offset))
	t.write(opStampKey, mistake, key, place[:], value)
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	mistake := checkWrite(key, value)
	if mistake == nil {
		mistake = checkStamp(value, offset, kv.MaxValueSize, kv.ErrValueTooLarge)
	}
	var place [4]byte
	binary.LittleEndian.PutUint32(place[:], uint32(offset))
	t.write(opStampValue, mistake, key, place[:], value)
}

// AddReadConflictKey implements kv.Tx.
func (t *tx) AddReadConflictKey(key []byte) { t.write(opReadConflictKey, checkWrite(key, nil), key) }

// AddReadConflictRange implements kv.Tx.
func (t *tx) AddReadConflictRange(r kv.Range) { t.writeRange(opReadConflictRange, r) }

// AddWriteConflictKey implements kv.Tx.
func (t *tx) AddWriteConflictKey(key []byte) { t.write(opWriteConflictKey, checkWrite(key, nil), key) }

// AddWriteConflictRange implements kv.Tx.
func (t *tx) AddWriteConflictRange(r kv.Range) { t.writeRange(opWriteConflictRange, r) }

func (t *tx) writeRange(op byte, r kv.Range) {
	mistake := checkRange(r)
	r = kv.Range{Begin: cut(r.Begin), End: cut(r.End)}
	if mistake != nil || !r.Empty() {
		t.write(op, mistake, r.Begin, r.End)
	}
}

func checkWrite(key, value []byte) error {
	switch {
	case len(key) > kv.MaxKeySize:
		return fmt.Errorf("%w: it has %d", kv.ErrKeyTooLarge, len(key))
	case len(key) > 0 && key[0] == math.MaxUint8:
		return fmt.Errorf("%w: it begins with 0xff", kv.ErrIllegalKey)
	case len(value) > kv.MaxValueSize:
		return fmt.Errorf("%w: it has %d; split it into several keys", kv.ErrValueTooLarge, len(value))
	}
	return nil
}

func checkRange(r kv.Range) error {
	switch {
	case bytes.Compare(r.Begin, r.End) > 0:
		return fmt.Errorf("%w: the range ends before it begins", kv.ErrIllegalKey)
	case bytes.Compare(r.End, []byte{math.MaxUint8}) > 0:
		return fmt.Errorf("%w: the range reaches beyond 0xff", kv.ErrIllegalKey)
	}
	return nil
}

// stampOffsetSize is what FoundationDB appends to stamped keys and values, and
// counts towards their limits.
const stampOffsetSize = 4

func checkStamp(b []byte, offset, limit int, tooLarge error) error {
	if offset < 0 || offset > len(b)-kv.StampSize {
		return fmt.Errorf("%w: offset %d in %d bytes", kv.ErrBadStampOffset, offset, len(b))
	}
	if len(b)+stampOffsetSize > limit {
		return fmt.Errorf("%w: it has %d, and a stamp takes %d more", tooLarge, len(b), stampOffsetSize)
	}
	return nil
}
