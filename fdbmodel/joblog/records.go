package joblog

// MaxJob is the largest job in a log of jobs, in bytes. A job that needs more names
// a value that was put apart.
const MaxJob = 16 << 10

// Head is the end of a log of jobs.
type Head struct {
	// Last is the index of the last job that was appended, 0 before the first one.
	Last      int64 `msgpack:"n" json:"last"`
	CreatedAt int64 `msgpack:"c" json:"created_at_ms"`
}

// First is the beginning of a log of jobs from which some were removed.
type First struct {
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

// Producer is the last append of a producer to a log of jobs, so that a
// repeated one is known.
type Producer struct {
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

// Progress is how far a consumer has come: all jobs up to Index are done or
// parked.
type Progress struct {
	Index int64 `msgpack:"n" json:"processed"`
	At    int64 `msgpack:"t" json:"at_ms"`
}

// LeaseRecord names the process that a consumer of jobs runs in. It changes while
// that process is alive.
type LeaseRecord struct {
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
