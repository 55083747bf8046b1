package layout

import (
	"encoding/binary"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Names of the subspaces and of what lies in them, as they stand in the keys.
const (
	rootName = "futura"

	SubFutures   = "futures"
	SubReady     = "ready"
	SubAssigned  = "assignments"
	SubBatches   = "batches"
	SubHeld      = "held"
	SubGroups    = "groups"
	SubDelayed   = "delayed"
	SubChunks    = "chunks"
	SubDone      = "done"
	SubResults   = "results"
	SubMailbox   = "mailbox"
	SubBell      = "bell"
	SubSessions  = "sessions"
	SubWorkers   = "workers"
	SubCounts    = "counts"
	SubConfig    = "cfg"
	SubIdle      = "idle"
	SubIncoming  = "incoming"
	SubAddresses = "addresses"
	SubJanitor   = "janitor"
	SubCode      = "code"
	SubAliases   = "aliases"

	RowArgs  = "args"
	RowSpec  = "spec"
	rowState = "state"

	StateAttempts    = "attempts"
	StateCancel      = "cancel"
	StateClaim       = "claim"
	StateException   = "exception"
	StateResult      = "result"
	stateSubscribers = "subscribers"

	WorkerAlive     = "alive"
	WorkerClaims    = "claims"
	WorkerHeartbeat = "heartbeat"
	WorkerWake      = "wake"
	WorkerAssigned  = "assigned"
	WorkerCancelled = "cancelled"

	groupBell = "bell"
	GroupOpen = "open"

	BatchByID       = "by-id"
	BatchByTime     = "by-time"
	BatchRecordPart = "record"
	BatchChunksPart = "chunks"

	ChunkArgs   = "args"
	ChunkResult = "result"
	ChunkStderr = "stderr"

	CodeInfo = "info"
	CodeBody = "body"
)

// Keyspace makes every key of one cluster. One function, one kind of key; the
// package documentation has them as a table.
type Keyspace struct {
	Prefix []byte
	Shards int
}

// NewKeyspace returns the keys of a cluster; its shards are set once its config
// was read.
func NewKeyspace(cluster string) Keyspace {
	return Keyspace{Prefix: tuple.AppendString(tuple.AppendString(nil, rootName), cluster)}
}

// All is everything of the cluster.
func (k Keyspace) All() kv.Range { return kv.Prefix(k.Prefix) }

// Global is a subspace of the whole cluster.
func (k Keyspace) Global(sub string) []byte {
	return tuple.AppendString(append(make([]byte, 0, 64), k.Prefix...), sub)
}

// Shard is a subspace of one shard.
func (k Keyspace) Shard(shard int, sub string) []byte {
	return tuple.AppendString(k.shardPrefix(shard), sub)
}

func (k Keyspace) shardPrefix(shard int) []byte {
	b := append(make([]byte, 0, len(k.Prefix)+64), k.Prefix...)
	return tuple.AppendInt(b, int64(shard))
}

// Rows of futures.

// Row is what all keys of a future begin with, but those of its chunks.
func (k Keyspace) Row(id ID) []byte {
	return tuple.AppendUUID(k.Shard(id.Shard(k.Shards), SubFutures), id)
}

// Args holds arguments that are too large for the spec.
func (k Keyspace) Args(id ID) []byte { return tuple.AppendString(k.Row(id), RowArgs) }

// Spec holds what never changes of a future.
func (k Keyspace) Spec(id ID) []byte { return tuple.AppendString(k.Row(id), RowSpec) }

// State is a field of what changes of a future.
func (k Keyspace) State(id ID, field string) []byte {
	return tuple.AppendString(k.StateOf(id), field)
}

// StateOf is what the fields of State begin with.
func (k Keyspace) StateOf(id ID) []byte { return tuple.AppendString(k.Row(id), rowState) }

// Subscriber is the mark of a session that awaits a future.
func (k Keyspace) Subscriber(id ID, session SessionID) []byte {
	return tuple.AppendString(k.State(id, stateSubscribers), string(session))
}

// StateRange is the row read: everything of a future that changes.
func (k Keyspace) StateRange(id ID) kv.Range { return kv.Prefix(k.StateOf(id)) }

// RecordRange is the spec and everything that changes, without large arguments.
func (k Keyspace) RecordRange(id ID) kv.Range {
	return kv.Range{Begin: k.Spec(id), End: kv.AfterPrefix(k.StateOf(id))}
}

// RowRange is all of a future but its chunks.
func (k Keyspace) RowRange(id ID) kv.Range { return kv.Prefix(k.Row(id)) }

// FuturesOf is what the rows of a shard begin with.
func (k Keyspace) FuturesOf(shard int) []byte { return k.Shard(shard, SubFutures) }

// Places where an unclaimed future waits.

// Class is what decides which worker may take a ready future, before its
// priority: futures of one class lie together in the index.
type Class struct {
	Queue, Group  string
	Cpu, Ram, Gpu int64
}

// ReadyQueue is what the ready keys of a queue in a shard begin with.
func (k Keyspace) ReadyQueue(shard int, queue string) []byte {
	return tuple.AppendString(k.Shard(shard, SubReady), queue)
}

func (k Keyspace) readyClass(shard int, c Class) []byte {
	b := tuple.AppendString(k.ReadyQueue(shard, c.Queue), c.Group)
	return tuple.AppendInt(tuple.AppendInt(tuple.AppendInt(b, c.Cpu), c.Ram), c.Gpu)
}

// Ready is the place of a future in the pool.
func (k Keyspace) Ready(id ID, spec *Spec) []byte {
	b := k.readyClass(id.Shard(k.Shards), spec.Class())
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

// Waits is where a future waits that is ready, or held and delayed: for the
// worker that it was assigned to, for Assign, or in the pool.
func (k Keyspace) Waits(row *Row) []byte {
	switch {
	case row.Attempts.Assigned != "":
		return k.Assigned(row.Attempts.Assigned, row.ID, row.Spec)
	case row.Spec.Held:
		return k.Held(row)
	default:
		return k.Ready(row.ID, row.Spec)
	}
}

// AssignedTo is what the assignments to a worker begin with.
func (k Keyspace) AssignedTo(w WorkerID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(w), k.Shards), SubAssigned), string(w))
}

