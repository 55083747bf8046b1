package meter

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Bounds of a record of activity.
const (
	// MaxPairs is how many pairs of a function and a queue are told apart, and
	// MaxQueues how many queues in counts. The others are one more, Other.
	MaxPairs  = 64
	MaxQueues = 50
	// Other is the name of all other functions and queues. None has this name.
	Other = "(other)"
	// Buckets is how many buckets a histogram has at most: times below 1 ms, and then up
	// to each power of two of milliseconds. The last one has all from 2^22 ms, about 70 minutes.
	Buckets = 24
)

// openFor is how long after the end of a minute a worker still writes its record.
const openFor = 10 * time.Minute

// Activity is what happened in a cluster in a minute or an hour: what has ended on one start of a
// worker, or on all of them.
type Activity struct {
	Pairs []Pair `msgpack:"p,omitempty" json:"pairs,omitempty"`
	// Counts are how many futures there were at CountedAt, in milliseconds, 0 if they were not
	// counted: those of the queues with the most futures.
	CountedAt int64         `msgpack:"t,omitempty" json:"counted_at_ms,omitempty"`
	Counts    []QueueCounts `msgpack:"c,omitempty" json:"counts,omitempty"`
}

// Pair is what has ended of a function in a queue.
type Pair struct {
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
	p.Succeeded = add(p.Succeeded, one(e.Succeeded))
	p.FailedAttempts, p.Failed = add(p.FailedAttempts, one(e.FailedAttempt)), add(p.Failed, one(e.Failed))
	if e.Run > 0 {
		p.RunTime = add(p.RunTime, e.Run)
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
func (p *Pair) Add(o *Pair) {
	p.Succeeded, p.FailedAttempts = add(p.Succeeded, o.Succeeded), add(p.FailedAttempts, o.FailedAttempts)
	p.Failed, p.RunTime = add(p.Failed, o.Failed), add(p.RunTime, o.RunTime)
	p.Runs, p.Waits = addBuckets(p.Runs, o.Runs), addBuckets(p.Waits, o.Waits)
}

// pair returns the pair of a function and a queue, or that of all others if there are many.
func (a *Activity) pair(function, queue string) *Pair {
	own := func(p Pair) bool { return p.Function == function && p.Queue == queue }
	at := slices.IndexFunc(a.Pairs, own)
	if at < 0 && len(a.Pairs) >= MaxPairs {
		function, queue = Other, Other
		at = slices.IndexFunc(a.Pairs, own)
	}
	if at < 0 {
		at, a.Pairs = len(a.Pairs), append(a.Pairs, Pair{Function: function, Queue: queue})
	}
	return &a.Pairs[at]
}

// observe adds a time to a histogram, which has no zeros at its end.
func observe(h []int64, d time.Duration) []int64 {
	bucket := min(bits.Len64(uint64(d.Milliseconds())), Buckets-1)
	h = widen(h, bucket+1)
	h[bucket] = add(h[bucket], 1)
	return h
}

func widen(h []int64, buckets int) []int64 {
	return append(h, make([]int64, max(buckets-len(h), 0))...)
}

func addBuckets(to, from []int64) []int64 {
	to = widen(to, len(from))
	for i, n := range from {
		to[i] = add(to[i], n)
	}
	return to
}

// CountsByQueue returns how many futures each queue has, by the name of the queue: those with
// the most futures, and all others as one.
func CountsByQueue(counts layout.Counts) []QueueCounts {
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
	shown := slices.Clone(all[:min(len(all), MaxQueues)])
	if rest := all[len(shown):]; len(rest) > 0 {
		other := QueueCounts{Queue: Other}
		for i := range rest {
			other.Add(&rest[i])
		}
		shown = append(shown, other)
	}
	slices.SortFunc(shown, func(a, b QueueCounts) int { return cmp.Compare(a.Queue, b.Queue) })
	return shown
}

// of returns the number of a state.
func (q *QueueCounts) of(s layout.State) *int64 {
	switch s {
	case layout.Blocked:
		return &q.Blocked
	case layout.Ready:
		return &q.Ready
	case layout.Delayed:
		return &q.Delayed
	case layout.Claimed:
		return &q.Claimed
	case layout.Realized:
		return &q.Realized
	default:
		return &q.Failed
	}
}

func (q *QueueCounts) total() (n int64) {
	for _, s := range layout.States() {
		n += *q.of(s)
	}
	return n
}

// Add adds the futures of another queue.
func (q *QueueCounts) Add(o *QueueCounts) {
	for _, s := range layout.States() {
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
		if max(len(p.Runs), len(p.Waits)) > Buckets {
			return fmt.Errorf("%w: activity with more than %d buckets", layout.ErrBadRecord, Buckets)
		}
	}
	switch {
	case least < 0:
		return fmt.Errorf("%w: activity below 0", layout.ErrBadRecord)
	case len(a.Pairs) > MaxPairs+1 || len(a.Counts) > MaxQueues+1:
		return fmt.Errorf("%w: activity with %d pairs and %d queues: at most %d and %d", layout.ErrBadRecord, len(a.Pairs),
			len(a.Counts), MaxPairs+1, MaxQueues+1)
	}
	return nil
}
