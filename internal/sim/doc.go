// Package sim runs a whole cluster in one goroutine from one seed: the embedded
// engine on a file system that forgets what was not synced, a client, workers with
// their janitors, and heads with batches, all on a virtual clock, and faults. The
// same seed and options give the same run.
//
// A run has two phases. In the first, work is submitted and faults happen:
// transactions conflict, become too old, or end with an unknown result that
// was made, was not, or is made late; functions take longer than their timeouts,
// wait for their paces, await others, take the results of others and are
// cancelled; values are put, by the client and by functions, futures are pinned, run
// near what they take, and nowhere else, and results go from worker to worker; workers
// are killed, paused, declared dead, stopped as they should be and started again, and
// lose results that are objects; lanes of several kinds are paused, go on, change their
// settings, and begin and end to have bundles, whose members share calls, linger for
// others, and fail one by one; a pipeline does ordered jobs, in processes that take over
// from one another; processes are stopped, and die, at any commit, before it or behind
// it; the store crashes and is opened from what was synced. In the second, faults end,
// and everything that was acknowledged must come to its end within a bounded time. All
// workers are new ones then, which in some runs have taken over what the old ones had, and the client reads
// results as objects that nobody has any more: they are rebuilt, with all that they
// take, but for what was put. In some runs all workers but one leave in the end, and
// what nobody keeps is removed by its age.
//
// Workload, faults and checkers are kept apart: workload.go, edges.go, objects.go,
// puts.go, pins.go, moves.go, near.go, heads.go, lanes.go, bundles.go, jobs.go, awaiting.go and
// reading.go decide what is asked for, faults.go, process.go and objectstore.go what goes
// wrong, checkers.go, lineage.go, lanechecks.go, bundlechecks.go and the checks beside
// each workload what must hold.
package sim
