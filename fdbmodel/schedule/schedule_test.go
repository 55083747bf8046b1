package schedule_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/internal/storetest"
)

// put makes a schedule that fires every hour.
func put(s *modeltest.Stage, change ...func(*schedule.Record)) schedule.Schedule {
	record := schedule.Record{
		Name: "report", Every: time.Hour, Spec: layout.Spec{Function: "go:f"}, Args: []byte("args"),
	}
	for _, fn := range change {
		fn(&record)
	}
	schedule, _, err := schedule.Of(s.C).Put(s.Ctx, record, false)
	require.NoError(s.T, err)
	return schedule
}

// fire looks at the schedules until nothing is due.
func fire(s *modeltest.Stage) (fired int) {
	var walk schedule.Walk
	for {
		n, next, err := schedule.Of(s.C).Fire(s.Ctx, &walk)
		require.NoError(s.T, err)
		fired += n
		if next.IsZero() || next.After(s.Clock.Now()) {
			return fired
		}
	}
}

func stateOf(s *modeltest.Stage) schedule.State {
	schedule, err := schedule.Of(s.C).Get(s.Ctx, "report")
	require.NoError(s.T, err)
	return schedule.State
}

func TestScheduleFiresItsFutures(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	made := put(s)
	first := s.Clock.Now()
	require.Equal(t, first.UnixMilli(), made.State.Next)
	require.Equal(t, 1, fire(s))
	require.Zero(t, fire(s))
	s.Clock.Advance(time.Hour + 5*time.Second)
	require.Equal(t, 1, fire(s))
	f := s.Claim(s.Worker)
	require.Len(t, f, 2)
	var times []int64
	for i := range f {
		require.Equal(t, "report", f[i].Spec.Schedule)
		require.Equal(t, "args", string(f[i].Inline))
		times = append(times, f[i].Spec.ScheduledAt)
	}
	require.ElementsMatch(t, []int64{first.UnixMilli(), first.Add(time.Hour).UnixMilli()}, times,
		"each has the time that it stands for")
	state := stateOf(s)
	require.EqualValues(t, 2, state.Fired)
	require.Len(t, state.Runs, 2)
	require.Equal(t, first.Add(2*time.Hour).UnixMilli(), state.Next)
}

// TestScheduledFuturesHaveALaneAndADeadline, which counts from their submit.
func TestScheduledFuturesHaveALaneAndADeadline(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "k", layout.LaneKind{}))
	put(s, func(r *schedule.Record) {
		r.Deadline, r.Spec.Lane = 90*time.Minute, layout.Lane{Kind: "k", Key: "x"}
	})
	begin := s.Clock.Now()
	require.Equal(t, 1, fire(s))
	s.Clock.Advance(time.Hour + 5*time.Second)
	require.Equal(t, 1, fire(s))
	state := stateOf(s)
	second := state.Last()
	lane, err := lanes.Of(s.C).View(s.Ctx, layout.Lane{Kind: "k", Key: "x"}, 100)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{second.ID}, lane.Line)
	f := s.Claim(s.Worker)
	require.Len(t, f, 1, "of width 1")
	require.Equal(t, begin.Add(90*time.Minute).UnixMilli(), f[0].Spec.Deadline)
	require.Empty(t, s.Problems())
	id, err := schedule.Of(s.C).Trigger(s.Ctx, "report")
	require.NoError(t, err)
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, s.Clock.Now().Add(90*time.Minute).UnixMilli(), row.Spec.Deadline)
	for _, bad := range []func(*schedule.Record){
		func(r *schedule.Record) { r.Deadline = -1 }, func(r *schedule.Record) { r.Spec.Deadline = 1 },
	} {
		record := schedule.Record{Name: "bad", Every: time.Hour, Spec: layout.Spec{Function: "go:f"}}
		bad(&record)
		_, _, err := schedule.Of(s.C).Put(s.Ctx, record, false)
		require.ErrorIs(t, err, layout.ErrBadSpec)
	}
}

func TestPutScheduleAgain(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	made := put(s)
	fire(s)
	s.Clock.Advance(10 * time.Minute)
	same := put(s)
	require.Equal(t, made.Record, same.Record, "the same definition changes nothing")
	record := made.Record
	record.Every = 2 * time.Hour
	_, _, err := schedule.Of(s.C).Put(s.Ctx, record, true)
	require.ErrorIs(t, err, fdbmodel.ErrExists)
	require.Contains(t, err.Error(), "report")
	record.From = 0
	changed, created, err := schedule.Of(s.C).Put(s.Ctx, record, false)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, made.ID, changed.ID)
	require.Equal(t, s.Clock.Now().UnixMilli(), changed.State.Next, "it is counted from now")
	require.EqualValues(t, 1, changed.State.Fired)
	record.Every, record.Cron = 0, "0 2 * * *"
	changed, _, err = schedule.Of(s.C).Put(s.Ctx, record, false)
	require.NoError(t, err)
	require.Equal(t, 2, time.UnixMilli(changed.State.Next).UTC().Hour())
	require.Empty(t, s.Problems())
}

