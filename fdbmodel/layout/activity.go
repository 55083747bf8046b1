package layout

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Bounds of a record of activity.
const (
	// MaxActivityPairs is how many pairs of a function and a queue are told apart, and
	// MaxActivityQueues how many queues in counts. The others are one more, ActivityOther.
	MaxActivityPairs  = 64
	MaxActivityQueues = 50
	// ActivityOther is the name of all other functions and queues. None has this name.
	ActivityOther = "(other)"
	// ActivityBuckets is how many buckets a histogram has at most: times below 1 ms, and then up
	// to each power of two of milliseconds. The last one has all from 2^22 ms, about 70 minutes.
	ActivityBuckets = 24
)

// activityOpen is how long after the end of a minute a worker still writes its record.
const activityOpen = 10 * time.Minute

// Activity is what happened in a cluster in a minute or an hour: what has ended on one start of a
// worker, or on all of them.
type Activity struct {
	Pairs []ActivityPair `msgpack:"p,omitempty" json:"pairs,omitempty"`
	// Counts are how many futures there were at CountedAt, in milliseconds, 0 if they were not
	// counted: those of the queues with the most futures.
	CountedAt int64         `msgpack:"t,omitempty" json:"counted_at_ms,omitempty"`
	Counts    []QueueCounts `msgpack:"c,omitempty" json:"counts,omitempty"`
}

// ActivityPair is what has ended of a function in a queue.
type ActivityPair struct {
	Function       string        `msgpack:"f,omitempty" json:"function"`
	Queue          string        `msgpack:"q,omitempty" json:"queue"`
	Succeeded      int64         `msgpack:"n,omitempty" json:"succeeded"`
	FailedAttempts int64         `msgpack:"a,omitempty" json:"failed_attempts"`
	Failed         int64         `msgpack:"d,omitempty" json:"failed"` // futures, for good
	RunTime        time.Duration `msgpack:"r,omitempty" json:"run_time_ns"`
	Runs           []int64       `msgpack:"h,omitempty" json:"runs,omitempty"`  // histogram
	Waits          []int64       `msgpack:"w,omitempty" json:"waits,omitempty"` // histogram
}

// QueueCounts are how many futures of a queue are in each state.
type QueueCounts struct {
	Queue    string `msgpack:"q,omitempty" json:"queue"`
	Blocked  int64  `msgpack:"b,omitempty" json:"blocked"`
	Ready    int64  `msgpack:"r,omitempty" json:"ready"`
	Delayed  int64  `msgpack:"d,omitempty" json:"delayed"`
	Claimed  int64  `msgpack:"c,omitempty" json:"claimed"`
	Realized int64  `msgpack:"z,omitempty" json:"realized"`
	Failed   int64  `msgpack:"f,omitempty" json:"failed"`
}

// Ended is the end of an attempt, or of a future without one.
type Ended struct {
	Function, Queue string
	Succeeded       bool          // the future has its result
	FailedAttempt   bool          // the attempt failed
	Failed          bool          // the future has failed for good
	Run             time.Duration // of the attempt, 0 if it is unknown
	Wait            time.Duration // before the first attempt, below 0 if it is unknown
}

// Count adds an end.
func (a *Activity) Count(e *Ended) {
	p := a.pair(e.Function, e.Queue)
	p.Succeeded = sum(p.Succeeded, one(e.Succeeded))
	p.FailedAttempts, p.Failed = sum(p.FailedAttempts, one(e.FailedAttempt)), sum(p.Failed, one(e.Failed))
	if e.Run > 0 {
		p.RunTime = sum(p.RunTime, e.Run)
		p.Runs = observe(p.Runs, e.Run)
	}
	if e.Wait >= 0 {
		p.Waits = observe(p.Waits, e.Wait)
	}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// Add adds what happened elsewhere or at another time. Of counts it has the latest.
func (a *Activity) Add(o *Activity) {
	for i := range o.Pairs {
		from := &o.Pairs[i]
		a.pair(from.Function, from.Queue).Add(from)
	}
	if o.CountedAt > a.CountedAt {
		a.CountedAt, a.Counts = o.CountedAt, o.Counts
	}
}

// Add adds what another pair has. What would exceed the largest number stays there.
func (p *ActivityPair) Add(o *ActivityPair) {
	p.Succeeded, p.FailedAttempts = sum(p.Succeeded, o.Succeeded), sum(p.FailedAttempts, o.FailedAttempts)
	p.Failed, p.RunTime = sum(p.Failed, o.Failed), sum(p.RunTime, o.RunTime)
	p.Runs, p.Waits = addBuckets(p.Runs, o.Runs), addBuckets(p.Waits, o.Waits)
}

// pair returns the pair of a function and a queue, or that of all others if there are many.
func (a *Activity) pair(function, queue string) *ActivityPair {
	own := func(p ActivityPair) bool { return p.Function == function && p.Queue == queue }
	at := slices.IndexFunc(a.Pairs, own)
	if at < 0 && len(a.Pairs) >= MaxActivityPairs {
		function, queue = ActivityOther, ActivityOther
		at = slices.IndexFunc(a.Pairs, own)
	}
	if at < 0 {
		at, a.Pairs = len(a.Pairs), append(a.Pairs, ActivityPair{Function: function, Queue: queue})
	}
	return &a.Pairs[at]
}

// observe adds a time to a histogram, which has no zeros at its end.
func observe(h []int64, d time.Duration) []int64 {
	bucket := min(bits.Len64(uint64(d.Milliseconds())), ActivityBuckets-1)
	h = widen(h, bucket+1)
	h[bucket] = sum(h[bucket], 1)
	return h
}

func widen(h []int64, buckets int) []int64 {
	return append(h, make([]int64, max(buckets-len(h), 0))...)
}

func addBuckets(to, from []int64) []int64 {
	to = widen(to, len(from))
	for i, n := range from {
		to[i] = sum(to[i], n)
	}
	return to
}

// CountsByQueue returns how many futures each queue has, by the name of the queue: those with
// the most futures, and all others as one.
func CountsByQueue(counts Counts) []QueueCounts {
	byQueue := map[string]*QueueCounts{}
	for key, n := range counts {
		q := byQueue[key.Queue]
		if q == nil {
			q = &QueueCounts{Queue: key.Queue}
			byQueue[key.Queue] = q
		}
		*q.of(key.State) += n
	}
	all := make([]QueueCounts, 0, len(byQueue))
	for _, q := range byQueue {
		if q.total() > 0 {
			all = append(all, *q)
		}
	}
	slices.SortFunc(all, func(a, b QueueCounts) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), cmp.Compare(a.Queue, b.Queue))
	})
	shown := slices.Clone(all[:min(len(all), MaxActivityQueues)])
	if rest := all[len(shown):]; len(rest) > 0 {
		other := QueueCounts{Queue: ActivityOther}
		for i := range rest {
			other.Add(&rest[i])
		}
		shown = append(shown, other)
	}
	slices.SortFunc(shown, func(a, b QueueCounts) int { return cmp.Compare(a.Queue, b.Queue) })
	return shown
}

