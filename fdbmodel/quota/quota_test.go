package quota_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// crowd is several processes of one cluster.
type crowd struct {
	t       *testing.T
	ctx     context.Context
	clock   *clock.Virtual
	members []*fdbmodel.Cluster
}

func newCrowd(t *testing.T, n int, limits quota.Limits) *crowd {
	c := &crowd{t: t, ctx: context.Background(), clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))}
	db := storetest.New(t)
	for range n {
		member, err := fdbmodel.Open(c.ctx, db, "crowd", fdbmodel.Options{Clock: c.clock, Config: layout.Config{Shards: 4}})
		require.NoError(t, err)
		c.members = append(c.members, member)
	}
	_, err := quota.Of(c.members[0]).Set(c.ctx, func(l *quota.Limits) { *l = limits })
	require.NoError(t, err)
	return c
}

// submit asks for admission and submits, and returns the limit that is exceeded, if one
// is.
func (c *crowd) submit(m *fdbmodel.Cluster, n int) *quota.LimitError {
	c.t.Helper()
	err := quota.Of(m).Admit(c.ctx, n)
	var limit *quota.LimitError
	if errors.As(err, &limit) {
		require.ErrorIs(c.t, err, quota.ErrLimit)
		return limit
	}
	require.NoError(c.t, err)
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i].Spec.Function = "go:f"
	}
	_, err = m.Submit(c.ctx, subs)
	require.NoError(c.t, err)
	return nil
}

func (c *crowd) used() quota.Usage {
	_, used, err := quota.Of(c.members[0]).Get(c.ctx)
	require.NoError(c.t, err)
	return used
}

// TestLimitOfPendingFutures has one process fill the cluster: to the last future.
func TestLimitOfPendingFutures(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, quota.Limits{Pending: 10})
	m := c.members[0]
	require.Nil(t, c.submit(m, 4))
	require.Nil(t, c.submit(m, 5))
	require.Equal(t, 2, c.submit(m, 2).Asked)
	require.Nil(t, c.submit(m, 1))
	full := c.submit(m, 1)
	require.Equal(t, &quota.LimitError{Limit: quota.LimitPending, Used: 10, Max: 10, Asked: 1,
		RetryAfter: quota.LimitsEvery}, full)
	require.Contains(t, full.Error(), "come back in 250ms")
	never := c.submit(m, 11)
	require.Zero(t, never.RetryAfter)
	require.Contains(t, never.Error(), "futura limits set")
	rows := c.used()
	require.EqualValues(t, 10, rows.Pending)

	r, err := m.Register(c.ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 3}})
	require.NoError(t, err)
	answer, err := r.Claim(c.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 3}, Max: 3})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 3)
	require.NotNil(t, c.submit(m, 1), "the reading is still the former one")
	c.clock.Advance(quota.LimitsEvery)
	require.Nil(t, c.submit(m, 3))
	require.NotNil(t, c.submit(m, 1))
}

// TestLimitOfDelayedFutures counts futures that wait for a time.
func TestLimitOfDelayedFutures(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, quota.Limits{Pending: 2})
	m := c.members[0]
	_, err := m.Submit(c.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"},
		NotBefore: c.clock.Now().Add(time.Hour)}})
	require.NoError(t, err)
	require.EqualValues(t, 1, c.used().Pending)
	require.Nil(t, c.submit(m, 1))
	require.NotNil(t, c.submit(m, 1))
}

// TestLimitOfFuturesUnderWay asks for room while what was admitted before is not
// committed, which no reading sees.
func TestLimitOfFuturesUnderWay(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, quota.Limits{Pending: 3})
	m := c.members[0]
	var done [3]func()
	for i := range done {
		var err error
		done[i], err = quota.Of(m).AdmitUntil(c.ctx, 1)
		require.NoError(t, err)
	}
	_, err := quota.Of(m).AdmitUntil(c.ctx, 1)
	require.ErrorIs(t, err, quota.ErrLimit)
	done[0]() // it is not committed
	_, err = quota.Of(m).AdmitUntil(c.ctx, 1)
	require.NoError(t, err)
	_, err = quota.Of(m).AdmitUntil(c.ctx, 1)
	require.ErrorIs(t, err, quota.ErrLimit)
	c.clock.Advance(quota.LimitsEvery - 1)
	require.ErrorIs(t, quota.Of(m).Admit(c.ctx, 1), quota.ErrLimit)
	c.clock.Advance(1)
	require.NoError(t, quota.Of(m).Admit(c.ctx, 3), "what is never said to be done counts for some time")
	done[1]()
	done[2]()
}

