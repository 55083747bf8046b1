// Package workers executes futures: it claims them, runs Go functions and WASM
// modules in slots, writes their ends, and keeps the cluster clean.
//
// A worker is a member of the cluster from its registration until it leaves or
// is declared dead. It proves that it is running by changing its heartbeat. If
// it can't, because its process died, was paused, or lost the store, another
// worker's janitor sees that the heartbeat is unchanged for the dead-after
// time, clears the worker's record, and gives back what it held. From then on
// each of the worker's transactions fails at its fence: it stops its functions
// and becomes a member again, under a new id.
//
// So a function may run twice at the same time: once on a worker that was
// declared dead and has not noticed yet, and once elsewhere. Only one of the
// two ends the future.
package workers