// Assigned is the place of a future that waits for a worker.
func (k Keyspace) Assigned(w WorkerID, id ID, spec *Spec) []byte {
	b := tuple.AppendString(tuple.AppendString(k.AssignedTo(w), spec.Queue), spec.Group)
	b = tuple.AppendInt(b, spec.Requirements.CPU)
	b = tuple.AppendInt(tuple.AppendInt(b, spec.Requirements.RAM), spec.Requirements.GPU)
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

// HeldOf is what the held keys of a group in a shard begin with.
func (k Keyspace) HeldOf(shard int, group string) []byte {
	return tuple.AppendString(k.Shard(shard, SubHeld), group)
}

// Held names the failed attempts, so that who counts can tell apart what has
// not been tried, and until when it waits.
func (k Keyspace) Held(row *Row) []byte {
	b := tuple.AppendInt(k.HeldOf(row.ID.Shard(k.Shards), row.Spec.Group), int64(row.Attempts.Failed))
	b = tuple.AppendInt(b, row.Attempts.Due)
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(row.Spec.Priority)), row.ID)
}

// Batches.

// Batch is what the keys of a batch begin with.
func (k Keyspace) Batch(id string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Global(SubBatches), BatchByID), id)
}

// BatchRecord holds the record of a batch.
func (k Keyspace) BatchRecord(id string) []byte {
	return tuple.AppendString(k.Batch(id), BatchRecordPart)
}

// BatchChunksOf is what the chunks of a batch begin with.
func (k Keyspace) BatchChunksOf(id string) []byte {
	return tuple.AppendString(k.Batch(id), BatchChunksPart)
}

// BatchChunk holds the record of a chunk.
func (k Keyspace) BatchChunk(id, chunk string) []byte {
	return tuple.AppendString(k.BatchChunksOf(id), chunk)
}

// BatchesByTime is what the list of batches begins with.
func (k Keyspace) BatchesByTime() []byte {
	return tuple.AppendString(k.Global(SubBatches), BatchByTime)
}

// BatchAt is the place of a batch in the list, by the time it was made.
func (k Keyspace) BatchAt(at int64, id string) []byte {
	return tuple.AppendString(tuple.AppendInt(k.BatchesByTime(), at), id)
}

// Group is what the keys of a group begin with.
func (k Keyspace) Group(group string) []byte {
	return tuple.AppendString(k.Shard(ShardOf(group, k.Shards), SubGroups), group)
}

// GroupBell changes when a held future of the group ends or waits.
func (k Keyspace) GroupBell(group string) []byte {
	return tuple.AppendString(k.Group(group), groupBell)
}

// GroupOpenOf is what the counters of GroupOpen begin with.
func (k Keyspace) GroupOpenOf(group string) []byte {
	return tuple.AppendString(k.Group(group), GroupOpen)
}

// GroupOpen counts the futures of a group that are with workers, by what they
// were assigned for.
func (k Keyspace) GroupOpen(group, why string) []byte {
	return tuple.AppendString(k.GroupOpenOf(group), why)
}

// DelayedOf is what the delayed keys of a shard begin with, the next due first.
func (k Keyspace) DelayedOf(shard int) []byte { return k.Shard(shard, SubDelayed) }

// Delayed is the place of a future that waits for a time.
func (k Keyspace) Delayed(id ID, due int64) []byte {
	return tuple.AppendUUID(tuple.AppendInt(k.DelayedOf(id.Shard(k.Shards)), due), id)
}

// Large values.

