package layout

import (
	"encoding/binary"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Names of the subspaces and of their contents, as they appear in the keys.
const (
	rootName = "futura"

	SubFutures    = "futures"
	subInputs     = "inputs"
	subDependants = "dependants"
	subResolve    = "resolve"
	SubReady      = "ready"
	SubAssigned   = "assignments"
	subBatches    = "batches"
	subHeld       = "held"
	SubOwners     = "owners"
	subDelayed    = "delayed"
	SubLanes      = "lanes"
	SubLine       = "line"
	SubLanesDue   = "lanes-due"
	subLaneKinds  = "lane-kinds"

	SubLaneTotals = "lane-totals"
	SubLaneTurns  = "lane-turns"

	subChunks    = "chunks"
	subDone      = "done"
	SubListed    = "listed"
	SubResults   = "results"
	SubMailbox   = "mailbox"
	SubWake      = "wake"
	SubSessions  = "sessions"
	SubWorkers   = "workers"
	SubCounts    = "counts"
	SubConfig    = "cfg"
	subIdle      = "idle"
	subIncoming  = "incoming"
	subAddresses = "addresses"
	// SubBulletin is what each worker reads with its heartbeat: the janitor, and what is paused.
	SubBulletin = "bulletin"
	SubModules  = "modules"
	SubAliases  = "aliases"

	RowArgs     = "args"
	RowSpec     = "spec"
	RowPromise  = "promise" // between args and spec: no read of records meets it
	rowProgress = "stage"   // between spec and state, for reads of both
	rowState    = "state"

	StateAttempts    = "attempts"
	StateBlocked     = "blocked"
	stateDependants  = "dependants"
	StateCancel      = "cancel"
	StateClaim       = "claim"
	StateException   = "exception"
	StateForks       = "forks"
	StateHistory     = "history"
	StateLine        = "line"
	StatePins        = "pins"
	StateResult      = "result"
	StateSteps       = "steps"
	stateSubscribers = "subscribers"

	WorkerAlive     = "alive"
	WorkerSuspect   = "suspect"
	WorkerClaims    = "claims"
	WorkerHeartbeat = "heartbeat"
	WorkerWake      = "wake"
	WorkerAssigned  = "assigned"
	WorkerCancelled = "cancelled"

	ownerWake     = "wake"
	ownerOpenPart = "open"
	CheckPart     = "check"

	bulletinJanitor = "janitor"

	batchByID       = "by-id"
	batchByTime     = "by-time"
	batchRecordPart = "record"
	batchChunksPart = "chunks"

	ChunkArgs   = "args"
	ChunkInputs = "inputs"
	ChunkResult = "result"
	ChunkStderr = "stderr"
	ChunkStep   = "step"

	moduleInfo = "info"
	moduleBody = "body"
)

// Keyspace makes every key of one cluster. It has one function per kind of key;
// the package documentation lists them.
type Keyspace struct {
	Prefix []byte
	Shards int
}

// NewKeyspace returns the keyspace of a cluster. Its Shards are set once the
// cluster's settings are read.
func NewKeyspace(cluster string) Keyspace {
	return Keyspace{Prefix: tuple.AppendString(tuple.AppendString(nil, rootName), cluster)}
}

// AllClusters returns the range of all keys of all clusters.
func AllClusters() kv.Range { return kv.Prefix(tuple.AppendString(nil, rootName)) }

// All returns the range of all keys of the cluster.
func (k Keyspace) All() kv.Range { return kv.Prefix(k.Prefix) }

// Global returns the prefix of a subspace outside of the shards.
func (k Keyspace) Global(sub string) []byte {
	return tuple.AppendString(append(make([]byte, 0, 64), k.Prefix...), sub)
}

// Shard returns the prefix of a subspace within a shard.
func (k Keyspace) Shard(shard int, sub string) []byte {
	return tuple.AppendString(k.shardPrefix(shard), sub)
}

func (k Keyspace) shardPrefix(shard int) []byte {
	b := append(make([]byte, 0, len(k.Prefix)+64), k.Prefix...)
	return tuple.AppendInt(b, int64(shard))
}

// Rows of futures.

// Row returns the prefix of a future's records.
func (k Keyspace) Row(id ID) []byte {
	return tuple.AppendUUID(k.Shard(id.Shard(k.Shards), SubFutures), id)
}

// RowLength returns the length of Row(id), without making it.
func (k Keyspace) RowLength(id ID) int {
	var b [128]byte
	shard := tuple.AppendInt(append(b[:0], k.Prefix...), int64(id.Shard(k.Shards)))
	return len(tuple.AppendUUID(tuple.AppendString(shard, SubFutures), id))
}

// Args returns the key of arguments that are too large for the spec.
func (k Keyspace) Args(id ID) []byte { return tuple.AppendString(k.Row(id), RowArgs) }

// Spec returns the key of the immutable part of a future.
func (k Keyspace) Spec(id ID) []byte { return tuple.AppendString(k.Row(id), RowSpec) }

// Progress returns the key of a future's progress. Reads of its mutable records leave it
// out.
func (k Keyspace) Progress(id ID) []byte { return tuple.AppendString(k.Row(id), rowProgress) }

// State returns the key of one mutable record of a future.
func (k Keyspace) State(id ID, field string) []byte {
	return tuple.AppendString(k.StateOf(id), field)
}

// StateOf returns the prefix of a future's mutable records.
func (k Keyspace) StateOf(id ID) []byte { return tuple.AppendString(k.Row(id), rowState) }

// Subscriber returns the key that marks a session as awaiting a future.
func (k Keyspace) Subscriber(id ID, session SessionID) []byte {
	return tuple.AppendString(k.State(id, stateSubscribers), string(session))
}

// StateRange returns the range of a row read: all mutable records of a future.
func (k Keyspace) StateRange(id ID) kv.Range { return kv.Prefix(k.StateOf(id)) }

// RecordRange returns the range of the spec and all mutable records, without
// large arguments.
func (k Keyspace) RecordRange(id ID) kv.Range {
	return kv.Range{Begin: k.Spec(id), End: kv.AfterPrefix(k.StateOf(id))}
}

// RowRange returns the range of a future's keys other than its chunks.
func (k Keyspace) RowRange(id ID) kv.Range { return kv.Prefix(k.Row(id)) }

// CopiesOf returns the prefix of the copies of a future's result.
func (k Keyspace) CopiesOf(id ID) []byte {
	return tuple.AppendUUID(k.Shard(id.Shard(k.Shards), SubResults), id)
}

// Edges between futures.

// HasDependants returns the key that marks a future as one whose result others
// use.
func (k Keyspace) HasDependants(id ID) []byte { return k.State(id, stateDependants) }

// DependantsOf returns the prefix of the futures that use a future's result.
func (k Keyspace) DependantsOf(id ID) []byte {
	return tuple.AppendUUID(k.Shard(id.Shard(k.Shards), subDependants), id)
}

// Dependant returns the key that says that a future uses the result of another.
func (k Keyspace) Dependant(input, id ID) []byte { return tuple.AppendUUID(k.DependantsOf(input), id) }

// InputsOf returns the prefix of the inputs that a future waits for.
func (k Keyspace) InputsOf(id ID) []byte {
	return tuple.AppendUUID(k.Shard(id.Shard(k.Shards), subInputs), id)
}

// Input returns the key that says that a future waits for an input.
func (k Keyspace) Input(id, input ID) []byte { return tuple.AppendUUID(k.InputsOf(id), input) }

// ResolveOf returns the prefix of a shard's futures whose dependencies are to be
// resolved.
func (k Keyspace) ResolveOf(shard int) []byte { return k.Shard(shard, subResolve) }

// Resolve returns the key that says that a future's dependencies are to be resolved.
func (k Keyspace) Resolve(id ID) []byte {
	return tuple.AppendUUID(k.ResolveOf(id.Shard(k.Shards)), id)
}

// PendingCheck returns the key that says that an input of a future has ended. It is to be
// checked whether the future still waits for others.
func (k Keyspace) PendingCheck(id, input ID) []byte {
	return tuple.AppendUUID(tuple.AppendString(k.Resolve(id), CheckPart), input)
}

// OtherEnd returns the future that the last part of a key names, such as the one
// at the other end of an edge. It is faster than ParseKey.
func OtherEnd(key []byte) (ID, bool) {
	const size = 1 + len(ID{})
	rest := tuple.NewReader(key[max(0, len(key)-size):])
	id := ID(rest.UUID())
	return id, rest.Done() == nil
}

// Places where an unclaimed future waits.

// Class determines which workers may take a ready future. It precedes the
// priority, so futures of one class lie together in the index.
type Class struct {
	Queue         string
	CPU, RAM, GPU int64
	Labels        string // a LabelText
}

// ReadyQueue returns the prefix of a queue's part of a shard's ready index.
func (k Keyspace) ReadyQueue(shard int, queue string) []byte {
	return tuple.AppendString(k.Shard(shard, SubReady), queue)
}

// Requirements returns the resources of the class.
func (c Class) Requirements() Requirements { return Requirements{CPU: c.CPU, RAM: c.RAM, GPU: c.GPU} }

func (k Keyspace) readyClass(shard int, c Class) []byte {
	b := appendResources(k.ReadyQueue(shard, c.Queue), c)
	if c.Labels != "" {
		b = tuple.AppendString(b, c.Labels)
	}
	return b
}

// Ready returns a future's key in the ready index.
func (k Keyspace) Ready(id ID, spec *Spec) []byte {
	b := k.readyClass(id.Shard(k.Shards), spec.Class())
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

func appendResources(b []byte, c Class) []byte {
	return tuple.AppendInt(tuple.AppendInt(tuple.AppendInt(b, c.CPU), c.RAM), c.GPU)
}

// AssignedTo returns the prefix of the futures that wait for one worker.
func (k Keyspace) AssignedTo(w WorkerID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(w), k.Shards), SubAssigned), string(w))
}