func TestScheduleIsRefused(t *testing.T) {
	t.Parallel()
	s, one := modeltest.NewStage(t), []layout.ID{{1}}
	for name, c := range map[string]struct {
		want   error
		change func(*schedule.Record)
	}{
		"name":       {layout.ErrBadName, func(r *schedule.Record) { r.Name = "a/b" }},
		"no time":    {layout.ErrBadSpec, func(r *schedule.Record) { r.Every = 0 }},
		"crontab":    {layout.ErrBadSpec, func(r *schedule.Record) { r.Every, r.Cron = 0, "* *" }},
		"missed":     {layout.ErrBadSpec, func(r *schedule.Record) { r.Missed = "never" }},
		"overlap":    {layout.ErrBadSpec, func(r *schedule.Record) { r.Overlap = "maybe" }},
		"catch up":   {layout.ErrBadSpec, func(r *schedule.Record) { r.Missed, r.CatchUp = "catch-up", 1e6 }},
		"many":       {layout.ErrBadSpec, func(r *schedule.Record) { r.CatchUp = 2 }},
		"grace":      {layout.ErrBadSpec, func(r *schedule.Record) { r.Grace = 48 * time.Hour }},
		"function":   {layout.ErrBadName, func(r *schedule.Record) { r.Spec.Function = "f" }},
		"no module":  {fdbmodel.ErrNotFound, func(r *schedule.Record) { r.Spec.Function = "wasm:none" }},
		"arguments":  {fdbmodel.ErrTooLarge, func(r *schedule.Record) { r.Args = make([]byte, 20_000) }},
		"inputs":     {layout.ErrBadSpec, func(r *schedule.Record) { r.Spec.Inputs = layout.PackIDs(one) }},
		"an owner":   {layout.ErrBadSpec, func(r *schedule.Record) { r.Spec.Owner = "o" }},
		"max retry":  {layout.ErrBadSpec, func(r *schedule.Record) { r.Spec.MaxRetries = -1 }},
		"zone":       {layout.ErrBadSpec, func(r *schedule.Record) { r.Zone = "Mars/Olympus" }},
		"its length": {layout.ErrBadName, func(r *schedule.Record) { r.Name = strings.Repeat("n", 65) }},
	} {
		record := schedule.Record{Name: "report", Every: time.Hour, Spec: layout.Spec{Function: "go:f"}}
		c.change(&record)
		_, _, err := schedule.Of(s.C).Put(s.Ctx, record, false)
		require.ErrorIs(t, err, c.want, name)
	}
	for _, err := range []error{
		schedule.Of(s.C).Remove(s.Ctx, "none"), second(schedule.Of(s.C).Pause(s.Ctx, "none", "")),
		second(schedule.Of(s.C).Resume(s.Ctx, "none")), second(schedule.Of(s.C).Get(s.Ctx, "none")),
		second(schedule.Of(s.C).Trigger(s.Ctx, "none")),
	} {
		require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	}
}

func second[T any](_ T, err error) error { return err }

// TestMissedTimes has nobody look for ten hours and a half.
func TestMissedTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missed         string
		catchUp        int
		outage         time.Duration
		fired, leftOut int
	}{
		{schedule.MissedOnce, 0, 630 * time.Minute, 1, 9},
		{schedule.MissedOnce, 0, 600*time.Minute + 30*time.Second, 1, 9}, // the last one is in time
		{schedule.MissedSkip, 0, 630 * time.Minute, 0, 10},
		{schedule.MissedSkip, 0, 600*time.Minute + 30*time.Second, 1, 9},
		{schedule.MissedCatchUp, 0, 630 * time.Minute, 10, 0},
		{schedule.MissedCatchUp, 3, 630 * time.Minute, 3, 7},
		{schedule.MissedCatchUp, 3, 600*time.Minute + 30*time.Second, 4, 6},
	} {
		t.Run(fmt.Sprint(c.missed, c.catchUp, c.outage), func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			from := put(s, func(r *schedule.Record) { r.Missed, r.CatchUp = c.missed, c.catchUp }).State.Next
			require.Equal(t, 1, fire(s))
			s.Clock.Advance(c.outage)
			require.Equal(t, c.fired, fire(s))
			state := stateOf(s)
			require.EqualValues(t, c.leftOut, state.Missed)
			require.Equal(t, from+int64(11*time.Hour/time.Millisecond), state.Next)
			if c.fired > 0 {
				require.Equal(t, from+int64(10*time.Hour/time.Millisecond), state.Last().At, "the last ones fire")
			}
			require.Empty(t, s.Problems())
		})
	}
}

