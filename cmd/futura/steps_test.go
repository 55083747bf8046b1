package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// TestStepsFromTheCommandLine has a function record a step and fail for good.
func TestStepsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	order := futures.Define[int, string]("order")
	node, err := futura.Open(t.Context(), s.store, futura.Function(order.Bind(
		func(ctx context.Context, _ int) (string, error) {
			_, err := futures.Step(ctx, "reserve", func(context.Context) (string, error) { return "done", nil })
			return "", errors.Join(err, workers.Permanent(errors.New("sold out")))
		})))
	require.NoError(t, err)
	f, err := order.Submit(t.Context(), node.Client, 1)
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	require.NoError(t, node.Close())
	id := f.ID().String()

	all := listed[futures.StepView](t, "steps", s.ok("steps", id, "--json"))
	require.Len(t, all, 1)
	require.Equal(t, "reserve", all[0].Name)
	require.Equal(t, 1, all[0].Attempt)
	require.Regexp(t, `reserve +1 +\S.* +\S+s +5 bytes$`, s.ok("steps", id))
	require.Contains(t, s.ok("get", id), "futura steps "+id)
	s.run(exitUsage, "", "retry", "--failed", "--start-over")
	s.run(exitUsage, "", "steps", "x")
	s.run(exitNotFound, "", "steps", "01995b4e-6f3a-7c1e-9d2b-0123456789ab")
	s.ok("retry", id)
	require.Len(t, listed[futures.StepView](t, "steps", s.ok("steps", id, "--json")), 1)
	s.ok("cancel", id)
	s.ok("retry", id, "--start-over")
	require.Empty(t, listed[futures.StepView](t, "steps", s.ok("steps", id, "--json")))
	row := stepRow(&futures.StepView{Name: "sleep", Wake: time.UnixMilli(1)})
	require.Contains(t, row[5], "until ")
	require.Equal(t, "unused", stepRow(&futures.StepView{Unused: true})[5])
}
