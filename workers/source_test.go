package workers_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/workers"
)

// source gives futures to a worker that its store does not have.
type source struct {
	news   func()
	cancel func(layout.ID)

	mu    sync.Mutex
	last  int
	waits []fdbmodel.ClaimedFuture
	ended chan fdbmodel.Completion
}

func (d *source) Take(request fdbmodel.ClaimRequest) (taken []fdbmodel.ClaimedFuture, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(taken) < request.Max && len(d.waits) > 0 {
		taken, d.waits = append(taken, d.waits[0]), d.waits[1:]
	}
	return taken, len(d.waits) > 0
}

func (d *source) Attach(news func(), cancel func(layout.ID)) { d.news, d.cancel = news, cancel }

func (d *source) Writer(layout.ID) (io.Writer, error) {
	return nil, errors.New("no value is written in pieces")
}

func (d *source) End(c fdbmodel.Completion) { d.ended <- c }

func (d *source) add(function string, n int, spec layout.Spec) (ids []layout.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	spec.Function, spec.Queue, spec.Codec = "go:"+function, layout.DefaultQueue, layout.CodecRaw
	for range n {
		d.last++
		id := layout.KeyedID("direct", strconv.Itoa(d.last))
		d.waits = append(d.waits, fdbmodel.ClaimedFuture{ID: id, Spec: &spec, Inline: []byte("in")})
		ids = append(ids, id)
	}
	return ids
}

// TestSource has a worker run futures that its store does not have, beside others that it
// has, under the same limits.
func TestSource(t *testing.T) {
	t.Parallel()
	const slots, n = 4, 300
	ctx := t.Context()
	cluster, err := fdbmodel.Open(ctx, modeltest.OpenMemory(t), "direct", fdbmodel.Options{})
	require.NoError(t, err)
	d := &source{ended: make(chan fdbmodel.Completion, 2*n)}
	w, err := workers.FromCluster(cluster, workers.Options{
		Slots: slots, DrainTimeout: 10 * time.Millisecond, Source: d,
	})
	require.NoError(t, err)
	var runs, most, owned, mostOwned atomic.Int64
	count := func(now, most *atomic.Int64) func() {
		raise(most, now.Add(1))
		return func() { now.Add(-1) }
	}
	large := make([]byte, 2<<20)
	for name, fn := range map[string]workers.Function{
		"free": func(ctx context.Context, args []byte) ([]byte, error) {
			defer count(&runs, &most)()
			require.NoError(t, workers.Progress(ctx, 1, 2, "half"))
			return append(args, "out"...), nil
		},
		"one": func(context.Context, []byte) ([]byte, error) {
			defer count(&runs, &most)()
			defer count(&owned, &mostOwned)()
			return nil, errors.New("no")
		},
		"large": func(context.Context, []byte) ([]byte, error) { return large, nil },
		"wait": func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	} {
		require.NoError(t, w.Register(name, fn))
	}
	running, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.Run(running) }()
	<-w.Ready()

	d.add("one", n/3, layout.Spec{Owner: "batch", Parallel: 1})
	d.add("free", n, layout.Spec{})
	d.add("large", 1, layout.Spec{})
	d.news()
	stored, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:free"}}})
	require.NoError(t, err)
	ended := map[layout.ID]bool{}
	for range n + n/3 + 1 {
		c := <-d.ended
		require.False(t, ended[c.Future.ID], "one ended twice")
		ended[c.Future.ID] = true
		switch c.Future.Spec.Function {
		case "go:one":
			require.Equal(t, "no", c.Exception.Message)
		case "go:large":
			require.Len(t, c.Result.Value, len(large))
		default:
			require.Equal(t, "inout", string(c.Result.Value))
		}
	}
	require.LessOrEqual(t, most.Load(), int64(slots))
	require.EqualValues(t, 1, mostOwned.Load())
	require.Eventually(t, func() bool {
		row, err := cluster.Get(ctx, stored[0].ID)
		return err == nil && row.State() == layout.Realized
	}, time.Minute, time.Millisecond)

	// One that runs is stopped, and so is one that times out; the rest is given back at the end.
	cancelled := d.add("wait", 1, layout.Spec{})[0]
	d.news()
	require.Eventually(t, func() bool { return w.Stats().Running == 1 }, time.Minute, time.Millisecond)
	d.cancel(cancelled)
	c := <-d.ended
	require.Equal(t, cancelled, c.Future.ID)
	require.True(t, c.Relinquish)
	d.add("wait", 1, layout.Spec{Timeout: time.Millisecond})
	d.news()
	require.Equal(t, layout.KindTimeout, (<-d.ended).Exception.Kind)
	d.add("wait", slots, layout.Spec{})
	d.news()
	require.Eventually(t, func() bool { return w.Stats().Running == slots }, time.Minute, time.Millisecond)
	stop()
	for range slots {
		require.True(t, (<-d.ended).Relinquish)
	}
	require.NoError(t, <-over)
	require.EqualValues(t, n+2, w.Stats().Ran)
}
