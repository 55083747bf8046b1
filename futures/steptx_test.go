package futures_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

var (
	stepTxLedger = futures.DefineActor[int]("steptx")
	stepTxAdd    = futures.DefineMethod(stepTxLedger, "add", func(_ context.Context, total *int, by int) (int, error) {
		*total += by
		return *total, nil
	})
	stepTxOrder = []byte("order")
)

// TestAStepWithEffects has a step write a row, submit a future and call an actor, in a function whose first
// attempt fails after that: all of it is there once.
func TestAStepWithEffects(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	note := futures.Define[int, string]("note")
	var count counter
	cluster.Register(stepTxAdd.Bind())
	cluster.Register(note.Bind(func(context.Context, int) (string, error) {
		count.add("note")
		return "noted", nil
	}))
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		at := count.add("attempt")
		id, err := futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			count.add("step")
			tx.Set(stepTxOrder, []byte("placed"))
			call, err := stepTxAdd.Task("a", 5)
			if err != nil {
				return "", err
			}
			one, err := note.Task(1)
			if err != nil {
				return "", err
			}
			all, err := tx.Submit(ctx, call, one)
			if err != nil {
				return "", err
			}
			return all[1].ID().String(), nil
		})
		if err != nil || at < 3 {
			return "", errors.Join(err, errOnce)
		}
		return id, nil
	}))
	// The first call of a type makes its lanes, which would have the step run again.
	_, err := stepTxAdd.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	f, err := durable.Submit(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	out, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, count.runs("attempt"))
	require.Equal(t, 1, count.runs("step"))
	id, err := futures.ParseID(out)
	require.NoError(t, err)
	_, err = cluster.Client.Future(id).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, count.runs("note"))
	total, err := stepTxAdd.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	require.Equal(t, 5, total)
	require.NoError(t, cluster.Client.Cluster().View(t.Context(), func(tx kv.Attempt) error {
		value, err := tx.Get(stepTxOrder).Wait(t.Context())
		require.Equal(t, "placed", string(value))
		return err
	}))
	names, unused := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"order"}, names)
	require.Empty(t, unused)
}

// TestAStepWithEffectsThatFails writes nothing, and its retries do.
func TestAStepWithEffectsThatFails(t *testing.T) {
	t.Parallel()
	var count counter
	_, _, out, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		return futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			was, err := tx.Get(stepTxOrder).Wait(ctx)
			if err != nil {
				return "", err
			}
			tx.Set(stepTxOrder, []byte("placed"))
			if count.add("step") < 3 {
				return "", errOnce
			}
			return "was " + string(was), nil
		}, futures.StepRetries(5, 0, 0))
	})
	require.NoError(t, err)
	require.Equal(t, "was ", out)
	require.Equal(t, 3, count.runs("step"))
}

func TestAStepWithEffectsRefuses(t *testing.T) {
	t.Parallel()
	for want, fn := range map[string]func(context.Context, *futures.Tx) (string, error){
		"at most 4096": func(context.Context, *futures.Tx) (string, error) { return strings.Repeat("x", 5000), nil },
		"a step in step order": func(ctx context.Context, _ *futures.Tx) (string, error) {
			return futures.Step(ctx, "inner", func(context.Context) (string, error) { return "", nil })
		},
		"actors and sends in a step": func(ctx context.Context, _ *futures.Tx) (string, error) {
			_, err := futures.Send(ctx, futures.Task{Function: "go:f"})
			return "", err
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
				return futures.StepTx(ctx, "order", fn)
			})
			require.ErrorContains(t, err, want)
		})
	}
	_, err := futures.StepTx(t.Context(), "order", func(context.Context, *futures.Tx) (int, error) { return 0, nil })
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
}
