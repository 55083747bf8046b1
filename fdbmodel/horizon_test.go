package fdbmodel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// TestAWorkerSeesBeyondWhatItCannotRun puts a future behind many that the worker
// must pass over: of a function that it does not know, and of classes that do not
// fit, with many futures each.
func TestAWorkerSeesBeyondWhatItCannotRun(t *testing.T) {
	t.Parallel()
	for name, inFront := range map[string]func(i int) layout.Spec{
		"functions": func(int) layout.Spec { return layout.Spec{Function: "go:other", Priority: 9} },
		"classes": func(i int) layout.Spec {
			return layout.Spec{Function: "go:f", Requirements: layout.Requirements{RAM: int64(1000 + i%40)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, db := context.Background(), storetest.New(t)
			c, err := Open(ctx, db, "horizon", Options{Config: layout.Config{Shards: 1}})
			require.NoError(t, err)
			w := &waker{t, ctx, db, c}
			specs := make([]layout.Spec, 1200)
			for i := range specs {
				specs[i] = inFront(i)
			}
			w.submit(specs...)
			worker := w.register(9, "go:f")
			want := ClaimRequest{Free: worker.info.Capacity, Max: 1}
			watch := w.idle(worker)
			w.submit(layout.Spec{Function: "go:f", Requirements: layout.Requirements{CPU: 1}})
			watch.Cancel()
			found, err := worker.Poll(ctx, want)
			require.NoError(t, err)
			require.True(t, found)
			answer, err := worker.Claim(ctx, want)
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)
		})
	}
}