// AssignedOf returns the prefix of the futures of one owner that wait for one worker.
func (k Keyspace) AssignedOf(w WorkerID, queue, owner string) []byte {
	return tuple.AppendString(tuple.AppendString(k.AssignedTo(w), queue), owner)
}

// Assigned returns a future's key among those that wait for one worker.
func (k Keyspace) Assigned(w WorkerID, id ID, spec *Spec) []byte {
	b := appendResources(k.AssignedOf(w, spec.Queue, spec.Owner), spec.Class())
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

// HeldOf returns the prefix of an owner's held futures in a shard.
func (k Keyspace) HeldOf(shard int, owner string) []byte {
	return tuple.AppendString(k.Shard(shard, subHeld), owner)
}

// Held returns a future's key among an owner's held futures. It contains the
// number of failed attempts, so that a count can separate futures that were
// never tried, and the due time.
func (k Keyspace) Held(row *Row) []byte {
	b := tuple.AppendInt(k.HeldOf(row.ID.Shard(k.Shards), row.Spec.Owner), int64(row.Attempts.Failed))
	b = tuple.AppendInt(b, row.Attempts.Due)
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(row.Spec.Priority)), row.ID)
}

// Batches.

// Batch returns the prefix of a batch's records.
func (k Keyspace) Batch(id string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Global(subBatches), batchByID), id)
}

