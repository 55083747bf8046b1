package fdbmodel

import (
	"bytes"
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// anyShard is for keys that lie in another shard than their futures.
const anyShard = -1

// lookAssigned checks the assignments of a shard against their futures and
// workers.
func (k *checker) lookAssigned(shard int) look {
	skip := len(k.keys.shard(shard, subAssigned))
	owner := func(item kv.KeyValue) (WorkerID, error) {
		rest := tuple.NewReader(item.Key[skip:])
		return WorkerID(rest.Text()), rest.Err()
	}
	places := k.lookPlaces(anyShard, InvariantAssigned, func(item kv.KeyValue) (ID, error) {
		worker, err := owner(item)
		if err != nil {
			return ID{}, err
		}
		if prefix := k.keys.assignedTo(worker); bytes.HasPrefix(item.Key, prefix) {
			e, err := parseAssigned(item, prefix)
			return e.id, err
		}
		return ID{}, errUnknownPart
	}, k.comparePlace(InvariantAssigned, "the assignments"))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		if err := places(ctx, tx, items, f); err != nil {
			return err
		}
		var last WorkerID
		for _, item := range items {
			worker, err := owner(item)
			if err != nil || worker == last {
				continue
			}
			last = worker
			mark, err := tx.Get(k.keys.worker(worker, workerAssigned)).Wait(ctx)
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
	skip := len(k.keys.shard(shard, subHeld))
	return k.lookPlaces(shard, InvariantHeld, func(item kv.KeyValue) (ID, error) {
		rest := tuple.NewReader(item.Key[skip:])
		rest.Text()
		rest.Int()
		rest.Int()
		rest.Int()
		id := ID(rest.UUID())
		return id, rest.Done()
	}, k.comparePlace(InvariantHeld, "the list of the held"))
}

func (k *checker) lookGroups(shard int) look {
	skip := len(k.keys.shard(shard, subGroups))
	return func(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			group := rest.Text()
			prefix := k.keys.groupOpenOf(group)
			switch {
			case rest.Err() == nil && bytes.Equal(k.keys.groupBell(group), item.Key):
				_, err := decodeStamped(item.Key, item.Value, &struct{}{})
				f.decoded(item.Key, err)
			case rest.Err() == nil && bytes.HasPrefix(item.Key, prefix):
				_, _, err := parseOpen(prefix, item)
				f.decoded(item.Key, err)
			default:
				f.broken(InvariantKey, item.Key, "no group has this key")
			}
		}
		return nil
	}
}
