package futures_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestMisusedSteps are refused for good.
func TestMisusedSteps(t *testing.T) {
	t.Parallel()
	_, err := futures.Step(t.Context(), "s", func(context.Context) (int, error) { return 1, nil })
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
	require.ErrorIs(t, futures.Sleep(t.Context(), time.Second), futures.ErrOutsideFunction)
	for want, run := range map[string]func(context.Context) error{
		"a step in step outer": func(ctx context.Context) error {
			_, err := futures.Step(ctx, "outer", func(ctx context.Context) (int, error) {
				return futures.Step(ctx, "inner", func(context.Context) (int, error) { return 1, nil })
			})
			return err
		},
		"a step in a step, by the context of the function": func(outer context.Context) error {
			_, err := futures.Step(outer, "outer", func(context.Context) (int, error) {
				return futures.Step(outer, "inner", func(context.Context) (int, error) { return 1, nil })
			}, futures.StepTimeout(time.Minute))
			return err
		},
		"a step in a step, by the context of the": func(outer context.Context) error {
			_, err := futures.Step(outer, "sleeper", func(context.Context) (int, error) {
				return 1, futures.Sleep(outer, time.Hour)
			})
			return err
		},
		"a step in step sleeper": func(ctx context.Context) error {
			_, err := futures.Step(ctx, "sleeper", func(ctx context.Context) (int, error) {
				return 1, futures.Sleep(ctx, time.Hour)
			})
			return err
		},
		"use 1 to 194 bytes of printable characters, not ending in # and a number": func(ctx context.Context) error {
			_, err := futures.Step(ctx, "a#2", func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"can't be encoded": func(ctx context.Context) error {
			_, err := futures.Step(ctx, "channel", func(context.Context) (chan int, error) { return nil, nil })
			return err
		},
		"at most 67108864": func(ctx context.Context) error {
			_, err := futures.Step(ctx, "large", func(context.Context) ([]byte, error) { return make([]byte, 64<<20), nil })
			return err
		},
	} {
		runs := 0
		_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
			runs++
			return "", run(ctx)
		})
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, runs, want)
	}
}

// TestStepsBelowAStepOfAnotherFuture run in the goroutine of a step that awaits their future, or in one of their own,
// while another step of theirs runs: they are in no step.
func TestStepsBelowAStepOfAnotherFuture(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	inner := futures.Define[int, string]("inner")
	cluster.Register(inner.Bind(func(ctx context.Context, _ int) (string, error) {
		began, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := futures.Step(ctx, "slow", func(context.Context) (int, error) {
				close(began)
				<-end
				return 1, nil
			})
			ended <- err
		}()
		<-began
		quick := func(context.Context) (string, error) { return "done", nil }
		out, err := futures.Step(ctx, "quick", quick)
		beside := make(chan error, 1)
		go func() {
			_, err := futures.Step(ctx, "beside", quick)
			beside <- err
		}()
		err = errors.Join(err, <-beside)
		close(end)
		return out, errors.Join(err, <-ended)
	}))
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		return futures.Step(ctx, "outer", func(ctx context.Context) (string, error) {
			client, err := futures.FromContext(ctx)
			if err != nil {
				return "", err
			}
			return inner.Call(ctx, client, 1)
		})
	}))
	out, err := durable.Call(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	require.Equal(t, "done", out)
}

// TestActorsInAStep has a step send and ask for a state: a later attempt, which finds the step on record, would
// lose both.
func TestActorsInAStep(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	var methods []futures.Method[int, int]
	for name, pick := range map[string]func(function, step context.Context) context.Context{
		"own": func(_, step context.Context) context.Context { return step },
		"fn":  func(function, _ context.Context) context.Context { return function },
	} {
		method := futures.DefineMethod(b.account, name, func(ctx context.Context, _ *account, what int) (int, error) {
			return futures.Step(ctx, "s", func(step context.Context) (int, error) {
				if what == 0 {
					_, err := b.deposit.Send(pick(ctx, step), "bob", 1)
					return 0, err
				}
				_, err := b.account.State(pick(ctx, step), "bob")
				return 0, err
			})
		})
		cluster.Register(method.Bind())
		methods = append(methods, method)
	}
	for _, method := range methods {
		for what := range 2 {
			_, err := method.Call(t.Context(), cluster.Client, "alice", what)
			require.ErrorContains(t, err, "use them after the step", method.Name())
			require.ErrorContains(t, err, "attempt 1")
		}
	}
}
