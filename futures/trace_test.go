package futures_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// TestTracesGoOn has a function see the trace of its future, and those that it submits be
// part of it unless they say otherwise.
func TestTracesGoOn(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	seen := func(ctx context.Context) string {
		info, _ := workers.InfoFrom(ctx)
		return info.Trace["traceparent"]
	}
	leaf := futures.Define[string, string]("trace-leaf")
	root := futures.Define[string, []string]("trace-root")
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 4}) },
		func(w *workers.Worker) error {
			return w.Register(leaf.Bind(func(ctx context.Context, _ string) (string, error) { return seen(ctx), nil }))
		},
		func(w *workers.Worker) error {
			return w.Register(root.Bind(func(ctx context.Context, own string) ([]string, error) {
				c, err := futures.FromContext(ctx)
				if err != nil {
					return nil, err
				}
				all := []string{seen(ctx)}
				for _, options := range [][]futures.Option{
					nil, {futures.Trace(map[string]string{"traceparent": own})}, {futures.Trace(map[string]string{})},
				} {
					f, err := leaf.Submit(ctx, c, "", options...)
					if err != nil {
						return nil, err
					}
					trace, err := f.Await(ctx)
					if err != nil {
						return nil, err
					}
					all = append(all, trace)
				}
				return all, nil
			}))
		})
	f, err := root.Submit(t.Context(), c, "00-own", futures.Trace(map[string]string{"traceparent": "00-root"}))
	require.NoError(t, err)
	got, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"00-root", "00-root", "00-own", ""}, got)
	f, err = root.Submit(t.Context(), c, "")
	require.NoError(t, err)
	got, err = f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, make([]string, 4), got)
}

// TestATraceOfTheCallerNeedsRoom has a trace that is passed on give way to arguments, and
// one that was asked for be refused.
func TestATraceOfTheCallerNeedsRoom(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	trace := map[string]string{"traceparent": strings.Repeat("x", 1000)}
	task := futures.Task{Function: "go:f", Argv: []string{strings.Repeat("x", layout.MaxMeta-500)}}
	ctx := context.WithValue(t.Context(), layout.TraceKey{}, trace)
	f, err := c.Submit(ctx, task)
	require.NoError(t, err)
	row, err := c.Cluster().Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.Nil(t, row.Spec.Trace)
	task.Trace = trace
	_, err = c.Submit(ctx, task)
	require.ErrorContains(t, err, "trace")
}

// told is a tracer that keeps what it is told of submits.
type told struct {
	made []*futures.Future
	err  error
}

func (o *told) Submit(ctx context.Context, _ []futures.Task) (context.Context, func([]*futures.Future, error)) {
	return ctx, func(made []*futures.Future, err error) { o.made, o.err = made, err }
}

func (o *told) Await(context.Context, []*futures.Future) func(error) { return func(error) {} }

// TestTracersAreToldOfFuturesThatExist has a submit that succeeds, and one that is refused.
func TestTracersAreToldOfFuturesThatExist(t *testing.T) {
	t.Parallel()
	tracer := &told{}
	c, err := futures.New(t.Context(), storetest.New(t), futures.Options{Tracer: tracer})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:f"})
	require.NoError(t, err)
	require.Equal(t, []*futures.Future{f}, tracer.made)
	f, err = c.Submit(t.Context(), futures.Task{Function: "no kind"})
	require.Error(t, err)
	require.Nil(t, f)
	require.Empty(t, tracer.made)
	require.Equal(t, err, tracer.err)
}
