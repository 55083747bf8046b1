package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// globalParts are the subspaces outside of the shards, in the order of their
// names.
func (k *checker) globalParts() []part {
	return []part{
		{subAddresses, checkPage, 0, k.lookAddresses},
		{subAliases, checkPage, 0, k.lookAliases},
		{subBatches, checkPage, 0, k.lookBatches},
		{subConfig, checkPage, 0, k.lookConfig},
		{subCode, checkLargePage, 1, k.lookCode},
		{subIdle, checkPage, 0, k.lookIdle},
		{subIncoming, checkPage, 0, k.lookIncoming},
		{subJanitor, checkPage, 0, k.lookJanitor},
	}
}

// member is a worker's keys.
type member struct {
	id      WorkerID
	info    *WorkerInfo
	beat    bool
	leftKey []byte // a key that a living worker may have, and a dead one has until it is reaped
	newer   bool
}

func (k *checker) lookWorkers(shard int) look {
	skip := len(k.keys.workersOf(shard))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		return eachEntity(items, skip, 1, func(entity []kv.KeyValue) error {
			rest := tuple.NewReader(entity[0].Key[skip:])
			m := member{id: WorkerID(rest.Text())}
			if rest.Err() != nil || shardOf(string(m.id), k.keys.shards) != shard {
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
	rest := tuple.NewReader(item.Key[len(k.keys.workerAll(m.id)):])
	field := rest.Text()
	switch field {
	case workerClaims:
		rest.Int()
	case workerCancelled:
		rest.UUID()
	}
	if rest.Done() != nil {
		field = ""
	}
	switch field {
	case workerAlive:
		m.info = new(WorkerInfo)
		m.newer = !f.decoded(item.Key, decodeRecord(item.Key, item.Value, m.info))
	case workerHeartbeat:
		m.beat = true
		f.decoded(item.Key, decodeRecord(item.Key, item.Value, new(Heartbeat)))
	case workerClaims:
		m.leftKey = item.Key
		var batch claimBatch
		err := decodeRecord(item.Key, item.Value, &batch)
		if err == nil && len(batch.IDs)%len(ID{}) != 0 {
			err = fmt.Errorf("%s: %w: %d bytes of ids", tuple.String(item.Key), ErrBadRecord, len(batch.IDs))
		}
		f.decoded(item.Key, err)
	case workerCancelled:
		m.leftKey = item.Key
	case workerAssigned:
		m.leftKey = item.Key
	case workerWake:
		m.leftKey = item.Key
		_, err := decodeStamped(item.Key, item.Value, &struct{}{})
		f.decoded(item.Key, err)
	default:
		f.broken(InvariantKey, item.Key, "unknown part of a worker")
	}
}

func (k *checker) checkMember(ctx context.Context, tx kv.Reader, m *member, f *findings) error {
	switch {
	case m.info == nil && m.beat:
		f.broken(InvariantWorker, k.keys.worker(m.id, workerHeartbeat), "worker %s has a heartbeat and no record", m.id)
	case m.info != nil && !m.beat:
		f.broken(InvariantWorker, k.keys.worker(m.id, workerAlive), "worker %s has a record and no heartbeat", m.id)
	case m.info == nil && m.leftKey != nil:
		f.pending(InvariantWorker, m.leftKey, "worker %s is dead; the rest of it is to be reaped", m.id)
	}
	if m.info == nil || m.newer || m.info.Address == "" {
		return nil
	}
	key := k.keys.address(m.info.Address)
	owner, err := tx.Get(key).Wait(ctx)
	if err == nil && WorkerID(owner) != m.id {
		f.broken(InvariantWorker, key, "worker %s is at the address %s, which belongs to %.40q", m.id, m.info.Address, owner)
	}
	return err
}

// living returns a worker's record, nil if it has none, and false if it can't be
// read.
func (k *checker) living(ctx context.Context, tx kv.Reader, id WorkerID) (*WorkerInfo, bool, error) {
	key := k.keys.worker(id, workerAlive)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil || value == nil {
		return nil, err == nil, err
	}
	info := new(WorkerInfo)
	return info, decodeRecord(key, value, info) == nil, nil
}

func (k *checker) lookAddresses(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(k.keys.global(subAddresses)):])
		address, owner := rest.Text(), WorkerID(item.Value)
		if rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no address has this key")
			continue
		}
		info, readable, err := k.living(ctx, tx, owner)
		switch {
		case err != nil:
			return err
		case info == nil && readable:
			f.broken(InvariantAddress, item.Key, "the address leads to worker %.40q, which does not live", owner)
		case readable && info.Address != address:
			f.broken(InvariantAddress, item.Key, "the address leads to worker %s, which is at %.80q", owner, info.Address)
		}
	}
	return nil
}

