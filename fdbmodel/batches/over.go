package batches

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
)

// End is Update for a batch whose items are all over; of another one the record stays as it
// is. The transaction conflicts with an item that starts over.
func (s *Batches) End(ctx context.Context, id string, change func(*layout.BatchRecord) (bool, error),
) (layout.BatchRecord, error) {
	return s.update(ctx, id, func(tx kv.Reader, b *layout.BatchRecord) (bool, error) {
		counts, err := owners.Of(s.cluster).CountsIn(ctx, tx, b.Queue, id)
		if err != nil || counts[layout.Realized]+counts[layout.Failed] < int64(b.Items) {
			return false, err
		}
		return change(b)
	})
}

// Retry has failed items of a batch start over, at most fdbmodel.MaxAssign of them. If any
// does, open changes the record of the batch in the same transaction: no item waits while its
// batch is over. It returns how many started over, fdbmodel.ErrNotFound, or the error of open.
// An unknown commit is retried: items that do not fail any more by then have started over.
func (s *Batches) Retry(ctx context.Context, id string, items []layout.ID, open func(*layout.BatchRecord) error,
) (int, error) {
	retried := 0
	_, err := s.cluster.Change(ctx, kv.Options{Tag: "futura-retry"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		retried = 0
		b, err := s.read(ctx, tx, id)
		if err != nil {
			return err
		}
		outcomes, err := w.RetryMany(ctx, items)
		if err != nil {
			return err
		}
		for _, o := range outcomes {
			if o == fdbmodel.Applied || tx.MaybeCommitted && o == fdbmodel.Refused {
				retried++
			}
		}
		if !slices.Contains(outcomes, fdbmodel.Applied) {
			return nil
		}
		if err := open(&b); err != nil {
			return err
		}
		s.write(tx, &b)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return retried, nil
}

// Cancel cancels items of a batch, at most fdbmodel.MaxAssign of them, unless may returns false for the batch: then it
// does nothing. It returns fdbmodel.ErrNotFound. An unknown commit is retried and harmless.
func (s *Batches) Cancel(ctx context.Context, id string, items []layout.ID, reason string,
	may func(*layout.BatchRecord) bool,
) error {
	_, err := s.cluster.Change(ctx, kv.Options{Tag: "futura-cancel"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		b, err := s.read(ctx, tx, id)
		if err != nil || !may(&b) {
			return err
		}
		_, err = w.CancelMany(ctx, items, reason)
		return err
	})
	return err
}

// Bury begins the removal of a batch that may returns nil for: it is not made any more, and nobody makes it again, so
// that no item starts over while others are gone. It returns fdbmodel.ErrTransition while an item is not over,
// fdbmodel.ErrNotFound, and the error of may. An unknown commit is retried: a batch that is buried stays so.
func (s *Batches) Bury(ctx context.Context, id string, may func(*layout.BatchRecord) error) error {
	_, err := s.update(ctx, id, func(tx kv.Reader, b *layout.BatchRecord) (bool, error) {
		if IsBuried(b) {
			return false, nil
		}
		if err := may(b); err != nil {
			return false, err
		}
		counts, err := owners.Of(s.cluster).CountsIn(ctx, tx, b.Queue, id)
		if err != nil {
			return false, err
		}
		for state, n := range counts {
			if b.Made && !state.Terminal() && n != 0 {
				return false, fmt.Errorf("batch %s has %d items that are %v: %w", id, n, state, fdbmodel.ErrTransition)
			}
		}
		b.Made, b.Maker, b.Digest = false, "", nil
		return true, nil
	})
	return err
}

// IsBuried reports whether a batch is being removed: nobody makes it.
func IsBuried(b *layout.BatchRecord) bool { return !b.Made && b.Maker == "" }
