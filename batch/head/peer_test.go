package head_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// TestARollCallTellsPeers registers a worker for a peer beside one of the cluster,
// which can't take a peer's name.
func TestARollCallTellsPeers(t *testing.T) {
	t.Parallel()
	cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "batches", fdbmodel.Options{})
	require.NoError(t, err)
	const peer = "12D3KooWNbW985igznpKwHAf1pxByyNeipQFtEFLynNrWhsEHkL9"
	var ids []layout.WorkerID
	for slots, labels := range []map[string]string{nil, {layout.LabelPeer: peer}} {
		registered, err := cluster.Register(t.Context(), layout.WorkerInfo{
			Queues: []string{layout.DefaultQueue}, Functions: []string{"go:run"}, Labels: labels,
			Capacity: layout.Resources{Slots: 2 - slots},
		})
		require.NoError(t, err)
		ids = append(ids, registered.ID())
	}
	found, err := head.NewCluster(cluster).RollCall(t.Context(), &batch.Template{FunctionID: "go:run"})
	require.NoError(t, err)
	require.ElementsMatch(t, []head.Candidate{
		{Worker: string(ids[0]), Free: 2, Slots: 2}, {Worker: string(ids[1]), Peer: peer, Free: 1, Slots: 1},
	}, found)
	_, err = workers.FromCluster(cluster, workers.Options{Labels: map[string]string{layout.LabelPeer: peer}})
	require.ErrorIs(t, err, layout.ErrBadName)
}

// TestRollCallsForLabelsAreTold has a dispatcher tell which labels batches ask for.
func TestRollCallsForLabelsAreTold(t *testing.T) {
	t.Parallel()
	cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "batches", fdbmodel.Options{})
	require.NoError(t, err)
	dispatcher := head.NewCluster(cluster)
	template := &batch.Template{FunctionID: "go:run", Config: batch.Config{Labels: map[string]string{"zone": "eu"}}}
	_, err = dispatcher.RollCall(t.Context(), template)
	require.NoError(t, err, "nobody has to be told")
	var told []map[string]string
	dispatcher.OnRollCall(func(function string, labels map[string]string) {
		require.Equal(t, "go:run", function)
		told = append(told, labels)
	})
	for _, t2 := range []*batch.Template{template, {FunctionID: "go:run"}} {
		_, err = dispatcher.RollCall(t.Context(), t2)
		require.NoError(t, err)
	}
	require.Equal(t, []map[string]string{{"zone": "eu"}}, told)
}
