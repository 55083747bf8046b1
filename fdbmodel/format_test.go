package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestOtherFormatsAreRefused opens clusters of an older and of a newer keyspace.
func TestOtherFormatsAreRefused(t *testing.T) {
	t.Parallel()
	formats := map[int]error{
		1: layout.ErrOldFormat, 2: layout.ErrOldFormat, layout.KeyspaceFormat + 1: layout.ErrNewerRecord,
	}
	for format, want := range formats {
		db := modeltest.OpenMemory(t)
		c, err := fdbmodel.Open(t.Context(), db, "c", fdbmodel.Options{})
		require.NoError(t, err)
		config := c.Config()
		config.Format = format
		_, err = kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
			tx.Set(c.Keys().Config(), layout.Encode(&config))
			return nil
		})
		require.NoError(t, err)
		_, err = fdbmodel.Open(t.Context(), db, "c", fdbmodel.Options{})
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, "this process reads 3")
	}
}
