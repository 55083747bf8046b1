package grouping_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/workers"
)

// shop is a cluster with workers that write down the calls that they make.
type shop struct {
	*testing.T
	client *futures.Client
	first  *workers.Worker

	mu    sync.Mutex
	calls [][]int         // of each call, its tasks
	on    map[int]string  // the target of a task, as its call said
	runs  map[int]int     // calls of each task
	fails map[int][]error // what the next calls of a task answer
	gate  chan struct{}   // calls wait for it, if not nil
	began chan struct{}   // told of each call
}

type order struct {
	Target string
	N      int
}

func newShop(t *testing.T, h grouping.Handler[order, int], n int) *shop {
	s := &shop{on: map[int]string{}, runs: map[int]int{}, fails: map[int][]error{}, began: make(chan struct{}, 1000)}
	s.start(t, h, n, s.call)
	return s
}

// newShopOf has one worker, with a call of the test.
func newShopOf(t *testing.T, h grouping.Handler[order, int], call grouping.Call[order, int]) *shop {
	s := &shop{}
	s.start(t, h, 1, call)
	return s
}

func (s *shop) start(t *testing.T, h grouping.Handler[order, int], n int, call grouping.Call[order, int]) {
	s.T = t
	ctx, cancel := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	s.client = s.open(ctx, db)
	require.NoError(t, h.Setup(ctx, s.client))
	var group sync.WaitGroup
	for range n {
		w, err := workers.New(s.client, workers.Options{Slots: 8})
		require.NoError(t, err)
		require.NoError(t, w.RegisterBundle(h.Bind(call)))
		if s.first == nil {
			s.first = w
		}
		group.Go(func() { _ = w.Run(ctx) })
		<-w.Ready()
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
		report, err := audit.Check(context.Background(), s.client.Cluster(), audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.NoError(t, errors.Join(s.client.Close(context.Background()), db.Close()))
	})
}

