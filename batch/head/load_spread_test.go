package head_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// TestSmallBatchesGoToAllWorkers submits eight batches of one item to two workers of two slots, at once and one
// after the other, while none of them ends.
func TestSmallBatchesGoToAllWorkers(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"at once": false, "in turn": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(b *bed) {
				one, other := b.workGated(2), b.workGated(2)
				b.start()
				given := func(made batch.Batch) bool { return made.Status != batch.Created }
				var ids []string
				for range 8 {
					made := b.submit(batch.Request{Template: template(1), Arguments: numbered("go", 1)})
					if ids = append(ids, made.ID); waits {
						b.await(made.ID, given)
					}
				}
				counts := map[string]int{}
				for _, id := range ids {
					b.await(id, given)
					chunks, err := b.store.Chunks(b.Context(), id)
					require.NoError(b, err)
					require.Len(b, chunks, 1)
					counts[chunks[0].Worker]++
				}
				require.Equal(b, map[string]int{string(one.ID()): 4, string(other.ID()): 4}, counts)
				close(one.gate)
				close(other.gate)
				for _, id := range ids {
					b.await(id, func(made batch.Batch) bool { return made.Status == batch.Done })
				}
			})
		})
	}
}
