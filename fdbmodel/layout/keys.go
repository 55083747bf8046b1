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
	SubOwners    = "owners"
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

	ownerBell     = "bell"
	OwnerOpenPart = "open"

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

// keyspace makes every key of one cluster. One function, one kind of key; the
// package documentation has them as a table.
type Keyspace struct {
	Prefix []byte
	Shards int
}

func NewKeyspace(cluster string) Keyspace {
	return Keyspace{Prefix: tuple.AppendString(tuple.AppendString(nil, rootName), cluster)}
}

// all is everything of the cluster.
func (k Keyspace) All() kv.Range { return kv.Prefix(k.Prefix) }

func (k Keyspace) Global(sub string) []byte {
	return tuple.AppendString(append(make([]byte, 0, 64), k.Prefix...), sub)
}

func (k Keyspace) Shard(shard int, sub string) []byte {
	return tuple.AppendString(k.shardPrefix(shard), sub)
}

func (k Keyspace) shardPrefix(shard int) []byte {
	b := append(make([]byte, 0, len(k.Prefix)+64), k.Prefix...)
	return tuple.AppendInt(b, int64(shard))
}

// Rows of futures.

func (k Keyspace) Row(id ID) []byte {
	return tuple.AppendUUID(k.Shard(id.Shard(k.Shards), SubFutures), id)
}

func (k Keyspace) Args(id ID) []byte { return tuple.AppendString(k.Row(id), RowArgs) }

func (k Keyspace) Spec(id ID) []byte { return tuple.AppendString(k.Row(id), RowSpec) }

func (k Keyspace) State(id ID, field string) []byte {
	return tuple.AppendString(k.StateOf(id), field)
}

func (k Keyspace) StateOf(id ID) []byte { return tuple.AppendString(k.Row(id), rowState) }

func (k Keyspace) Subscriber(id ID, session SessionID) []byte {
	return tuple.AppendString(k.State(id, stateSubscribers), string(session))
}

// stateRange is the row read: everything of a future that changes.
func (k Keyspace) StateRange(id ID) kv.Range { return kv.Prefix(k.StateOf(id)) }

// recordRange is the spec and everything that changes, without large arguments.
func (k Keyspace) RecordRange(id ID) kv.Range {
	return kv.Range{Begin: k.Spec(id), End: kv.AfterPrefix(k.StateOf(id))}
}

// rowRange is all of a future but its chunks.
func (k Keyspace) RowRange(id ID) kv.Range { return kv.Prefix(k.Row(id)) }

func (k Keyspace) FuturesOf(shard int) []byte { return k.Shard(shard, SubFutures) }

// Places where an unclaimed future waits.

// Class is what decides which worker may take a ready future, before its
// priority: futures of one class lie together in the index.
type Class struct {
	Queue         string
	CPU, RAM, GPU int64
}

func (k Keyspace) ReadyQueue(shard int, queue string) []byte {
	return tuple.AppendString(k.Shard(shard, SubReady), queue)
}

func (k Keyspace) readyClass(shard int, c Class) []byte {
	return appendResources(k.ReadyQueue(shard, c.Queue), c)
}

func (k Keyspace) Ready(id ID, spec *Spec) []byte {
	b := k.readyClass(id.Shard(k.Shards), spec.Class())
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

func appendResources(b []byte, c Class) []byte {
	return tuple.AppendInt(tuple.AppendInt(tuple.AppendInt(b, c.CPU), c.RAM), c.GPU)
}

func (k Keyspace) AssignedTo(w WorkerID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(w), k.Shards), SubAssigned), string(w))
}

func (k Keyspace) Assigned(w WorkerID, id ID, spec *Spec) []byte {
	b := tuple.AppendString(tuple.AppendString(k.AssignedTo(w), spec.Queue), spec.Owner)
	b = appendResources(b, spec.Class())
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

func (k Keyspace) HeldOf(shard int, owner string) []byte {
	return tuple.AppendString(k.Shard(shard, SubHeld), owner)
}

// held names the failed attempts, so that who counts can tell apart what has
// not been tried, and until when it waits.
func (k Keyspace) Held(row *Row) []byte {
	b := tuple.AppendInt(k.HeldOf(row.ID.Shard(k.Shards), row.Spec.Owner), int64(row.Attempts.Failed))
	b = tuple.AppendInt(b, row.Attempts.Due)
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(row.Spec.Priority)), row.ID)
}

// Batches.

func (k Keyspace) Batch(id string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Global(SubBatches), BatchByID), id)
}

func (k Keyspace) BatchRecord(id string) []byte {
	return tuple.AppendString(k.Batch(id), BatchRecordPart)
}

func (k Keyspace) BatchChunksOf(id string) []byte {
	return tuple.AppendString(k.Batch(id), BatchChunksPart)
}

func (k Keyspace) BatchChunk(id, chunk string) []byte {
	return tuple.AppendString(k.BatchChunksOf(id), chunk)
}