// TestLimitsOfValues asks for room for values that are put: their futures are never
// pending, but count for the rate and for the bytes.
func TestLimitsOfValues(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, quota.Limits{Pending: 1, PerSecond: 10})
	m := c.members[0]
	require.NoError(t, quota.Of(m).AdmitValues(c.ctx, 5))
	require.ErrorIs(t, quota.Of(m).AdmitValues(c.ctx, 1), quota.ErrLimit, "the bucket owes some")
	c.clock.Advance(time.Second)
	require.Nil(t, c.submit(m, 1), "values are not pending")
	require.NotNil(t, c.submit(m, 1))
	require.Equal(t, map[quota.Limit]int64{quota.LimitRate: 1, quota.LimitPending: 1}, quota.Of(m).Refused())
}

// TestLimitsExceededByACrowd has processes with readings of different age submit as much
// as they may, in random order: the limit is exceeded by no more than what it says.
func TestLimitsExceededByACrowd(t *testing.T) {
	t.Parallel()
	const limit, n = 640, 8
	for seed := range storetest.Fewer(5, 1) {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		c := newCrowd(t, n, quota.Limits{Pending: limit})
		for refused := 0; refused < 40*n; {
			m := c.members[random.IntN(n)]
			if c.submit(m, 1+random.IntN(3)) != nil {
				refused++
			}
			c.clock.Advance(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		used := c.used()
		require.LessOrEqual(t, used.Pending, int64(limit+(n-1)*limit/64), "seed %d", seed)
		require.GreaterOrEqual(t, used.Pending, int64(limit-3), "seed %d", seed)
	}
}

// TestLimitExceededAtOnce has processes that have read the same fill the cluster at one
// moment, in turns.
func TestLimitExceededAtOnce(t *testing.T) {
	t.Parallel()
	const limit, n = 640, 8
	c := newCrowd(t, n, quota.Limits{Pending: limit})
	for _, m := range c.members {
		require.NoError(t, quota.Of(m).Admit(c.ctx, 1)) // and read; it submits nothing
	}
	for refused := 0; refused < n; {
		refused = 0
		for _, m := range c.members {
			if c.submit(m, 1) != nil {
				refused++
			}
		}
	}
	require.LessOrEqual(t, c.used().Pending, int64(limit+(n-1)*limit/64))
}

// TestTokensThatAreNotUsed has processes lease submits and stop: after a pause they may
// submit no more at once than the bucket holds.
func TestTokensThatAreNotUsed(t *testing.T) {
	t.Parallel()
	const rate, n = 200, 10
	c := newCrowd(t, n, quota.Limits{PerSecond: rate})
	for _, m := range c.members {
		for range 30 {
			err := quota.Of(m).Admit(c.ctx, 1)
			require.True(t, err == nil || errors.Is(err, quota.ErrLimit), err)
			c.clock.Advance(20 * time.Millisecond)
		}
	}
	c.clock.Advance(time.Hour)
	admitted := 0
	for _, m := range c.members {
		for quota.Of(m).Admit(c.ctx, 1) == nil {
			admitted++
		}
	}
	require.LessOrEqual(t, admitted, rate/10+n)
}

// TestLimitOfTheRateWithAWrongClock has a process whose clock is ahead use up the rate: by
// an hour, the others go on at their rate; by some seconds, they wait until it has passed.
func TestLimitOfTheRateWithAWrongClock(t *testing.T) {
	t.Parallel()
	const rate = 10
	for ahead, want := range map[time.Duration]int{time.Hour: 2*rate + 1, 5 * time.Second: 0} {
		c := newCrowd(t, 1, quota.Limits{PerSecond: rate})
		m := c.members[0]
		wrong, err := fdbmodel.Open(c.ctx, m.Database(), "crowd",
			fdbmodel.Options{Clock: clock.NewVirtual(c.clock.Now().Add(ahead))})
		require.NoError(t, err)
		require.NoError(t, quota.Of(wrong).AdmitValues(c.ctx, 3), "it owes two")
		admitted := 0
		for range 200 {
			err := quota.Of(m).AdmitValues(c.ctx, 1)
			if err == nil {
				admitted++
			} else {
				require.ErrorIs(t, err, quota.ErrLimit)
			}
			c.clock.Advance(10 * time.Millisecond)
		}
		require.InDelta(t, want, admitted, 1, "%v ahead", ahead)
	}
}

// TestLimitOfRunningFutures has workers of several processes claim and end as much as
// they may: the limit is reached, and exceeded by no more than what it says.
func TestLimitOfRunningFutures(t *testing.T) {
	t.Parallel()
	const limit, n = 32, 4
	for seed := range storetest.Fewer(5, 1) {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		c := newCrowd(t, n, quota.Limits{Running: limit})
		for range 8 {
			require.Nil(t, c.submit(c.members[0], 100))
		}
		var workers []*fdbmodel.Registration
		held, most, ended := make([][]fdbmodel.ClaimedFuture, n), int64(0), 0
		for _, m := range c.members {
			r, err := m.Register(c.ctx, layout.WorkerInfo{Functions: []string{"go:f"},
				Capacity: layout.Resources{Slots: 100}})
			require.NoError(t, err)
			workers = append(workers, r)
		}
		for ended < storetest.Fewer(500, 100) {
			i := random.IntN(n)
			may, again, err := quota.Of(c.members[i]).MayClaim(c.ctx, 100)
			require.NoError(t, err)
			if may == 0 {
				require.True(t, again.After(c.clock.Now()))
			} else {
				answer, err := workers[i].Claim(c.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 100}, Max: may})
				require.NoError(t, err)
				held[i] = append(held[i], answer.Futures...)
			}
			most = max(most, c.used().Running)
			if len(held[i]) > 0 && random.IntN(3) == 0 {
				outcomes, err := workers[i].Finish(c.ctx, []fdbmodel.Completion{realize(&held[i][0])})
				require.NoError(t, err)
				require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
				held[i] = held[i][1:]
				ended++
			}
			c.clock.Advance(time.Duration(random.IntN(30)) * time.Millisecond)
		}
		require.LessOrEqual(t, most, int64(limit+(n-1)*limit/8), "seed %d", seed)
		require.GreaterOrEqual(t, most, int64(limit), "seed %d", seed)
	}
}

