// Package quota bounds what a cluster holds and runs: futures that wait, futures that run,
// submits for each second, and bytes.
package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Intervals at which a process looks at the limits of the cluster, while it submits or
// claims.
const (
	// LimitsEvery is how old a reading of the counters may be, if there are limits.
	LimitsEvery = 250 * time.Millisecond
	// LimitsSettled is how soon a process obeys limits that are set, if there were none.
	LimitsSettled = 2 * time.Second
	// limitShare is the part of what is left that a process takes by one reading.
	limitShare = 64
)

// ErrLimit is returned when a limit of the cluster is exceeded. Every LimitError
// matches it.
var ErrLimit = errors.New("limit of the cluster")

// Limit names a limit of a cluster.
type Limit string

// The limits of a cluster.
const (
	LimitPending Limit = "pending"
	LimitRunning Limit = "running"
	LimitBytes   Limit = "bytes"
	LimitRate    Limit = "per_second"
)

// LimitError says which limit of the cluster is exceeded, and when to come back.
// Nothing was written.
type LimitError struct {
	Limit Limit
	// Used and Max are in the unit of the limit: futures, bytes, or submits per second.
	Used, Max float64
	// Asked is how many futures were to be submitted.
	Asked int
	// RetryAfter is when there may be room; 0 if there never is, because more was asked
	// for than the limit is.
	RetryAfter time.Duration
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// Error implements error.
func (e *LimitError) Error() string {
	var text string
	switch e.Limit {
	case LimitRate:
		text = fmt.Sprintf("%v: %g submits per second: %d more are too many now", ErrLimit, e.Max, e.Asked)
	case LimitBytes:
		text = fmt.Sprintf("%v: the store holds %.0f bytes, of at most %.0f", ErrLimit, e.Used, e.Max)
	default:
		text = fmt.Sprintf("%v: %.0f futures are %s, of at most %.0f, and there is no room for %d more", ErrLimit, e.Used,
			e.Limit, e.Max, e.Asked)
	}
	if e.RetryAfter == 0 {
		return text + ": submit fewer at a time, or have the operator raise it (futura limits set)"
	}
	return fmt.Sprintf("%s: come back in %v, or wait for room", text, e.RetryAfter.Round(time.Millisecond))
}

// Usage is what there is of what limits are for.
type Usage struct {
	Pending, Running int64
	// Bytes is what the store holds, and HasBytes whether that is known.
	Bytes    int64
	HasBytes bool
}

// Quota is the limits of one cluster, and what this process knows of how much of them is
// used. Its methods may be called from many goroutines.
type Quota struct {
	cluster *fdbmodel.Cluster
	keys    Keys
	limiter limiter
}

// Of returns the quota of a cluster: one for all its callers.
func Of(c *fdbmodel.Cluster) *Quota {
	type key struct{}
	return c.Room(key{}, func() any {
		q := &Quota{cluster: c, keys: Keys(c.Keys())}
		q.limiter.turn, q.limiter.ended = make(chan struct{}, 1), make(chan struct{}, 1)
		c.OnClaims(q.noteClaimed)
		return q
	}).(*Quota)
}

// Set changes the limits of the cluster: change receives the present ones, may be
// called more than once, and must do the same each time. Processes obey them within
// LimitsSettled. It returns ErrBadConfig for invalid ones. An unknown commit is retried
// and harmless.
func (q *Quota) Set(ctx context.Context, change func(*Limits)) (now Limits, err error) {
	_, err = q.cluster.Transact(ctx, kv.Options{Tag: "futura-limits"}, func(tx kv.Attempt) error {
		if now, err = readLimits(ctx, tx, q.keys); err != nil {
			return err
		}
		change(&now)
		if err := now.Validate(); err != nil {
			return err
		}
		if !now.Any() {
			tx.Clear(q.keys.Limits())
			tx.Clear(q.keys.Rate())
			return nil
		}
		tx.Set(q.keys.Limits(), layout.Encode(&now))
		return nil
	})
	q.limiter.forget()
	return now, err
}

// Get reads the limits of the cluster, and how much of them is used.
func (q *Quota) Get(ctx context.Context) (Limits, Usage, error) {
	r, err := q.readUsage(ctx, true)
	return r.limits, r.used, err
}

func readLimits(ctx context.Context, tx kv.Reader, keys Keys) (limits Limits, err error) {
	value, err := tx.Get(keys.Limits()).Wait(ctx)
	if err == nil && value != nil {
		err = layout.Decode(keys.Limits(), value, &limits)
	}
	return limits, err
}

// limiter is what a process knows of the limits of its cluster.
type limiter struct {
	// turn is held by one call that asks for room at a time, so that one reading serves all that wait.
	turn chan struct{}

	mu      sync.Mutex // not held while the store is read
	known   bool
	forgets int // calls of forget
	reading limitReading
	// submitted and claimed are what this process has added since the reading.
	submitted, claimed int64
	claims             []claimChange    // those that the next reading may not see
	flights            map[*flight]bool // of submitted, those that the next reading may not see
	ended              chan struct{}
	refused            map[Limit]int64 // how often there was no room
	// tokens are leased submits, until leasedUntil.
	tokens      float64
	spent       float64 // since the last lease
	leasedUntil time.Time
	lease       time.Duration
}

// limitReading is one look at the limits and the counters.
type limitReading struct {
	limits Limits
	used   Usage
	at     time.Time
	// version is that of the counters, kv.NoVersion if they were not read.
	version kv.Version
}

// forget has the next look read everything again.
func (l *limiter) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
	l.forgets++
}

