package workers

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

func TestWorkersRunEverything(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	number := 5000
	if long() {
		number = 100_000
	}
	subs := make([]fdbmodel.Submission, number)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:echo"}, Args: fmt.Appendf(nil, "args %d", i)}
	}
	ids := b.submit(subs[:number/2]...)
	var started []*running
	for range 4 {
		started = append(started, b.start(Options{}, map[string]Function{"echo": echo}))
	}
	ids = append(ids, b.submit(subs[number/2:]...)...)
	b.await("all results", func() bool { return b.counts()[layout.Realized] == int64(number) })
	for i, id := range ids {
		require.Equal(t, subs[i].Args, b.row(id).Result.Value)
	}
	var ran int64
	for _, r := range started {
		r.end()
		ran += r.Stats().Ran
		require.Zero(t, r.Stats().Running+r.Stats().Waiting)
	}
	require.EqualValues(t, number, ran)
	require.Equal(t, map[layout.State]int64{layout.Realized: int64(number)}, nonZero(b.counts()))
	members, err := b.cluster.Workers(b.ctx)
	require.NoError(t, err)
	require.Empty(t, members)
}

func nonZero(counts map[layout.State]int64) map[layout.State]int64 {
	for s, n := range counts {
		if n == 0 {
			delete(counts, s)
		}
	}
	return counts
}

func TestTenFuturesAndTwoHundredWorkers(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{Heartbeat: time.Second, DeadAfter: time.Minute}, nil)
	var mu sync.Mutex
	runs := map[layout.ID]int{}
	record := func(ctx context.Context, _ []byte) ([]byte, error) {
		info, ok := InfoFrom(ctx)
		if !ok {
			return nil, fmt.Errorf("a function's context has no info")
		}
		mu.Lock()
		defer mu.Unlock()
		runs[info.ID]++
		return []byte(info.Worker), nil
	}
	var started []*running
	for range 200 {
		started = append(started, b.start(Options{Slots: 1}, map[string]Function{"record": record}))
	}
	ids := b.many(10, "go:record")
	b.awaitOver(ids...)
	var ran int64
	for _, r := range started {
		r.stop()
	}
	for _, r := range started {
		r.end()
		ran += r.Stats().Ran
	}
	require.EqualValues(t, 10, ran)
	for _, id := range ids {
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.Equal(t, string(row.Claim.Worker), string(row.Result.Value))
		require.Equal(t, 1, runs[id])
	}
}

func TestSubmitWakesAnIdleWorker(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	b.start(Options{Poll: 1000 * time.Hour}, map[string]Function{"echo": echo})
	for range 20 {
		id := b.one("go:echo")
		// The clock is stopped: no poll finds this.
		give := time.NewTimer(awaitBound)
		for !b.rowOver(id) {
			select {
			case <-give.C:
				require.FailNow(t, "the worker was not woken")
			default:
			}
		}
		give.Stop()
	}
}

func (b *bed) rowOver(id layout.ID) bool {
	row := b.row(id)
	return row.State().Terminal()
}

