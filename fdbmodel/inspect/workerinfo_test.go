package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

func TestWorkerInfosOfSome(t *testing.T) {
	t.Parallel()
	cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "infos", fdbmodel.Options{})
	require.NoError(t, err)
	registered, err := cluster.Register(t.Context(), layout.WorkerInfo{
		Name: "one", Capacity: layout.Resources{Slots: 1}, Labels: map[string]string{layout.LabelPeer: "12D3KooW"},
	})
	require.NoError(t, err)
	infos, err := inspect.WorkerInfos(t.Context(), cluster, []layout.WorkerID{"0123456789abcdef", registered.ID()})
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Equal(t, "12D3KooW", infos[registered.ID()].Labels[layout.LabelPeer])
	require.Equal(t, registered.ID(), infos[registered.ID()].ID)
	infos, err = inspect.WorkerInfos(t.Context(), cluster, nil)
	require.NoError(t, err)
	require.Empty(t, infos)
}
