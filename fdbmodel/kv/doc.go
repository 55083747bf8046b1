// Package kv is the contract between Futura and the store below it:
// FoundationDB's transactions behind about twenty methods, with none of
// FoundationDB's types. A driver implements [Database], [Tx] and [Watch];
// everything else in Futura is written against them and runs unchanged on each
// driver.
//
// # Isolation
//
// Transactions are strictly serializable and optimistic. A transaction reads at
// one read version, buffers its writes, and at commit fails with [ErrConflict]
// if another transaction that committed after that read version wrote a key
// inside one of its read conflict ranges. Two writes never conflict; a
// transaction that only writes never conflicts; a transaction that only reads
// commits locally and never conflicts.
//
//   - A serializable Get adds its key, a serializable GetRange adds the part
//     of the range that it read: up to and including the last key returned if
//     the page has More, the whole range otherwise.
//   - Reads through [Tx.Snapshot] see the same version and add no read
//     conflicts.
//   - Reads see the transaction's own writes (read-your-writes), snapshot
//     reads included. A key that the transaction itself set or cleared adds no
//     read conflict; a key with a pending atomic operation does, because its
//     value depends on the store.
//   - A range clear conflicts with readers of the whole range, even where no
//     keys exist.
//   - A read of a key that the transaction wrote with an incomplete
//     versionstamp, or of one that such a key may become, fails with
//     [ErrUnreadable], and so does the commit then.
//
// # Unknown results
//
// [Tx.Commit] may fail with [ErrUnknownResult]: the writes may have happened,
// may never happen, or may still happen until the transaction's lifetime of
// five seconds has passed. [Transact] runs the function again with
// [Attempt.MaybeCommitted] set. A function whose effects must not apply twice
// reads, in every such attempt, a key that its own first attempt would have
// written, and keeps that key in its read conflict set in every attempt.
//
// # Limits
//
// Keys, values and transactions are bounded by the constants of this package. A
// mutation that breaks a limit poisons the transaction: Commit returns the
// error and writes nothing, whatever mutations follow.
package kv
