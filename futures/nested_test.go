package futures_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// branch is a tree of futures: each but the leaves awaits Fan below it.
type branch struct{ Fan, Depth int }

// leaves is how many it has.
func (b branch) leaves() int {
	n := 1
	for range b.Depth {
		n *= b.Fan
	}
	return n
}

func (b branch) below() []branch {
	all := make([]branch, b.Fan)
	for i := range all {
		all[i] = branch{b.Fan, b.Depth - 1}
	}
	return all
}

// worker is one that a test runs.
type worker struct {
	*workers.Worker
	stop func()
}

// work runs a worker until the end of the test, or until stop.
func work(t *testing.T, open func() (*workers.Worker, error), functions ...func(*workers.Worker) error) worker {
	w, err := open()
	require.NoError(t, err)
	for _, register := range functions {
		require.NoError(t, register(w))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	<-w.Ready()
	return worker{w, stop}
}

// countLeaves is a function that calls itself, or the next one down.
func countLeaves(names ...futures.Definition[branch, int]) []func(*workers.Worker) error {
	var all []func(*workers.Worker) error
	for i, name := range names {
		next := names[min(i+1, len(names)-1)]
		run := func(ctx context.Context, b branch) (int, error) {
			if b.Depth == 0 {
				return 1, nil
			}
			c, err := futures.FromContext(ctx)
			if err != nil {
				return 0, err
			}
			below, err := next.Map(ctx, c, b.below())
			if err != nil {
				return 0, err
			}
			counts, err := futures.AwaitAll(ctx, below)
			sum := 0
			for _, n := range counts {
				sum += n
			}
			return sum, err
		}
		all = append(all, func(w *workers.Worker) error { return w.Register(name.Bind(run)) })
	}
	return all
}

var (
	tree   = futures.Define[branch, int]("tree")
	outer  = futures.Define[branch, int]("outer")
	middle = futures.Define[branch, int]("middle")
	leaf   = futures.Define[branch, int]("leaf")
)

// TestNestedFanOutEnds has parents hold all slots while they await children.
func TestNestedFanOutEnds(t *testing.T) {
	t.Parallel()
	type shape struct{ slots, parents, fan, depth int }
	for _, of := range []shape{{2, 2, 20, 1}, {1, 1, 20, 1}, {2, 2, 7, 3}, {1, 2, 4, 3}} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, storetest.New(t))
			w := work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: of.slots}) },
				countLeaves(tree)...)
			want := branch{of.fan, of.depth}
			parents, err := tree.Map(t.Context(), c, slices.Repeat([]branch{want}, of.parents))
			require.NoError(t, err)
			counts, err := futures.AwaitAll(t.Context(), parents)
			require.NoError(t, err)
			for _, n := range counts {
				require.Equal(t, want.leaves(), n)
			}
			w.stop()
			require.Zero(t, w.Stats().Awaiting)
			require.Equal(t, of.slots, w.Stats().Free.Slots)
		})
	}
}

// TestAnyNumberOfParentsEnds where far fewer may wait at a time, as long as no
// function awaits one of its own name.
func TestAnyNumberOfParentsEnds(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 2, MaxAwaiting: 1}) },
		countLeaves(outer, middle, leaf)...)
	parents, err := outer.Map(t.Context(), c, slices.Repeat([]branch{{1, 2}}, 150))
	require.NoError(t, err)
	more, err := outer.Map(t.Context(), c, []branch{{2, 2}, {3, 2}, {4, 2}, {2, 2}, {3, 2}, {2, 1}})
	require.NoError(t, err)
	counts, err := futures.AwaitAll(t.Context(), append(parents, more...))
	require.NoError(t, err)
	require.Equal(t, []int{4, 9, 16, 4, 9, 2}, counts[150:])
}

// TestChildrenInGoroutines awaits each child in a goroutine of its own.
func TestChildrenInGoroutines(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	run := func(ctx context.Context, b branch) (int, error) {
		client, err := futures.FromContext(ctx)
		if err != nil || b.Depth == 0 {
			return 1, err
		}
		counts, errs := make([]int, b.Fan), make([]error, b.Fan)
		var all sync.WaitGroup
		for i, below := range b.below() {
			all.Go(func() { counts[i], errs[i] = tree.Call(ctx, client, below) })
		}
		all.Wait()
		sum := 0
		for _, n := range counts {
			sum += n
		}
		return sum, errors.Join(errs...)
	}
	w := work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 1}) },
		func(w *workers.Worker) error { return w.Register(tree.Bind(run)) })
	parents, err := tree.Map(t.Context(), c, []branch{{6, 2}, {6, 2}})
	require.NoError(t, err)
	counts, err := futures.AwaitAll(t.Context(), parents)
	require.NoError(t, err)
	require.Equal(t, []int{36, 36}, counts)
	w.stop()
	require.Equal(t, 1, w.Stats().Free.Slots)
}

