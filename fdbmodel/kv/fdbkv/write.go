//go:build fdb

package fdbkv

import (
	"encoding/binary"
	"runtime"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

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
	t.write(kv.CheckWrite(key, value), func(native fdb.Transaction) { native.Set(fdb.Key(key), value) })
}

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) {
	t.write(kv.CheckWrite(key, nil), func(native fdb.Transaction) { native.Clear(fdb.Key(key)) })
}

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) {
	if mistake := kv.CheckRange(r); mistake != nil || !r.Empty() {
		t.write(mistake, func(native fdb.Transaction) { native.ClearRange(keyRange(r)) })
	}
}

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.write(kv.CheckAtomic(op, key, param), func(native fdb.Transaction) {
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
	t.write(kv.CheckStampedKey(key, offset, value), func(native fdb.Transaction) {
		native.SetVersionstampedKey(fdb.Key(withOffset(key, offset)), value)
	})
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	t.write(kv.CheckStampedValue(key, value, offset), func(native fdb.Transaction) {
		native.SetVersionstampedValue(fdb.Key(key), withOffset(value, offset))
	})
}

// AddReadConflictKey implements kv.Tx.
func (t *tx) AddReadConflictKey(key []byte) {
	t.addReadConflict(kv.CheckWrite(key, nil), kv.Single(key))
}

// AddReadConflictRange implements kv.Tx.
func (t *tx) AddReadConflictRange(r kv.Range) { t.addReadConflict(kv.CheckRange(r), r) }

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
	t.addWriteConflict(kv.CheckWrite(key, nil), kv.Single(key))
}

// AddWriteConflictRange implements kv.Tx.
func (t *tx) AddWriteConflictRange(r kv.Range) { t.addWriteConflict(kv.CheckRange(r), r) }

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
	out := make([]byte, len(stamped), len(stamped)+kv.StampOffsetSize)
	copy(out, stamped)
	return binary.LittleEndian.AppendUint32(out, uint32(offset))
}
