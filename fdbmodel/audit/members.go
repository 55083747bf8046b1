package audit

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// globalParts are the subspaces outside of the shards, in the order of their
// names.
func (k *checker) globalParts() []part {
	return []part{
		{layout.SubAddresses, CheckPage, 0, k.lookAddresses},
		{layout.SubAliases, CheckPage, 0, k.lookAliases},
		{layout.SubBatches, CheckPage, 0, k.lookBatches},
		{layout.SubConfig, CheckPage, 0, k.lookConfig},
		{layout.SubCode, CheckLargePage, 1, k.lookCode},
		{layout.SubIdle, CheckPage, 0, k.lookIdle},
		{layout.SubIncoming, CheckPage, 0, k.lookIncoming},
		{layout.SubJanitor, CheckPage, 0, k.lookJanitor},
	}
}

// member holds a worker's keys.
type member struct {
	id      layout.WorkerID
	info    *layout.WorkerInfo
	beat    bool
	leftKey []byte // a key that a registered worker may have, and a dead one has until it is reaped
	newer   bool
}

func (k *checker) lookWorkers(shard int) look {
	skip := len(k.keys.WorkersOf(shard))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		return eachEntity(items, skip, 1, func(entity []kv.KeyValue) error {
			rest := tuple.NewReader(entity[0].Key[skip:])
			m := member{id: layout.WorkerID(rest.Text())}
			if rest.Err() != nil || layout.ShardOf(string(m.id), k.keys.Shards) != shard {
				for _, item := range entity {
					f.broken(InvariantKey, item.Key, "no worker has this key")
				}
				return nil
			}
			for _, item := range entity {
				k.readMember(&m, item, f)
			}
			return k.checkMember(ctx, tx, &m, f)
		})
	}
}

func (k *checker) readMember(m *member, item kv.KeyValue, f *findings) {
	rest := tuple.NewReader(item.Key[len(k.keys.WorkerAll(m.id)):])
	field := rest.Text()
	switch field {
	case layout.WorkerClaims:
		rest.Int()
	case layout.WorkerCancelled:
		rest.UUID()
	}
	if rest.Done() != nil {
		field = ""
	}
	switch field {
	case layout.WorkerAlive:
		m.info = new(layout.WorkerInfo)
		m.newer = !f.decoded(item.Key, layout.Decode(item.Key, item.Value, m.info))
	case layout.WorkerHeartbeat:
		m.beat = true
		f.decoded(item.Key, layout.Decode(item.Key, item.Value, new(layout.Heartbeat)))
	case layout.WorkerClaims:
		m.leftKey = item.Key
		var batch layout.ClaimBatch
		err := layout.Decode(item.Key, item.Value, &batch)
		if err == nil && len(batch.IDs)%len(layout.ID{}) != 0 {
			err = fmt.Errorf("%s: %w: %d bytes of ids", tuple.String(item.Key), layout.ErrBadRecord, len(batch.IDs))
		}
		f.decoded(item.Key, err)
	case layout.WorkerCancelled:
		m.leftKey = item.Key
	case layout.WorkerAssigned:
		m.leftKey = item.Key
	case layout.WorkerWake:
		m.leftKey = item.Key
		_, err := layout.DecodeStamped(item.Key, item.Value, &layout.Bell{})
		f.decoded(item.Key, err)
	default:
		f.broken(InvariantKey, item.Key, "unknown part of a worker")
	}
}

func (k *checker) checkMember(ctx context.Context, tx kv.Reader, m *member, f *findings) error {
	switch {
	case m.info == nil && m.beat:
		f.broken(InvariantWorker, k.keys.Worker(m.id, layout.WorkerHeartbeat), "worker %s has a heartbeat and no record",
			m.id)
	case m.info != nil && !m.beat:
		f.broken(InvariantWorker, k.keys.Worker(m.id, layout.WorkerAlive), "worker %s has a record and no heartbeat", m.id)
	case m.info == nil && m.leftKey != nil:
		f.pending(InvariantWorker, m.leftKey, "worker %s is dead; the rest of it is to be reaped", m.id)
	}
	if m.info == nil || m.newer || m.info.Address == "" {
		return nil
	}
	key := k.keys.Address(m.info.Address)
	owner, err := tx.Get(key).Wait(ctx)
	if err == nil && layout.WorkerID(owner) != m.id {
		f.broken(InvariantWorker, key, "worker %s is at the address %s, which belongs to %.40q", m.id, m.info.Address, owner)
	}
	return err
}

// living returns a worker's record, nil if it is not registered, and false if
// the record can't be read.
func (k *checker) living(ctx context.Context, tx kv.Reader, id layout.WorkerID) (*layout.WorkerInfo, bool, error) {
	key := k.keys.Worker(id, layout.WorkerAlive)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil || value == nil {
		return nil, err == nil, err
	}
	info := new(layout.WorkerInfo)
	return info, layout.Decode(key, value, info) == nil, nil
}

