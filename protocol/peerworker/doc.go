// Package peerworker is a worker that reaches its heads over a network of peers,
// and holds no credentials of their store.
//
// A Worker has a small cluster of its own, in memory or in a directory, with a
// worker of package workers on it, which runs what heads order: under the limits,
// timeouts and rules that hold for every worker. Results are kept until the
// head has acknowledged them. With a directory, an item becomes a future of the
// cluster, and items and results are kept across a restart. Without one, both are in
// memory beside the cluster, which costs less.
//
// The id of an item's future follows from the head, from the id that the future has
// there, and from the attempt. So an attempt that is ordered again, in whatever
// chunk, runs once, and its result is sent again.
//
// A worker is told which heads may give it orders. It connects to them, and again
// after a break, with a growing wait. Heads of Futura get its results as they come,
// and acknowledge them. Heads of b7s get one reply for each chunk.
//
// A module is in memory as a whole while it is fetched and stored: once for itself, and
// once more if the worker's store is in memory. Results above 1 MiB are read in pieces
// by heads that fetch them.
//
// The environment of the process is not passed to functions.
package peerworker