// TestTheOldestTimesGiveWay catches up with more times than stand in line: those that are not late fire.
func TestTheOldestTimesGiveWay(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put(s, func(r *schedule.Record) {
		r.Every, r.Grace, r.Missed, r.CatchUp = time.Second, time.Minute, schedule.MissedCatchUp, schedule.MaxLine
	})
	require.Equal(t, 1, fire(s))
	s.Clock.Advance(time.Hour)
	require.Equal(t, schedule.MaxLine, fire(s))
	state := stateOf(s)
	require.Equal(t, state.Next-1000, state.Last().At)
	require.EqualValues(t, 3600, schedule.MaxLine+state.Missed+state.Skipped)
	require.Empty(t, s.Problems())
}

// TestTheFuturesOfAScheduleStayApart has one that was asked for be over before the one of a time.
func TestTheFuturesOfAScheduleStayApart(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put(s, func(r *schedule.Record) { r.Overlap = schedule.OverlapQueue })
	require.Equal(t, 1, fire(s))
	running := s.Claim(s.Worker)
	asked, err := schedule.Of(s.C).Trigger(s.Ctx, "report")
	require.NoError(t, err)
	_, _, err = s.C.Cancel(s.Ctx, asked, "")
	require.NoError(t, err)
	s.Clock.Advance(time.Hour)
	require.Zero(t, fire(s), "the one of the first time still runs")
	require.Len(t, stateOf(s).Line, 1)
	done := fdbmodel.Completion{Future: &running[0], Result: &layout.Result{}}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done))
	require.Equal(t, 1, fire(s))
}

// TestATimeInLineWritesNothing while the former future runs: a janitor looks at it every second.
func TestATimeInLineWritesNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	if !kv.TraitsOf(s.C.Database()).Exclusive {
		t.Skip("versions of this store grow without commits")
	}
	put(s, func(r *schedule.Record) { r.Overlap = schedule.OverlapQueue })
	fire(s)
	s.Clock.Advance(time.Hour)
	require.Zero(t, fire(s))
	require.Len(t, stateOf(s).Line, 1)
	version := func() (v kv.Version) {
		require.NoError(t, s.C.View(s.Ctx, func(tx kv.Attempt) (err error) {
			v, err = tx.ReadVersion(s.Ctx)
			return err
		}))
		return v
	}
	before := version()
	require.Zero(t, fire(s))
	require.Equal(t, before, version())
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[string]struct{ open, skipped, after int }{
		schedule.OverlapAllow: {3, 0, 0}, schedule.OverlapSkip: {1, 2, 0}, schedule.OverlapQueue: {1, 0, 2},
	} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			put(s, func(r *schedule.Record) { r.Overlap = overlap })
			fired := fire(s)
			f := s.Claim(s.Worker)
			for range 2 {
				s.Clock.Advance(time.Hour)
				fired += fire(s)
			}
			require.Equal(t, want.open, fired)
			require.EqualValues(t, want.skipped, stateOf(s).Skipped)
			require.Empty(t, s.Problems())
			for after := range want.after + 1 {
				require.Equal(t, want.after-after, len(stateOf(s).Line))
				require.Len(t, f, 1)
				s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
				if fired = fire(s); after == want.after {
					require.Zero(t, fired)
					break
				}
				require.Equal(t, 1, fired, "the next in line follows")
				require.Zero(t, fire(s))
				f = s.Claim(s.Worker)
			}
		})
	}
}

