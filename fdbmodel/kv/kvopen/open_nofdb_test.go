//go:build !fdb

package kvopen_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

func TestOpenFDBWithoutTheDriver(t *testing.T) {
	t.Parallel()
	_, err := kvopen.Open(t.Context(), "fdb:fdb.cluster", kvopen.Options{})
	require.ErrorIs(t, err, kv.ErrNotBuilt)
	require.ErrorContains(t, err, "built without FoundationDB; rebuild with -tags fdb")
}
