package futures_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

var (
	fill    = futures.Define[int, []byte]("fill", futures.AsObject())
	invert  = futures.Define[[]byte, []byte]("invert", futures.AsObject())
	write   = futures.Define[int, struct{}]("write", futures.AsObject())
	deposit = futures.Define[int, string]("deposit")
	length  = futures.Define[[]byte, int]("length")
)

// objectTeam is a cluster whose workers keep results as objects.
type objectTeam struct {
	t      *testing.T
	ctx    context.Context
	client *futures.Client
	runs   atomic.Int64
	above  int64 // of the workers' object stores
	dir    string
	// modules runs WASM modules, nil if none are run.
	modules workers.ModuleRunner
}

func newObjectTeam(t *testing.T) *objectTeam {
	o := &objectTeam{t: t, ctx: t.Context(), above: -1}
	var err error
	o.client, err = futures.New(o.ctx, storetest.New(t), futures.Options{
		Config: layout.Config{Heartbeat: time.Second, DeadAfter: time.Minute},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.client.Close(context.Background())) })
	return o
}

// start starts a worker, and returns how to kill it.
func (o *objectTeam) start(memory int64) (kill func()) {
	w, err := workers.New(o.client, workers.Options{
		Slots: 2, Objects: workers.ObjectOptions{Memory: memory, Above: o.above, Dir: o.dir},
		Logger: slog.New(slog.DiscardHandler), Modules: o.modules,
	})
	require.NoError(o.t, err)
	require.NoError(o.t, w.Register(fill.Bind(func(_ context.Context, n int) ([]byte, error) {
		o.runs.Add(1)
		return bytes.Repeat([]byte{7}, n), nil
	})))
	require.NoError(o.t, w.Register(invert.Bind(func(_ context.Context, b []byte) ([]byte, error) {
		o.runs.Add(1)
		out := make([]byte, len(b))
		for i := range b {
			out[i] = ^b[i]
		}
		return out, nil
	})))
	require.NoError(o.t, w.Register(pattern.Bind(func(_ context.Context, n int) ([]byte, error) {
		return patternOf(n), nil
	})))
	require.NoError(o.t, w.Register(drift.Bind(func(_ context.Context, n int) ([]byte, error) {
		return bytes.Repeat([]byte{byte(o.runs.Add(1))}, n), nil
	})))
	require.NoError(o.t, w.Register(write.Bind(func(ctx context.Context, n int) (struct{}, error) {
		to, err := workers.ResultWriter(ctx)
		if err != nil {
			return struct{}{}, err
		}
		_, err = io.Copy(to, bytes.NewReader(patternOf(max(n, -n))))
		if n < 0 {
			err = errors.New("no luck")
		}
		return struct{}{}, err
	})))
	require.NoError(o.t, w.Register(deposit.Bind(func(ctx context.Context, n int) (string, error) {
		client, err := futures.FromContext(ctx)
		if err != nil {
			return "", err
		}
		f, err := client.Put(ctx, bytes.NewReader(patternOf(n)), futures.PutOptions{AsObject: true})
		if err != nil {
			return "", err
		}
		return f.ID().String(), nil
	})))
	require.NoError(o.t, w.Register(length.Bind(func(_ context.Context, b []byte) (int, error) { return len(b), nil })))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-done:
		cancel()
		require.NoError(o.t, err, "the worker ended before it was ready")
	}
	stop := func() {
		cancel()
		require.NoError(o.t, <-done)
	}
	stopped := false
	kill = func() {
		if !stopped {
			stopped = true
			stop()
		}
	}
	o.t.Cleanup(kill)
	return kill
}

func (o *objectTeam) requireSound() {
	report, err := audit.Check(o.ctx, o.client.Cluster(), audit.Options{})
	require.NoError(o.t, err)
	require.Empty(o.t, report.Problems)
}

