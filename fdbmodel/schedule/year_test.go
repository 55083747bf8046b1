package schedule_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// skewed is a clock that is wrong by a constant.
type skewed struct {
	clock.Clock
	by time.Duration
}

// Now implements clock.Clock.
func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.by) }

// looker is a process that looks at schedules.
type looker struct {
	c    *fdbmodel.Cluster
	walk schedule.Walk
}

// dying is a context that ends after a number of questions.
type dying struct {
	context.Context
	left int
}

// Err implements context.Context.
func (d *dying) Err() error {
	if d.left--; d.left < 0 {
		return context.Canceled
	}
	return d.Context.Err()
}

// crontab has lines whose times are found by the minutes of a year, with what the
// clock of Zurich shows: hourly says that every hour that passes counts.
var crontab = []struct {
	name, line string
	hourly     bool
	matches    func(local time.Time) bool
}{
	{"nightly", "30 2 * * *", false, func(l time.Time) bool { return l.Hour() == 2 && l.Minute() == 30 }},
	{"around-the-change", "*/20 1-3 * * 0", false, func(l time.Time) bool {
		return l.Weekday() == time.Sunday && l.Hour() >= 1 && l.Hour() <= 3 && l.Minute()%20 == 0
	}},
	{"hourly", "5 * * * *", true, func(l time.Time) bool { return l.Minute() == 5 }},
	{"office", "0 8,18 * * 1-5", false, func(l time.Time) bool {
		return l.Minute() == 0 && (l.Hour() == 8 || l.Hour() == 18) && l.Weekday() >= 1 && l.Weekday() <= 5
	}},
	{"monthly", "0 0 1 * *", false, func(l time.Time) bool { return l.Day() == 1 && l.Hour() == 0 && l.Minute() == 0 }},
}

// timesOf goes through the minutes of a year: what the clock shows for the second time
// does not count, and what it jumps over counts once, at the jump.
func timesOf(from, to time.Time, zone *time.Location, hourly bool, matches func(time.Time) bool) map[int64]bool {
	times, shown := map[int64]bool{}, map[string]bool{}
	for now := from; now.Before(to); now = now.Add(time.Minute) {
		local := now.In(zone)
		wall := local.Format("2006-01-02 15:04")
		if matches(local) && (hourly || !shown[wall]) {
			times[now.UnixMilli()] = true
		}
		shown[wall] = true
		_, offset := local.Zone()
		_, before := local.Add(-time.Minute).Zone()
		for skipped := before; !hourly && skipped < offset; skipped += 60 {
			if matches(now.In(time.FixedZone("as it was", skipped))) {
				times[now.UnixMilli()] = true
			}
		}
	}
	return times
}

// TestYearOfACrontab has three processes with wrong clocks look at a crontab for a year
// in virtual time, over a store that fails, loses answers and makes commits late. They
// die at any step of a look, and nobody looks for hours. Each time fires once, those
// of both changes of summer time included.
func TestYearOfACrontab(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Zurich")
	require.NoError(t, err)
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
			to := from.AddDate(1, 0, 0)
			if testing.Short() && seed > 1 {
				t.Skip("one year is enough for a short run")
			}
			if testing.Short() && storetest.OnServer {
				from = time.Date(2026, 3, 20, 0, 0, 0, 0, zone)
				to = from.AddDate(0, 0, 20)
			}
			y := newYear(t, seed, from)
			for _, line := range crontab {
				_, created, err := schedule.Of(y.lookers[0].c).Put(t.Context(), schedule.Record{
					Name: line.name, Cron: line.line, Zone: "Europe/Zurich", Missed: schedule.MissedCatchUp,
					Spec: layout.Spec{Function: "go:f"},
				}, true)
				require.NoError(t, err)
				require.True(t, created)
			}
			for y.clock.Now().Before(to) {
				y.step(to)
			}
			got := y.fired()
			for _, line := range crontab {
				want := timesOf(from, to, zone, line.hourly, line.matches)
				for at := range want {
					require.Equal(t, 1, got[line.name][at], "%s at %s", line.name, time.UnixMilli(at).In(zone))
				}
				for at := range got[line.name] {
					require.True(t, want[at], "%s at %s", line.name, time.UnixMilli(at).In(zone))
				}
			}
			require.Positive(t, y.deaths)
			counts := y.faults.Counts()
			t.Logf("seed %d: %d deaths, faults %v", seed, y.deaths, counts)
		})
	}
}

