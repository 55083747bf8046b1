package workers

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers/objects"
)

// storeOf returns a keeper with a store of so many bytes in memory.
func storeOf(t *testing.T, memory int64) *keeper {
	store, err := objects.Open(objects.Options{Memory: memory})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &keeper{store: store, held: map[heldObject]holding{}, uses: map[objects.Hash]int{}}
}

// fill keeps an object of a size for a future.
func (k *keeper) fill(t *testing.T, id byte, size int) {
	_, err := k.keep(t.Context(), layout.ID{15: id}, bytes.Repeat([]byte{id}, size))
	require.NoError(t, err)
}

// TestRoomIsKeptForWhatIsClaimed fills a store of a megabyte with results of 200,000
// bytes: what is under way counts as if it were there. Full, the worker takes none
// for the stated time, then one at a time, and as many as fit once it has room.
func TestRoomIsKeptForWhatIsClaimed(t *testing.T) {
	t.Parallel()
	k, now := storeOf(t, 1<<20), time.UnixMilli(1_900_000_000_000)
	require.Equal(t, 8, k.allow(0, 8, now), "of an unknown size")
	k.fill(t, 1, 200_000)
	require.Equal(t, 4, k.allow(0, 8, now))
	require.True(t, k.room.lacking())
	require.Equal(t, 1, k.allow(3, 8, now))
	require.Equal(t, 1, k.allow(0, 1, now))
	require.False(t, k.room.lacking(), "it has room for all that it wants")
	for id := byte(2); id <= 5; id++ {
		require.Zero(t, k.allow(6-int(id), 8, now), "what is under way has the rest")
		k.fill(t, id, 200_000)
	}
	var beat layout.Heartbeat
	require.Zero(t, k.allow(0, 8, now))
	beat.Free.RAM = 1 << 20
	k.tell(&beat)
	require.True(t, beat.NoRoom)
	require.GreaterOrEqual(t, beat.Stored, int64(5*200_000))
	require.Less(t, beat.Room, int64(50_000))
	require.Equal(t, int64(1<<20)-beat.Stored, beat.Free.RAM, "what is stored in memory is not free")
	require.True(t, k.room.lacking())

	require.Zero(t, k.allow(0, 8, now.Add(fullPatience-1)))
	require.Equal(t, 1, k.allow(0, 8, now.Add(fullPatience)))
	require.Zero(t, k.allow(1, 8, now.Add(fullPatience)), "one is under way")
	require.Equal(t, 1, k.allow(0, 8, now.Add(fullPatience)), "it is over")

	var first []heldObject
	for key := range k.held {
		if key.id == (layout.ID{15: 1}) {
			first = append(first, key)
		}
	}
	k.forget(first, 10, now, func(heldObject) bool { return false })
	require.NoError(t, k.deleteUnused())
	require.Equal(t, 1, k.allow(0, 8, now.Add(fullPatience)))
	k.tell(&beat)
	require.False(t, beat.NoRoom)
	k.fill(t, 6, 200_000)
	require.Zero(t, k.allow(0, 8, now.Add(fullPatience)), "its patience begins again")
}

// TestClaimsLeaveRoomForObjects has a store with room for four more results, of which a worker has claimed two. What is
// stored in memory is not there for functions.
func TestClaimsLeaveRoomForObjects(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
	w, err := FromCluster(b.cluster, Options{Slots: 8})
	require.NoError(t, err)
	m := &membership{worker: w, kept: storeOf(t, 1<<20)}
	m.kept.fill(t, 1, 200_000)
	object, other := &job{membership: m}, &job{membership: m}
	object.future.Spec, other.future.Spec = &layout.Spec{AsObject: true}, &layout.Spec{}
	w.slots.queue = []*job{object, other}
	w.slots.running = map[*job]struct{}{{membership: m, future: object.future}: {}, other: {}}
	request := fdbmodel.ClaimRequest{Max: 8, Free: layout.Resources{RAM: 1 << 20}}
	m.fitStore(&request)
	require.Equal(t, 2, *request.Objects)
	require.EqualValues(t, 1<<20-m.kept.store.Stats().MemoryUsed, request.Free.RAM)
	require.True(t, w.slots.waiting)
	request = fdbmodel.ClaimRequest{Max: 2, Free: layout.Resources{RAM: 10}}
	w.slots.waiting = false
	m.fitStore(&request)
	require.Nil(t, request.Objects, "there is room for all")
	require.Zero(t, request.Free.RAM)
	require.False(t, w.slots.waiting)
}

// TestOneLargeResultIsNotExpectedForever has what no empty store could hold, and what
// is an exception, keep nothing away for good.
func TestOneLargeResultIsNotExpectedForever(t *testing.T) {
	t.Parallel()
	k, now := storeOf(t, 1<<20), time.UnixMilli(1_900_000_000_000)
	k.expect(2 << 20)
	require.Equal(t, 8, k.allow(0, 8, now), "it goes to the store of the cluster")
	k.expect(900_000)
	require.Equal(t, 1, k.allow(0, 8, now))
	for range 20 {
		k.expect(1000)
	}
	require.Equal(t, 8, k.allow(0, 8, now))
}

// TestObjectsBeyondTheMachine are warned of when the worker starts.
func TestObjectsBeyondTheMachine(t *testing.T) {
	t.Parallel()
	const warning = "objects may take more memory"
	if machineMemory() == 0 {
		t.Skip("the memory of this machine is not known")
	}
	b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
	for memory, warned := range map[int64]int{1 << 20: 0, machineMemory() + 1: 1} {
		var log lines
		w, err := FromCluster(b.cluster, Options{Seam: &seam.Worker{Manual: true}, Slots: 1,
			Objects: ObjectOptions{Memory: memory}, Logger: log.logger(slog.LevelWarn)})
		require.NoError(t, err)
		_, err = w.step(b.ctx, b.clock.Now())
		require.NoError(t, err)
		require.Len(t, log.about(t, warning), warned)
	}
}
