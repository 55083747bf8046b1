//go:build fdb

package kvopen_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

func TestOpenFDBWithoutClusterFile(t *testing.T) {
	t.Parallel()
	_, err := kvopen.Open(t.Context(), "fdb:no/such/file", kvopen.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "no/such/file")
}