func TestSubmitOfAnotherProcessWakesAnIdleWorker(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	b.start(Options{Poll: 1000 * time.Hour}, map[string]Function{"echo": echo})
	other, err := fdbmodel.Open(b.ctx, b.db, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	for range 5 {
		answers, err := other.Submit(b.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:echo"}}})
		require.NoError(t, err)
		b.awaitOver(answers[0].ID)
	}
	require.Less(t, b.clock.Now().Sub(epoch), 100*time.Hour)
}

func TestResourcesAreNeverExceeded(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{Heartbeat: time.Second, DeadAfter: time.Minute}, nil)
	capacity := layout.Resources{Slots: 6, CPU: 4000, RAM: 1 << 20, GPU: 2000}
	random := rand.New(rand.NewPCG(1, 2))
	var subs []fdbmodel.Submission
	needs := map[string]layout.Requirements{}
	for i := range 600 {
		q := layout.Requirements{CPU: random.Int64N(3000), RAM: random.Int64N(1 << 19), GPU: random.Int64N(1500)}
		if i%3 == 0 {
			q = layout.Requirements{}
		}
		name := fmt.Sprint(i)
		needs[name] = q
		subs = append(subs, fdbmodel.Submission{
			Spec: layout.Spec{Function: "go:use", Requirements: q}, Args: []byte(name),
		})
	}
	var exceeded atomic.Int64
	for range 2 {
		var mu sync.Mutex
		free := capacity
		use := func(_ context.Context, args []byte) ([]byte, error) {
			mu.Lock()
			q := needs[string(args)]
			if !free.Fit(q) {
				exceeded.Add(1)
			}
			free = free.Take(q)
			mu.Unlock()
			work := 0
			for i := range random.Uint64()%1000 + 1 {
				work += int(i)
			}
			mu.Lock()
			free = free.Give(q)
			mu.Unlock()
			return fmt.Append(nil, work), nil
		}
		random = rand.New(&lockedSource{source: rand.NewPCG(3, 4)})
		b.start(Options{Slots: capacity.Slots, CPU: capacity.CPU, RAM: capacity.RAM, GPU: capacity.GPU},
			map[string]Function{"use": use})
	}
	b.submit(subs...)
	b.await("all results", func() bool { return b.counts()[layout.Realized] == int64(len(subs)) })
	require.Zero(t, exceeded.Load())
}

// lockedSource shares a source of randomness among goroutines.
type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

func TestWhatWaitsBehindALongFunctionGoesToOthers(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	slow := newBlocker(false)
	functions := map[string]Function{"echo": echo, "slow": slow.run}
	first := b.start(Options{Slots: 1, Poll: 100 * time.Hour}, functions)
	// Short runs let the worker claim ahead. The clock may move during some.
	for ahead := 0; ahead == 0; {
		b.awaitOver(b.many(50, "go:echo")...)
		first.slots.mu.Lock()
		ahead = first.slots.ahead()
		first.slots.mu.Unlock()
	}
	ids := b.submit(b.describe("go:slow"), b.describe("go:echo"), b.describe("go:echo"), b.describe("go:echo"))
	b.begins(slow)
	b.await("a future that waits here, or was given back", func() bool {
		return first.Stats().Waiting > 0 || b.counts()[layout.Ready] > 0 || b.rowOver(ids[3])
	})
	_, _, err := b.cluster.Cancel(b.ctx, ids[1], "not wanted")
	require.NoError(t, err)
	b.start(Options{Slots: 1}, functions)
	b.awaitOver(ids[1:]...)
	require.Equal(t, 1, first.Stats().Running)
	for _, id := range ids[2:] {
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.Zero(t, row.Attempts.Failed+row.Attempts.Crashes)
	}
	close(slow.end)
	b.awaitOver(ids[0])
}

func TestLargeArgumentsAndResults(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	huge := make([]byte, layout.MaxPut+1)
	b.start(Options{}, map[string]Function{
		"echo": echo,
		"huge": func(context.Context, []byte) ([]byte, error) { return huge, nil },
	})
	for _, size := range []int{0, 1, fdbmodel.MaxResultInline, fdbmodel.MaxResultInline + 1, 20_000, 300_000} {
		args := bytes.Repeat([]byte{byte(size)}, size)
		id := b.one("go:echo", func(s *fdbmodel.Submission) { s.Args = args })
		b.awaitOver(id)
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.EqualValues(t, size, row.Result.Size)
		value, err := results.Of(b.cluster).Value(b.ctx, id, row.Result)
		require.NoError(t, err)
		require.True(t, bytes.Equal(args, value))
	}
	id := b.one("go:huge", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 5 })
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.Failed, row.State())
	require.Equal(t, layout.KindTooLarge, row.Exception.Kind)
	require.Equal(t, 1, row.Attempts.Failed)
}

func TestStepReplays(t *testing.T) {
	t.Parallel()
	play := func() (trace []string) {
		db := embedded.OpenMemory(embedded.Options{Inline: true})
		defer func() { require.NoError(t, db.Close()) }()
		clk := clock.NewVirtual(epoch)
		var seed [32]byte
		ctx := context.Background()
		c, err := fdbmodel.Open(ctx, db, "test", fdbmodel.Options{Clock: clk, Random: rand.NewChaCha8(seed)})
		require.NoError(t, err)
		var workers []*Worker
		for i := range 3 {
			w, err := FromCluster(c, Options{Seam: &seam.Worker{Manual: true}, Slots: 2, CPU: 1000})
			require.NoError(t, err)
			require.NoError(t, w.Register("flaky", func(ctx context.Context, args []byte) ([]byte, error) {
				info, _ := InfoFrom(ctx)
				trace = append(trace, fmt.Sprint(i, info.ID, info.Attempt, clk.Now()))
				if info.Attempt < 3 {
					return nil, fmt.Errorf("attempt %d fails", info.Attempt)
				}
				return args, nil
			}))
			workers = append(workers, w)
		}
		subs := make([]fdbmodel.Submission, 60)
		for i := range subs {
			subs[i].Spec = layout.Spec{Function: "go:flaky", MaxRetries: 3}
		}
		_, err = c.Submit(ctx, subs)
		require.NoError(t, err)
		for range 20_000 {
			first := clk.Now().Add(time.Hour)
			for _, w := range workers {
				next, err := w.step(ctx, clk.Now())
				require.NoError(t, err)
				if next.Before(first) {
					first = next
				}
			}
			clk.Advance(max(time.Millisecond, first.Sub(clk.Now())))
			if len(trace) == 180 {
				break
			}
		}
		for _, w := range workers {
			require.NoError(t, w.leave(ctx))
		}
		counts, err := c.Counts(ctx)
		require.NoError(t, err)
		for k, n := range counts {
			require.True(t, k.State == layout.Realized && n == 60 || n == 0, "%v %d", k, n)
		}
		return trace
	}
	first := play()
	require.Len(t, first, 180)
	require.Equal(t, first, play())
}

