package meter

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Store is where records are.
type Store interface {
	Transact(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)
	View(context.Context, func(kv.Attempt) error) error
}

// Sum is a record to which others are added.
type Sum[T any] interface {
	*T
	Add(*T)
}

// AddStored adds a record, and reports whether there is one.
func AddStored[T any, S Sum[T]](ctx context.Context, key []byte, asked kv.Pending[[]byte], to S) (bool, error) {
	value, err := asked.Wait(ctx)
	if err != nil || value == nil {
		return false, err
	}
	record := S(new(T))
	if err := layout.Decode(key, value, record); err != nil {
		return false, err
	}
	to.Add(record)
	return true, nil
}

// Drop removes the records in a range, if there are any. An unknown commit is retried and
// harmless.
func Drop(ctx context.Context, s Store, tag string, old kv.Range) error {
	var page kv.Page
	err := s.View(ctx, func(tx kv.Attempt) (err error) {
		page, err = tx.Snapshot().GetRange(old, kv.RangeOptions{Limit: 1}).Wait(ctx)
		return err
	})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	_, err = s.Transact(ctx, kv.Options{Tag: tag}, func(tx kv.Attempt) error {
		tx.ClearRange(old)
		return nil
	})
	return err
}
