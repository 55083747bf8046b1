package httpapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func TestEachErrorHasOneCode(t *testing.T) {
	t.Parallel()
	for _, c := range problemCodes() {
		var p *Problem
		require.ErrorAs(t, problemOf(fmt.Errorf("somewhere: %w", c.err)), &p)
		require.Equal(t, c.status, p.Status)
		require.Equal(t, c.code, p.Code)
		require.NotEmpty(t, p.Title)
		require.ErrorIs(t, p, c.err)
		require.Equal(t, p, problemOf(fmt.Errorf("again: %w", p)))
	}
	var p *Problem
	require.ErrorAs(t, problemOf(errors.Join(context.Canceled, kv.ErrUnknownResult)), &p)
	require.Equal(t, "unknown_result", p.Code, "that it may have happened matters most")
	require.ErrorAs(t, problemOf(errors.New("odd")), &p)
	require.Equal(t, "internal", p.Code)
	require.NoError(t, problemOf(nil))
}

func FuzzSplitAction(f *testing.F) {
	f.Add("/api/v1/futures/1:cancel")
	f.Add("/api/v1/futures/:")
	f.Add("/api/v1/futures/a/b:c")
	f.Fuzz(func(t *testing.T, path string) {
		split := splitAction(path)
		if split != path {
			require.Len(t, split, len(path)+1)
			require.Equal(t, split, splitAction(split), "it is split once")
		}
	})
}
