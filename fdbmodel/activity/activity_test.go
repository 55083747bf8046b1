package activity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// read returns what happened within the last two hours, by minute.
func read(s *modeltest.Stage) *activity.Series { return readBy(s, time.Minute, activity.MinutesFor) }

func readBy(s *modeltest.Stage, step, span time.Duration) *activity.Series {
	end := s.Clock.Now().Truncate(step).Add(step)
	series, err := activity.Read(s.Ctx, s.C, end.Add(-span), end, step)
	require.NoError(s.T, err)
	return series
}

// beat writes a heartbeat.
func beat(s *modeltest.Stage, r *fdbmodel.Registration) {
	_, err := r.Heartbeat(s.Ctx, layout.Heartbeat{})
	require.NoError(s.T, err)
}

func keep(s *modeltest.Stage, k *activity.Keeper) {
	next, err := k.Keep(s.Ctx, s.C)
	require.NoError(s.T, err)
	require.Equal(s.T, s.Clock.Now().Truncate(time.Minute).Add(time.Minute), next)
}

// records returns the keys of a step, without those of records that have counts alone.
func records(s *modeltest.Stage, step string) (found []meter.ActivityKey) {
	keys := s.C.Keys()
	err := s.C.EachKey(s.Ctx, kv.Prefix(meter.Keys(keys).ActivityOf(step)), func(item kv.KeyValue) error {
		key, err := meter.Keys(keys).ParseActivity(item.Key)
		require.NoError(s.T, err)
		var a meter.Activity
		require.NoError(s.T, layout.Decode(item.Key, item.Value, &a))
		if len(a.Pairs) > 0 {
			found = append(found, key)
		}
		return nil
	})
	require.NoError(s.T, err)
	return found
}

func worker(s *modeltest.Stage) *fdbmodel.Registration {
	r, err := s.C.Register(s.Ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}})
	require.NoError(s.T, err)
	return r
}

// plus counts an end.
func plus(r *fdbmodel.Registration) {
	r.Count(meter.Ended{Function: "go:f", Queue: "q", Succeeded: true, Run: time.Second, Wait: -1})
}

// succeeded returns how many futures have succeeded within the last week.
func succeeded(s *modeltest.Stage) (n int64) {
	for _, p := range readBy(s, time.Hour, 7*24*time.Hour).Pairs {
		n += p.Succeeded
	}
	return n
}

// TestEndsAreCounted ends attempts in every way.
func TestEndsAreCounted(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for i := range 7 {
		s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = min(i, 1) })
	}
	s.Clock.Advance(3 * time.Second)
	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 7)
	began := s.Clock.Now()
	s.Clock.Advance(10 * time.Minute)
	ended := meter.MinuteOf(s.Clock.Now())
	failed := &layout.Exception{Kind: layout.KindError}
	var again []*fdbmodel.ClaimedFuture
	for i := range claimed {
		c := fdbmodel.Completion{Future: &claimed[i], Started: began, RunTime: 5 * time.Millisecond, Exception: failed}
		switch retries := claimed[i].Spec.MaxRetries; {
		case retries == 0: // fails for good
		case len(again) < 2:
			again = append(again, &claimed[i])
			c.RetryIn = new(time.Duration)
		case len(again) == 2:
			again = append(again, &claimed[i])
			c.Exception, c.Relinquish = nil, true
		default:
			c.Exception, c.Result, c.RunTime = nil, &layout.Result{}, 2*time.Hour
		}
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, c))
	}
	twice := fdbmodel.Completion{Future: &claimed[0], Result: &layout.Result{}}
	require.Equal(t, fdbmodel.Lost, s.Finish(s.Worker, twice))
	require.Empty(t, read(s).Pairs, "it is in memory until the heartbeat")
	beat(s, s.Worker)
	want := meter.Pair{
		Function: "go:f", Queue: layout.DefaultQueue, Succeeded: 3, FailedAttempts: 3, Failed: 1,
		RunTime: 6*time.Hour + 15*time.Millisecond,
		Runs:    append([]int64{0, 0, 0, 3}, append(make([]int64, 19), 3)...),
		Waits:   []int64{11: 0, 12: 6},
	}
	series := read(s)
	require.Equal(t, []meter.Pair{want}, series.Pairs)
	for _, p := range series.Points {
		require.Equal(t, p.At.Unix() == ended, p.Succeeded == 3 && p.FailedAttempts == 3 && p.Failed == 1)
		require.Nil(t, p.Counts, "the janitor has not counted")
	}

	s.Clock.Advance(time.Minute)
	left := s.Claim(s.Worker)
	require.Len(t, left, 3)
	cancelled := false
	for i := range left {
		c := fdbmodel.Completion{Future: &left[i], Started: s.Clock.Now(), Result: &layout.Result{}}
		if left[i].Attempt() == 2 && !cancelled {
			_, _, err := s.C.Cancel(s.Ctx, left[i].ID, "")
			require.NoError(t, err)
			c.Result, c.Relinquish, cancelled = nil, true, true
		}
		s.Finish(s.Worker, c)
	}
	require.NoError(t, s.Worker.Leave(s.Ctx))
	got, waits := read(s).Pairs[0], int64(0)
	require.Equal(t, []int64{5, 3, 1}, []int64{got.Succeeded, got.FailedAttempts, got.Failed}, "a cancel is no failure")
	for _, n := range got.Waits {
		waits += n
	}
	require.EqualValues(t, 7, waits, "each future has waited once for its first attempt")
}

