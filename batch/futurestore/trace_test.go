package futurestore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestItemsArePartOfTheTraceOfTheirBatch makes batches with a trace and without one, and one
// whose second item has no room for it.
func TestItemsArePartOfTheTraceOfTheirBatch(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := futurestore.New(d.cluster, futurestore.Options{})
	trace := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	long := map[string]string{"tracestate": strings.Repeat("x", layout.MaxMeta-1000)}
	with := func(trace map[string]string) context.Context {
		return context.WithValue(t.Context(), layout.TraceKey{}, trace)
	}
	for _, c := range []struct {
		ctx       context.Context
		arguments [][]string
		want      []map[string]string
	}{
		{t.Context(), [][]string{{"a"}, {"b"}}, []map[string]string{nil, nil}},
		{with(trace), [][]string{{"a"}, {"b"}}, []map[string]string{trace, trace}},
		{with(long), [][]string{{"a"}, {strings.Repeat("b", 1000)}}, []map[string]string{long, nil}},
	} {
		b := batch.Batch{ID: uuid.NewString(), Template: suiteFunction, MaxAttempts: 1, Items: len(c.arguments)}
		require.NoError(t, s.Create(c.ctx, &b, c.arguments))
		for i, want := range c.want {
			row, err := d.cluster.Get(t.Context(), layout.BatchItemID(b.ID, i))
			require.NoError(t, err)
			require.Equal(t, want, row.Spec.Trace)
		}
	}
}
