package metering_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

const day = 24 * time.Hour

// use returns what was used on all days around the clock's.
func use(s *modeltest.Stage) (all []metering.Use) {
	now := s.Clock.Now()
	err := metering.Read(s.Ctx, s.C, now.Add(-300*day), now.Add(day), func(u *metering.Use) error {
		all = append(all, *u)
		return nil
	})
	require.NoError(s.T, err)
	return all
}

// beat writes a heartbeat.
func beat(s *modeltest.Stage, r *fdbmodel.Registration) {
	_, err := r.Heartbeat(s.Ctx, layout.Heartbeat{})
	require.NoError(s.T, err)
}

// meteredKeys counts the records of what was used.
func meteredKeys(s *modeltest.Stage) int {
	n := 0
	err := s.C.View(s.Ctx, func(tx kv.Attempt) error {
		page, err := tx.GetRange(kv.Prefix(s.C.Keys().Global(meter.SubMetered)), kv.RangeOptions{Limit: 1000}).Wait(s.Ctx)
		n = len(page.Items)
		return err
	})
	require.NoError(s.T, err)
	return n
}

// named registers a worker.
func named(s *modeltest.Stage, name string, labels map[string]string) *fdbmodel.Registration {
	r, err := s.C.Register(s.Ctx, layout.WorkerInfo{Name: name, Labels: labels, Functions: []string{"go:f"},
		Capacity: layout.Resources{Slots: 8}})
	require.NoError(s.T, err)
	return r
}

// TestUseIsMetered ends attempts in every way.
func TestUseIsMetered(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	peer := named(s, "ignored", map[string]string{layout.LabelPeer: "12D3"})
	for range 5 {
		s.Submit(func(sub *fdbmodel.Submission) {
			sub.Args, sub.Spec.MaxRetries = []byte("thr"), 0
			sub.Spec.Argv = []string{"e", "e"}
		})
	}
	claimed := s.Claim(peer)
	require.Len(t, claimed, 5)
	usage := &layout.Usage{CPUUser: 2 * time.Second, CPUSys: time.Second, Memory: 9}
	s.Finish(peer, fdbmodel.Completion{Future: &claimed[0], RunTime: time.Second,
		Result: &layout.Result{Value: []byte("ab"), Size: 2, Stderr: []byte("e"), Usage: usage}})
	s.Finish(peer, fdbmodel.Completion{Future: &claimed[1], RunTime: time.Minute,
		Exception: &layout.Exception{Kind: layout.KindExit, Stdout: []byte("o"), Stderr: []byte("e")}})
	s.Finish(peer, fdbmodel.Completion{Future: &claimed[2], RunTime: time.Hour, Relinquish: true})
	require.Empty(t, use(s), "it is in memory until the heartbeat")
	beat(s, peer)
	want := metering.Use{Day: layout.Day(s.Clock.Now()), Kind: meter.Peer, Name: "12D3"}
	want.Metered = meter.Metered{
		Items: 1, Failed: 1, RunTime: time.Minute + time.Second, CPU: 3 * time.Second, In: 10, Out: 5, Memory: 9,
	}
	require.Equal(t, []metering.Use{want}, use(s))

	s.Clock.Advance(day)
	s.Finish(peer, fdbmodel.Completion{Future: &claimed[3], Result: &layout.Result{Size: 3}, RunTime: -1})
	_, err := s.C.ForceReap(s.Ctx, peer.ID())
	require.NoError(t, err)
	outcome := s.Finish(peer, fdbmodel.Completion{Future: &claimed[4], Result: &layout.Result{}})
	require.Equal(t, fdbmodel.Lost, outcome)
	_, err = peer.Heartbeat(s.Ctx, layout.Heartbeat{})
	require.ErrorIs(t, err, fdbmodel.ErrReaped)
	require.NoError(t, peer.Leave(s.Ctx))
	require.Equal(t, []metering.Use{want}, use(s), "what a dead worker had not told is lost")
}

// TestUseOfSeveralStarts adds up starts of workers, by name and day.
func TestUseOfSeveralStarts(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	one, twin, other := named(s, "a", nil), named(s, "a", nil), named(s, "", nil)
	for _, r := range []*fdbmodel.Registration{one, twin, other} {
		r.Meter(meter.Metered{Items: 1, Memory: 5})
	}
	beat(s, one)
	one.Meter(meter.Metered{Items: 2, Memory: 3})
	s.Clock.Advance(day)
	one.Meter(meter.Metered{Items: 4})
	s.Clock.Advance(-day)
	one.Meter(meter.Metered{Failed: 1})
	for _, r := range []*fdbmodel.Registration{one, twin} {
		require.NoError(t, r.Leave(s.Ctx))
	}
	beat(s, other)
	today, next := layout.Day(s.Clock.Now()), layout.Day(s.Clock.Now().Add(day))
	require.Equal(t, []metering.Use{
		{Day: today, Kind: meter.Worker, Name: "a", Metered: meter.Metered{Items: 4, Failed: 1, Memory: 5}},
		{Day: today, Kind: meter.Worker, Name: meter.Unnamed, Metered: meter.Metered{Items: 1, Memory: 5}},
		{Day: next, Kind: meter.Worker, Name: "a", Metered: meter.Metered{Items: 4}},
	}, use(s))
}

