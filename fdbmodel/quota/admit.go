package quota

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/signal"
)

// Admit asks whether the limits of the cluster allow n more futures to be submitted, and
// takes their place. It returns a LimitError if not. The caller submits them next; if it
// does not, their place is free again with the next reading.
//
// It relies on a reading of the counters that is at most LimitsEvery old, and on what
// this process has submitted since: no submit reads a counter, and none conflicts. By one
// reading a process takes a 64th of what is left, or else reads again. So processes that
// submit at the same time exceed a limit by at most what each of them takes by one
// reading: with N of them at most N-1 times the greater of a 64th of what was left when
// it was last read and the futures of one call. Without limits it costs one read of one
// key every LimitsSettled.
//
// The rate is a bucket in the store, of which processes lease tokens for some tenths of
// a second: over T seconds at most rate*(T+1) futures are admitted, and once the futures
// of one call more for each process.
func (q *Quota) Admit(ctx context.Context, n int) error {
	return q.limiter.admit(ctx, q, n, true, nil)
}

// AdmitUntil is Admit for futures that are committed while others ask: a reading does not
// see them yet, so they are counted besides it until done is called, or for LimitsEvery.
// What is committed at a reading and not done is counted twice meanwhile.
func (q *Quota) AdmitUntil(ctx context.Context, n int) (done func(), err error) {
	l, f := &q.limiter, &flight{n: int64(n)}
	err = l.admit(ctx, q, n, true, f)
	return func() {
		if !f.at.IsZero() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.flights, f)
		}
	}, err
}

// flight is futures that were admitted, and may not be committed yet.
type flight struct {
	n  int64
	at time.Time
}

// underWay counts the futures that a reading may not see.
func (l *limiter) underWay(now time.Time) (n int64) {
	for f := range l.flights {
		if now.Sub(f.at) >= LimitsEvery {
			delete(l.flights, f)
			continue
		}
		n += f.n
	}
	return n
}

// AdmitValues is Admit for n values that are put: their futures are over at once, so the
// limit of pending ones does not bound them.
func (q *Quota) AdmitValues(ctx context.Context, n int) error {
	return q.limiter.admit(ctx, q, n, false, nil)
}

// Refused returns how often Admit and AdmitValues of this process had no room for
// each limit. A submit that waits asks again and again.
func (q *Quota) Refused() map[Limit]int64 {
	q.limiter.mu.Lock()
	defer q.limiter.mu.Unlock()
	return maps.Clone(q.limiter.refused)
}

// admit asks for room for n futures, which will be pending or not.
func (l *limiter) admit(ctx context.Context, q *Quota, n int, pending bool, f *flight) error {
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = l.take(ctx, q, n, pending)
	var limit *LimitError
	if errors.As(err, &limit) {
		if l.refused == nil {
			l.refused = map[Limit]int64{}
		}
		l.refused[limit.Limit]++
	}
	if err == nil && f != nil && l.reading.limits.Pending > 0 {
		if l.flights == nil {
			l.flights = map[*flight]bool{}
		}
		f.at = q.cluster.Now()
		l.flights[f] = true
	}
	return err
}

// take takes the place of n futures. The caller has entered.
func (l *limiter) take(ctx context.Context, q *Quota, n int, pending bool) error {
	now := q.cluster.Now()
	if !l.fresh(now) {
		if err := l.look(ctx, q); err != nil {
			return err
		}
	}
	limits := l.reading.limits
	if !limits.Any() || n <= 0 {
		return nil
	}
	if pending && limits.Pending > 0 && l.takesMore(int64(n)) {
		if err := l.look(ctx, q); err != nil {
			return err
		}
		limits = l.reading.limits
	}
	if err := l.exceeded(n, pending); err != nil {
		return err
	}
	if limits.PerSecond > 0 {
		if err := l.takeTokens(ctx, q, n); err != nil {
			return err
		}
	}
	if pending {
		l.submitted += int64(n)
	}
	return nil
}

// takesMore reports whether n futures are more than what the process takes by one
// reading.
func (l *limiter) takesMore(n int64) bool {
	left := l.reading.limits.Pending - l.reading.used.Pending
	return l.submitted > 0 && l.submitted+n > max(1, left/limitShare)
}

// exceeded returns the limit, apart from the rate, that n more futures exceed.
func (l *limiter) exceeded(n int, pending bool) error {
	limits, used := &l.reading.limits, &l.reading.used
	if now := used.Pending + l.submitted; pending && limits.Pending > 0 && now+int64(n) > limits.Pending {
		e := &LimitError{Limit: LimitPending, Used: float64(now), Max: float64(limits.Pending), Asked: n}
		if int64(n) <= limits.Pending {
			e.RetryAfter = LimitsEvery
		}
		return e
	}
	if limits.Bytes > 0 && used.HasBytes && used.Bytes >= limits.Bytes {
		return &LimitError{Limit: LimitBytes, Used: float64(used.Bytes), Max: float64(limits.Bytes), Asked: n,
			RetryAfter: time.Second}
	}
	return nil
}

// Leases of submits: how long one lasts while no others are in the way, and at most.
const (
	shortLease = 100 * time.Millisecond
	longLease  = 400 * time.Millisecond
	// maxWait is the longest time that a refusal names.
	maxWait = 365 * 24 * time.Hour
)

