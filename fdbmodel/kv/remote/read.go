package remote

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Get implements kv.Tx.
func (t *tx) Get(key []byte) kv.Pending[[]byte] { return t.get(key, 0) }

// GetRange implements kv.Tx.
func (t *tx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] { return t.getRange(r, o, 0) }

// Snapshot implements kv.Tx.
func (t *tx) Snapshot() kv.Reader { return snapshot{t} }

// snapshot reads without adding read conflicts.
type snapshot struct{ t *tx }

// Get implements kv.Reader.
func (s snapshot) Get(key []byte) kv.Pending[[]byte] { return s.t.get(key, readSnapshot) }

// GetRange implements kv.Reader.
func (s snapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return s.t.getRange(r, o, readSnapshot)
}

// ask makes a question and begins its operation.
func (t *tx) ask(op byte) (*request, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	q, err := t.talk.ask(op == opCommit)
	if err != nil {
		return nil, err
	}
	t.reading = true
	t.ops = binary.AppendUvarint(append(t.ops, op), q.number)
	return q, nil
}

func (t *tx) get(key []byte, flags byte) kv.Pending[[]byte] {
	t.mu.Lock()
	defer t.mu.Unlock()
	q, err := t.ask(opGet)
	if err != nil {
		return kv.Ready[[]byte](nil, err)
	}
	t.ops = appendBytes(append(t.ops, flags), cut(key))
	t.added()
	return kv.Later(func(ctx context.Context) ([]byte, error) {
		if err := t.await(ctx, q); err != nil {
			return nil, err
		}
		return q.value, nil
	})
}

func (t *tx) getRange(r kv.Range, o kv.RangeOptions, flags byte) kv.Pending[kv.Page] {
	t.mu.Lock()
	defer t.mu.Unlock()
	q, err := t.ask(opGetRange)
	if err != nil {
		return kv.Ready(kv.Page{}, err)
	}
	if o.Reverse {
		flags |= readReverse
	}
	t.ops = appendBytes(appendBytes(append(t.ops, flags), cut(r.Begin)), cut(r.End))
	for _, bound := range [...]int{o.Limit, o.Bytes} {
		t.ops = binary.AppendUvarint(t.ops, uint64(min(max(bound, 0), math.MaxInt32)))
	}
	t.added()
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		if err := t.await(ctx, q); err != nil {
			return kv.Page{}, err
		}
		return q.page, nil
	})
}

// cut shortens a key that is longer than any that is stored, to one that lies
// between the same stored keys.
func cut(key []byte) []byte { return key[:min(len(key), kv.MaxKeySize+1)] }
