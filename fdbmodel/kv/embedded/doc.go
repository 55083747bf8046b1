// Package embedded is the store that needs nothing installed: an ordered
// key-value store inside the process, with FoundationDB's transactions as
// package kv describes them, in memory and, on request, durable in a directory.
//
// # How it works
//
// Rows live in memory, each with the versions that a running transaction may still
// read; those that were not touched for long live on disk alone, as [Options].Memory
// says. Commits pass one at a time through a sequencer, which checks
// what they read against what was written since, gives them a version and
// applies them. Batches of commits are then appended to a log and synced with
// one flush of the disk; only then are they visible to others and acknowledged.
// Now and then a checkpoint writes what has changed to a table, while commits go
// on, and the log before it is deleted. Tables of about one size are merged, so that
// there are few.
//
// # What it promises
//
//   - Transactions are strictly serializable.
//   - A commit that was acknowledged survives the death of the process and of
//     the machine, except with [Options].SyncOff, where the last milliseconds
//     may be lost. A commit is never there in part.
//   - Damage is reported with kv.ErrCorrupt, which names the file: by [Open], or when
//     what is on disk alone is read. After a crash, damage to the very last commit may look like a write that was cut
//     off; after Close, nothing does.
//   - [Snapshot] opens what it holds at a moment as a store of its own, from links to its files.
//   - When the disk fails or is full, commits under way end with
//     kv.ErrUnknownResult and everything after with kv.ErrStoreFailed. The
//     process must open the store again.
//   - A store that can't be written when it is opened can be read: commits end
//     with kv.ErrReadOnly, or with kv.ErrUnavailable if descriptors are short, and
//     the next one tries again, unless the error says that it must be opened again. A lack
//     of descriptors later only delays new files.
//   - Rows take about 60 bytes more than key and value each in memory, and together
//     about [Options].Memory at most. The others are read from tables.
//     Values of 4 KiB and more are left on disk once a table has them, or
//     the log if they take more than 2 MiB, and checked whenever they are read.
//   - The garbage collector does not look into rows, which lie in chunks of
//     bytes. It visits one object for a few dozen of them, and one for each value
//     of 4 KiB and more.
package embedded
