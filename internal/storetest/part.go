//go:build fdb

package storetest

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// part is the keys of a store that begin with a prefix, without it.
type part struct {
	kv.Database
	prefix []byte
}

// Begin implements kv.Database.
func (p part) Begin(o kv.Options) kv.Tx {
	tx := p.Database.Begin(o)
	return partTx{tx, partReader{tx, p.prefix}}
}

func (r partReader) key(key []byte) []byte {
	return append(r.prefix[:len(r.prefix):len(r.prefix)], key...)
}

func (r partReader) keys(keys kv.Range) kv.Range {
	return kv.Range{Begin: r.key(keys.Begin), End: r.key(keys.End)}
}

type partReader struct {
	inner  kv.Reader
	prefix []byte
}

// Get implements kv.Reader.
func (r partReader) Get(key []byte) kv.Pending[[]byte] { return r.inner.Get(r.key(key)) }

// GetRange implements kv.Reader.
func (r partReader) GetRange(keys kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	pending := r.inner.GetRange(r.keys(keys), o)
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		page, err := pending.Wait(ctx)
		for i := range page.Items {
			page.Items[i].Key = page.Items[i].Key[len(r.prefix):]
		}
		return page, err
	})
}

type partTx struct {
	kv.Tx
	partReader
}

func (t partTx) Get(key []byte) kv.Pending[[]byte] { return t.partReader.Get(key) }

func (t partTx) GetRange(keys kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return t.partReader.GetRange(keys, o)
}

func (t partTx) Snapshot() kv.Reader { return partReader{t.Tx.Snapshot(), t.prefix} }

func (t partTx) Set(key, value []byte)    { t.Tx.Set(t.key(key), value) }
func (t partTx) Clear(key []byte)         { t.Tx.Clear(t.key(key)) }
func (t partTx) ClearRange(keys kv.Range) { t.Tx.ClearRange(t.keys(keys)) }

func (t partTx) Atomic(op kv.AtomicOp, key, param []byte) { t.Tx.Atomic(op, t.key(key), param) }

func (t partTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.Tx.SetVersionstampedKey(t.key(key), len(t.prefix)+offset, value)
}

func (t partTx) SetVersionstampedValue(key, value []byte, offset int) {
	t.Tx.SetVersionstampedValue(t.key(key), value, offset)
}

func (t partTx) AddReadConflictKey(key []byte)       { t.Tx.AddReadConflictKey(t.key(key)) }
func (t partTx) AddReadConflictRange(keys kv.Range)  { t.Tx.AddReadConflictRange(t.keys(keys)) }
func (t partTx) AddWriteConflictKey(key []byte)      { t.Tx.AddWriteConflictKey(t.key(key)) }
func (t partTx) AddWriteConflictRange(keys kv.Range) { t.Tx.AddWriteConflictRange(t.keys(keys)) }
func (t partTx) Watch(key []byte) kv.Watch           { return t.Tx.Watch(t.key(key)) }