// metric returns a counter of the first worker, or how many a histogram has counted.
func (s *shop) metric(name string) float64 {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(s, registry.Register(workers.NewCollector(s.first)))
	families, err := registry.Gather()
	require.NoError(s, err)
	for _, f := range families {
		if m := f.GetMetric()[0]; f.GetName() == name {
			return m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	s.Fatalf("no metric %s", name)
	return 0
}

func (s *shop) open(ctx context.Context, db kv.Database) *futures.Client {
	c, err := futures.New(ctx, db, futures.Options{})
	require.NoError(s, err)
	return c
}

func (s *shop) call(ctx context.Context, target string, tasks []grouping.Task[order]) ([]grouping.Outcome[int], error) {
	s.began <- struct{}{}
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes, made := make([]grouping.Outcome[int], len(tasks)), []int(nil)
	for i, task := range tasks {
		n := task.In.N
		made = append(made, n)
		s.on[n] = target
		s.runs[n]++
		if outcomes[i].Out = 2 * n; len(s.fails[n]) > 0 {
			outcomes[i].Err, s.fails[n] = s.fails[n][0], s.fails[n][1:]
		}
		if task.In.Target != target {
			outcomes[i].Err = fmt.Errorf("task of %s in a call of %s", task.In.Target, target)
		}
	}
	s.calls = append(s.calls, made)
	return outcomes, nil
}

func handler(s grouping.Settings, o ...futures.Option) grouping.Handler[order, int] {
	return grouping.Define[order, int]("order", func(o order) string { return o.Target }, s, o...)
}

// TestTasksOfOneTargetShareCalls submits from many goroutines: each task runs once, with
// others of its target only, and calls are as few as they can be.
func TestTasksOfOneTargetShareCalls(t *testing.T) {
	t.Parallel()
	for _, targets := range []int{1, 7, 100} {
		t.Run(fmt.Sprint(targets), func(t *testing.T) {
			t.Parallel()
			const most, tasks, submitters = 20, 2000, 8
			h := handler(grouping.Settings{Most: most})
			s := newShop(t, h, 2)
			var group sync.WaitGroup
			for g := range submitters {
				group.Go(func() {
					var in []order
					for n := g; n < tasks; n += submitters {
						in = append(in, order{fmt.Sprint("t", n%targets), n})
					}
					got, err := h.SubmitAll(t.Context(), s.client, in)
					if err != nil {
						t.Error(err)
						return
					}
					for i, f := range got {
						if out, err := f.Await(t.Context()); err != nil || out != 2*in[i].N {
							t.Errorf("task %d: %d, %v", in[i].N, out, err)
						}
					}
				})
			}
			group.Wait()
			require.Len(t, s.runs, tasks)
			for n, runs := range s.runs {
				require.Equal(t, 1, runs)
				require.Equal(t, fmt.Sprint("t", n%targets), s.on[n])
			}
			for _, made := range s.calls {
				require.LessOrEqual(t, len(made), most)
			}
			t.Logf("%d targets: %d calls for %d tasks, %d at least", targets, len(s.calls), tasks, tasks/most)
		})
	}
}

// TestTasksGatherWhileACallRuns has the tasks that come during a call be in the next.
func TestTasksGatherWhileACallRuns(t *testing.T) {
	t.Parallel()
	h := handler(grouping.Settings{Most: 10})
	s := newShop(t, h, 1)
	s.gate = make(chan struct{})
	first, err := h.Submit(t.Context(), s.client, order{"t", 0})
	require.NoError(t, err)
	<-s.began
	status, err := grouping.StatusOf(t.Context(), s.client, first.ID())
	require.NoError(t, err)
	require.Equal(t, grouping.InProgress, status)
	var others []*futures.Typed[int]
	for n := range 9 {
		f, err := h.Submit(t.Context(), s.client, order{"t", 1 + n})
		require.NoError(t, err)
		others = append(others, f)
	}
	status, err = grouping.StatusOf(t.Context(), s.client, others[0].ID())
	require.NoError(t, err)
	require.Equal(t, grouping.Created, status)
	close(s.gate)
	for _, f := range others {
		_, err := f.Await(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, [][]int{{0}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}, s.calls)
	require.EqualValues(t, 2, s.metric("futura_worker_bundles_total"))
	require.EqualValues(t, 10, s.metric("futura_worker_members_total"))
	require.EqualValues(t, 10, s.metric("futura_worker_member_wait_seconds"))
	require.EqualValues(t, 2, s.metric("futura_worker_bundle_members"))
	require.EqualValues(t, 8, s.metric("futura_worker_calls_saved_total"))
}

// TestCallsLinger has a call with more than one task wait for others, and one with a
// single task not.
func TestCallsLinger(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		h := handler(grouping.Settings{Most: 4, Linger: time.Minute})
		s := newShop(t, h, 1)
		submit := func(n ...int) (all []*futures.Typed[int]) {
			for _, n := range n {
				f, err := h.Submit(t.Context(), s.client, order{"t", n})
				require.NoError(t, err)
				all = append(all, f)
			}
			return all
		}
		start := time.Now()
		await := func(all ...*futures.Typed[int]) time.Duration {
			for _, f := range all {
				_, err := f.Await(t.Context())
				require.NoError(t, err)
			}
			return time.Since(start)
		}
		require.Less(t, await(submit(0)...), 30*time.Second, "one alone waits for none")
		s.gate = make(chan struct{})
		all := submit(1)
		<-s.began
		<-s.began
		all = append(all, submit(2, 3)...)
		close(s.gate) // those two linger in their call
		await(all[0])
		synctest.Wait()
		all = append(all, submit(4)...)
		require.GreaterOrEqual(t, await(all...), time.Minute)
		require.Equal(t, [][]int{{0}, {1}, {2, 3, 4}}, s.calls)
	})
}

// TestCallsLingerNoLongerThanTheyNeed has a call begin once it is full, well before the end
// of its linger.
func TestCallsLingerNoLongerThanTheyNeed(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		h := handler(grouping.Settings{Most: 4, Linger: time.Minute})
		s := newShop(t, h, 1)
		start := time.Now()
		first, err := h.SubmitAll(t.Context(), s.client, []order{{"t", 1}, {"t", 2}})
		require.NoError(t, err)
		synctest.Wait()
		last, err := h.SubmitAll(t.Context(), s.client, []order{{"t", 3}, {"t", 4}})
		require.NoError(t, err)
		for _, f := range append(first, last...) {
			_, err := f.Await(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, [][]int{{1, 2, 3, 4}}, s.calls)
		require.Less(t, time.Since(start), 10*time.Second)
	})
}