func (k *checker) lookIdle(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(k.keys.global(subIdle)):])
		queue, id := rest.Text(), WorkerID(rest.Text())
		if rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no idle worker has this key")
			continue
		}
		f.decoded(item.Key, decodeRecord(item.Key, item.Value, new(idleRecord)))
		info, readable, err := k.living(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case info == nil && readable:
			f.broken(InvariantIdle, item.Key, "worker %s is in the ring of the idle and does not live", id)
		case readable && !slices.Contains(info.Queues, queue):
			f.broken(InvariantIdle, item.Key, "worker %s is in the ring of a queue that it does not serve", id)
		}
	}
	return nil
}

func (k *checker) lookAliases(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(k.keys.global(subAliases)):])
		if rest.Text(); rest.Done() != nil {
			f.broken(InvariantKey, item.Key, "no alias has this key")
			continue
		}
		var record aliasRecord
		if !f.decoded(item.Key, decodeRecord(item.Key, item.Value, &record)) {
			continue
		}
		info, err := tx.Get(k.keys.codeInfo(record.CID)).Wait(ctx)
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
	skip := len(k.keys.global(subCode))
	return eachEntity(items, skip, 1, func(entity []kv.KeyValue) error {
		var info *Module
		size, next := int64(0), int64(0)
		sound := true
		for _, item := range entity {
			rest := tuple.NewReader(item.Key[skip:])
			rest.Text()
			what := rest.Text()
			if what == codeBody {
				sound = sound && rest.Int() == next && (size == next*chunkSize)
				next++
				size += int64(len(item.Value))
			}
			if rest.Done() != nil || (what != codeBody && what != codeInfo) {
				f.broken(InvariantKey, item.Key, "unknown part of a module")
				continue
			}
			if what == codeInfo {
				if m := new(Module); f.decoded(item.Key, decodeRecord(item.Key, item.Value, m)) {
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
				size, next, info.Size, pieces(info.Size))
		}
		return nil
	})
}

// lookConfig compares what never changes of the config with the one in use.
func (k *checker) lookConfig(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	found := false
	for _, item := range items {
		if !bytes.Equal(item.Key, k.keys.config()) {
			f.broken(InvariantKey, item.Key, "unknown key")
			continue
		}
		found = true
		var config Config
		if !f.decoded(item.Key, decodeRecord(item.Key, item.Value, &config)) {
			continue
		}
		if opened := k.cluster.config; config.Format != opened.Format || config.Shards != opened.Shards ||
			config.validate() != nil {
			f.broken(InvariantConfig, item.Key, "the cluster was opened with %+v, and has %+v", k.cluster.config, config)
		}
	}
	if !found {
		f.broken(InvariantConfig, k.keys.config(), "the cluster has no config")
	}
	return nil
}

func (k *checker) lookJanitor(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		if !bytes.Equal(item.Key, k.keys.janitor()) {
			f.broken(InvariantKey, item.Key, "unknown key")
			continue
		}
		f.decoded(item.Key, decodeRecord(item.Key, item.Value, new(janitorRecord)))
	}
	return nil
}

// lookIncoming takes note of a copy that is under way.
func (k *checker) lookIncoming(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		if !bytes.Equal(item.Key, k.keys.incoming()) {
			f.broken(InvariantKey, item.Key, "unknown key")
			continue
		}
		f.pending(InvariantIncoming, item.Key, "the cluster is being copied from elsewhere")
		f.decoded(item.Key, decodeRecord(item.Key, item.Value, new(incomingRecord)))
	}
	return nil
}
