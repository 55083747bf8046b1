package workers

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// gauge counts what runs at a time, by the first letter of the arguments.
type gauge struct {
	mu   sync.Mutex
	now  map[string]int
	most map[string]int
}

func (g *gauge) run(_ context.Context, args []byte) ([]byte, error) {
	key := string(args[:1])
	g.mu.Lock()
	g.now[key]++
	g.most[key] = max(g.most[key], g.now[key])
	g.mu.Unlock()
	runtime.Gosched()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now[key]--
	return nil, nil
}

func TestOneOfAnOwnerAtATime(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	g := &gauge{now: map[string]int{}, most: map[string]int{}}
	w := b.start(Options{Slots: 8}, map[string]Function{"run": g.run})
	var subs []fdbmodel.Submission
	for i := range 150 {
		kind, parallel := "abc"[i%3:i%3+1], i%3
		subs = append(subs, b.describe("go:run", func(s *fdbmodel.Submission) {
			s.Spec.Owner, s.Spec.Parallel, s.Assigned = kind, parallel, w.ID()
			s.Args = []byte(strings.Repeat(kind, 20))
		}))
	}
	b.awaitOver(b.submit(subs...)...)
	require.LessOrEqual(t, g.most["b"], 1)
	require.LessOrEqual(t, g.most["c"], 2)
	require.Positive(t, g.most["a"])
}

// TestLimitedOwnerLeavesRoom has futures run beside those of an owner that wait
// for each other.
func TestLimitedOwnerLeavesRoom(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	release, others := make(chan struct{}), make(chan struct{}, 100)
	began := make(chan struct{}, 100)
	w := b.start(Options{Slots: 2}, map[string]Function{
		"wait":  func(context.Context, []byte) ([]byte, error) { began <- struct{}{}; <-release; return nil, nil },
		"other": func(context.Context, []byte) ([]byte, error) { others <- struct{}{}; return nil, nil },
	})
	var subs []fdbmodel.Submission
	for range 50 {
		subs = append(subs, b.describe("go:wait", func(s *fdbmodel.Submission) {
			s.Spec.Owner, s.Spec.Parallel, s.Spec.Priority, s.Assigned = "g", 1, 9, w.ID()
		}))
	}
	limited := b.submit(subs...)
	<-began
	free := b.many(20, "go:other")
	for range free {
		<-others
	}
	close(release)
	b.awaitOver(append(limited, free...)...)
}

func TestPaceSpreadsStarts(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	var mu sync.Mutex
	var starts []time.Time
	b.start(Options{Slots: 4}, map[string]Function{"run": func(context.Context, []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		starts = append(starts, b.cluster.Now())
		return nil, nil
	}})
	var subs []fdbmodel.Submission
	for range 6 {
		subs = append(subs, b.describe("go:run", func(s *fdbmodel.Submission) {
			s.Spec.Pace = &layout.Pace{Key: "example.com", PerSecond: 2}
			s.Spec.Timeout = time.Minute
		}))
	}
	b.awaitOver(b.submit(subs...)...)
	require.Len(t, starts, 6)
	require.GreaterOrEqual(t, starts[5].Sub(starts[0]), 2*time.Second, "but for the delay of the first")
}

// TestAPaceOfTheClusterHoldsOverAllWorkers has four workers start futures for two
// hosts, of which one is fast.
func TestAPaceOfTheClusterHoldsOverAllWorkers(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	var mu sync.Mutex
	starts := map[string][]time.Time{}
	run := func(_ context.Context, host []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		starts[string(host)] = append(starts[string(host)], b.cluster.Now())
		return nil, nil
	}
	var all []*running
	for range 4 {
		all = append(all, b.start(Options{Slots: 4}, map[string]Function{"run": run}))
	}
	rates := map[string]float64{"slow.com": 2, "fast.com": 100}
	var subs []fdbmodel.Submission
	for i := range 80 {
		host := "fast.com"
		if i < 12 {
			host = "slow.com"
		}
		subs = append(subs, b.describe("go:run", func(s *fdbmodel.Submission) {
			s.Args, s.Assigned = []byte(host), all[i%len(all)].ID()
			s.Spec.Pace = &layout.Pace{Key: host, PerSecond: rates[host], Shared: true}
		}))
	}
	began := b.cluster.Now()
	_, err := quota.Of(b.cluster).ReservePace(b.ctx, &layout.Pace{Key: "unused.com", PerSecond: 1}, 1)
	require.NoError(t, err)
	b.awaitOver(b.submit(subs...)...)
	require.Len(t, starts["slow.com"], 12)
	require.Len(t, starts["fast.com"], 68)
	for host, rate := range rates {
		slices.SortFunc(starts[host], time.Time.Compare)
		for i, at := range starts[host] {
			earliest := time.Duration(float64(i) / rate * float64(time.Second))
			require.GreaterOrEqual(t, at.Sub(began), earliest, "start %d for %s", i, host)
		}
	}

	// A janitor removes those that are no longer used.
	b.clock.Advance(time.Hour)
	b.await("the end of an unused pace", func() bool {
		var value []byte
		require.NoError(t, b.cluster.View(b.ctx, func(tx kv.Attempt) (err error) {
			value, err = tx.Get(quota.Keys(b.cluster.Keys()).Pace("unused.com")).Wait(b.ctx)
			return err
		}))
		return value == nil
	})
}
