package rest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestExecutionsGoToWorkersThatHaveNone sends one execution after the other to two of four workers, while none
// of them ends and no worker says what it has.
func TestExecutionsGoToWorkersThatHaveNone(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	h := head.New(head.Options{Store: memstore.New(), Dispatcher: head.NewCluster(client.Cluster())})
	f := newFixture(t, rest.Options{Client: client, Choose: h.Choose})
	crew := make([]*fdbmodel.Registration, 4)
	for i := range crew {
		var err error
		crew[i], err = client.Cluster().Register(t.Context(), layout.WorkerInfo{
			Queues: []string{layout.DefaultQueue}, Functions: []string{"go:vote"}, Capacity: layout.Resources{Slots: 2},
		})
		require.NoError(t, err)
	}
	answers := make(chan executed)
	claimed := map[*fdbmodel.Registration][]fdbmodel.ClaimedFuture{}
	for n := 1; n <= 2; n++ {
		go func() {
			var ran executed
			f.send("POST", executePath, vote(2, "")).Into(200, &ran)
			answers <- ran
		}()
		all := 0
		require.Eventually(t, func() bool {
			for _, w := range crew {
				got, err := w.Claim(context.Background(), fdbmodel.ClaimRequest{Free: w.Info().Capacity, Max: 2})
				require.NoError(t, err)
				claimed[w] = append(claimed[w], got.Futures...)
				all += len(got.Futures)
			}
			return all == 2
		}, time.Minute, 5*time.Millisecond)
	}
	for _, w := range crew {
		require.Len(t, claimed[w], 1)
		_, err := w.Finish(t.Context(), []fdbmodel.Completion{{Future: &claimed[w][0], Result: &layout.Result{}}})
		require.NoError(t, err)
	}
	for range 2 {
		ran := <-answers
		require.Equal(t, "200", ran.Code, ran.Message)
	}
	// What has been answered counts no longer.
	found, err := head.NewCluster(client.Cluster()).RollCall(t.Context(), &batch.Template{FunctionID: "go:vote"})
	require.NoError(t, err)
	found, release := h.Choose(found, 4, "id")
	release()
	for _, w := range found {
		require.Equal(t, 2, w.Free)
	}
}