// TestLimitOfTheRate has processes submit as fast as they may for some seconds, in turns,
// alone, and in calls of many.
func TestLimitOfTheRate(t *testing.T) {
	t.Parallel()
	const rate = 200
	seconds := storetest.Fewer(5, 2)
	for name, calls := range map[string]struct{ members, size int }{"one": {1, 1}, "many": {10, 1}, "large": {3, 50}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, calls.members, quota.Limits{PerSecond: rate})
			admitted, start := 0, c.clock.Now()
			for c.clock.Now().Sub(start) < time.Duration(seconds)*time.Second {
				for _, m := range c.members {
					for range 20 {
						err := quota.Of(m).Admit(c.ctx, calls.size)
						var limit *quota.LimitError
						if errors.As(err, &limit) {
							require.Positive(t, limit.RetryAfter)
							break
						}
						require.NoError(t, err)
						admitted += calls.size
					}
				}
				c.clock.Advance(5 * time.Millisecond)
			}
			require.LessOrEqual(t, admitted, rate*(seconds+1)+calls.members*calls.size)
			require.GreaterOrEqual(t, admitted, rate*seconds*9/10)
		})
	}
}

// TestLimitsAreSettings sets limits, in turns and wrong ones, and takes them away.
func TestLimitsAreSettings(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 2, quota.Limits{})
	m := c.members[1]
	require.Nil(t, c.submit(m, 5))
	limits, err := quota.Of(c.members[0]).Set(c.ctx, func(l *quota.Limits) { l.Pending = 5 })
	require.NoError(t, err)
	require.Equal(t, quota.Limits{Pending: 5}, limits)
	require.Nil(t, c.submit(m, 1), "it does not know yet")
	c.clock.Advance(quota.LimitsSettled)
	require.NotNil(t, c.submit(m, 1))
	_, err = quota.Of(c.members[0]).Set(c.ctx, func(l *quota.Limits) { l.Pending = 0 })
	require.NoError(t, err)
	c.clock.Advance(quota.LimitsEvery)
	require.Nil(t, c.submit(m, 100))
	for _, bad := range []quota.Limits{{Pending: -1}, {Running: -1}, {Bytes: -1}, {PerSecond: -1}, {PerSecond: 1e12}} {
		_, err := quota.Of(m).Set(c.ctx, func(l *quota.Limits) { *l = bad })
		require.ErrorIs(t, err, layout.ErrBadConfig, fmt.Sprint(bad))
	}
}