// TestParentsEndInTheMiddle by a cancel, by a timeout, and by the stop of their
// worker, while their children wait for what never comes or run elsewhere.
func TestParentsEndInTheMiddle(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	c := newClient(t, db)
	began := make(chan futures.ID, 100)
	parent := func(w *workers.Worker) error {
		return w.Register(outer.Bind(func(ctx context.Context, b branch) (int, error) {
			client, err := futures.FromContext(ctx)
			if err != nil {
				return 0, err
			}
			info, _ := workers.InfoFrom(ctx)
			queue := futures.Queue("children")
			var below []*futures.Typed[int]
			for i := range b.Fan {
				f, err := leaf.Submit(ctx, client, branch{}, queue, futures.Key(fmt.Sprint(info.ID, i)))
				if err != nil {
					return 0, err
				}
				below = append(below, f)
			}
			began <- info.ID
			counts, err := futures.AwaitAll(ctx, below)
			return len(counts), err
		}))
	}
	first := func() (*workers.Worker, error) {
		return workers.New(c, workers.Options{Slots: 1, DrainTimeout: time.Millisecond})
	}
	w := work(t, first, parent)
	cancelled, err := outer.Submit(t.Context(), c, branch{Fan: 5})
	require.NoError(t, err)
	late, err := outer.Submit(t.Context(), c, branch{Fan: 5}, futures.Timeout(20*time.Millisecond), futures.Retries(0))
	require.NoError(t, err)
	stopped, err := outer.Submit(t.Context(), c, branch{Fan: 5})
	require.NoError(t, err)
	for wait := map[futures.ID]bool{cancelled.ID(): true, stopped.ID(): true}; len(wait) > 0; {
		delete(wait, <-began)
	}
	_, err = cancelled.Cancel(t.Context(), "enough")
	require.NoError(t, err)
	_, err = cancelled.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrCancelled)
	_, err = late.Await(t.Context())
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindTimeout, failed.Kind)
	w.stop()
	require.Equal(t, 1, w.Stats().Free.Slots)

	work(t, first, parent)
	work(t, func() (*workers.Worker, error) {
		return workers.New(c, workers.Options{Slots: 1, Queues: []string{"children"}})
	}, countLeaves(leaf)...)
	n, err := stopped.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5, n)
}

// TestTheClientOfAFunction is one for a worker, and ends with it unless the worker
// was made from it.
func TestTheClientOfAFunction(t *testing.T) {
	t.Parallel()
	_, err := futures.FromContext(t.Context())
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
	c := newClient(t, storetest.New(t))
	type found struct {
		ctx    context.Context
		client *futures.Client
		err    error
	}
	clients := make(chan found, 100)
	look := func(w *workers.Worker) error {
		return w.Register(tree.Bind(func(ctx context.Context, _ branch) (int, error) {
			client, err := futures.FromContext(context.WithoutCancel(ctx))
			if err == nil {
				_, err = client.Submit(ctx, futures.Task{Function: "go:nobody"})
			}
			clients <- found{ctx, client, err}
			return 0, nil
		}))
	}
	several := func() (all []found) {
		fs, err := tree.Map(t.Context(), c, make([]branch, 20))
		require.NoError(t, err)
		_, err = futures.AwaitAll(t.Context(), fs)
		require.NoError(t, err)
		for range fs {
			f := <-clients
			require.NoError(t, f.err)
			all = append(all, f)
		}
		return all
	}
	given, err := futures.FromCluster(c.Cluster(), futures.Options{})
	require.NoError(t, err)
	w := work(t, func() (*workers.Worker, error) { return workers.New(given, workers.Options{Slots: 4}) }, look)
	for _, f := range several() {
		require.Same(t, given, f.client)
	}
	require.NoError(t, given.Close(t.Context()))
	made := several()
	for _, f := range made {
		require.Same(t, made[0].client, f.client)
		require.NotSame(t, given, f.client)
	}
	w.stop()
	_, err = futures.FromContext(made[0].ctx)
	require.ErrorIs(t, err, workers.ErrStopping)
	_, err = made[0].client.Submit(t.Context(), futures.Task{Function: "go:nobody"})
	require.ErrorIs(t, err, futures.ErrClosed)

	w = work(t, func() (*workers.Worker, error) { return workers.FromCluster(c.Cluster(), workers.Options{}) }, look)
	other := several()
	for _, f := range other {
		require.Same(t, other[0].client, f.client)
		require.NotSame(t, made[0].client, f.client)
	}
	w.stop()
}
