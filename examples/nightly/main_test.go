package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

func TestNightly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "memory:", false, &out))
	require.Regexp(t, `^the next report is due at 02:30\nsales of Zurich on \d{4}-\d\d-\d\d\n$`, out.String())
	out.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = run(ctx, "memory:", true, &out) // opening may be interrupted as well
}

// TestNights lets a worker fire the schedule, for nights that nobody was there.
func TestNights(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	cluster.Register(report.Bind(reportOf))
	schedule, err := nightly()
	require.NoError(t, err)
	_, err = cluster.Client.PutSchedule(t.Context(), schedule)
	require.NoError(t, err)
	cluster.Advance(72 * time.Hour)
	view, err := cluster.Client.Schedule(t.Context(), schedule.Name, 1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(view.Runs), 2)
	for _, run := range view.Runs[:1] { // the retention of the others has passed
		text, err := report.Of(cluster.Client.Future(run.ID)).Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, run.At, run.FiredAt)
		zone := view.Next[0].Location()
		require.Contains(t, text, run.At.In(zone).AddDate(0, 0, -1).Format(time.DateOnly))
	}
	require.Equal(t, futures.OverlapQueue, view.Overlap)
}