// year is a store with processes that look at its schedules.
type year struct {
	t       *testing.T
	random  *rand.Rand
	clock   *clock.Virtual
	faults  *faultkv.Database
	lookers [3]*looker
	deaths  int
}

func newYear(t *testing.T, seed uint64, from time.Time) *year {
	y := &year{t: t, random: rand.New(rand.NewPCG(seed, 0x5c)), clock: clock.NewVirtual(from)}
	odds := faultkv.Everywhere(seed, 0.02)
	odds.LateAfter = 20
	y.faults = faultkv.Wrap(storetest.New(t), odds)
	y.faults.Pause()
	for i := range y.lookers {
		y.start(i)
	}
	return y
}

// start starts a process, whose clock is wrong by up to 20 s.
func (y *year) start(i int) {
	by := time.Duration(y.random.IntN(40_000)-20_000) * time.Millisecond
	if y.lookers[0] == nil {
		by = 0 // who makes the schedules
	}
	y.faults.Pause()
	defer y.faults.Resume()
	c, err := fdbmodel.Open(y.t.Context(), y.faults, "year", fdbmodel.Options{
		Clock: skewed{y.clock, by}, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Config: layout.Config{Shards: 4},
	})
	require.NoError(y.t, err)
	y.lookers[i] = &looker{c: c}
}

// step lets some of the processes look, and time pass.
func (y *year) step(end time.Time) {
	var next time.Time
	for _, i := range y.random.Perm(len(y.lookers))[:1+y.random.IntN(3)] {
		if at := y.look(i); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	now := y.clock.Now()
	wait := time.Duration(y.random.IntN(600)) * time.Second
	if !next.IsZero() && y.random.IntN(4) > 0 {
		wait = next.Sub(now)
	}
	if y.random.IntN(200) == 0 {
		wait = time.Duration(y.random.IntN(20)) * time.Hour // an outage
	}
	y.clock.Advance(min(max(wait, time.Second), end.Sub(now)))
}

func (y *year) look(i int) time.Time {
	l := y.lookers[i]
	ctx := y.t.Context()
	if y.random.IntN(50) == 0 {
		ctx = &dying{ctx, y.random.IntN(40)}
	}
	_, next, err := schedule.Of(l.c).Fire(ctx, &l.walk)
	if d, ok := ctx.(*dying); ok && d.left < 0 {
		y.deaths++
		y.start(i)
		return time.Time{}
	}
	if err != nil {
		require.True(y.t, kv.Retryable(err), "%v", err)
		return time.Time{}
	}
	return next
}

// fired ends the year: it has everything that is due fire, and counts the futures by
// schedule and time.
func (y *year) fired() map[string]map[int64]int {
	y.faults.Pause()
	y.faults.Flush()
	l := y.lookers[0]
	l.walk = schedule.Walk{}
	c, err := fdbmodel.Open(y.t.Context(), y.faults, "year", fdbmodel.Options{Clock: skewed{y.clock, -time.Second}})
	require.NoError(y.t, err)
	for {
		_, next, err := schedule.Of(c).Fire(y.t.Context(), &l.walk)
		require.NoError(y.t, err)
		if next.IsZero() || next.After(c.Now()) {
			break
		}
	}
	got := map[string]map[int64]int{}
	for _, line := range crontab {
		got[line.name] = map[int64]int{}
	}
	total := 0
	for cursor := []byte(nil); ; {
		rows, after, err := inspect.List(y.t.Context(), c, inspect.Filter{}, cursor, 500)
		require.NoError(y.t, err)
		for _, row := range rows {
			total++
			if at := row.Spec.ScheduledAt; at < y.clock.Now().UnixMilli() {
				got[row.Spec.Schedule][at]++
			}
		}
		if cursor = after; cursor == nil {
			break
		}
	}
	report, err := audit.Check(y.t.Context(), c, audit.Options{})
	require.NoError(y.t, err)
	require.Empty(y.t, report.Problems)
	for _, line := range crontab {
		s, err := schedule.Of(c).Get(y.t.Context(), line.name)
		require.NoError(y.t, err)
		require.Zero(y.t, s.State.Missed+s.State.Skipped+s.State.Refused, "%s: %+v", line.name, s.State)
		total -= int(s.State.Fired)
	}
	require.Zero(y.t, total, "what was counted is what there is")
	return got
}