// TestCallsLingerNoLongerThanTheyMay has tasks that have waited for long make up a call: it lingers no longer for that,
// and not at all once it has as many bytes as it may.
func TestCallsLingerNoLongerThanTheyMay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bytes int64
		most  time.Duration
	}{"a part of a call": {0, time.Minute}, "as many bytes as it may": {30, time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				h := handler(grouping.Settings{Most: 100, Bytes: c.bytes, Linger: time.Minute})
				s := newShop(t, h, 1)
				s.gate = make(chan struct{})
				all, err := h.SubmitAll(t.Context(), s.client, []order{{"t", 1}})
				require.NoError(t, err)
				<-s.began
				more, err := h.SubmitAll(t.Context(), s.client, []order{{"t", 2}, {"t", 3}, {"t", 4}})
				require.NoError(t, err)
				<-time.After(10 * time.Minute)
				start := time.Now()
				close(s.gate)
				for _, f := range append(all, more[:2]...) {
					_, err := f.Await(t.Context())
					require.NoError(t, err)
				}
				require.LessOrEqual(t, time.Since(start), c.most+time.Second)
			})
		})
	}
}

// TestATaskIsNotTriedInPlaceLessThanNever has settings that ask for that.
func TestATaskIsNotTriedInPlaceLessThanNever(t *testing.T) {
	t.Parallel()
	h := handler(grouping.Settings{InPlace: -1})
	tries := 0
	_, fn := h.Bind(func(_ context.Context, _ string, tasks []grouping.Task[order]) ([]grouping.Outcome[int], error) {
		if tries++; tries > 3 {
			return make([]grouping.Outcome[int], len(tasks)), nil
		}
		return nil, errors.New("broken")
	})
	ends, err := fn(t.Context(), "t", []workers.Member{{Args: []byte(`{"Target":"t"}`), Codec: futures.CodecJSON}})
	require.NoError(t, err)
	require.ErrorContains(t, ends[0].Err, "broken")
	require.Equal(t, 1, tries)
}

// TestFailuresOfTasks retries tasks in place and later, and tells each of its own end.
func TestFailuresOfTasks(t *testing.T) {
	t.Parallel()
	h := handler(grouping.Settings{InPlace: 1}, futures.Retries(3), futures.Backoff(time.Millisecond, time.Millisecond))
	s := newShop(t, h, 1)
	broken := errors.New("broken")
	s.fails = map[int][]error{
		1: {broken},         // in place
		2: {broken, broken}, // then later
		3: {workers.Permanent(broken)},
		4: slices.Repeat([]error{broken}, 100),
	}
	var tasks []order
	for n := range 6 {
		tasks = append(tasks, order{"t", n})
	}
	got, err := h.SubmitAll(t.Context(), s.client, tasks)
	require.NoError(t, err)
	for n, f := range got {
		out, err := f.Await(t.Context())
		if n == 3 || n == 4 {
			require.ErrorContains(t, err, "broken")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 2*n, out)
	}
	require.Equal(t, map[int]int{0: 1, 1: 2, 2: 3, 3: 1, 4: 8, 5: 1}, s.runs, "4: two calls in each of four attempts")
}

// TestATaskThatAsksForLaterIsNotTriedInPlace has tasks say when they are to be tried again, after more and after less
// than the wait between two tries within a call.
func TestATaskThatAsksForLaterIsNotTriedInPlace(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		h := handler(grouping.Settings{InPlace: 1, InPlaceWait: time.Second}, futures.Retries(1))
		s := newShop(t, h, 1)
		for task, after := range []time.Duration{time.Hour, time.Second} {
			s.fails[task] = []error{fmt.Errorf("refused: %w", workers.RetryAfter(after, errors.New("too many requests")))}
			start := time.Now()
			f, err := h.Submit(t.Context(), s.client, order{"t", task})
			require.NoError(t, err)
			_, err = f.Await(t.Context())
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(start), after)
			v, err := s.client.Get(t.Context(), f.ID())
			require.NoError(t, err)
			require.Equal(t, 2-task, v.Attempt)
		}
	})
}

