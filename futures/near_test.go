package futures_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
)

// TestWhatMustBeNearRunsThere has two workers, each with a large result, and futures
// that must be where those are. Then one stops: its result is made again on the other,
// and what must be near it runs there.
func TestWhatMustBeNearRunsThere(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stops := []func(){o.start(64 << 20), o.start(64 << 20)}
	parts := make([]futures.ID, 6)
	for i := range parts {
		part, err := fill.Submit(o.ctx, o.client, 100_000+i)
		require.NoError(t, err)
		count, err := futures.Then(o.ctx, o.client, part, length, futures.MustBeNear(part.ID()))
		require.NoError(t, err)
		n, err := count.Await(o.ctx)
		require.NoError(t, err)
		require.Equal(t, 100_000+i, n)
		from, err := o.client.Cluster().Get(o.ctx, part.ID())
		require.NoError(t, err)
		ran, err := o.client.Cluster().Get(o.ctx, count.ID())
		require.NoError(t, err)
		require.Equal(t, from.Result.Worker, ran.Result.Worker)
		parts[i] = part.ID()
	}
	stops[0]()
	for i, part := range parts {
		count, err := futures.Then(o.ctx, o.client, fill.Of(o.client.Future(part)), length, futures.MustBeNear(part))
		require.NoError(t, err)
		n, err := count.Await(o.ctx)
		require.NoError(t, err)
		require.Equal(t, 100_000+i, n)
	}
	o.requireSound()
}