func (k *checker) lookAddresses(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(k.keys.Global(layout.SubAddresses)):])
		address, owner := rest.Text(), layout.WorkerID(item.Value)
		if rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no address has this key")
			continue
		}
		info, readable, err := k.living(ctx, tx, owner)
		switch {
		case err != nil:
			return err
		case info == nil && readable:
			f.broken(InvariantAddress, item.Key, "the address leads to worker %.40q, which is not registered", owner)
		case readable && info.Address != address:
			f.broken(InvariantAddress, item.Key, "the address leads to worker %s, which is at %.80q", owner, info.Address)
		}
	}
	return nil
}

func (k *checker) lookIdle(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(k.keys.Global(layout.SubIdle)):])
		queue, id := rest.Text(), layout.WorkerID(rest.Text())
		if rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no idle worker has this key")
			continue
		}
		f.decoded(item.Key, layout.Decode(item.Key, item.Value, new(layout.IdleRecord)))
		info, readable, err := k.living(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case info == nil && readable:
			f.broken(InvariantIdle, item.Key, "worker %s is in the ring of the idle and is not registered", id)
		case readable && !slices.Contains(info.Queues, queue):
			f.broken(InvariantIdle, item.Key, "worker %s is in the ring of a queue that it does not serve", id)
		}
	}
	return nil
}

func (k *checker) lookAliases(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(k.keys.Global(layout.SubAliases)):])
		if rest.Text(); rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no alias has this key")
			continue
		}
		var record layout.AliasRecord
		if !f.decoded(item.Key, layout.Decode(item.Key, item.Value, &record)) {
			continue
		}
		info, err := tx.Get(k.keys.CodeInfo(record.CID)).Wait(ctx)
		if err != nil {
			return err
		}
		if info == nil {
			f.broken(InvariantAlias, item.Key, "the alias stands for module %.80s, which is not stored", record.CID)
		}
	}
	return nil
}

// lookCode checks stored modules, each whole.
func (k *checker) lookCode(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	skip := len(k.keys.Global(layout.SubCode))
	return eachEntity(items, skip, 1, func(entity []kv.KeyValue) error {
		var info *layout.Module
		size, next := int64(0), int64(0)
		sound := true
		for _, item := range entity {
			rest := tuple.NewReader(item.Key[skip:])
			rest.Text()
			what := rest.Text()
			if what == layout.CodeBody {
				sound = sound && rest.Int() == next && (size == next*layout.ChunkSize)
				next++
				size += int64(len(item.Value))
			}
			if rest.Done() != nil || (what != layout.CodeBody && what != layout.CodeInfo) {
				f.broken(InvariantKey, item.Key, "unknown part of a module")
				continue
			}
			if what == layout.CodeInfo {
				if m := new(layout.Module); f.decoded(item.Key, layout.Decode(item.Key, item.Value, m)) {
					info = m
				} else {
					return nil
				}
			}
		}
		switch {
		case info == nil:
			f.pending(InvariantModule, entity[0].Key, "the module is being written, or its writer has died")
		case !sound || size != info.Size:
			f.broken(InvariantModule, entity[0].Key, "the module has %d bytes in %d pieces, not %d in %d",
				size, next, info.Size, layout.Pieces(info.Size))
		}
		return nil
	})
}

// lookConfig compares the immutable settings of the config with those in use.
func (k *checker) lookConfig(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	found := false
	for _, item := range items {
		if !bytes.Equal(item.Key, k.keys.Config()) {
			f.broken(InvariantKey, item.Key, "unknown key")
			continue
		}
		found = true
		var config layout.Config
		if !f.decoded(item.Key, layout.Decode(item.Key, item.Value, &config)) {
			continue
		}
		if opened := k.cluster.Config(); config.Format != opened.Format || config.Shards != opened.Shards ||
			config.Validate() != nil {
			f.broken(InvariantConfig, item.Key, "the cluster was opened with %+v, and has %+v", k.cluster.Config(), config)
		}
	}
	if !found {
		f.broken(InvariantConfig, k.keys.Config(), "the cluster has no config")
	}
	return nil
}

func (k *checker) lookJanitor(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		if !bytes.Equal(item.Key, k.keys.Janitor()) {
			f.broken(InvariantKey, item.Key, "unknown key")
			continue
		}
		f.decoded(item.Key, layout.Decode(item.Key, item.Value, new(layout.JanitorRecord)))
	}
	return nil
}

// lookIncoming records a copy that is in progress.
func (k *checker) lookIncoming(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		if !bytes.Equal(item.Key, k.keys.Incoming()) {
			f.broken(InvariantKey, item.Key, "unknown key")
			continue
		}
		f.pending(InvariantIncoming, item.Key, "the cluster is being copied from elsewhere")
		f.decoded(item.Key, layout.Decode(item.Key, item.Value, new(layout.IncomingRecord)))
	}
	return nil
}
