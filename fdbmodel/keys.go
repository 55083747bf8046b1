package fdbmodel

import (
	"encoding/binary"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Names of the subspaces and of what lies in them, as they stand in the keys.
const (
	rootName = "futura"

	subFutures   = "futures"
	subReady     = "ready"
	subAssigned  = "assignments"
	subBatches   = "batches"
	subHeld      = "held"
	subGroups    = "groups"
	subDelayed   = "delayed"
	subChunks    = "chunks"
	subDone      = "done"
	subResults   = "results"
	subMailbox   = "mailbox"
	subBell      = "bell"
	subSessions  = "sessions"
	subWorkers   = "workers"
	subCounts    = "counts"
	subConfig    = "cfg"
	subIdle      = "idle"
	subIncoming  = "incoming"
	subAddresses = "addresses"
	subJanitor   = "janitor"
	subCode      = "code"
	subAliases   = "aliases"

	rowArgs  = "args"
	rowSpec  = "spec"
	rowState = "state"

	stateAttempts    = "attempts"
	stateCancel      = "cancel"
	stateClaim       = "claim"
	stateException   = "exception"
	stateResult      = "result"
	stateSubscribers = "subscribers"

	workerAlive     = "alive"
	workerClaims    = "claims"
	workerHeartbeat = "heartbeat"
	workerWake      = "wake"
	workerAssigned  = "assigned"
	workerCancelled = "cancelled"

	groupBell = "bell"
	groupOpen = "open"

	batchByID   = "by-id"
	batchByTime = "by-time"
	batchRecord = "record"
	batchChunks = "chunks"

	chunkArgs   = "args"
	chunkResult = "result"
	chunkStderr = "stderr"

	codeInfo = "info"
	codeBody = "body"
)

// keyspace makes every key of one cluster. One function, one kind of key; the
// package documentation has them as a table.
type keyspace struct {
	prefix []byte
	shards int
}

func newKeyspace(cluster string) keyspace {
	return keyspace{prefix: tuple.AppendString(tuple.AppendString(nil, rootName), cluster)}
}

// all is everything of the cluster.
func (k keyspace) all() kv.Range { return kv.Prefix(k.prefix) }

func (k keyspace) global(sub string) []byte {
	return tuple.AppendString(append(make([]byte, 0, 64), k.prefix...), sub)
}

func (k keyspace) shard(shard int, sub string) []byte {
	return tuple.AppendString(k.shardPrefix(shard), sub)
}

func (k keyspace) shardPrefix(shard int) []byte {
	b := append(make([]byte, 0, len(k.prefix)+64), k.prefix...)
	return tuple.AppendInt(b, int64(shard))
}

// Rows of futures.

func (k keyspace) row(id ID) []byte {
	return tuple.AppendUUID(k.shard(id.shard(k.shards), subFutures), id)
}
func (k keyspace) args(id ID) []byte { return tuple.AppendString(k.row(id), rowArgs) }
func (k keyspace) spec(id ID) []byte { return tuple.AppendString(k.row(id), rowSpec) }
func (k keyspace) state(id ID, field string) []byte {
	return tuple.AppendString(k.stateOf(id), field)
}
func (k keyspace) stateOf(id ID) []byte { return tuple.AppendString(k.row(id), rowState) }
func (k keyspace) subscriber(id ID, session SessionID) []byte {
	return tuple.AppendString(k.state(id, stateSubscribers), string(session))
}

// stateRange is the row read: everything of a future that changes.
func (k keyspace) stateRange(id ID) kv.Range { return kv.Prefix(k.stateOf(id)) }

// recordRange is the spec and everything that changes, without large arguments.
func (k keyspace) recordRange(id ID) kv.Range {
	return kv.Range{Begin: k.spec(id), End: kv.AfterPrefix(k.stateOf(id))}
}

// rowRange is all of a future but its chunks.
func (k keyspace) rowRange(id ID) kv.Range { return kv.Prefix(k.row(id)) }

func (k keyspace) futuresOf(shard int) []byte { return k.shard(shard, subFutures) }

// Places where an unclaimed future waits.

// class is what decides which worker may take a ready future, before its
// priority: futures of one class lie together in the index.
type class struct {
	queue, group  string
	cpu, ram, gpu int64
}

func (k keyspace) readyQueue(shard int, queue string) []byte {
	return tuple.AppendString(k.shard(shard, subReady), queue)
}

func (k keyspace) readyClass(shard int, c class) []byte {
	b := tuple.AppendString(k.readyQueue(shard, c.queue), c.group)
	return tuple.AppendInt(tuple.AppendInt(tuple.AppendInt(b, c.cpu), c.ram), c.gpu)
}

func (k keyspace) ready(id ID, spec *Spec) []byte {
	b := k.readyClass(id.shard(k.shards), spec.class())
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

// waits is where a future waits that is ready, or held and delayed: for the
// worker that it was assigned to, for Assign, or in the pool.
func (k keyspace) waits(row *Row) []byte {
	switch {
	case row.Attempts.Assigned != "":
		return k.assigned(row.Attempts.Assigned, row.ID, row.Spec)
	case row.Spec.Held:
		return k.held(row)
	default:
		return k.ready(row.ID, row.Spec)
	}
}

func (k keyspace) assignedTo(w WorkerID) []byte {
	return tuple.AppendString(k.shard(shardOf(string(w), k.shards), subAssigned), string(w))
}

func (k keyspace) assigned(w WorkerID, id ID, spec *Spec) []byte {
	b := tuple.AppendString(tuple.AppendString(k.assignedTo(w), spec.Queue), spec.Group)
	b = tuple.AppendInt(b, spec.Requirements.CPU)
	b = tuple.AppendInt(tuple.AppendInt(b, spec.Requirements.RAM), spec.Requirements.GPU)
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(spec.Priority)), id)
}

