// Package jobqueue processes jobs that have indexes, 1, 2, 3 and so on, each at
// least once and none skipped: the blocks of a chain, the lines of a file, the
// messages of a partition, or the jobs of a durable [Log] of a cluster.
//
// A [Consumer] finds jobs by their index with [Jobs], has up to MaxProcessing of
// them processed at a time by a [Worker], and stores in [ConsumerProgress] the
// highest index up to which all are done. After a crash it goes on from there. All
// three are interfaces that a program implements over what it has.
//
// A [Stage] is a consumer whose progress, and whose jobs that failed for good, are
// in the store of a cluster. Of any number of processes with the same stage one is
// at work, and another takes over when it dies. What a job writes through its
// [Output], such as the jobs of the next stage, is committed in the transaction that
// advances the progress over it: a job may run twice, its effects happen once.
//
// Jobs run concurrently and may end in any order. Their effects are committed in
// the order of the indexes, so the order of a log carries over to the next. Behind a
// slow job, what has ended is kept in memory: MaxSearchAhead bounds that.
package jobqueue