// takeTokens takes n submits from the lease of the process, or leases more.
func (l *limiter) takeTokens(ctx context.Context, q *Quota, n int) error {
	now, rate := q.cluster.Now(), l.reading.limits.PerSecond
	if now.Before(l.leasedUntil) && l.tokens >= float64(n) {
		l.tokens -= float64(n)
		l.spent += float64(n)
		return nil
	}
	l.lease = cmp.Or(l.lease, shortLease)
	if !now.Before(l.leasedUntil) {
		l.tokens = 0 // what was not used in its time is lost
	}
	// A process that needs few leases few: what is leased and not used is lost to the others.
	want := math.Max(float64(n)-l.tokens, math.Min(rate*l.lease.Seconds(), 2*l.spent))
	var leased, left float64
	least, result := float64(n)-l.tokens, kv.Result{}
	err := l.unlocked(func() (err error) {
		result, err = q.cluster.Transact(ctx, kv.Options{Tag: "futura-rate", NoSync: true}, func(tx kv.Attempt) (err error) {
			leased, left, err = q.leaseTokens(ctx, tx, want, least, rate)
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	if l.lease = max(shortLease, l.lease/2); result.Conflicts > 0 {
		l.lease = min(longLease, 4*l.lease)
	}
	if leased == 0 {
		wait := time.Duration(math.Min((1-left)/rate, maxWait.Seconds()) * float64(time.Second))
		return &LimitError{Limit: LimitRate, Max: rate, Asked: n, RetryAfter: max(time.Millisecond, wait)}
	}
	l.tokens += leased - float64(n)
	l.spent = float64(n)
	l.leasedUntil = now.Add(2 * l.lease)
	return nil
}

// leaseTokens takes up to want tokens from the bucket, and at least least, for which it
// may owe some. It takes none if it has not one, and returns what is left. A committed
// attempt whose result is unknown costs the tokens once more.
func (q *Quota) leaseTokens(ctx context.Context, tx kv.Tx, want, least, rate float64,
) (leased, left float64, err error) {
	key, now := q.keys.Rate(), layout.Millis(q.cluster.Now())
	value, err := tx.Get(key).Wait(ctx)
	if err != nil {
		return 0, 0, err
	}
	most := math.Max(1, rate*shortLease.Seconds())
	bucket := RateRecord{Tokens: most, At: now}
	if value != nil {
		bucket = RateRecord{}
		if err := layout.Decode(key, value, &bucket); err != nil {
			return 0, 0, err
		}
		bucket = bucket.Refill(now, rate, most)
	}
	if bucket.Tokens < 1 {
		return 0, bucket.Tokens, nil
	}
	leased = math.Max(least, math.Min(want, math.Floor(bucket.Tokens)))
	bucket.Tokens -= leased
	tx.Set(key, layout.Encode(&bucket))
	return leased, bucket.Tokens, nil
}

// Of what is left a process claims an eighth by one reading, and reads again no sooner
// than after claimPause.
const (
	claimShare = 8
	claimPause = 5 * time.Millisecond
)

// MayClaim returns how many more futures this process may claim at present, at most n,
// by the cluster's limit of running ones. If it returns 0, it also returns when to ask
// again. Like Admit it relies on a reading that is at most LimitsEvery old, and on what
// this process has claimed and ended since: a claim reads no counter. By one reading a
// process takes an eighth of what is left, and what it has ended itself. So with N
// processes the limit is exceeded by at most N-1 times the greater of 1 and an eighth of
// what was left when it was last read. The members of a bundle, which Gather claims, count,
// and nobody asks for them.
func (q *Quota) MayClaim(ctx context.Context, n int) (may int, again time.Time, err error) {
	l := &q.limiter
	leave, err := l.enter(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	defer leave()
	for looked := false; ; looked = true {
		now := q.cluster.Now()
		if !l.fresh(now) {
			if err := l.look(ctx, q); err != nil {
				return 0, time.Time{}, err
			}
			looked = true
		}
		limit := l.reading.limits.Running
		if limit == 0 {
			return n, time.Time{}, nil
		}
		left := limit - l.reading.used.Running
		share := max(1, left/claimShare)
		if may = int(min(int64(n), left-l.claimed, share-l.claimed)); may > 0 {
			return may, time.Time{}, nil
		}
		if again = l.reading.at.Add(claimPause); left <= l.claimed {
			again = l.reading.at.Add(LimitsEvery)
		}
		if looked || now.Before(again) {
			return 0, again, nil
		}
		l.known = false
	}
}

// noteClaimed notes how many futures this process has claimed, or, below 0, how many of
// its claims have ended, by a commit with a version.
func (q *Quota) noteClaimed(n int, version kv.Version) {
	l := &q.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading.limits.Running == 0 || n == 0 {
		return
	}
	if version > l.reading.version {
		l.claimed += int64(n)
		l.claims = append(l.claims, claimChange{version, int64(n)})
	}
	if n < 0 {
		signal.Send(l.ended)
	}
}

// claimChange is what a commit has changed of the futures that this process runs.
type claimChange struct {
	version kv.Version
	n       int64
}

// unseenClaims adds up what a reading at a version does not see: a claim may be
// acknowledged before others see it.
func (l *limiter) unseenClaims(version kv.Version) (n int64) {
	l.claims = slices.DeleteFunc(l.claims, func(c claimChange) bool { return c.version <= version })
	for _, c := range l.claims {
		n += c.n
	}
	return n
}

// ClaimEnded returns a channel that receives once claims of this process have ended, if
// the cluster has a limit of running futures: MayClaim may allow others.
func (q *Quota) ClaimEnded() <-chan struct{} { return q.limiter.ended }
