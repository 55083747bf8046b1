package fdbmodel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// TestAssignedFuturesBehindThoseThatAreTaken has a worker claim assigned futures
// at a snapshot that still shows what it took before.
func TestAssignedFuturesBehindThoseThatAreTaken(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	c, err := Open(ctx, db, "own", Options{Config: layout.Config{Shards: 1}})
	require.NoError(t, err)
	w := &waker{t, ctx, db, c}
	worker := w.register(9, "go:f")
	const most, number = 4, 20
	var ids []layout.ID
	for range number {
		submitted, err := c.Submit(ctx, []Submission{{Spec: layout.Spec{Function: "go:f"}, Assigned: worker.ID()}})
		require.NoError(t, err)
		ids = append(ids, submitted[0].ID)
	}
	var before []layout.ReadyEntry
	for _, id := range ids[:2*most] {
		before = append(before, layout.ReadyEntry{ID: id})
		require.True(t, c.claimed.Take(id, 0, time.Now()))
	}
	c.claimed.Commit(before, kv.Version(1<<60), time.Now())
	answer, err := worker.Claim(ctx, ClaimRequest{Free: worker.info.Capacity, Max: most})
	require.NoError(t, err)
	require.Equal(t, ids[2*most:3*most], idsOf(answer))
	require.True(t, answer.More)
}
