package joblog

import (
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Subspace has the keys of logs of jobs.
const Subspace = "jobs"

// Kinds of keys of logs of jobs.
const (
	KeyFirst    = "jobs first"
	KeyHead     = "jobs head"
	KeyJob      = "job"
	KeyLease    = "job lease"
	KeyParked   = "parked job"
	KeyProducer = "job producer"
	KeyProgress = "job progress"
	KeyRetry    = "job retry"
)

// Parts of a log of jobs.
const (
	firstPart     = "first"
	headPart      = "head"
	leasesPart    = "leases"
	logPart       = "log"
	parkedPart    = "parked"
	producersPart = "producers"
	progressPart  = "progress"
	retryPart     = "retry"
)

// Kinds returns the kinds of keys of logs of jobs.
func Kinds() []layout.KeyKind {
	consumer, index := layout.Text("consumer"), layout.Index("index")
	kinds := []layout.KeyKind{
		{Name: KeyFirst, Record: layout.RecordOf[First], Holds: "the lowest job of a log that was not removed",
			Writer: "the removal of jobs that all consumers have done", Elements: in(firstPart)},
		{Name: KeyHead, Record: layout.RecordOf[Head], Holds: "the last job of a log; its consumers watch this key",
			Writer: "append", Elements: in(headPart)},
		{Name: KeyLease, Record: layout.RecordOf[LeaseRecord], Moves: layout.LeftOut,
			Holds: "the process that a consumer of jobs runs in", Writer: "that process", Elements: in(leasesPart, consumer)},
		{Name: KeyJob, Record: layout.RecordOf[Job], Holds: "a job of up to 16 KiB", Writer: "append",
			Elements: in(logPart, index)},
		{Name: KeyParked, Record: layout.RecordOf[ParkedJob], Holds: "a job that a consumer has put aside",
			Writer: "the consumer, as its progress passes the job", Elements: in(parkedPart, consumer, index)},
		{Name: KeyProducer, Record: layout.RecordOf[Producer], Holds: "the last append of a producer", Writer: "append",
			Elements: in(producersPart, layout.Text("producer"))},
		{Name: KeyProgress, Record: layout.RecordOf[Progress], Holds: "the progress of a consumer", Writer: "the consumer",
			Elements: in(progressPart, consumer)},
		{Name: KeyRetry, Format: layout.FormatMark, Holds: "a parked job is to be tried again",
			Writer: "retry; cleared by the consumer", Elements: in(retryPart, consumer, index)},
	}
	for i := range kinds {
		kinds[i].Subspace, kinds[i].Sharded = Subspace, true
	}
	return kinds
}

// in returns the elements of keys of a part of a log.
func in(part string, more ...layout.Element) []layout.Element {
	return append([]layout.Element{layout.Text("queue").Home(), layout.Fixed(part)}, more...)
}

// Keys makes the keys of logs of jobs.
type Keys layout.Keyspace

// First returns the key of the beginning of a log.
func (k Keys) First(queue string) []byte { return k.part(queue, firstPart) }

// Head returns the key of the end of a log.
func (k Keys) Head(queue string) []byte { return k.part(queue, headPart) }

// Lease returns the key of the process that a consumer runs in.
func (k Keys) Lease(queue, consumer string) []byte { return k.named(queue, leasesPart, consumer) }

// Job returns the key of one job.
func (k Keys) Job(queue string, index int64) []byte {
	return tuple.AppendInt(k.part(queue, logPart), index)
}

// Parked returns the key of a job that a consumer has parked.
func (k Keys) Parked(queue, consumer string, index int64) []byte {
	return tuple.AppendInt(k.named(queue, parkedPart, consumer), index)
}

// Producer returns the key of the last append of a producer.
func (k Keys) Producer(queue, producer string) []byte { return k.named(queue, producersPart, producer) }

// Progress returns the key of the progress of a consumer.
func (k Keys) Progress(queue, consumer string) []byte { return k.named(queue, progressPart, consumer) }

// Retry returns the key that says that a parked job is to be tried again.
func (k Keys) Retry(queue, consumer string, index int64) []byte {
	return tuple.AppendInt(k.named(queue, retryPart, consumer), index)
}

// log returns the prefix of a log.
func (k Keys) log(queue string) []byte {
	all := layout.Keyspace(k)
	return tuple.AppendString(all.Shard(layout.ShardOf(queue, k.Shards), Subspace), queue)
}

// part returns the prefix of a part of a log.
func (k Keys) part(queue, part string) []byte { return tuple.AppendString(k.log(queue), part) }

// named returns the prefix of a consumer or a producer in a part of a log.
func (k Keys) named(queue, part, name string) []byte {
	return tuple.AppendString(k.part(queue, part), name)
}