func (k keyspace) heldOf(shard int, group string) []byte {
	return tuple.AppendString(k.shard(shard, subHeld), group)
}

// held names the failed attempts, so that who counts can tell apart what has
// not been tried, and until when it waits.
func (k keyspace) held(row *Row) []byte {
	b := tuple.AppendInt(k.heldOf(row.ID.shard(k.shards), row.Spec.Group), int64(row.Attempts.Failed))
	b = tuple.AppendInt(b, row.Attempts.Due)
	return tuple.AppendUUID(tuple.AppendInt(b, 255-int64(row.Spec.Priority)), row.ID)
}

// Batches.

func (k keyspace) batch(id string) []byte {
	return tuple.AppendString(tuple.AppendString(k.global(subBatches), batchByID), id)
}
func (k keyspace) batchRecord(id string) []byte { return tuple.AppendString(k.batch(id), batchRecord) }
func (k keyspace) batchChunksOf(id string) []byte {
	return tuple.AppendString(k.batch(id), batchChunks)
}
func (k keyspace) batchChunk(id, chunk string) []byte {
	return tuple.AppendString(k.batchChunksOf(id), chunk)
}
func (k keyspace) batchesByTime() []byte {
	return tuple.AppendString(k.global(subBatches), batchByTime)
}
func (k keyspace) batchAt(at int64, id string) []byte {
	return tuple.AppendString(tuple.AppendInt(k.batchesByTime(), at), id)
}

func (k keyspace) group(group string) []byte {
	return tuple.AppendString(k.shard(shardOf(group, k.shards), subGroups), group)
}
func (k keyspace) groupBell(group string) []byte {
	return tuple.AppendString(k.group(group), groupBell)
}
func (k keyspace) groupOpenOf(group string) []byte {
	return tuple.AppendString(k.group(group), groupOpen)
}
func (k keyspace) groupOpen(group, why string) []byte {
	return tuple.AppendString(k.groupOpenOf(group), why)
}

