//go:build fdb

package fdbkv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// stampOffsetSize is what FoundationDB appends to a stamped key or value, and
// counts towards its limit.
const stampOffsetSize = 4

// write runs a write unless the transaction is at its end or the write is a
// mistake. The library ends the process on some mistakes, so they are looked
// for before.
func (t *tx) write(mistake error, do func(fdb.Transaction)) {
	if t.usable() != nil {
		return
	}
	if mistake != nil {
		t.fail(mistake)
		return
	}
	t.wrote = true
	do(t.native)
	runtime.KeepAlive(t)
}

// Set implements kv.Tx.
func (t *tx) Set(key, value []byte) {
	t.write(checkWrite(key, value), func(native fdb.Transaction) { native.Set(fdb.Key(key), value) })
}

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) {
	t.write(checkWrite(key, nil), func(native fdb.Transaction) { native.Clear(fdb.Key(key)) })
}

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) {
	if mistake := checkRange(r); mistake != nil || !r.Empty() {
		t.write(mistake, func(native fdb.Transaction) { native.ClearRange(keyRange(r)) })
	}
}

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) {
	mistake := checkWrite(key, param)
	if mistake == nil && (op < kv.Add || op > kv.CompareAndClear) {
		mistake = fmt.Errorf("fdbkv: unknown atomic operation %d", op)
	}
	t.write(mistake, func(native fdb.Transaction) {
		switch op {
		case kv.Add:
			native.Add(fdb.Key(key), param)
		case kv.Max:
			native.Max(fdb.Key(key), param)
		case kv.Min:
			native.Min(fdb.Key(key), param)
		case kv.ByteMax:
			native.ByteMax(fdb.Key(key), param)
		case kv.ByteMin:
			native.ByteMin(fdb.Key(key), param)
		case kv.CompareAndClear:
			native.CompareAndClear(fdb.Key(key), param)
		}
	})
}

// SetVersionstampedKey implements kv.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	mistake := checkWrite(key, value)
	if mistake == nil {
		mistake = checkStamp(key, offset, kv.MaxKeySize, kv.ErrKeyTooLarge)
	}
	t.write(mistake, func(native fdb.Transaction) {
		native.SetVersionstampedKey(fdb.Key(withOffset(key, offset)), value)
	})
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	mistake := checkWrite(key, value)
	if mistake == nil {
		mistake = checkStamp(value, offset, kv.MaxValueSize, kv.ErrValueTooLarge)
	}
	t.write(mistake, func(native fdb.Transaction) {
		native.SetVersionstampedValue(fdb.Key(key), withOffset(value, offset))
	})
}

// AddReadConflictKey implements kv.Tx.
func (t *tx) AddReadConflictKey(key []byte) {
	t.addReadConflict(checkWrite(key, nil), kv.Single(key))
}

// AddReadConflictRange implements kv.Tx.
func (t *tx) AddReadConflictRange(r kv.Range) { t.addReadConflict(checkRange(r), r) }

// addReadConflict is no write: a transaction with nothing else commits without
// the store.
func (t *tx) addReadConflict(mistake error, r kv.Range) {
	if mistake == nil && (r.Empty() || t.usable() != nil) {
		return
	}
	if mistake == nil {
		mistake = translate(t.native.AddReadConflictRange(keyRange(r)))
		runtime.KeepAlive(t)
	}
	t.fail(mistake)
}

// AddWriteConflictKey implements kv.Tx.
func (t *tx) AddWriteConflictKey(key []byte) {
	t.addWriteConflict(checkWrite(key, nil), kv.Single(key))
}

// AddWriteConflictRange implements kv.Tx.
func (t *tx) AddWriteConflictRange(r kv.Range) { t.addWriteConflict(checkRange(r), r) }

func (t *tx) addWriteConflict(mistake error, r kv.Range) {
	if mistake == nil && r.Empty() {
		return
	}
	t.write(mistake, func(native fdb.Transaction) { t.fail(translate(native.AddWriteConflictRange(keyRange(r)))) })
}

func keyRange(r kv.Range) fdb.KeyRange {
	return fdb.KeyRange{Begin: fdb.Key(r.Begin), End: fdb.Key(r.End)}
}

// withOffset appends where the ten bytes of a stamp lie.
func withOffset(stamped []byte, offset int) []byte {
	out := make([]byte, len(stamped), len(stamped)+stampOffsetSize)
	copy(out, stamped)
	return binary.LittleEndian.AppendUint32(out, uint32(offset))
}

// endOfKeys is behind every key that does not belong to FoundationDB.
func endOfKeys() []byte { return []byte{math.MaxUint8} }

func checkKey(key []byte) error {
	if len(key) > 0 && key[0] == math.MaxUint8 {
		return kv.ErrIllegalKey
	}
	return nil
}

func checkWrite(key, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	switch {
	case len(key) > kv.MaxKeySize:
		return kv.ErrKeyTooLarge
	case len(value) > kv.MaxValueSize:
		return kv.ErrValueTooLarge
	}
	return nil
}

func checkRange(r kv.Range) error {
	if bytes.Compare(r.End, endOfKeys()) > 0 || bytes.Compare(r.Begin, r.End) > 0 {
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
