package results_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/storetest"
)

func TestLoadReadsLargeValues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, err := fdbmodel.Open(ctx, storetest.New(t), "c", fdbmodel.Options{})
	require.NoError(t, err)
	id, token := layout.BatchItemID("b", 1), layout.Token{Worker: "w", Sequence: 1}
	value, log := bytes.Repeat([]byte("v"), 200_000), bytes.Repeat([]byte("e"), 10_000)
	valueRef, err := results.Of(c).Store(ctx, id, token, value)
	require.NoError(t, err)
	stderrRef, err := results.Of(c).StoreStderr(ctx, id, token, log)
	require.NoError(t, err)
	stored := layout.Ending{
		ID: id, Result: &layout.Result{ValueRef: &valueRef, StderrRef: &stderrRef},
		Failure: &layout.Exception{StderrRef: &stderrRef, Stdout: []byte("out")},
	}
	e := stored
	require.NoError(t, results.Of(c).Load(ctx, &e))
	require.Equal(t, layout.Ending{
		ID: id, Result: &layout.Result{Value: value, Stderr: log},
		Failure: &layout.Exception{Stderr: log, Stdout: []byte("out")},
	}, e)
	require.NotNil(t, stored.Result.ValueRef, "records are never modified")

	e = stored
	require.NoError(t, results.Of(c).LoadUpTo(ctx, &e, int64(len(value))-1))
	require.Equal(t, layout.Result{ValueRef: &valueRef, Stderr: log}, *e.Result)

	e = stored
	e.ID = layout.BatchItemID("b", 2)
	require.ErrorIs(t, results.Of(c).Load(ctx, &e), fdbmodel.ErrNotFound)
	e.Result = nil
	require.NoError(t, results.Of(c).Load(ctx, &e), "a retry has removed it")
	require.Equal(t, layout.Exception{Stdout: []byte("out")}, *e.Failure)
}
