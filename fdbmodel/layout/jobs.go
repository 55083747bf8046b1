package layout

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxJob is the largest job in a log of jobs, in bytes. A job that needs more names
// a value that was put apart.
const MaxJob = 16 << 10

// Names of the parts of a log of jobs.
const (
	JobsFirstPart     = "first"
	JobsHeadPart      = "head"
	JobsLeasesPart    = "leases"
	JobsLogPart       = "log"
	JobsParkedPart    = "parked"
	JobsProducersPart = "producers"
	JobsProgressPart  = "progress"
	JobsRetryPart     = "retry"
)

// CheckJobName returns ErrBadName unless name may name a log of jobs, a consumer
// or a producer; what says which.
func CheckJobName(what, name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("%w: %s %.80q: use 1 to %d of A-Z, a-z, 0-9 and . _ -", ErrBadName, what, name, maxQueueName)
	}
	return nil
}

// JobsHead is the end of a log of jobs.
type JobsHead struct {
	// Last is the index of the last job that was appended, 0 before the first one.
	Last      int64 `msgpack:"n" json:"last"`
	CreatedAt int64 `msgpack:"c" json:"created_at_ms"`
}

// JobsFirst is the beginning of a log of jobs from which some were removed.
type JobsFirst struct {
	// First is the lowest index that was not removed. It is above the last one if
	// all were.
	First int64 `msgpack:"n" json:"first"`
}

// Job is one job of a log.
type Job struct {
	Index int64  `msgpack:"-" json:"index"`
	Value []byte `msgpack:"v,omitempty" json:"value,omitempty"`
	At    int64  `msgpack:"t" json:"at_ms"`
}

// JobProducer is the last append of a producer to a log of jobs, so that a
// repeated one is known.
type JobProducer struct {
	Name string `msgpack:"-" json:"name"`
	// Sequence is the producer's number of its last append, and First and Count are
	// the jobs that it made.
	Sequence int64 `msgpack:"s" json:"sequence"`
	First    int64 `msgpack:"i" json:"first"`
	Count    int64 `msgpack:"n" json:"count"`
	At       int64 `msgpack:"t" json:"at_ms"`
	// Keep is set for a producer that the user named. Others are forgotten in time.
	Keep bool `msgpack:"k,omitempty" json:"keep,omitempty"`
}

// JobProgress is how far a consumer has come: all jobs up to Index are done or
// parked.
type JobProgress struct {
	Index int64 `msgpack:"n" json:"processed"`
	At    int64 `msgpack:"t" json:"at_ms"`
}

// JobLease names the process that a consumer of jobs runs in. It changes while
// that process is alive.
type JobLease struct {
	Holder string `msgpack:"w" json:"holder"`
	Count  int64  `msgpack:"n" json:"count"`
	// About says where the holder runs, for display.
	About      string `msgpack:"a,omitempty" json:"about,omitempty"`
	Opening    string `msgpack:"o,omitempty" json:"opening,omitempty"`
	Connection string `msgpack:"x,omitempty" json:"connection,omitempty"`
	At         int64  `msgpack:"t" json:"at_ms"`
	// Failing is the lowest job that failed and is to be tried again, 0 for none,
	// with its attempts so far and the last error.
	Failing  int64  `msgpack:"f,omitempty" json:"failing,omitempty"`
	Attempts int64  `msgpack:"c,omitempty" json:"attempts,omitempty"`
	Error    string `msgpack:"e,omitempty" json:"error,omitempty"`
}

// ParkedJob is a job that a consumer has put aside, because it kept failing.
type ParkedJob struct {
	Index int64 `msgpack:"-" json:"index"`
	// Value is the job, if its source could give it as bytes.
	Value    []byte `msgpack:"v,omitempty" json:"value,omitempty"`
	Attempts int64  `msgpack:"n" json:"attempts"`
	Error    string `msgpack:"e,omitempty" json:"error,omitempty"`
	At       int64  `msgpack:"t" json:"at_ms"`
	// Retrying is set while its retry was asked for.
	Retrying bool `msgpack:"-" json:"retrying,omitempty"`
}

// Jobs returns the prefix of a log of jobs.
func (k Keyspace) Jobs(queue string) []byte {
	return tuple.AppendString(k.Shard(ShardOf(queue, k.Shards), SubJobs), queue)
}

// JobsPart returns one key, or the prefix, of a part of a log of jobs.
func (k Keyspace) JobsPart(queue, part string) []byte { return tuple.AppendString(k.Jobs(queue), part) }

// Job returns the key of one job.
func (k Keyspace) Job(queue string, index int64) []byte {
	return tuple.AppendInt(k.JobsPart(queue, JobsLogPart), index)
}

// JobsNamed returns the key of a consumer or a producer in a part of a log of jobs,
// or the prefix of the consumer's.
func (k Keyspace) JobsNamed(queue, part, name string) []byte {
	return tuple.AppendString(k.JobsPart(queue, part), name)
}

// JobsParked returns the key of a job that a consumer has parked, or of its retry.
func (k Keyspace) JobsParked(queue, part, consumer string, index int64) []byte {
	return tuple.AppendInt(k.JobsNamed(queue, part, consumer), index)
}

// jobKinds are the kinds of keys of logs of jobs.
func jobKinds() []KeyKind {
	kind := func(name string, moves carriage, format valueFormat, record func() Record, holds, writer string,
		elements ...keyElement,
	) KeyKind {
		return KeyKind{name, SubJobs, true, append(in(home(text("queue"))), elements...), format, record, "", moves, holds,
			writer}
	}
	return []KeyKind{
		kind(KeyJobsFirst, carried, FormatRecord, of[JobsFirst](), "the lowest job of a log that was not removed",
			"the removal of jobs that all consumers have done", fixed(JobsFirstPart)),
		kind(KeyJobsHead, carried, FormatRecord, of[JobsHead](), "the last job of a log; its consumers watch this key",
			"append", fixed(JobsHeadPart)),
		kind(KeyJobLease, LeftOut, FormatRecord, of[JobLease](), "the process that a consumer of jobs runs in",
			"that process", fixed(JobsLeasesPart), text("consumer")),
		kind(KeyJob, carried, FormatRecord, of[Job](), "a job of up to 16 KiB", "append", fixed(JobsLogPart), index("index")),
		kind(KeyParkedJob, carried, FormatRecord, of[ParkedJob](), "a job that a consumer has put aside",
			"the consumer, as its progress passes the job", fixed(JobsParkedPart), text("consumer"), index("index")),
		kind(KeyJobProducer, carried, FormatRecord, of[JobProducer](), "the last append of a producer", "append",
			fixed(JobsProducersPart), text("producer")),
		kind(KeyJobProgress, carried, FormatRecord, of[JobProgress](), "the progress of a consumer", "the consumer",
			fixed(JobsProgressPart), text("consumer")),
		kind(KeyJobRetry, carried, formatMark, nil, "a parked job is to be tried again", "retry; cleared by the consumer",
			fixed(JobsRetryPart), text("consumer"), index("index")),
	}
}
