package rest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
)

// TestABatchSaysWhatIsPaused pauses the function of a batch, then its queue as well.
func TestABatchSaysWhatIsPaused(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	f := newFixture(t, rest.Options{Client: client})
	work(t, client)
	var made struct {
		ID string `json:"request_id"`
	}
	f.send("POST", submitPath, `{"template":{"function_id":"go:upper"},"arguments":[["a"],["b"]]}`).Into(200, &made)
	require.NoError(t, f.head.store.SetReason(t.Context(), made.ID, "0 of 1 workers are running"))
	path := batchesPath + "/" + made.ID
	reason := func() string {
		var one struct{ Reason, Message string }
		f.send("GET", path, "").Into(200, &one)
		require.Contains(t, one.Message, one.Reason)
		var list struct{ Batches []struct{ Reason string } }
		f.send("GET", batchesPath, "").Into(200, &list)
		require.Equal(t, one.Reason, list.Batches[0].Reason)
		var legacy struct{ Message string }
		f.send("POST", resultPath, `{"id":"`+made.ID+`"}`).Into(200, &legacy)
		require.Equal(t, one.Message, legacy.Message)
		return one.Reason
	}
	require.Equal(t, "0 of 1 workers are running", reason())
	_, err := client.Pause(t.Context(), "function", "go:other", "")
	require.NoError(t, err)
	require.Equal(t, "0 of 1 workers are running", reason())
	p, err := client.Pause(t.Context(), "function", "go:upper", "a fault")
	require.NoError(t, err)
	require.Equal(t, "the function go:upper has been paused since "+p.At.UTC().Format(time.RFC3339)+
		" (a fault): futura resume function go:upper ends that; 0 of 1 workers are running", reason())
	_, err = client.Resume(t.Context(), "function", "go:upper")
	require.NoError(t, err)
	_, err = client.Pause(t.Context(), "queue", "default", "")
	require.NoError(t, err)
	require.Contains(t, reason(), "futura resume queue default ends that")
	f.run(made.ID, 2)
	require.Empty(t, reason())
}