// BatchRecord returns the key of a batch.
func (k Keyspace) BatchRecord(id string) []byte {
	return tuple.AppendString(k.Batch(id), batchRecordPart)
}

// BatchChunksOf returns the prefix of a batch's chunks.
func (k Keyspace) BatchChunksOf(id string) []byte {
	return tuple.AppendString(k.Batch(id), batchChunksPart)
}

// BatchChunk returns the key of one chunk of a batch.
func (k Keyspace) BatchChunk(id, chunk string) []byte {
	return tuple.AppendString(k.BatchChunksOf(id), chunk)
}

// BatchesByTime returns the prefix of the list of batches.
func (k Keyspace) BatchesByTime() []byte {
	return tuple.AppendString(k.Global(subBatches), batchByTime)
}

// BatchAt is a batch's key in the list of batches.
func (k Keyspace) BatchAt(at int64, id string) []byte {
	return tuple.AppendString(tuple.AppendInt(k.BatchesByTime(), at), id)
}

// Owner returns the prefix of the records of an owner of futures.
func (k Keyspace) Owner(owner string) []byte {
	return tuple.AppendString(k.Shard(ShardOf(owner, k.Shards), SubOwners), owner)
}

// OwnerWake returns the key that changes with an owner's futures.
func (k Keyspace) OwnerWake(owner string) []byte {
	return tuple.AppendString(k.Owner(owner), ownerWake)
}

// OwnerOpenOf returns the prefix of the counters of an owner's futures with workers.
func (k Keyspace) OwnerOpenOf(owner string) []byte {
	return tuple.AppendString(k.Owner(owner), ownerOpenPart)
}

// OwnerOpen returns the key of the counter of an owner's futures that are with
// workers for one reason.
func (k Keyspace) OwnerOpen(owner, reason string) []byte {
	return tuple.AppendString(k.OwnerOpenOf(owner), reason)
}

// DelayedOf returns the prefix of a shard's delayed futures.
func (k Keyspace) DelayedOf(shard int) []byte { return k.Shard(shard, subDelayed) }

// Delayed returns a future's key among the delayed.
func (k Keyspace) Delayed(id ID, due int64) []byte {
	return tuple.AppendUUID(tuple.AppendInt(k.DelayedOf(id.Shard(k.Shards)), due), id)
}

// Large values.

// ChunksOf returns the prefix of a shard's large values.
func (k Keyspace) ChunksOf(shard int) []byte { return k.Shard(shard, subChunks) }

// ChunksOfFuture returns the prefix of a future's large values.
func (k Keyspace) ChunksOfFuture(id ID) []byte {
	return tuple.AppendUUID(k.ChunksOf(id.Shard(k.Shards)), id)
}

