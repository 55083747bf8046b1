package futures

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoTracerCostsNothing has submits and awaits of a client without a tracer.
func TestNoTracerCostsNothing(t *testing.T) {
	c, ctx, tasks, fs := &Client{}, t.Context(), make([]Task, 2), make([]*Future, 2)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		made, err := c.traced(ctx, tasks, func(context.Context) ([]*Future, error) { return fs[:len(tasks)], nil })
		c.traceAwait(ctx, made)(err)
	}))
}
