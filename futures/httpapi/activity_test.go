package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
)

// TestActivityOverHTTP reads what happened within the last hour and the last week.
func TestActivityOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	c := f.client.Cluster()
	now := time.Now()
	put := func(key activity.Key, ends int, counted int64) {
		var a activity.Activity
		for range ends {
			a.Count(&activity.Ended{Function: "go:f", Queue: "q", Succeeded: true, Run: 100 * time.Millisecond, Wait: 0})
			a.Count(&activity.Ended{
				Function: "go:g", Queue: "q", FailedAttempt: true, Failed: true, Run: time.Second, Wait: -1,
			})
		}
		if a.CountedAt = counted; counted > 0 {
			a.Counts = []activity.QueueCounts{
				{Queue: "q", Realized: 9}, {Queue: "r", Ready: 1, Claimed: 2, Delayed: 3, Blocked: 4},
			}
		}
		_, err := kv.Transact(context.Background(), c.Database(), kv.Retry{}, func(tx kv.Attempt) error {
			tx.Set(activity.Keys(c.Keys()).Activity(key), layout.Encode(&a))
			return nil
		})
		require.NoError(t, err)
	}
	before := now.Add(-30 * time.Minute)
	minute := activity.Key{Step: activity.Minutes, At: before.Truncate(time.Minute).Unix(), Membership: "w"}
	put(minute, 2, 0)
	minute.Membership = ""
	put(minute, 1, layout.Millis(before))
	put(activity.Key{Step: activity.Hours, At: now.Add(-72 * time.Hour).Truncate(time.Hour).Unix()}, 10, 1)

	var view httpapi.ActivityView
	f.send("GET", "/api/v1/activity", "").Into(http.StatusOK, &view)
	require.Equal(t, 60, view.StepS)
	require.Equal(t, view.To.Sub(view.From), time.Duration(len(view.Points))*time.Minute)
	waiting, running, delayed, blocked, none := int64(1), int64(2), int64(3), int64(4), int64(0)
	counted := httpapi.ActivityCounts{Waiting: &waiting, Running: &running, Delayed: &delayed, Blocked: &blocked}
	nothing := httpapi.ActivityCounts{Waiting: &none, Running: &none, Delayed: &none, Blocked: &none}
	ends := httpapi.ActivityEnds{Succeeded: 3, FailedAttempts: 3, Failed: 3}
	for i, p := range view.Points {
		require.Equal(t, view.From.Add(time.Duration(i)*time.Minute), p.At)
		want := httpapi.ActivityPoint{At: p.At}
		if p.At.Unix() == minute.At {
			want.ActivityEnds, want.RunMS, want.ActivityCounts = ends, 3300, counted
		}
		require.Equal(t, want, p)
	}
	require.Equal(t, []httpapi.ActivityFunction{
		{"go:f", "q", httpapi.ActivityEnds{Succeeded: 3}, httpapi.ActivityTimes{96, 127.4, 0.5, 1}},
		{"go:g", "q", httpapi.ActivityEnds{FailedAttempts: 3, Failed: 3},
			httpapi.ActivityTimes{RunP50MS: 768, RunP99MS: 1018.9}},
	}, view.Functions)
	require.Len(t, view.Queues, 2)
	require.Equal(t, "q", view.Queues[0].Queue)
	require.Equal(t, ends, view.Queues[0].ActivityEnds)
	require.Equal(t, nothing, view.Queues[0].ActivityCounts)
	require.Equal(t, httpapi.ActivityQueue{Queue: "r", ActivityCounts: counted}, view.Queues[1])

	view = httpapi.ActivityView{}
	f.send("GET", "/api/v1/activity?last=7d", "").Into(http.StatusOK, &view)
	require.Equal(t, 3600, view.StepS)
	require.EqualValues(t, 13, view.Functions[0].Succeeded)
	for _, known := range []string{"last=1h&by=hour", "last=2h&by=minute", "last=24h"} {
		f.send("GET", "/api/v1/activity?"+known, "").Into(http.StatusOK, &view)
	}
	f.send("GET", "/api/v1/activity?last=24h&by=minute", "").Problem(http.StatusBadRequest, "bad_request", "by=hour")
	for _, wrong := range []string{"last=3h", "by=day", "from=2026-01-01"} {
		require.Equal(t, http.StatusUnprocessableEntity, f.send("GET", "/api/v1/activity?"+wrong, "").Status)
	}
}