func TestResultsAsObjects(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stop := o.start(64 << 20)
	const n = 3 << 20
	big, err := fill.Submit(o.ctx, o.client, n)
	require.NoError(t, err)
	other, err := futures.Then(o.ctx, o.client, big, invert)
	require.NoError(t, err)
	count, err := futures.Then(o.ctx, o.client, other, length)
	require.NoError(t, err)
	got, err := count.Await(o.ctx)
	require.NoError(t, err)
	require.Equal(t, n, got)
	value, err := other.Await(o.ctx)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{0xf8}, n), value)
	require.Equal(t, int64(2), o.runs.Load())
	row, err := o.client.Cluster().Get(o.ctx, big.ID())
	require.NoError(t, err)
	require.NotEmpty(t, row.Result.Object)
	require.Nil(t, row.Result.ValueRef)
	o.requireSound()

	// The worker stops, and what it held is gone. Another client awaits: both run
	// again on another worker, once.
	stop()
	o.start(64 << 20)
	again, err := futures.FromCluster(o.client.Cluster(), futures.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close(o.ctx)) }()
	value, err = invert.Of(again.Future(other.ID())).Await(o.ctx)
	require.NoError(t, err)
	require.Len(t, value, n)
	require.Equal(t, int64(4), o.runs.Load())
	o.requireSound()
}

func TestLostObjectsThatMayNotBeRebuilt(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stop := o.start(1 << 20)
	f, err := fill.Submit(o.ctx, o.client, 1000, futures.NoRebuild())
	require.NoError(t, err)
	<-f.Done()
	stop()
	o.start(1 << 20)
	again, err := futures.FromCluster(o.client.Cluster(), futures.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close(o.ctx)) }()
	_, err = again.Future(f.ID()).Await(o.ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindLost, failed.Kind)
	require.ErrorContains(t, err, "cannot be rebuilt because")
}

// TestManyUsersOfALostObject has futures take a result that was lost: the first
// that finds it lost has it made again, and all of them wait for that.
func TestManyUsersOfALostObject(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stop := o.start(1 << 20)
	lost, err := fill.Submit(o.ctx, o.client, 1000)
	require.NoError(t, err)
	<-lost.Done()
	stop()
	users, err := futures.ThenEach(o.ctx, o.client, slices.Repeat([]*futures.Typed[[]byte]{lost}, 50), length,
		futures.Retries(0))
	require.NoError(t, err)
	o.start(1 << 20)
	o.start(1 << 20)
	sizes, err := futures.AwaitAll(o.ctx, users)
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]int{1000}, 50), sizes)
	o.requireSound()
}

// TestResultsWithoutRoom have a function whose result does not fit the object
// store of its worker: the cluster stores it.
func TestResultsWithoutRoom(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(1 << 20)
	f, err := fill.Submit(o.ctx, o.client, 2<<20)
	require.NoError(t, err)
	value, err := f.Await(o.ctx)
	require.NoError(t, err)
	require.Len(t, value, 2<<20)
	require.Equal(t, int64(1), o.runs.Load())
}

// TestObjectsWithoutAStore runs on a worker that has no object store, and on one
// that has too little room: the first stores results with the cluster.
func TestObjectsWithoutAStore(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(0)
	f, err := fill.Submit(o.ctx, o.client, 100_000)
	require.NoError(t, err)
	value, err := f.Await(o.ctx)
	require.NoError(t, err)
	require.Len(t, value, 100_000)
	row, err := o.client.Cluster().Get(o.ctx, f.ID())
	require.NoError(t, err)
	require.Empty(t, row.Result.Object)
}

func TestObjectsLeaveNothingBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	o := newObjectTeam(t)
	stop := o.start(1 << 20)
	f, err := fill.Submit(o.ctx, o.client, 5000)
	require.NoError(t, err)
	_, err = f.Await(o.ctx)
	require.NoError(t, err)
	members, err := o.client.Cluster().Workers(o.ctx)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(members[0].Objects, "unix:"+dir), members[0].Objects)
	stop()
	left, err := filepath.Glob(filepath.Join(dir, "futura-objects-*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = results.Of(o.client.Cluster()).Value(o.ctx, f.ID(), &layout.Result{Object: "x"})
	require.ErrorIs(t, err, results.ErrLost)
}
