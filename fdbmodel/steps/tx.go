package steps

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// WriteTx records a step with what fn writes, in one transaction under the fence of the claim. fn returns the
// value of the step, of at most MaxInline bytes, and is called in each attempt at the transaction, so that
// it must have no other effects. It returns the value that is on record, and the version of the commit.
//
// It returns ErrLost if the worker has lost the claim, ErrTooLarge, and the error of fn: then nothing is
// written. An unknown commit is retried: if the step is on record then, fn is not called again. If it returns
// kv.ErrUnknownResult, the step may be on record: call it once more with Again, or not at all.
func (s *Steps) WriteTx(ctx context.Context, r *fdbmodel.Registration, e Entry,
	fn func(ctx context.Context, tx kv.Tx) ([]byte, error),
) (value []byte, version kv.Version, err error) {
	if err := e.check(); err != nil {
		return nil, kv.NoVersion, err
	}
	key := s.keys.Step(e.Future.ID, e.Name)
	held := func() []*fdbmodel.ClaimedFuture {
		if e.Ended != nil && e.Ended() {
			return []*fdbmodel.ClaimedFuture{nil}
		}
		return []*fdbmodel.ClaimedFuture{e.Future}
	}
	version, err = r.Under(ctx, kv.Options{Tag: "futura-step"}, true, held,
		func(ctx context.Context, tx kv.Attempt, held []bool) error {
			// The late twin of an attempt with an unknown result can't commit beside its retry.
			tx.AddReadConflictKey(key)
			if tx.MaybeCommitted || e.Again {
				found, err := s.recorded(ctx, tx, &e)
				if err != nil || found != nil {
					value = found
					return err
				}
			}
			if !held[0] {
				return ErrLost
			}
			if value, err = fn(ctx, tx); err != nil {
				return err
			}
			if n := len(value); n > MaxInline {
				return fmt.Errorf("%w: step %s of future %s returned %d bytes in its transaction: at most %d; return less, or "+
					"what a step without a transaction makes of it", fdbmodel.ErrTooLarge, e.Name, e.Future.ID, n, MaxInline)
			}
			e.Record.Value, e.Record.Size = value, int64(len(value))
			s.write(tx, r, &e)
			return nil
		})
	return value, version, err
}

// recorded returns the value of a step that an earlier attempt at a transaction has recorded, nil if it has not.
func (s *Steps) recorded(ctx context.Context, tx kv.Reader, e *Entry) ([]byte, error) {
	key := s.keys.Step(e.Future.ID, e.Name)
	stored, err := tx.Get(key).Wait(ctx)
	if err != nil || stored == nil {
		return nil, err
	}
	var found Record
	if layout.Decode(key, stored, &found) != nil || found.Token != e.Record.Token || found.Number != e.Record.Number {
		return nil, nil
	}
	return append([]byte{}, found.Value...), nil
}
