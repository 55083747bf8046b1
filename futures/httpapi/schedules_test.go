package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

const schedules = "/api/v1/schedules"

func TestSchedulesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const body = `{"name":"nightly","cron":"30 2 * * *","zone":"Europe/Zurich","from":"2030-03-30T00:00:00Z",` +
		`"overlap":"queue","deadline_ms":60000,"missed":"catch-up","catch_up":7,` +
		`"future":{"function":"go:upper","args":"x","queue":"q"}}`
	var made, got httpapi.Schedule
	f.send("POST", schedules, body).Into(http.StatusCreated, &made)
	require.Equal(t, "queue", made.Overlap)
	require.Equal(t, 7, made.CatchUp)
	require.EqualValues(t, 60_000, made.EndMS)
	f.send("POST", schedules, body).Into(http.StatusCreated, &got)
	require.Equal(t, made, got)
	f.send("POST", schedules, `{"name":"nightly","every_ms":60000,"future":{"function":"go:upper"}}`).
		Problem(http.StatusConflict, "exists", "nightly")
	a := f.send("GET", schedules+"/nightly?times=3", "").Into(http.StatusOK, &got)
	require.Len(t, got.Next, 3)
	require.Contains(t, string(a.Body), `"2030-03-31T03:00:00+02:00"`, "in the zone of the schedule")
	const hourly = `{"every_ms":3600000,"from":"2030-01-01T00:00:00Z","future":{"function":"go:upper"}}`
	f.send("PUT", schedules+"/nightly", hourly).Into(http.StatusOK, &got)
	require.EqualValues(t, 3_600_000, got.EveryMS)
	require.NotNil(t, got.Updated)
	f.send("POST", schedules+"/nightly:pause", `{"reason":"why"}`).Into(http.StatusOK, &got)
	require.Equal(t, "why", got.Reason)
	var future httpapi.Future
	a = f.send("POST", schedules+"/nightly:trigger", "").Into(http.StatusCreated, &future)
	require.Equal(t, "nightly", future.Schedule)
	require.NotNil(t, future.ScheduledAt)
	require.Equal(t, path+"/"+future.ID.String(), a.Header.Get("Location"))
	f.send("POST", schedules+"/nightly:resume", "").Into(http.StatusOK, &got)
	require.Equal(t, future.ID, *got.Runs[0].ID)
	require.True(t, got.Runs[0].Triggered)
	var list struct{ Schedules []httpapi.Schedule }
	f.send("GET", schedules, "").Into(http.StatusOK, &list)
	require.Len(t, list.Schedules, 1)
	list.Schedules = nil
	f.send("GET", schedules+"?after=nightly", "").Into(http.StatusOK, &list)
	require.Empty(t, list.Schedules)
	require.Equal(t, http.StatusNoContent, f.send("DELETE", schedules+"/nightly", "").Status)
	f.send("GET", schedules+"/nightly", "").Problem(http.StatusNotFound, "not_found", "nightly")
	f.send("DELETE", schedules+"/nightly", "").Problem(http.StatusNotFound, "not_found", "nightly")
	for says, body := range map[string]string{
		"crontab line": `{"name":"x","cron":"x","future":{"function":"go:upper"}}`,
		"its task can": `{"name":"x","cron":"@daily","future":{"function":"go:upper","key":"k"}}`,
		"inputs":       `{"name":"x","cron":"@daily","future":{"function":"go:upper","inputs":["` + never + `"]}}`,
		"catch_up":     `{"name":"x","cron":"@daily","catch_up":3,"future":{"function":"go:upper"}}`,
		"every_ms":     `{"name":"x","every_ms":9223372036854775807,"future":{"function":"go:upper"}}`,
	} {
		a := f.send("POST", schedules, body)
		require.Equal(t, http.StatusBadRequest, a.Status, string(a.Body))
		require.Contains(t, string(a.Body), says)
	}
	f.send("PUT", schedules+"/y", `{"name":"x","cron":"@daily","future":{"function":"go:upper"}}`).
		Problem(http.StatusBadRequest, "bad_request", "names schedule")
}

func TestTimesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var got httpapi.Future
	f.send("POST", path, `{"function":"go:nobody","expires_ms":60000,"deadline":"2040-01-01T00:00:00Z"}`).
		Into(http.StatusCreated, &got)
	require.Equal(t, "2040-01-01T00:00:00Z", got.Deadline.Format(time.RFC3339))
	require.Equal(t, time.Minute, got.ExpiresAt.Sub(got.SubmittedAt).Round(time.Second))
	f.send("POST", path, `{"function":"go:nobody","expires_ms":9223372036854775807}`).
		Problem(http.StatusBadRequest, "bad_request", "expires_ms")
	f.send("POST", schedules, `{"name":"x","cron":"@daily","future":{"function":"go:upper","expires_ms":5}}`).
		Into(http.StatusCreated, new(httpapi.Schedule))
	const bound = `{"function":"go:upper","deadline":"2040-01-01T00:00:00Z"}`
	f.send("POST", schedules, `{"name":"y","cron":"@daily","future":`+bound+`}`).
		Problem(http.StatusBadRequest, "bad_future", "deadline")
}

func TestTimesOfSchedulesAreOfUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	view := httpapi.ScheduleOf(&futures.ScheduleView{CreatedAt: at, Waiting: []time.Time{at}})
	require.Equal(t, []time.Time{at.UTC()}, view.Waiting)
}
