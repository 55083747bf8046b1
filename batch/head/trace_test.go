package head_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// TestItemsArePartOfTheTrace runs a batch of a trace, whose items fail at first: each attempt is
// part of it, whoever runs the items.
func TestItemsArePartOfTheTrace(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		trace := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		seen := make(chan map[string]string, 100)
		b.work(workers.Options{Middleware: []workers.Middleware{func(next workers.Call) workers.Call {
			return func(ctx context.Context, args []byte) ([]byte, error) {
				info, _ := workers.InfoFrom(ctx)
				seen <- info.Trace
				return next(ctx, args)
			}
		}}})
		b.start()
		for _, want := range []map[string]string{trace, nil} {
			ctx := context.WithValue(b.Context(), layout.TraceKey{}, want)
			made, _, err := b.head.Submit(ctx, batch.Request{Template: template(1), MaxAttempts: 2, Arguments: [][]string{
				{"second", want["traceparent"], "a"}, {"second", want["traceparent"], "b"},
			}})
			require.NoError(b, err)
			require.Equal(b, batch.Done, b.await(made.ID, over).Status)
			for range 4 {
				require.Equal(b, want, <-seen)
			}
		}
	})
}