func (k Keyspace) BatchesByTime() []byte {
	return tuple.AppendString(k.Global(SubBatches), BatchByTime)
}

func (k Keyspace) BatchAt(at int64, id string) []byte {
	return tuple.AppendString(tuple.AppendInt(k.BatchesByTime(), at), id)
}

func (k Keyspace) Owner(owner string) []byte {
	return tuple.AppendString(k.Shard(ShardOf(owner, k.Shards), SubOwners), owner)
}

func (k Keyspace) OwnerBell(owner string) []byte {
	return tuple.AppendString(k.Owner(owner), ownerBell)
}

func (k Keyspace) OwnerOpenOf(owner string) []byte {
	return tuple.AppendString(k.Owner(owner), OwnerOpenPart)
}

func (k Keyspace) OwnerOpen(owner, why string) []byte {
	return tuple.AppendString(k.OwnerOpenOf(owner), why)
}

func (k Keyspace) DelayedOf(shard int) []byte { return k.Shard(shard, SubDelayed) }

func (k Keyspace) Delayed(id ID, due int64) []byte {
	return tuple.AppendUUID(tuple.AppendInt(k.DelayedOf(id.Shard(k.Shards)), due), id)
}

// Large values.

func (k Keyspace) ChunksOf(shard int) []byte { return k.Shard(shard, SubChunks) }

func (k Keyspace) ChunksOfFuture(id ID) []byte {
	return tuple.AppendUUID(k.ChunksOf(id.Shard(k.Shards)), id)
}

func (k Keyspace) Chunks(id ID, ref ChunkRef) []byte {
	b := tuple.AppendString(k.ChunksOfFuture(id), ref.Kind)
	return tuple.AppendString(b, ref.Token)
}

func (k Keyspace) Chunk(id ID, ref ChunkRef, i int) []byte {
	return tuple.AppendInt(k.Chunks(id, ref), int64(i))
}

// Notification and the end of futures.

func (k Keyspace) Mailbox(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubMailbox), string(session))
}

func (k Keyspace) Bell(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubBell), string(session))
}

func (k Keyspace) Session(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubSessions), string(session))
}

func (k Keyspace) DoneOf(shard int) []byte { return k.Shard(shard, SubDone) }

// Workers.

func (k Keyspace) WorkersOf(shard int) []byte { return k.Shard(shard, SubWorkers) }

func (k Keyspace) Worker(w WorkerID, field string) []byte {
	return tuple.AppendString(k.WorkerAll(w), field)
}

func (k Keyspace) WorkerAll(w WorkerID) []byte {
	return tuple.AppendString(k.WorkersOf(ShardOf(string(w), k.Shards)), string(w))
}

func (k Keyspace) Claims(w WorkerID, seq int64) []byte {
	return tuple.AppendInt(k.Worker(w, WorkerClaims), seq)
}

func (k Keyspace) Cancelled(w WorkerID, id ID) []byte {
	return tuple.AppendUUID(k.Worker(w, WorkerCancelled), id)
}

func (k Keyspace) Address(address string) []byte {
	return tuple.AppendString(k.Global(SubAddresses), address)
}

func (k Keyspace) IdleQueue(queue string) []byte { return tuple.AppendString(k.Global(SubIdle), queue) }

func (k Keyspace) Idle(queue string, w WorkerID) []byte {
	return tuple.AppendString(k.IdleQueue(queue), string(w))
}

// Counters.

func (k Keyspace) CountsOf(shard int) []byte { return k.Shard(shard, SubCounts) }

func (k Keyspace) CountOwner(shard int, queue, owner string) []byte {
	return tuple.AppendString(tuple.AppendString(k.CountsOf(shard), queue), owner)
}

func (k Keyspace) Count(shard int, queue, owner string, s State) []byte {
	return tuple.AppendString(k.CountOwner(shard, queue, owner), s.String())
}

// The cluster's own records.

func (k Keyspace) Config() []byte { return k.Global(SubConfig) }

func (k Keyspace) Janitor() []byte { return k.Global(SubJanitor) }

func (k Keyspace) Incoming() []byte { return k.Global(SubIncoming) }

func (k Keyspace) CodeOf(cid string) []byte { return tuple.AppendString(k.Global(SubCode), cid) }

func (k Keyspace) CodeInfo(cid string) []byte {
	return tuple.AppendString(k.CodeOf(cid), CodeInfo)
}

func (k Keyspace) CodeBody(cid string, i int) []byte {
	return tuple.AppendInt(tuple.AppendString(k.CodeOf(cid), CodeBody), int64(i))
}

func (k Keyspace) Alias(name string) []byte { return tuple.AppendString(k.Global(SubAliases), name) }

// millis is how times stand in keys and records.
func Millis(t time.Time) int64 { return t.UnixMilli() }

func EncodeCounter(n int64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(n))
}