// TestMinutesAreAddedUp keeps the records of starts of workers, some of which have other
// clocks, or have ended.
func TestMinutesAreAddedUp(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var k activity.Keeper
	begin := s.Clock.Now()
	for range 150 {
		r := worker(s)
		plus(r)
		require.NoError(t, r.Leave(s.Ctx))
	}
	running, silent := worker(s), worker(s)
	plus(running)
	plus(silent)
	beat(s, running)
	beat(s, silent)
	keep(s, &k)
	require.Len(t, records(s, meter.Minutes), 152, "the minute is open")
	s.Clock.Advance(11 * time.Minute)
	for range 2 {
		keep(s, &k)
		require.Len(t, records(s, meter.Minutes), 3, "those whose last heartbeat is early are open")
		require.EqualValues(t, 152, succeeded(s))
	}
	s.Clock.Advance(-11 * time.Minute)
	plus(silent) // goes on in the same minute, by a clock that was set back
	beat(s, silent)
	require.EqualValues(t, 153, succeeded(s))
	s.Clock.Advance(12 * time.Minute)
	beat(s, running)
	keep(s, &k)
	require.Len(t, records(s, meter.Minutes), 2)
	_, err := s.C.ForceReap(s.Ctx, silent.ID())
	require.NoError(t, err)
	keep(s, &k)
	require.Equal(t, []meter.ActivityKey{{Step: meter.Minutes, At: meter.MinuteOf(begin)}},
		records(s, meter.Minutes))
	require.EqualValues(t, 153, succeeded(s))
	plus(running)
	beat(s, running)
	s.Clock.Advance(11 * time.Minute)
	beat(s, running)
	keep(s, &activity.Keeper{}) // of another process
	require.Len(t, records(s, meter.Minutes), 2)
	require.EqualValues(t, 154, succeeded(s))
}

// TestAnUnreadableRecordStays has a newer version of a worker write one.
func TestAnUnreadableRecordStays(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	newer := meter.ActivityKey{Step: meter.Minutes, At: meter.MinuteOf(s.Clock.Now()), Membership: "newer"}
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(meter.Keys(s.C.Keys()).Activity(newer), []byte{layout.RecordVersion + 1})
		return nil
	})
	require.NoError(t, err)
	plus(s.Worker)
	require.NoError(t, s.Worker.Leave(s.Ctx))
	var k activity.Keeper
	for _, wait := range []time.Duration{11 * time.Minute, 4 * time.Hour} {
		s.Clock.Advance(wait)
		keep(s, &k)
		var left []meter.ActivityKey
		require.NoError(t, s.C.EachKey(s.Ctx, kv.Prefix(s.C.Keys().Global(meter.SubActivity)), func(i kv.KeyValue) error {
			key, err := meter.Keys(s.C.Keys()).ParseActivity(i.Key)
			if left = append(left, key); key == newer {
				return err
			}
			var a meter.Activity
			return layout.Decode(i.Key, i.Value, &a)
		}))
		require.Contains(t, left, newer)
		require.LessOrEqual(t, len(left), 4, "the newer one, the others, and counts")
	}
	series, err := activity.Read(s.Ctx, s.C, s.Clock.Now().Add(-24*time.Hour), s.Clock.Now(), time.Hour)
	require.NoError(t, err, "it is left out")
	require.EqualValues(t, 1, series.Pairs[0].Succeeded)
}

// TestAMalformedKeyKeepsNothingFromBeingAddedUp has a key among those of a minute that is none.
func TestAMalformedKeyKeepsNothingFromBeingAddedUp(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	malformed := append(meter.Keys(s.C.Keys()).ActivityFrom(meter.Minutes, 1), "damaged"...)
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(malformed, nil)
		return nil
	})
	require.NoError(t, err)
	plus(s.Worker)
	require.NoError(t, s.Worker.Leave(s.Ctx))
	s.Clock.Advance(4 * time.Hour)
	keep(s, &activity.Keeper{})
	series, err := activity.Read(s.Ctx, s.C, s.Clock.Now().Add(-24*time.Hour), s.Clock.Now(), time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 1, series.Pairs[0].Succeeded)
}

