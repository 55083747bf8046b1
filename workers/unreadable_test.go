package workers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
)

// TestAnUnreadableFutureCostsItsOwnObject damages the record of one future whose object a worker has, and the copy of
// another one: the others are swept, and handed over, and nothing of these is dropped.
func TestAnUnreadableFutureCostsItsOwnObject(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	reg := b.register()
	k, err := newKeeper(b.cluster, ObjectOptions{Memory: 8 << 20}, true)
	require.NoError(t, err)
	k.worker, k.reg = reg.ID(), reg
	defer func() { require.NoError(t, k.close()) }()
	ids, err := b.cluster.DrawIDs(4)
	require.NoError(t, err)
	hashes := make([]objects.Hash, len(ids))
	for i, id := range ids {
		object, size, _, err := k.Keep(b.ctx, id, strings.NewReader(strings.Repeat("x", i+1)), int64(i+1))
		require.NoError(t, err)
		hashes[i], err = objects.ParseHash(object)
		require.NoError(t, err)
		_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: id, Object: object, Size: size, Holder: reg.ID()})
		require.NoError(t, err)
	}
	b.clock.Advance(putGrace)
	require.NoError(t, k.sweep(b.ctx))
	keys := b.cluster.Keys()
	_, err = b.cluster.Transact(b.ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(keys.State(ids[0], layout.StateResult), []byte("damaged"))
		page, err := tx.GetRange(kv.Prefix(keys.CopiesOf(ids[1])), kv.RangeOptions{}).Wait(b.ctx)
		if err == nil {
			tx.Set(page.Items[0].Key, []byte("damaged"))
		}
		return err
	})
	require.NoError(t, err)
	require.NoError(t, b.cluster.Discard(b.ctx, ids[2]))
	require.NoError(t, k.sweep(b.ctx))
	for i, stays := range []bool{true, true, false, true} {
		require.Equal(t, stays, k.store.Has(hashes[i]), i)
	}
	sole, err := k.soleObjects(b.ctx)
	require.ErrorIs(t, err, layout.ErrNewerRecord)
	require.ErrorContains(t, err, ids[0].String())
	require.ErrorContains(t, err, ids[1].String())
	require.Len(t, sole, 1)
	require.Equal(t, ids[3], sole[0].ID)
}
