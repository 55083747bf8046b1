package timetable_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/timetable"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return when
}

func cron(t *testing.T, line, zone string) *timetable.Timetable {
	t.Helper()
	table, err := timetable.New(timetable.Rules{Cron: line, Zone: zone})
	require.NoError(t, err)
	return table
}

// The clocks of Zurich jump from 2:00 to 3:00 on 29 March 2026, and from 3:00 back to
// 2:00 on 25 October; those of Lord Howe by half an hour.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name, line, zone, after string
		want                    []string
	}{
		{"plain", "0 2 * * *", "UTC", "2026-03-28T02:00:00Z", []string{"2026-03-29T02:00:00Z", "2026-03-30T02:00:00Z"}},
		{"strictly after", "0 2 * * *", "UTC", "2026-03-28T01:59:59.999Z", []string{"2026-03-28T02:00:00Z"}},
		{"a time that does not exist", "30 2 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"several times that do not exist", "*/15 2 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		{"and one at the jump", "0 2,3 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		{"a time that exists twice", "30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"the hours that exist twice", "*/30 2,3 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T03:00:00+01:00"}},
		{"looked at between the two", "30 2 * * *", "Europe/Zurich", "2026-10-25T01:10:00Z",
			[]string{"2026-10-26T02:30:00+01:00"}},
		{"every hour, jump", "30 * * * *", "Europe/Zurich", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"}},
		{"every hour, back", "30 * * * *", "Europe/Zurich", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"}},
		{"half an hour of summer time, jump", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"half an hour of summer time, back", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		{"midnight that does not exist", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z",
			[]string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		{"a day that does not exist", "0 8 * * *", "Pacific/Apia", "2011-12-29T18:30:00Z",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T08:00:00+14:00"}},
		{"seconds", "*/20 59 23 31 12 *", "UTC", "2026-12-31T23:59:10Z",
			[]string{"2026-12-31T23:59:20Z", "2026-12-31T23:59:40Z", "2027-12-31T23:59:00Z"}},
		{"leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"either day", "0 0 13 * 5", "UTC", "2026-02-11T00:00:00Z",
			[]string{"2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"names", "0 6 * jan mon-fri", "UTC", "2026-01-02T07:00:00Z", []string{"2026-01-05T06:00:00Z"}},
		{"Sunday is 7 too", "0 6 * * 6-7", "UTC", "2026-01-03T07:00:00Z",
			[]string{"2026-01-04T06:00:00Z", "2026-01-10T06:00:00Z"}},
		{"Sunday is 7 alone too", "0 6 * * 7", "UTC", "2026-01-03T07:00:00Z", []string{"2026-01-04T06:00:00Z"}},
		{"a word", "@weekly", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, now := cron(t, c.line, c.zone), at(t, c.after)
			for _, want := range c.want {
				now = table.Next(now)
				require.Equal(t, want, now.In(table.Zone()).Format(time.RFC3339))
			}
		})
	}
}

func TestIntervalKeepsItsAnchor(t *testing.T) {
	from := at(t, "2026-01-01T00:00:05Z")
	table, err := timetable.New(timetable.Rules{Every: 90 * time.Minute, From: from, Until: from.Add(5 * time.Hour)})
	require.NoError(t, err)
	require.Equal(t, from, table.Next(from.Add(-time.Hour)).UTC())
	require.Equal(t, from.Add(90*time.Minute), table.Next(from).UTC())
	require.Equal(t, from.Add(270*time.Minute), table.Next(from.Add(181*time.Minute)).UTC())
	require.True(t, table.Next(from.Add(270*time.Minute)).IsZero(), "it has ended")
}

func TestDatesLeftOut(t *testing.T) {
	table, err := timetable.New(timetable.Rules{
		Cron: "*/30 23 * * *", Zone: "America/New_York", Except: []string{"12-25", "2026-12-27"},
	})
	require.NoError(t, err)
	var got []string
	for now := at(t, "2026-12-25T00:00:00Z"); len(got) < 6; {
		now = table.Next(now)
		got = append(got, now.In(table.Zone()).Format("02 15:04"))
	}
	require.Equal(t, []string{"24 23:00", "24 23:30", "26 23:00", "26 23:30", "28 23:00", "28 23:30"}, got,
		"dates are those of the zone")
}

// TestBoundsCount are the first moment after a date that is left out, and the last one at
// which a timetable recurs.
func TestBoundsCount(t *testing.T) {
	first, last := at(t, "2026-12-24T00:00:00Z"), at(t, "2026-12-26T00:00:00Z")
	dates := []string{"12-25"}
	for day := range timetable.MaxExcept - 1 {
		dates = append(dates, first.AddDate(-1, 0, -day).Format(time.DateOnly))
	}
	table, err := timetable.New(timetable.Rules{Cron: "0 0 * * *", From: first, Until: last, Except: dates})
	require.NoError(t, err)
	require.Equal(t, first, table.Next(first.Add(-time.Hour)).UTC())
	require.Equal(t, last, table.Next(first).UTC(), "midnight is not of the day before")
	require.True(t, table.Next(last).IsZero())
	require.Equal(t, []time.Time{first, last}, table.Newest(first, last, 5))
}

func TestNewest(t *testing.T) {
	table := cron(t, "* * * * *", "")
	to := at(t, "2026-06-01T00:00:30Z")
	times := table.Newest(at(t, "2016-01-01T00:00:00Z"), to, 3)
	require.Len(t, times, 3)
	require.Equal(t, "2026-06-01T00:00:00Z", times[2].Format(time.RFC3339))
	require.Equal(t, 2*time.Minute, times[2].Sub(times[0]))
	require.Len(t, table.Newest(to.Add(-2*time.Minute), to, 100), 2)
	require.Empty(t, table.Newest(to, to.Add(-1), 100))
	require.Len(t, cron(t, "0 0 1 1 *", "").Newest(at(t, "2020-01-01T00:00:00Z"), to, 100), 7, "both ends count")
}

func TestInvalid(t *testing.T) {
	from := time.Unix(1, 0)
	for name, r := range map[string]timetable.Rules{
		"nothing":         {},
		"both":            {Cron: "@daily", Every: time.Hour, From: from},
		"too short":       {Every: time.Millisecond, From: from},
		"no anchor":       {Every: time.Hour},
		"fractions":       {Every: time.Second + 1, From: from},
		"fields":          {Cron: "1 2 3"},
		"a zone within":   {Cron: "TZ=UTC 1 2 3 4 5"},
		"a panic of old":  {Cron: "TZ="},
		"reboot":          {Cron: "@reboot"},
		"range":           {Cron: "61 * * * *"},
		"no such day":     {Cron: "0 0 30 2 *"},
		"machine's zone":  {Cron: "@daily", Zone: "Local"},
		"unknown zone":    {Cron: "@daily", Zone: "Europe/Atlantis"},
		"a path":          {Cron: "@daily", Zone: "../../etc/passwd"},
		"date":            {Cron: "@daily", Except: []string{"25.12.2026"}},
		"no such date":    {Cron: "@daily", Except: []string{"2026-02-30"}},
		"too many dates":  {Cron: "@daily", Except: make([]string, timetable.MaxExcept+1)},
		"ends before":     {Cron: "@daily", From: from, Until: from.Add(-1)},
		"long crontab":    {Cron: string(make([]byte, 1000))},
		"negative period": {Every: -time.Hour, From: from},
	} {
		_, err := timetable.New(r)
		require.ErrorIs(t, err, timetable.ErrInvalid, name)
	}
}

// Against the plain way: every second of some days, by the clock of the zone.
func TestNextFindsWhatStandsOnTheClock(t *testing.T) {
	for _, line := range []string{"*/7 * * * *", "13 */5 * * *", "0 0,12 * * 1-5", "59 1-3 * * *", "*/20 2 * * *"} {
		for _, zone := range []string{"UTC", "Europe/Zurich", "America/St_Johns"} {
			table := cron(t, line, zone)
			from := at(t, "2026-01-15T00:00:00Z")
			to := from.AddDate(0, 1, 0) // no change of summer time
			var want []time.Time
			for now := from; now.Before(to); now = now.Add(time.Minute) {
				if matches(line, now.In(table.Zone())) {
					want = append(want, now)
				}
			}
			require.NotEmpty(t, want)
			for now, i := from.Add(-1), 0; i < len(want); i++ {
				now = table.Next(now)
				require.True(t, now.Equal(want[i]), "%s in %s: %s, not %s", line, zone, now, want[i])
			}
		}
	}
}

func matches(line string, now time.Time) bool {
	m, h, wd := now.Minute(), now.Hour(), now.Weekday()
	return map[string]bool{
		"*/7 * * * *": m%7 == 0, "13 */5 * * *": m == 13 && h%5 == 0,
		"0 0,12 * * 1-5": m == 0 && h%12 == 0 && wd >= 1 && wd <= 5, "59 1-3 * * *": m == 59 && h >= 1 && h <= 3,
		"*/20 2 * * *": m%20 == 0 && h == 2,
	}[line]
}

func FuzzNew(f *testing.F) {
	f.Add("*/5 1-3 * jan-dec mon", "Europe/Zurich", "12-24", int64(0), int64(0), int64(1_774_746_000_000))
	f.Add("TZ= 1", "Local", "2026-01-01", int64(0), int64(0), int64(1_774_746_000_000))
	f.Add("", "", "01-01", int64(1000), int64(-62_135_596_800_000), int64(1_774_746_000_000))
	f.Add("", "", "01-01", int64(math.MaxInt64), int64(253_402_300_799_000), int64(253_402_300_799_000))
	f.Fuzz(func(t *testing.T, line, zone, except string, every, from, now int64) {
		r := timetable.Rules{Cron: line, Zone: zone, Every: time.Duration(every), Except: []string{except}}
		if every != 0 {
			r.From = time.UnixMilli(from)
		}
		table, err := timetable.New(r)
		if err != nil {
			return
		}
		at := time.UnixMilli(now % 253_402_300_799_000)
		for range 5 {
			next := table.Next(at)
			if next.IsZero() {
				break
			}
			require.True(t, next.After(at))
			require.LessOrEqual(t, next.UTC().Year(), 9999)
			at = next
		}
		require.LessOrEqual(t, len(table.Newest(time.UnixMilli(math.MinInt64/1_000_000), at, 10)), 10)
	})
}

// TestIntervalsThatBeganLongAgo counts from times that are further away than a
// time.Duration reaches.
func TestIntervalsThatBeganLongAgo(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-11-23T02:28:19.3Z")
	for from, want := range map[string]string{
		"0001-01-02T00:00:00Z": "2026-11-23T02:28:20Z", "1600-01-02T00:00:00.5Z": "2026-11-23T02:28:19.5Z",
		"9999-12-31T23:59:59Z": "9999-12-31T23:59:59Z",
	} {
		table, err := timetable.New(timetable.Rules{Every: time.Second, From: at(t, from)})
		require.NoError(t, err)
		require.Equal(t, at(t, want), table.Next(now).UTC())
		require.Zero(t, table.Next(at(t, "9999-12-31T23:59:59.9Z")))
		require.LessOrEqual(t, len(table.Newest(time.UnixMilli(math.MinInt64/1000), now, 10)), 10)
	}
	_, err := timetable.New(timetable.Rules{Every: time.Second, From: time.UnixMilli(math.MinInt64 / 1000)})
	require.ErrorIs(t, err, timetable.ErrInvalid)
}
