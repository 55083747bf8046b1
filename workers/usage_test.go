package workers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// used returns what was used on the present day.
func (b *bed) used() (all []metering.Use) {
	now := b.cluster.Now()
	require.NoError(b.t, metering.Read(b.ctx, b.cluster, now, now, func(u *metering.Use) error {
		all = append(all, *u)
		return nil
	}))
	return all
}

// TestWorkersTellWhatTheyUse has a named worker end attempts, and leave. Its heartbeats tell
// it before.
func TestWorkersTellWhatTheyUse(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := realBed(t)
		w := b.start(Options{Name: "a"}, map[string]Function{
			"f": func(ctx context.Context, args []byte) ([]byte, error) {
				return append(args, args...), clock.Sleep(ctx, clock.Real{}, 3*time.Second)
			},
			"bad": func(context.Context, []byte) ([]byte, error) { panic("bad") },
		})
		ids := b.submit(
			b.describe("go:f", func(s *fdbmodel.Submission) { s.Args = []byte("abc") }),
			b.describe("go:bad", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 0 }))
		b.awaitOver(ids...)
		require.Eventually(t, func() bool { u := b.used(); return len(u) == 1 && u[0].Items == 1 }, time.Minute, time.Second)
		w.end()
		used := b.used()
		require.Len(t, used, 1)
		require.Equal(t, []string{metering.Worker, "a"}, []string{used[0].Kind, used[0].Name})
		require.InDelta(t, 3*time.Second, used[0].RunTime, float64(time.Second))
		used[0].RunTime = 0
		require.Equal(t, metering.Metered{Items: 1, Failed: 1, In: 3, Out: 6}, used[0].Metered)
		b.checkActivity()
	})
}

// checkActivity checks that a second of waiting, three of running and a failure were counted, and
// futures once a minute.
func (b *bed) checkActivity() {
	now := b.cluster.Now()
	series, err := activity.Read(b.ctx, b.cluster, now.Add(-time.Hour), now.Add(time.Minute), time.Minute)
	require.NoError(b.t, err)
	require.Len(b.t, series.Pairs, 2)
	bad, f := series.Pairs[0], series.Pairs[1]
	require.Equal(b.t, []string{"go:bad", "go:f"}, []string{bad.Function, f.Function})
	require.Equal(b.t, []int64{0, 1, 1}, []int64{bad.Succeeded, bad.FailedAttempts, bad.Failed})
	require.Equal(b.t, []int64{1, 0, 0}, []int64{f.Succeeded, f.FailedAttempts, f.Failed})
	require.InDelta(b.t, 3*time.Second, activity.Quantile(f.Runs, 0.5), float64(time.Second+100*time.Millisecond))
	require.NotEmpty(b.t, f.Waits)
	require.NotEmpty(b.t, bad.Waits)
}

// TestFuturesAreCounted has the janitor of a worker count them.
func TestFuturesAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := realBed(t)
		w := b.start(Options{}, map[string]Function{"g": func(context.Context, []byte) ([]byte, error) { return nil, nil }})
		b.submit(b.describe("go:f"))
		require.Eventually(t, func() bool {
			now := b.cluster.Now()
			series, err := activity.Read(b.ctx, b.cluster, now.Add(-time.Hour), now.Add(time.Minute), time.Minute)
			require.NoError(t, err)
			return len(series.Counts) == 1 && series.Counts[0].Ready == 1
		}, 3*time.Minute, time.Second)
		w.end()
	})
}

// TestTimedOutModulesAreMetered has a runner end a call that ran too long.
func TestTimedOutModulesAreMetered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := realBed(t)
		w := b.start(Options{Name: "a", Modules: moduleFunc(func(context.Context, ModuleCall) (ModuleOutcome, error) {
			return ModuleOutcome{Kind: layout.KindTimeout, Message: "ran too long", ExitCode: -1,
				Usage: layout.Usage{CPUUser: 2 * time.Second, CPUSys: time.Second, Memory: 5}}, nil
		})}, nil)
		module, err := modules.Of(b.cluster).Put(b.ctx, []byte("module"), "")
		require.NoError(t, err)
		ids := b.submit(b.describe("wasm:"+module.CID, func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 0 }))
		b.awaitOver(ids...)
		w.end()
		used := b.used()
		require.Len(t, used, 1)
		require.EqualValues(t, 1, used[0].Failed)
		require.Equal(t, 3*time.Second, used[0].CPU)
		require.EqualValues(t, 5, used[0].Memory)
	})
}

// TestAnAttemptThatEndsTooLateIsMetered keeps what is known of it.
func TestAnAttemptThatEndsTooLateIsMetered(t *testing.T) {
	t.Parallel()
	usage := &layout.Usage{CPUUser: time.Second}
	require.Equal(t, usage, usageIn(&fdbmodel.Completion{Result: &layout.Result{Usage: usage}}))
	require.Equal(t, usage, usageIn(&fdbmodel.Completion{Exception: &layout.Exception{Usage: usage}}))
	require.Nil(t, usageIn(&fdbmodel.Completion{Relinquish: true}))
}

// TestWhatARemoteSaysIsBounded has a remote say that attempts ran for longer than they were
// away.
func TestWhatARemoteSaysIsBounded(t *testing.T) {
	t.Parallel()
	j := &job{membership: &membership{worker: &Worker{cluster: virtualBed(t).cluster}}, started: epoch.Add(-time.Minute)}
	for said, want := range map[time.Duration]time.Duration{
		0: time.Minute, time.Second: time.Second, time.Hour: time.Minute, -time.Second: time.Minute,
	} {
		j.ranElsewhere.Store(int64(said))
		require.Equal(t, want, j.ran())
	}
	j.shares.Store(true)
	require.Zero(t, j.ran(), "the time of a bundle counts once")
}

// TestWhatMeteringCosts counts the requests of heartbeats.
func TestWhatMeteringCosts(t *testing.T) {
	t.Parallel()
	db := &meteredStore{Database: storetest.New(t)}
	b := bedOn(t, db, layout.Config{}, clock.NewVirtual(epoch))
	reg := b.register()
	beat := func() [3]int64 {
		before := [3]int64{db.transactions.Load(), db.reads.Load(), db.mutations.Load()}
		_, err := reg.Heartbeat(b.ctx, layout.Heartbeat{})
		require.NoError(t, err)
		return [3]int64{db.transactions.Load() - before[0], db.reads.Load() - before[1], db.mutations.Load() - before[2]}
	}
	idle := beat()
	require.EqualValues(t, 1, idle[0])
	for range 1000 {
		reg.Meter(metering.Metered{Items: 1})
		reg.Count(activity.Ended{Function: "go:f", Queue: "q", Succeeded: true})
	}
	busy := beat()
	require.Equal(t, [3]int64{idle[0], idle[1], idle[2] + 2}, busy, "a mutation each, and no read")
	require.Equal(t, idle, beat())
}