// TestCallsThatFail has calls that fail or panic as a whole.
func TestCallsThatFail(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]grouping.Call[order, int]{
		"error": func(context.Context, string, []grouping.Task[order]) ([]grouping.Outcome[int], error) {
			return nil, errors.New("down")
		},
		"panic": func(context.Context, string, []grouping.Task[order]) ([]grouping.Outcome[int], error) { panic("down") },
		"too few": func(context.Context, string, []grouping.Task[order]) ([]grouping.Outcome[int], error) {
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handler(grouping.Settings{})
			ctx, cancel := context.WithCancel(t.Context())
			db := embedded.OpenMemory(embedded.Options{})
			client, err := futures.New(ctx, db, futures.Options{})
			require.NoError(t, err)
			w, err := workers.New(client, workers.Options{})
			require.NoError(t, err)
			require.NoError(t, w.RegisterBundle(h.Bind(call)))
			require.NoError(t, h.Setup(ctx, client))
			got, err := h.SubmitAll(ctx, client, []order{{"t", 1}, {"t", 2}})
			require.NoError(t, err)
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			for _, f := range got {
				_, err := f.Await(ctx)
				var failed *futures.FailedError
				require.ErrorAs(t, err, &failed)
			}
			cancel()
			require.NoError(t, errors.Join(<-ended, client.Close(context.Background()), db.Close()))
		})
	}
}

// TestManyTasks is the long form: 100,000 tasks of 1, 100 and 10,000 targets.
func TestManyTasks(t *testing.T) {
	if !long() {
		t.Skip("SKIP: FUTURA_LONG is not set")
	}
	for _, targets := range []int{1, 100, 10_000} {
		t.Run(fmt.Sprint(targets), func(t *testing.T) {
			const tasks, submitters = 100_000, 64
			h := handler(grouping.Settings{})
			s := newShop(t, h, 4)
			s.began = make(chan struct{}, tasks)
			start := time.Now()
			var group sync.WaitGroup
			for g := range submitters {
				group.Go(func() {
					var in []order
					for n := g; n < tasks; n += submitters {
						in = append(in, order{fmt.Sprint("t", n%targets), n})
					}
					got, err := h.SubmitAll(t.Context(), s.client, in)
					if err != nil {
						t.Error(err)
					}
					for _, f := range got {
						if _, err := f.Await(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			require.Len(t, s.runs, tasks)
			for _, runs := range s.runs {
				require.Equal(t, 1, runs)
			}
			t.Logf("%d targets: %d calls for %d tasks in %v", targets, len(s.calls), tasks, time.Since(start))
		})
	}
}

// TestTasksWithoutGo submits JSON whose target follows from the settings, and a task for
// another target than its own, which shares no call.
func TestTasksWithoutGo(t *testing.T) {
	t.Parallel()
	h := handler(grouping.Settings{Target: "/Target"})
	s := newShop(t, h, 1)
	kind, err := s.client.LaneKind(t.Context(), "order")
	require.NoError(t, err)
	mine, err := kind.Task([]byte(`{"Target":"t","N":3}`), "")
	require.NoError(t, err)
	require.Equal(t, futures.Lane{Kind: "order", Key: "t"}, mine.Lane)
	wrong := mine
	wrong.Lane.Key = "u"
	alone := mine
	alone.Lane = futures.Lane{}
	got, err := s.client.SubmitMany(t.Context(), []futures.Task{mine, wrong, alone})
	require.NoError(t, err)
	r, err := got[0].Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "6", string(r.Value))
	_, err = got[1].Await(t.Context())
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, `is "t", but it was submitted for "u"`)
	require.Equal(t, 1, failed.Attempt)
	_, err = got[2].Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "t", s.on[3], "without a lane it has its own target")
}
