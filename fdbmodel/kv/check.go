package kv

import (
	"bytes"
	"fmt"
	"math"
)

// StampOffsetSize is what FoundationDB appends to stamped keys and values, and
// counts towards their limits.
const StampOffsetSize = 4

// CheckLegal returns ErrIllegalKey for a key in the range reserved for the
// store.
func CheckLegal(key []byte) error {
	if len(key) > 0 && key[0] == math.MaxUint8 {
		return fmt.Errorf("%w: it begins with 0xff", ErrIllegalKey)
	}
	return nil
}

// CheckRange returns ErrIllegalKey for a range that reaches into the keys
// reserved for the store, or that ends before it begins.
func CheckRange(r Range) error {
	switch {
	case bytes.Compare(r.Begin, r.End) > 0:
		return fmt.Errorf("%w: the range ends before it begins", ErrIllegalKey)
	case bytes.Compare(r.End, []byte{math.MaxUint8}) > 0:
		return fmt.Errorf("%w: the range reaches beyond 0xff", ErrIllegalKey)
	}
	return nil
}

// CheckWrite returns ErrKeyTooLarge, ErrIllegalKey or ErrValueTooLarge for a
// row that can't be written. Pass a nil value to check the key alone.
func CheckWrite(key, value []byte) error {
	switch {
	case len(key) > MaxKeySize:
		return fmt.Errorf("%w: it has %d", ErrKeyTooLarge, len(key))
	case len(value) > MaxValueSize:
		return fmt.Errorf("%w: it has %d; split it into several keys", ErrValueTooLarge, len(value))
	}
	return CheckLegal(key)
}

// CheckAtomic returns the errors of CheckWrite, and one for an unknown operation.
func CheckAtomic(op AtomicOp, key, param []byte) error {
	if op < Add || op > CompareAndClear {
		return fmt.Errorf("kv: unknown atomic operation %d", op)
	}
	return CheckWrite(key, param)
}

// CheckStampedKey returns the errors of CheckWrite, and ErrBadStampOffset, for
// SetVersionstampedKey.
func CheckStampedKey(key []byte, offset int, value []byte) error {
	if err := CheckWrite(key, value); err != nil {
		return err
	}
	return checkStamp(key, offset, MaxKeySize, ErrKeyTooLarge)
}

// CheckStampedValue returns the errors of CheckWrite, and ErrBadStampOffset, for
// SetVersionstampedValue.
func CheckStampedValue(key, value []byte, offset int) error {
	if err := CheckWrite(key, value); err != nil {
		return err
	}
	return checkStamp(value, offset, MaxValueSize, ErrValueTooLarge)
}

func checkStamp(b []byte, offset, limit int, tooLarge error) error {
	switch {
	case offset < 0 || offset > len(b)-StampSize:
		return fmt.Errorf("%w: offset %d in %d bytes", ErrBadStampOffset, offset, len(b))
	case len(b)+StampOffsetSize > limit:
		return fmt.Errorf("%w: it has %d, and a stamp takes %d more", tooLarge, len(b), StampOffsetSize)
	}
	return nil
}