// of returns the number of a state.
func (q *QueueCounts) of(s State) *int64 {
	switch s {
	case Blocked:
		return &q.Blocked
	case Ready:
		return &q.Ready
	case Delayed:
		return &q.Delayed
	case Claimed:
		return &q.Claimed
	case Realized:
		return &q.Realized
	default:
		return &q.Failed
	}
}

func (q *QueueCounts) total() (n int64) {
	for _, s := range States() {
		n += *q.of(s)
	}
	return n
}

// Add adds the futures of another queue.
func (q *QueueCounts) Add(o *QueueCounts) {
	for _, s := range States() {
		*q.of(s) += *o.of(s)
	}
}

// Check returns ErrBadRecord for a number below 0, and for more than a record may have.
func (a *Activity) Check() error {
	least := int64(0)
	for i := range a.Pairs {
		p := &a.Pairs[i]
		least = min(least, p.Succeeded, p.FailedAttempts, p.Failed, int64(p.RunTime))
		for _, n := range slices.Concat(p.Runs, p.Waits) {
			least = min(least, n)
		}
		if max(len(p.Runs), len(p.Waits)) > ActivityBuckets {
			return fmt.Errorf("%w: activity with more than %d buckets", ErrBadRecord, ActivityBuckets)
		}
	}
	switch {
	case least < 0:
		return fmt.Errorf("%w: activity below 0", ErrBadRecord)
	case len(a.Pairs) > MaxActivityPairs+1 || len(a.Counts) > MaxActivityQueues+1:
		return fmt.Errorf("%w: activity with %d pairs and %d queues: at most %d and %d", ErrBadRecord, len(a.Pairs),
			len(a.Counts), MaxActivityPairs+1, MaxActivityQueues+1)
	}
	return nil
}

// Subspace of activity, and the steps that its records are of.
const (
	SubActivity = "activity"

	ActivityMinutes = "minutes"
	ActivityHours   = "hours"
)

// activityKinds are the kinds of keys of activity.
func activityKinds() []KeyKind {
	return []KeyKind{{"activity", SubActivity, false,
		in(Choice("step", ActivityHours, ActivityMinutes), Number("at_s"), Text("membership")),
		FormatRecord, RecordOf[Activity], "", carried,
		"the ends of attempts of one start of a worker in a minute; without a membership, of all workers in a minute or " +
			"an hour, and how many futures there were",
		"the worker with its heartbeat, if something has ended, and when it leaves; folded and counted by the janitor"}}
}

// ActivityKey says where and when something happened.
type ActivityKey struct {
	Step       string // ActivityMinutes or ActivityHours
	At         int64  // its beginning, in seconds of Unix time
	Membership WorkerID
}

// MinuteOf returns the beginning of a minute, as in keys of activity.
func MinuteOf(t time.Time) int64 { return t.Truncate(time.Minute).Unix() }

// MinuteIsClosed reports whether a worker whose clock shows a time no longer writes the record
// of the minute that began at a second of Unix time.
func MinuteIsClosed(at int64, now time.Time) bool {
	return !now.Before(time.Unix(at, 0).Add(time.Minute + activityOpen))
}

// ActivityOf returns the prefix of the records of a step.
func (k Keyspace) ActivityOf(step string) []byte {
	return tuple.AppendString(k.Global(SubActivity), step)
}

// ActivityFrom returns the prefix of the records of a step at a time.
func (k Keyspace) ActivityFrom(step string, at int64) []byte {
	return tuple.AppendInt(k.ActivityOf(step), at)
}

// Activity returns the key of a record of activity.
func (k Keyspace) Activity(a ActivityKey) []byte {
	return tuple.AppendString(k.ActivityFrom(a.Step, a.At), string(a.Membership))
}

// ParseActivity parses a key of activity.
func (k Keyspace) ParseActivity(key []byte) (ActivityKey, error) {
	rest := tuple.NewReader(key[len(k.Global(SubActivity)):])
	a := ActivityKey{Step: rest.Text(), At: rest.Int(), Membership: WorkerID(rest.Text())}
	if err := rest.Done(); err != nil {
		return a, fmt.Errorf("%s: %w: %w", tuple.String(key), ErrBadRecord, err)
	}
	return a, nil
}
