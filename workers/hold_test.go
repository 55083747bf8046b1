package workers

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// TestHeldUntilItCounts has objects put for futures: those whose future never comes go
// after a while, those of a future stay until it goes, whatever else is put for it.
func TestHeldUntilItCounts(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	reg := b.register()
	k, err := newKeeper(b.cluster, ObjectOptions{Memory: 8 << 20}, true)
	require.NoError(t, err)
	k.worker = reg.ID()
	defer func() { require.NoError(t, k.close()) }()
	ids, err := b.cluster.DrawIDs(3)
	require.NoError(t, err)
	keep := func(id layout.ID, content string) objects.Hash {
		object, size, holder, err := k.Keep(b.ctx, id, strings.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		require.Equal(t, reg.ID(), holder)
		require.Equal(t, int64(len(content)), size)
		hash, err := objects.ParseHash(object)
		require.NoError(t, err)
		return hash
	}
	legit, never := keep(ids[0], "legit"), keep(ids[1], "never comes")
	_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: ids[0], Object: legit.String(), Size: 5, Holder: reg.ID()})
	require.NoError(t, err)
	// Somebody else puts something for the same future, and the same for no future.
	var owner peer.Owner
	copy(owner[:], ids[0][:])
	other, err := k.store.Put(b.ctx, strings.NewReader("other"), objects.PutOptions{
		Kept: func(ref objects.Ref) { k.holdPut(owner, ref) },
	})
	require.NoError(t, err)
	_, err = k.store.Put(b.ctx, bytes.NewReader([]byte("legit")), objects.PutOptions{
		Kept: func(ref objects.Ref) { k.holdPut(peer.Owner{}, ref) },
	})
	require.NoError(t, err)
	require.NoError(t, k.sweep(b.ctx))
	require.Equal(t, 3, k.store.Stats().Objects)

	brief := keep(ids[2], "brief")
	_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: ids[2], Object: brief.String(), Size: 5, Holder: reg.ID()})
	require.NoError(t, err)
	require.NoError(t, k.sweep(b.ctx))
	require.True(t, k.store.Has(brief))
	require.NoError(t, b.cluster.Discard(b.ctx, ids[2]))
	require.NoError(t, k.sweep(b.ctx))
	require.False(t, k.store.Has(brief), "its future was made, so that nothing is waited for")

	b.clock.Advance(putGrace)
	require.NoError(t, k.sweep(b.ctx))
	require.True(t, k.store.Has(legit))
	require.False(t, k.store.Has(never))
	require.False(t, k.store.Has(other.Hash))
	require.NoError(t, b.cluster.Discard(b.ctx, ids[0]))
	require.NoError(t, k.sweep(b.ctx))
	require.Zero(t, k.store.Stats().Objects)
	require.Zero(t, len(k.held)+len(k.uses))

	// What has no room is refused before it is read.
	large := strings.NewReader("large")
	_, _, _, err = k.Keep(b.ctx, ids[1], large, 9<<20)
	require.ErrorIs(t, err, objects.ErrFull)
	require.Equal(t, 5, large.Len())
}

// TestArrivals takes a result, and is told what has arrived.
func TestArrivals(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	k, err := newKeeper(b.cluster, ObjectOptions{Memory: 16 << 20}, true)
	require.NoError(t, err)
	defer func() { require.NoError(t, k.close()) }()
	content := bytes.Repeat([]byte{7}, objects.PieceSize+1)
	ids, err := b.cluster.DrawIDs(1)
	require.NoError(t, err)
	_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: ids[0], Bytes: content})
	require.NoError(t, err)
	var pieces []objects.Hash
	for piece := range slices.Chunk(content, objects.PieceSize) {
		pieces = append(pieces, objects.HashPiece(piece))
	}
	row, ref := b.row(ids[0]), objects.RefOf(int64(len(content)), pieces)
	var arrived []int64
	require.NoError(t, k.fetch(b.ctx, &row, ref.Hash, func(n int64) { arrived = append(arrived, n) }))
	require.Equal(t, []int64{int64(len(content))}, arrived)
	require.True(t, k.store.Has(ref.Hash))
}

// slowHolder has the objects of another worker, and calls meanwhile before it delivers one.
type slowHolder struct {
	value     string
	meanwhile func()
}

// OpenObject implements results.ObjectReader.
func (h *slowHolder) OpenObject(context.Context, string, int64, *results.Copy) (results.OpenObject, error) {
	return h, nil
}

// ReadAt implements results.OpenObject.
func (h *slowHolder) ReadAt(_ context.Context, p []byte, offset int64) error {
	h.meanwhile()
	copy(p, h.value[offset:])
	return nil
}

// Close implements results.OpenObject.
func (*slowHolder) Close() {}

// TestATakeMayTakeLong has an object arrive after what holds it for a while has ended: it is
// held as any other, goes with its future, and is handed over until then.
func TestATakeMayTakeLong(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	first, second := b.register(), b.register()
	k, err := newKeeper(b.cluster, ObjectOptions{Memory: 8 << 20}, true)
	require.NoError(t, err)
	k.worker, k.reg = second.ID(), second
	defer func() { require.NoError(t, k.close()) }()
	ids, err := b.cluster.DrawIDs(1)
	require.NoError(t, err)
	ref := objects.RefOf(4, []objects.Hash{objects.HashPiece([]byte("slow"))})
	_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: ids[0], Object: ref.Hash.String(), Size: 4,
		Holder: first.ID()})
	require.NoError(t, err)
	results.Of(b.cluster).OfferReader(&slowHolder{"slow", func() {
		b.clock.Advance(putGrace)
		require.NoError(t, k.sweep(b.ctx))
	}})
	var owner peer.Owner
	copy(owner[:], ids[0][:])
	require.NoError(t, k.take(b.ctx, owner, peer.TakeOptions{Alone: true, Arrived: func(int64) {}}))
	require.NoError(t, k.sweep(b.ctx))
	require.True(t, k.store.Has(ref.Hash))
	sole, err := k.soleObjects(b.ctx)
	require.NoError(t, err)
	require.Len(t, sole, 1)
	require.NoError(t, b.cluster.Discard(b.ctx, ids[0]))
	require.NoError(t, k.sweep(b.ctx))
	require.False(t, k.store.Has(ref.Hash))
}
