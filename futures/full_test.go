package futures_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestAFullStoreClaimsNoMore fills the object store of the only worker. The next
// result waits, and Explain says why, until one is discarded; what is no object does
// not wait.
func TestAFullStoreClaimsNoMore(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(1 << 20)
	const size, most = 200_000, 5
	var first layout.ID
	for i := range most {
		f, err := fill.Submit(o.ctx, o.client, size+i)
		require.NoError(t, err)
		_, err = f.Await(o.ctx)
		require.NoError(t, err)
		if i == 0 {
			first = f.ID()
		}
	}
	waiting, err := fill.Submit(o.ctx, o.client, size+most)
	require.NoError(t, err)
	small, err := length.Submit(o.ctx, o.client, []byte("abc"))
	require.NoError(t, err)
	n, err := small.Await(o.ctx)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	var why inspect.Explanation
	require.Eventually(t, func() bool {
		why, err = inspect.Explain(o.ctx, o.client.Cluster(), waiting.ID())
		require.NoError(t, err)
		return why.Reason == inspect.ReasonNoRoom
	}, 20*time.Second, 10*time.Millisecond, "the next heartbeat says so")
	require.Contains(t, why.Text, "Discard results")
	require.Equal(t, int64(most), o.runs.Load())

	require.NoError(t, o.client.Discard(o.ctx, first))
	_, err = waiting.Await(o.ctx)
	require.NoError(t, err)
	row, err := o.client.Cluster().Get(o.ctx, waiting.ID())
	require.NoError(t, err)
	require.NotEmpty(t, row.Result.Object)
	o.requireSound()
}
