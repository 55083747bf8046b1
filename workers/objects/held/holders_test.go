package held

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestOfManyWorkersNotAlwaysTheSameAreAsked asks more workers for their room than are asked at a time. None answers,
// and the error names them.
func TestOfManyWorkersNotAlwaysTheSameAreAsked(t *testing.T) {
	t.Parallel()
	var r Reader
	var workers []layout.WorkerInfo
	for i := range 4 * maxAsked {
		workers = append(workers, layout.WorkerInfo{ID: layout.WorkerID(fmt.Sprintf("w%03d", i)), Objects: "nowhere",
			Secret: layout.Secret(fmt.Sprintf("%032d", i))})
	}
	first := workers[0].ID
	asked := map[string]bool{}
	for range 20 {
		_, err := r.Holders(t.Context(), workers)
		require.ErrorIs(t, err, ErrNoHolder)
		for _, w := range workers {
			if name := "worker " + string(w.ID); strings.Contains(err.Error(), name) {
				asked[name] = true
			}
		}
	}
	require.Greater(t, len(asked), maxAsked)
	require.Equal(t, first, workers[0].ID) // the caller's list is as it was
	require.NoError(t, r.Close())
}
