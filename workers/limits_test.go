package workers

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// TestWorkersObeyTheLimitOfRunningFutures has workers with many slots run what they may:
// never more at a time than the cluster allows, and all of it.
func TestWorkersObeyTheLimitOfRunningFutures(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	const limit, number = 4, 200
	_, err := quota.Of(b.cluster).Set(b.ctx, func(l *quota.Limits) { l.Running = limit })
	require.NoError(t, err)
	var now, most atomic.Int64
	run := func(_ context.Context, args []byte) ([]byte, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			if before := most.Load(); n <= before || most.CompareAndSwap(before, n) {
				return args, nil
			}
		}
	}
	subs := make([]fdbmodel.Submission, number)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
	}
	b.submit(subs...)
	var started []*running
	for range 3 {
		started = append(started, b.start(Options{Slots: 16}, map[string]Function{"f": run}))
	}
	b.await("all results", func() bool { return b.counts()[layout.Realized] == number })
	for _, r := range started {
		r.end()
	}
	require.LessOrEqual(t, most.Load(), int64(limit))
	require.Positive(t, most.Load())
}

// TestAWorkerHasItsOwnOptions has a program change its own ones once a worker is made.
func TestAWorkerHasItsOwnOptions(t *testing.T) {
	t.Parallel()
	given := Options{Queues: []string{"q"}, Labels: map[string]string{"a": "b"},
		Middleware: make([]Middleware, 1), FunctionMiddleware: map[string][]Middleware{"go:f": nil}}
	kept := given.withDefaults()
	given.Queues[0], given.Labels["a"] = "other", "other"
	given.Middleware[0] = func(next Call) Call { return next }
	delete(given.FunctionMiddleware, "go:f")
	require.Equal(t, []string{"q"}, kept.Queues)
	require.Equal(t, map[string]string{"a": "b"}, kept.Labels)
	require.Nil(t, kept.Middleware[0])
	require.Contains(t, kept.FunctionMiddleware, "go:f")
}
