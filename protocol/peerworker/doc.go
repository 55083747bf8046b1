// Package peerworker is a worker that reaches its heads over a network of peers,
// and holds no credentials of their store.
//
// A Worker has a small cluster of its own, in memory or in a directory, with a
// worker of package workers on it, which runs what heads order: under the limits,
// timeouts and rules that hold for every worker. Items and results are in memory, and
// results are kept until the head has acknowledged them. With a directory there is a
// journal of both, and the next start goes on with them. What it has no result of runs
// again, once its head says that it still wants it.
//
// The id of an item here follows from the head, from the id that the future has
// there, and from the attempt. So an attempt that is ordered again, in whatever
// chunk, runs once, and its result is sent again. A cancel is that of the order: what was
// cancelled and is ordered again is run once more, after it has stopped, unless it had a
// result all the same.
//
// A worker is told which heads may give it orders. It connects to them, and again
// after a break, with a growing wait. Heads of Futura get its results as they come,
// and acknowledge them. Heads of b7s get one reply for each chunk.
//
// Heads share a worker. One has all of it while no other asks. A head that asks gets its share of
// chunks, items, bytes and modules at once, beside what others hold; a head with more than its
// share gets no more while one with less asks. So all have at most twice the bounds in Options. Slots
// are shared too: the head of which the fewest items run is next, and priorities are those of
// items of one head. Heads count that have work here, or were refused
// within 30 s. Those that Options.Heads does not name have one share together, so that new
// keys don't make the share of a named one smaller.
//
// Large values are in memory in pieces: a module that is fetched, and what a module or
// workers.ResultWriter writes beyond 1 MiB, are in files of the machine's directory for
// temporary files, which have no names, and results in the journal too. A module is in
// memory as a whole while it is compiled, and in the worker's store if that is in memory;
// what a Go function returns is, until it has returned. What was cut off is not fetched
// again within 10 min.
//
// The environment of the process is not passed to functions.
package peerworker
