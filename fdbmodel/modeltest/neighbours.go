package modeltest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// Neighbours are held futures of one batch, whose rows lie together.
func Neighbours(n int) []fdbmodel.Submission {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = fdbmodel.Submission{ID: layout.BatchItemID("b", i),
			Spec: layout.Spec{Function: "go:f", Owner: "b"}}
		subs[i].Args = make([]byte, []int{0, 10, 3000}[i%3])
	}
	return subs
}

// OpenNeighbours opens a cluster for them, of a few shards.
func OpenNeighbours(t *testing.T, db kv.Database) *fdbmodel.Cluster {
	c, err := fdbmodel.Open(context.Background(), db, "neighbours", fdbmodel.Options{
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), Config: layout.Config{Shards: 4},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	require.NoError(t, err)
	return c
}
