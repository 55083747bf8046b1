// Package layout defines how a cluster is laid out in a store: its keys,
// records and ids, and their limits. It makes and parses keys, encodes and
// decodes records, and describes both for people. All of it is pure: layout
// uses the types of the store contract, but no store, transaction or clock.
//
// One table, Table, lists every kind of key with its parts and the record in
// its value. Keyspace makes the keys; it knows the cluster's name and shards. A
// value in a newer version of the format is ErrNewerRecord, and a damaged value
// is ErrBadRecord; both name the key.
//
// # Keys
//
// All keys begin with the tuple ("futura", CLUSTER). Below, s is the shard of a
// future (the last byte of its id), of a worker or of a session, and comes
// first, so that no shard's load falls on another's servers. Values are one
// byte of version, twelve bytes of versionstamp where the table says VS, and a
// msgpack map.
//
//	key                                                   value, and who writes it
//	(s, "futures", ID, "args")                            arguments of 1 to 16 KiB · submit
//	(s, "futures", ID, "spec")                            Spec · submit
//	(s, "futures", ID, "state", "attempts")               Attempts · whatever ends a claim
//	(s, "futures", ID, "state", "cancel")                 CancelRequest · cancel
//	(s, "futures", ID, "state", "claim")                  VS, Claim · claim
//	(s, "futures", ID, "state", "exception")              Exception · fail, cancel, reap
//	(s, "futures", ID, "state", "result")                 VS, Result · realize
//	(s, "futures", ID, "state", "subscribers", SESSION)   · subscribe
//	(s, "ready", QUEUE, CPU, RAM, GPU, 255-PRIO, ID)  the function's name · whatever makes it ready
//	(s, "assignments", WORKER, QUEUE, OWNER, CPU, RAM, GPU, 255-PRIO, ID)  the function's name · assign
//	(s, "held", OWNER, FAILED, DUE, 255-PRIO, ID)         the function's name · whatever makes a held future ready
//	(s, "owners", OWNER, "bell")                          VS · whatever ends a held future or makes it wait
//	(s, "owners", OWNER, "open", WHY)                     eight bytes, little endian · whatever assigns or ends that
//	(s, "delayed", DUE, ID)                               · submit with a delay, fail, put back
//	(s, "chunks", ID, KIND, TOKEN, I)                     a piece of a large value · before it counts
//	(s, "done", VS)                                       ids that finished together · whatever ends futures
//	(s, "mailbox", SESSION, VS)                           Notices · whatever ends futures
//	(s, "bell", SESSION)                                  VS · the same; the session's only watch
//	(s, "sessions", SESSION)                              sign of life · the session
//	(s, "workers", WORKER, "alive")                       WorkerInfo, the fence · register; cleared by a reaper
//	(s, "workers", WORKER, "heartbeat")                   Heartbeat · the worker
//	(s, "workers", WORKER, "claims", N)                   ids of one claim transaction · claim
//	(s, "workers", WORKER, "cancelled", ID)               · cancel; cleared by the worker's heartbeat
//	(s, "workers", WORKER, "assigned")                    · assign; until the worker is forgotten
//	(s, "workers", WORKER, "wake")                        VS · who submits; the worker's only watch
//	(s, "counts", QUEUE, OWNER, STATE)                    eight bytes, little endian · every transition, by addition
//	("idle", QUEUE, WORKER)                               what it could take · a worker with nothing to do
//	("addresses", ADDRESS)                                worker id · register
//	("incoming")                                          who copies the cluster from elsewhere · migrate, restore
//	("janitor")                                           who is the janitor · its holder
//	("code", CID, "info"), ("code", CID, "body", I)       a WASM module · PutModule
//	("aliases", NAME)                                     a module's CID · PutModule
//	("batches", "by-id", BATCH, "record")                 BatchRecord · whoever makes or ends a batch
//	("batches", "by-id", BATCH, "chunks", CHUNK)          BatchChunk · AssignChunk
//	("batches", "by-time", CREATED_MS, BATCH)             · whoever makes a batch
//	("cfg")                                               Config · the first to open the cluster, configure
//
// The place of an unclaimed future is a pure function of its records: it is in
// assignments if its attempts name a worker, else in held if its spec names an
// owner, else in delayed if its attempts set a due time, else in ready.
package layout
