package workers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
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
