// Package fdbmodel is the data model of a futures cluster: the states of a
// future, and every transaction that changes one.
//
// # The life of a future
//
// Submit writes a future's spec, which never changes, and puts it into the
// ready index, or among the delayed. A worker claims it: it takes the key out
// of the index and sets the claim. Whoever holds the claim realizes the future
// with a result, fails the attempt, or gives the future back. A worker that
// dies is noticed by the change of its heartbeat that does not come; a janitor
// gives back what it held. The states and events are one table, applied by the
// pure function Next.
//
// A claim carries a Token: the id of one start of one worker, and the number of
// its claim transaction. Every transition out of Claimed reads the row
// serializably and compares the token, so a worker that lost its claim can
// change nothing. A reaper first clears the worker's record (alive); claims and
// heartbeats read it, so the worker can't go on beside the reaper.
//
// Execution is at least once, results are exactly once.
//
// # Rooms
//
// All keys begin with the tuple ("futura", CLUSTER). Below, s is the shard of a
// future (the last byte of its id), of a worker or of a session, and comes
// first, so that no shard's load falls on another's servers. Values are one
// byte of version, twelve bytes of versionstamp where it says VS, and a msgpack
// map.
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
//	(s, "ready", QUEUE, GROUP, CPU, RAM, GPU, 255-PRIO, ID)  the function's name · whatever makes it ready
//	(s, "assignments", WORKER, QUEUE, GROUP, CPU, RAM, GPU, 255-PRIO, ID)  the function's name · assign
//	(s, "held", GROUP, FAILED, DUE, 255-PRIO, ID)         the function's name · whatever makes a held future ready
//	(s, "owners", GROUP, "bell")                          VS · whatever ends a held future or makes it wait
//	(s, "owners", GROUP, "open", WHY)                     eight bytes, little endian · whatever assigns or ends that
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
//	(s, "counts", QUEUE, GROUP, STATE)                    eight bytes, little endian · every transition, by addition
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
// assignments if its attempts say to whom, else in held if its spec says so, else
// in delayed if its attempts say until when, else in ready.
//
// # Waking
//
// Within a process an idle worker is woken by a hint in memory, across processes
// by a write to its wake key. GoIdle registers the worker and watches that key
// in one transaction: the one watch in a transaction that writes. A hint may be
// missed; a worker looks by itself now and then.
package fdbmodel