func TestPausedScheduleDoesNotFire(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put(s)
	fire(s)
	paused, err := schedule.Of(s.C).Pause(s.Ctx, "report", "migration")
	require.NoError(t, err)
	require.Equal(t, "migration", paused.State.Reason)
	require.NotZero(t, paused.State.PausedAt)
	s.Clock.Advance(3*time.Hour + time.Minute)
	require.Zero(t, fire(s))
	require.Empty(t, s.Problems())
	id, err := schedule.Of(s.C).Trigger(s.Ctx, "report")
	require.NoError(t, err)
	require.Equal(t, layout.Ready, s.State(id), "it can be triggered")
	resumed, err := schedule.Of(s.C).Resume(s.Ctx, "report")
	require.NoError(t, err)
	require.Zero(t, fire(s), "what passed meanwhile is left out")
	require.Equal(t, s.Clock.Now().Add(59*time.Minute).UnixMilli(), resumed.State.Next)
	require.True(t, resumed.State.Last().Trigger)
	times, err := resumed.Upcoming(3)
	require.NoError(t, err)
	require.Len(t, times, 3)
	require.Equal(t, 2*time.Hour, times[2].Sub(times[0]))
	require.NoError(t, schedule.Of(s.C).Remove(s.Ctx, "report"))
	require.Empty(t, s.Problems())
	list, err := schedule.Of(s.C).List(s.Ctx, "", 10)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestSchedulesInPages(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	const schedules = 70 // more than one look fires
	for i := range schedules {
		put(s, func(r *schedule.Record) { r.Name = fmt.Sprintf("s%02d", i) })
	}
	var names []string
	for after := ""; ; after = names[len(names)-1] {
		list, err := schedule.Of(s.C).List(s.Ctx, after, 30)
		require.NoError(t, err)
		if len(list) == 0 {
			break
		}
		for _, one := range list {
			names = append(names, one.Name)
		}
	}
	require.Len(t, names, schedules)
	require.Equal(t, schedules, fire(s))
	require.Zero(t, fire(s))
}

// TestRefusedFiring has a schedule whose module was removed.
func TestRefusedFiring(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := modules.Of(s.C).Put(s.Ctx, []byte("a module"), "report")
	require.NoError(t, err)
	put(s, func(r *schedule.Record) { r.Spec.Function = "wasm:report" })
	cid, err := modules.CID([]byte("a module"))
	require.NoError(t, err)
	_, err = modules.Of(s.C).Remove(s.Ctx, cid, true)
	require.NoError(t, err)
	put(s, func(r *schedule.Record) { r.Name = "zz" })
	require.Equal(t, 1, fire(s), "the others fire")
	state := stateOf(s)
	require.EqualValues(t, 1, state.Refused)
	require.Contains(t, state.Runs[0].Error, "report")
	require.Greater(t, state.Next, s.Clock.Now().UnixMilli())
}

// TestAFullLaneRefusesAFiring has a schedule submit to a lane in which no more may wait.
func TestAFullLaneRefusesAFiring(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	lane := layout.Lane{Kind: "k", Key: "x"}
	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "k", layout.LaneKind{MaxWaiting: 1}))
	for range 2 {
		s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = lane })
	}
	put(s, func(r *schedule.Record) { r.Spec.Lane = lane })
	require.Zero(t, fire(s))
	state := stateOf(s)
	require.EqualValues(t, 1, state.Refused)
	require.Contains(t, state.Runs[0].Error, "lane k/x: the lane is full")
	require.Greater(t, state.Next, s.Clock.Now().UnixMilli(), "the next time comes")
}

// TestLookAtSchedulesCosts counts reads: one when nothing is due.
func TestLookAtSchedulesCosts(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put(s)
	fire(s)
	counted := &countedReads{Database: s.Faults}
	c, err := fdbmodel.Open(s.Ctx, counted, "unknown", fdbmodel.Options{Clock: s.Clock, Existing: true})
	require.NoError(t, err)
	counted.reads = 0
	_, next, err := schedule.Of(c).Fire(s.Ctx, new(schedule.Walk))
	require.NoError(t, err)
	require.Equal(t, time.Hour, next.Sub(s.Clock.Now()))
	require.Equal(t, 1, counted.reads)
}

// countedReads counts reads.
type countedReads struct {
	kv.Database
	reads int
}

// Begin implements kv.Database.
func (d *countedReads) Begin(o kv.Options) kv.Tx { return countedTx{d.Database.Begin(o), d} }

type countedTx struct {
	kv.Tx
	to *countedReads
}

// Snapshot implements kv.Tx.
func (t countedTx) Snapshot() kv.Reader { return countedReader{t.Tx.Snapshot(), t.to} }

type countedReader struct {
	kv.Reader
	to *countedReads
}

// Get implements kv.Reader.
func (r countedReader) Get(key []byte) kv.Pending[[]byte] {
	r.to.reads++
	return r.Reader.Get(key)
}

// GetRange implements kv.Reader.
func (r countedReader) GetRange(in kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	r.to.reads++
	return r.Reader.GetRange(in, o)
}

// TestManyLookAtOnce has processes look at the same moment.
func TestManyLookAtOnce(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	const lookers, hours = 3, 50
	for i := range 4 {
		put(s, func(r *schedule.Record) { r.Name = fmt.Sprint("s", i) })
	}
	var mu sync.Mutex
	fired := 0
	for range hours {
		var wg sync.WaitGroup
		for range lookers {
			wg.Go(func() {
				n, _, err := schedule.Of(s.C).Fire(s.Ctx, new(schedule.Walk))
				mu.Lock()
				defer mu.Unlock()
				fired += n
				if err != nil {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		s.Clock.Advance(time.Hour)
	}
	require.Equal(t, int64(4*hours), s.Counted(layout.Ready))
	if storetest.OnServer {
		require.LessOrEqual(t, fired, 4*hours, "what an unknown commit has submitted is not counted")
	} else {
		require.Equal(t, 4*hours, fired)
	}
}
