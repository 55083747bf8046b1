package audit

import (
	"bytes"
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// anyShard is for keys that lie in another shard than their futures.
const anyShard = -1

// lookAssigned checks the assignments of a shard against their futures and
// workers.
func (k *checker) lookAssigned(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubAssigned))
	owner := func(item kv.KeyValue) (layout.WorkerID, error) {
		rest := tuple.NewReader(item.Key[skip:])
		return layout.WorkerID(rest.Text()), rest.Err()
	}
	places := k.lookPlaces(anyShard, InvariantAssigned, func(item kv.KeyValue) (layout.ID, error) {
		worker, err := owner(item)
		if err != nil {
			return layout.ID{}, err
		}
		if prefix := k.keys.AssignedTo(worker); bytes.HasPrefix(item.Key, prefix) {
			e, err := layout.ParseAssigned(item, prefix)
			return e.Id, err
		}
		return layout.ID{}, layout.ErrUnknownPart
	}, k.comparePlace(InvariantAssigned, "the assignments"))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		if err := places(ctx, tx, items, f); err != nil {
			return err
		}
		var last layout.WorkerID
		for _, item := range items {
			worker, err := owner(item)
			if err != nil || worker == last {
				continue
			}
			last = worker
			mark, err := tx.Get(k.keys.Worker(worker, layout.WorkerAssigned)).Wait(ctx)
			if err != nil {
				return err
			}
			// The mark makes a janitor find a worker that has died.
			if mark == nil {
				f.broken(InvariantAssigned, item.Key, "worker %s is not marked as one that futures wait for", worker)
			}
		}
		return nil
	}
}

// lookHeld checks the futures of a shard that wait to be assigned.
func (k *checker) lookHeld(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubHeld))
	return k.lookPlaces(shard, InvariantHeld, func(item kv.KeyValue) (layout.ID, error) {
		rest := tuple.NewReader(item.Key[skip:])
		rest.Text()
		rest.Int()
		rest.Int()
		rest.Int()
		id := layout.ID(rest.UUID())
		return id, rest.Done()
	}, k.comparePlace(InvariantHeld, "the list of the held"))
}

func (k *checker) lookGroups(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubGroups))
	return func(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			group := rest.Text()
			prefix := k.keys.GroupOpenOf(group)
			switch {
			case rest.Err() == nil && bytes.Equal(k.keys.GroupBell(group), item.Key):
				_, err := layout.DecodeStamped(item.Key, item.Value, &struct{}{})
				f.decoded(item.Key, err)
			case rest.Err() == nil && bytes.HasPrefix(item.Key, prefix):
				_, _, err := layout.ParseOpen(prefix, item)
				f.decoded(item.Key, err)
			default:
				f.broken(InvariantKey, item.Key, "no group has this key")
			}
		}
		return nil
	}
}
