package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/pauses"
	"github.com/futura-run/futura/internal/storetest"
)

// crew registers workers.
func crew(s *modeltest.Stage, n int) (workers []*fdbmodel.Registration, beats []fdbmodel.Beat) {
	for i := range n {
		r, err := s.C.Register(s.Ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}})
		require.NoError(s.T, err)
		workers = append(workers, r)
		beats = append(beats, fdbmodel.Beat{Worker: r, Heartbeat: layout.Heartbeat{Running: i + 1}})
	}
	return workers, beats
}

// heartbeats returns the heartbeats in the store.
func heartbeats(s *modeltest.Stage) map[layout.WorkerID]layout.Heartbeat {
	members, err := s.C.Workers(s.Ctx)
	require.NoError(s.T, err)
	found := map[layout.WorkerID]layout.Heartbeat{}
	for _, m := range members {
		found[m.ID] = m.Heartbeat
	}
	return found
}

// cancelledOn has a worker hold a future whose cancel is requested.
func cancelledOn(s *modeltest.Stage, r *fdbmodel.Registration) layout.ID {
	id := s.Submit()
	require.Len(s.T, s.Claim(r), 1)
	_, _, err := s.C.Cancel(s.Ctx, id, "")
	require.NoError(s.T, err)
	return id
}

// TestHeartbeatsOfMany has one of several workers reaped, and two of them hold what is
// cancelled.
func TestHeartbeatsOfMany(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	workers, beats := crew(s, 5)
	first, last := cancelledOn(s, workers[0]), cancelledOn(s, workers[4])
	_, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:f", "")
	require.NoError(t, err)
	other, err := fdbmodel.Open(s.Ctx, s.C.Database(), s.C.Name(), fdbmodel.Options{})
	require.NoError(t, err)
	_, err = pauses.Of(other).Resume(s.Ctx, pause.Function, "go:f")
	require.NoError(t, err)
	forceReap(s, workers[2].ID())

	answers, err := s.C.HeartbeatMany(s.Ctx, beats)
	require.NoError(t, err)
	found := heartbeats(s)
	for i, a := range answers {
		if i == 2 {
			require.ErrorIs(t, a.Err, fdbmodel.ErrReaped)
			require.NotContains(t, found, workers[i].ID(), "nothing is written for the dead")
			continue
		}
		require.NoError(t, a.Err)
		require.EqualValues(t, 1, found[workers[i].ID()].Count)
		require.Equal(t, i+1, found[workers[i].ID()].Running)
		require.Equal(t, s.Clock.Now().UnixMilli(), found[workers[i].ID()].At)
	}
	require.Equal(t, []layout.ID{first}, answers[0].Cancelled)
	require.Empty(t, answers[1].Cancelled)
	require.Equal(t, []layout.ID{last}, answers[4].Cancelled)
	s.Submit()
	require.Len(t, s.Claim(workers[1]), 1, "they learn what is no longer paused")

	answers, err = s.C.HeartbeatMany(s.Ctx, beats)
	require.NoError(t, err)
	for i := range answers {
		require.Empty(t, answers[i].Cancelled, "a cancel is told once")
	}
	require.EqualValues(t, 2, heartbeats(s)[workers[0].ID()].Count)
}

func TestHeartbeatsOfTooMany(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	answers, err := s.C.HeartbeatMany(s.Ctx, nil)
	require.NoError(t, err)
	require.Empty(t, answers)
	beats := make([]fdbmodel.Beat, fdbmodel.MaxBeats+1)
	_, err = s.C.HeartbeatMany(s.Ctx, beats)
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	other, err := fdbmodel.Open(s.Ctx, storetest.New(t), "other", fdbmodel.Options{})
	require.NoError(t, err)
	_, err = other.HeartbeatMany(s.Ctx, []fdbmodel.Beat{{Worker: s.Worker}})
	require.ErrorContains(t, err, "another Cluster")
	_, beats = crew(s, fdbmodel.MaxBeats)
	answers, err = s.C.HeartbeatMany(s.Ctx, beats)
	require.NoError(t, err)
	require.Len(t, answers, fdbmodel.MaxBeats)
	for i := range answers {
		require.NoError(t, answers[i].Err)
	}
}

// TestUnknownHeartbeatsOfMany makes the commit end with an unknown result: no cancel is
// missed, and the dead stay dead.
func TestUnknownHeartbeatsOfMany(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-beat of many": func(s *modeltest.Stage, strike func()) {
			workers, beats := crew(s, 3)
			ids := []layout.ID{cancelledOn(s, workers[0]), {}, cancelledOn(s, workers[2])}
			forceReap(s, workers[1].ID())
			strike()
			answers, err := s.C.HeartbeatMany(s.Ctx, beats)
			require.NoError(s.T, err)
			for _, i := range []int{0, 2} {
				require.NoError(s.T, answers[i].Err)
				require.Contains(s.T, answers[i].Cancelled, ids[i])
				require.EqualValues(s.T, 1, heartbeats(s)[workers[i].ID()].Count)
			}
			require.ErrorIs(s.T, answers[1].Err, fdbmodel.ErrReaped)
			s.Faults.Flush()
			require.NotContains(s.T, heartbeats(s), workers[1].ID())
		},
	})
}

// TestAHeartbeatReadsCancelsAlone has a worker beat that is also assigned a future, and reads both
// together.
func TestAHeartbeatReadsCancelsAlone(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	workers, beats := crew(s, 1)
	cancelled := cancelledOn(s, workers[0])
	id := s.Submit()
	_, err := s.C.Assign(s.Ctx, fdbmodel.Assignment{To: workers[0].ID()}, []layout.ID{id})
	require.NoError(t, err)
	answers, err := s.C.HeartbeatMany(s.Ctx, beats)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.BeatAnswer{{Cancelled: []layout.ID{cancelled}}}, answers)
	answers, err = s.C.HeartbeatMany(s.Ctx, beats)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.BeatAnswer{{}}, answers)
	require.Equal(t, id, s.Claim(workers[0])[0].ID)
}

// TestABadKeyHidesNoWorker puts one before the keys of all.
func TestABadKeyHidesNoWorker(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	before, err := s.C.Workers(s.Ctx)
	require.NoError(t, err)
	require.Len(t, before, 1)
	for shard := range s.C.Config().Shards {
		s.Store(append(s.C.Keys().Shard(shard, layout.SubWorkers), 0x01), []byte("bad"))
	}
	after, err := s.C.Workers(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
