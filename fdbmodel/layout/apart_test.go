package layout_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestApart(t *testing.T) {
	t.Parallel()
	source := layout.IdSource{Random: rand.Reader}
	// The order within a millisecond has room for 4,096; these go on in the next one.
	ids, err := source.Draw(time.UnixMilli(1_900_000_000_000), 4, 5000)
	require.NoError(t, err)
	for i := range ids[1:] {
		n, known := ids[i+1].Apart(ids[i])
		require.True(t, known)
		require.Equal(t, 1, n)
	}
	n, known := ids[4999].Apart(ids[0])
	require.True(t, known)
	require.Equal(t, 4999, n)
	n, known = layout.BatchItemID("b", 9).Apart(layout.BatchItemID("b", 2))
	require.True(t, known)
	require.Equal(t, 7, n)

	far, err := source.Draw(time.UnixMilli(4_000_000_000_000), 1, 1)
	require.NoError(t, err)
	near := ids[0]
	near[15] = far[0][15]
	n, known = far[0].Apart(near)
	require.True(t, known)
	require.Greater(t, n, 1<<30)

	elsewhere := ids[1]
	elsewhere[15]++
	for _, other := range []layout.ID{ids[0], ids[1], elsewhere, layout.KeyedID("c", "k"), layout.BatchItemID("b", 1)} {
		_, known := ids[0].Apart(other)
		require.False(t, known)
	}
}

func TestOtherEnd(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("c")
	id, ok := layout.OtherEnd(k.Dependant(layout.ID{1}, layout.ID{2}))
	require.True(t, ok)
	require.Equal(t, layout.ID{2}, id)
	for _, key := range [][]byte{nil, {0x30}, k.Idle("queue-with-a-long-name", "worker"), make([]byte, 40)} {
		_, ok := layout.OtherEnd(key)
		require.False(t, ok)
	}
}
