package batches

import (
	"context"
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
