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
// first, so that no shard's load falls on another's servers. A record's value is
// one byte of version, a versionstamp of twelve bytes for some, and a msgpack
// map. What each key holds, who writes it and the names of all fields are in
// docs/reference/keyspace.md. The kinds of keys, from the same table:
//
//	activity      ("activity", STEP, AT_S, MEMBERSHIP)
//	address       ("addresses", ADDRESS)
//	alias         ("aliases", NAME)
//	batch         ("batches", "by-id", BATCH, "record")
//	batch chunk   ("batches", "by-id", BATCH, "chunks", CHUNK)
//	batch time    ("batches", "by-time", CREATED_MS, BATCH)
//	config        ("cfg")
//	module        ("modules", CID, "info")
//	module piece  ("modules", CID, "body", PIECE)
//	idle          ("idle", QUEUE, WORKER)
//	incoming      ("incoming")
//	janitor       ("janitor")
//	schedule      ("schedules", "by-name", SCHEDULE, "definition")
//	schedule state  ("schedules", "by-name", SCHEDULE, "state")
//	schedule time  ("schedules", "by-time", DUE_MS, SCHEDULE)
//	pause         ("pauses", WHAT, NAME)
//	pace          ("paces", KEY)
//	lane kind     ("lane-kinds", KIND)
//	lane total    ("lane-totals", KIND)
//	lane turn     ("lane-turns", KIND, INCARNATION, STAMP, ORDER)
//	cluster limits  ("cluster-limits", "settings")
//	rate          ("cluster-limits", "rate")
//	usage         ("cluster-limits", "usage")
//	metered       ("metered", DAY, KIND, NAME, MEMBERSHIP)
//	args          (s, "futures", ID, "args")
//	spec          (s, "futures", ID, "spec")
//	progress      (s, "futures", ID, "stage")
//	attempts      (s, "futures", ID, "state", "attempts")
//	blocked       (s, "futures", ID, "state", "blocked")
//	cancel        (s, "futures", ID, "state", "cancel")
//	claim         (s, "futures", ID, "state", "claim")
//	has dependants  (s, "futures", ID, "state", "dependants")
//	exception     (s, "futures", ID, "state", "exception")
//	history       (s, "futures", ID, "state", "history")
//	in line       (s, "futures", ID, "state", "line")
//	pins          (s, "futures", ID, "state", "pins")
//	result        (s, "futures", ID, "state", "result")
//	subscriber    (s, "futures", ID, "state", "subscribers", SESSION)
//	ready         (s, "ready", QUEUE, CPU_MILLIS, RAM_BYTES, GPU_MILLIS, [LABELS], 255-PRIORITY, ID)
//	assignment    (s, "assignments", WORKER, QUEUE, OWNER, CPU_MILLIS, RAM_BYTES, GPU_MILLIS, 255-PRIORITY, ID)
//	held          (s, "held", OWNER, FAILED, DUE_MS, 255-PRIORITY, ID)
//	owner wake    (s, "owners", OWNER, "wake")
//	owner open    (s, "owners", OWNER, "open", REASON)
//	delayed       (s, "delayed", DUE_MS, ID)
//	lane          (s, "lanes", KIND, KEY)
//	line          (s, "line", KIND, KEY, 255-PRIORITY, INCARNATION, STAMP, ORDER)
//	lane due      (s, "lanes-due", DUE_MS, KIND, KEY)
//	deadline      (s, "deadlines", ENDS_MS, ID)
//	input         (s, "inputs", ID, INPUT)
//	dependant     (s, "dependants", INPUT, ID)
//	resolve       (s, "resolve", ID)
//	pending check  (s, "resolve", ID, "check", INPUT)
//	chunk         (s, "chunks", ID, KIND, TOKEN, PIECE)
//	listed failed  (s, "listed", "failed", AGE_MS, ID)
//	listed keyed  (s, "listed", "keyed", AGE_MS, ID)
//	listed tag    (s, "listed", "tag", TAG, AGE_MS, ID)
//	copy          (s, "results", ID, STAMP)
//	done          (s, "done", STAMP)
//	mail          (s, "mailbox", SESSION, STAMP)
//	session wake  (s, "wake", SESSION)
//	session       (s, "sessions", SESSION)
//	count         (s, "counts", QUEUE, OWNER, STATE)
//	unique        (s, "unique", NAME, ID)
//	unique due    (s, "unique-due", FREE_AT_MS, NAME, ID)
//	alive         (s, "workers", WORKER, "alive")
//	heartbeat     (s, "workers", WORKER, "heartbeat")
//	suspect       (s, "workers", WORKER, "suspect", ID)
//	claims        (s, "workers", WORKER, "claims", SEQUENCE)
//	cancelled     (s, "workers", WORKER, "cancelled", ID)
//	assigned      (s, "workers", WORKER, "assigned")
//	worker wake   (s, "workers", WORKER, "wake")
//	jobs first    (s, "jobs", QUEUE, "first")
//	jobs head     (s, "jobs", QUEUE, "head")
//	job lease     (s, "jobs", QUEUE, "leases", CONSUMER)
//	job           (s, "jobs", QUEUE, "log", INDEX)
//	parked job    (s, "jobs", QUEUE, "parked", CONSUMER, INDEX)
//	job producer  (s, "jobs", QUEUE, "producers", PRODUCER)
//	job progress  (s, "jobs", QUEUE, "progress", CONSUMER)
//	job retry     (s, "jobs", QUEUE, "retry", CONSUMER, INDEX)
//
// The place of an unclaimed future is a pure function of its records: the first
// one of Places that accepts them.
package layout
