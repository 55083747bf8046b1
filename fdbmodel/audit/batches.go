package audit

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// lookBatches checks the records of batches.
func (k *checker) lookBatches(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	skip := len(k.keys.Global(layout.SubBatches))
	for _, item := range items {
		rest := tuple.NewReader(item.Key[skip:])
		switch rest.Text() {
		case layout.BatchByTime:
			rest.Int()
			id := rest.Text()
			if rest.Done() != nil {
				f.broken(InvariantKey, item.Key, "no batch has this key")
				continue
			}
			if err := k.requireBatch(ctx, tx, id, item, f); err != nil {
				return err
			}
		case layout.BatchByID:
			if err := k.checkBatch(ctx, tx, rest, item, f); err != nil {
				return err
			}
		default:
			f.broken(InvariantKey, item.Key, "no batch has this key")
		}
	}
	return nil
}

func (k *checker) checkBatch(ctx context.Context, tx kv.Reader, rest tuple.Reader, item kv.KeyValue, f *findings,
) error {
	id := rest.Text()
	switch rest.Text() {
	case layout.BatchRecordPart:
		b := layout.BatchRecord{ID: id}
		if rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no batch has this key")
		} else if f.decoded(item.Key, layout.Decode(item.Key, item.Value, &b)) {
			listed, err := tx.Get(k.keys.BatchAt(b.CreatedAt, id)).Wait(ctx)
			if err != nil {
				return err
			}
			if listed == nil {
				f.broken(InvariantBatch, item.Key, "batch %s is not in the list of batches", id)
			}
		}
	case layout.BatchChunksPart:
		if rest.Text(); rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no batch has this key")
			return nil
		}
		f.decoded(item.Key, layout.Decode(item.Key, item.Value, new(layout.BatchChunk)))
		return k.requireBatch(ctx, tx, id, item, f)
	default:
		f.broken(InvariantKey, item.Key, "no batch has this key")
	}
	return nil
}

// requireBatch checks that the batch named by a key exists.
func (k *checker) requireBatch(ctx context.Context, tx kv.Reader, id string, item kv.KeyValue, f *findings) error {
	record, err := tx.Get(k.keys.BatchRecord(id)).Wait(ctx)
	if err == nil && record == nil {
		f.broken(InvariantBatch, item.Key, "there is no batch %s", id)
	}
	return err
}
