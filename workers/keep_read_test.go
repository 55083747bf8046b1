package workers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects"
)

// TestAnObjectOfAnotherSizeIsNotRead has a record say another size than that of the object.
func TestAnObjectOfAnotherSizeIsNotRead(t *testing.T) {
	t.Parallel()
	store, err := objects.Open(objects.Options{Memory: 1 << 20})
	require.NoError(t, err)
	k := &keeper{store: store}
	defer func() { require.NoError(t, k.close()) }()
	ref, err := store.PutBytes(t.Context(), []byte("value"), objects.PutOptions{})
	require.NoError(t, err)
	value, found := k.read(ref.Hash.String(), 5)
	require.True(t, found)
	require.Equal(t, "value", string(value))
	for _, size := range []int64{-1, 0, 3, 6, 1 << 62} {
		_, found := k.read(ref.Hash.String(), size)
		require.False(t, found, "%d", size)
	}
}