// Chunks returns the prefix of one large value.
func (k Keyspace) Chunks(id ID, ref ChunkRef) []byte {
	b := tuple.AppendString(k.ChunksOfFuture(id), ref.Kind)
	return tuple.AppendString(b, ref.Token)
}

// Chunk returns the key of one piece of a large value.
func (k Keyspace) Chunk(id ID, ref ChunkRef, i int) []byte {
	return tuple.AppendInt(k.Chunks(id, ref), int64(i))
}

// Notification and the end of futures.

// Mailbox returns the prefix of a session's mail.
func (k Keyspace) Mailbox(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubMailbox), string(session))
}

// SessionWake returns the key that changes with a session's mail.
func (k Keyspace) SessionWake(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubWake), string(session))
}

// Session returns the key of a session's heartbeat.
func (k Keyspace) Session(session SessionID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(session), k.Shards), SubSessions), string(session))
}

// DoneOf returns the prefix of a shard's lists of finished futures.
func (k Keyspace) DoneOf(shard int) []byte { return k.Shard(shard, subDone) }

// Workers.

// Worker returns the key of one record of a worker, or the prefix of several.
func (k Keyspace) Worker(w WorkerID, field string) []byte {
	return tuple.AppendString(k.WorkerAll(w), field)
}

// WorkerAll returns the prefix of all keys of a worker.
func (k Keyspace) WorkerAll(w WorkerID) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(w), k.Shards), SubWorkers), string(w))
}

// Claims returns the key of the list of futures that one claim took.
func (k Keyspace) Claims(w WorkerID, seq int64) []byte {
	return tuple.AppendInt(k.Worker(w, WorkerClaims), seq)
}

// Suspect returns the key that says that a worker runs a poison candidate.
func (k Keyspace) Suspect(w WorkerID, id ID) []byte {
	return tuple.AppendUUID(k.Worker(w, WorkerSuspect), id)
}

// Cancelled returns the key that asks a worker to stop a future.
func (k Keyspace) Cancelled(w WorkerID, id ID) []byte {
	return tuple.AppendUUID(k.Worker(w, WorkerCancelled), id)
}

// Address returns the key that maps an address to its worker.
func (k Keyspace) Address(address string) []byte {
	return tuple.AppendString(k.Global(subAddresses), address)
}

// IdleQueue returns the prefix of the ring of a queue's idle workers.
func (k Keyspace) IdleQueue(queue string) []byte { return tuple.AppendString(k.Global(subIdle), queue) }

// Idle returns a worker's key in the ring of idle workers.
func (k Keyspace) Idle(queue string, w WorkerID) []byte {
	return tuple.AppendString(k.IdleQueue(queue), string(w))
}

// Counters.

// CountOwner returns the prefix of the counters of an owner's futures in a shard.
func (k Keyspace) CountOwner(shard int, queue, owner string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Shard(shard, SubCounts), queue), owner)
}

// Count returns the key of one counter.
func (k Keyspace) Count(shard int, queue, owner string, s State) []byte {
	return tuple.AppendString(k.CountOwner(shard, queue, owner), s.String())
}

// The cluster's own records.

// Config returns the key of the cluster's settings.
func (k Keyspace) Config() []byte { return k.Global(SubConfig) }

// Janitor returns the key that names the present janitor.
func (k Keyspace) Janitor() []byte { return tuple.AppendString(k.Bulletin(), bulletinJanitor) }

// Bulletin returns the prefix of what each worker reads with its heartbeat.
func (k Keyspace) Bulletin() []byte { return k.Global(SubBulletin) }

// Incoming returns the key that marks a cluster that is being copied into.
func (k Keyspace) Incoming() []byte { return k.Global(subIncoming) }

// ModuleOf returns the prefix of a module.
func (k Keyspace) ModuleOf(cid string) []byte { return tuple.AppendString(k.Global(SubModules), cid) }

// ModuleInfo returns the key of a module's description.
func (k Keyspace) ModuleInfo(cid string) []byte {
	return tuple.AppendString(k.ModuleOf(cid), moduleInfo)
}

// ModulePiece returns the key of one piece of a module.
func (k Keyspace) ModulePiece(cid string, i int) []byte {
	return tuple.AppendInt(tuple.AppendString(k.ModuleOf(cid), moduleBody), int64(i))
}

// Alias returns the key that maps a module's alias to its id.
func (k Keyspace) Alias(name string) []byte { return tuple.AppendString(k.Global(SubAliases), name) }

// Millis converts a time to milliseconds, as in keys and records.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// Day is the day of a time in UTC, as in keys.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// EncodeCounter returns a number as a counter stores it.
func EncodeCounter(n int64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(n))
}
