package audit

import (
	"bytes"
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// checkPlace looks for an unclaimed future where it has to wait.
func (k *checker) checkPlace(ctx context.Context, r *checkedRow, f *findings) error {
	if r.place == nil {
		return nil
	}
	value, err := r.waits.Wait(ctx)
	if err == nil && value == nil {
		f.broken(Invariant(r.place.Kind), r.place.Key(k.keys, &r.Row), "future %s is %v and has no %s key",
			r.ID, r.State(), r.place.Kind)
	}
	return err
}

// lookPlace checks the keys of one kind of place in a shard: each must belong
// to a future that waits there.
func (k *checker) lookPlace(kind string, shard int) look {
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		pending := make([]*read.Pending, len(items))
		for i, item := range items {
			found := layout.DescribeKey(item.Key)
			id, ok := found.Part("id").(layout.ID)
			// An assigned future lies in the shard of its worker.
			if !ok || found.Kind != kind || kind != layout.PlaceAssigned && id.Shard(k.keys.Shards) != shard {
				f.broken(InvariantKey, item.Key, "no future can wait here")
				continue
			}
			asked := read.Record(tx, k.keys, id)
			pending[i] = &asked
		}
		for i, item := range items {
			if pending[i] == nil {
				continue
			}
			row, _, err := pending[i].Wait(ctx)
			switch {
			case layout.IsUnreadable(err):
				// The record is reported by the check of its row.
			case err != nil:
				return err
			case row.Spec == nil:
				f.broken(Invariant(kind), item.Key, "future %s waits here and does not exist", row.ID)
			default:
				k.comparePlace(kind, &row, item, f)
			}
		}
		if kind == layout.PlaceAssigned {
			return k.checkMarks(ctx, tx, items, f)
		}
		return nil
	}
}

// comparePlace compares a key of a place with the future that it stands for.
func (k *checker) comparePlace(kind string, r *layout.Row, item kv.KeyValue, f *findings) {
	place := layout.PlaceOf(r)
	switch {
	case place == nil || place.Kind != kind:
		f.broken(Invariant(kind), item.Key, "future %s is %v and has a key here", r.ID, r.State())
	case !bytes.Equal(place.Key(k.keys, r), item.Key):
		f.broken(Invariant(kind), item.Key, "future %s has the wrong %s key", r.ID, kind)
	case !bytes.Equal(place.Value(r), item.Value):
		f.broken(Invariant(kind), item.Key, "future %s waits here with %.80q, not %.80q", r.ID, item.Value, place.Value(r))
	}
}

// checkMarks looks for the mark by which a janitor finds a worker that died with
// assignments.
func (k *checker) checkMarks(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	last := ""
	for _, item := range items {
		found := layout.DescribeKey(item.Key)
		worker, ok := found.Part("worker").(string)
		if !ok || worker == last {
			continue
		}
		last = worker
		mark, err := tx.Get(k.keys.Worker(layout.WorkerID(worker), layout.WorkerAssigned)).Wait(ctx)
		if err != nil {
			return err
		}
		if mark == nil {
			f.broken(InvariantAssigned, item.Key, "worker %s is not marked as one that futures wait for", worker)
		}
	}
	return nil
}