// TestLimitOfBytes has the store hold more than it may, by its own measure and by a record
// of another process.
func TestLimitOfBytes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer func() { require.NoError(t, db.Close()) }()
	virtual := clock.NewVirtual(time.UnixMilli(1_900_000_000_000))
	open := func(db kv.Database) *fdbmodel.Cluster {
		c, err := fdbmodel.Open(ctx, db, "bytes", fdbmodel.Options{Clock: virtual})
		require.NoError(t, err)
		return c
	}
	c, other := open(db), open(unmeasured{db})
	_, err := quota.Of(c).Set(ctx, func(l *quota.Limits) { l.Bytes = 20_000 })
	require.NoError(t, err)
	require.NoError(t, quota.Of(c).Admit(ctx, 1))
	_, err = c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}, Args: make([]byte, 30_000)}})
	require.NoError(t, err)
	require.NoError(t, quota.Of(other).Admit(ctx, 1), "nobody has measured")
	require.NoError(t, quota.Of(c).WriteUsage(ctx))
	virtual.Advance(quota.LimitsEvery)
	for _, m := range []*fdbmodel.Cluster{c, other} {
		var limit *quota.LimitError
		require.ErrorAs(t, quota.Of(m).Admit(ctx, 1), &limit)
		require.Equal(t, quota.LimitBytes, limit.Limit)
		require.Greater(t, limit.Used, 30_000.)
	}
	virtual.Advance(time.Hour)
	require.NoError(t, quota.Of(other).Admit(ctx, 1), "the record is old")
}

// unmeasured hides that a store knows how much it holds.
type unmeasured struct{ kv.Database }

// TestUnknownResultsOfLimits is TestUnknownResults for them.
func TestUnknownResultsOfLimits(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-limits": func(s *modeltest.Stage, strike func()) {
			strike()
			_, err := quota.Of(s.C).Set(s.Ctx, func(l *quota.Limits) { l.Running = 3 })
			require.NoError(s.T, err)
			s.Faults.Flush()
			limits, _, err := quota.Of(s.C).Get(s.Ctx)
			require.NoError(s.T, err)
			require.Equal(s.T, quota.Limits{Running: 3}, limits)
		},
		"futura-rate": func(s *modeltest.Stage, strike func()) {
			_, err := quota.Of(s.C).Set(s.Ctx, func(l *quota.Limits) { l.PerSecond = 1 })
			require.NoError(s.T, err)
			strike()
			err = quota.Of(s.C).Admit(s.Ctx, 1)
			s.Faults.Flush()
			if err != nil { // the token was taken, and nobody has it
				require.ErrorIs(s.T, err, quota.ErrLimit)
			}
			require.ErrorIs(s.T, quota.Of(s.C).Admit(s.Ctx, 1), quota.ErrLimit)
		},
	})
}

// TestRecordsOfTheRateThatCannotBe damages the record of the rate, or has a clock that was
// wrong write it: submits go on.
func TestRecordsOfTheRateThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, tokens := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300, 0.5} {
		for _, at := range []int64{math.MinInt64, 0, math.MaxInt64} {
			c := newCrowd(t, 1, quota.Limits{PerSecond: 100})
			_, err := kv.Transact(c.ctx, c.members[0].Database(), kv.Retry{}, func(tx kv.Attempt) error {
				tx.Set(quota.Keys(c.members[0].Keys()).Rate(), layout.Encode(&quota.RateRecord{Tokens: tokens, At: at}))
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, quota.Of(c.members[0]).Admit(c.ctx, 1), "%v at %d", tokens, at)
			admitted := 0
			for range 100 {
				if quota.Of(c.members[0]).Admit(c.ctx, 1) == nil {
					admitted++
				}
			}
			require.Less(t, admitted, 20, "%v at %d", tokens, at)
		}
	}
}
