package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// TestFollowAFuture through progress, a failed attempt, and its end.
func TestFollowAFuture(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	seen := make(chan struct{})
	w, err := workers.New(f.client, workers.Options{Slots: 1})
	require.NoError(t, err)
	require.NoError(t, w.Register("import", func(ctx context.Context, _ []byte) ([]byte, error) {
		if info, _ := workers.InfoFrom(ctx); info.Attempt == 1 {
			return nil, workers.RetryAfter(0, errors.New("no such table"))
		}
		if err := workers.Progress(ctx, 3, 9, "row 3"); err != nil {
			return nil, err
		}
		select {
		case <-seen:
		case <-ctx.Done():
		}
		return []byte("all"), workers.Progress(ctx, 9, 9, "")
	}))
	storetest.Background(f, w.Run)
	future, err := f.client.Submit(t.Context(), futures.Task{Function: "go:import"})
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+path+"/"+future.ID().String()+"/events", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	var name string
	var view httpapi.Future
	told := false
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if event, found := strings.CutPrefix(lines.Text(), "event: "); found {
			name = event
		}
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		view = httpapi.Future{}
		require.NoError(t, json.Unmarshal([]byte(data), &view))
		if name == "progress" && view.Progress != nil && !told {
			require.Equal(t, int64(3), view.Progress.Done)
			require.Equal(t, "row 3", view.Progress.Text)
			close(seen)
			told = true
		}
	}
	require.True(t, told)
	require.Equal(t, "over", name)
	require.EqualValues(t, "realized", view.State)
	require.Equal(t, int64(9), view.Progress.Done)
	require.Len(t, view.Attempts, 2)
	require.Equal(t, "no such table", view.Attempts[0].Message)
	require.NotNil(t, view.Attempts[0].StartedAt)
	require.Empty(t, view.Attempts[1].Kind)
	require.Equal(t, 2, view.Attempts[1].Attempt)

	listed, _, err := f.client.List(t.Context(), futures.Filter{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Len(t, listed[0].Attempts, 2)
	f.send("GET", path+"/"+never+"/events", "").Problem(404, "not_found", "")
	f.send("GET", path+"/"+future.ID().String()+"/events?fast=1", "").Problem(400, "bad_request", "no parameter")
}

// TestListByTag lists the newest first.
func TestListByTag(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var ids []string
	for _, body := range []string{
		`{"function":"go:f","tags":["b","a","b"],"label":"order 7"}`,
		`{"function":"go:f","key":"k","tags":["a"]}`, `{"function":"go:f"}`,
	} {
		var got httpapi.Future
		f.send("POST", path, body).Into(http.StatusCreated, &got)
		ids = append(ids, got.ID.String())
	}
	listed := func(query string) (found []string) {
		var got struct {
			Futures []httpapi.Future `json:"futures"`
		}
		f.send("GET", path+query, "").Into(http.StatusOK, &got)
		for _, one := range got.Futures {
			found = append(found, one.ID.String())
		}
		return found
	}
	require.ElementsMatch(t, ids[:2], listed("?tag=a"))
	require.Equal(t, []string{ids[0]}, listed("?tag=b&since=2020-01-01T00:00:00Z"))
	require.Equal(t, ids[:1], listed("?label=order+7"))
	require.ElementsMatch(t, ids, listed(""))
	require.Empty(t, listed("?until=2020-01-01T00:00:00Z"))
	require.Len(t, listed("?oldest=true&items=true"), 3)
	f.send("GET", path+"?since=soon", "").Problem(400, "bad_request", "since")
	f.send("GET", path+"?tag=%20", "").Problem(400, "bad_name", "tag")
	f.send("POST", path, `{"function":"go:f","tags":["a b"]}`).Problem(400, "bad_name", "tag")
}