// enter waits for the turn, and then for the lock. leave gives both back.
func (l *limiter) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("limits of the cluster: %w", context.Cause(ctx))
	}
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		<-l.turn
	}, nil
}

// unlocked calls f, which reads the store, without the lock.
func (l *limiter) unlocked(f func() error) error {
	l.mu.Unlock()
	defer l.mu.Lock()
	return f()
}

// fresh returns whether the last reading may be relied on.
func (l *limiter) fresh(now time.Time) bool {
	age := LimitsSettled
	if l.reading.limits.Any() {
		age = LimitsEvery
	}
	return l.known && now.Sub(l.reading.at) < age && !now.Before(l.reading.at)
}

// look reads the limits and the counters again. The caller has entered.
func (l *limiter) look(ctx context.Context, q *Quota) error {
	var r limitReading
	forgets := l.forgets
	err := l.unlocked(func() (err error) {
		r, err = q.readUsage(ctx, false)
		return err
	})
	if err != nil {
		return fmt.Errorf("limits of the cluster: %w", err)
	}
	l.known, l.reading = l.forgets == forgets, r
	l.submitted, l.claimed = l.underWay(q.cluster.Now()), l.unseenClaims(r.version)
	return nil
}

// readUsage reads the limits, and of the counters those that are limited, or all.
func (q *Quota) readUsage(ctx context.Context, all bool) (r limitReading, err error) {
	err = q.cluster.View(ctx, func(tx kv.Attempt) error {
		r = limitReading{at: q.cluster.Now(), version: kv.NoVersion}
		snapshot := tx.Snapshot()
		if r.limits, err = readLimits(ctx, snapshot, q.keys); err != nil {
			return err
		}
		if all || r.limits.Bytes > 0 {
			if err := q.readBytes(ctx, snapshot, &r.used); err != nil {
				return err
			}
		}
		if !all && r.limits.Pending == 0 && r.limits.Running == 0 {
			return nil
		}
		if r.version, err = tx.ReadVersion(ctx); err != nil {
			return err
		}
		return q.readStates(ctx, snapshot, &r.used)
	})
	return r, err
}

// readStates adds up the counters of all shards, which are read together.
func (q *Quota) readStates(ctx context.Context, tx kv.Reader, used *Usage) error {
	ranges, pages := make([]kv.Range, q.cluster.Config().Shards), make([]kv.Pending[kv.Page], q.cluster.Config().Shards)
	for shard := range pages {
		ranges[shard] = kv.Prefix(q.cluster.Keys().Shard(shard, layout.SubCounts))
		pages[shard] = tx.GetRange(ranges[shard], kv.RangeOptions{})
	}
	for shard, pending := range pages {
		prefix := q.cluster.Keys().Shard(shard, layout.SubCounts)
		for {
			page, err := pending.Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key, n, err := layout.ParseCount(prefix, item)
				if err != nil {
					return err
				}
				switch key.State {
				case layout.Blocked, layout.Ready, layout.Delayed:
					used.Pending += n
				case layout.Claimed:
					used.Running += n
				}
			}
			if !page.More || len(page.Items) == 0 {
				break
			}
			ranges[shard].Begin = kv.After(page.Items[len(page.Items)-1].Key)
			pending = tx.GetRange(ranges[shard], kv.RangeOptions{})
		}
	}
	return nil
}

// Measured is implemented by stores that know how much they hold. Those of which that is not always true have a
// method Measures() bool besides.
type Measured interface {
	// StoredBytes returns the size of the keys and values of a range, or of the whole
	// store, about.
	StoredBytes(ctx context.Context, r kv.Range) (int64, error)
}

// measured returns the store if it knows now how much it holds.
func (q *Quota) measured() (Measured, bool) {
	m, measured := q.cluster.Database().(Measured)
	if sometimes, is := m.(interface{ Measures() bool }); is {
		measured = sometimes.Measures()
	}
	return m, measured
}

// usageLifetime is how long a record of what the store holds counts.
const usageLifetime = time.Minute

func (q *Quota) readBytes(ctx context.Context, tx kv.Reader, used *Usage) error {
	if m, measured := q.measured(); measured {
		n, err := m.StoredBytes(ctx, q.cluster.Keys().All())
		used.Bytes, used.HasBytes = n, err == nil
		return err
	}
	value, err := tx.Get(q.keys.Usage()).Wait(ctx)
	if err != nil || value == nil {
		return err
	}
	var record UsageRecord
	if err := layout.Decode(q.keys.Usage(), value, &record); err != nil {
		return err
	}
	age := q.cluster.Now().Sub(time.UnixMilli(record.At))
	used.Bytes, used.HasBytes = record.Bytes, age < usageLifetime && age > -usageLifetime
	return nil
}

// WriteUsage records how much the store holds, if that is limited and this process can
// measure it: other processes obey the limit by the record. An unknown commit is
// harmless.
func (q *Quota) WriteUsage(ctx context.Context) error {
	m, measured := q.measured()
	if !measured {
		return nil
	}
	var limits Limits
	err := q.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		limits, err = readLimits(ctx, tx.Snapshot(), q.keys)
		return err
	})
	if err != nil || limits.Bytes == 0 {
		return err
	}
	n, err := m.StoredBytes(ctx, q.cluster.Keys().All())
	if err != nil {
		return err
	}
	_, err = q.cluster.Transact(ctx, kv.Options{Tag: "futura-limits", NoSync: true}, func(tx kv.Attempt) error {
		tx.Set(q.keys.Usage(), layout.Encode(&UsageRecord{Bytes: n, At: layout.Millis(q.cluster.Now())}))
		return nil
	})
	return err
}