// TestWhatCannotBeWrittenIsForgotten has a worker without a store for longer than a minute is
// open.
func TestWhatCannotBeWrittenIsForgotten(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	plus(s.Worker)
	s.Clock.Advance(10*time.Minute - 1)
	plus(s.Worker)
	s.Clock.Advance(time.Minute)
	beat(s, s.Worker)
	require.EqualValues(t, 1, succeeded(s))
}

// TestMinutesBecomeHours keeps a cluster for nine days.
func TestMinutesBecomeHours(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var k activity.Keeper
	s.Clock.Advance(time.Hour - s.Clock.Now().Sub(s.Clock.Now().Truncate(time.Hour)))
	for range 4 * 60 {
		plus(s.Worker)
		beat(s, s.Worker)
		keep(s, &k)
		s.Clock.Advance(time.Minute)
	}
	keep(s, &k)
	require.Len(t, records(s, meter.Hours), 2)
	require.Len(t, records(s, meter.Minutes), 120)
	series := readBy(s, time.Hour, 4*time.Hour+time.Hour)
	for i, p := range series.Points {
		require.EqualValues(t, []int64{60, 60, 60, 60, 0}[i], p.Succeeded)
		require.NotNil(t, p.Counts)
	}
	require.EqualValues(t, 240, series.Pairs[0].Runs[10])
	require.Equal(t, 120*time.Second, read(s).Pairs[0].RunTime+time.Second, "by minute, of the last two hours")
	require.NoError(t, s.Worker.Leave(s.Ctx))
	s.Clock.Advance(3 * time.Hour)
	keep(s, &activity.Keeper{})
	require.Len(t, records(s, meter.Hours), 4)
	require.Empty(t, records(s, meter.Minutes))
	require.EqualValues(t, 240, succeeded(s))
	s.Clock.Advance(activity.HoursFor - 5*time.Hour)
	keep(s, &k)
	require.Len(t, records(s, meter.Hours), 2)
	s.Clock.Advance(3 * time.Hour)
	keep(s, &k)
	require.Empty(t, records(s, meter.Hours))
}

// TestFuturesAreCountedOnceAMinute counts those of many queues, from two processes.
func TestFuturesAreCountedOnceAMinute(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for i := range meter.MaxQueues + 5 {
		s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Queue = fmt.Sprintf("q%02d", i) })
	}
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Queue = "q54" })
	var one, other activity.Keeper
	keep(s, &one)
	s.Submit()
	keep(s, &one)
	counted := s.Clock.Now()
	s.Clock.Advance(time.Second)
	keep(s, &other)
	series := read(s)
	require.Len(t, series.Counts, meter.MaxQueues+1)
	require.Equal(t, meter.QueueCounts{Queue: meter.Other, Ready: 5}, series.Counts[0])
	require.Equal(t, meter.QueueCounts{Queue: "q54", Ready: 2}, series.Counts[meter.MaxQueues])
	require.True(t, series.CountedAt.Equal(counted))
	last := series.Points[len(series.Points)-1]
	require.Equal(t, &meter.QueueCounts{Ready: 56}, last.Counts)
	s.Clock.Advance(time.Minute)
	keep(s, &other)
	keep(s, &one)
	series = read(s)
	require.EqualValues(t, 56, series.Points[len(series.Points)-2].Counts.Ready)
	require.EqualValues(t, 57, series.Points[len(series.Points)-1].Counts.Ready)
}