func TestMistakesOfTheCaller(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	_, err := FromCluster(b.cluster, Options{Slots: maxSlots + 1})
	require.ErrorContains(t, err, "at most 100000")
	_, err = FromCluster(b.cluster, Options{Slots: -1})
	require.ErrorContains(t, err, "slots")
	w, err := FromCluster(b.cluster, Options{})
	require.NoError(t, err)
	require.ErrorIs(t, w.Register("no/slash", echo), layout.ErrBadName)
	require.NoError(t, w.Register("echo", echo))
	require.ErrorContains(t, w.Register("echo", echo), "already")
	require.ErrorContains(t, w.Register("none", nil), "is nil")
	require.ErrorContains(t, w.RegisterBundle("none", nil), "is nil")
	_, err = w.step(b.ctx, epoch)
	require.ErrorContains(t, err, "manual")
	ctx, stop := context.WithCancel(b.ctx)
	stop()
	require.NoError(t, w.Run(ctx), "it was stopped before it had begun")
	require.ErrorContains(t, w.Run(b.ctx), "only once")
	require.ErrorContains(t, w.Register("late", echo), "too late")
}

func TestStoreThatClosesEndsRun(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	w, err := FromCluster(b.cluster, Options{})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- w.Run(b.ctx) }()
	<-w.Ready()
	require.NoError(t, b.db.Close())
	require.True(t, isFatal(<-done))
}

// untold is a store that loses every hint to an idle worker, and counts the
// transactions in which workers go idle.
type untold struct {
	kv.Database
	idle atomic.Int64
}

func (u *untold) Begin(o kv.Options) kv.Tx {
	tx := u.Database.Begin(o)
	switch o.Tag {
	case "futura-idle":
		u.idle.Add(1)
	case "futura-wake":
		tx.Cancel()
	}
	return tx
}

func TestPollFindsWhatNobodyToldOf(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	db := &untold{Database: b.db}
	var err error
	b.cluster, err = fdbmodel.Open(b.ctx, db, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	b.start(Options{}, map[string]Function{"echo": echo})
	b.start(Options{}, map[string]Function{"echo": echo})
	other, err := fdbmodel.Open(b.ctx, db, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	b.await("two workers in the ring", func() bool { return db.idle.Load() >= 2 })
	for range 5 {
		answers, err := other.Submit(b.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:echo"}}})
		require.NoError(t, err)
		b.awaitOver(answers[0].ID)
	}
	// A worker that finds nothing stays in the ring.
	before, start := db.idle.Load(), b.clock.Now()
	b.await("a minute", func() bool { return b.clock.Now().Sub(start) > time.Minute })
	require.LessOrEqual(t, db.idle.Load()-before, int64(4))
}

// lateSubmit is a store that calls submit once, when a claim is over.
type lateSubmit struct {
	kv.Database
	once   sync.Once
	submit func()
}

type lateSubmitTx struct {
	kv.Tx
	db *lateSubmit
}

func (d *lateSubmit) Traits() kv.Traits { return kv.TraitsOf(d.Database) }

func (d *lateSubmit) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == "futura-claim" {
		return lateSubmitTx{tx, d}
	}
	return tx
}

func (t lateSubmitTx) Commit(ctx context.Context) (kv.Committed, error) {
	defer t.db.once.Do(t.db.submit)
	return t.Tx.Commit(ctx)
}

// TestAFutureThatComesAfterTheLastLookIsNotMissed has a future come between a
// claim that finds nothing and the request to be woken. The clock stands still,
// so no later look can find it.
func TestAFutureThatComesAfterTheLastLookIsNotMissed(t *testing.T) {
	t.Parallel()
	db := &lateSubmit{Database: storetest.New(t)}
	if !kv.TraitsOf(db).Exclusive {
		t.Skip("its workers go idle in the store at once")
	}
	b := bedOn(t, db, layout.Config{}, clock.NewVirtual(epoch))
	ran := make(chan struct{})
	db.submit = func() { b.one("go:work") }
	b.start(Options{}, map[string]Function{"work": func(context.Context, []byte) ([]byte, error) {
		close(ran)
		return nil, nil
	}})
	select {
	case <-ran:
	case <-time.After(awaitBound):
		require.FailNow(t, "it did not run")
	}
}