// ChunksOf is what the chunks of a shard begin with.
func (k Keyspace) ChunksOf(shard int) []byte { return k.Shard(shard, SubChunks) }

// ChunksOfFuture is what the chunks of a future begin with.
func (k Keyspace) ChunksOfFuture(id ID) []byte {
	return tuple.AppendUUID(k.ChunksOf(id.Shard(k.Shards)), id)
}

// Chunks is what the chunks of one large value begin with.
func (k Keyspace) Chunks(id ID, ref ChunkRef) []byte {
	b := tuple.AppendString(k.ChunksOfFuture(id), ref.Kind)
	return tuple.AppendString(b, ref.Token)
}

// Chunk holds the i-th piece of a large value, counted from 0.
func (k Keyspace) Chunk(id ID, ref ChunkRef, i int) []byte {
	return tuple.AppendInt(k.Chunks(id, ref), int64(i))
}

// Notification and the end of futures.

// Mailbox is what the notices for a session begin with.
func (k Keyspace) Mailbox(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubMailbox), string(session))
}

// Bell changes when a session gets mail.
func (k Keyspace) Bell(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubBell), string(session))
}

// Session holds the sign of life of a session.
func (k Keyspace) Session(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubSessions), string(session))
}

// DoneOf is what the list of the finished of a shard begins with.
func (k Keyspace) DoneOf(shard int) []byte { return k.Shard(shard, SubDone) }

// Workers.

// WorkersOf is what the keys of the workers of a shard begin with.
func (k Keyspace) WorkersOf(shard int) []byte { return k.Shard(shard, SubWorkers) }

// Worker is a field of a worker.
func (k Keyspace) Worker(w WorkerID, field string) []byte {
	return tuple.AppendString(k.WorkerAll(w), field)
}

// WorkerAll is what all fields of a worker begin with.
func (k Keyspace) WorkerAll(w WorkerID) []byte {
	return tuple.AppendString(k.WorkersOf(ShardOf(string(w), k.Shards)), string(w))
}

// Claims holds the futures that one claim transaction of a worker took.
func (k Keyspace) Claims(w WorkerID, seq int64) []byte {
	return tuple.AppendInt(k.Worker(w, WorkerClaims), seq)
}

// Cancelled is the mark that a worker is asked to stop a future.
func (k Keyspace) Cancelled(w WorkerID, id ID) []byte {
	return tuple.AppendUUID(k.Worker(w, WorkerCancelled), id)
}

// Address holds the worker that is at an address.
func (k Keyspace) Address(address string) []byte {
	return tuple.AppendString(k.Global(SubAddresses), address)
}

// IdleQueue is what the ring of idle workers of a queue begins with.
func (k Keyspace) IdleQueue(queue string) []byte { return tuple.AppendString(k.Global(SubIdle), queue) }

// Idle holds what an idle worker could take.
func (k Keyspace) Idle(queue string, w WorkerID) []byte {
	return tuple.AppendString(k.IdleQueue(queue), string(w))
}

// Counters.

// CountsOf is what the counters of a shard begin with.
func (k Keyspace) CountsOf(shard int) []byte { return k.Shard(shard, SubCounts) }

// CountGroup is what the counters of a group begin with.
func (k Keyspace) CountGroup(shard int, queue, group string) []byte {
	return tuple.AppendString(tuple.AppendString(k.CountsOf(shard), queue), group)
}

// Count counts the futures of a shard by queue, group and state.
func (k Keyspace) Count(shard int, queue, group string, s State) []byte {
	return tuple.AppendString(k.CountGroup(shard, queue, group), s.String())
}

// The cluster's own records.

// Config holds the config of the cluster.
func (k Keyspace) Config() []byte { return k.Global(SubConfig) }

// Janitor holds who is the janitor.
func (k Keyspace) Janitor() []byte { return k.Global(SubJanitor) }

// Incoming marks a cluster that is being copied from elsewhere.
func (k Keyspace) Incoming() []byte { return k.Global(SubIncoming) }

// CodeOf is what the keys of a module begin with.
func (k Keyspace) CodeOf(cid string) []byte { return tuple.AppendString(k.Global(SubCode), cid) }

// CodeInfo holds the record of a module, written once its body is whole.
func (k Keyspace) CodeInfo(cid string) []byte {
	return tuple.AppendString(k.CodeOf(cid), CodeInfo)
}

// CodeBody holds the i-th piece of a module, counted from 0.
func (k Keyspace) CodeBody(cid string, i int) []byte {
	return tuple.AppendInt(tuple.AppendString(k.CodeOf(cid), CodeBody), int64(i))
}

// Alias holds the module that a name stands for.
func (k Keyspace) Alias(name string) []byte { return tuple.AppendString(k.Global(SubAliases), name) }

// Millis is how times stand in keys and records.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// EncodeCounter is a counter as it stands in the store.
func EncodeCounter(n int64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(n))
}