// TestUnknownActivity makes what writes it end with an unknown result: nothing counts twice,
// and nothing is missed.
func TestUnknownActivity(t *testing.T) {
	t.Parallel()
	folds := func(wait time.Duration) func(s *modeltest.Stage, strike func()) {
		return func(s *modeltest.Stage, strike func()) {
			for range 3 {
				r := worker(s)
				plus(r)
				require.NoError(s.T, r.Leave(s.Ctx))
			}
			s.Clock.Advance(wait)
			var k activity.Keeper
			for range 2 {
				strike()
				keep(s, &k)
				s.Faults.Flush()
				require.EqualValues(s.T, 3, succeeded(s))
				s.Clock.Advance(time.Minute)
			}
			require.Len(s.T, append(records(s, meter.Minutes), records(s, meter.Hours)...), 1)
		}
	}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-beat": func(s *modeltest.Stage, strike func()) {
			plus(s.Worker)
			strike()
			beat(s, s.Worker)
			plus(s.Worker)
			beat(s, s.Worker)
			s.Faults.Flush()
			require.EqualValues(s.T, 2, succeeded(s))
			beat(s, s.Worker)
			require.EqualValues(s.T, 2, succeeded(s))
		},
		"futura-leave": func(s *modeltest.Stage, strike func()) {
			plus(s.Worker)
			beat(s, s.Worker)
			plus(s.Worker)
			strike()
			require.NoError(s.T, s.Worker.Leave(s.Ctx))
			s.Faults.Flush()
			require.EqualValues(s.T, 2, succeeded(s))
		},
		"futura-activity counts": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			strike()
			keep(s, &activity.Keeper{})
			s.Faults.Flush()
			require.EqualValues(s.T, 1, read(s).Counts[0].Ready)
		},
		"futura-activity by minute": folds(11 * time.Minute),
		"futura-activity by hour":   folds(4 * time.Hour),
	})
}

// TestSpansOfActivity asks for what can't be.
func TestSpansOfActivity(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	now := s.Clock.Now()
	for _, wrong := range []struct{ span, step time.Duration }{
		{0, time.Minute}, {-time.Hour, time.Minute}, {activity.MinutesFor + 1, time.Minute}, {time.Hour, time.Second},
		{activity.HoursFor + 1, time.Hour},
	} {
		_, err := activity.Read(s.Ctx, s.C, now.Add(-wrong.span), now, wrong.step)
		require.ErrorIs(t, err, layout.ErrBadSpec)
	}
	series, err := activity.Read(s.Ctx, s.C, now.Add(-activity.HoursFor), now, time.Hour)
	require.NoError(t, err)
	require.Equal(t, time.Hour, series.Step)
	require.Len(t, series.Points, int(series.To.Sub(series.From)/time.Hour))
	require.False(t, series.From.After(now.Add(-activity.HoursFor)) || series.To.Before(now))
}

// TestQuantiles finds the times of histograms.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	require.Zero(t, activity.Quantile(nil, 0.5))
	for part, want := range map[float64]time.Duration{
		0: 512 * time.Millisecond, 0.5: 768 * time.Millisecond, 1: 1024 * time.Millisecond,
	} {
		require.Equal(t, want, activity.Quantile([]int64{10: 4}, part))
	}
	mixed := []int64{0: 98, 5: 1, 9: 1}
	require.Less(t, activity.Quantile(mixed, 0.5), time.Millisecond)
	require.InDelta(t, 32*time.Millisecond, activity.Quantile(mixed, 0.99), float64(16*time.Millisecond))
	require.Equal(t, 512*time.Millisecond, activity.Quantile(mixed, 1))
}

// TestARecordIsBounded counts more functions, with longer names, than are told apart.
func TestARecordIsBounded(t *testing.T) {
	t.Parallel()
	var a meter.Activity
	name := fmt.Sprintf("go:%0253d", 0)
	for i := range 5000 {
		e := meter.Ended{Function: fmt.Sprintf("%s%03d", name[:253], i%1000), Queue: name[:64], Succeeded: true}
		e.Run, e.Wait = time.Millisecond<<(i%30), time.Millisecond<<(i%30)
		a.Count(&e)
	}
	for range 12 { // as many as four thousand workers
		half := a
		half.Pairs = append([]meter.Pair{}, a.Pairs...)
		for i := range half.Pairs {
			half.Pairs[i].Runs = append([]int64{}, half.Pairs[i].Runs...)
			half.Pairs[i].Waits = append([]int64{}, half.Pairs[i].Waits...)
		}
		a.Add(&half)
	}
	require.Len(t, a.Pairs, meter.MaxPairs+1)
	require.NoError(t, a.Check())
	total := int64(0)
	for _, p := range a.Pairs {
		total += p.Succeeded
	}
	require.EqualValues(t, 5000<<12, total)
	require.Less(t, len(layout.Encode(&a)), 50_000)
}

// TestActivityWithoutWhatCantBeRead has one of two records be of a newer version.
func TestActivityWithoutWhatCantBeRead(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keys := meter.Keys(s.C.Keys())
	minute := meter.ActivityKey{Step: meter.Minutes, At: meter.MinuteOf(s.Clock.Now()), Membership: "a"}
	s.Store(keys.Activity(minute), []byte{layout.RecordVersion + 1, 0x80})
	minute.Membership = "b"
	s.Store(keys.Activity(minute), layout.Encode(&meter.Activity{Pairs: []meter.Pair{{Function: "go:f", Succeeded: 3}}}))
	require.EqualValues(t, 3, read(s).Pairs[0].Succeeded)
}
