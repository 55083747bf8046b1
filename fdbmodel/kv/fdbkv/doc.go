// Package fdbkv runs Futura on FoundationDB: package kv's contract over the
// official Go bindings, API version 730, for clusters of version 7.3.
//
// It needs cgo and FoundationDB's client library, so it is empty unless the
// program is built with -tags fdb. [Open] opens a cluster by its cluster file,
// and [Wrap] lets Futura write in a transaction that belongs to the user.
//
// # Contexts
//
// FoundationDB can't end one wait and go on with its transaction. When the
// context of a Wait or a Commit ends first, the whole transaction is
// cancelled.
//
// # Commits that are in doubt
//
// A commit that was cancelled, timed out, or was under way when the cluster
// changed its version returns kv.ErrUnknownResult, and may still be written
// for as long as a transaction lives. After FoundationDB's own
// commit_unknown_result it is not written later any more.
package fdbkv