// TestFoldingKeepsUse folds the records of starts that have ended, again and again.
func TestFoldingKeepsUse(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	running := named(s, "a", nil)
	running.Meter(meter.Metered{Items: 1})
	beat(s, running)
	for i := range 150 {
		r := named(s, "a", nil)
		r.Meter(meter.Metered{Items: 1, Memory: int64(i)})
		require.NoError(t, r.Leave(s.Ctx))
	}
	single := named(s, "b", nil)
	single.Meter(meter.Metered{Items: 7})
	require.NoError(t, single.Leave(s.Ctx))
	want := use(s)
	require.EqualValues(t, 151, want[0].Items)
	require.NoError(t, metering.Fold(s.Ctx, s.C))
	require.Equal(t, 152, meteredKeys(s), "today is not over")
	s.Clock.Advance(day)
	for range 2 {
		require.NoError(t, metering.Fold(s.Ctx, s.C))
		require.Equal(t, 3, meteredKeys(s), "what ended, and what is running")
		require.Equal(t, want, use(s))
	}
	s.Clock.Advance(-day)
	running.Meter(meter.Metered{Items: 2}) // by its slow clock
	require.NoError(t, running.Leave(s.Ctx))
	s.Clock.Advance(day)
	want[0].Items += 2
	require.Equal(t, want, use(s))
	require.NoError(t, metering.Fold(s.Ctx, s.C))
	require.Equal(t, 2, meteredKeys(s))
	require.Equal(t, want, use(s))
	s.Clock.Advance((metering.MaxDays - 1) * day)
	require.NoError(t, metering.Fold(s.Ctx, s.C))
	require.Equal(t, 2, meteredKeys(s))
	s.Clock.Advance(day)
	require.NoError(t, metering.Fold(s.Ctx, s.C))
	require.Zero(t, meteredKeys(s))
}

// TestUnknownUse makes what writes it end with an unknown result: nothing counts twice,
// and nothing is missed.
func TestUnknownUse(t *testing.T) {
	t.Parallel()
	plus := func(r *fdbmodel.Registration) { r.Meter(meter.Metered{Items: 1, Out: 10}) }
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-beat": func(s *modeltest.Stage, strike func()) {
			r := named(s, "a", nil)
			plus(r)
			strike()
			beat(s, r)
			plus(r)
			beat(s, r)
			s.Faults.Flush()
			require.EqualValues(s.T, 2, use(s)[0].Items)
			beat(s, r)
			require.EqualValues(s.T, 2, use(s)[0].Items)
		},
		"futura-leave": func(s *modeltest.Stage, strike func()) {
			r := named(s, "a", nil)
			plus(r)
			beat(s, r)
			plus(r)
			strike()
			require.NoError(s.T, r.Leave(s.Ctx))
			s.Faults.Flush()
			require.EqualValues(s.T, 2, use(s)[0].Items)
		},
		"futura-metered": func(s *modeltest.Stage, strike func()) {
			for range 3 {
				r := named(s, "a", nil)
				plus(r)
				require.NoError(s.T, r.Leave(s.Ctx))
			}
			s.Clock.Advance(day)
			strike()
			require.NoError(s.T, metering.Fold(s.Ctx, s.C))
			s.Faults.Flush()
			require.Equal(s.T, 1, meteredKeys(s))
			require.EqualValues(s.T, 3, use(s)[0].Items)
		},
	})
}

func TestDaysOfUse(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Worker.Meter(meter.Metered{Items: 1})
	beat(s, s.Worker)
	now := s.Clock.Now()
	stop := errors.New("stop")
	fail := func(*metering.Use) error { return stop }
	require.ErrorIs(t, metering.Read(s.Ctx, s.C, now, now, fail), stop)
	require.NoError(t, metering.Read(s.Ctx, s.C, now.Add(day), now.Add(day), fail))
	require.NoError(t, metering.Read(s.Ctx, s.C, now.Add(-day), now.Add(-day), fail))
	require.ErrorIs(t, metering.Read(s.Ctx, s.C, now.Add(day), now, fail), layout.ErrBadSpec)
	require.ErrorIs(t, metering.Read(s.Ctx, s.C, now.Add(-metering.MaxDays*day), now, fail), layout.ErrBadSpec)
	require.ErrorIs(t, metering.Read(s.Ctx, s.C, now.Add(-(metering.MaxDays-1)*day), now, fail), stop)
}

// TestAnUnreadableRecordKeepsNoOthersFromBeingAddedUp has a newer version of a worker write one, and a key that is
// none.
func TestAnUnreadableRecordKeepsNoOthersFromBeingAddedUp(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	today := layout.Day(s.Clock.Now())
	for range 2 {
		r := named(s, "w", nil)
		r.Meter(meter.Metered{Items: 1})
		require.NoError(t, r.Leave(s.Ctx))
	}
	newer := meter.MeteredKey{Day: today, Kind: meter.Worker, Name: "w", Membership: "newer"}
	s.Store(meter.Keys(s.C.Keys()).Metered(newer), []byte{layout.RecordVersion + 1})
	s.Store(append(meter.Keys(s.C.Keys()).MeteredOn(today), "damaged"...), nil)
	require.Equal(t, 4, meteredKeys(s))
	s.Clock.Advance(2 * day)
	require.NoError(t, metering.Fold(s.Ctx, s.C))
	require.Equal(t, 3, meteredKeys(s))
}

// TestUseWithoutWhatCantBeRead has one of two records be of a newer version.
func TestUseWithoutWhatCantBeRead(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keys, key := meter.Keys(s.C.Keys()), meter.MeteredKey{Day: layout.Day(s.Clock.Now()), Kind: meter.Worker, Name: "a"}
	s.Store(keys.Metered(key), []byte{layout.RecordVersion + 1, 0x80})
	key.Name = "b"
	s.Store(keys.Metered(key), layout.Encode(&meter.Metered{Items: 3}))
	var items []int64
	err := metering.Read(s.Ctx, s.C, s.Clock.Now(), s.Clock.Now(), func(u *metering.Use) error {
		items = append(items, u.Items)
		return nil
	})
	require.ErrorIs(t, err, layout.ErrNewerRecord, "the sums are too low")
	require.Equal(t, []int64{3}, items)
}
