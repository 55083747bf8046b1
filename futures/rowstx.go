package futures

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// rowsTx is a transaction for rows of an application: it writes no key of Futura's own, and others end it.
type rowsTx struct {
	kv.Tx
	// refused is the first mistake that was made with it. What was refused is not written.
	refused error
}

func (t *rowsTx) refuse(format string, args ...any) bool {
	if t.refused == nil {
		t.refused = permanentError{fmt.Errorf("futures: a step with a transaction "+format, args...)}
	}
	return false
}

// mayWrite reports whether a range has no key of a cluster.
func (t *rowsTx) mayWrite(r kv.Range) bool {
	own := layout.AllClusters()
	if bytes.Compare(r.Begin, own.End) < 0 && bytes.Compare(own.Begin, r.End) < 0 {
		return t.refuse("writes the key %s, which is Futura's own: rows have keys that do not begin with %s; use "+
			"Tx.Submit for futures", tuple.String(r.Begin), tuple.String(own.Begin))
	}
	return true
}

// Set implements kv.Tx.
func (t *rowsTx) Set(key, value []byte) {
	if t.mayWrite(kv.Single(key)) {
		t.Tx.Set(key, value)
	}
}

// Clear implements kv.Tx.
func (t *rowsTx) Clear(key []byte) {
	if t.mayWrite(kv.Single(key)) {
		t.Tx.Clear(key)
	}
}

// ClearRange implements kv.Tx.
func (t *rowsTx) ClearRange(r kv.Range) {
	if t.mayWrite(r) {
		t.Tx.ClearRange(r)
	}
}

// Atomic implements kv.Tx.
func (t *rowsTx) Atomic(op kv.AtomicOp, key, param []byte) {
	if t.mayWrite(kv.Single(key)) {
		t.Tx.Atomic(op, key, param)
	}
}

// SetVersionstampedKey implements kv.Tx.
func (t *rowsTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	if t.mayWrite(kv.Single(key)) {
		t.Tx.SetVersionstampedKey(key, offset, value)
	}
}

// SetVersionstampedValue implements kv.Tx.
func (t *rowsTx) SetVersionstampedValue(key, value []byte, offset int) {
	if t.mayWrite(kv.Single(key)) {
		t.Tx.SetVersionstampedValue(key, value, offset)
	}
}

// AddWriteConflictKey implements kv.Tx.
func (t *rowsTx) AddWriteConflictKey(key []byte) {
	if t.mayWrite(kv.Single(key)) {
		t.Tx.AddWriteConflictKey(key)
	}
}

// AddWriteConflictRange implements kv.Tx.
func (t *rowsTx) AddWriteConflictRange(r kv.Range) {
	if t.mayWrite(r) {
		t.Tx.AddWriteConflictRange(r)
	}
}

// SetReadVersion implements kv.Tx.
func (t *rowsTx) SetReadVersion(kv.Version) {
	t.refuse("sets its read version, after the claim was read with it")
}

// errEndsItself is what Commit returns.
var errEndsItself = errors.New("futures: a step with a transaction is committed once its function has returned")

// Commit implements kv.Tx.
func (t *rowsTx) Commit(context.Context) (kv.Committed, error) {
	t.refuse("commits it by itself: return from its function, and the record of the step is committed with it")
	return kv.Committed{}, errEndsItself
}

// Cancel implements kv.Tx.
func (t *rowsTx) Cancel() {
	t.refuse("cancels it: return an error from its function, and nothing is written")
}
