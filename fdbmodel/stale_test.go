package fdbmodel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// TestAnIdleWorkerPassesOverWhatWasClaimed lets a worker go idle, and poll, while the
// store still shows it a future that its process has claimed.
func TestAnIdleWorkerPassesOverWhatWasClaimed(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"futura-idle", "futura-read"} {
		for _, assigned := range []bool{false, true} {
			ctx, db := context.Background(), &staleStore{Database: storetest.New(t)}
			c, err := Open(ctx, db, "stale", Options{Config: layout.Config{Shards: 1}})
			require.NoError(t, err)
			w := &waker{t, ctx, db, c}
			worker := w.register(9, "go:f")
			submission := Submission{Spec: layout.Spec{Function: "go:f"}}
			if assigned {
				submission.Assigned = worker.ID()
			}
			_, err = c.Submit(ctx, []Submission{submission})
			require.NoError(t, err)
			tx := db.Begin(kv.Options{})
			before, err := tx.ReadVersion(ctx)
			require.NoError(t, err)
			tx.Cancel()
			req := ClaimRequest{Free: worker.info.Capacity, Max: 1}
			answer, err := worker.Claim(ctx, req)
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)

			db.tag, db.version, db.left = tag, before, 1
			if tag == "futura-idle" {
				w.idle(worker)
			} else {
				found, err := worker.Poll(ctx, req)
				require.NoError(t, err)
				require.False(t, found)
			}
			require.Zero(t, db.left)
		}
	}
}
