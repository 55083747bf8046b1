package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestShardsByDefault checks that a store that one process opens keeps strict
// order, and that others spread their load.
func TestShardsByDefault(t *testing.T) {
	t.Parallel()
	db := modeltest.OpenMemory(t)
	one, err := fdbmodel.Open(t.Context(), db, "one", fdbmodel.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, one.Config().Shards)
	many, err := fdbmodel.Open(t.Context(), struct{ kv.Database }{db}, "many", fdbmodel.Options{})
	require.NoError(t, err)
	require.Equal(t, layout.DefaultShards, many.Config().Shards)
}
