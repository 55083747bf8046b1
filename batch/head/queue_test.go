package head_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/workers"
)

// TestABatchRunsInItsQueueOnWorkersWithItsLabels has a worker of another queue, one
// without the label, one that is too small, and one that fits.
func TestABatchRunsInItsQueueOnWorkersWithItsLabels(t *testing.T) {
	eachStore(t, func(b *bed) {
		b.start()
		labels := map[string]string{"zone": "eu"}
		b.work(workers.Options{Labels: labels, RAM: 1 << 30})
		b.work(workers.Options{Queues: []string{"gpu"}, RAM: 1 << 30})
		b.work(workers.Options{Queues: []string{"gpu"}, Labels: labels, RAM: 1 << 20})
		fits := b.work(workers.Options{Queues: []string{"gpu"}, Labels: labels, RAM: 1 << 30})
		r := batch.Request{Template: template(-1), Arguments: numbered("a", 4)}
		r.Template.Config.Queue, r.Template.Config.Labels, r.Template.Config.Memory = "gpu", labels, 1<<28
		made := b.submit(r)
		b.await(made.ID, func(b batch.Batch) bool { return b.Status == batch.Done })
		chunks, err := b.store.Chunks(t.Context(), made.ID)
		require.NoError(t, err)
		require.Len(t, chunks, 1)
		require.Equal(t, string(fits.ID()), chunks[0].Worker)
		progress, err := b.store.Progress(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, 4, progress[batch.Done])
		require.NoError(t, b.head.Delete(t.Context(), made.ID))

		r.Template.Config.Queue = "none"
		_, _, err = b.head.Submit(t.Context(), r)
		require.ErrorIs(t, err, batch.ErrBadBatch)
		require.ErrorContains(t, err, "no worker serves the queue none")
	})
}
