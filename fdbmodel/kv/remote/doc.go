// Package remote lets other processes of a machine work on a store that one
// process has open: [Serve] answers them, and [Open] returns a kv.Database that
// asks. It is one node's door, not a distributed store: when the serving
// process ends, so does the service.
//
// # What it costs
//
// Reads wait for an answer, writes don't: they are kept in the process and go
// out with the next read that is waited for, or with the commit. So a
// transaction takes one round trip for each group of reads that is asked
// together, and one for its commit. One that only reads commits without asking.
//
// # Lost connections
//
// A Database connects again by itself. What was under way when its connection
// broke ends at once: reads and commits that were not sent with
// kv.ErrUnavailable, commits that were sent with kv.ErrUnknownResult, watches
// with kv.ErrUnavailable. A connection that gives no sign of life for four ping
// intervals counts as broken. What kv.Transact retries then goes on until the
// server is back, or ends with [ErrGone] after [Options.GiveUpAfter].
//
// # Memory
//
// A server holds no more than [ServerOptions.MaxMemory] for its clients,
// whatever they send and however little they read.
//
// # Security
//
// A Unix socket made by [ListenUnix] is open to its owner only. TCP needs a
// token, and TLS wherever it leaves the machine. A client that is let in may read
// and write the whole store.
package remote
