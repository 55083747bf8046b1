package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers/objects/held"
)

// TestHandoverGoesOn hands over to two holders: a future that was removed is skipped, one
// that a holder has no room for goes to the other, and only a holder that fails drops out.
func TestHandoverGoesOn(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	reg := b.register()
	k := &keeper{cluster: b.cluster, worker: reg.ID()}
	ids, err := b.cluster.DrawIDs(6)
	require.NoError(t, err)
	var rows []layout.Row
	for _, id := range ids {
		_, err := results.Of(b.cluster).Put(b.ctx, results.Value{ID: id, Object: "o", Size: 10, Holder: reg.ID()})
		require.NoError(t, err)
		rows = append(rows, b.row(id))
	}
	deleted := ids[0]
	require.NoError(t, b.cluster.Discard(b.ctx, deleted))
	broken := errors.New("broken")
	var asked []string
	take := func(to *held.Holder, id layout.ID) error {
		switch asked = append(asked, fmt.Sprintf("%s%d", to.Worker, at(ids, id))); {
		case id == deleted, id == ids[1]:
			return fdbmodel.ErrNotFound
		case id == ids[2] && to.Worker == "a":
			return held.ErrNoHolder
		case id == ids[4] && to.Worker == "a":
			return broken
		}
		return nil
	}
	holders := []held.Holder{{Worker: "a", Room: 100}, {Worker: "b", Room: 35}}
	moved, left, err := k.moveTo(b.ctx, holders, rows, take)
	require.Equal(t, []string{"a0", "a1", "b1", "a2", "b2", "a3", "a4", "b4", "b5"}, asked)
	require.Equal(t, 4, moved)
	require.Len(t, left, 1)
	require.Equal(t, ids[1], left[0].ID, "it is there, and nobody could get it")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	moved, left, err = k.moveTo(b.ctx, []held.Holder{{Worker: "c", Room: 9}}, rows[3:4], take)
	require.Zero(t, moved)
	require.Len(t, left, 1)
	require.ErrorIs(t, err, held.ErrNoHolder)
	require.ErrorContains(t, err, "10 bytes")
}

func at(ids []layout.ID, id layout.ID) int {
	for i := range ids {
		if ids[i] == id {
			return i
		}
	}
	return -1
}

// TestAllWithACopyStop has two workers with a copy of a result stop at the same time: one that
// stays takes it.
func TestAllWithACopyStop(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	reader := seamReader{}
	results.Of(b.cluster).OfferReader(reader)
	var workers []*Worker
	var seams []*seam.Worker
	for range 3 {
		s := &seam.Worker{Manual: true, RoomOf: func(worker string) int64 {
			free, _ := reader[layout.WorkerID(worker)].Room()
			return free
		}, Give: func(ctx context.Context, worker string, id [16]byte, alone bool) error {
			return reader[layout.WorkerID(worker)].Take(ctx, id, alone)
		}}
		w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: s, Objects: ObjectOptions{Memory: 1 << 20, Above: -1}})
		require.NoError(t, err)
		_, err = s.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
		reader[w.ID()], workers, seams = s, append(workers, w), append(seams, s)
	}
	put, stays := b.putWith(seams[0], "put"), workers[2].ID()
	require.NoError(t, seams[1].Take(b.ctx, put, false))
	for _, w := range workers[:2] {
		require.NoError(t, results.Of(b.cluster).StopHolding(b.ctx, w.ID()))
	}
	for _, w := range workers[:2] {
		sole, err := w.keeping().kept.soleObjects(b.ctx)
		require.NoError(t, err)
		require.Len(t, sole, 1, "the other one goes as well")
	}
	for _, s := range seams[:2] {
		require.NoError(t, s.Leave(b.ctx))
	}
	copies, err := results.Of(b.cluster).Copies(b.ctx, put)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.Equal(t, stays, copies[0].Worker)
	require.NoError(t, seams[2].Leave(b.ctx))
}
