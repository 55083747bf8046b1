package futures_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/storetest"
)

// TestAwaitSaysThatTheStoreIsSilent where it can't say what a future waits for.
func TestAwaitSaysThatTheStoreIsSilent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		db := storetest.NewSilent(embedded.OpenMemory(embedded.Options{}))
		c, err := futures.New(t.Context(), db, futures.Options{})
		require.NoError(t, err)
		f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
		require.NoError(t, err)
		ended, end := context.WithCancel(t.Context())
		end()
		db.Leave()
		_, err = f.Await(ended)
		db.Return()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "the store has not said in 2s what it waits for")
		require.NoError(t, errors.Join(c.Close(t.Context()), db.Close()))
	})
}
