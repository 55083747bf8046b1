package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestObjects finds the largest results that workers hold.
func TestObjects(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	found, err := inspect.Objects(t.Context(), l.c)
	require.NoError(t, err)
	require.Equal(t, inspect.Holdings{Complete: true}, found)

	const many = 130
	for range many {
		l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}})
	}
	claimed := l.claim(many)
	require.Len(t, claimed, many)
	sizes := map[layout.ID]int64{}
	for i := range claimed {
		size := int64(i*37%many + 1)
		sizes[claimed[i].ID] = size
		_, err := l.worker.Finish(t.Context(), []fdbmodel.Completion{
			{Future: &claimed[i], Result: &layout.Result{Object: "hash", Size: size}}})
		require.NoError(t, err)
	}
	found, err = inspect.Objects(t.Context(), l.c)
	require.NoError(t, err)
	require.True(t, found.Complete)
	require.Equal(t, many, found.Copies)
	require.EqualValues(t, many*(many+1)/2, found.Bytes)
	require.Len(t, found.Largest, 100)
	for i, o := range found.Largest {
		require.EqualValues(t, many-i, o.Size)
		require.Equal(t, sizes[o.ID], o.Size)
		require.Equal(t, []layout.WorkerID{l.worker.ID()}, o.Workers)
	}
}