func (k keyspace) delayedOf(shard int) []byte { return k.shard(shard, subDelayed) }
func (k keyspace) delayed(id ID, due int64) []byte {
	return tuple.AppendUUID(tuple.AppendInt(k.delayedOf(id.shard(k.shards)), due), id)
}

// Large values.

func (k keyspace) chunksOf(shard int) []byte { return k.shard(shard, subChunks) }
func (k keyspace) chunksOfFuture(id ID) []byte {
	return tuple.AppendUUID(k.chunksOf(id.shard(k.shards)), id)
}
func (k keyspace) chunks(id ID, ref ChunkRef) []byte {
	b := tuple.AppendString(k.chunksOfFuture(id), ref.Kind)
	return tuple.AppendString(b, ref.Token)
}
func (k keyspace) chunk(id ID, ref ChunkRef, i int) []byte {
	return tuple.AppendInt(k.chunks(id, ref), int64(i))
}

// Notification and the end of futures.

func (k keyspace) mailbox(session SessionID) []byte {
	return tuple.AppendString(k.shard(shardOf(string(session), k.shards), subMailbox), string(session))
}
func (k keyspace) bell(session SessionID) []byte {
	return tuple.AppendString(k.shard(shardOf(string(session), k.shards), subBell), string(session))
}
func (k keyspace) session(session SessionID) []byte {
	return tuple.AppendString(k.shard(shardOf(string(session), k.shards), subSessions), string(session))
}
func (k keyspace) doneOf(shard int) []byte { return k.shard(shard, subDone) }

// Workers.

func (k keyspace) workersOf(shard int) []byte { return k.shard(shard, subWorkers) }
func (k keyspace) worker(w WorkerID, field string) []byte {
	return tuple.AppendString(k.workerAll(w), field)
}
func (k keyspace) workerAll(w WorkerID) []byte {
	return tuple.AppendString(k.workersOf(shardOf(string(w), k.shards)), string(w))
}
func (k keyspace) claims(w WorkerID, seq int64) []byte {
	return tuple.AppendInt(k.worker(w, workerClaims), seq)
}
func (k keyspace) cancelled(w WorkerID, id ID) []byte {
	return tuple.AppendUUID(k.worker(w, workerCancelled), id)
}
func (k keyspace) address(address string) []byte {
	return tuple.AppendString(k.global(subAddresses), address)
}
func (k keyspace) idleQueue(queue string) []byte { return tuple.AppendString(k.global(subIdle), queue) }
func (k keyspace) idle(queue string, w WorkerID) []byte {
	return tuple.AppendString(k.idleQueue(queue), string(w))
}

// Counters.

func (k keyspace) countsOf(shard int) []byte { return k.shard(shard, subCounts) }
func (k keyspace) countGroup(shard int, queue, group string) []byte {
	return tuple.AppendString(tuple.AppendString(k.countsOf(shard), queue), group)
}
func (k keyspace) count(shard int, queue, group string, s State) []byte {
	return tuple.AppendString(k.countGroup(shard, queue, group), s.String())
}

// The cluster's own records.

func (k keyspace) config() []byte   { return k.global(subConfig) }
func (k keyspace) janitor() []byte  { return k.global(subJanitor) }
func (k keyspace) incoming() []byte { return k.global(subIncoming) }

func (k keyspace) codeOf(cid string) []byte { return tuple.AppendString(k.global(subCode), cid) }
func (k keyspace) codeInfo(cid string) []byte {
	return tuple.AppendString(k.codeOf(cid), codeInfo)
}
func (k keyspace) codeBody(cid string, i int) []byte {
	return tuple.AppendInt(tuple.AppendString(k.codeOf(cid), codeBody), int64(i))
}
func (k keyspace) alias(name string) []byte { return tuple.AppendString(k.global(subAliases), name) }

// millis is how times stand in keys and records.
func millis(t time.Time) int64 { return t.UnixMilli() }

func littleEndian(n int64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(n))
}
