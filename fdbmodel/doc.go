// Package fdbmodel is the data model of a futures cluster: the states of a
// future, and every transaction that changes one.
//
// # The life of a future
//
// Submit writes a future's spec, which never changes, and puts it into the
// ready index, or among the delayed. A worker claims it: it removes the key
// from the index and sets the claim. The holder of the claim realizes the
// future with a result, fails the attempt, or gives the future back. A worker
// whose heartbeat stops changing is declared dead, and a janitor gives back the
// futures that it held. The states and events are one table, applied by the
// pure function Next.
//
// A claim carries a Token: the id of one start of one worker, and the number of
// its claim transaction. Every transition out of Claimed reads the row
// serializably and compares the token, so a worker that lost its claim can
// change nothing. A reaper first clears the worker's record (alive); claims and
// heartbeats read it, so the worker can't continue alongside the reaper.
//
// Execution is at least once, results are exactly once.
//
// # Rooms
//
// Below this package: layout has the keys and records, read reads whole futures, and state
// has the table of states. What follows from a change of a future (where it waits, counters,
// mail, names, copies) is written by the indexes of internal/index and internal/lane, which
// write.go registers; each gets every change. How ready futures are found is internal/claim,
// how idle workers are woken internal/notify, and how dependencies are resolved internal/edge.
//
// Above it, a package each has what builds on the transactions: maintenance has the duties of
// a janitor, mailbox the notices that clients await, results the values and copies of
// results, fit which workers could run a future, admin what operators ask of a cluster, and
// activity, batches, edges, joblog, lanes, metering, modules, names, owners, pauses, quota and
// schedule what their names say. They change futures through Change. Package audit checks the
// store against its invariants, inspect shows what the store holds and why a future waits, and
// transfer copies whole clusters. All of them access the store through the contract of package kv.
//
// # Waking
//
// Within a process an idle worker is woken by a hint in memory, across
// processes by a write to its wake key. EnterIdleRing registers the worker and
// watches that key in one transaction: the one watch in a transaction that
// writes. A hint may be missed, so a worker also looks for work periodically.
package fdbmodel
