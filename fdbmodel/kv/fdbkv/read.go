//go:build fdb

package fdbkv

import (
	"context"
	"errors"
	"math"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// source is what a transaction and its snapshot have in common.
type source interface {
	Get(fdb.KeyConvertible) fdb.FutureByteSlice
	GetRange(fdb.Range, fdb.RangeOptions) fdb.RangeResult
}

// Get implements kv.Tx.
func (t *tx) Get(key []byte) kv.Pending[[]byte] { return t.get(t.native, key) }

// GetRange implements kv.Tx.
func (t *tx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return t.getRange(t.native, r, o)
}

// Snapshot implements kv.Tx.
func (t *tx) Snapshot() kv.Reader { return snapshot{t} }

type snapshot struct{ tx *tx }

// Get implements kv.Reader.
func (s snapshot) Get(key []byte) kv.Pending[[]byte] { return s.tx.get(s.tx.native.Snapshot(), key) }

// GetRange implements kv.Reader.
func (s snapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return s.tx.getRange(s.tx.native.Snapshot(), r, o)
}

func (t *tx) get(from source, key []byte) kv.Pending[[]byte] {
	if err := t.usable(); err != nil {
		return kv.Ready[[]byte](nil, err)
	}
	if err := kv.CheckLegal(key); err != nil {
		return kv.Ready[[]byte](nil, err)
	}
	t.reading = true
	future := from.Get(fdb.Key(key))
	return kv.Later(func(ctx context.Context) ([]byte, error) { return wait(ctx, t, future.Get) })
}

// getRange reads the whole range, or up to the limit, in one request: later
// requests for the rest would see what the transaction wrote in between.
func (t *tx) getRange(from source, r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	if err := t.usable(); err != nil {
		return kv.Ready(kv.Page{}, err)
	}
	if err := kv.CheckRange(r); err != nil {
		return kv.Ready(kv.Page{}, err)
	}
	t.reading = true
	limit := o.Limit
	if limit <= 0 {
		limit = math.MaxInt32
	}
	result := from.GetRange(
		fdb.KeyRange{Begin: fdb.Key(r.Begin), End: fdb.Key(r.End)},
		fdb.RangeOptions{Limit: limit, Mode: fdb.StreamingModeExact, Reverse: o.Reverse})
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		rows, err := wait(ctx, t, result.GetSliceWithError)
		if err != nil {
			return kv.Page{}, err
		}
		page := kv.Page{Items: make([]kv.KeyValue, len(rows)), More: len(rows) == limit}
		for i, row := range rows {
			page.Items[i] = kv.KeyValue{Key: row.Key, Value: row.Value}
		}
		return upTo(page, o.Bytes), nil
	})
}

// upTo returns a page as far as RangeOptions.Bytes bounds it: the bindings can't ask for so many bytes.
func upTo(p kv.Page, bytes int) kv.Page {
	size := 0
	for i, item := range p.Items {
		if size += len(item.Key) + len(item.Value); bytes > 0 && size >= bytes && i+1 < len(p.Items) {
			return kv.Page{Items: p.Items[:i+1], More: true}
		}
	}
	return p
}

// wait returns what get waits for. If ctx or the store ends first, it cancels
// the transaction, which ends the wait.
func wait[T any](ctx context.Context, t *tx, get func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if t.db != nil {
		if err := t.db.enter(t); err != nil {
			return none, err
		}
		defer t.db.leave(t)
	}
	stop := context.AfterFunc(ctx, t.abort)
	value, err := get()
	switch {
	case !stop() && ctx.Err() != nil:
		return none, ctx.Err()
	case err == nil:
		return value, nil
	}
	err = translate(err)
	if errors.Is(err, kv.ErrUsed) && t.db != nil && t.db.isClosed() {
		return none, kv.ErrClosed
	}
	return none, err
}
